// integers: a model of 79,882 parameters, compiled by mtc --precision int8 from integers.mt
//
//   step      1 FLOP in 1 phase, products in int8
//   memory    3.7 MB arena (6.9 MB without sharing): weights 79.8 KB, optimizer state 0 B, values 3.6 MB
//   schedule  persistent: 0.2 us a step estimated (graph: 2.4 us)
//
//   phase 1   report_loss  1 tile
//
// From top to bottom: sizes; tensors; one function per kernel, in the order of a training step; the phases that
// group them; the step; evaluation; tables for the runtime; main.
//
// How it runs: a kernel is cut into tiles, and a tile is the work of one block of 256 threads: a call of the
// kernel's run(). Phases run one after the other; the tiles of a phase, of all its kernels, may run at the same
// time, in any order. A tile may start while the phase before is still running; gate() returns when that has
// ended. What that phase does not write may be read ahead of the gate, and is. All steps are one launch of a
// single block, which keeps the arena in its shared memory: it loops over the steps, in a step over the phases,
// and in a phase over the tiles (cuda/schedule.cuh).

#include "mtc.h" // the runtime: data, command line, checkpoints

#include "cuda/batch.cuh"    // row: the example in a row of the batch; share: its part in a mean
#include "cuda/math.cuh"     // relu, sigmoid ...
#include "cuda/matmul.cuh"   // matmul<Product<M, N, K>, Tile<m, n, k, tm, tn>>(...)
#include "cuda/pack.cuh"     // neighbouring numbers that a thread moves at once
#include "cuda/repeated.cuh" // a kernel again and again, alone
#include "cuda/schedule.cuh" // phases as one persistent kernel or as a CUDA graph
#include "cuda/team.cuh"     // the threads of a row

#include <algorithm>

// ---- sizes --------------------------------------------------------------------------------------------------

enum {
    BATCH = 64,
    IMAGE_CHANNELS = 32,
    IMAGE_ROWS = 8,
    IMAGE_COLUMNS = 8,
    H_CHANNELS = 64,
    SCORES_WEIGHT_COLUMNS = 4096,
    SCORES = 10
};
enum { REPORT_LOSS, REPORTS };

namespace { // of this file alone: a kernel may be called like a function of others, or of another program

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

struct Tensors {
    static constexpr int64_t arena_bytes = 3899136;

    const MtcRun &run;
    char *arena;

