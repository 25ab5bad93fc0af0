// views: a model of 27 parameters, compiled by mtc from views.mt
//
//   step      544 FLOP in 2 phases
//   memory    1.2 KB arena (1.8 KB without sharing): weights 512 B, optimizer state 0 B, values 768 B
//
//   phase 1   y_to_d_y
//             to_y
//   phase 2   d_y_weight
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

enum { BATCH = 4, X = 6, B_COLUMNS = 2, B_ROWS = 3, Y_WEIGHT_COLUMNS = 8, Y = 3 };
enum { REPORT_LOSS, REPORTS };

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

typedef struct Tensors {
    const float *x;             // data set: [examples, X]
    const unsigned char *label; // data set: [examples]
    real *y_weight;             // [Y, Y_WEIGHT_COLUMNS]
    real *y_bias;               // [Y]
    real *eval_loss_part;       // [BATCH]
    real *loss_part;            // [BATCH]
    real *d_y;                  // [BATCH, Y]
    real *eval_prediction;      // [BATCH, Y]
    real *to_y_add;             // [BATCH, Y_WEIGHT_COLUMNS]
} Tensors;

static Tensors tensors(const MtcRun *run) {
    return (Tensors){
        .x = (const float *)run->data.field[0],
        .label = (const unsigned char *)run->data.field[1],
        .y_weight = (real *)(run->arena + 0),
        .y_bias = (real *)(run->arena + 256),
        .eval_loss_part = (real *)(run->arena + 512),
        .loss_part = (real *)(run->arena + 512),
        .d_y = (real *)(run->arena + 768),
        .eval_prediction = (real *)(run->arena + 768),
        .to_y_add = (real *)(run->arena + 1024),
    };
}

// ---- training step ------------------------------------------------------------------------------------------

// y = linear(concat([a, flatten(b)], axis = 0), 3)                                                  views.mt:11
// loss = cross_entropy(y, label)                                                                    views.mt:15
static void y_to_d_y(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
        int64_t example = row(batch, i);
        real row_share = share(batch, i);
        real a_add[Y_WEIGHT_COLUMNS];
        real y[Y];
        for (int j = 0; j < Y_WEIGHT_COLUMNS; j++) {
            real b_pad = j >= 2 ? t->x[example * X + (j - 2) % B_COLUMNS * B_ROWS + (j - 2) / B_COLUMNS] : 0.0f;
            a_add[j] = (j < 2 ? t->x[example * X + j] : 0.0f) + b_pad;
        }

        // y[i, j] = (sum over k of to_y_add[i, k] * y.weight[j, k]) + y.bias[j]
        for (int j = 0; j < Y; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < Y_WEIGHT_COLUMNS; k++)
                sum += a_add[k] * t->y_weight[j * Y_WEIGHT_COLUMNS + k];
            y[j] = sum + t->y_bias[j];
        }

        // y_max[i] = max over j of y[i, j]
        real y_max = -INFINITY;
        for (int j = 0; j < Y; j++)
            y_max = fmax(y_max, y[j]);

        // y_sum[i] = sum over j of exp(y[i, j] - y_max[i])
        // target_score[i] = sum over j of (label[i] == j ? y[i, j] - y_max[i] : 0)
        real y_sum = 0;
        real target_score = 0;
        int label = t->label[example];
        for (int j = 0; j < Y; j++) {
            real y_sub = y[j] - y_max;
            y_sum += exp(y_sub);
            target_score += label == j ? y_sub : 0.0f;
        }

        // loss_part[i] = (log(y_sum[i]) - target_score[i]) * share(i)
        t->loss_part[i] = (log(y_sum) - target_score) * row_share;

        // d_y[i, j] = share(i) / y_sum[i] * exp(y[i, j] - y_max[i]) - (label[i] == j ? share(i) : 0)
        for (int j = 0; j < Y; j++)
            t->d_y[i * Y + j] = row_share / y_sum * exp(y[j] - y_max) - (label == j ? row_share : 0.0f);
    }
}

