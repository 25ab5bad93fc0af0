// program: a model of 38 parameters, compiled by mtc from program.mt
//
//   step      740 FLOP in 3 phases
//   memory    2.2 KB arena (2.8 KB without sharing): weights 1.0 KB, optimizer state 0 B, values 1.2 KB
//
//   phase 1   x
//   phase 2   h_to_d_h_pre
//   phase 3   d_z_weight
//             d_h_weight
//             report_loss
//
// From top to bottom: sizes; tensors; one function per kernel, in the order of a training step; the phases that
// group them; the step; evaluation; tables for the runtime; main.
//
// How it runs: every OpenMP thread runs the whole step and takes its share of each kernel's loop. Phases run
// one after the other, with a barrier between them; in a phase, a thread that is done with one kernel goes on
// to the next without waiting.

#include "mtc.h" // the runtime: data, command line, checkpoints

typedef float real;

#include "cpu/batch.h"  // row: the example in a row of the batch; share: its part in a mean
#include "cpu/math.h"   // exp, relu, sigmoid ... of a real
#include "cpu/matmul.h" // matmul(sums, stride, left, right, i0, j0, rows, columns, depth)
#include "cpu/team.h"   // the barrier between phases, subnormal numbers

// ---- sizes --------------------------------------------------------------------------------------------------

enum { BATCH = 4, X = 6, Y = 2, H = 4 };
enum { REPORT_LOSS, REPORTS };

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

typedef struct Tensors {
    const float *x;       // data set: [examples, X]
    const float *y;       // data set: [examples, Y]
    real *h_weight;       // [H, X]
    real *h_bias;         // [H]
    real *z_weight;       // [Y, H]
    real *z_bias;         // [Y]
    real *eval_loss_part; // [BATCH]
    real *x_2;            // [BATCH, X]
    real *eval_z;         // [BATCH, Y]
    real *loss_part;      // [BATCH]
    real *d_z;            // [BATCH, Y]
    real *h;              // [BATCH, H]
    real *d_h_pre;        // [BATCH, H]
} Tensors;

static Tensors tensors(const MtcRun *run) {
    return (Tensors){
        .x = (const float *)run->data.field[0],
        .y = (const float *)run->data.field[1],
        .h_weight = (real *)(run->arena + 0),
        .h_bias = (real *)(run->arena + 256),
        .z_weight = (real *)(run->arena + 512),
        .z_bias = (real *)(run->arena + 768),
        .eval_loss_part = (real *)(run->arena + 1024),
        .x_2 = (real *)(run->arena + 1024),
        .eval_z = (real *)(run->arena + 1280),
        .loss_part = (real *)(run->arena + 1280),
        .d_z = (real *)(run->arena + 1536),
        .h = (real *)(run->arena + 1792),
        .d_h_pre = (real *)(run->arena + 2048),
    };
}

// ---- training step ------------------------------------------------------------------------------------------

// x : f32[6]                                                                                       program.mt:4
static void x(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
#pragma omp simd
        for (int j = 0; j < X; j++)
            t->x_2[i * X + j] = t->x[row(batch, i) * X + j];
    }
}

// h = tanh(linear(x, 4))                                                                           program.mt:9
// z = linear(h, 2)                                                                                program.mt:10
// loss = mse(z, y)                                                                                program.mt:14
static void h_to_d_h_pre(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
        int64_t example = row(batch, i);
        real row_share = share(batch, i);
        real h[H];
        real d_z[Y];
        real z_sub[Y];

        // h[i, j] = tanh((sum over k of x[i, k] * h.weight[j, k]) + h.bias[j])
        for (int j = 0; j < H; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < X; k++)
                sum += t->x[example * X + k] * t->h_weight[j * X + k];
            h[j] = t->h[i * H + j] = tanh(sum + t->h_bias[j]);
        }

        // z[i, j] = (sum over k of h[i, k] * z.weight[j, k]) + z.bias[j]
        // d_z[i, j] = share(i) * 0.5 * (z[i, j] - y[i, j]) + share(i) * 0.5 * (z[i, j] - y[i, j])
        for (int j = 0; j < Y; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < H; k++)
                sum += h[k] * t->z_weight[j * H + k];
            real z_sub_2 = sum + t->z_bias[j] - t->y[example * Y + j];
            real share_mul = row_share * 0.5f * z_sub_2;
            real d_z_2 = share_mul + share_mul;
            d_z[j] = d_z_2;
            z_sub[j] = z_sub_2;
            t->d_z[i * Y + j] = d_z_2;
        }

        // z_sum[i] = sum over j of (z[i, j] - y[i, j]) * (z[i, j] - y[i, j])
        real z_sum = 0;
