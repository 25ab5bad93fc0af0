// perceptron: a model of 43 parameters, compiled by mtc from perceptron.mt
//
//   step      916 FLOP in 2 phases
//   memory    2.2 KB arena (3.0 KB without sharing): weights 1.0 KB, optimizer state 0 B, values 1.2 KB
//   schedule  persistent: 1.3 us a step estimated (graph: 5.8 us)
//
//   phase 1   h_to_d_h_pre  1 tile
//   phase 2   d_y_weight    1 tile
//             d_h_weight    1 tile
//             report_loss   1 tile
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

enum { BATCH = 4, X = 6, H = 4, Y = 3 };
enum { REPORT_LOSS, REPORT_ACCURACY, REPORTS };

namespace { // of this file alone: a kernel may be called like a function of others, or of another program

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

struct Tensors {
    static constexpr int64_t arena_bytes = 2304;

    const MtcRun &run;
    char *arena;

    const float *x = (const float *)run.data.field[0];                     // data set: [examples, X]
    const unsigned char *label = (const unsigned char *)run.data.field[1]; // data set: [examples]
    float *h_weight = (float *)(arena + 0);                                // [H, X]
    float *h_bias = (float *)(arena + 256);                                // [H]
    float *y_weight = (float *)(arena + 512);                              // [Y, H]
    float *y_bias = (float *)(arena + 768);                                // [Y]
    float *eval_loss_part = (float *)(arena + 1024);                       // [BATCH]
    float *loss_part = (float *)(arena + 1024);                            // [BATCH]
    float *accuracy_part = (float *)(arena + 1280);                        // [BATCH]
    float *eval_accuracy_part = (float *)(arena + 1280);                   // [BATCH]
    float *d_y = (float *)(arena + 1536);                                  // [BATCH, Y]
    float *eval_prediction = (float *)(arena + 1536);                      // [BATCH, Y]
    float *h = (float *)(arena + 1792);                                    // [BATCH, H]
    float *d_h_pre = (float *)(arena + 2048);                              // [BATCH, H]
};

// ---- training step ------------------------------------------------------------------------------------------

// h = relu(linear(x, 4))                                                                        perceptron.mt:9
// y = linear(h, 3)                                                                             perceptron.mt:10
// loss = cross_entropy(y, label)                                                               perceptron.mt:14
// metric = accuracy(y, label)                                                                  perceptron.mt:17
struct h_to_d_h_pre {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = H + Y + Y; // that a row keeps from stage to stage
    static constexpr int shared_bytes = team_shared<Warp>(row_floats);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        float row_share = share(batch, i);
        gate();
        if (i >= BATCH)
            return;
        float *h = row_memory(team, shared, row_floats);
        float *y = h + H;
        float *d_y = y + Y;

        // h[i, j] = relu((sum over k of x[i, k] * h.weight[j, k]) + h.bias[j])
        auto term = [&](int j, int k) { return t.x[example * X + k] * t.h_weight[j * X + k]; };
        auto store = [&](int j, float sum) { h[j] = t.h[i * H + j] = relu(sum + t.h_bias[j]); };
        team_product<H, X>(team, term, store);
        team.sync();

        // y[i, j] = (sum over k of h[i, k] * y.weight[j, k]) + y.bias[j]
        auto term_2 = [&](int j, int k) { return h[k] * t.y_weight[j * H + k]; };
        auto store_2 = [&](int j, float sum) { y[j] = sum + t.y_bias[j]; };
        team_product<Y, H>(team, term_2, store_2);
        team.sync();

        // y_max[i] = max over j of y[i, j]
        float y_max = -INFINITY;
        for (int j = team.first; j < Y; j += team.stride)
            y_max = fmax(y_max, y[j]);
        y_max = team_max(team, y_max);

        // y_sum[i] = sum over j of exp(y[i, j] - y_max[i])
        // target_score[i] = sum over j of (label[i] == j ? y[i, j] - y_max[i] : 0)
        // predicted[i] = min over j of (y[i, j] == y_max[i] ? j : 3)
        float y_sum = 0;
        float target_score = 0;
        float predicted = INFINITY;
        int label = t.label[example];
        for (int j = team.first; j < Y; j += team.stride) {
            float y_sub = y[j] - y_max;
            y_sum += exp(y_sub);
            target_score += label == j ? y_sub : 0.0f;
            predicted = fmin(predicted, y[j] == y_max ? (float)j : 3.0f);
        }
        y_sum = team_sum(team, y_sum);
        target_score = team_sum(team, target_score);
        predicted = team_min(team, predicted);

        // d_y[i, j] = share(i) / y_sum[i] * exp(y[i, j] - y_max[i]) - (label[i] == j ? share(i) : 0)
        for (int j = team.first; j < Y; j += team.stride)
            d_y[j] = t.d_y[i * Y + j] = row_share / y_sum * exp(y[j] - y_max) - (label == j ? row_share : 0.0f);
        team.sync();

