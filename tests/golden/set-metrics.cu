// set-metrics: a model of 5 parameters, compiled by mtc from set-metrics.mt
//
//   step      208 FLOP in 2 phases
//   memory    1.2 KB arena (1.8 KB without sharing): weights 512 B, optimizer state 0 B, values 768 B
//   schedule  persistent: 0.8 us a step estimated (graph: 5.1 us)
//
//   phase 1   y_to_d_y     1 tile
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

enum { BATCH = 8, X = 4 };
enum { REPORT_LOSS, REPORT_MAE, REPORTS };

namespace { // of this file alone: a kernel may be called like a function of others, or of another program

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

struct Tensors {
    static constexpr int64_t arena_bytes = 1280;

    const MtcRun &run;
    char *arena;

    const float *x = (const float *)run.data.field[0];     // data set: [examples, X]
    const float *price = (const float *)run.data.field[1]; // data set: [examples, 1]
    float *y_weight = (float *)(arena + 0);                // [1, X]
    float *y_bias = (float *)(arena + 256);                // [1]
    float *eval_keep_eval_cast = (float *)(arena + 512);   // [BATCH, 1]
    float *loss_part = (float *)(arena + 512);             // [BATCH]
    float *eval_y = (float *)(arena + 768);                // [BATCH, 1]
    float *mae_part = (float *)(arena + 768);              // [BATCH]
    float *d_y = (float *)(arena + 1024);                  // [BATCH, 1]
};

// ---- training step ------------------------------------------------------------------------------------------

// y = linear(x, 1)                                                                             set-metrics.mt:8
// loss = mse(y, price)                                                                        set-metrics.mt:11
// metric = [rmse(y, price), mae(y, price), r2(y, price)]                                      set-metrics.mt:12
struct y_to_d_y {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = 1; // that a row keeps from stage to stage
    static constexpr int shared_bytes = team_shared<Warp>(row_floats);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        float row_share = share(batch, i);
        float price = t.price[example];
        gate();
        if (i >= BATCH)
            return;
        float *y_sub = row_memory(team, shared, row_floats);

        // y[i, 0] = (sum over k of x[i, k] * y.weight[0, k]) + y.bias[0]
        // d_y[i, 0] = share(i) * (y[i, 0] - price[i, 0]) + share(i) * (y[i, 0] - price[i, 0])
        float y_bias = t.y_bias[0];
        auto term = [&](int j, int k) { return t.x[example * X + k] * t.y_weight[k]; };
        auto store = [&](int j, float sum) {
            float y_sub_2 = sum + y_bias - price;
            float share_mul = row_share * y_sub_2;
            y_sub[j] = y_sub_2;
            t.d_y[i] = share_mul + share_mul;
        };
        team_product<1, X>(team, term, store);
        team.sync();

        // loss_part[i] = (y[i, 0] - price[i, 0]) * (y[i, 0] - price[i, 0]) * share(i)
        // mae_part[i] = fabs(y[i, 0] - price[i, 0]) * share(i)
        if (leads(team)) {
            t.loss_part[i] = y_sub[0] * y_sub[0] * row_share;
            t.mae_part[i] = fabs(y_sub[0]) * row_share;
        }
    }
};

