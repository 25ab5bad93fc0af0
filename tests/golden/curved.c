// curved: a model of 23 parameters, compiled by mtc from curved.mt
//
//   step      756 FLOP in 3 phases
//   memory    2.2 KB arena (2.8 KB without sharing): weights 1.0 KB, optimizer state 0 B, values 1.2 KB
//
//   phase 1   x
//   phase 2   h_to_d_h
//   phase 3   d_output_weight
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

enum { BATCH = 4, X = 4, Y = 2, H = 3 };
enum { REPORT_LOSS, REPORTS };

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

typedef struct Tensors {
    const float *x;       // data set: [examples, X]
    const float *y;       // data set: [examples, Y]
    real *h_weight;       // [H, X]
    real *h_bias;         // [H]
    real *output_weight;  // [Y, H]
    real *output_bias;    // [Y]
    real *eval_loss_part; // [BATCH]
    real *x_2;            // [BATCH, X]
    real *eval_output;    // [BATCH, Y]
    real *loss_part;      // [BATCH]
    real *h_to_d_h_add;   // [BATCH, Y]
    real *h;              // [BATCH, H]
    real *h_to_d_h_add_2; // [BATCH, H]
} Tensors;

static Tensors tensors(const MtcRun *run) {
    return (Tensors){
        .x = (const float *)run->data.field[0],
        .y = (const float *)run->data.field[1],
        .h_weight = (real *)(run->arena + 0),
        .h_bias = (real *)(run->arena + 256),
        .output_weight = (real *)(run->arena + 512),
        .output_bias = (real *)(run->arena + 768),
        .eval_loss_part = (real *)(run->arena + 1024),
        .x_2 = (real *)(run->arena + 1024),
        .eval_output = (real *)(run->arena + 1280),
        .loss_part = (real *)(run->arena + 1280),
        .h_to_d_h_add = (real *)(run->arena + 1536),
        .h = (real *)(run->arena + 1792),
        .h_to_d_h_add_2 = (real *)(run->arena + 2048),
    };
}

// ---- training step ------------------------------------------------------------------------------------------

// x : f32[4]                                                                                        curved.mt:4
static void x(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
#pragma omp simd
        for (int j = 0; j < X; j++)
            t->x_2[i * X + j] = t->x[row(batch, i) * X + j];
    }
}

// h = mish(linear(x, 3))                                                                            curved.mt:9
// output = elu(linear(h, 2), 0.5)                                                                  curved.mt:10
// loss = huber(output, y, delta = 2)                                                               curved.mt:14
static void h_to_d_h(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
        int64_t example = row(batch, i);
        real row_share = share(batch, i);
        real h[H];
        real x_add[H];
        real h_add[Y];
        real h_add_2[Y];

        // h[i, j] = ((sum over k of x[i, k] * h.weight[j, k]) + h.bias[j]) *
        //         tanh(softplus((sum over l of x[i, l] * h.weight[j, l]) + h.bias[j]))
        for (int j = 0; j < H; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < X; k++)
                sum += t->x[example * X + k] * t->h_weight[j * X + k];
            real x_add_2 = sum + t->h_bias[j];
            real h_2 = x_add_2 * tanh(softplus(x_add_2));
            h[j] = h_2;
            x_add[j] = x_add_2;
            t->h[i * H + j] = h_2;
        }

        // d_output_pre[i, j] = (sum over k of h[i, k] * output.weight[j, k]) + output.bias[j] > 0 ? 0 : d_output[i, j]
        real share_mul = row_share * 0.5f;
        for (int j = 0; j < Y; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < H; k++)
                sum += h[k] * t->output_weight[j * H + k];
            real h_add_3 = sum + t->output_bias[j];
            bool h_gt = h_add_3 > 0.0f;
            real h_expm1 = expm1(h_gt ? 0.0f : h_add_3);
            real output_sub = (h_gt ? h_add_3 : 0.5f * h_expm1) - t->y[example * Y + j];
            bool output_le = fabs(output_sub) <= 2.0f;
            real output_mul = (output_le ? share_mul : 0.0f) * 0.5f * output_sub;
            real d_output = output_mul + output_mul + (output_le ? 0.0f : share_mul) * 2.0f * sign(output_sub);
            real h_add_4 =
                (h_gt ? d_output : 0.0f) + (h_gt ? 0.0f : (h_gt ? 0.0f : d_output) * 0.5f * (h_expm1 + 1.0f));
            h_add[j] = h_add_4;
            h_add_2[j] = h_add_3;
            t->h_to_d_h_add[i * Y + j] = h_add_4;
        }

        // output_sum[i] = sum over j of (fabs(output[i, j] - y[i, j]) <= 2 ? (output[i, j] - y[i, j]) *
        //         (output[i, j] - y[i, j]) * 0.5 : 2 * (fabs(output[i, j] - y[i, j]) - 1))
        real output_sum = 0;
        for (int j = 0; j < Y; j++) {
            bool h_gt = h_add_2[j] > 0.0f;
            real output = h_gt ? h_add_2[j] : 0.5f * expm1(h_gt ? 0.0f : h_add_2[j]);
            real output_sub = output - t->y[example * Y + j];
            real output_abs = fabs(output_sub);
            output_sum += output_abs <= 2.0f ? output_sub * output_sub * 0.5f : 2.0f * (output_abs - 1.0f);
        }

        // d_h[i, j] = sum over k of h_to_d_h_add[i, k] * output.weight[k, j]
        // d_h_pre[i, j] = d_h[i, j] * ((sum over k of x[i, k] * h.weight[j, k]) + h.bias[j])
        real totals[H] = {0};
        for (int k = 0; k < Y; k++)
            for (int j = 0; j < H; j++)
                totals[j] += h_add[k] * t->output_weight[k * H + j];
        for (int j = 0; j < H; j++) {
            real x_tanh = tanh(softplus(x_add[j]));
            real d_h_pre_mul = totals[j] * x_add[j] * (1.0f - x_tanh * x_tanh) * sigmoid(x_add[j]);
            t->h_to_d_h_add_2[i * H + j] = totals[j] * x_tanh + d_h_pre_mul;
        }

        // loss_part[i] = output_sum[i] * 0.5 * share(i)
        t->loss_part[i] = output_sum * 0.5f * row_share;
    }
}