#pragma omp simd reduction(+ : z_sum)
        for (int j = 0; j < Y; j++)
            z_sum += z_sub[j] * z_sub[j];

        // d_h[i, j] = sum over k of d_z[i, k] * z.weight[k, j]
        // d_h_pre[i, j] = d_h[i, j] * (1 - h[i, j] * h[i, j])
        real totals[H] = {0};
        for (int k = 0; k < Y; k++)
            for (int j = 0; j < H; j++)
                totals[j] += d_z[k] * t->z_weight[k * H + j];
        for (int j = 0; j < H; j++)
            t->d_h_pre[i * H + j] = totals[j] * (1.0f - h[j] * h[j]);

        // loss_part[i] = z_sum[i] * (1 / Y) * share(i)
        t->loss_part[i] = z_sum * (1.0f / Y) * row_share;
    }
}

// gradient of z = linear(h, 2)                                                                    program.mt:10
// optimizer = sgd(0.1)                                                                            program.mt:15
//     d_z.weight[i, j] = sum over k of d_z[k, i] * h[k, j]
//     z.weight[i, j] = z.weight[i, j] - 0.1 * d_z.weight[i, j]
//     d_z.bias[i] = sum over j of d_z[j, i]
//     z.bias[i] = z.bias[i] - 0.1 * d_z.bias[i]
static void d_z_weight(const Tensors *t) {
    enum { ROWS = 8, COLUMNS = 16 };
#pragma omp for collapse(2) nowait
    for (int i0 = 0; i0 < Y; i0 += ROWS)
        for (int j0 = 0; j0 < H; j0 += COLUMNS) {
            real sums[ROWS * COLUMNS];
            int rows = Y;
            int columns = H;
            Matrix left = transposed(matrix(t->d_z, Y));
            Matrix right = matrix(t->h, H);
            matmul(sums, COLUMNS, left, right, i0, j0, rows, columns, BATCH);
            for (int i = i0; i < i0 + rows; i++)
#pragma omp simd
                for (int j = j0; j < j0 + columns; j++) {
                    real sum = sums[(i - i0) * COLUMNS + j - j0];
                    t->z_weight[i * H + j] -= 0.1f * sum;
                }
            if (j0 == 0) {
                real row_sums[ROWS] = {0};
                for (int k = 0; k < BATCH; k++)
                    for (int i = i0; i < i0 + rows; i++)
                        row_sums[i - i0] += t->d_z[k * Y + i];
                for (int i = i0; i < i0 + rows; i++) {
                    real sum = row_sums[i - i0];
                    t->z_bias[i] -= 0.1f * sum;
                }
            }
        }
}

// gradient of h = tanh(linear(x, 4))                                                               program.mt:9
// optimizer = sgd(0.1)                                                                            program.mt:15
//     d_h.weight[i, j] = sum over k of d_h_pre[k, i] * x[k, j]
//     h.weight[i, j] = h.weight[i, j] - 0.1 * d_h.weight[i, j]
//     d_h.bias[i] = sum over j of d_h_pre[j, i]
//     h.bias[i] = h.bias[i] - 0.1 * d_h.bias[i]
static void d_h_weight(const Tensors *t) {
    enum { ROWS = 8, COLUMNS = 16 };
#pragma omp for collapse(2) nowait
    for (int i0 = 0; i0 < H; i0 += ROWS)
        for (int j0 = 0; j0 < X; j0 += COLUMNS) {
            real sums[ROWS * COLUMNS];
            int rows = H;
            int columns = X;
            Matrix left = transposed(matrix(t->d_h_pre, H));
            Matrix right = matrix(t->x_2, X);
            matmul(sums, COLUMNS, left, right, i0, j0, rows, columns, BATCH);
            for (int i = i0; i < i0 + rows; i++)
#pragma omp simd
                for (int j = j0; j < j0 + columns; j++) {
                    real sum = sums[(i - i0) * COLUMNS + j - j0];
                    t->h_weight[i * X + j] -= 0.1f * sum;
                }
            if (j0 == 0) {
                real row_sums[ROWS] = {0};
                for (int k = 0; k < BATCH; k++)
                    for (int i = i0; i < i0 + rows; i++)
                        row_sums[i - i0] += t->d_h_pre[k * H + i];
                for (int i = i0; i < i0 + rows; i++) {
                    real sum = row_sums[i - i0];
                    t->h_bias[i] -= 0.1f * sum;
                }
            }
        }
}