        // loss_part[i] = (log(y_sum[i]) - target_score[i]) * share(i)
        // accuracy_part[i] = predicted[i] == label[i] ? share(i) : 0
        if (leads(team)) {
            t.loss_part[i] = (log(y_sum) - target_score) * row_share;
            t.accuracy_part[i] = (int)predicted == label ? row_share : 0.0f;
        }

        // d_h[i, j] = sum over k of d_y[i, k] * y.weight[k, j]
        // d_h_pre[i, j] = h[i, j] > 0 ? d_h[i, j] : 0
        auto term_3 = [&](int j, int k) { return d_y[k] * t.y_weight[k * H + j]; };
        auto store_3 = [&](int j, float sum) { t.d_h_pre[i * H + j] = h[j] > 0.0f ? sum : 0.0f; };
        team_product<H, Y>(team, term_3, store_3);
    }
};

// gradient of y = linear(h, 3)                                                                 perceptron.mt:10
// optimizer = sgd(0.1)                                                                         perceptron.mt:15
//     d_y.weight[i, j] = sum over k of d_y[k, i] * h[k, j]
//     y.weight[i, j] = y.weight[i, j] - 0.1 * d_y.weight[i, j]
//     d_y.bias[i] = sum over j of d_y[j, i]
//     y.bias[i] = y.bias[i] - 0.1 * d_y.bias[i]
struct d_y_weight {
    // 1 tile of 16 x 16 outputs, 1 x 1 a thread; straight from memory (cuda/thin.cuh)
    using Shape = Product<Y, H, BATCH>;
    using Cut = Tile<16, 16, 1, 1, 1>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        auto left = transposed(matrix<Y>(t.d_y));
        auto right = matrix<H>(t.h);
        struct Ahead {
            float y_weight;
        };
        auto read = [&](int i, int j) { return Ahead{t.y_weight[i * H + j]}; };
        auto out = [&](int i, int j, float sum, const Ahead &ahead) {
            t.y_weight[i * H + j] = ahead.y_weight - 0.1f * sum;
        };
        // the same for the sums over k of left(i, k)
        struct RowAhead {
            float y_bias;
        };
        auto read_row = [&](int i) { return RowAhead{t.y_bias[i]}; };
        auto row_out = [&](int i, float sum, const RowAhead &ahead) { t.y_bias[i] = ahead.y_bias - 0.1f * sum; };
        matmul<Shape, Cut>(tile, left, right, shared, gate, preloaded_early(read, out),
                           sum_of_a(preloaded_early(read_row, row_out)));
    }
};

// gradient of h = relu(linear(x, 4))                                                            perceptron.mt:9
// optimizer = sgd(0.1)                                                                         perceptron.mt:15
//     d_h.weight[i, j] = sum over k of d_h_pre[k, i] * x[k, j]
//     h.weight[i, j] = h.weight[i, j] - 0.1 * d_h.weight[i, j]
//     d_h.bias[i] = sum over j of d_h_pre[j, i]
//     h.bias[i] = h.bias[i] - 0.1 * d_h.bias[i]
struct d_h_weight {
    // 1 tile of 16 x 16 outputs, 1 x 1 a thread; straight from memory (cuda/thin.cuh)
    using Shape = Product<H, X, BATCH>;
    using Cut = Tile<16, 16, 1, 1, 1, 2>; // the last: its first warp
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        auto from_stored = [](float v) { return v; };
        auto left = transposed(matrix<H>(t.d_h_pre));
        auto right = gathered<X>(t.x, batch, from_stored);
        struct Ahead {
            float h_weight;
        };
        auto read = [&](int i, int j) { return Ahead{t.h_weight[i * X + j]}; };
        auto out = [&](int i, int j, float sum, const Ahead &ahead) {
            t.h_weight[i * X + j] = ahead.h_weight - 0.1f * sum;
        };
        // the same for the sums over k of left(i, k)
        struct RowAhead {
            float h_bias;
        };
        auto read_row = [&](int i) { return RowAhead{t.h_bias[i]}; };
        auto row_out = [&](int i, float sum, const RowAhead &ahead) { t.h_bias[i] = ahead.h_bias - 0.1f * sum; };
        matmul<Shape, Cut>(tile, left, right, shared, gate, preloaded_early(read, out),
                           sum_of_a(preloaded_early(read_row, row_out)));
    }
};

