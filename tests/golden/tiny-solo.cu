// tiny-solo: a model of 17 parameters, compiled by mtc from tiny-solo.mt
//
//   step      348 FLOP in 2 phases
//   memory    2.0 KB arena (2.2 KB without sharing): weights 1.0 KB, optimizer state 0 B, values 1.0 KB
//   schedule  persistent: 1.1 us a step estimated (graph: 5.4 us)
//
//   phase 1   h_to_d_h_pre    1 tile
//   phase 2   d_y_hat_weight  1 tile
//             d_h_weight      1 tile
//             report_loss     1 tile
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

enum { BATCH = 4, X = 2, H = 4 };
enum { REPORT_LOSS, REPORTS };

namespace { // of this file alone: a kernel may be called like a function of others, or of another program

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

struct Tensors {
    static constexpr int64_t arena_bytes = 2048;

    const MtcRun &run;
    char *arena;

    const float *x = (const float *)run.data.field[0]; // data set: [examples, X]
    const float *y = (const float *)run.data.field[1]; // data set: [examples, 1]
    float *h_weight = (float *)(arena + 0);            // [H, X]
    float *h_bias = (float *)(arena + 256);            // [H]
    float *y_hat_weight = (float *)(arena + 512);      // [1, H]
    float *y_hat_bias = (float *)(arena + 768);        // [1]
    float *eval_y_hat = (float *)(arena + 1024);       // [BATCH, 1]
    float *loss_part = (float *)(arena + 1024);        // [BATCH]
    float *d_y_hat_pre = (float *)(arena + 1280);      // [BATCH, 1]
    float *h = (float *)(arena + 1536);                // [BATCH, H]
    float *d_h_pre = (float *)(arena + 1792);          // [BATCH, H]
};

// ---- training step ------------------------------------------------------------------------------------------

// h = sigmoid(linear(x, 4))                                                                      tiny-solo.mt:9
// y_hat = sigmoid(linear(h, 1))                                                                 tiny-solo.mt:10
// loss = mse(y_hat, y)                                                                          tiny-solo.mt:14
struct h_to_d_h_pre {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = H + 1 + 1; // that a row keeps from stage to stage
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
        float *d_y_hat_pre = h + H;
        float *y_hat = d_y_hat_pre + 1;

        // h[i, j] = sigmoid((sum over k of x[i, k] * h.weight[j, k]) + h.bias[j])
        auto term = [&](int j, int k) { return t.x[example * X + k] * t.h_weight[j * X + k]; };
        auto store = [&](int j, float sum) { h[j] = t.h[i * H + j] = sigmoid(sum + t.h_bias[j]); };
        team_product<H, X>(team, term, store);
        team.sync();

        // y_hat[i, 0] = sigmoid((sum over k of h[i, k] * y_hat.weight[0, k]) + y_hat.bias[0])
        // d_y_hat[i, 0] = share(i) * (y_hat[i, 0] - y[i, 0]) + share(i) * (y_hat[i, 0] - y[i, 0])
        // d_y_hat_pre[i, 0] = d_y_hat[i, 0] * (y_hat[i, 0] * (1 - y_hat[i, 0]))
        float y_hat_bias = t.y_hat_bias[0];
        float y = t.y[example];
        auto term_2 = [&](int j, int k) { return h[k] * t.y_hat_weight[k]; };
        auto store_2 = [&](int j, float sum) {
            float y_hat_2 = sigmoid(sum + y_hat_bias);
            float share_mul = row_share * (y_hat_2 - y);
            float d_y_hat_pre_2 = (share_mul + share_mul) * (y_hat_2 * (1.0f - y_hat_2));
            d_y_hat_pre[j] = d_y_hat_pre_2;
            y_hat[j] = y_hat_2;
            t.d_y_hat_pre[i] = d_y_hat_pre_2;
        };
        team_product<1, H>(team, term_2, store_2);
        team.sync();

        // d_h[i, j] = sum over k of d_y_hat_pre[i, 0] * y_hat.weight[0, j]
        // d_h_pre[i, j] = d_h[i, j] * (h[i, j] * (1 - h[i, j]))
        auto term_3 = [&](int j, int k) { return d_y_hat_pre[0] * t.y_hat_weight[k * H + j]; };
        auto store_3 = [&](int j, float sum) { t.d_h_pre[i * H + j] = sum * (h[j] * (1.0f - h[j])); };
        team_product<H, 1>(team, term_3, store_3);

        // loss_part[i] = (y_hat[i, 0] - y[i, 0]) * (y_hat[i, 0] - y[i, 0]) * share(i)
        if (leads(team)) {
            float y_hat_sub = y_hat[0] - t.y[example];
            t.loss_part[i] = y_hat_sub * y_hat_sub * row_share;
        }
    }
};

