// shard_statistics: a model of 63 parameters, compiled by mtc --shards 3 from shard_statistics.mt
//
//   shard     1.5 KFLOP in 12 phases
//   memory    7.2 KB arena (9.2 KB without sharing): weights 1.8 KB, optimizer state 3.0 KB, values 2.5 KB
//
//   phase 1   x
//   phase 2   to_h
//   phase 3   to_h_2
//   phase 4   over_shards_2
//   phase 5   h_mean
//   phase 6   to_h_3
//   phase 7   over_shards_2 for variance
//   phase 8   h_to_d_h
//             update_h_1_running_mean_shard_sum
//   phase 9   d_y_weight
//             d_h_1_weight
//             report_loss
//   phase 10  over_shards_2, 2 times
//   phase 11  to_d_h_0_weight
//   phase 12  d_h_0_weight
//
// From top to bottom: sizes; tensors; one function per kernel, in the order of a training step; the phases that
// group them; the step; evaluation; tables for the runtime; main.
//
// How it runs: every OpenMP thread runs the whole step and takes its share of each kernel's loop. Phases run
// one after the other, with a barrier between them; in a phase, a thread that is done with one kernel goes on
// to the next without waiting.

#include "mtc.h" // the runtime: data, command line, checkpoints

typedef float real;

#include "cpu/batch.h"       // row: the example in a row of the batch; share: its part in a mean
#include "cpu/math.h"        // exp, relu, sigmoid ... of a real
#include "cpu/matmul.h"      // matmul(sums, stride, left, right, i0, j0, rows, columns, depth)
#include "cpu/over_shards.h" // sums over the shards of a batch
#include "cpu/shard.h"       // the shards of a batch, and their sums
#include "cpu/team.h"        // the barrier between phases, subnormal numbers

// ---- sizes --------------------------------------------------------------------------------------------------

enum { BATCH = 4, X = 5, H = 6, Y = 3 };
enum { REPORT_LOSS, REPORTS };
enum { WHOLE_BATCH = 10 }; // of which BATCH are a shard

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

typedef struct Tensors {
    const float *x;                   // data set: [examples, X]
    const unsigned char *label;       // data set: [examples]
    real *h_0_weight;                 // [H, X]
    real *h_1_weight;                 // [H]
    real *h_1_bias;                   // [H]
    real *h_1_running_mean;           // [H]
    real *h_1_running_var;            // [H]
    real *y_weight;                   // [Y, H]
    real *y_bias;                     // [Y]
    real *h_1_running_mean_shard_sum; // [H]
    real *h_1_running_var_shard_sum;  // [H]
    real *h_0_weight_shard_sum;       // [H, X]
    real *h_1_weight_shard_sum;       // [H]
    real *h_1_bias_shard_sum;         // [H]
    real *y_weight_shard_sum;         // [Y, H]
    real *y_bias_shard_sum;           // [Y]
    real *eval_loss_part;             // [BATCH]
    real *x_2;                        // [BATCH, X]
    real *eval_prediction;            // [BATCH, Y]
    real *to_d_h_0_weight_mul;        // [BATCH, H], in place of to_h_matmul
    real *to_h_matmul;                // [BATCH, H]
    real *h_mean;                     // [H]
    real *to_h_2_part_of_sum;         // [H]
    real *d_h_1_weight_part_of_sum;   // [H]
    real *over_shards_2;              // [H]
    real *loss_part;                  // [BATCH]
    real *over_shards_2_2;            // [H]
    real *to_h_3_part_of_sum;         // [H]
    real *variance;                   // [H]
    real *d_y;                        // [BATCH, Y]
    real *over_shards_3;              // [H]
    real *h_to_d_h_relu;              // [BATCH, H]
    real *d_h;                        // [BATCH, H]
    real *d_h_1_weight_part_of_sum_2; // [H]
    struct over_shards_2_tensors {
        real *to_h_2_part_of_sum, *over_shards_2;
    } over_shards_2_at[4];
    struct update_h_1_running_mean_tensors {
        real *h_1_running_mean, *h_1_running_mean_shard_sum;
    } update_h_1_running_mean_at[2];
    struct update_h_0_weight_momentum_tensors {
        real *h_0_weight_momentum, *h_0_weight_shard_sum, *h_0_weight;
    } update_h_0_weight_momentum_at[2];
    struct update_h_1_weight_momentum_tensors {
        real *h_1_weight_momentum, *h_1_weight_shard_sum, *h_1_weight;
    } update_h_1_weight_momentum_at[3];
} Tensors;