// loss = mse(z, y)                                                                                program.mt:14
static void report_loss(const Tensors *t, const Batch *batch) {
#pragma omp single nowait
    {

        // loss = sum over i of loss_part[i]
        real loss_part_sum = 0;
#pragma omp simd reduction(+ : loss_part_sum)
        for (int j = 0; j < BATCH; j++)
            loss_part_sum += t->loss_part[j];
        batch->reports[REPORT_LOSS] = loss_part_sum;
    }
}

// ---- phases: one after the other; the kernels of a phase run at the same time -------------------------------

static void train_kernel(const Tensors *t, const Batch *batch, int kernel) {
    switch (kernel) {
    case 0: x(t, batch); break;
    case 1: h_to_d_h_pre(t, batch); break;
    case 2: d_z_weight(t); break;
    case 3: d_h_weight(t); break;
    case 4: report_loss(t, batch); break;
    }
}

enum { TRAIN_PHASES = 3 };
// the first kernel behind each phase
static const int train_ends[TRAIN_PHASES] = {1, 2, 5};

static void train_phases(const Tensors *t, const Batch *batch, Team *team, int count) {
    for (int phase = 0, kernel = 0; phase < count; phase++) {
        for (; kernel < train_ends[phase]; kernel++)
            train_kernel(t, batch, kernel);
        team_wait(team);
    }
}

// ---- the step -----------------------------------------------------------------------------------------------

static const char *train(const MtcRun *run, int64_t steps) {
    Tensors t = tensors(run);
    Team team = TEAM_READY;
#pragma omp parallel num_threads(1) // a second thread would save less than waiting for it costs
    {
        FloatMode before = flush_subnormals();
        for (int64_t s = 0; s < steps; s++) {
            Batch batch = batch_of_step(run, s, BATCH, REPORTS);
            train_phases(&t, &batch, &team, TRAIN_PHASES);
        }
        set_float_mode(before);
    }
    for (int k = 0; k < 3; k++)
        run->clock[k] += steps;
    return NULL;
}

// phases 0 .. phase of one step
static const char *train_until(const MtcRun *run, int phase) {
    Tensors t = tensors(run);
    Batch batch = batch_of_step(run, 0, BATCH, REPORTS);
    Team team = TEAM_READY;
#pragma omp parallel num_threads(1) // a second thread would save less than waiting for it costs
    {
        FloatMode before = flush_subnormals();
        train_phases(&t, &batch, &team, phase + 1);
        set_float_mode(before);
    }
    return NULL;
}

static const char *run_kernel(const MtcRun *run, int kernel, int64_t times) {
    Tensors t = tensors(run);
    Batch batch = batch_of_step(run, 0, BATCH, REPORTS);
    Team team = TEAM_READY;
#pragma omp parallel num_threads(1) // a second thread would save less than waiting for it costs
    {
        FloatMode before = flush_subnormals();
        for (int64_t n = 0; n < times; n++) {
            train_kernel(&t, &batch, kernel);
            team_wait(&team);
        }
        set_float_mode(before);
    }
    return NULL;
}

static const char *prepare(const MtcRun *run) {
    (void)run;
    return NULL;
}

static void release(void) {
}

// ---- evaluation ---------------------------------------------------------------------------------------------

// h = tanh(linear(x, 4))                                                                           program.mt:9
// z = linear(h, 2)                                                                                program.mt:10
// loss = mse(z, y)                                                                                program.mt:14
static void eval_h_to_loss_part(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
        int64_t example = row(batch, i);
        real row_share = share(batch, i);
        real h[H];
        real z_mul[Y];

        // h[i, j] = tanh((sum over k of x[i, k] * h.weight[j, k]) + h.bias[j])
        for (int j = 0; j < H; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < X; k++)
                sum += t->x[example * X + k] * t->h_weight[j * X + k];
            h[j] = tanh(sum + t->h_bias[j]);
        }

        // z[i, j] = (sum over k of h[i, k] * z.weight[j, k]) + z.bias[j]
        for (int j = 0; j < Y; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < H; k++)
                sum += h[k] * t->z_weight[j * H + k];
            real z = sum + t->z_bias[j];
            real z_sub = z - t->y[example * Y + j];
            z_mul[j] = z_sub * z_sub;
            t->eval_z[i * Y + j] = z;
        }

        // z_sum[i] = sum over j of (z[i, j] - y[i, j]) * (z[i, j] - y[i, j])
        real z_sum = 0;
#pragma omp simd reduction(+ : z_sum)
        for (int j = 0; j < Y; j++)
            z_sum += z_mul[j];

        // loss_part[i] = z_sum[i] * (1 / Y) * share(i)
        t->eval_loss_part[i] = z_sum * (1.0f / Y) * row_share;
    }
}

