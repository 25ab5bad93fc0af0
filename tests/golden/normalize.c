// normalize: a model of 7 parameters, compiled by mtc from normalize.mt
//
//   step      148 FLOP in 2 phases
//   memory    2.2 KB arena (2.8 KB without sharing): weights 1.5 KB, optimizer state 0 B, values 768 B
//
//   phase 1   y_to_d_y
//             to_y
//   phase 2   d_y_weight
//             report_loss
//
// From top to bottom: sizes; tensors; one function per kernel, in the order of a training step; the phases that
// group them; the step; evaluation; measuring; tables for the runtime; main.
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

enum { BATCH = 4, X_ROWS = 2, X_COLUMNS = 3, X = 6 };
enum { REPORT_LOSS, REPORTS };

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

typedef struct Tensors {
    const unsigned char *x; // data set: [examples, X_ROWS, X_COLUMNS]
    const float *price;     // data set: [examples]
    real *x_mean;           // [X_ROWS, X_COLUMNS]
    real *x_std;            // [X_ROWS, X_COLUMNS]
    real *y_weight;         // [1, X]
    real *y_bias;           // [1]
    real *price_mean;
    real *price_std;
    real *eval_loss_part;  // [BATCH]
    real *loss_part;       // [BATCH]
    real *d_y;             // [BATCH, 1]
    real *eval_prediction; // [BATCH, 1]
    real *to_y_mul;        // [BATCH, X_ROWS, X_COLUMNS]
} Tensors;

static Tensors tensors(const MtcRun *run) {
    return (Tensors){
        .x = (const unsigned char *)run->data.field[0],
        .price = (const float *)run->data.field[1],
        .x_mean = (real *)(run->arena + 0),
        .x_std = (real *)(run->arena + 256),
        .y_weight = (real *)(run->arena + 512),
        .y_bias = (real *)(run->arena + 768),
        .price_mean = (real *)(run->arena + 1024),
        .price_std = (real *)(run->arena + 1280),
        .eval_loss_part = (real *)(run->arena + 1536),
        .loss_part = (real *)(run->arena + 1536),
        .d_y = (real *)(run->arena + 1792),
        .eval_prediction = (real *)(run->arena + 1792),
        .to_y_mul = (real *)(run->arena + 2048),
    };
}

// ---- training step ------------------------------------------------------------------------------------------

// y = linear(flatten(normalize(x)), 1)                                                           normalize.mt:9
// loss = mse(y, normalize(price))                                                               normalize.mt:13
static void y_to_d_y(const Tensors *t, const Batch *batch) {
    real y_bias = t->y_bias[0];
    real price_mean = t->price_mean[0];
    real price_std = t->price_std[0];
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
        int64_t example = row(batch, i);
        real row_share = share(batch, i);
        real x_reshape[X];
        real y_sub[1];
        for (int j = 0; j < X; j++) {
            real x_std = t->x_std[j];
            x_reshape[j] = ((real)t->x[example * X + j] - t->x_mean[j]) * (1.0f / (x_std > 0.0f ? x_std : 1.0f));
        }

        // y[i, 0] = (sum over k of to_y_mul[i, k / X_COLUMNS, k % X_COLUMNS] * y.weight[0, k]) + y.bias[0]
        // d_y[i, 0] = share(i) * (y[i, 0] - (price[i] - price.mean) * (... / ...)) + share(i) *
        //         (y[i, 0] - (price[i] - price.mean) * (... / ...))
        real price = t->price[example];
        for (int j = 0; j < 1; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < X; k++)
                sum += x_reshape[k] * t->y_weight[k];
            real y_sub_2 = sum + y_bias - (price - price_mean) * (1.0f / (price_std > 0.0f ? price_std : 1.0f));
            real share_mul = row_share * y_sub_2;
            y_sub[j] = y_sub_2;
            t->d_y[i] = share_mul + share_mul;
        }

        // loss_part[i] = (y[i, 0] - (price[i] - ...) * ...) * (y[i, 0] - (price[i] - ...) * ...) * share(i)
        t->loss_part[i] = y_sub[0] * y_sub[0] * row_share;
    }
}

// y = linear(flatten(normalize(x)), 1)                                                           normalize.mt:9
//     to_y_mul[i, j, k] = (x[i, j, k] - x.mean[j, k]) * (1 / (x.std[j, k] > 0 ? x.std[j, k] : 1))
static void to_y(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
#pragma omp simd
        for (int j = 0; j < X_ROWS * X_COLUMNS; j++) {
            real x_sub = (real)t->x[row(batch, i) * X + j] - t->x_mean[j];
            real x_std = t->x_std[j];
            t->to_y_mul[i * X_ROWS * X_COLUMNS + j] = x_sub * (1.0f / (x_std > 0.0f ? x_std : 1.0f));
        }
    }
}

