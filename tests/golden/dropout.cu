// dropout: a model of 21 parameters, compiled by mtc from dropout.mt
//
//   step      440 FLOP in 2 phases
//   memory    1.2 KB arena (1.8 KB without sharing): weights 512 B, optimizer state 0 B, values 768 B
//   schedule  persistent: 1.3 us a step estimated (graph: 5.6 us)
//
//   phase 1   y_to_d_y     1 tile
//             to_y         1 tile
//   phase 2   d_y_weight   1 tile
//             report_loss  1 tile
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

enum { BATCH = 4, X = 6, Y = 3 };
enum { REPORT_LOSS, REPORTS };

namespace { // of this file alone: a kernel may be called like a function of others, or of another program

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

struct Tensors {
    static constexpr int64_t arena_bytes = 1280;

    const MtcRun &run;
    char *arena;

    const float *x = (const float *)run.data.field[0];                     // data set: [examples, X]
    const unsigned char *label = (const unsigned char *)run.data.field[1]; // data set: [examples]
    float *y_weight = (float *)(arena + 0);                                // [Y, X]
    float *y_bias = (float *)(arena + 256);                                // [Y]
    float *eval_loss_part = (float *)(arena + 512);                        // [BATCH]
    float *loss_part = (float *)(arena + 512);                             // [BATCH]
    float *d_y = (float *)(arena + 768);                                   // [BATCH, Y]
    float *eval_prediction = (float *)(arena + 768);                       // [BATCH, Y]
    float *to_y_where = (float *)(arena + 1024);                           // [BATCH, X]
};

// ---- training step ------------------------------------------------------------------------------------------

// y = linear(dropout(relu(x), 0.25), 3)                                                            dropout.mt:9
// loss = cross_entropy(y, label)                                                                  dropout.mt:13
struct y_to_d_y {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = X + Y; // that a row keeps from stage to stage
    static constexpr int shared_bytes = team_shared<Warp>(row_floats);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        float row_share = share(batch, i);
        gate();
        if (i >= BATCH)
            return;
        float *where = row_memory(team, shared, row_floats);
        float *y = where + X;
        for (int j = team.first; j < X; j += team.stride)
            where[j] = uniform(batch, 0, i * X + j) >= 0.25f ? relu(t.x[example * X + j]) * 1.33333333f : 0.0f;
        team.sync();

        // y[i, j] = (sum over k of to_y_where[i, k] * y.weight[j, k]) + y.bias[j]
        auto term = [&](int j, int k) { return where[k] * t.y_weight[j * X + k]; };
        auto store = [&](int j, float sum) { y[j] = sum + t.y_bias[j]; };
        team_product<Y, X>(team, term, store);
        team.sync();

        // y_max[i] = max over j of y[i, j]
        float y_max = -INFINITY;
        for (int j = team.first; j < Y; j += team.stride)
            y_max = fmax(y_max, y[j]);
        y_max = team_max(team, y_max);

        // y_sum[i] = sum over j of exp(y[i, j] - y_max[i])
        // target_score[i] = sum over j of (label[i] == j ? y[i, j] - y_max[i] : 0)
        float y_sum = 0;
        float target_score = 0;
        int label = t.label[example];
        for (int j = team.first; j < Y; j += team.stride) {
            float y_sub = y[j] - y_max;
            y_sum += exp(y_sub);
            target_score += label == j ? y_sub : 0.0f;
        }
        y_sum = team_sum(team, y_sum);
        target_score = team_sum(team, target_score);

        // loss_part[i] = (log(y_sum[i]) - target_score[i]) * share(i)
        if (leads(team))
            t.loss_part[i] = (log(y_sum) - target_score) * row_share;

        // d_y[i, j] = share(i) / y_sum[i] * exp(y[i, j] - y_max[i]) - (label[i] == j ? share(i) : 0)
        for (int j = team.first; j < Y; j += team.stride)
            t.d_y[i * Y + j] = row_share / y_sum * exp(y[j] - y_max) - (label == j ? row_share : 0.0f);
    }
};

