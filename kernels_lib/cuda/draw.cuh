/* Tokens that are drawn on the device, so that the next one is decoded without the host: the rules are those of runtime/commands/sample.c,
 * in float64 as there, but sums are made tile by tile.
 *
 *     prediction [tokens] -> survey: of each tile of it the sum, and the highest of those that the text has and of those that it has not
 *                         -> weigh: weight[i] = exp((score[i] - highest) / temperature), and the sum of each tile
 *                         -> choose: the first token with which the weights, in their order, exceed the drawn part of their sum
 *
 *     score[i] = log(prediction[i] / sum of predictions), of tokens that the text has times the penalty */
#ifndef MTC_CUDA_DRAW_CUH
#define MTC_CUDA_DRAW_CUH

#include "cuda/launches.cuh"

#include <climits>

/* What the draws that follow work on; set on their stream. */
static __constant__ MtcDrawing current_drawing;

constexpr int DRAWN_EACH = MTC_DRAWING_TILE / THREADS; // tokens of a tile that a thread has

/* A token by its score, or by its prediction, of which the score is a rising function. */
struct Highest {
    double score;
    int token; // -1: none
};
static inline __device__ Highest higher(const Highest &a, const Highest &b) {
    const bool second =
        a.token < 0 || (b.token >= 0 && (b.score > a.score || (b.score == a.score && b.token < a.token)));
    return second ? b : a;
}

/* What is known of some tokens. A prediction that is no number makes the sum none. */
struct Survey {
    double sum = 0;
    Highest fresh = {0, -1}, seen = {0, -1}; // those that the text has not, and has
};
static inline __device__ Survey together(const Survey &a, const Survey &b) {
    return {a.sum + b.sum, higher(a.fresh, b.fresh), higher(a.seen, b.seen)};
}
static inline __device__ double together(double a, double b) {
    return a + b;
}

template <class T> __device__ T from_lane(const T &value, int distance) {
    T other;
    static_assert(sizeof(T) % sizeof(int) == 0, "words");
#pragma unroll
    for (int word = 0; word < (int)(sizeof(T) / sizeof(int)); word++)
        ((int *)&other)[word] = __shfl_xor_sync(~0u, ((const int *)&value)[word], distance);
    return other;
}

/* Of all threads of the block, in an order that is fixed; each gets it. */
template <class T> __device__ T block_together(T value) {
    __shared__ double memory[WARPS * sizeof(T) / sizeof(double)];
    T *part = (T *)memory;
    for (int distance = LANES / 2; distance; distance /= 2)
        value = together(value, from_lane(value, distance));
    __syncthreads();
    if (threadIdx.x % LANES == 0)
        part[threadIdx.x / LANES] = value;
    __syncthreads();
    value = part[0];
    for (int warp = 1; warp < WARPS; warp++)
        value = together(value, part[warp]);
    return value;
}

static inline __device__ int drawing_tiles(const MtcDrawing &drawing) {
    return (int)((drawing.tokens + MTC_DRAWING_TILE - 1) / MTC_DRAWING_TILE);
}

/* That of a text, as if it were the only one. */
static inline __device__ MtcDrawing drawing_of_text(const MtcDrawing &all, int text) {
    MtcDrawing drawing = all;
    drawing.text += text;
    drawing.prediction += text * all.vocabulary;
    drawing.weight += text * all.each_weight;
    drawing.seen += text * all.vocabulary;
    drawing.drawn += text * all.each_drawn;
    return drawing;
}

/* Where the drawing's room has the surveys of the tiles, and the sums of their weights: behind the weights. */
static inline __device__ Survey *surveys_of(const MtcDrawing &drawing) {
    return (Survey *)(drawing.weight + drawing.vocabulary);
}
static inline __device__ double *sums_of(const MtcDrawing &drawing) {
    return (double *)(surveys_of(drawing) + drawing.tiles);
}

static inline __device__ bool is_seen(const MtcDrawing &drawing, int64_t token) {
    return drawing.repetition_penalty != 1 && drawing.seen[token];
}

static inline __device__ void survey_tile(const MtcDrawing &drawing, int tile) {
    Survey mine;
    for (int e = 0; e < DRAWN_EACH; e++) {
        const int token = tile * MTC_DRAWING_TILE + e * THREADS + threadIdx.x;
        if (token >= drawing.tokens)
            break;
        const double prediction = drawing.prediction[token];
        Survey one = {prediction >= 0 ? prediction : NAN};
        (is_seen(drawing, token) ? one.seen : one.fresh) = {prediction, token};
        mine = together(mine, one);
    }
    mine = block_together(mine);
    if (threadIdx.x == 0)
        surveys_of(drawing)[tile] = mine;
}

