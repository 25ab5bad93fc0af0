/* kernels_lib/cuda/draw.cuh on the host: tokens that a device draws of its predictions, beside those of runtime/commands/sample.c. Prints,
 * of each way to draw, how many were drawn and how many were others. */
#include "block_on_host.h"

#define __global__
#define __constant__
#define __launch_bounds__(threads)
#define MTC_CUDA_LAUNCHES_CUH
#include "mtc.h"
#include "random.h"

using std::isinf;

static void atomicMax(int *at, int value) {
    *at = std::max(*at, value);
}
static void atomicMin(int *at, int value) {
    *at = std::min(*at, value);
}

static void __threadfence() {
}
static unsigned atomicAdd(unsigned *count, unsigned more) {
    const unsigned before = *count;
    *count += more;
    return before;
}

/* Of launches, which are none here. */
struct Gate {
    static Gate of_launch() {
        return {};
    }
    void operator()() const {
    }
};
static struct { int64_t *clock; } current_run;
typedef void *cudaStream_t;
enum cudaError_t { cudaSuccess };
enum { cudaLaunchAttributeProgrammaticStreamSerialization };
struct cudaLaunchAttribute {
    int id;
    struct {
        int programmaticStreamSerializationAllowed;
    } val;
};
struct dim3 {
    dim3(unsigned, unsigned) {
    }
};
struct cudaLaunchConfig_t {
    dim3 gridDim = {1, 1};
    unsigned blockDim;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    int numAttrs;
};
static cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **) {
    return cudaSuccess;
}
struct Compiled {
    static Compiled of(const void *, cudaError_t *known) {
        *known = cudaSuccess;
        return {};
    }
    bool has_instructions_of_sm_90() const {
        return false;
    }
};
struct Attempt {
    cudaError_t error = cudaSuccess;
    template <class Call> Attempt &then(Call call) {
        error = call();
        return *this;
    }
};

#include "cuda/draw.cuh"

extern "C" {
int64_t mtc_sample(const MtcSampling *sampling, const double *scores, int64_t count, uint64_t draw, uint64_t text);
void mtc_penalize(double penalty, const int32_t *token, size_t tokens, double *scores, int64_t count);
}

/* A vocabulary, of whose tokens the first ones may be drawn; several texts at a time, or one. */
struct Texts {
    enum { EACH = 64 };
    MtcSampling sampling;
    int64_t vocabulary, tokens, texts, clock[MTC_CLOCKS] = {};
    std::vector<float> prediction;
    std::vector<double> room;
    std::vector<unsigned char> seen;
    std::vector<std::vector<int32_t>> text = std::vector<std::vector<int32_t>>(texts, {3, 1, 3});
    std::vector<int32_t> drawn = std::vector<int32_t>(EACH * texts), last = std::vector<int32_t>(texts);
    unsigned arrivals = 0;

    Texts(MtcSampling sampling, int64_t vocabulary, int64_t tokens, int64_t texts = 1)
        : sampling(sampling), vocabulary(vocabulary), tokens(tokens), texts(texts), prediction(texts * vocabulary),
          seen(texts * vocabulary) {
        for (int64_t i = 0; i < texts; i++)
            for (int32_t one : text[i])
                seen[i * vocabulary + one] = 1;
    }
    void predict() {
        for (float &p : prediction)
            p = expf(6 * ((float)rand() / (float)RAND_MAX));
        for (int64_t i = 0; i < texts; i++)
            prediction[i * vocabulary + text[i].back()] *= 40; // likely again, unless there is a penalty
    }
    void run_tiles(void (*kernel)()) {
        for (blockIdx.y = 0; blockIdx.y < texts; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < current_drawing.tiles; blockIdx.x++)
                run_block(kernel);
        blockIdx.y = 0;
    }
    void draw_on_device() {
        run_tiles(survey_predictions);
        run_tiles(weigh_predictions);
        for (blockIdx.x = 0; blockIdx.x < texts; blockIdx.x++)
            run_block(choose_next);
    }
    int64_t draw_here(int64_t i) const {
        double sum = 0;
        const float *predicted = prediction.data() + i * vocabulary;
        std::vector<double> scores(tokens);
        for (int64_t k = 0; k < tokens; k++)
            sum += predicted[k];
        for (int64_t k = 0; k < tokens; k++)
            scores[k] = log(predicted[k] / sum);
        mtc_penalize(sampling.repetition_penalty, text[i].data(), text[i].size(), scores.data(), tokens);
        return mtc_sample(&sampling, scores.data(), tokens, text[i].size(), 5 + i);
    }
    bool is_last(int64_t i, int32_t token) const {
        return texts == 1 ? clock[MTC_TOKEN] == token : last[i] == token;
    }
    int others(int draws) {
        const int64_t tiles = (vocabulary + MTC_DRAWING_TILE - 1) / MTC_DRAWING_TILE;
        room.resize(texts * mtc_drawing_bytes(vocabulary, tiles) / sizeof(double));
        current_drawing = {sampling.repetition_penalty,
                           sampling.temperature,
                           sampling.seed,
                           5,
                           vocabulary,
                           tiles,
                           tokens,
                           7,
                           (int64_t)text[0].size(),
                           prediction.data(),
                           room.data(),
                           seen.data(),
                           drawn.data(),
                           texts,
                           (int64_t)room.size() / texts,
                           EACH,
                           texts == 1 ? nullptr : last.data(),
                           &arrivals};
        clock[MTC_POSITION] = 7;
        current_run.clock = clock;
        int wrong = 0;
        for (int n = 0; n < draws; n++) {
            predict();
            draw_on_device();
            for (int64_t i = 0; i < texts; i++) {
                const int32_t token = drawn[i * EACH + n];
                wrong += token != draw_here(i) || !is_last(i, token) || clock[MTC_POSITION] != 8 + n;
                text[i].push_back(token);
            }
        }
        return wrong;
    }
};

int main() {
    const int64_t sizes[][3] = {{65, 65, 1}, {3000, 2500, 1}, {5000, 900, 1}, {3000, 2500, 3}};
    for (auto &size : sizes)
        for (double temperature : {0.0, 0.7, 1.0})
            for (double penalty : {1.0, 1.3}) {
                MtcSampling sampling = {penalty, temperature, 0, 1, 0, 11};
                const int draws = 6;
                printf("%d %d\n", draws, Texts(sampling, size[0], size[1], size[2]).others(draws));
            }
    Texts none({1, 1, 0, 1, 0, 11}, 70, 70);
    none.others(1);
    none.prediction[60] = NAN;
    none.draw_on_device();
    printf("none %d\n", none.drawn[1]);
}