// gradient of y = linear(flatten(normalize(x)), 1)                                               normalize.mt:9
// optimizer = sgd(0.1)                                                                          normalize.mt:15
//     d_y.weight[0, j] = sum over k of d_y[k, 0] * to_y_mul[k, j / X_COLUMNS, j % X_COLUMNS]
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
            Matrix right = matrix(t->to_y_mul, X);
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

// loss = mse(y, normalize(price))                                                               normalize.mt:13
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

// y = linear(flatten(normalize(x)), 1)                                                           normalize.mt:9
// loss = mse(y, normalize(price))                                                               normalize.mt:13
// predict = denormalize(y, price)                                                               normalize.mt:14
static void eval_y_to_prediction(const Tensors *t, const Batch *batch) {
    real y_bias = t->y_bias[0];
    real price_std = t->price_std[0];
    real price_mean = t->price_mean[0];
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
        int64_t example = row(batch, i);
        real row_share = share(batch, i);
        real x_reshape[X];
        real y[1];
        for (int j = 0; j < X; j++) {
            real x_std = t->x_std[j];
            x_reshape[j] = ((real)t->x[example * X + j] - t->x_mean[j]) * (1.0f / (x_std > 0.0f ? x_std : 1.0f));
        }

        // y[i, 0] = (sum over k of (x[i, k / X_COLUMNS, k % X_COLUMNS] - x.mean[k / X_COLUMNS, k % X_COLUMNS]) *
        //         (... / (... ? x.std[k / X_COLUMNS, k % X_COLUMNS] : ...)) * y.weight[0, k]) + y.bias[0]
        // prediction[i, 0] = y[i, 0] * (price.std > 0 ? price.std : 1) + price.mean
        for (int j = 0; j < 1; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < X; k++)
                sum += x_reshape[k] * t->y_weight[k];
            real y_2 = sum + y_bias;
            y[j] = y_2;
            t->eval_prediction[i] = y_2 * (price_std > 0.0f ? price_std : 1.0f) + price_mean;
        }

        // loss_part[i] = (y[i, 0] - (price[i] - ...) * ...) * (y[i, 0] - (price[i] - ...) * ...) * share(i)
        real price_mul = (t->price[example] - price_mean) * (1.0f / (price_std > 0.0f ? price_std : 1.0f));
        real y_sub = y[0] - price_mul;
        t->eval_loss_part[i] = y_sub * y_sub * row_share;
    }
}

// loss = mse(y, normalize(price))                                                               normalize.mt:13
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

// ---- measuring: mean and deviation of the fields that are normalized ----------------------------------------

// y = linear(flatten(normalize(x)), 1)                                                           normalize.mt:9
static void measure_x(const Tensors *t, const Batch *batch) {
    bool some_before = examples_before(batch) > 0.0f;
    real part = examples(batch) / (examples_before(batch) + examples(batch));
#pragma omp single nowait
    {
        // first[i, j] = sum over k of (k == 0 ? x[k, i, j] : 0)
        real first[X_ROWS * X_COLUMNS] = {0};
        for (int k = 0; k < BATCH; k++) {
#pragma omp simd
            for (int j = 0; j < X_ROWS * X_COLUMNS; j++)
                first[j] += k == 0 ? (real)t->x[row(batch, k) * X + j] : 0.0f;
        }

        // offset[i, j] = sum over k of (x[k, i, j] - first[i, j]) * share(k)
        real offset[X_ROWS * X_COLUMNS] = {0};
        for (int k = 0; k < BATCH; k++) {
#pragma omp simd
            for (int j = 0; j < X_ROWS * X_COLUMNS; j++) {
                real x_sub = (real)t->x[row(batch, k) * X + j] - first[j];
                offset[j] += x_sub * share(batch, k);
            }
        }

        // x_batch_mean[i, j] = first[i, j] + offset[i, j]
        // batch_variance[i, j] = sum over k of (x[k, i, j] - x_batch_mean[i, j]) * (x[k, i, j] - x_batch_mean[i, j]) *
        //         share(k)
        real batch_variance[X_ROWS * X_COLUMNS] = {0};
        for (int k = 0; k < BATCH; k++) {
#pragma omp simd
            for (int j = 0; j < X_ROWS * X_COLUMNS; j++) {
                real difference = (real)t->x[row(batch, k) * X + j] - (first[j] + offset[j]);
                batch_variance[j] += difference * difference * share(batch, k);
            }
        }

        // x.mean[i, j] = (examples_before > 0 ? x.mean[i, j] : 0) + examples / (examples_before + examples) *
        //         (x_batch_mean[i, j] - (examples_before > 0 ? x.mean[i, j] : 0))
#pragma omp simd
        for (int j = 0; j < X_ROWS * X_COLUMNS; j++) {
            real x_mean = t->x_mean[j];
            real mean_before = some_before ? x_mean : 0.0f;
            real shift = first[j] + offset[j] - mean_before;
            real x_std = t->x_std[j];
            real std_before = some_before ? x_std : 0.0f;
            real variance = std_before * std_before;
            real change = part * (batch_variance[j] - variance + (1.0f - part) * (shift * shift));
            real both_std = std_before + sqrt(variance + change);
            t->x_mean[j] = mean_before + part * shift;
            t->x_std[j] = std_before + change / (both_std > 0.0f ? both_std : 1.0f);
        }
    }
}