    // data set: [examples, IMAGE_CHANNELS, IMAGE_ROWS, IMAGE_COLUMNS]
    const float *image = (const float *)run.data.field[0];
    const unsigned char *label = (const unsigned char *)run.data.field[1]; // data set: [examples]
    float *scores_bias = (float *)(arena + 0);                             // [SCORES]
    signed char *__restrict__ h_weight = (signed char *)(arena + 256);     // [H_CHANNELS, 1, 1, IMAGE_CHANNELS]
    float *h_weight_scale = (float *)(arena + 2304);                       // [H_CHANNELS]
    float *h_weight_input_scale = (float *)(arena + 2560);
    signed char *__restrict__ sum_weight = (signed char *)(arena + 2816); // [H_CHANNELS, 3, 3, H_CHANNELS]
    float *sum_weight_scale = (float *)(arena + 39680);                   // [H_CHANNELS]
    float *sum_weight_input_scale = (float *)(arena + 39936);
    signed char *__restrict__ scores_weight = (signed char *)(arena + 40192); // [SCORES, SCORES_WEIGHT_COLUMNS]
    float *scores_weight_scale = (float *)(arena + 81152);                    // [SCORES]
    float *scores_weight_input_scale = (float *)(arena + 81408);
    bfloat16 *eval_h = (bfloat16 *)(arena + 81664);    // [BATCH, IMAGE_ROWS, IMAGE_COLUMNS, H_CHANNELS]
    float *eval_prediction = (float *)(arena + 81664); // [BATCH, SCORES]
    // [BATCH, IMAGE_ROWS, IMAGE_COLUMNS, H_CHANNELS], in place of eval_h
    bfloat16 *eval_sum = (bfloat16 *)(arena + 81664);
    float *watch_h = (float *)(arena + 81664);           // [BATCH, IMAGE_ROWS, IMAGE_COLUMNS, H_CHANNELS]
    float *watch_sum_reshape = (float *)(arena + 81664); // [BATCH, H_CHANNELS * IMAGE_ROWS * IMAGE_COLUMNS]
    bfloat16 *eval_scores = (bfloat16 *)(arena + 84224); // [BATCH, SCORES]
    float *eval_loss_part = (float *)(arena + 85504);    // [BATCH]
    // [BATCH, IMAGE_ROWS, IMAGE_COLUMNS, H_CHANNELS]
    signed char *__restrict__ eval_h_to_i8 = (signed char *)(arena + 605952);
    signed char *__restrict__ eval_to_scores_to_i8 = (signed char *)(arena + 605952); // [BATCH, SCORES_WEIGHT_COLUMNS]
    // [BATCH, IMAGE_ROWS, IMAGE_COLUMNS, IMAGE_CHANNELS]
    signed char *__restrict__ eval_to_h_to_i8 = (signed char *)(arena + 868096);
    float *watch_h_reshape = (float *)(arena + 1130240);       // [BATCH, IMAGE_ROWS * IMAGE_COLUMNS * H_CHANNELS]
    float *watch_image_reshape_2 = (float *)(arena + 1130240); // [BATCH * IMAGE_ROWS * IMAGE_COLUMNS, IMAGE_CHANNELS]
    float *watch_h_weight = (float *)(arena + 1654528);        // [H_CHANNELS, 1, 1, IMAGE_CHANNELS]
    float *watch_sum = (float *)(arena + 2178816);             // [BATCH, IMAGE_ROWS, IMAGE_COLUMNS, H_CHANNELS]
    float *watch_sum_weight = (float *)(arena + 3751680);      // [H_CHANNELS, 3, 3, H_CHANNELS]
};

// Layers that are alike share their kernels, which are given the tensors of one place, Own:
// watch_show_watch_places has a row for each, where its tensors begin, in units of 256 bytes. A launch takes
// row 0, made again row 1, 2 ...; At<kernel, 3, 2, 4> takes rows 3 to 6, made again 5 to 8 (cuda/phase.cuh).

// ---- training step ------------------------------------------------------------------------------------------

// loss = cross_entropy(scores, label)                                                            integers.mt:16
//     loss = 0
struct report_loss {
    static constexpr int tiles = 1;
    static __device__ void run(const Tensors &, const Batch &batch, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= 1)
            return;
        batch.reports[REPORT_LOSS] = (float)0.0f;
    }
};

// ---- phases: one after the other; the kernels of a phase run at the same time -------------------------------

using Train = Step<Tensors, BATCH, REPORTS, Phase<report_loss>>;

// ---- the step -----------------------------------------------------------------------------------------------

constexpr int BLOCKS = 1; // of the one launch, at most: the device must hold all at a time
static Persistent<Train, Form::solo> schedule;

static Repeated<Train> repeated;

static const char *train(const MtcRun *run, int64_t steps) {
    return schedule.train(run, steps);
}

// phases 0 .. phase of one step
static const char *train_until(const MtcRun *run, int phase) {
    return launch_until<Train>(run, phase);
}

static const char *shuffle(const MtcRun *run, int *order, int64_t epoch, int64_t epochs) {
    return launch_shuffle(run, order, epoch, epochs);
}

static const char *run_kernel(const MtcRun *run, int kernel, int64_t times) {
    return repeated.run(run, kernel, times);
}

static const char *prepare(const MtcRun *) {
    return schedule.prepare(BLOCKS);
}

static void release() {
    schedule.release();
    repeated.release();
}

// ---- evaluation ---------------------------------------------------------------------------------------------

// h = relu(conv2d(image, 64, 1, bias = false))                                                   integers.mt:10
//     eval_to_h_to_i8[i, j, k, l] = to_i8(image[i, l, j, k] * (1 / h.weight.input_scale))
struct eval_to_h {
    static constexpr int tiles = divide_up(BATCH * IMAGE_ROWS * IMAGE_COLUMNS * IMAGE_CHANNELS, Thread::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= BATCH * IMAGE_ROWS * IMAGE_COLUMNS * IMAGE_CHANNELS)
            return;
        float image_mul = t.image[row(batch, i / (IMAGE_ROWS * IMAGE_COLUMNS * IMAGE_CHANNELS)) * IMAGE_CHANNELS *
                                      IMAGE_ROWS * IMAGE_COLUMNS +
                                  i % IMAGE_CHANNELS * IMAGE_ROWS * IMAGE_COLUMNS +
                                  i / IMAGE_CHANNELS % (IMAGE_ROWS * IMAGE_COLUMNS)] *
                          (1.0f / t.h_weight_input_scale[0]);
        t.eval_to_h_to_i8[i] = to_i8(image_mul);
    }
};