static Tensors tensors(const MtcRun *run) {
    Tensors t = {
        .x = (const float *)run->data.field[0],
        .label = (const unsigned char *)run->data.field[1],
        .h_0_weight = (real *)(run->arena + 0),
        .h_1_weight = (real *)(run->arena + 256),
        .h_1_bias = (real *)(run->arena + 512),
        .h_1_running_mean = (real *)(run->arena + 768),
        .h_1_running_var = (real *)(run->arena + 1024),
        .y_weight = (real *)(run->arena + 1280),
        .y_bias = (real *)(run->arena + 1536),
        .h_1_running_mean_shard_sum = (real *)(run->arena + 1792),
        .h_1_running_var_shard_sum = (real *)(run->arena + 2048),
        .h_0_weight_shard_sum = (real *)(run->arena + 2304),
        .h_1_weight_shard_sum = (real *)(run->arena + 2560),
        .h_1_bias_shard_sum = (real *)(run->arena + 2816),
        .y_weight_shard_sum = (real *)(run->arena + 3072),
        .y_bias_shard_sum = (real *)(run->arena + 3328),
        .eval_loss_part = (real *)(run->arena + 4864),
        .x_2 = (real *)(run->arena + 4864),
        .eval_prediction = (real *)(run->arena + 5120),
        .to_d_h_0_weight_mul = (real *)(run->arena + 5120),
        .to_h_matmul = (real *)(run->arena + 5120),
        .h_mean = (real *)(run->arena + 5376),
        .to_h_2_part_of_sum = (real *)(run->arena + 5376),
        .d_h_1_weight_part_of_sum = (real *)(run->arena + 5632),
        .over_shards_2 = (real *)(run->arena + 5632),
        .loss_part = (real *)(run->arena + 5888),
        .over_shards_2_2 = (real *)(run->arena + 5888),
        .to_h_3_part_of_sum = (real *)(run->arena + 5888),
        .variance = (real *)(run->arena + 6144),
        .d_y = (real *)(run->arena + 6400),
        .over_shards_3 = (real *)(run->arena + 6400),
        .h_to_d_h_relu = (real *)(run->arena + 6656),
        .d_h = (real *)(run->arena + 6912),
        .d_h_1_weight_part_of_sum_2 = (real *)(run->arena + 7168),
    };
    begin_at(run, t.over_shards_2_at[0], 5376, 5632);
    begin_at(run, t.over_shards_2_at[1], 5888, 6144);
    begin_at(run, t.over_shards_2_at[2], 5632, 5888);
    begin_at(run, t.over_shards_2_at[3], 7168, 6400);
    begin_at(run, t.update_h_1_running_mean_at[0], 768, 1792);
    begin_at(run, t.update_h_1_running_mean_at[1], 1024, 2048);
    begin_at(run, t.update_h_0_weight_momentum_at[0], 3584, 2304, 0);
    begin_at(run, t.update_h_0_weight_momentum_at[1], 4352, 3072, 1280);
    begin_at(run, t.update_h_1_weight_momentum_at[0], 3840, 2560, 256);
    begin_at(run, t.update_h_1_weight_momentum_at[1], 4096, 2816, 512);
    begin_at(run, t.update_h_1_weight_momentum_at[2], 4608, 3328, 1536);
    return t;
}

// ---- training step ------------------------------------------------------------------------------------------

// x : f32[5]                                                                              shard_statistics.mt:5
static void x(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
#pragma omp simd
        for (int j = 0; j < X; j++)
            t->x_2[i * X + j] = t->x[row(batch, i) * X + j];
    }
}

// h = batch_norm(linear(x, 6, bias = false), sync = true)                                shard_statistics.mt:10
//     to_h_matmul[i, j] = sum over k of x[i, k] * h.0.weight[j, k]
static void to_h(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
        int64_t example = row(batch, i);
        for (int j = 0; j < H; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < X; k++)
                sum += t->x[example * X + k] * t->h_0_weight[j * X + k];
            t->to_h_matmul[i * H + j] = sum;
        }
    }
}

// h = batch_norm(linear(x, 6, bias = false), sync = true)                                shard_statistics.mt:10
static void to_h_2(const Tensors *t, const Batch *batch) {
#pragma omp single nowait
    {
        // x_sum[i] = sum over j of (to_h_matmul[j, i] - h.1.running_mean[i]) * share(j)
        real x_sum[H] = {0};
        for (int k = 0; k < BATCH; k++) {
#pragma omp simd
            for (int j = 0; j < H; j++)
                x_sum[j] += (t->to_h_matmul[k * H + j] - t->h_1_running_mean[j]) * share(batch, k);
        }

        // to_h_2_part_of_sum[i] = x_sum[i]
#pragma omp simd
        for (int j = 0; j < H; j++)
            t->to_h_2_part_of_sum[j] = x_sum[j];
    }
}

// h = batch_norm(linear(x, 6, bias = false), sync = true)                                shard_statistics.mt:10
//     over_shards = sum over shards of to_h_2_part_of_sum
// At 4 places: over_shards_2 ... over_shards_3
static void over_shards_2(const struct over_shards_2_tensors *t) {
    const OverShards shape = {.count = H};
    over_shards(&shape, t->to_h_2_part_of_sum, t->over_shards_2);
}

