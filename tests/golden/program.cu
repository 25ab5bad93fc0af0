// program: a model of 38 parameters, compiled by mtc from program.mt
//
//   step      716 FLOP in 2 phases
//   memory    2.0 KB arena (2.5 KB without sharing): weights 1.0 KB, optimizer state 0 B, values 1.0 KB
//   schedule  persistent: 1.2 us a step estimated (graph: 5.5 us)
//
//   phase 1   h_to_d_h_pre  1 tile
//   phase 2   d_z_weight    1 tile
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

enum { BATCH = 4, X = 6, Y = 2, H = 4 };
enum { REPORT_LOSS, REPORTS };

namespace { // of this file alone: a kernel may be called like a function of others, or of another program

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

struct Tensors {
    static constexpr int64_t arena_bytes = 2048;

    const MtcRun &run;
    char *arena;

    const float *x = (const float *)run.data.field[0]; // data set: [examples, X]
    const float *y = (const float *)run.data.field[1]; // data set: [examples, Y]
    float *h_weight = (float *)(arena + 0);            // [H, X]
    float *h_bias = (float *)(arena + 256);            // [H]
    float *z_weight = (float *)(arena + 512);          // [Y, H]
    float *z_bias = (float *)(arena + 768);            // [Y]
    float *eval_loss_part = (float *)(arena + 1024);   // [BATCH]
    float *loss_part = (float *)(arena + 1024);        // [BATCH]
    float *d_z = (float *)(arena + 1280);              // [BATCH, Y]
    float *eval_z = (float *)(arena + 1280);           // [BATCH, Y]
    float *h = (float *)(arena + 1536);                // [BATCH, H]
    float *d_h_pre = (float *)(arena + 1792);          // [BATCH, H]
};

// ---- training step ------------------------------------------------------------------------------------------

// h = tanh(linear(x, 4))                                                                           program.mt:9
// z = linear(h, 2)                                                                                program.mt:10
// loss = mse(z, y)                                                                                program.mt:14
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
        float *d_z = h + H;
        float *z_sub = d_z + Y;

        // h[i, j] = tanh((sum over k of x[i, k] * h.weight[j, k]) + h.bias[j])
        auto term = [&](int j, int k) { return t.x[example * X + k] * t.h_weight[j * X + k]; };
        auto store = [&](int j, float sum) { h[j] = t.h[i * H + j] = tanh(sum + t.h_bias[j]); };
        team_product<H, X>(team, term, store);
        team.sync();

        // z[i, j] = (sum over k of h[i, k] * z.weight[j, k]) + z.bias[j]
        // d_z[i, j] = share(i) * 0.5 * (z[i, j] - y[i, j]) + share(i) * 0.5 * (z[i, j] - y[i, j])
        auto term_2 = [&](int j, int k) { return h[k] * t.z_weight[j * H + k]; };
        auto store_2 = [&](int j, float sum) {
            float z_sub_2 = sum + t.z_bias[j] - t.y[example * Y + j];
            float share_mul = row_share * 0.5f * z_sub_2;
            float d_z_2 = share_mul + share_mul;
            d_z[j] = d_z_2;
            z_sub[j] = z_sub_2;
            t.d_z[i * Y + j] = d_z_2;
        };
        team_product<Y, H>(team, term_2, store_2);
        team.sync();

        // z_sum[i] = sum over j of (z[i, j] - y[i, j]) * (z[i, j] - y[i, j])
        float z_sum = 0;
        for (int j = team.first; j < Y; j += team.stride)
            z_sum += z_sub[j] * z_sub[j];
        z_sum = team_sum(team, z_sum);

        // d_h[i, j] = sum over k of d_z[i, k] * z.weight[k, j]
        // d_h_pre[i, j] = d_h[i, j] * (1 - h[i, j] * h[i, j])
        auto term_3 = [&](int j, int k) { return d_z[k] * t.z_weight[k * H + j]; };
        auto store_3 = [&](int j, float sum) { t.d_h_pre[i * H + j] = sum * (1.0f - h[j] * h[j]); };
        team_product<H, Y>(team, term_3, store_3);

        // loss_part[i] = z_sum[i] * (1 / Y) * share(i)
        if (leads(team))
            t.loss_part[i] = z_sum * (1.0f / Y) * row_share;
    }
};

// gradient of z = linear(h, 2)                                                                    program.mt:10
// optimizer = sgd(0.1)                                                                            program.mt:15
//     d_z.weight[i, j] = sum over k of d_z[k, i] * h[k, j]
//     z.weight[i, j] = z.weight[i, j] - 0.1 * d_z.weight[i, j]
//     d_z.bias[i] = sum over j of d_z[j, i]
//     z.bias[i] = z.bias[i] - 0.1 * d_z.bias[i]
struct d_z_weight {
    // 1 tile of 16 x 16 outputs, 1 x 1 a thread; straight from memory (cuda/thin.cuh)
    using Shape = Product<Y, H, BATCH>;
    using Cut = Tile<16, 16, 1, 1, 1>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        auto left = transposed(matrix<Y>(t.d_z));
        auto right = matrix<H>(t.h);
        struct Ahead {
            float z_weight;
        };
        auto read = [&](int i, int j) { return Ahead{t.z_weight[i * H + j]}; };
        auto out = [&](int i, int j, float sum, const Ahead &ahead) {
            t.z_weight[i * H + j] = ahead.z_weight - 0.1f * sum;
        };
        // the same for the sums over k of left(i, k)
        struct RowAhead {
            float z_bias;
        };
        auto read_row = [&](int i) { return RowAhead{t.z_bias[i]}; };
        auto row_out = [&](int i, float sum, const RowAhead &ahead) { t.z_bias[i] = ahead.z_bias - 0.1f * sum; };
        matmul<Shape, Cut>(tile, left, right, shared, gate, preloaded_early(read, out),
                           sum_of_a(preloaded_early(read_row, row_out)));
    }
};