static inline __device__ Survey survey_of_all(const MtcDrawing &drawing) {
    Survey mine;
    for (int tile = threadIdx.x; tile < drawing_tiles(drawing); tile += THREADS)
        mine = together(mine, surveys_of(drawing)[tile]);
    return block_together(mine);
}

static inline __device__ double score_of(const MtcDrawing &drawing, double prediction, double sum, bool seen) {
    const double score = log(prediction / sum);
    return seen ? score * drawing.repetition_penalty : score;
}

/* The token of the highest score; none where a prediction is no number, or infinite, or all are 0. */
static inline __device__ Highest highest_of(const MtcDrawing &drawing, const Survey &all) {
    if (!(all.sum > 0) || isinf(all.sum))
        return {0, -1};
    Highest fresh = all.fresh, seen = all.seen;
    fresh.score = score_of(drawing, fresh.score, all.sum, false);
    seen.score = score_of(drawing, seen.score, all.sum, true);
    return higher(fresh, seen);
}

/* exp((score - highest) / temperature), of predictions as they are without logarithms. */
static inline __device__ double weight_of(const MtcDrawing &drawing, const Survey &all, double top, double prediction,
                                          bool seen) {
    if (drawing.temperature == 1 && drawing.repetition_penalty == 1)
        return prediction / all.fresh.score;
    return exp((score_of(drawing, prediction, all.sum, seen) - top) / drawing.temperature);
}

static inline __device__ void weigh_tile(const MtcDrawing &drawing, int tile) {
    const Survey all = survey_of_all(drawing);
    const double top = highest_of(drawing, all).score;
    double sum = 0;
    for (int e = 0; e < DRAWN_EACH; e++) {
        const int token = tile * MTC_DRAWING_TILE + e * THREADS + threadIdx.x;
        if (token >= drawing.tokens)
            break;
        sum += drawing.weight[token] = weight_of(drawing, all, top, drawing.prediction[token], is_seen(drawing, token));
    }
    sum = block_together(sum);
    if (threadIdx.x == 0)
        sums_of(drawing)[tile] = sum;
}

/* The sum of what the threads before the caller have. */
static inline __device__ double block_before(double value) {
    __shared__ double part[WARPS];
    const int lane = threadIdx.x % LANES;
    double through = value;
    for (int distance = 1; distance < LANES; distance *= 2) {
        const double before = __shfl_up_sync(~0u, through, distance);
        through += lane >= distance ? before : 0;
    }
    if (lane == LANES - 1)
        part[threadIdx.x / LANES] = through;
    __syncthreads();
    double before = 0;
    for (int warp = 0; warp < (int)threadIdx.x / LANES; warp++)
        before += part[warp];
    const double in_warp = __shfl_up_sync(~0u, through, 1);
    return before + (lane ? in_warp : 0);
}

/* The tile with which the sums exceed `wanted`, else the last that has any weight; *before: of the tiles before it. */
static inline __device__ int tile_at(const double *sums, int tiles, double wanted, double *before) {
    double passed = 0;
    int last = 0;
    *before = 0;
    for (int tile = 0; tile < tiles; tile++) {
        if (sums[tile] > 0) {
            last = tile;
            *before = passed;
        }
        passed += sums[tile];
        if (passed > wanted)
            break;
    }
    return last;
}

/* The token of the tile with which the weights, `before` of them in the tiles before, exceed `wanted`, else the last that has any. */
static inline __device__ int token_at(const MtcDrawing &drawing, int tile, double before, double wanted) {
    __shared__ int first, last;
    const int begin = tile * MTC_DRAWING_TILE + threadIdx.x * DRAWN_EACH;
    double weight[DRAWN_EACH], sum = 0;
    for (int e = 0; e < DRAWN_EACH; e++)
        sum += weight[e] = begin + e < drawing.tokens ? drawing.weight[begin + e] : 0;
    if (threadIdx.x == 0) {
        first = INT_MAX;
        last = 0;
    }
    double passed = before + block_before(sum); // its barrier is behind what thread 0 did
    for (int e = 0; e < DRAWN_EACH; e++) {
        passed += weight[e];
        if (weight[e] > 0)
            atomicMax(&last, begin + e);
        if (weight[e] > 0 && passed > wanted)
            atomicMin(&first, begin + e);
    }
    __syncthreads();
    return first < INT_MAX ? first : last;
}

