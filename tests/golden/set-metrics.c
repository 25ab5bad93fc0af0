// set-metrics: a model of 5 parameters, compiled by mtc from set-metrics.mt
//
//   step      240 FLOP in 3 phases
//   memory    1.5 KB arena (2.0 KB without sharing): weights 512 B, optimizer state 0 B, values 1.0 KB
//
//   phase 1   x
//   phase 2   y_to_d_y
//   phase 3   d_y_weight
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

enum { BATCH = 8, X = 4 };
enum { REPORT_LOSS, REPORT_MAE, REPORTS };

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

typedef struct Tensors {
    const float *x;            // data set: [examples, X]
    const float *price;        // data set: [examples, 1]
    real *y_weight;            // [1, X]
    real *y_bias;              // [1]
    real *eval_y;              // [BATCH, 1]
    real *x_2;                 // [BATCH, X]
    real *eval_keep_eval_cast; // [BATCH, 1]
    real *loss_part;           // [BATCH]
    real *mae_part;            // [BATCH]
    real *d_y;                 // [BATCH, 1]
} Tensors;

static Tensors tensors(const MtcRun *run) {
    return (Tensors){
        .x = (const float *)run->data.field[0],
        .price = (const float *)run->data.field[1],
        .y_weight = (real *)(run->arena + 0),
        .y_bias = (real *)(run->arena + 256),
        .eval_y = (real *)(run->arena + 512),
        .x_2 = (real *)(run->arena + 512),
        .eval_keep_eval_cast = (real *)(run->arena + 768),
        .loss_part = (real *)(run->arena + 768),
        .mae_part = (real *)(run->arena + 1024),
        .d_y = (real *)(run->arena + 1280),
    };
}

// ---- training step ------------------------------------------------------------------------------------------

// x : f32[4]                                                                                   set-metrics.mt:4
static void x(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
#pragma omp simd
        for (int j = 0; j < X; j++)
            t->x_2[i * X + j] = t->x[row(batch, i) * X + j];
    }
}

// y = linear(x, 1)                                                                             set-metrics.mt:8
// loss = mse(y, price)                                                                        set-metrics.mt:11
// metric = [rmse(y, price), mae(y, price), r2(y, price)]                                      set-metrics.mt:12
static void y_to_d_y(const Tensors *t, const Batch *batch) {
    real y_bias = t->y_bias[0];
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
        int64_t example = row(batch, i);
        real row_share = share(batch, i);
        real y_sub[1];

        // y[i, 0] = (sum over k of x[i, k] * y.weight[0, k]) + y.bias[0]
        // d_y[i, 0] = share(i) * (y[i, 0] - price[i, 0]) + share(i) * (y[i, 0] - price[i, 0])
        real price = t->price[example];
        for (int j = 0; j < 1; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < X; k++)
                sum += t->x[example * X + k] * t->y_weight[k];
            real y_sub_2 = sum + y_bias - price;
            real share_mul = row_share * y_sub_2;
            y_sub[j] = y_sub_2;
            t->d_y[i] = share_mul + share_mul;
        }

        // loss_part[i] = (y[i, 0] - price[i, 0]) * (y[i, 0] - price[i, 0]) * share(i)
        // mae_part[i] = fabs(y[i, 0] - price[i, 0]) * share(i)
        t->loss_part[i] = y_sub[0] * y_sub[0] * row_share;
        t->mae_part[i] = fabs(y_sub[0]) * row_share;
    }
}

// gradient of y = linear(x, 1)                                                                 set-metrics.mt:8
// optimizer = sgd(0.1)                                                                        set-metrics.mt:13
//     d_y.weight[0, j] = sum over k of d_y[k, 0] * x[k, j]
//     y.weight[0, j] = y.weight[0, j] - 0.1 * d_y.weight[0, j]
//     d_y.bias[0] = sum over j of d_y[j, 0]
//     y.bias[0] = y.bias[0] - 0.1 * d_y.bias[0]
static void d_y_weight(const Tensors *t) {
    enum { ROWS = 8, COLUMNS = 16 };
#pragma omp for collapse(2) nowait
    for (int i0 = 0; i0 < 1; i0 += ROWS)
        for (int j0 = 0; j0 < X; j0 += COLUMNS) {
            real sums[ROWS * COLUMNS];
            int rows = 1;
            int columns = X;
            Matrix left = transposed(matrix(t->d_y, 1));
            Matrix right = matrix(t->x_2, X);
            matmul(sums, COLUMNS, left, right, i0, j0, rows, columns, BATCH);
            for (int i = i0; i < i0 + rows; i++)
#pragma omp simd
                for (int j = j0; j < j0 + columns; j++) {
                    real sum = sums[(i - i0) * COLUMNS + j - j0];
                    t->y_weight[j] -= 0.1f * sum;
                }
            if (j0 == 0) {
                real row_sums[ROWS] = {0};
                for (int k = 0; k < BATCH; k++)
                    for (int i = i0; i < i0 + rows; i++)
                        row_sums[i - i0] += t->d_y[k];
                for (int i = i0; i < i0 + rows; i++) {
                    real sum = row_sums[i - i0];
                    t->y_bias[i] -= 0.1f * sum;
                }
            }
        }
}

// loss = mse(y, price)                                                                        set-metrics.mt:11
// metric = [rmse(y, price), mae(y, price), r2(y, price)]                                      set-metrics.mt:12
static void report_loss(const Tensors *t, const Batch *batch) {
#pragma omp single nowait
    {

        // loss = sum over i of loss_part[i]
        // mae = sum over i of mae_part[i]
        real loss_part_sum = 0;
        real mae_part_sum = 0;
        for (int j = 0; j < BATCH; j++) {
            loss_part_sum += t->loss_part[j];
            mae_part_sum += t->mae_part[j];
        }
        batch->reports[REPORT_LOSS] = loss_part_sum;
        batch->reports[REPORT_MAE] = mae_part_sum;
    }
}