// gradient of y = linear(x, 1)                                                                 set-metrics.mt:8
// optimizer = sgd(0.1)                                                                        set-metrics.mt:13
//     d_y.weight[0, j] = sum over k of d_y[k, 0] * x[k, j]
//     y.weight[0, j] = y.weight[0, j] - 0.1 * d_y.weight[0, j]
//     d_y.bias[0] = sum over j of d_y[j, 0]
//     y.bias[0] = y.bias[0] - 0.1 * d_y.bias[0]
struct d_y_weight {
    // 1 tile of 16 x 16 outputs, 1 x 1 a thread; straight from memory (cuda/thin.cuh)
    using Shape = Product<1, X, BATCH>;
    using Cut = Tile<16, 16, 1, 1, 1>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        auto from_stored = [](float v) { return v; };
        auto left = transposed(matrix<1>(t.d_y));
        auto right = gathered<X>(t.x, batch, from_stored);
        struct Ahead {
            float y_weight;
        };
        auto read = [&](int i, int j) { return Ahead{t.y_weight[j]}; };
        auto out = [&](int i, int j, float sum, const Ahead &ahead) { t.y_weight[j] = ahead.y_weight - 0.1f * sum; };
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

// loss = mse(y, price)                                                                        set-metrics.mt:11
// metric = [rmse(y, price), mae(y, price), r2(y, price)]                                      set-metrics.mt:12
struct report_loss {
    static constexpr int tiles = 1;
    static __device__ void run(const Tensors &t, const Batch &batch, int, char *shared, Gate &gate) {
        Warp team(shared);
        gate();
        if (team.row < WARPS - 1)
            return;

        // loss = sum over i of loss_part[i]
        // mae = sum over i of mae_part[i]
        float loss_part_sum = 0;
        float mae_part_sum = 0;
        for (int j = team.first; j < BATCH; j += team.stride) {
            loss_part_sum += t.loss_part[j];
            mae_part_sum += t.mae_part[j];
        }
        loss_part_sum = team_sum(team, loss_part_sum);
        mae_part_sum = team_sum(team, mae_part_sum);
        if (leads(team)) {
            batch.reports[REPORT_LOSS] = loss_part_sum;
            batch.reports[REPORT_MAE] = mae_part_sum;
        }
    }
};

// ---- phases: one after the other; the kernels of a phase run at the same time -------------------------------

using train_2 = Phase<d_y_weight, report_loss>;

using Train = Step<Tensors, BATCH, REPORTS, Phase<y_to_d_y>, train_2>;

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

// metric = [rmse(y, price), mae(y, price), r2(y, price)]                                      set-metrics.mt:12
//     eval_keep_eval_cast[i, 0] = price[i, 0]
struct eval_keep_eval {
    static constexpr int tiles = divide_up(BATCH, Thread::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        int64_t example = row(batch, i);
        gate();
        if (i >= BATCH)
            return;
        t.eval_keep_eval_cast[i] = (float)t.price[example];
    }
};

// y = linear(x, 1)                                                                             set-metrics.mt:8
//     y[i, 0] = (sum over k of x[i, k] * y.weight[0, k]) + y.bias[0]
struct eval_keep_y {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        gate();
        if (i >= BATCH)
            return;
        float y_bias = t.y_bias[0];
        auto term = [&](int j, int k) { return t.x[example * X + k] * t.y_weight[k]; };
        auto store = [&](int j, float sum) { t.eval_y[i] = sum + y_bias; };
        team_product<1, X>(team, term, store);
    }
};

// loss = mse(y, price)                                                                        set-metrics.mt:11
// metric = [rmse(y, price), mae(y, price), r2(y, price)]                                      set-metrics.mt:12
struct eval_report_loss {
    static constexpr int tiles = 1;
    static __device__ void run(const Tensors &t, const Batch &batch, int, char *shared, Gate &gate) {
        Warp team(shared);
        gate();
        if (team.row < WARPS - 1)
            return;

        // loss_part[i] = (y[i, 0] - price[i, 0]) * (y[i, 0] - price[i, 0]) * share(i)
        // loss = sum over i of loss_part[i]
        // mae_part[i] = fabs(y[i, 0] - price[i, 0]) * share(i)
        // mae = sum over i of mae_part[i]
        float loss_part_sum = 0;
        float mae_part_sum = 0;
        for (int j = team.first; j < BATCH; j += team.stride) {
            float y_sub = t.eval_y[j] - t.price[row(batch, j)];
            loss_part_sum += y_sub * y_sub * share(batch, j);
            mae_part_sum += fabs(y_sub) * share(batch, j);
        }
        loss_part_sum = team_sum(team, loss_part_sum);
        mae_part_sum = team_sum(team, mae_part_sum);
        if (leads(team)) {
            batch.reports[REPORT_LOSS] = loss_part_sum;
            batch.reports[REPORT_MAE] = mae_part_sum;
        }
    }
};

