// normalize: a model of 7 parameters, compiled by mtc from normalize.mt
//
//   step      148 FLOP in 2 phases
//   memory    2.2 KB arena (2.8 KB without sharing): weights 1.5 KB, optimizer state 0 B, values 768 B
//   schedule  persistent: 1.1 us a step estimated (graph: 5.2 us)
//
//   phase 1   y_to_d_y     1 tile
//             to_y         1 tile
//   phase 2   d_y_weight   1 tile
//             report_loss  1 tile
//
// From top to bottom: sizes; tensors; one function per kernel, in the order of a training step; the phases that
// group them; the step; evaluation; measuring; tables for the runtime; main.
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

enum { BATCH = 4, X_ROWS = 2, X_COLUMNS = 3, X = 6 };
enum { REPORT_LOSS, REPORTS };

namespace { // of this file alone: a kernel may be called like a function of others, or of another program

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

struct Tensors {
    static constexpr int64_t arena_bytes = 2304;

    const MtcRun &run;
    char *arena;

    const unsigned char *x = (const unsigned char *)run.data.field[0]; // data set: [examples, X_ROWS, X_COLUMNS]
    const float *price = (const float *)run.data.field[1];             // data set: [examples]
    float *x_mean = (float *)(arena + 0);                              // [X_ROWS, X_COLUMNS]
    float *x_std = (float *)(arena + 256);                             // [X_ROWS, X_COLUMNS]
    float *y_weight = (float *)(arena + 512);                          // [1, X]
    float *y_bias = (float *)(arena + 768);                            // [1]
    float *price_mean = (float *)(arena + 1024);
    float *price_std = (float *)(arena + 1280);
    float *eval_loss_part = (float *)(arena + 1536);  // [BATCH]
    float *loss_part = (float *)(arena + 1536);       // [BATCH]
    float *d_y = (float *)(arena + 1792);             // [BATCH, 1]
    float *eval_prediction = (float *)(arena + 1792); // [BATCH, 1]
    float *to_y_mul = (float *)(arena + 2048);        // [BATCH, X_ROWS, X_COLUMNS]
};

// ---- training step ------------------------------------------------------------------------------------------

// y = linear(flatten(normalize(x)), 1)                                                           normalize.mt:9
// loss = mse(y, normalize(price))                                                               normalize.mt:13
struct y_to_d_y {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = X + 1; // that a row keeps from stage to stage
    static constexpr int shared_bytes = team_shared<Warp>(row_floats);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        float row_share = share(batch, i);
        gate();
        if (i >= BATCH)
            return;
        float *x_reshape = row_memory(team, shared, row_floats);
        float *y_sub = x_reshape + X;
        for (int j = team.first; j < X; j += team.stride) {
            float x_std = t.x_std[j];
            x_reshape[j] = ((float)t.x[example * X + j] - t.x_mean[j]) * (1.0f / (x_std > 0.0f ? x_std : 1.0f));
        }
        team.sync();

        // y[i, 0] = (sum over k of to_y_mul[i, k / X_COLUMNS, k % X_COLUMNS] * y.weight[0, k]) + y.bias[0]
        // d_y[i, 0] = share(i) * (y[i, 0] - (price[i] - price.mean) * (... / ...)) + share(i) *
        //         (y[i, 0] - (price[i] - price.mean) * (... / ...))
        float y_bias = t.y_bias[0];
        float price = t.price[example];
        float price_mean = t.price_mean[0];
        float price_std = t.price_std[0];
        auto term = [&](int j, int k) { return x_reshape[k] * t.y_weight[k]; };
        auto store = [&](int j, float sum) {
            float y_sub_2 = sum + y_bias - (price - price_mean) * (1.0f / (price_std > 0.0f ? price_std : 1.0f));
            float share_mul = row_share * y_sub_2;
            y_sub[j] = y_sub_2;
            t.d_y[i] = share_mul + share_mul;
        };
        team_product<1, X>(team, term, store);
        team.sync();

        // loss_part[i] = (y[i, 0] - (price[i] - ...) * ...) * (y[i, 0] - (price[i] - ...) * ...) * share(i)
        if (leads(team))
            t.loss_part[i] = y_sub[0] * y_sub[0] * row_share;
    }
};