/* Uniform in [0, 1), as mtc_sample draws it. */
static inline __device__ double drawn_part(const MtcDrawing &drawing, int64_t place) {
    const MtcWords words = mtc_random_block(drawing.seed, MTC_SAMPLE_STREAM, (uint64_t)place, drawing.text);
    return (double)(((uint64_t)words.at[1] << 32 | words.at[0]) >> 11) * 0x1p-53;
}

static inline __device__ int drawn_token(const MtcDrawing &drawing, int64_t place) {
    __shared__ double sums[MTC_DRAWING_TILES];
    const int tiles = drawing_tiles(drawing);
    const Highest highest = highest_of(drawing, survey_of_all(drawing));
    if (highest.token < 0 || drawing.temperature == 0)
        return highest.token;
    for (int tile = threadIdx.x; tile < tiles; tile += THREADS)
        sums[tile] = sums_of(drawing)[tile];
    __syncthreads();
    double all = 0, before;
    for (int tile = 0; tile < tiles; tile++)
        all += sums[tile];
    const double wanted = drawn_part(drawing, place) * all;
    const int tile = tile_at(sums, tiles, wanted, &before);
    return token_at(drawing, tile, before, wanted);
}

/* All texts have read the position: the calling one is the last. */
static inline __device__ bool completes(const MtcDrawing &drawing) {
    if (drawing.texts == 1)
        return true;
    __threadfence(); // what the block has read comes before the count
    if (atomicAdd(drawing.arrivals, 1u) + 1 < drawing.texts)
        return false;
    *drawing.arrivals = 0;
    return true;
}

/* The token, and where the next one is decoded. One that is none stays to the end, which the host sees. */
static inline __device__ void choose_token(const MtcDrawing &drawing, int text, int64_t *clock) {
    const int64_t done = clock[MTC_POSITION] - drawing.position;
    const int token = drawn_token(drawing, drawing.place + done);
    __syncthreads(); // all have read the position
    if (threadIdx.x > 0)
        return;
    drawing.drawn[done] = token;
    if (token >= 0) {
        drawing.seen[token] = 1;
        if (drawing.token)
            drawing.token[text] = token;
        else
            clock[MTC_TOKEN] = token;
    }
    if (completes(drawing))
        clock[MTC_POSITION]++;
}

/* A graph that was recorded for more texts than there are has blocks for none. */
static __global__ void __launch_bounds__(THREADS) survey_predictions() {
    Gate gate = Gate::of_launch();
    gate();
    if (blockIdx.y < current_drawing.texts)
        survey_tile(drawing_of_text(current_drawing, blockIdx.y), blockIdx.x);
}

static __global__ void __launch_bounds__(THREADS) weigh_predictions() {
    Gate gate = Gate::of_launch();
    gate();
    if (blockIdx.y < current_drawing.texts && current_drawing.temperature != 0)
        weigh_tile(drawing_of_text(current_drawing, blockIdx.y), blockIdx.x);
}

static __global__ void __launch_bounds__(THREADS) choose_next() {
    Gate gate = Gate::of_launch();
    gate();
    if (blockIdx.x < current_drawing.texts)
        choose_token(drawing_of_text(current_drawing, blockIdx.x), blockIdx.x, current_run.clock);
}

static inline cudaError_t launch_of_draw(void (*kernel)(), int64_t blocks, int64_t texts, cudaStream_t stream) {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks, (unsigned)texts);
    config.blockDim = THREADS;
    config.stream = stream;
    config.attrs = &early;
    cudaError_t known;
    config.numAttrs = Compiled::of((const void *)kernel, &known).has_instructions_of_sm_90();
    return known == cudaSuccess ? cudaLaunchKernelExC(&config, (const void *)kernel, nullptr) : known;
}

static inline cudaError_t launch_draw(int64_t tiles, int64_t texts, cudaStream_t stream) {
    return Attempt()
        .then([&] { return launch_of_draw(survey_predictions, tiles, texts, stream); })
        .then([&] { return launch_of_draw(weigh_predictions, tiles, texts, stream); })
        .then([&] { return launch_of_draw(choose_next, texts, 1, stream); })
        .error;
}

#endif