// h = batch_norm(linear(x, 6, bias = false), sync = true)                                shard_statistics.mt:10
//     h.mean[i] = h.1.running_mean[i] + over_shards[i]
static void h_mean(const Tensors *t) {
#pragma omp for nowait
    for (int i = 0; i < H; i++)
        t->h_mean[i] = t->h_1_running_mean[i] + t->over_shards_2[i];
}

// h = batch_norm(linear(x, 6, bias = false), sync = true)                                shard_statistics.mt:10
static void to_h_3(const Tensors *t, const Batch *batch) {
#pragma omp single nowait
    {
        // x_sum[i] = sum over j of (to_h_matmul[j, i] - h.mean[i]) * (to_h_matmul[j, i] - h.mean[i]) * share(j)
        real x_sum[H] = {0};
        for (int k = 0; k < BATCH; k++) {
#pragma omp simd
            for (int j = 0; j < H; j++) {
                real x_sub = t->to_h_matmul[k * H + j] - t->h_mean[j];
                x_sum[j] += x_sub * x_sub * share(batch, k);
            }
        }

        // to_h_3_part_of_sum[i] = x_sum[i]
#pragma omp simd
        for (int j = 0; j < H; j++)
            t->to_h_3_part_of_sum[j] = x_sum[j];
    }
}

// h = batch_norm(linear(x, 6, bias = false), sync = true)                                shard_statistics.mt:10
// y = linear(relu(h), 3)                                                                 shard_statistics.mt:11
// loss = cross_entropy(y, label)                                                         shard_statistics.mt:15
static void h_to_d_h(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
        int64_t example = row(batch, i);
        real row_share = share(batch, i);
        real h_relu[H];
        real y[Y];
        real d_y[Y];

        // h[i, j] = (to_h_matmul[i, j] - h.mean[j]) * (1 / sqrt(variance[j] + ...)) * h.1.weight[j] + h.1.bias[j]
        // h_to_d_h_relu[i, j] = relu(h[i, j])
        for (int j = 0; j < H; j++) {
            real x_mul = (t->to_h_matmul[i * H + j] - t->h_mean[j]) * (1.0f / sqrt(t->variance[j] + 1e-05f));
            h_relu[j] = t->h_to_d_h_relu[i * H + j] = relu(x_mul * t->h_1_weight[j] + t->h_1_bias[j]);
        }

        // y[i, j] = (sum over k of h_to_d_h_relu[i, k] * y.weight[j, k]) + y.bias[j]
        for (int j = 0; j < Y; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < H; k++)
                sum += h_relu[k] * t->y_weight[j * H + k];
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

        // d_y[i, j] = share(i) / y_sum[i] * exp(y[i, j] - y_max[i]) - (label[i] == j ? share(i) : 0)
        for (int j = 0; j < Y; j++)
            d_y[j] = t->d_y[i * Y + j] = row_share / y_sum * exp(y[j] - y_max) - (label == j ? row_share : 0.0f);

        // loss_part[i] = (log(y_sum[i]) - target_score[i]) * share(i)
        t->loss_part[i] = (log(y_sum) - target_score) * row_share;

        // d_h[i, j] = h_to_d_h_relu[i, j] > 0 ? (sum over k of d_y[i, k] * y.weight[k, j]) : 0
        real totals[H] = {0};
        for (int k = 0; k < Y; k++)
            for (int j = 0; j < H; j++)
                totals[j] += d_y[k] * t->y_weight[k * H + j];
        for (int j = 0; j < H; j++)
            t->d_h[i * H + j] = h_relu[j] > 0.0f ? totals[j] : 0.0f;
    }
}

// optimizer = sgd(0.1, momentum = 0.9)                                                   shard_statistics.mt:16
static void update_h_1_running_mean_shard_sum(const Tensors *t, const Batch *batch) {
#pragma omp single nowait
    {

        // part_of_batch = sum over i of share(i)
        real part_of_batch = 0;
#pragma omp simd reduction(+ : part_of_batch)
        for (int j = 0; j < BATCH; j++)
            part_of_batch += share(batch, j);

        // h.1.running_mean.shard_sum[i] = (h.1.running_mean[i] + 0.1 * over_shards[i] - h.1.running_mean[i]) *
        //         part_of_batch
        // h.1.running_var.shard_sum[i] = (0.9 * h.1.running_var[i] + 0.1 * (variance[i] * ...) - h.1.running_var[i]) *
        //         part_of_batch
        for (int j = 0; j < H; j++) {
            real h_1_running_mean = t->h_1_running_mean[j];
            real h_1_running_var = t->h_1_running_var[j];
            real variance_mul =
                0.1f * (t->variance[j] * (examples_of_batch(batch) / fmax(examples_of_batch(batch) - 1.0f, 1.0f)));
            t->h_1_running_mean_shard_sum[j] =
                (h_1_running_mean + 0.1f * t->over_shards_2[j] - h_1_running_mean) * part_of_batch;
            t->h_1_running_var_shard_sum[j] = (0.9f * h_1_running_var + variance_mul - h_1_running_var) * part_of_batch;
        }
    }
}