// y = linear(dropout(relu(x), 0.25), 3)                                                            dropout.mt:9
//     to_y_where[i, j] = uniform(0, i * X + j) >= 0.25 ? relu(x[i, j]) * 1.33333333 : 0
struct to_y {
    static constexpr int tiles = divide_up(BATCH * X, Thread::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= BATCH * X)
            return;
        float x_relu = relu(t.x[row(batch, i / X) * X + i % X]);
        t.to_y_where[i] = uniform(batch, 0, i) >= 0.25f ? x_relu * 1.33333333f : 0.0f;
    }
};

// gradient of y = linear(dropout(relu(x), 0.25), 3)                                                dropout.mt:9
// optimizer = sgd(0.1)                                                                            dropout.mt:14
//     d_y.weight[i, j] = sum over k of d_y[k, i] * to_y_where[k, j]
//     y.weight[i, j] = y.weight[i, j] - 0.1 * d_y.weight[i, j]
//     d_y.bias[i] = sum over j of d_y[j, i]
//     y.bias[i] = y.bias[i] - 0.1 * d_y.bias[i]
struct d_y_weight {
    // 1 tile of 16 x 16 outputs, 1 x 1 a thread; straight from memory (cuda/thin.cuh)
    using Shape = Product<Y, X, BATCH>;
    using Cut = Tile<16, 16, 1, 1, 1>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        auto left = transposed(matrix<Y>(t.d_y));
        auto right = matrix<X>(t.to_y_where);
        struct Ahead {
            float y_weight;
        };
        auto read = [&](int i, int j) { return Ahead{t.y_weight[i * X + j]}; };
        auto out = [&](int i, int j, float sum, const Ahead &ahead) {
            t.y_weight[i * X + j] = ahead.y_weight - 0.1f * sum;
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

// loss = cross_entropy(y, label)                                                                  dropout.mt:13
struct report_loss {
    static constexpr int tiles = 1;
    static __device__ void run(const Tensors &t, const Batch &batch, int, char *shared, Gate &gate) {
        Warp team(shared);
        gate();
        if (team.row < WARPS - 1)
            return;

        // loss = sum over i of loss_part[i]
        float loss_part_sum = 0;
        for (int j = team.first; j < BATCH; j += team.stride)
            loss_part_sum += t.loss_part[j];
        loss_part_sum = team_sum(team, loss_part_sum);
        if (leads(team))
            batch.reports[REPORT_LOSS] = loss_part_sum;
    }
};

// ---- phases: one after the other; the kernels of a phase run at the same time -------------------------------

using train_1 = Phase<y_to_d_y, to_y>;
using train_2 = Phase<d_y_weight, report_loss>;

using Train = Step<Tensors, BATCH, REPORTS, train_1, train_2>;

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

// y = linear(dropout(relu(x), 0.25), 3)                                                            dropout.mt:9
// loss = cross_entropy(y, label)                                                                  dropout.mt:13
struct eval_y_to_prediction {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = X + Y; // that a row keeps from stage to stage
    static constexpr int shared_bytes = team_shared<Warp>(row_floats);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        float row_share = share(batch, i);
        gate();
        if (i >= BATCH)
            return;
        float *x_relu = row_memory(team, shared, row_floats);
        float *y = x_relu + X;
        for (int j = team.first; j < X; j += team.stride)
            x_relu[j] = relu(t.x[example * X + j]);
        team.sync();

        // y[i, j] = (sum over k of relu(x[i, k]) * y.weight[j, k]) + y.bias[j]
        auto term = [&](int j, int k) { return x_relu[k] * t.y_weight[j * X + k]; };
        auto store = [&](int j, float sum) { y[j] = sum + t.y_bias[j]; };
        team_product<Y, X>(team, term, store);
        team.sync();

        // y_max[i] = max over j of y[i, j]
        float y_max = -INFINITY;
        for (int j = team.first; j < Y; j += team.stride)
            y_max = fmax(y_max, y[j]);
        y_max = team_max(team, y_max);

        // y_sum[i] = sum over j of exp(y[i, j] - y_max[i])
        // target_score[i] = sum over j of (label[i] == j ? y[i, j] - y_max[i] : 0)
        float y_sum = 0;
        float target_score = 0;
        int label = t.label[example];
        for (int j = team.first; j < Y; j += team.stride) {
            float y_sub = y[j] - y_max;
            y_sum += exp(y_sub);
            target_score += label == j ? y_sub : 0.0f;
        }
        y_sum = team_sum(team, y_sum);
        target_score = team_sum(team, target_score);

        // loss_part[i] = (log(y_sum[i]) - target_score[i]) * share(i)
        if (leads(team))
            t.eval_loss_part[i] = (log(y_sum) - target_score) * row_share;

        // prediction[i, j] = exp(y[i, j] - y_max[i]) * (1 / y_sum[i])
        for (int j = team.first; j < Y; j += team.stride)
            t.eval_prediction[i * Y + j] = exp(y[j] - y_max) * (1.0f / y_sum);
    }
};

// loss = cross_entropy(y, label)                                                                  dropout.mt:13
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

using Eval = Step<Tensors, BATCH, REPORTS, Phase<eval_y_to_prediction>, Phase<eval_report_loss>>;

static const char *evaluate(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    return launch_evaluation<Eval>(run, first, rows, slot);
}

} // namespace