// gradient of y_hat = sigmoid(linear(h, 1))                                                     tiny-solo.mt:10
// optimizer = sgd(0.5)                                                                          tiny-solo.mt:15
//     d_y_hat.weight[0, j] = sum over k of d_y_hat_pre[k, 0] * h[k, j]
//     y_hat.weight[0, j] = y_hat.weight[0, j] - 0.5 * d_y_hat.weight[0, j]
//     d_y_hat.bias[0] = sum over j of d_y_hat_pre[j, 0]
//     y_hat.bias[0] = y_hat.bias[0] - 0.5 * d_y_hat.bias[0]
struct d_y_hat_weight {
    // 1 tile of 16 x 16 outputs, 1 x 1 a thread; straight from memory (cuda/thin.cuh)
    using Shape = Product<1, H, BATCH>;
    using Cut = Tile<16, 16, 1, 1, 1>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        auto left = transposed(matrix<1>(t.d_y_hat_pre));
        auto right = matrix<H>(t.h);
        struct Ahead {
            float y_hat_weight;
        };
        auto read = [&](int i, int j) { return Ahead{t.y_hat_weight[j]}; };
        auto out = [&](int i, int j, float sum, const Ahead &ahead) {
            t.y_hat_weight[j] = ahead.y_hat_weight - 0.5f * sum;
        };
        // the same for the sums over k of left(i, k)
        struct RowAhead {
            float y_hat_bias;
        };
        auto read_row = [&](int i) { return RowAhead{t.y_hat_bias[i]}; };
        auto row_out = [&](int i, float sum, const RowAhead &ahead) {
            t.y_hat_bias[i] = ahead.y_hat_bias - 0.5f * sum;
        };
        matmul<Shape, Cut>(tile, left, right, shared, gate, preloaded_early(read, out),
                           sum_of_a(preloaded_early(read_row, row_out)));
    }
};

// gradient of h = sigmoid(linear(x, 4))                                                          tiny-solo.mt:9
// optimizer = sgd(0.5)                                                                          tiny-solo.mt:15
//     d_h.weight[i, j] = sum over k of d_h_pre[k, i] * x[k, j]
//     h.weight[i, j] = h.weight[i, j] - 0.5 * d_h.weight[i, j]
//     d_h.bias[i] = sum over j of d_h_pre[j, i]
//     h.bias[i] = h.bias[i] - 0.5 * d_h.bias[i]
struct d_h_weight {
    // 1 tile of 16 x 16 outputs, 1 x 1 a thread; straight from memory (cuda/thin.cuh)
    using Shape = Product<H, X, BATCH>;
    using Cut = Tile<16, 16, 1, 1, 1, 1>; // the last: its first warp
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
            t.h_weight[i * X + j] = ahead.h_weight - 0.5f * sum;
        };
        // the same for the sums over k of left(i, k)
        struct RowAhead {
            float h_bias;
        };
        auto read_row = [&](int i) { return RowAhead{t.h_bias[i]}; };
        auto row_out = [&](int i, float sum, const RowAhead &ahead) { t.h_bias[i] = ahead.h_bias - 0.5f * sum; };
        matmul<Shape, Cut>(tile, left, right, shared, gate, preloaded_early(read, out),
                           sum_of_a(preloaded_early(read_row, row_out)));
    }
};

// loss = mse(y_hat, y)                                                                          tiny-solo.mt:14
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

using train_2 = Phase<d_y_hat_weight, d_h_weight, report_loss>;

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

// h = sigmoid(linear(x, 4))                                                                      tiny-solo.mt:9
// y_hat = sigmoid(linear(h, 1))                                                                 tiny-solo.mt:10
struct eval_output_y_hat {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = H; // that a row keeps from stage to stage
    static constexpr int shared_bytes = team_shared<Warp>(row_floats);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        gate();
        if (i >= BATCH)
            return;
        float *h = row_memory(team, shared, row_floats);

        // h[i, j] = sigmoid((sum over k of x[i, k] * h.weight[j, k]) + h.bias[j])
        auto term = [&](int j, int k) { return t.x[example * X + k] * t.h_weight[j * X + k]; };
        auto store = [&](int j, float sum) { h[j] = sigmoid(sum + t.h_bias[j]); };
        team_product<H, X>(team, term, store);
        team.sync();