// ---- phases: one after the other; the kernels of a phase run at the same time -------------------------------

static void train_kernel(const Tensors *t, const Batch *batch, int kernel) {
    switch (kernel) {
    case 0: x(t, batch); break;
    case 1: y_to_d_y(t, batch); break;
    case 2: d_y_weight(t); break;
    case 3: report_loss(t, batch); break;
    }
}

enum { TRAIN_PHASES = 3 };
// the first kernel behind each phase
static const int train_ends[TRAIN_PHASES] = {1, 2, 4};

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

// y = linear(x, 1)                                                                             set-metrics.mt:8
//     y[i, 0] = (sum over k of x[i, k] * y.weight[0, k]) + y.bias[0]
static void eval_keep_y(const Tensors *t, const Batch *batch) {
    real y_bias = t->y_bias[0];
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
        int64_t example = row(batch, i);
        for (int j = 0; j < 1; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < X; k++)
                sum += t->x[example * X + k] * t->y_weight[k];
            t->eval_y[i] = sum + y_bias;
        }
    }
}

// metric = [rmse(y, price), mae(y, price), r2(y, price)]                                      set-metrics.mt:12
//     eval_keep_eval_cast[i, 0] = price[i, 0]
static void eval_keep_eval(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
        real price = t->price[row(batch, i)];
#pragma omp simd
        for (int j = 0; j < 1; j++)
            t->eval_keep_eval_cast[i] = (real)price;
    }
}

// loss = mse(y, price)                                                                        set-metrics.mt:11
// metric = [rmse(y, price), mae(y, price), r2(y, price)]                                      set-metrics.mt:12
static void eval_report_loss(const Tensors *t, const Batch *batch) {
#pragma omp single nowait
    {

        // loss_part[i] = (y[i, 0] - price[i, 0]) * (y[i, 0] - price[i, 0]) * share(i)
        // loss = sum over i of loss_part[i]
        // mae_part[i] = fabs(y[i, 0] - price[i, 0]) * share(i)
        // mae = sum over i of mae_part[i]
        real loss_part_sum = 0;
        real mae_part_sum = 0;
        for (int j = 0; j < BATCH; j++) {
            real y_sub = t->eval_y[j] - t->price[row(batch, j)];
            loss_part_sum += y_sub * y_sub * share(batch, j);
            mae_part_sum += fabs(y_sub) * share(batch, j);
        }
        batch->reports[REPORT_LOSS] = loss_part_sum;
        batch->reports[REPORT_MAE] = mae_part_sum;
    }
}

static void eval_kernel(const Tensors *t, const Batch *batch, int kernel) {
    switch (kernel) {
    case 0: eval_keep_y(t, batch); break;
    case 1: eval_keep_eval(t, batch); break;
    case 2: eval_report_loss(t, batch); break;
    }
}

enum { EVAL_PHASES = 2 };
// the first kernel behind each phase
static const int eval_ends[EVAL_PHASES] = {2, 3};

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
    {NULL, 4, "x : f32[4]"},
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
     .b = 0.49999999999999994, .statement = 1},
    {.name = "y.bias", .rank = 1, .dim = {1}, .offset = 256, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 1},
    VALUE("x", MTC_F32, 512, 0, 0, 2, {8, 4}),
    VALUE("loss_part", MTC_F32, 768, 2, 1, 1, {8}),
    VALUE("mae_part", MTC_F32, 1024, 3, 1, 1, {8}),
    VALUE("d_y", MTC_F32, 1280, 2, 1, 2, {8, 1}),
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
    {.offset = 512, .elements = 1},
    {.offset = 768, .elements = 1},
};
static const MtcSetMetric set_metric_table[] = {
    {.compute = mtc_metric_rmse, .inputs = 2, .input = {0, 1}},
    {.compute = mtc_metric_r2, .inputs = 2, .input = {0, 1}},
};
// name; statement; phase, from 0 on; what its arithmetic is in, how much of it; bytes, if every buffer is touched once
// clang-format off
static const MtcKernel kernel_table[] = {
    {"x", 0, 0, MTC_MATH_FP32, 32, 128},
    {"y_to_d_y", 1, 1, MTC_MATH_FP32, 128, 276},
    {"d_y_weight", 1, 2, MTC_MATH_FP32, 64, 200},
    {"report_loss", 2, 2, MTC_MATH_FP32, 16, 72},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "set-metrics",
    .source = "set-metrics.mt",
    .target = "cpu",
    .architectures = "",
    .schedule = "openmp",
    .model_hash = "f9ae9a2da4fff11d47a3057aaef4ac7e71f4ac3dbc30f2ea8f09730f46665759",
    .training = "loss = mse(y, price)\n"
                "metric = [rmse(y, price), mae(y, price), r2(y, price)]\n"
                "optimizer = sgd(0.1)\n"
                "batch = 8",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 5,
    .flops_per_step = 240,
    .arena_bytes = 1536,
    .unshared_bytes = 2048,
    .train_phases = 3,
    .eval_phases = 2,
    .tensors = 6,
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
    .prediction_offset = 512,
    .prediction_rank = 1,
    .prediction_dim = {1},
    .prediction_is_classes = false,
    .set_inputs = 2,
    .set_metrics = 2,
    .set_input = set_input_table,
    .set_metric = set_metric_table,
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