// ---- tables for the runtime ---------------------------------------------------------------------------------

// file, NULL: this model's own; line; text
static const MtcStatement statement_table[] = {
    {NULL, 9, "y = linear(dropout(relu(x), 0.25), 3)"}, // 0: y.weight
    {NULL, 13, "loss = cross_entropy(y, label)"},       // 1: eval_loss_part
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
    {.name = "y.weight", .rank = 2, .dim = {3, 6}, .offset = 0, .init = MTC_UNIFORM, .a = -0.40824829046386296,
     .b = 0.40824829046386296, .statement = 0},
    {.name = "y.bias", .rank = 1, .dim = {3}, .offset = 256, .init = MTC_UNIFORM, .a = -0.40824829046386296,
     .b = 0.40824829046386296, .statement = 0},
    VALUE("to_y_where", MTC_F32, 1024, 0, 0, 2, {4, 6}),
    VALUE("loss_part", MTC_F32, 512, 1, 0, 1, {4}),
    VALUE("d_y", MTC_F32, 768, 1, 0, 2, {4, 3}),
};
// clang-format on
#undef VALUE
static const MtcField field_table[] = {
    {.name = "x",
     .type = MTC_F32,
     .rank = 1,
     .dim = {6},
     .elements = 6,
     .classes = 0,
     .predicts = true,
     .scaled = true},
    {.name = "label", .type = MTC_U8, .rank = 0, .dim = {0}, .elements = 1, .classes = 3, .predicts = false},
};
static const char *const paths[] = {"x", "label"};
static const MtcOrigin origin_table[] = {
    {.format = "idx", .paths = 2, .path = paths},
};
static const MtcSplit split_table[] = {
    {.name = "train", .origin = 0, .from = 0, .to = 1},
};
static const char *const report_table[] = {"loss"};
static const bool rises_table[] = {false};
// name; statement; phase, from 0 on; what its arithmetic is in, how much of it; bytes, if every buffer is touched once
// clang-format off
static const MtcKernel kernel_table[] = {
    {"y_to_d_y", 0, 0, MTC_MATH_FP32, 268, 260},
    {"to_y", 0, 0, MTC_MATH_FP32, 24, 192},
    {"d_y_weight", 0, 1, MTC_MATH_FP32, 144, 312},
    {"report_loss", 1, 1, MTC_MATH_FP32, 4, 20},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "dropout",
    .source = "dropout.mt",
    .target = "cuda",
    .architectures = "",
    .schedule = "persistent",
    .model_hash = "1d9572626df000799c0ea26ec6a653df8c84de53e2997d4ee503d09406a63a86",
    .training = "loss = cross_entropy(y, label)\n"
                "optimizer = sgd(0.1)\n"
                "batch = 4",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 21,
    .flops_per_step = 440,
    .arena_bytes = 1280,
    .unshared_bytes = 1792,
    .train_phases = 2,
    .eval_phases = 2,
    .tensors = 5,
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
    .prediction_offset = 768,
    .prediction_rank = 1,
    .prediction_dim = {3},
    .prediction_is_classes = true,
    .statements = 2,
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