// gradient of y = linear(relu(h), 3)                                                     shard_statistics.mt:11
// optimizer = sgd(0.1, momentum = 0.9)                                                   shard_statistics.mt:16
//     d_y.weight[i, j] = sum over k of d_y[k, i] * h_to_d_h_relu[k, j]
//     y.weight.shard_sum[i, j] = d_y.weight[i, j]
//     d_y.bias[i] = sum over j of d_y[j, i]
//     y.bias.shard_sum[i] = d_y.bias[i]
static void d_y_weight(const Tensors *t) {
    enum { ROWS = 8, COLUMNS = 16 };
#pragma omp for collapse(2) nowait
    for (int i0 = 0; i0 < Y; i0 += ROWS)
        for (int j0 = 0; j0 < H; j0 += COLUMNS) {
            real sums[ROWS * COLUMNS];
            int rows = Y;
            int columns = H;
            Matrix left = transposed(matrix(t->d_y, Y));
            Matrix right = matrix(t->h_to_d_h_relu, H);
            matmul(sums, COLUMNS, left, right, i0, j0, rows, columns, BATCH);
            for (int i = i0; i < i0 + rows; i++)
#pragma omp simd
                for (int j = j0; j < j0 + columns; j++) {
                    real sum = sums[(i - i0) * COLUMNS + j - j0];
                    t->y_weight_shard_sum[i * H + j] = sum;
                }
            if (j0 == 0) {
                real row_sums[ROWS] = {0};
                for (int k = 0; k < BATCH; k++)
                    for (int i = i0; i < i0 + rows; i++)
                        row_sums[i - i0] += t->d_y[k * Y + i];
                for (int i = i0; i < i0 + rows; i++) {
                    real sum = row_sums[i - i0];
                    t->y_bias_shard_sum[i] = sum;
                }
            }
        }
}

// gradient of h = batch_norm(linear(x, 6, bias = false), sync = true)                    shard_statistics.mt:10
// optimizer = sgd(0.1, momentum = 0.9)                                                   shard_statistics.mt:16
static void d_h_1_weight(const Tensors *t) {
#pragma omp single nowait
    {
        // x_sum[i] = sum over j of (to_h_matmul[j, i] - h.mean[i]) * d_h[j, i]
        // d_h.1.bias[i] = sum over j of d_h[j, i]
        real x_sum[H] = {0};
        real d_h_1_bias[H] = {0};
        for (int k = 0; k < BATCH; k++) {
#pragma omp simd
            for (int j = 0; j < H; j++) {
                real d_h = t->d_h[k * H + j];
                x_sum[j] += (t->to_h_matmul[k * H + j] - t->h_mean[j]) * d_h;
                d_h_1_bias[j] += d_h;
            }
        }

        // d_h_1_weight_part_of_sum[i] = d_h.1.bias[i] * h.1.weight[i]
        // d_h.1.weight[i] = x_sum[i] * (1 / sqrt(variance[i] + 1e-05))
        // d_h_1_weight_part_of_sum_2[i] = d_h.1.weight[i] * h.1.weight[i]
        // h.1.weight.shard_sum[i] = d_h.1.weight[i]
        // h.1.bias.shard_sum[i] = d_h.1.bias[i]
#pragma omp simd
        for (int j = 0; j < H; j++) {
            real h_1_weight = t->h_1_weight[j];
            real d_h_1_weight = x_sum[j] * (1.0f / sqrt(t->variance[j] + 1e-05f));
            t->d_h_1_weight_part_of_sum[j] = d_h_1_bias[j] * h_1_weight;
            t->d_h_1_weight_part_of_sum_2[j] = d_h_1_weight * h_1_weight;
            t->h_1_weight_shard_sum[j] = d_h_1_weight;
            t->h_1_bias_shard_sum[j] = d_h_1_bias[j];
        }
    }
}

// loss = cross_entropy(y, label)                                                         shard_statistics.mt:15
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

// gradient of h = batch_norm(linear(x, 6, bias = false), sync = true)                    shard_statistics.mt:10
//     to_d_h_0_weight_mul[i, j] = 1 / sqrt(variance[j] + 1e-05) *
//         (d_h[i, j] * h.1.weight[j] - share(i) *
//         (over_shards_2[j] + (to_h_matmul[i, j] - ...) * ... * over_shards_3[j]))
static void to_d_h_0_weight(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
#pragma omp simd
        for (int j = 0; j < H; j++) {
            real inverse_deviation = 1.0f / sqrt(t->variance[j] + 1e-05f);
            real x_mul = (t->to_h_matmul[i * H + j] - t->h_mean[j]) * inverse_deviation * t->over_shards_3[j];
            real d_h_sub = t->d_h[i * H + j] * t->h_1_weight[j] - share(batch, i) * (t->over_shards_2_2[j] + x_mul);
            t->to_d_h_0_weight_mul[i * H + j] = inverse_deviation * d_h_sub;
        }
    }
}