// loss = cross_entropy(y, label)                                                               perceptron.mt:14
// metric = accuracy(y, label)                                                                  perceptron.mt:17
struct report_loss {
    static constexpr int tiles = 1;
    static __device__ void run(const Tensors &t, const Batch &batch, int, char *shared, Gate &gate) {
        Warp team(shared);
        gate();
        if (team.row < WARPS - 1)
            return;

        // loss = sum over i of loss_part[i]
        // accuracy = sum over i of accuracy_part[i]
        float loss_part_sum = 0;
        float accuracy_part_sum = 0;
        for (int j = team.first; j < BATCH; j += team.stride) {
            loss_part_sum += t.loss_part[j];
            accuracy_part_sum += t.accuracy_part[j];
        }
        loss_part_sum = team_sum(team, loss_part_sum);
        accuracy_part_sum = team_sum(team, accuracy_part_sum);
        if (leads(team)) {
            batch.reports[REPORT_LOSS] = loss_part_sum;
            batch.reports[REPORT_ACCURACY] = accuracy_part_sum;
        }
    }
};

// ---- phases: one after the other; the kernels of a phase run at the same time -------------------------------

using train_2 = Phase<d_y_weight, d_h_weight, report_loss>;

using Train = Step<Tensors, BATCH, REPORTS, Phase<h_to_d_h_pre>, train_2>;

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

// h = relu(linear(x, 4))                                                                        perceptron.mt:9
// y = linear(h, 3)                                                                             perceptron.mt:10
// loss = cross_entropy(y, label)                                                               perceptron.mt:14
// metric = accuracy(y, label)                                                                  perceptron.mt:17
struct eval_h_to_prediction {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = H + Y; // that a row keeps from stage to stage
    static constexpr int shared_bytes = team_shared<Warp>(row_floats);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        float row_share = share(batch, i);
        gate();
        if (i >= BATCH)
            return;
        float *h = row_memory(team, shared, row_floats);
        float *y = h + H;

        // h[i, j] = relu((sum over k of x[i, k] * h.weight[j, k]) + h.bias[j])
        auto term = [&](int j, int k) { return t.x[example * X + k] * t.h_weight[j * X + k]; };
        auto store = [&](int j, float sum) { h[j] = relu(sum + t.h_bias[j]); };
        team_product<H, X>(team, term, store);
        team.sync();

        // y[i, j] = (sum over k of h[i, k] * y.weight[j, k]) + y.bias[j]
        auto term_2 = [&](int j, int k) { return h[k] * t.y_weight[j * H + k]; };
        auto store_2 = [&](int j, float sum) { y[j] = sum + t.y_bias[j]; };
        team_product<Y, H>(team, term_2, store_2);
        team.sync();

        // y_max[i] = max over j of y[i, j]
        float y_max = -INFINITY;
        for (int j = team.first; j < Y; j += team.stride)
            y_max = fmax(y_max, y[j]);
        y_max = team_max(team, y_max);

        // y_sum[i] = sum over j of exp(y[i, j] - y_max[i])
        // target_score[i] = sum over j of (label[i] == j ? y[i, j] - y_max[i] : 0)
        // predicted[i] = min over j of (y[i, j] == y_max[i] ? j : 3)
        float y_sum = 0;
        float target_score = 0;
        float predicted = INFINITY;
        int label = t.label[example];
        for (int j = team.first; j < Y; j += team.stride) {
            float y_sub = y[j] - y_max;
            y_sum += exp(y_sub);
            target_score += label == j ? y_sub : 0.0f;
            predicted = fmin(predicted, y[j] == y_max ? (float)j : 3.0f);
        }
        y_sum = team_sum(team, y_sum);
        target_score = team_sum(team, target_score);
        predicted = team_min(team, predicted);

        // loss_part[i] = (log(y_sum[i]) - target_score[i]) * share(i)
        // accuracy_part[i] = predicted[i] == label[i] ? share(i) : 0
        if (leads(team)) {
            t.eval_loss_part[i] = (log(y_sum) - target_score) * row_share;
            t.eval_accuracy_part[i] = (int)predicted == label ? row_share : 0.0f;
        }

        // prediction[i, j] = exp(y[i, j] - y_max[i]) * (1 / y_sum[i])
        for (int j = team.first; j < Y; j += team.stride)
            t.eval_prediction[i * Y + j] = exp(y[j] - y_max) * (1.0f / y_sum);
    }
};

// loss = cross_entropy(y, label)                                                               perceptron.mt:14
// metric = accuracy(y, label)                                                                  perceptron.mt:17
struct eval_report_loss {
    static constexpr int tiles = 1;
    static __device__ void run(const Tensors &t, const Batch &batch, int, char *shared, Gate &gate) {
        Warp team(shared);
        gate();
        if (team.row < WARPS - 1)
            return;

        // loss = sum over i of loss_part[i]
        // accuracy = sum over i of accuracy_part[i]
        float loss_part_sum = 0;
        float accuracy_part_sum = 0;
        for (int j = team.first; j < BATCH; j += team.stride) {
            loss_part_sum += t.eval_loss_part[j];
            accuracy_part_sum += t.eval_accuracy_part[j];
        }
        loss_part_sum = team_sum(team, loss_part_sum);
        accuracy_part_sum = team_sum(team, accuracy_part_sum);
        if (leads(team)) {
            batch.reports[REPORT_LOSS] = loss_part_sum;
            batch.reports[REPORT_ACCURACY] = accuracy_part_sum;
        }
    }
};