// y = linear(concat([a, flatten(b)], axis = 0), 3)                                                  views.mt:11
//     a[i, j] = x[i, j]
//     b[i, j, k] = x[i, k * B_ROWS + j]
//     to_y_add[i, j] = (j < 2 ? a[i, j] : 0) + (j >= 2 ? b[i, (j - 2) / B_COLUMNS, (j - 2) % B_COLUMNS] : 0)
static void to_y(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
#pragma omp simd
        for (int j = 0; j < Y_WEIGHT_COLUMNS; j++) {
            real a_pad = j < 2 ? t->x[row(batch, i) * X + j] : 0.0f;
            real b_pad = j >= 2 ? t->x[row(batch, i) * X + (j - 2) % B_COLUMNS * B_ROWS + (j - 2) / B_COLUMNS] : 0.0f;
            t->to_y_add[i * Y_WEIGHT_COLUMNS + j] = a_pad + b_pad;
        }
    }
}

// gradient of y = linear(concat([a, flatten(b)], axis = 0), 3)                                      views.mt:11
// optimizer = sgd(0.1)                                                                              views.mt:16
//     d_y.weight[i, j] = sum over k of d_y[k, i] * to_y_add[k, j]
//     y.weight[i, j] = y.weight[i, j] - 0.1 * d_y.weight[i, j]
//     d_y.bias[i] = sum over j of d_y[j, i]
//     y.bias[i] = y.bias[i] - 0.1 * d_y.bias[i]
static void d_y_weight(const Tensors *t) {
    enum { ROWS = 8, COLUMNS = 16 };
#pragma omp for collapse(2) nowait
    for (int i0 = 0; i0 < Y; i0 += ROWS)
        for (int j0 = 0; j0 < Y_WEIGHT_COLUMNS; j0 += COLUMNS) {
            real sums[ROWS * COLUMNS];
            int rows = Y;
            int columns = Y_WEIGHT_COLUMNS;
            Matrix left = transposed(matrix(t->d_y, Y));
            Matrix right = matrix(t->to_y_add, Y_WEIGHT_COLUMNS);
            matmul(sums, COLUMNS, left, right, i0, j0, rows, columns, BATCH);
            for (int i = i0; i < i0 + rows; i++)
#pragma omp simd
                for (int j = j0; j < j0 + columns; j++) {
                    real sum = sums[(i - i0) * COLUMNS + j - j0];
                    t->y_weight[i * Y_WEIGHT_COLUMNS + j] -= 0.1f * sum;
                }
            if (j0 == 0) {
                real row_sums[ROWS] = {0};
                for (int k = 0; k < BATCH; k++)
                    for (int i = i0; i < i0 + rows; i++)
                        row_sums[i - i0] += t->d_y[k * Y + i];
                for (int i = i0; i < i0 + rows; i++) {
                    real sum = row_sums[i - i0];
                    t->y_bias[i] -= 0.1f * sum;
                }
            }
        }
}

// loss = cross_entropy(y, label)                                                                    views.mt:15
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
    case 0: y_to_d_y(t, batch); break;
    case 1: to_y(t, batch); break;
    case 2: d_y_weight(t); break;
    case 3: report_loss(t, batch); break;
    }
}

enum { TRAIN_PHASES = 2 };
// the first kernel behind each phase
static const int train_ends[TRAIN_PHASES] = {2, 4};

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