// h = relu(conv2d(image, 64, 1, bias = false))                                                   integers.mt:10
// sum = relu(conv2d(h, 64, 3, padding = 1, bias = false) + h)                                    integers.mt:11
//     h[i, j, k, l] = relu((sum over m of eval_to_h_to_i8[i, j, k, m] * h.weight[l, 0, 0, m]) *
//         (h.weight.scale[l] * h.weight.input_scale))
//     eval_h_to_i8[i, j, k, l] = to_i8(h[i, j, k, l] * (1 / sum.weight.input_scale))
struct eval_h {
    // 64 tiles of 64 x 64 outputs, 16 x 32 a warp; int8 on tensor cores, panels copied ahead to shared memory
    // (cuda/tensor.cuh)
    using Shape = Product<BATCH * IMAGE_ROWS * IMAGE_COLUMNS, H_CHANNELS, IMAGE_CHANNELS>;
    using Cut = TensorTile<64, 64, 128, 4, 2, 4, Integer>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        auto left = matrix<IMAGE_CHANNELS>(t.eval_to_h_to_i8);
        auto right = transposed(matrix<IMAGE_CHANNELS>(t.h_weight));
        struct OfColumn {
            Pack<float, 8> h_weight_scale;
            float h_weight_input_scale;
            float sum_weight_input_scale;
        };
        auto columns = [&](int j) {
            return OfColumn{load_pack<8>(t.h_weight_scale + j), t.h_weight_input_scale[0], t.sum_weight_input_scale[0]};
        };
        auto out = [&](int i, int j, const Pack<float, 8> &sum, const OfColumn &column) {
            Pack<signed char, 8> h_to_i8;
            Pack<float, 8> h;
            for (int v = 0; v < 8; v++) {
                float h_to_float =
                    round_bf16(relu((float)sum[v] * (column.h_weight_scale[v] * column.h_weight_input_scale)));
                h_to_i8[v] = to_i8(h_to_float * (1.0f / column.sum_weight_input_scale));
                h[v] = h_to_float;
            }
            store_pack(t.eval_h_to_i8 + i * H_CHANNELS + j, h_to_i8);
            store_pack(t.eval_h + i * H_CHANNELS + j, to_bf16(h));
        };
        auto results = vectorized<8>(of_columns(columns, out));
        matmul<Shape, Cut>(tile, left, right, shared, gate, results);
    }
};

// sum = relu(conv2d(h, 64, 3, padding = 1, bias = false) + h)                                    integers.mt:11
//     sum[i, j, k, l] = relu((sum over m, n, o of ... * ...) * (sum.weight.scale[l] * sum.weight.input_scale) +
//         h[i, j, k, l])
struct eval_sum {
    // 64 tiles of 64 x 64 outputs, 16 x 32 a warp; int8 on tensor cores, panels copied ahead to shared memory
    // (cuda/tensor.cuh); windows are read straight from the image (cuda/window.cuh)
    using Shape = Product<BATCH * IMAGE_ROWS * IMAGE_COLUMNS, H_CHANNELS, 3 * 3 * H_CHANNELS>;
    using Cut = TensorTile<64, 64, 128, 4, 2, 4, Integer>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        // outputs, taps, stride, dilation, pad, spread
        using Rows = Axis<IMAGE_ROWS, 3, 1, 1, 1, 1>;
        using Columns = Axis<IMAGE_COLUMNS, 3, 1, 1, 1, 1>;
        auto left = window<IMAGE_ROWS, IMAGE_COLUMNS, H_CHANNELS, Rows, Columns>(t.eval_h_to_i8);
        auto right = transposed(matrix<3 * 3 * H_CHANNELS>(t.sum_weight));
        // read behind the gate, not early: the phase before writes h
        struct OfColumn {
            Pack<float, 8> sum_weight_scale;
            float sum_weight_input_scale;
        };
        auto columns = [&](int j) {
            return OfColumn{load_pack<8>(t.sum_weight_scale + j), t.sum_weight_input_scale[0]};
        };
        struct Ahead {
            Pack<bfloat16, 8> h;
        };
        auto read = [&](int i, int j) { return Ahead{load_pack<8>(t.eval_h + i * H_CHANNELS + j)}; };
        auto out = [&](int i, int j, const Pack<float, 8> &sum, const Ahead &ahead, const OfColumn &column) {
            Pack<float, 8> sum_2;
            for (int v = 0; v < 8; v++) {
                float h_add =
                    (float)sum[v] * (column.sum_weight_scale[v] * column.sum_weight_input_scale) + to_float(ahead.h[v]);
                sum_2[v] = relu(h_add);
            }
            store_pack(t.eval_sum + i * H_CHANNELS + j, to_bf16(sum_2));
        };
        auto results = vectorized<8>(of_columns(columns, preloaded(read, out)));
        matmul<Shape, Cut>(tile, left, right, shared, gate, results);
    }
};