// gradient of h = batch_norm(linear(x, 6, bias = false), sync = true)                    shard_statistics.mt:10
// optimizer = sgd(0.1, momentum = 0.9)                                                   shard_statistics.mt:16
//     d_h.0.weight[i, j] = sum over k of to_d_h_0_weight_mul[k, i] * x[k, j]
//     h.0.weight.shard_sum[i, j] = d_h.0.weight[i, j]
static void d_h_0_weight(const Tensors *t) {
    enum { ROWS = 8, COLUMNS = 16 };
#pragma omp for collapse(2) nowait
    for (int i0 = 0; i0 < H; i0 += ROWS)
        for (int j0 = 0; j0 < X; j0 += COLUMNS) {
            real sums[ROWS * COLUMNS];
            int rows = H;
            int columns = X;
            Matrix left = transposed(matrix(t->to_d_h_0_weight_mul, H));
            Matrix right = matrix(t->x_2, X);
            matmul(sums, COLUMNS, left, right, i0, j0, rows, columns, BATCH);
            for (int i = i0; i < i0 + rows; i++)
#pragma omp simd
                for (int j = j0; j < j0 + columns; j++) {
                    real sum = sums[(i - i0) * COLUMNS + j - j0];
                    t->h_0_weight_shard_sum[i * X + j] = sum;
                }
        }
}

// ---- phases: one after the other; the kernels of a phase run at the same time -------------------------------

static void train_kernel(const Tensors *t, const Batch *batch, int kernel) {
    switch (kernel) {
    case 0: x(t, batch); break;
    case 1: to_h(t, batch); break;
    case 2: to_h_2(t, batch); break;
    case 3: over_shards_2(&t->over_shards_2_at[0]); break;
    case 4: h_mean(t); break;
    case 5: to_h_3(t, batch); break;
    case 6: over_shards_2(&t->over_shards_2_at[1]); break;
    case 7: h_to_d_h(t, batch); break;
    case 8: update_h_1_running_mean_shard_sum(t, batch); break;
    case 9: d_y_weight(t); break;
    case 10: d_h_1_weight(t); break;
    case 11: report_loss(t, batch); break;
    case 12: over_shards_2(&t->over_shards_2_at[2]); break;
    case 13: over_shards_2(&t->over_shards_2_at[3]); break;
    case 14: to_d_h_0_weight(t, batch); break;
    case 15: d_h_0_weight(t); break;
    }
}

enum { TRAIN_PHASES = 12 };
// the first kernel behind each phase
static const int train_ends[TRAIN_PHASES] = {1, 2, 3, 4, 5, 6, 7, 9, 12, 14, 15, 16};

static void train_phases(const Tensors *t, const Batch *batch, Team *team, int from, int to) {
    for (int phase = from, kernel = from ? train_ends[from - 1] : 0; phase < to; phase++) {
        for (; kernel < train_ends[phase]; kernel++)
            train_kernel(t, batch, kernel);
        team_wait(team);
    }
}

// ---- the step -----------------------------------------------------------------------------------------------

// before a phase, so many numbers at a place of the arena become their sums over all shards
static const MtcExchange exchange_table[] = {
    {3, 5376, 6}, // to_h_2_part_of_sum
    {6, 5888, 6}, // to_h_3_part_of_sum
    {9, 5632, 6}, // d_h_1_weight_part_of_sum
    {9, 7168, 6}, // d_h_1_weight_part_of_sum
};

// phases from .. to - 1 of the shard that the clock shows
static const char *train_between(const MtcRun *run, int from, int to) {
    Tensors t = tensors(run);
    Batch batch = batch_of_shard(run, BATCH, WHOLE_BATCH, REPORTS);
    Team team = TEAM_READY;
#pragma omp parallel num_threads(1) // a second thread would save less than waiting for it costs
    {
        FloatMode before = flush_subnormals();
        train_phases(&t, &batch, &team, from, to);
        set_float_mode(before);
    }
    return NULL;
}

// phases 0 .. phase of one shard
static const char *train_until(const MtcRun *run, int phase) {
    Tensors t = tensors(run);
    Batch batch = batch_of_shard(run, BATCH, WHOLE_BATCH, REPORTS);
    Team team = TEAM_READY;
#pragma omp parallel num_threads(1) // a second thread would save less than waiting for it costs
    {
        FloatMode before = flush_subnormals();
        train_phases(&t, &batch, &team, 0, phase + 1);
        set_float_mode(before);
    }
    return NULL;
}