// gradient of output = elu(linear(h, 2), 0.5)                                                      curved.mt:10
// optimizer = sgd(0.1)                                                                             curved.mt:15
//     d_output.weight[i, j] = sum over k of h_to_d_h_add[k, i] * h[k, j]
//     output.weight[i, j] = output.weight[i, j] - 0.1 * d_output.weight[i, j]
//     d_output.bias[i] = sum over j of h_to_d_h_add[j, i]
//     output.bias[i] = output.bias[i] - 0.1 * d_output.bias[i]
static void d_output_weight(const Tensors *t) {
    enum { ROWS = 8, COLUMNS = 16 };
#pragma omp for collapse(2) nowait
    for (int i0 = 0; i0 < Y; i0 += ROWS)
        for (int j0 = 0; j0 < H; j0 += COLUMNS) {
            real sums[ROWS * COLUMNS];
            int rows = Y;
            int columns = H;
            Matrix left = transposed(matrix(t->h_to_d_h_add, Y));
            Matrix right = matrix(t->h, H);
            matmul(sums, COLUMNS, left, right, i0, j0, rows, columns, BATCH);
            for (int i = i0; i < i0 + rows; i++)
#pragma omp simd
                for (int j = j0; j < j0 + columns; j++) {
                    real sum = sums[(i - i0) * COLUMNS + j - j0];
                    t->output_weight[i * H + j] -= 0.1f * sum;
                }
            if (j0 == 0) {
                real row_sums[ROWS] = {0};
                for (int k = 0; k < BATCH; k++)
                    for (int i = i0; i < i0 + rows; i++)
                        row_sums[i - i0] += t->h_to_d_h_add[k * Y + i];
                for (int i = i0; i < i0 + rows; i++) {
                    real sum = row_sums[i - i0];
                    t->output_bias[i] -= 0.1f * sum;
                }
            }
        }
}

// gradient of h = mish(linear(x, 3))                                                                curved.mt:9
// optimizer = sgd(0.1)                                                                             curved.mt:15
//     d_h.weight[i, j] = sum over k of h_to_d_h_add_2[k, i] * x[k, j]
//     h.weight[i, j] = h.weight[i, j] - 0.1 * d_h.weight[i, j]
//     d_h.bias[i] = sum over j of h_to_d_h_add_2[j, i]
//     h.bias[i] = h.bias[i] - 0.1 * d_h.bias[i]
static void d_h_weight(const Tensors *t) {
    enum { ROWS = 8, COLUMNS = 16 };
#pragma omp for collapse(2) nowait
    for (int i0 = 0; i0 < H; i0 += ROWS)
        for (int j0 = 0; j0 < X; j0 += COLUMNS) {
            real sums[ROWS * COLUMNS];
            int rows = H;
            int columns = X;
            Matrix left = transposed(matrix(t->h_to_d_h_add_2, H));
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
                        row_sums[i - i0] += t->h_to_d_h_add_2[k * H + i];
                for (int i = i0; i < i0 + rows; i++) {
                    real sum = row_sums[i - i0];
                    t->h_bias[i] -= 0.1f * sum;
                }
            }
        }
}

// loss = huber(output, y, delta = 2)                                                               curved.mt:14
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
    case 1: h_to_d_h(t, batch); break;
    case 2: d_output_weight(t); break;
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