// scores = linear(flatten(sum), 10)                                                              integers.mt:12
//     sum[i, j, k, l] = sum[i, k, l, j]
//     eval_to_scores_to_i8[i, j] = to_i8(sum[i, j / (IMAGE_ROWS * IMAGE_COLUMNS), j / IMAGE_COLUMNS %
//         IMAGE_ROWS, j % IMAGE_COLUMNS] * (1 / scores.weight.input_scale))
struct eval_to_scores {
    static constexpr int tiles = divide_up(BATCH * SCORES_WEIGHT_COLUMNS, Thread::rows);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= BATCH * SCORES_WEIGHT_COLUMNS)
            return;
        float sum_to_float = to_float(
            t.eval_sum[i / (H_CHANNELS * IMAGE_ROWS * IMAGE_COLUMNS) * IMAGE_ROWS * IMAGE_COLUMNS * H_CHANNELS +
                       i % (IMAGE_ROWS * IMAGE_COLUMNS) * H_CHANNELS + i / (IMAGE_ROWS * IMAGE_COLUMNS) % H_CHANNELS]);
        t.eval_to_scores_to_i8[i] = to_i8(sum_to_float * (1.0f / t.scores_weight_input_scale[0]));
    }
};

// scores = linear(flatten(sum), 10)                                                              integers.mt:12
//     scores[i, j] = (sum over k of eval_to_scores_to_i8[i, k] * scores.weight[j, k]) *
//         (scores.weight.scale[j] * scores.weight.input_scale) + scores.bias[j]
struct eval_scores {
    // 1 tile of 64 x 64 outputs, 16 x 32 a warp; int8 on tensor cores, panels copied ahead to shared memory
    // (cuda/tensor.cuh)
    using Shape = Product<BATCH, SCORES, SCORES_WEIGHT_COLUMNS>;
    using Cut = TensorTile<64, 64, 128, 4, 2, 4, Integer>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        auto left = matrix<SCORES_WEIGHT_COLUMNS>(t.eval_to_scores_to_i8);
        auto right = transposed(matrix<SCORES_WEIGHT_COLUMNS>(t.scores_weight));
        struct OfColumn {
            float scores_weight_scale;
            float scores_weight_input_scale;
            float scores_bias;
        };
        auto columns = [&](int j) {
            return OfColumn{t.scores_weight_scale[j], t.scores_weight_input_scale[0], t.scores_bias[j]};
        };
        auto out = [&](int i, int j, float sum, const OfColumn &column) {
            t.eval_scores[i * SCORES + j] = to_bf16(
                (float)sum * (column.scores_weight_scale * column.scores_weight_input_scale) + column.scores_bias);
        };
        matmul<Shape, Cut>(tile, left, right, shared, gate, of_columns(columns, out));
    }
};

// loss = cross_entropy(scores, label)                                                            integers.mt:16
struct eval_loss_part_to_prediction {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        float row_share = share(batch, i);
        int label = t.label[example];
        gate();
        if (i >= BATCH)
            return;

        // scores_max[i] = max over j of scores[i, j]
        float scores_max = -INFINITY;
        for (int j = team.first; j < SCORES; j += team.stride)
            scores_max = fmax(scores_max, to_float(t.eval_scores[i * SCORES + j]));
        scores_max = team_max(team, scores_max);