// gradient of h = tanh(linear(x, 4))                                                               program.mt:9
// optimizer = sgd(0.1)                                                                            program.mt:15
//     d_h.weight[i, j] = sum over k of d_h_pre[k, i] * x[k, j]
//     h.weight[i, j] = h.weight[i, j] - 0.1 * d_h.weight[i, j]
//     d_h.bias[i] = sum over j of d_h_pre[j, i]
//     h.bias[i] = h.bias[i] - 0.1 * d_h.bias[i]
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

// loss = mse(z, y)                                                                                program.mt:14
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

using train_2 = Phase<d_z_weight, d_h_weight, report_loss>;

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

// h = tanh(linear(x, 4))                                                                           program.mt:9
// z = linear(h, 2)                                                                                program.mt:10
// loss = mse(z, y)                                                                                program.mt:14
struct eval_h_to_loss_part {
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
        float *z_mul = h + H;

        // h[i, j] = tanh((sum over k of x[i, k] * h.weight[j, k]) + h.bias[j])
        auto term = [&](int j, int k) { return t.x[example * X + k] * t.h_weight[j * X + k]; };
        auto store = [&](int j, float sum) { h[j] = tanh(sum + t.h_bias[j]); };
        team_product<H, X>(team, term, store);
        team.sync();

        // z[i, j] = (sum over k of h[i, k] * z.weight[j, k]) + z.bias[j]
        auto term_2 = [&](int j, int k) { return h[k] * t.z_weight[j * H + k]; };
        auto store_2 = [&](int j, float sum) {
            float z = sum + t.z_bias[j];
            float z_sub = z - t.y[example * Y + j];
            z_mul[j] = z_sub * z_sub;
            t.eval_z[i * Y + j] = z;
        };
        team_product<Y, H>(team, term_2, store_2);
        team.sync();

        // z_sum[i] = sum over j of (z[i, j] - y[i, j]) * (z[i, j] - y[i, j])
        float z_sum = 0;
        for (int j = team.first; j < Y; j += team.stride)
            z_sum += z_mul[j];
        z_sum = team_sum(team, z_sum);

        // loss_part[i] = z_sum[i] * (1 / Y) * share(i)
        if (leads(team))
            t.eval_loss_part[i] = z_sum * (1.0f / Y) * row_share;
    }
};

// loss = mse(z, y)                                                                                program.mt:14
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

using Eval = Step<Tensors, BATCH, REPORTS, Phase<eval_h_to_loss_part>, Phase<eval_report_loss>>;

static const char *evaluate(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    return launch_evaluation<Eval>(run, first, rows, slot);
}

} // namespace

// ---- tables for the runtime ---------------------------------------------------------------------------------

// file, NULL: this model's own; line; text
static const MtcStatement statement_table[] = {
    {NULL, 9, "h = tanh(linear(x, 4))"}, // 0: h.weight
    {NULL, 10, "z = linear(h, 2)"},      // 1: z.weight
    {NULL, 14, "loss = mse(z, y)"},      // 2: eval_loss_part
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
    {.name = "z.weight", .rank = 2, .dim = {2, 4}, .offset = 512, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 1},
    {.name = "z.bias", .rank = 1, .dim = {2}, .offset = 768, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 1},
    VALUE("h", MTC_F32, 1536, 0, 0, 2, {4, 4}),
    VALUE("loss_part", MTC_F32, 1024, 2, 0, 1, {4}),
    VALUE("d_z", MTC_F32, 1280, 2, 0, 2, {4, 2}),
    VALUE("d_h_pre", MTC_F32, 1792, 0, 0, 2, {4, 4}),
};
// clang-format on
#undef VALUE
static const MtcField field_table[] = {
    {.name = "x", .type = MTC_F32, .rank = 1, .dim = {6}, .elements = 6, .classes = 0, .predicts = true},
    {.name = "y", .type = MTC_F32, .rank = 1, .dim = {2}, .elements = 2, .classes = 0, .predicts = false},
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
    {"h_to_d_h_pre", 0, 0, MTC_MATH_FP32, 456, 456},
    {"d_z_weight", 1, 1, MTC_MATH_FP32, 64, 176},
    {"d_h_weight", 0, 1, MTC_MATH_FP32, 192, 384},
    {"report_loss", 2, 1, MTC_MATH_FP32, 4, 20},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "program",
    .source = "program.mt",
    .target = "cuda",
    .architectures = "",
    .schedule = "persistent",
    .model_hash = "e9f19c9ee5a1ecfa54f50f539e93f6d203fc2d9aaf92bcfd1416c64bfc852285",
    .training = "loss = mse(z, y)\n"
                "optimizer = sgd(0.1)\n"
                "batch = 4\n"
                "epochs = 2",
    .batch = BATCH,
    .epochs = 2,
    .seed = 0u,
    .parameters = 38,
    .flops_per_step = 716,
    .arena_bytes = 2048,
    .unshared_bytes = 2560,
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
    .prediction_offset = 1280,
    .prediction_rank = 1,
    .prediction_dim = {2},
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
