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
struct cudaLaunchConfig_t {
    unsigned gridDim, blockDim;
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

/* A vocabulary, of whose tokens the first ones may be drawn. */
struct Text {
    MtcSampling sampling;
    int64_t vocabulary, tokens, clock[MTC_CLOCKS] = {};
    std::vector<float> prediction;
    std::vector<double> room;
    std::vector<unsigned char> seen;
    std::vector<int32_t> token = {3, 1, 3}, drawn = std::vector<int32_t>(64);

    Text(MtcSampling sampling, int64_t vocabulary, int64_t tokens)
        : sampling(sampling), vocabulary(vocabulary), tokens(tokens), prediction(vocabulary), seen(vocabulary) {
        for (int32_t one : token)
            seen[one] = 1;
    }
    void predict() {
        for (float &p : prediction)
            p = expf(6 * ((float)rand() / (float)RAND_MAX));
        prediction[token.back()] *= 40; // likely again, unless there is a penalty
    }
    void draw_on_device() {
        for (int tile = 0; tile < current_drawing.tiles; tile++) {
            blockIdx.x = tile;
            run_block(survey_predictions);
        }
        for (int tile = 0; tile < current_drawing.tiles; tile++) {
            blockIdx.x = tile;
            run_block(weigh_predictions);
        }
        blockIdx.x = 0;
        run_block(choose_next);
    }
    int64_t draw_here() const {
        double sum = 0;
        std::vector<double> scores(tokens);
        for (int64_t i = 0; i < tokens; i++)
            sum += prediction[i];
        for (int64_t i = 0; i < tokens; i++)
            scores[i] = log(prediction[i] / sum);
        mtc_penalize(sampling.repetition_penalty, token.data(), token.size(), scores.data(), tokens);
        return mtc_sample(&sampling, scores.data(), tokens, token.size(), 5);
    }
    int others(int draws) {
        const int64_t tiles = (vocabulary + MTC_DRAWING_TILE - 1) / MTC_DRAWING_TILE;
        room.resize(mtc_drawing_bytes(vocabulary, tiles) / sizeof(double));
        current_drawing = {sampling.repetition_penalty,
                           sampling.temperature,
                           sampling.seed,
                           5,
                           vocabulary,
                           tiles,
                           tokens,
                           7,
                           (int64_t)token.size(),
                           prediction.data(),
                           room.data(),
                           seen.data(),
                           drawn.data()};
        clock[MTC_POSITION] = 7;
        current_run.clock = clock;
        int wrong = 0;
        for (int n = 0; n < draws; n++) {
            predict();
            draw_on_device();
            wrong += drawn[n] != draw_here() || clock[MTC_TOKEN] != drawn[n] || clock[MTC_POSITION] != 8 + n;
            token.push_back(drawn[n]);
        }
        return wrong;
    }
};

int main() {
    const int64_t sizes[][2] = {{65, 65}, {3000, 2500}, {5000, 900}};
    for (auto &size : sizes)
        for (double temperature : {0.0, 0.7, 1.0})
            for (double penalty : {1.0, 1.3}) {
                MtcSampling sampling = {penalty, temperature, 0, 1, 0, 11};
                const int draws = 6;
                printf("%d %d\n", draws, Text(sampling, size[0], size[1]).others(draws));
            }
    Text none({1, 1, 0, 1, 0, 11}, 70, 70);
    none.others(1);
    none.prediction[60] = NAN;
    none.draw_on_device();
    printf("none %d\n", none.drawn[1]);
}