// y = linear(flatten(normalize(x)), 1)                                                           normalize.mt:9
//     to_y_mul[i, j, k] = (x[i, j, k] - x.mean[j, k]) * (1 / (x.std[j, k] > 0 ? x.std[j, k] : 1))
struct to_y {
    static constexpr int tiles = divide_up(BATCH * X_ROWS * X_COLUMNS, Thread::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= BATCH * X_ROWS * X_COLUMNS)
            return;
        int place = i % (X_ROWS * X_COLUMNS);
        float x_cast = (float)t.x[row(batch, i / X) * X + i % X];
        float x_std = t.x_std[place];
        t.to_y_mul[i] = (x_cast - t.x_mean[place]) * (1.0f / (x_std > 0.0f ? x_std : 1.0f));
    }
};

// gradient of y = linear(flatten(normalize(x)), 1)                                               normalize.mt:9
// optimizer = sgd(0.1)                                                                          normalize.mt:15
//     d_y.weight[0, j] = sum over k of d_y[k, 0] * to_y_mul[k, j / X_COLUMNS, j % X_COLUMNS]
//     y.weight[0, j] = y.weight[0, j] - 0.1 * d_y.weight[0, j]
//     d_y.bias[0] = sum over j of d_y[j, 0]
//     y.bias[0] = y.bias[0] - 0.1 * d_y.bias[0]
struct d_y_weight {
    // 1 tile of 16 x 16 outputs, 1 x 1 a thread; straight from memory (cuda/thin.cuh)
    using Shape = Product<1, X, BATCH>;
    using Cut = Tile<16, 16, 1, 1, 1>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        auto left = transposed(matrix<1>(t.d_y));
        auto right = matrix<X>(t.to_y_mul);
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

// loss = mse(y, normalize(price))                                                               normalize.mt:13
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

// y = linear(flatten(normalize(x)), 1)                                                           normalize.mt:9
// loss = mse(y, normalize(price))                                                               normalize.mt:13
// predict = denormalize(y, price)                                                               normalize.mt:14
struct eval_y_to_prediction {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = X + 1; // that a row keeps from stage to stage
    static constexpr int shared_bytes = team_shared<Warp>(row_floats);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        float row_share = share(batch, i);
        gate();
        if (i >= BATCH)
            return;
        float *x_reshape = row_memory(team, shared, row_floats);
        float *y = x_reshape + X;
        for (int j = team.first; j < X; j += team.stride) {
            float x_std = t.x_std[j];
            x_reshape[j] = ((float)t.x[example * X + j] - t.x_mean[j]) * (1.0f / (x_std > 0.0f ? x_std : 1.0f));
        }
        team.sync();

        // y[i, 0] = (sum over k of (x[i, k / X_COLUMNS, k % X_COLUMNS] - x.mean[k / X_COLUMNS, k % X_COLUMNS]) *
        //         (... / (... ? x.std[k / X_COLUMNS, k % X_COLUMNS] : ...)) * y.weight[0, k]) + y.bias[0]
        // prediction[i, 0] = y[i, 0] * (price.std > 0 ? price.std : 1) + price.mean
        float y_bias = t.y_bias[0];
        float price_std = t.price_std[0];
        float price_mean = t.price_mean[0];
        auto term = [&](int j, int k) { return x_reshape[k] * t.y_weight[k]; };
        auto store = [&](int j, float sum) {
            float y_2 = sum + y_bias;
            y[j] = y_2;
            t.eval_prediction[i] = y_2 * (price_std > 0.0f ? price_std : 1.0f) + price_mean;
        };
        team_product<1, X>(team, term, store);
        team.sync();

        // loss_part[i] = (y[i, 0] - (price[i] - ...) * ...) * (y[i, 0] - (price[i] - ...) * ...) * share(i)
        if (leads(team)) {
            float price_mul = (t.price[example] - price_mean) * (1.0f / (price_std > 0.0f ? price_std : 1.0f));
            float y_sub = y[0] - price_mul;
            t.eval_loss_part[i] = y_sub * y_sub * row_share;
        }
    }
};

// loss = mse(y, normalize(price))                                                               normalize.mt:13
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

// ---- measuring: mean and deviation of the fields that are normalized ----------------------------------------