// loss = mse(z, y)                                                                                program.mt:14
static void eval_report_loss(const Tensors *t, const Batch *batch) {
#pragma omp single nowait
    {

        // loss = sum over i of loss_part[i]
        real loss_part_sum = 0;
#pragma omp simd reduction(+ : loss_part_sum)
        for (int j = 0; j < BATCH; j++)
            loss_part_sum += t->eval_loss_part[j];
        batch->reports[REPORT_LOSS] = loss_part_sum;
    }
}

static void eval_kernel(const Tensors *t, const Batch *batch, int kernel) {
    switch (kernel) {
    case 0: eval_h_to_loss_part(t, batch); break;
    case 1: eval_report_loss(t, batch); break;
    }
}

enum { EVAL_PHASES = 2 };
// the first kernel behind each phase
static const int eval_ends[EVAL_PHASES] = {1, 2};

static void eval_phases(const Tensors *t, const Batch *batch, Team *team, int count) {
    for (int phase = 0, kernel = 0; phase < count; phase++) {
        for (; kernel < eval_ends[phase]; kernel++)
            eval_kernel(t, batch, kernel);
        team_wait(team);
    }
}

static const char *evaluate(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    Tensors t = tensors(run);
    Batch batch = batch_of_examples(run, first, rows, slot, REPORTS);
    Team team = TEAM_READY;
#pragma omp parallel num_threads(1) // a second thread would save less than waiting for it costs
    {
        FloatMode before = flush_subnormals();
        eval_phases(&t, &batch, &team, EVAL_PHASES);
        set_float_mode(before);
    }
    return NULL;
}

// ---- tables for the runtime ---------------------------------------------------------------------------------

// file, NULL: this model's own; line; text
static const MtcStatement statement_table[] = {
    {NULL, 4, "x : f32[6]"},             // 0: x
    {NULL, 9, "h = tanh(linear(x, 4))"}, // 1: h.weight
    {NULL, 10, "z = linear(h, 2)"},      // 2: z.weight
    {NULL, 14, "loss = mse(z, y)"},      // 3: eval_loss_part
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
     .b = 0.40824829046386296, .statement = 1},
    {.name = "h.bias", .rank = 1, .dim = {4}, .offset = 256, .init = MTC_UNIFORM, .a = -0.40824829046386296,
     .b = 0.40824829046386296, .statement = 1},
    {.name = "z.weight", .rank = 2, .dim = {2, 4}, .offset = 512, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 2},
    {.name = "z.bias", .rank = 1, .dim = {2}, .offset = 768, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 2},
    VALUE("x", MTC_F32, 1024, 0, 0, 2, {4, 6}),
    VALUE("h", MTC_F32, 1792, 1, 1, 2, {4, 4}),
    VALUE("loss_part", MTC_F32, 1280, 3, 1, 1, {4}),
    VALUE("d_z", MTC_F32, 1536, 3, 1, 2, {4, 2}),
    VALUE("d_h_pre", MTC_F32, 2048, 1, 1, 2, {4, 4}),
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
    {"x", 0, 0, MTC_MATH_FP32, 24, 96},
    {"h_to_d_h_pre", 1, 1, MTC_MATH_FP32, 456, 456},
    {"d_z_weight", 2, 2, MTC_MATH_FP32, 64, 176},
    {"d_h_weight", 1, 2, MTC_MATH_FP32, 192, 384},
    {"report_loss", 3, 2, MTC_MATH_FP32, 4, 20},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "program",
    .source = "program.mt",
    .target = "cpu",
    .architectures = "",
    .schedule = "openmp",
    .model_hash = "e9f19c9ee5a1ecfa54f50f539e93f6d203fc2d9aaf92bcfd1416c64bfc852285",
    .training = "loss = mse(z, y)\n"
                "optimizer = sgd(0.1)\n"
                "batch = 4\n"
                "epochs = 2",
    .batch = BATCH,
    .epochs = 2,
    .seed = 0u,
    .parameters = 38,
    .flops_per_step = 740,
    .arena_bytes = 2304,
    .unshared_bytes = 2816,
    .train_phases = 3,
    .eval_phases = 2,
    .tensors = 9,
    .fields = 2,
    .origins = 1,
    .splits = 1,
    .knobs = 0,
    .fixed = 0,
    .reports = REPORTS,
    .kernels = 5,
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
    .statements = 4,
    .statement = statement_table,
    .train = train,
    .train_until = train_until,
    .eval = evaluate,
    .run_kernel = run_kernel,
    .prepare = prepare,
    .release = release,
};

// ---- main ---------------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    return mtc_main(&mtc_model, argc, argv);
}