// h = mish(linear(x, 3))                                                                            curved.mt:9
// output = elu(linear(h, 2), 0.5)                                                                  curved.mt:10
// loss = huber(output, y, delta = 2)                                                               curved.mt:14
static void eval_h_to_loss_part(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
        int64_t example = row(batch, i);
        real row_share = share(batch, i);
        real h[H];
        real h_add[Y];

        // h[i, j] = ((sum over k of x[i, k] * h.weight[j, k]) + h.bias[j]) *
        //         tanh(softplus((sum over l of x[i, l] * h.weight[j, l]) + h.bias[j]))
        for (int j = 0; j < H; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < X; k++)
                sum += t->x[example * X + k] * t->h_weight[j * X + k];
            real x_add = sum + t->h_bias[j];
            h[j] = x_add * tanh(softplus(x_add));
        }
        for (int j = 0; j < Y; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < H; k++)
                sum += h[k] * t->output_weight[j * H + k];
            real h_add_2 = sum + t->output_bias[j];
            bool h_gt = h_add_2 > 0.0f;
            h_add[j] = h_add_2;
            t->eval_output[i * Y + j] = h_gt ? h_add_2 : 0.5f * expm1(h_gt ? 0.0f : h_add_2);
        }

        // output_sum[i] = sum over j of (fabs(output[i, j] - y[i, j]) <= 2 ? (output[i, j] - y[i, j]) *
        //         (output[i, j] - y[i, j]) * 0.5 : 2 * (fabs(output[i, j] - y[i, j]) - 1))
        real output_sum = 0;
        for (int j = 0; j < Y; j++) {
            bool h_gt = h_add[j] > 0.0f;
            real output = h_gt ? h_add[j] : 0.5f * expm1(h_gt ? 0.0f : h_add[j]);
            real output_sub = output - t->y[example * Y + j];
            real output_abs = fabs(output_sub);
            output_sum += output_abs <= 2.0f ? output_sub * output_sub * 0.5f : 2.0f * (output_abs - 1.0f);
        }

        // loss_part[i] = output_sum[i] * 0.5 * share(i)
        t->eval_loss_part[i] = output_sum * 0.5f * row_share;
    }
}

// loss = huber(output, y, delta = 2)                                                               curved.mt:14
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
    {NULL, 4, "x : f32[4]"},                          // 0: x
    {NULL, 9, "h = mish(linear(x, 3))"},              // 1: h.weight
    {NULL, 10, "output = elu(linear(h, 2), 0.5)"},    // 2: output.weight
    {NULL, 14, "loss = huber(output, y, delta = 2)"}, // 3: eval_loss_part
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
    {.name = "h.weight", .rank = 2, .dim = {3, 4}, .offset = 0, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 1},
    {.name = "h.bias", .rank = 1, .dim = {3}, .offset = 256, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 1},
    {.name = "output.weight", .rank = 2, .dim = {2, 3}, .offset = 512, .init = MTC_UNIFORM, .a = -0.5773502691896257,
     .b = 0.5773502691896257, .statement = 2},
    {.name = "output.bias", .rank = 1, .dim = {2}, .offset = 768, .init = MTC_UNIFORM, .a = -0.5773502691896257,
     .b = 0.5773502691896257, .statement = 2},
    VALUE("x", MTC_F32, 1024, 0, 0, 2, {4, 4}),
    VALUE("h", MTC_F32, 1792, 1, 1, 2, {4, 3}),
    VALUE("loss_part", MTC_F32, 1280, 3, 1, 1, {4}),
    VALUE("h_to_d_h_add", MTC_F32, 1536, 2, 1, 2, {4, 2}),
    VALUE("h_to_d_h_add", MTC_F32, 2048, 1, 1, 2, {4, 3}),
};
// clang-format on
#undef VALUE
static const MtcField field_table[] = {
    {.name = "x", .type = MTC_F32, .rank = 1, .dim = {4}, .elements = 4, .classes = 0, .predicts = true},
    {.name = "y", .type = MTC_F32, .rank = 1, .dim = {2}, .elements = 2, .classes = 0, .predicts = false},
};
static const char *const paths[] = {"a", "b"};
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
    {"x", 0, 0, MTC_MATH_FP32, 16, 64},
    {"h_to_d_h", 1, 1, MTC_MATH_FP32, 592, 332},
    {"d_output_weight", 2, 2, MTC_MATH_FP32, 48, 144},
    {"d_h_weight", 1, 2, MTC_MATH_FP32, 96, 232},
    {"report_loss", 3, 2, MTC_MATH_FP32, 4, 20},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "curved",
    .source = "curved.mt",
    .target = "cpu",
    .architectures = "",
    .schedule = "openmp",
    .model_hash = "fe3d1fb64fb253a963e96e4df8d060fafc538280c8c50e7223bd46d84109185c",
    .training = "loss = huber(output, y, delta = 2)\n"
                "optimizer = sgd(0.1)\n"
                "batch = 4",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 23,
    .flops_per_step = 756,
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