        // scores_sum[i] = sum over j of exp(scores[i, j] - scores_max[i])
        // target_score[i] = sum over j of (label[i] == j ? scores[i, j] - scores_max[i] : 0)
        float scores_sum = 0;
        float target_score = 0;
        for (int j = team.first; j < SCORES; j += team.stride) {
            float scores_sub = to_float(t.eval_scores[i * SCORES + j]) - scores_max;
            scores_sum += near_exp(scores_sub);
            target_score += label == j ? scores_sub : 0.0f;
        }
        scores_sum = team_sum(team, scores_sum);
        target_score = team_sum(team, target_score);

        // loss_part[i] = (log(scores_sum[i]) - target_score[i]) * share(i)
        if (leads(team))
            t.eval_loss_part[i] = (log(scores_sum) - target_score) * row_share;

        // prediction[i, j] = exp(scores[i, j] - scores_max[i]) * (1 / scores_sum[i])
        for (int j = team.first; j < SCORES; j += team.stride)
            t.eval_prediction[i * SCORES + j] =
                near_exp(to_float(t.eval_scores[i * SCORES + j]) - scores_max) * (1.0f / scores_sum);
    }
};

// loss = cross_entropy(scores, label)                                                            integers.mt:16
struct eval_report_loss {
    static constexpr int tiles = 1;
    static __device__ void run(const Tensors &t, const Batch &batch, int, char *shared, Gate &gate) {
        Warp team(shared);
        gate();
        if (team.row < WARPS - 1)
            return;

        // loss = sum over i of loss_part[i]
        float loss_part_sum = 0;
        for (int j = team.first; j < BATCH; j += team.stride)
            loss_part_sum += t.eval_loss_part[j];
        loss_part_sum = team_sum(team, loss_part_sum);
        if (leads(team))
            batch.reports[REPORT_LOSS] = loss_part_sum;
    }
};

using Eval = Step<Tensors, BATCH, REPORTS, Phase<eval_to_h>, Phase<eval_h>, Phase<eval_sum>, Phase<eval_to_scores>,
                  Phase<eval_scores>, Phase<eval_loss_part_to_prediction>, Phase<eval_report_loss>>;

static const char *evaluate(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    return launch_evaluation<Eval>(run, first, rows, slot);
}

// ---- watching: what weights are multiplied with, in floats --------------------------------------------------

// h = relu(conv2d(image, 64, 1, bias = false))                                                   integers.mt:10
//     watch_image.reshape[i, j] = image[i, j % IMAGE_CHANNELS, j / IMAGE_CHANNELS / IMAGE_COLUMNS, j /
//         IMAGE_CHANNELS % IMAGE_COLUMNS]
static __constant__ unsigned watch_show_watch_places[2][1] = {
    {12607}, // watch_show_watch
    {4415},  // watch_image_reshape
};
struct watch_show_watch {
    struct Own {
        const float *image;
        float *watch_image_reshape;
        __device__ Own(const Tensors &t, int row) {
            image = t.image;
            begin_at(watch_show_watch_places[row], watch_image_reshape);
        }
    };
    static constexpr int tiles = divide_up(BATCH * IMAGE_ROWS * IMAGE_COLUMNS * IMAGE_CHANNELS, Thread::rows);
    static __device__ void run(const Own &t, const Batch &batch, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= BATCH * IMAGE_ROWS * IMAGE_COLUMNS * IMAGE_CHANNELS)
            return;
        t.watch_image_reshape[i] = t.image[row(batch, i / (IMAGE_ROWS * IMAGE_COLUMNS * IMAGE_CHANNELS)) *
                                               IMAGE_CHANNELS * IMAGE_ROWS * IMAGE_COLUMNS +
                                           i % IMAGE_CHANNELS * IMAGE_ROWS * IMAGE_COLUMNS +
                                           i / IMAGE_CHANNELS % (IMAGE_ROWS * IMAGE_COLUMNS)];
    }
};