static const char *run_kernel(const MtcRun *run, int kernel, int64_t times) {
    Tensors t = tensors(run);
    Batch batch = batch_of_shard(run, BATCH, WHOLE_BATCH, REPORTS);
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

// ---- the update: sums over the shards of a batch become weights ---------------------------------------------

//     h.1.running_mean[i] = h.1.running_mean[i] + h.1.running_mean.shard_sum[i]
// At 2 places: update_h_1_running_mean ... update_h_1_running_var
static void update_h_1_running_mean(const struct update_h_1_running_mean_tensors *t) {
#pragma omp for nowait
    for (int i = 0; i < H; i++)
        t->h_1_running_mean[i] += t->h_1_running_mean_shard_sum[i];
}

// optimizer = sgd(0.1, momentum = 0.9)                                                   shard_statistics.mt:16
//     momentum[i, j] = 0.9 * h.0.weight.momentum[i, j] + h.0.weight.shard_sum[i, j]
//     h.0.weight[i, j] = h.0.weight[i, j] - 0.1 * momentum[i, j]
static inline __attribute__((always_inline)) void
update_h_0_weight_momentum_sized(const struct update_h_0_weight_momentum_tensors *t, const int N, const int N_2) {
#pragma omp for nowait
    for (int i = 0; i < N; i++) {
#pragma omp simd
        for (int j = 0; j < N_2; j++) {
            real momentum = 0.9f * t->h_0_weight_momentum[i * N_2 + j] + t->h_0_weight_shard_sum[i * N_2 + j];
            t->h_0_weight_momentum[i * N_2 + j] = momentum;
            t->h_0_weight[i * N_2 + j] -= 0.1f * momentum;
        }
    }
}

static void update_h_0_weight_momentum(const struct update_h_0_weight_momentum_tensors *t) {
    update_h_0_weight_momentum_sized(t, H, X);
}

static void update_y_weight_momentum(const struct update_h_0_weight_momentum_tensors *t) {
    update_h_0_weight_momentum_sized(t, Y, H);
}

// optimizer = sgd(0.1, momentum = 0.9)                                                   shard_statistics.mt:16
//     momentum[i] = 0.9 * h.1.weight.momentum[i] + h.1.weight.shard_sum[i]
//     h.1.weight[i] = h.1.weight[i] - 0.1 * momentum[i]
static inline __attribute__((always_inline)) void
update_h_1_weight_momentum_sized(const struct update_h_1_weight_momentum_tensors *t, const int N) {
#pragma omp for nowait
    for (int i = 0; i < N; i++) {
        real momentum = 0.9f * t->h_1_weight_momentum[i] + t->h_1_weight_shard_sum[i];
        t->h_1_weight_momentum[i] = momentum;
        t->h_1_weight[i] -= 0.1f * momentum;
    }
}

static void update_h_1_weight_momentum(const struct update_h_1_weight_momentum_tensors *t) {
    update_h_1_weight_momentum_sized(t, H);
}

static void update_y_bias_momentum(const struct update_h_1_weight_momentum_tensors *t) {
    update_h_1_weight_momentum_sized(t, Y);
}

static void update_kernel(const Tensors *t, const Batch *batch, int kernel) {
    (void)batch;
    switch (kernel) {
    case 0: update_h_1_running_mean(&t->update_h_1_running_mean_at[0]); break;
    case 1: update_h_1_running_mean(&t->update_h_1_running_mean_at[1]); break;
    case 2: update_h_0_weight_momentum(&t->update_h_0_weight_momentum_at[0]); break;
    case 3: update_h_1_weight_momentum(&t->update_h_1_weight_momentum_at[0]); break;
    case 4: update_h_1_weight_momentum(&t->update_h_1_weight_momentum_at[1]); break;
    case 5: update_y_weight_momentum(&t->update_h_0_weight_momentum_at[1]); break;
    case 6: update_y_bias_momentum(&t->update_h_1_weight_momentum_at[2]); break;
    }
}

enum { UPDATE_PHASES = 1 };
// the first kernel behind each phase
static const int update_ends[UPDATE_PHASES] = {7};

static void update_phases(const Tensors *t, const Batch *batch, Team *team, int count) {
    for (int phase = 0, kernel = 0; phase < count; phase++) {
        for (; kernel < update_ends[phase]; kernel++)
            update_kernel(t, batch, kernel);
        team_wait(team);
    }
}

// once the sums are those of all shards
static const char *update(const MtcRun *run) {
    Tensors t = tensors(run);
    Batch batch = batch_of_step(run, 0, WHOLE_BATCH, REPORTS);
    Team team = TEAM_READY;
#pragma omp parallel num_threads(1) // a second thread would save less than waiting for it costs
    {
        FloatMode before = flush_subnormals();
        update_phases(&t, &batch, &team, UPDATE_PHASES);
        set_float_mode(before);
    }
    for (int k = 0; k < 3; k++)
        run->clock[k]++;
    return NULL;
}

static const char *add_sums(void *to, const void *from, int64_t count) {
    add_reals(to, from, count);
    return NULL;
}

// ---- evaluation ---------------------------------------------------------------------------------------------

// h = batch_norm(linear(x, 6, bias = false), sync = true)                                shard_statistics.mt:10
// y = linear(relu(h), 3)                                                                 shard_statistics.mt:11
// loss = cross_entropy(y, label)                                                         shard_statistics.mt:15
static void eval_h_to_prediction(const Tensors *t, const Batch *batch) {
#pragma omp for nowait
    for (int i = 0; i < BATCH; i++) {
        int64_t example = row(batch, i);
        real row_share = share(batch, i);
        real h_relu[H];
        real y[Y];

        // h[i, j] = (sum over k of x[i, k] * h.0.weight[j, k]) * (1 / sqrt(h.1.running_var[j] + ...) * h.1.weight[j]) +
        //         (h.1.bias[j] - h.1.running_mean[j] * (... / sqrt(...) * h.1.weight[j]))
        for (int j = 0; j < H; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < X; k++)
                sum += t->x[example * X + k] * t->h_0_weight[j * X + k];
            real scale = 1.0f / sqrt(t->h_1_running_var[j] + 1e-05f) * t->h_1_weight[j];
            h_relu[j] = relu(sum * scale + (t->h_1_bias[j] - t->h_1_running_mean[j] * scale));
        }

        // y[i, j] = (sum over k of relu(h[i, k]) * y.weight[j, k]) + y.bias[j]
        for (int j = 0; j < Y; j++) {
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int k = 0; k < H; k++)
                sum += h_relu[k] * t->y_weight[j * H + k];
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

// loss = cross_entropy(y, label)                                                         shard_statistics.mt:15
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
    case 0: eval_h_to_prediction(t, batch); break;
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
    {NULL, 5, "x : f32[5]"},
    {NULL, 10, "h = batch_norm(linear(x, 6, bias = false), sync = true)"},
    {NULL, 11, "y = linear(relu(h), 3)"},
    {NULL, 15, "loss = cross_entropy(y, label)"},
    {NULL, 16, "optimizer = sgd(0.1, momentum = 0.9)"},
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
    {.name = "h.0.weight", .rank = 2, .dim = {6, 5}, .offset = 0, .init = MTC_UNIFORM, .a = -0.44721359549995787,
     .b = 0.44721359549995787, .statement = 1},
    {.name = "h.1.weight", .rank = 1, .dim = {6}, .offset = 256, .init = MTC_CONSTANT, .a = 1, .statement = 1},
    {.name = "h.1.bias", .rank = 1, .dim = {6}, .offset = 512, .statement = 1},
    {.name = "h.1.running_mean", .role = MTC_BUFFER, .rank = 1, .dim = {6}, .offset = 768, .statement = 1},
    {.name = "h.1.running_var", .role = MTC_BUFFER, .rank = 1, .dim = {6}, .offset = 1024, .init = MTC_CONSTANT,
     .a = 1, .statement = 1},
    {.name = "y.weight", .rank = 2, .dim = {3, 6}, .offset = 1280, .init = MTC_UNIFORM, .a = -0.40824829046386296,
     .b = 0.40824829046386296, .statement = 2},
    {.name = "y.bias", .rank = 1, .dim = {3}, .offset = 1536, .init = MTC_UNIFORM, .a = -0.40824829046386296,
     .b = 0.40824829046386296, .statement = 2},
    {.name = "h.0.weight.momentum", .role = MTC_STATE, .rank = 2, .dim = {6, 5}, .offset = 3584, .statement = 1},
    {.name = "h.1.weight.momentum", .role = MTC_STATE, .rank = 1, .dim = {6}, .offset = 3840, .statement = 1},
    {.name = "h.1.bias.momentum", .role = MTC_STATE, .rank = 1, .dim = {6}, .offset = 4096, .statement = 1},
    {.name = "y.weight.momentum", .role = MTC_STATE, .rank = 2, .dim = {3, 6}, .offset = 4352, .statement = 2},
    {.name = "y.bias.momentum", .role = MTC_STATE, .rank = 1, .dim = {3}, .offset = 4608, .statement = 2},
    VALUE("x", MTC_F32, 4864, 0, 0, 2, {4, 5}),
    VALUE("to_h_matmul", MTC_F32, 5120, 1, 1, 2, {4, 6}),
    VALUE("to_h_2_part_of_sum", MTC_F32, 5376, 1, 2, 1, {6}),
    VALUE("over_shards", MTC_F32, 5632, 1, 3, 1, {6}),
    VALUE("h.mean", MTC_F32, 5376, 1, 4, 1, {6}),
    VALUE("to_h_3_part_of_sum", MTC_F32, 5888, 1, 5, 1, {6}),
    VALUE("variance", MTC_F32, 6144, 1, 6, 1, {6}),
    VALUE("h_to_d_h_relu", MTC_F32, 6656, 2, 7, 2, {4, 6}),
    VALUE("loss_part", MTC_F32, 5888, 3, 7, 1, {4}),
    VALUE("d_y", MTC_F32, 6400, 3, 7, 2, {4, 3}),
    VALUE("d_h", MTC_F32, 6912, 2, 7, 2, {4, 6}),
    VALUE("d_h_1_weight_part_of_sum", MTC_F32, 5632, 1, 8, 1, {6}),
    VALUE("over_shards_2", MTC_F32, 5888, 1, 9, 1, {6}),
    VALUE("d_h_1_weight_part_of_sum", MTC_F32, 7168, 1, 8, 1, {6}),
    VALUE("over_shards_3", MTC_F32, 6400, 1, 9, 1, {6}),
    VALUE("to_d_h_0_weight_mul", MTC_F32, 5120, 1, 10, 2, {4, 6}),
};
// clang-format on
#undef VALUE
static const MtcField field_table[] = {
    {.name = "x", .type = MTC_F32, .rank = 1, .dim = {5}, .elements = 5, .classes = 0, .predicts = true},
    {.name = "label", .type = MTC_U8, .rank = 0, .dim = {0}, .elements = 1, .classes = 3, .predicts = false},
};
static const char *const paths[] = {"x", "label"};
static const MtcOrigin origin_table[] = {
    {.format = "idx", .paths = 2, .path = paths},
};
static const MtcSplit split_table[] = {
    {.name = "train", .origin = 0, .from = 0, .to = 1},
};
static const char *const setting_table[] = {"--shards 3"};
static const char *const report_table[] = {"loss"};
static const bool rises_table[] = {false};
// name; statement; phase, from 0 on; what its arithmetic is in, how much of it; bytes, if every buffer is touched once
// clang-format off
static const MtcKernel kernel_table[] = {
    {"x", 0, 0, MTC_MATH_FP32, 20, 80},
    {"to_h", 1, 1, MTC_MATH_FP32, 240, 320},
    {"to_h_2", 1, 2, MTC_MATH_FP32, 30, 144},
    {"over_shards", 1, 3, MTC_MATH_FP32, 0, 48},
    {"h_mean", 1, 4, MTC_MATH_FP32, 6, 72},
    {"to_h_3", 1, 5, MTC_MATH_FP32, 30, 144},
    {"variance", 1, 6, MTC_MATH_FP32, 0, 48},
    {"h_to_d_h", 1, 7, MTC_MATH_FP32, 532, 548},
    {"update_h_1_running_mean_shard_sum", 4, 7, MTC_MATH_FP32, 28, 144},
    {"d_y_weight", 2, 8, MTC_MATH_FP32, 144, 228},
    {"d_h_1_weight", 1, 8, MTC_MATH_FP32, 90, 360},
    {"report_loss", 3, 8, MTC_MATH_FP32, 4, 20},
    {"over_shards_2", 1, 9, MTC_MATH_FP32, 0, 48},
    {"over_shards_3", 1, 9, MTC_MATH_FP32, 0, 48},
    {"to_d_h_0_weight", 1, 10, MTC_MATH_FP32, 120, 408},
    {"d_h_0_weight", 1, 11, MTC_MATH_FP32, 240, 296},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "shard_statistics",
    .source = "shard_statistics.mt",
    .target = "cpu",
    .architectures = "",
    .schedule = "openmp",
    .model_hash = "a1db2c771ea030bbd489c438f40052a518d9602f987b161b8c82dc1e1f1684eb",
    .training = "loss = cross_entropy(y, label)\n"
                "optimizer = sgd(0.1, momentum = 0.9)\n"
                "batch = 10",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 63,
    .flops_per_step = 4653,
    .arena_bytes = 7424,
    .unshared_bytes = 9472,
    .train_phases = 12,
    .eval_phases = 2,
    .tensors = 28,
    .fields = 2,
    .origins = 1,
    .splits = 1,
    .knobs = 0,
    .fixed = 0,
    .settings = 1,
    .reports = REPORTS,
    .kernels = 16,
    .tensor = tensor_table,
    .field = field_table,
    .origin = origin_table,
    .split = split_table,
    .knob = NULL,
    .fixed_param = NULL,
    .setting = setting_table,
    .report = report_table,
    .report_rises = rises_table,
    .monitor = 0,
    .patience = 0,
    .kernel = kernel_table,
    .prediction_offset = 5120,
    .prediction_rank = 1,
    .prediction_dim = {3},
    .prediction_is_classes = true,
    .statements = 5,
    .statement = statement_table,
    .train_until = train_until,
    .eval = evaluate,
    .run_kernel = run_kernel,
    .prepare = prepare,
    .release = release,
    .shards = 3,
    .whole_batch = WHOLE_BATCH,
    .sums_offset = 1792,
    .sums_bytes = 1792,
    .exchanges = 4,
    .exchange = exchange_table,
    .values_offset = 4864,
    .values_bytes = 2560,
    .train_between = train_between,
    .update = update,
    .add_sums = add_sums,
};

// ---- main ---------------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    return mtc_main(&mtc_model, argc, argv);
}