// y = linear(flatten(normalize(x)), 1)                                                           normalize.mt:9
struct measure_x {
    static constexpr int tiles = divide_up(X_ROWS * X_COLUMNS, Warp::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        bool some_before = examples_before(batch) > 0.0f;
        float part = examples(batch) / (examples_before(batch) + examples(batch));
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        gate();
        if (i >= X_ROWS * X_COLUMNS)
            return;

        // first[i, j] = sum over k of (k == 0 ? x[k, i, j] : 0)
        float first = 0;
        for (int j = team.first; j < BATCH; j += team.stride)
            first += j == 0 ? (float)t.x[row(batch, j) * X + i] : 0.0f;
        first = team_sum(team, first);

        // offset[i, j] = sum over k of (x[k, i, j] - first[i, j]) * share(k)
        float offset = 0;
        for (int j = team.first; j < BATCH; j += team.stride)
            offset += ((float)t.x[row(batch, j) * X + i] - first) * share(batch, j);
        offset = team_sum(team, offset);

        // x_batch_mean[i, j] = first[i, j] + offset[i, j]
        // batch_variance[i, j] = sum over k of (x[k, i, j] - x_batch_mean[i, j]) * (x[k, i, j] - x_batch_mean[i, j]) *
        //         share(k)
        float batch_variance = 0;
        float x_batch_mean = first + offset;
        for (int j = team.first; j < BATCH; j += team.stride) {
            float difference = (float)t.x[row(batch, j) * X + i] - x_batch_mean;
            batch_variance += difference * difference * share(batch, j);
        }
        batch_variance = team_sum(team, batch_variance);

        // x.mean[i, j] = (examples_before > 0 ? x.mean[i, j] : 0) + examples / (examples_before + examples) *
        //         (x_batch_mean[i, j] - (examples_before > 0 ? x.mean[i, j] : 0))
        if (leads(team)) {
            float mean_before = some_before ? t.x_mean[i] : 0.0f;
            float shift = x_batch_mean - mean_before;
            float std_before = some_before ? t.x_std[i] : 0.0f;
            float variance = std_before * std_before;
            float change = part * (batch_variance - variance + (1.0f - part) * (shift * shift));
            float both_std = std_before + root(variance + change);
            t.x_mean[i] = mean_before + part * shift;
            t.x_std[i] = std_before + change / (both_std > 0.0f ? both_std : 1.0f);
        }
    }
};

// loss = mse(y, normalize(price))                                                               normalize.mt:13
struct measure_price {
    static constexpr int tiles = 1;
    static __device__ void run(const Tensors &t, const Batch &batch, int, char *shared, Gate &gate) {
        bool some_before = examples_before(batch) > 0.0f;
        float part = examples(batch) / (examples_before(batch) + examples(batch));
        Warp team(shared);
        gate();
        if (team.row < WARPS - 1)
            return;

        // first = sum over i of (i == 0 ? price[i] : 0)
        float first = 0;
        for (int j = team.first; j < BATCH; j += team.stride)
            first += j == 0 ? t.price[row(batch, j)] : 0.0f;
        first = team_sum(team, first);

        // offset = sum over i of (price[i] - first) * share(i)
        float offset = 0;
        for (int j = team.first; j < BATCH; j += team.stride)
            offset += (t.price[row(batch, j)] - first) * share(batch, j);
        offset = team_sum(team, offset);

        // price_batch_mean = first + offset
        // batch_variance = sum over i of (price[i] - price_batch_mean) * (price[i] - price_batch_mean) * share(i)
        float batch_variance = 0;
        float price_batch_mean = first + offset;
        for (int j = team.first; j < BATCH; j += team.stride) {
            float difference = t.price[row(batch, j)] - price_batch_mean;
            batch_variance += difference * difference * share(batch, j);
        }
        batch_variance = team_sum(team, batch_variance);

        // price.mean = (examples_before > 0 ? price.mean : 0) + examples / (examples_before + examples) *
        //         (price_batch_mean - (examples_before > 0 ? price.mean : 0))
        if (leads(team)) {
            float mean_before = some_before ? t.price_mean[0] : 0.0f;
            float shift = price_batch_mean - mean_before;
            float std_before = some_before ? t.price_std[0] : 0.0f;
            float variance = std_before * std_before;
            float change = part * (batch_variance - variance + (1.0f - part) * (shift * shift));
            float both_std = std_before + root(variance + change);
            t.price_mean[0] = mean_before + part * shift;
            t.price_std[0] = std_before + change / (both_std > 0.0f ? both_std : 1.0f);
        }
    }
};