// loss = mse(y, normalize(price))                                                               normalize.mt:13
static void measure_price(const Tensors *t, const Batch *batch) {
    bool some_before = examples_before(batch) > 0.0f;
    real part = examples(batch) / (examples_before(batch) + examples(batch));
#pragma omp single nowait
    {

        // first = sum over i of (i == 0 ? price[i] : 0)
        real first = 0;
        for (int j = 0; j < BATCH; j++) {
            real price = t->price[row(batch, j)];
            first += j == 0 ? price : 0.0f;
        }

        // offset = sum over i of (price[i] - first) * share(i)
        real offset = 0;
#pragma omp simd reduction(+ : offset)
        for (int j = 0; j < BATCH; j++)
            offset += (t->price[row(batch, j)] - first) * share(batch, j);

        // price_batch_mean = first + offset
        // batch_variance = sum over i of (price[i] - price_batch_mean) * (price[i] - price_batch_mean) * share(i)
        real batch_variance = 0;
        real price_batch_mean = first + offset;
        for (int j = 0; j < BATCH; j++) {
            real difference = t->price[row(batch, j)] - price_batch_mean;
            batch_variance += difference * difference * share(batch, j);
        }

        // price.mean = (examples_before > 0 ? price.mean : 0) + examples / (examples_before + examples) *
        //         (price_batch_mean - (examples_before > 0 ? price.mean : 0))
        real price_mean = t->price_mean[0];
        real mean_before = some_before ? price_mean : 0.0f;
        real shift = price_batch_mean - mean_before;
        real price_std = t->price_std[0];
        real std_before = some_before ? price_std : 0.0f;
        real variance = std_before * std_before;
        real change = part * (batch_variance - variance + (1.0f - part) * (shift * shift));
        real both_std = std_before + sqrt(variance + change);
        t->price_mean[0] = mean_before + part * shift;
        t->price_std[0] = std_before + change / (both_std > 0.0f ? both_std : 1.0f);
    }
}

static void measure_kernel(const Tensors *t, const Batch *batch, int kernel) {
    switch (kernel) {
    case 0: measure_x(t, batch); break;
    case 1: measure_price(t, batch); break;
    }
}

enum { MEASURE_PHASES = 1 };
// the first kernel behind each phase
static const int measure_ends[MEASURE_PHASES] = {2};

static void measure_phases(const Tensors *t, const Batch *batch, Team *team, int count) {
    for (int phase = 0, kernel = 0; phase < count; phase++) {
        for (; kernel < measure_ends[phase]; kernel++)
            measure_kernel(t, batch, kernel);
        team_wait(team);
    }
}

static const char *measure(const MtcRun *run, int64_t first, int64_t rows) {
    Tensors t = tensors(run);
    Batch batch = batch_of_examples(run, first, rows, 0, REPORTS);
    Team team = TEAM_READY;
#pragma omp parallel num_threads(1) // a second thread would save less than waiting for it costs
    {
        FloatMode before = flush_subnormals();
        measure_phases(&t, &batch, &team, MEASURE_PHASES);
        set_float_mode(before);
    }
    return NULL;
}

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
    .target = "cpu",
    .architectures = "",
    .schedule = "openmp",
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
    .measure = measure,
    .run_kernel = run_kernel,
    .prepare = prepare,
    .release = release,
};

// ---- main ---------------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    return mtc_main(&mtc_model, argc, argv);
}