// h = relu(conv2d(image, 64, 1, bias = false))                                                   integers.mt:10
//     h.weight[i, 0, 0, l] = h.weight[i, 0, 0, l] * h.weight.scale[i]
struct watch_h_weight {
    static constexpr int tiles = divide_up(H_CHANNELS * IMAGE_CHANNELS, Thread::rows);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= H_CHANNELS * IMAGE_CHANNELS)
            return;
        t.watch_h_weight[i] = (float)t.h_weight[i] * t.h_weight_scale[i / IMAGE_CHANNELS];
    }
};

// sum = relu(conv2d(h, 64, 3, padding = 1, bias = false) + h)                                    integers.mt:11
//     sum.weight[i, j, k, l] = sum.weight[i, j, k, l] * sum.weight.scale[i]
struct watch_sum_weight {
    static constexpr int tiles = divide_up(H_CHANNELS * 3 * 3 * H_CHANNELS, Thread::rows);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= H_CHANNELS * 3 * 3 * H_CHANNELS)
            return;
        t.watch_sum_weight[i] = (float)t.sum_weight[i] * t.sum_weight_scale[i / (3 * 3 * H_CHANNELS)];
    }
};

// h = relu(conv2d(image, 64, 1, bias = false))                                                   integers.mt:10
//     h[i, j, k, l] = relu((sum over m of
//         watch_image_reshape_2[i * IMAGE_ROWS * IMAGE_COLUMNS + j * IMAGE_COLUMNS + k, m] *
//         h.weight[l, 0, 0, m]))
struct watch_h {
    // 128 tiles of 32 x 64 outputs, 4 x 4 a thread, 2 slices of k; panels in shared memory (cuda/staged.cuh)
    using Shape = Product<BATCH * IMAGE_ROWS * IMAGE_COLUMNS, H_CHANNELS, IMAGE_CHANNELS>;
    using Cut = Tile<32, 64, 32, 4, 4>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        auto left = matrix<IMAGE_CHANNELS>(t.watch_image_reshape_2);
        auto right = transposed(matrix<IMAGE_CHANNELS>(t.watch_h_weight));
        auto out = [&](int i, int j, float sum) { t.watch_h[i * H_CHANNELS + j] = relu(sum); };
        matmul<Shape, Cut>(tile, left, right, shared, gate, out);
    }
};

// sum = relu(conv2d(h, 64, 3, padding = 1, bias = false) + h)                                    integers.mt:11
//     watch_h.reshape[i, j] = h[i, j / (IMAGE_COLUMNS * H_CHANNELS), j / H_CHANNELS % IMAGE_COLUMNS, j %
//         H_CHANNELS]
struct watch_show_watch_2 {
    static constexpr int tiles = divide_up(BATCH * IMAGE_ROWS * IMAGE_COLUMNS * H_CHANNELS, Thread::rows);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= BATCH * IMAGE_ROWS * IMAGE_COLUMNS * H_CHANNELS)
            return;
        t.watch_h_reshape[i] = t.watch_h[i];
    }
};

// sum = relu(conv2d(h, 64, 3, padding = 1, bias = false) + h)                                    integers.mt:11
//     sum[i, j, k, l] = relu((sum over m, n, o of h[i, j + m - 1, k + n - 1, o] * sum.weight[l, m, n, o]) +
//         h[i, j, k, l])
struct watch_sum {
    // 128 tiles of 128 x 16 outputs, 4 x 2 a thread; panels copied ahead to shared memory (cuda/pipelined.cuh);
    // windows are read straight from the image (cuda/window.cuh)
    using Shape = Product<BATCH * IMAGE_ROWS * IMAGE_COLUMNS, H_CHANNELS, 3 * 3 * H_CHANNELS>;
    using Cut = Tile<128, 16, 16, 4, 2>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        // outputs, taps, stride, dilation, pad, spread
        using Rows = Axis<IMAGE_ROWS, 3, 1, 1, 1, 1>;
        using Columns = Axis<IMAGE_COLUMNS, 3, 1, 1, 1, 1>;
        auto left = window<IMAGE_ROWS, IMAGE_COLUMNS, H_CHANNELS, Rows, Columns>(t.watch_h);
        auto right = transposed(matrix<3 * 3 * H_CHANNELS>(t.watch_sum_weight));
        // read behind the gate, not early: the phase before writes h
        struct Ahead {
            float h;
        };
        auto read = [&](int i, int j) { return Ahead{t.watch_h[i * H_CHANNELS + j]}; };
        auto out = [&](int i, int j, float sum, const Ahead &ahead) {
            t.watch_sum[i * H_CHANNELS + j] = relu(sum + ahead.h);
        };
        matmul<Shape, Cut>(tile, left, right, shared, gate, preloaded(read, out));
    }
};