using measure_1 = Phase<measure_x, measure_price>;

using Measure = Step<Tensors, BATCH, REPORTS, measure_1>;

static const char *measure(const MtcRun *run, int64_t first, int64_t rows) {
    return launch_evaluation<Measure>(run, first, rows, 0);
}

} // namespace

// ---- tables for the runtime ---------------------------------------------------------------------------------

// file, NULL: this model's own; line; text
static const MtcStatement statement_table[] = {
    {NULL, 9, "y = linear(flatten(normalize(x)), 1)"}, // 0: x.mean
    {NULL, 13, "loss = mse(y, normalize(price))"},     // 1: price.mean
    {NULL, 14, "predict = denormalize(y, price)"},     // 2: eval_prediction
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
    {.name = "x.mean", .role = MTC_BUFFER, .rank = 2, .dim = {2, 3}, .offset = 0, .statement = 0},
    {.name = "x.std", .role = MTC_BUFFER, .rank = 2, .dim = {2, 3}, .offset = 256, .init = MTC_CONSTANT, .a = 1,
     .statement = 0},
    {.name = "y.weight", .rank = 2, .dim = {1, 6}, .offset = 512, .init = MTC_UNIFORM, .a = -0.40824829046386296,
     .b = 0.40824829046386296, .statement = 0},
    {.name = "y.bias", .rank = 1, .dim = {1}, .offset = 768, .init = MTC_UNIFORM, .a = -0.40824829046386296,
     .b = 0.40824829046386296, .statement = 0},
    {.name = "price.mean", .role = MTC_BUFFER, .rank = 0, .offset = 1024, .statement = 1},
    {.name = "price.std", .role = MTC_BUFFER, .rank = 0, .offset = 1280, .init = MTC_CONSTANT, .a = 1, .statement = 1},
    VALUE("to_y_mul", MTC_F32, 2048, 0, 0, 3, {4, 2, 3}),
    VALUE("loss_part", MTC_F32, 1536, 1, 0, 1, {4}),
    VALUE("d_y", MTC_F32, 1792, 1, 0, 2, {4, 1}),
};
// clang-format on
#undef VALUE
static const MtcField field_table[] = {
    {.name = "x", .type = MTC_U8, .rank = 2, .dim = {2, 3}, .elements = 6, .classes = 0, .predicts = true},
    {.name = "price", .type = MTC_F32, .rank = 0, .dim = {0}, .elements = 1, .classes = 0, .predicts = false},
};
static const char *const paths[] = {"x", "price"};
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
    {"y_to_d_y", 0, 0, MTC_MATH_FP32, 72, 156},
    {"to_y", 0, 0, MTC_MATH_FP32, 24, 168},
    {"d_y_weight", 0, 1, MTC_MATH_FP32, 48, 168},
    {"report_loss", 1, 1, MTC_MATH_FP32, 4, 20},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "normalize",
    .source = "normalize.mt",
    .target = "cuda",
    .architectures = "",
    .schedule = "persistent",
    .model_hash = "fd2aa2798350dbdb90eeccfcd264e9fadafb33a6fd146f5dca01128b4b5da922",
    .training = "loss = mse(y, normalize(price))\n"
                "predict = denormalize(y, price)\n"
                "optimizer = sgd(0.1)\n"
                "batch = 4",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 7,
    .flops_per_step = 148,
    .arena_bytes = 2304,
    .unshared_bytes = 2816,
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
    .prediction_offset = 1792,
    .prediction_rank = 1,
    .prediction_dim = {1},
    .prediction_is_classes = false,
    .statements = 3,
    .statement = statement_table,
    .train = train,
    .train_until = train_until,
    .eval = evaluate,
    .shuffle = shuffle,
    .draw = launch_draw,
    .measure = measure,
    .run_kernel = run_kernel,
    .prepare = prepare,
    .release = release,
};

// ---- main ---------------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    return mtc_main(&mtc_model, argc, argv);
}