using eval_1 = Phase<eval_keep_eval, eval_keep_y>;

using Eval = Step<Tensors, BATCH, REPORTS, eval_1, Phase<eval_report_loss>>;

static const char *evaluate(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    return launch_evaluation<Eval>(run, first, rows, slot);
}

} // namespace

// ---- tables for the runtime ---------------------------------------------------------------------------------

// file, NULL: this model's own; line; text
static const MtcStatement statement_table[] = {
    {NULL, 8, "y = linear(x, 1)"},
    {NULL, 11, "loss = mse(y, price)"},
    {NULL, 12, "metric = [rmse(y, price), mae(y, price), r2(y, price)]"},
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
    {.name = "y.weight", .rank = 2, .dim = {1, 4}, .offset = 0, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 0},
    {.name = "y.bias", .rank = 1, .dim = {1}, .offset = 256, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 0},
    VALUE("loss_part", MTC_F32, 512, 1, 0, 1, {8}),
    VALUE("mae_part", MTC_F32, 768, 2, 0, 1, {8}),
    VALUE("d_y", MTC_F32, 1024, 1, 0, 2, {8, 1}),
};
// clang-format on
#undef VALUE
static const MtcField field_table[] = {
    {.name = "x", .type = MTC_F32, .rank = 1, .dim = {4}, .elements = 4, .classes = 0, .predicts = true},
    {.name = "price", .type = MTC_F32, .rank = 1, .dim = {1}, .elements = 1, .classes = 0, .predicts = false},
};
static const char *const paths[] = {"x", "price"};
static const MtcOrigin origin_table[] = {
    {.format = "idx", .paths = 2, .path = paths},
};
static const MtcSplit split_table[] = {
    {.name = "train", .origin = 0, .from = 0, .to = 1},
};
static const char *const report_table[] = {"loss", "mae", "rmse", "r2"};
static const bool rises_table[] = {false, false, false, true};
// what metrics over a set need of each example: where a batch of them lies
static const MtcSetInput set_input_table[] = {
    {.offset = 768, .elements = 1},
    {.offset = 512, .elements = 1},
};
static const MtcSetMetric set_metric_table[] = {
    {.compute = mtc_metric_rmse, .inputs = 2, .input = {0, 1}},
    {.compute = mtc_metric_r2, .inputs = 2, .input = {0, 1}},
};
// name; statement; phase, from 0 on; what its arithmetic is in, how much of it; bytes, if every buffer is touched once
// clang-format off
static const MtcKernel kernel_table[] = {
    {"y_to_d_y", 0, 0, MTC_MATH_FP32, 128, 276},
    {"d_y_weight", 0, 1, MTC_MATH_FP32, 64, 200},
    {"report_loss", 1, 1, MTC_MATH_FP32, 16, 72},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "set-metrics",
    .source = "set-metrics.mt",
    .target = "cuda",
    .architectures = "",
    .schedule = "persistent",
    .model_hash = "f9ae9a2da4fff11d47a3057aaef4ac7e71f4ac3dbc30f2ea8f09730f46665759",
    .training = "loss = mse(y, price)\n"
                "metric = [rmse(y, price), mae(y, price), r2(y, price)]\n"
                "optimizer = sgd(0.1)\n"
                "batch = 8",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 5,
    .flops_per_step = 208,
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
    .kernels = 3,
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
    .prediction_dim = {1},
    .prediction_is_classes = false,
    .set_inputs = 2,
    .set_metrics = 2,
    .set_input = set_input_table,
    .set_metric = set_metric_table,
    .statements = 3,
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