// scores = linear(flatten(sum), 10)                                                              integers.mt:12
//     sum[i, j, k, l] = sum[i, k, l, j]
//     watch_sum.reshape[i, j] = sum[i, j / (IMAGE_ROWS * IMAGE_COLUMNS), j / IMAGE_COLUMNS % IMAGE_ROWS, j %
//         IMAGE_COLUMNS]
struct watch_show_watch_3 {
    static constexpr int tiles = divide_up(BATCH * H_CHANNELS * IMAGE_ROWS * IMAGE_COLUMNS, Thread::rows);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= BATCH * H_CHANNELS * IMAGE_ROWS * IMAGE_COLUMNS)
            return;
        t.watch_sum_reshape[i] =
            t.watch_sum[i / (H_CHANNELS * IMAGE_ROWS * IMAGE_COLUMNS) * IMAGE_ROWS * IMAGE_COLUMNS * H_CHANNELS +
                        i % (IMAGE_ROWS * IMAGE_COLUMNS) * H_CHANNELS + i / (IMAGE_ROWS * IMAGE_COLUMNS) % H_CHANNELS];
    }
};

using watch_1 = Phase<At<watch_show_watch, 0, 0, 2>, watch_h_weight, watch_sum_weight>;

using Watch = Step<Tensors, BATCH, REPORTS, watch_1, Phase<watch_h>, Phase<watch_show_watch_2>, Beside<watch_sum>,
                   Phase<watch_show_watch_3>>;

static const char *watch(const MtcRun *run) {
    return launch_until<Watch>(run, Watch::launches);
}

} // namespace

// ---- tables for the runtime ---------------------------------------------------------------------------------

// file, NULL: this model's own; line; text
static const MtcStatement statement_table[] = {
    {NULL, 10, "h = relu(conv2d(image, 64, 1, bias = false))"},
    {NULL, 11, "sum = relu(conv2d(h, 64, 3, padding = 1, bias = false) + h)"},
    {NULL, 12, "scores = linear(flatten(sum), 10)"},
    {NULL, 16, "loss = cross_entropy(scores, label)"},
};
// what is not said is zero; phases count from 0 on
// a value of the training step: its name, type, place, statement, the phase that writes it, rank, extents
#define VALUE(name_, type_, offset_, statement_, phase_, rank_, ...)                                                   \
    {                                                                                                                  \
        .name = name_, .role = MTC_VALUE, .type = type_, .rank = rank_, .dim = __VA_ARGS__, .offset = offset_,         \
        .statement = statement_, .phase = phase_                                                                       \
    }