// y = linear(concat([a, flatten(b)], axis = 0), 3)                                                  views.mt:11
// loss = cross_entropy(y, label)                                                                    views.mt:15
static void eval_y_to_prediction(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
        int64_t example = row(batch, i);
        real row_share = share(batch, i);
        real a_add[Y_WEIGHT_COLUMNS];
        real y[Y];

        // a[i, j] = x[i, j]
        // b[i, j, k] = x[i, k * B_ROWS + j]
        for (int j = 0; j < Y_WEIGHT_COLUMNS; j++) {
            real b_pad = j >= 2 ? t->x[example * X + (j - 2) % B_COLUMNS * B_ROWS + (j - 2) / B_COLUMNS] : 0.0f;
            a_add[j] = (j < 2 ? t->x[example * X + j] : 0.0f) + b_pad;
        }

        // y[i, j] = (sum over k of ((k < 2 ? a[i, k] : 0) + (k >= 2 ? b[i, (k - 2) / B_COLUMNS, (k - 2) % B_COLUMNS] :
        //         0)) * y.weight[j, k]) + y.bias[j]
        for (int j = 0; j < Y; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < Y_WEIGHT_COLUMNS; k++)
                sum += a_add[k] * t->y_weight[j * Y_WEIGHT_COLUMNS + k];
            y[j] = sum + t->y_bias[j];
        }

        // y_max[i] = max over j of y[i, j]
        real y_max = -INFINITY;
        for (int j = 0; j < Y; j++)
            y_max = fmax(y_max, y[j]);

        // y_sum[i] = sum over j of exp(y[i, j] - y_max[i])
        // target_score[i] = sum over j of (label[i] == j ? y[i, j] - y_max[i] : 0)
        real y_sum = 0;
        real target_score = 0;
        int label = t->label[example];
        for (int j = 0; j < Y; j++) {
            real y_sub = y[j] - y_max;
            y_sum += exp(y_sub);
            target_score += label == j ? y_sub : 0.0f;
        }

        // loss_part[i] = (log(y_sum[i]) - target_score[i]) * share(i)
        t->eval_loss_part[i] = (log(y_sum) - target_score) * row_share;

        // prediction[i, j] = exp(y[i, j] - y_max[i]) * (1 / y_sum[i])
        for (int j = 0; j < Y; j++)
            t->eval_prediction[i * Y + j] = exp(y[j] - y_max) * (1.0f / y_sum);
    }
}

// loss = cross_entropy(y, label)                                                                    views.mt:15
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
    case 0: eval_y_to_prediction(t, batch); break;
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
    {NULL, 11, "y = linear(concat([a, flatten(b)], axis = 0), 3)"},
    {NULL, 15, "loss = cross_entropy(y, label)"},
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
    {.name = "y.weight", .rank = 2, .dim = {3, 8}, .offset = 0, .init = MTC_UNIFORM, .a = -0.35355339059327373,
     .b = 0.35355339059327373, .statement = 0},
    {.name = "y.bias", .rank = 1, .dim = {3}, .offset = 256, .init = MTC_UNIFORM, .a = -0.35355339059327373,
     .b = 0.35355339059327373, .statement = 0},
    VALUE("to_y_add", MTC_F32, 1024, 0, 0, 2, {4, 8}),
    VALUE("loss_part", MTC_F32, 512, 1, 0, 1, {4}),
    VALUE("d_y", MTC_F32, 768, 1, 0, 2, {4, 3}),
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
static const char *const report_table[] = {"loss"};
static const bool rises_table[] = {false};
// name; statement; phase, from 0 on; what its arithmetic is in, how much of it; bytes, if every buffer is touched once
// clang-format off
static const MtcKernel kernel_table[] = {
    {"y_to_d_y", 0, 0, MTC_MATH_FP32, 316, 284},
    {"to_y", 0, 0, MTC_MATH_FP32, 32, 224},
    {"d_y_weight", 0, 1, MTC_MATH_FP32, 192, 392},
    {"report_loss", 1, 1, MTC_MATH_FP32, 4, 20},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "views",
    .source = "views.mt",
    .target = "cpu",
    .architectures = "",
    .schedule = "openmp",
    .model_hash = "e0a73bcfbcc563f943aebb7c374084f96f9d1694a14be8c24b42cc49417dbe66",
    .training = "loss = cross_entropy(y, label)\n"
                "optimizer = sgd(0.1)\n"
                "batch = 4",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 27,
    .flops_per_step = 544,
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
    .run_kernel = run_kernel,
    .prepare = prepare,
    .release = release,
};

// ---- main ---------------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    return mtc_main(&mtc_model, argc, argv);
}