using Eval = Step<Tensors, BATCH, REPORTS, Phase<eval_h_to_prediction>, Phase<eval_report_loss>>;

static const char *evaluate(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    return launch_evaluation<Eval>(run, first, rows, slot);
}

} // namespace

// ---- tables for the runtime ---------------------------------------------------------------------------------

// file, NULL: this model's own; line; text
static const MtcStatement statement_table[] = {
    {NULL, 9, "h = relu(linear(x, 4))"},          // 0: h.weight
    {NULL, 10, "y = linear(h, 3)"},               // 1: y.weight
    {NULL, 14, "loss = cross_entropy(y, label)"}, // 2: eval_loss_part
    {NULL, 17, "metric = accuracy(y, label)"},    // 3: accuracy_part
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
    {.name = "h.weight", .rank = 2, .dim = {4, 6}, .offset = 0, .init = MTC_UNIFORM, .a = -0.40824829046386296,
     .b = 0.40824829046386296, .statement = 0},
    {.name = "h.bias", .rank = 1, .dim = {4}, .offset = 256, .init = MTC_UNIFORM, .a = -0.40824829046386296,
     .b = 0.40824829046386296, .statement = 0},
    {.name = "y.weight", .rank = 2, .dim = {3, 4}, .offset = 512, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 1},
    {.name = "y.bias", .rank = 1, .dim = {3}, .offset = 768, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 1},
    VALUE("h", MTC_F32, 1792, 0, 0, 2, {4, 4}),
    VALUE("loss_part", MTC_F32, 1024, 2, 0, 1, {4}),
    VALUE("accuracy_part", MTC_F32, 1280, 3, 0, 1, {4}),
    VALUE("d_y", MTC_F32, 1536, 2, 0, 2, {4, 3}),
    VALUE("d_h_pre", MTC_F32, 2048, 0, 0, 2, {4, 4}),
};
// clang-format on
#undef VALUE
static const MtcField field_table[] = {
    {.name = "x", .type = MTC_F32, .rank = 1, .dim = {6}, .elements = 6, .classes = 0, .predicts = true},
    {.name = "label", .type = MTC_U8, .rank = 0, .dim = {0}, .elements = 1, .classes = 3, .predicts = false},
};
static const char *const paths[] = {"x", "label"};
static const MtcOrigin origin_table[] = {
    {.format = "idx", .paths = 2, .path = paths},
};
static const MtcSplit split_table[] = {
    {.name = "train", .origin = 0, .from = 0, .to = 1},
};
static const char *const report_table[] = {"loss", "accuracy"};
static const bool rises_table[] = {false, true};
// name; statement; phase, from 0 on; what its arithmetic is in, how much of it; bytes, if every buffer is touched once
// clang-format off
static const MtcKernel kernel_table[] = {
    {"h_to_d_h_pre", 0, 0, MTC_MATH_FP32, 620, 492},
    {"d_y_weight", 1, 1, MTC_MATH_FP32, 96, 232},
    {"d_h_weight", 0, 1, MTC_MATH_FP32, 192, 384},
    {"report_loss", 2, 1, MTC_MATH_FP32, 8, 40},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "perceptron",
    .source = "perceptron.mt",
    .target = "cuda",
    .architectures = "",
    .schedule = "persistent",
    .model_hash = "9f349bd398cb5065d9e68431f37850af33604a064b55ae838c29653b611d43a7",
    .training = "loss = cross_entropy(y, label)\n"
                "optimizer = sgd(0.1)\n"
                "batch = 4\n"
                "metric = accuracy(y, label)",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 43,
    .flops_per_step = 916,
    .arena_bytes = 2304,
    .unshared_bytes = 3072,
    .train_phases = 2,
    .eval_phases = 2,
    .tensors = 9,
    .fields = 2,
    .origins = 1,
    .splits = 1,
    .knobs = 0,
    .fixed = 0,
    .reports = REPORTS,
    .kernels = 4,
    .tensor = tensor_table,
    .field = field_table,
    .origin = origin_table,
    .split = split_table,
    .knob = NULL,
    .fixed_param = NULL,
    .report = report_table,
    .report_rises = rises_table,
    .monitor = 0,
    .patience = 0,
    .kernel = kernel_table,
    .prediction_offset = 1536,
    .prediction_rank = 1,
    .prediction_dim = {3},
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
};

// ---- main ---------------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    return mtc_main(&mtc_model, argc, argv);
}