// clang-format off
static const MtcTensor tensor_table[] = {
    {.name = "scores.bias", .rank = 1, .dim = {10}, .offset = 0, .init = MTC_UNIFORM, .a = -0.015624999999999998,
     .b = 0.015624999999999998, .statement = 2},
    {.name = "h.weight", .type = MTC_I8, .rank = 4, .dim = {64, 1, 1, 32}, .offset = 256, .statement = 0,
     .file_axis = {0, 3, 1, 2}},
    {.name = "h.weight.scale", .role = MTC_BUFFER, .rank = 1, .dim = {64}, .offset = 2304, .init = MTC_CONSTANT,
     .a = 1, .statement = 0},
    {.name = "h.weight.input_scale", .role = MTC_BUFFER, .rank = 0, .offset = 2560, .init = MTC_CONSTANT, .a = 1,
     .statement = 0},
    {.name = "sum.weight", .type = MTC_I8, .rank = 4, .dim = {64, 3, 3, 64}, .offset = 2816, .statement = 1,
     .file_axis = {0, 3, 1, 2}},
    {.name = "sum.weight.scale", .role = MTC_BUFFER, .rank = 1, .dim = {64}, .offset = 39680, .init = MTC_CONSTANT,
     .a = 1, .statement = 1},
    {.name = "sum.weight.input_scale", .role = MTC_BUFFER, .rank = 0, .offset = 39936, .init = MTC_CONSTANT, .a = 1,
     .statement = 1},
    {.name = "scores.weight", .type = MTC_I8, .rank = 2, .dim = {10, 4096}, .offset = 40192, .statement = 2},
    {.name = "scores.weight.scale", .role = MTC_BUFFER, .rank = 1, .dim = {10}, .offset = 81152, .init = MTC_CONSTANT,
     .a = 1, .statement = 2},
    {.name = "scores.weight.input_scale", .role = MTC_BUFFER, .rank = 0, .offset = 81408, .init = MTC_CONSTANT, .a = 1,
     .statement = 2},
};
// clang-format on
#undef VALUE
static const MtcField field_table[] = {
    {.name = "image", .type = MTC_F32, .rank = 3, .dim = {32, 8, 8}, .elements = 2048, .classes = 0, .predicts = true},
    {.name = "label", .type = MTC_U8, .rank = 0, .dim = {0}, .elements = 1, .classes = 10, .predicts = false},
};
static const char *const paths[] = {"train.npz"};
static const MtcOrigin origin_table[] = {
    {.format = "npz", .paths = 1, .path = paths},
};
static const MtcSplit split_table[] = {
    {.name = "train", .origin = 0, .from = 0, .to = 1},
};
static const char *const setting_table[] = {"--precision int8"};
static const char *const report_table[] = {"loss"};
static const bool rises_table[] = {false};
// name; statement; phase, from 0 on; what its arithmetic is in, how much of it; bytes, if every buffer is touched once
static const MtcKernel kernel_table[] = {
    {"report_loss", 3, 0, MTC_MATH_FP32, 1, 4},
};
static const MtcPrint print_table[] = {
    {.at = "integers.mt:10",
     .text = "h.weight",
     .type = "f32[2048]",
     .offset = 3227392,
     .elements = 2048,
     .batched = true},
    {.at = "integers.mt:11",
     .text = "sum.weight",
     .type = "f32[4096]",
     .offset = 1130240,
     .elements = 4096,
     .batched = true},
    {.at = "integers.mt:12",
     .text = "scores.weight",
     .type = "f32[4096]",
     .offset = 81664,
     .elements = 4096,
     .batched = true},
};
static const MtcQuantized quantized_table[] = {
    {.weight = 1, .scale = 2, .input_scale = 3, .first_input = 0, .inputs = 1},
    {.weight = 4, .scale = 5, .input_scale = 6, .first_input = 1, .inputs = 1},
    {.weight = 7, .scale = 8, .input_scale = 9, .first_input = 2, .inputs = 1},
};

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "integers",
    .source = "integers.mt",
    .target = "cuda",
    .architectures = "",
    .schedule = "persistent",
    .model_hash = "0e63af885dab6b6609b33e40a4d5842ef480eb2e6abcdffbaa79f427060963ab",
    .training = "loss = cross_entropy(scores, label)\n"
                "optimizer = sgd(0.1)\n"
                "batch = 64",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 79882,
    .flops_per_step = 1,
    .arena_bytes = 3899136,
    .unshared_bytes = 7188224,
    .train_phases = 1,
    .eval_phases = 7,
    .tensors = 10,
    .fields = 2,
    .origins = 1,
    .splits = 1,
    .knobs = 0,
    .fixed = 0,
    .settings = 1,
    .reports = REPORTS,
    .kernels = 1,
    .tensor = tensor_table,
    .field = field_table,
    .origin = origin_table,
    .split = split_table,
    .knob = NULL,
    .fixed_param = NULL,
    .setting = setting_table,
    .report = report_table,
    .report_rises = rises_table,
    .monitor = 0,
    .patience = 0,
    .kernel = kernel_table,
    .prediction_offset = 81664,
    .prediction_rank = 1,
    .prediction_dim = {10},
    .prediction_is_classes = true,
    .statements = 4,
    .statement = statement_table,
    .train = train,
    .train_until = train_until,
    .eval = evaluate,
    .shuffle = shuffle,
    .draw = launch_draw,
    .run_kernel = run_kernel,
    .prepare = prepare,
    .release = release,
    .prints = 3,
    .print = print_table,
    .watch = watch,
    .quantized = 3,
    .quantized_weight = quantized_table,
};

// ---- main ---------------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    return mtc_main(&mtc_model, argc, argv);
}