        // y_hat[i, 0] = sigmoid((sum over k of h[i, k] * y_hat.weight[0, k]) + y_hat.bias[0])
        float y_hat_bias = t.y_hat_bias[0];
        auto term_2 = [&](int j, int k) { return h[k] * t.y_hat_weight[k]; };
        auto store_2 = [&](int j, float sum) { t.eval_y_hat[i] = sigmoid(sum + y_hat_bias); };
        team_product<1, H>(team, term_2, store_2);
    }
};

// loss = mse(y_hat, y)                                                                          tiny-solo.mt:14
struct eval_report_loss {
    static constexpr int tiles = 1;
    static __device__ void run(const Tensors &t, const Batch &batch, int, char *shared, Gate &gate) {
        Warp team(shared);
        gate();
        if (team.row < WARPS - 1)
            return;

        // loss_part[i] = (y_hat[i, 0] - y[i, 0]) * (y_hat[i, 0] - y[i, 0]) * share(i)
        // loss = sum over i of loss_part[i]
        float loss_part_sum = 0;
        for (int j = team.first; j < BATCH; j += team.stride) {
            float y_hat_sub = t.eval_y_hat[j] - t.y[row(batch, j)];
            loss_part_sum += y_hat_sub * y_hat_sub * share(batch, j);
        }
        loss_part_sum = team_sum(team, loss_part_sum);
        if (leads(team))
            batch.reports[REPORT_LOSS] = loss_part_sum;
    }
};

using Eval = Step<Tensors, BATCH, REPORTS, Phase<eval_output_y_hat>, Phase<eval_report_loss>>;

static const char *evaluate(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    return launch_evaluation<Eval>(run, first, rows, slot);
}

} // namespace

// ---- tables for the runtime ---------------------------------------------------------------------------------

// file, NULL: this model's own; line; text
static const MtcStatement statement_table[] = {
    {NULL, 9, "h = sigmoid(linear(x, 4))"},      // 0: h.weight
    {NULL, 10, "y_hat = sigmoid(linear(h, 1))"}, // 1: y_hat.weight
    {NULL, 14, "loss = mse(y_hat, y)"},          // 2: loss_part
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
    {.name = "h.weight", .rank = 2, .dim = {4, 2}, .offset = 0, .init = MTC_UNIFORM, .a = -0.7071067811865475,
     .b = 0.7071067811865475, .statement = 0},
    {.name = "h.bias", .rank = 1, .dim = {4}, .offset = 256, .init = MTC_UNIFORM, .a = -0.7071067811865475,
     .b = 0.7071067811865475, .statement = 0},
    {.name = "y_hat.weight", .rank = 2, .dim = {1, 4}, .offset = 512, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 1},
    {.name = "y_hat.bias", .rank = 1, .dim = {1}, .offset = 768, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 1},
    VALUE("h", MTC_F32, 1536, 0, 0, 2, {4, 4}),
    VALUE("loss_part", MTC_F32, 1024, 2, 0, 1, {4}),
    VALUE("d_y_hat_pre", MTC_F32, 1280, 1, 0, 2, {4, 1}),
    VALUE("d_h_pre", MTC_F32, 1792, 0, 0, 2, {4, 4}),
};
// clang-format on
#undef VALUE
static const MtcField field_table[] = {
    {.name = "x", .type = MTC_F32, .rank = 1, .dim = {2}, .elements = 2, .classes = 0, .predicts = true},
    {.name = "y", .type = MTC_F32, .rank = 1, .dim = {1}, .elements = 1, .classes = 0, .predicts = false},
};
static const char *const paths[] = {"x", "y"};
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
    {"h_to_d_h_pre", 0, 0, MTC_MATH_FP32, 248, 276},
    {"d_y_hat_weight", 1, 1, MTC_MATH_FP32, 32, 120},
    {"d_h_weight", 0, 1, MTC_MATH_FP32, 64, 192},
    {"report_loss", 2, 1, MTC_MATH_FP32, 4, 20},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "tiny-solo",
    .source = "tiny-solo.mt",
    .target = "cuda",
    .architectures = "",
    .schedule = "persistent",
    .model_hash = "b2a6e1b6d67d5365105064fec9c0b4e5dcbf1174c112daf0e7b1e1d8bc758bfa",
    .training = "loss = mse(y_hat, y)\n"
                "optimizer = sgd(0.5)\n"
                "batch = 4",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 17,
    .flops_per_step = 348,
    .arena_bytes = 2048,
    .unshared_bytes = 2304,
    .train_phases = 2,
    .eval_phases = 2,
    .tensors = 8,
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
    .prediction_offset = 1024,
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
    .run_kernel = run_kernel,
    .prepare = prepare,
    .release = release,
};

// ---- main ---------------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    return mtc_main(&mtc_model, argc, argv);
}
