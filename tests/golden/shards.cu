// shards: a model of 69 parameters, compiled by mtc --shards 3 from shards.mt
//
//   shard     1.7 KFLOP in 5 phases
//   memory    8.0 KB arena (8.8 KB without sharing): weights 2.0 KB, optimizer state 3.5 KB, values 2.5 KB
//   schedule  graph: 13.9 us a shard estimated
//             (persistent: 10.0 us, but what the shards of a batch add up comes between its steps)
//
//   phase 1   to_h          1 tile
//             to_h_2        1 tile
//   phase 2   h             1 tile
//   phase 3   y_to_d_h      1 tile
//   phase 4   d_h_1_weight  1 tile
//             d_y_weight    1 tile
//             report_loss   1 tile
//   phase 5   d_h_0_weight  1 tile
//
// From top to bottom: sizes; tensors; one function per kernel, in the order of a training step; the phases that
// group them; the step; evaluation; tables for the runtime; main.
//
// How it runs: a kernel is cut into tiles, and a tile is the work of one block of 256 threads: a call of the
// kernel's run(). Phases run one after the other; the tiles of a phase, of all its kernels, may run at the same
// time, in any order. A tile may start while the phase before is still running; gate() returns when that has
// ended. What that phase does not write may be read ahead of the gate, and is. A shard of a batch is a CUDA
// graph of a launch or more per phase, with a block for each tile, and so is the update behind all shards
// (cuda/schedule.cuh).

#include "mtc.h" // the runtime: data, command line, checkpoints

#include "cuda/among.cuh"    // their sums over several GPUs of a host
#include "cuda/batch.cuh"    // row: the example in a row of the batch; share: its part in a mean
#include "cuda/math.cuh"     // relu, sigmoid ...
#include "cuda/matmul.cuh"   // matmul<Product<M, N, K>, Tile<m, n, k, tm, tn>>(...)
#include "cuda/pack.cuh"     // neighbouring numbers that a thread moves at once
#include "cuda/repeated.cuh" // a kernel again and again, alone
#include "cuda/schedule.cuh" // phases as one persistent kernel or as a CUDA graph
#include "cuda/shard.cuh"    // the shards of a batch, and their sums
#include "cuda/team.cuh"     // the threads of a row

#include <algorithm>

// ---- sizes --------------------------------------------------------------------------------------------------

enum { BATCH = 4, X = 5, H = 6, Y = 3 };
enum { REPORT_LOSS, REPORTS };
enum { WHOLE_BATCH = 10 }; // of which BATCH are a shard

namespace { // of this file alone: a kernel may be called like a function of others, or of another program

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

struct Tensors {
    const MtcRun &run;
    char *arena;

    const float *x = (const float *)run.data.field[0];                     // data set: [examples, X]
    const unsigned char *label = (const unsigned char *)run.data.field[1]; // data set: [examples]
    float *h_0_weight = (float *)(arena + 0);                              // [H, X]
    float *h_0_bias = (float *)(arena + 256);                              // [H]
    float *h_1_weight = (float *)(arena + 512);                            // [H]
    float *h_1_bias = (float *)(arena + 768);                              // [H]
    float *h_1_running_mean = (float *)(arena + 1024);                     // [H]
    float *h_1_running_var = (float *)(arena + 1280);                      // [H]
    float *y_weight = (float *)(arena + 1536);                             // [Y, H]
    float *y_bias = (float *)(arena + 1792);                               // [Y]
    float *h_1_running_mean_shard_sum = (float *)(arena + 2048);           // [H]
    float *h_1_running_var_shard_sum = (float *)(arena + 2304);            // [H]
    float *h_0_weight_shard_sum = (float *)(arena + 2560);                 // [H, X]
    float *h_0_bias_shard_sum = (float *)(arena + 2816);                   // [H]
    float *h_1_weight_shard_sum = (float *)(arena + 3072);                 // [H]
    float *h_1_bias_shard_sum = (float *)(arena + 3328);                   // [H]
    float *y_weight_shard_sum = (float *)(arena + 3584);                   // [Y, H]
    float *y_bias_shard_sum = (float *)(arena + 3840);                     // [Y]
    float *eval_loss_part = (float *)(arena + 5632);                       // [BATCH]
    float *loss_part = (float *)(arena + 5632);                            // [BATCH]
    float *to_h_add = (float *)(arena + 5632);                             // [BATCH, H]
    float *eval_prediction = (float *)(arena + 5888);                      // [BATCH, Y]
    float *to_h_2_where = (float *)(arena + 5888);                         // [BATCH, X]
    float *h_relu = (float *)(arena + 6144);                               // [BATCH, H]
    float *h_sub = (float *)(arena + 6400);                                // [BATCH, H]
    float *h_inverse_deviation = (float *)(arena + 6656);                  // [H]
    float *h_sub_2 = (float *)(arena + 6912);                              // [H]
    float *h_sub_3 = (float *)(arena + 7168);                              // [H]
    float *d_y = (float *)(arena + 7424);                                  // [BATCH, Y]
    float *d_h = (float *)(arena + 7680);                                  // [BATCH, H]
    float *d_h_1_weight_mul = (float *)(arena + 7936);                     // [BATCH, H]
};

// Layers that are alike share their kernels, which are given the tensors of one place, Own:
// update_h_0_weight_momentum_places has a row for each, where its tensors begin, in units of 256 bytes. Those
// that differ in sizes are one template, update_h_0_weight_momentum_sized, and a struct for each that says
// which sizes, and which rows of the table are its own. A launch takes row 0, made again row 1, 2 ...;
// At<kernel, 3, 2, 4> takes rows 3 to 6, made again 5 to 8 (cuda/phase.cuh).

// ---- training step ------------------------------------------------------------------------------------------

// h = batch_norm(linear(dropout(x, 0.5), 6))                                                       shards.mt:10
struct to_h {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = X; // that a row keeps from stage to stage
    static constexpr int shared_bytes = team_shared<Warp>(row_floats);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        gate();
        if (i >= BATCH)
            return;
        float *where = row_memory(team, shared, row_floats);
        for (int j = team.first; j < X; j += team.stride) {
            bool ge = uniform(batch, 0, examples_of_shards_before(batch) * 5 + i * X + j) >= 0.5f;
            where[j] = ge ? t.x[example * X + j] * 2.0f : 0.0f;
        }
        team.sync();

        // to_h_add[i, j] = (sum over k of to_h_2_where[i, k] * h.0.weight[j, k]) + h.0.bias[j]
        auto term = [&](int j, int k) { return where[k] * t.h_0_weight[j * X + k]; };
        auto store = [&](int j, float sum) { t.to_h_add[i * H + j] = sum + t.h_0_bias[j]; };
        team_product<H, X>(team, term, store);
    }
};

// h = batch_norm(linear(dropout(x, 0.5), 6))                                                       shards.mt:10
//     to_h_2_where[i, j] = uniform(0, examples_of_shards_before * 5 + i * X + j) >= 0.5 ? x[i, j] * 2 : 0
struct to_h_2 {
    static constexpr int tiles = divide_up(BATCH * X, Thread::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= BATCH * X)
            return;
        float x_mul = t.x[row(batch, i / X) * X + i % X] * 2.0f;
        t.to_h_2_where[i] = uniform(batch, 0, examples_of_shards_before(batch) * 5 + i) >= 0.5f ? x_mul : 0.0f;
    }
};

// h = batch_norm(linear(dropout(x, 0.5), 6))                                                       shards.mt:10
// y = linear(relu(h), 3)                                                                           shards.mt:11
// optimizer = sgd(0.1, momentum = 0.9)                                                             shards.mt:16
struct h {
    static constexpr int tiles = divide_up(H, Warp::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        gate();
        if (i >= H)
            return;

        // sum_2[i] = sum over j of (to_h_add[j, i] - h.1.running_mean[i]) * shard_share(j)
        float sum_2 = 0;
        float h_1_running_mean = t.h_1_running_mean[i];
        for (int j = team.first; j < BATCH; j += team.stride)
            sum_2 += (t.to_h_add[j * H + i] - h_1_running_mean) * shard_share(batch, j);
        sum_2 = team_sum(team, sum_2);

        // h_sub[i, j] = to_h_add[i, j] - (h.1.running_mean[j] + sum_2[j])
        // variance[i] = sum over j of h_sub[j, i] * h_sub[j, i] * shard_share(j)
        float variance = 0;
        float mean = h_1_running_mean + sum_2;
        for (int j = team.first; j < BATCH; j += team.stride) {
            float sub = t.to_h_add[j * H + i] - mean;
            t.h_sub[j * H + i] = sub;
            variance += sub * sub * shard_share(batch, j);
        }
        variance = team_sum(team, variance);

        // h_sub_2[i] = h.1.running_mean[i] + 0.1 * sum_2[i] - h.1.running_mean[i]
        if (leads(team))
            t.h_sub_2[i] = h_1_running_mean + 0.1f * sum_2 - h_1_running_mean;

        // h.inverse_deviation[i] = 1 / sqrt(variance[i] + 1e-05)
        // h[i, j] = h_sub[i, j] * h.inverse_deviation[j] * h.1.weight[j] + h.1.bias[j]
        // h_relu[i, j] = relu(h[i, j])
        float inverse_deviation = 1.0f / root(variance + 1e-05f);
        float h_1_weight = t.h_1_weight[i];
        float h_1_bias = t.h_1_bias[i];
        for (int j = team.first; j < BATCH; j += team.stride) {
            float h = (t.to_h_add[j * H + i] - mean) * inverse_deviation * h_1_weight + h_1_bias;
            t.h_relu[j * H + i] = relu(h);
        }

        // h_sub_3[i] = 0.9 * h.1.running_var[i] + 0.1 * (variance[i] * (examples / fmax(..., ...))) -
        //         h.1.running_var[i]
        if (leads(team)) {
            float h_1_running_var = t.h_1_running_var[i];
            float h_1_running_var_add =
                0.9f * h_1_running_var + 0.1f * (variance * (examples(batch) / fmax(examples(batch) - 1.0f, 1.0f)));
            t.h_inverse_deviation[i] = inverse_deviation;
            t.h_sub_3[i] = h_1_running_var_add - h_1_running_var;
        }
    }
};

// y = linear(relu(h), 3)                                                                           shards.mt:11
// loss = cross_entropy(y, label)                                                                   shards.mt:15
struct y_to_d_h {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = Y + Y; // that a row keeps from stage to stage
    static constexpr int shared_bytes = team_shared<Warp>(row_floats);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        float row_share = share(batch, i);
        gate();
        if (i >= BATCH)
            return;
        float *y = row_memory(team, shared, row_floats);
        float *d_y = y + Y;

        // y[i, j] = (sum over k of h_relu[i, k] * y.weight[j, k]) + y.bias[j]
        auto term = [&](int j, int k) { return t.h_relu[i * H + k] * t.y_weight[j * H + k]; };
        auto store = [&](int j, float sum) { y[j] = sum + t.y_bias[j]; };
        team_product<Y, H>(team, term, store);
        team.sync();

        // y_max[i] = max over j of y[i, j]
        float y_max = -INFINITY;
        for (int j = team.first; j < Y; j += team.stride)
            y_max = fmax(y_max, y[j]);
        y_max = team_max(team, y_max);

        // y_sum[i] = sum over j of exp(y[i, j] - y_max[i])
        // target_score[i] = sum over j of (label[i] == j ? y[i, j] - y_max[i] : 0)
        float y_sum = 0;
        float target_score = 0;
        int label = t.label[example];
        for (int j = team.first; j < Y; j += team.stride) {
            float y_sub = y[j] - y_max;
            y_sum += exp(y_sub);
            target_score += label == j ? y_sub : 0.0f;
        }
        y_sum = team_sum(team, y_sum);
        target_score = team_sum(team, target_score);

        // d_y[i, j] = share(i) / y_sum[i] * exp(y[i, j] - y_max[i]) - (label[i] == j ? share(i) : 0)
        for (int j = team.first; j < Y; j += team.stride)
            d_y[j] = t.d_y[i * Y + j] = row_share / y_sum * exp(y[j] - y_max) - (label == j ? row_share : 0.0f);
        team.sync();

        // loss_part[i] = (log(y_sum[i]) - target_score[i]) * share(i)
        if (leads(team))
            t.loss_part[i] = (log(y_sum) - target_score) * row_share;

        // d_h[i, j] = h_relu[i, j] > 0 ? (sum over k of d_y[i, k] * y.weight[k, j]) : 0
        auto term_2 = [&](int j, int k) { return d_y[k] * t.y_weight[k * H + j]; };
        auto store_2 = [&](int j, float sum) { t.d_h[i * H + j] = t.h_relu[i * H + j] > 0.0f ? sum : 0.0f; };
        team_product<H, Y>(team, term_2, store_2);
    }
};

// gradient of h = batch_norm(linear(dropout(x, 0.5), 6))                                           shards.mt:10
// optimizer = sgd(0.1, momentum = 0.9)                                                             shards.mt:16
struct d_h_1_weight {
    static constexpr int tiles = divide_up(H, Warp::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        gate();
        if (i >= H)
            return;

        // sum_2[i] = sum over j of h_sub[j, i] * d_h[j, i]
        // d_h.1.bias[i] = sum over j of d_h[j, i]
        float sum_2 = 0;
        float d_h_1_bias = 0;
        for (int j = team.first; j < BATCH; j += team.stride) {
            float d_h = t.d_h[j * H + i];
            sum_2 += t.h_sub[j * H + i] * d_h;
            d_h_1_bias += d_h;
        }
        sum_2 = team_sum(team, sum_2);
        d_h_1_bias = team_sum(team, d_h_1_bias);

        // d_h.1.weight[i] = sum_2[i] * h.inverse_deviation[i]
        // d_h_sum[i] = sum over j of (d_h[j, i] * h.1.weight[i] - shard_share(j) *
        //         (d_h.1.bias[i] * h.1.weight[i] + h_sub[j, i] * h.inverse_deviation[i] *
        //         (d_h.1.weight[i] * h.1.weight[i])))
        // d_h_1_weight_mul[i, j] = h.inverse_deviation[j] *
        //         (d_h[i, j] * h.1.weight[j] - shard_share(i) *
        //         (d_h.1.bias[j] * h.1.weight[j] + h_sub[i, j] * h.inverse_deviation[j] *
        //         (d_h.1.weight[j] * h.1.weight[j])))
        float d_h_sum = 0;
        float inverse_deviation = t.h_inverse_deviation[i];
        float h_1_weight = t.h_1_weight[i];
        for (int j = team.first; j < BATCH; j += team.stride) {
            float mul = t.h_sub[j * H + i] * inverse_deviation * (sum_2 * inverse_deviation * h_1_weight);
            float d_h_sub = t.d_h[j * H + i] * h_1_weight - shard_share(batch, j) * (d_h_1_bias * h_1_weight + mul);
            t.d_h_1_weight_mul[j * H + i] = inverse_deviation * d_h_sub;
            d_h_sum += d_h_sub;
        }
        d_h_sum = team_sum(team, d_h_sum);

        // h.1.weight.shard_sum[i] = d_h.1.weight[i] + h.1.weight.shard_sum[i]
        // h.1.bias.shard_sum[i] = d_h.1.bias[i] + h.1.bias.shard_sum[i]
        if (leads(team)) {
            t.h_1_weight_shard_sum[i] =
                sum_2 * inverse_deviation + (follows_a_shard(batch) ? t.h_1_weight_shard_sum[i] : 0.0f);
            t.h_1_bias_shard_sum[i] = d_h_1_bias + (follows_a_shard(batch) ? t.h_1_bias_shard_sum[i] : 0.0f);
        }

        // d_h.0.bias[i] = d_h_sum[i] * h.inverse_deviation[i]
        // h.0.bias.shard_sum[i] = d_h.0.bias[i] + h.0.bias.shard_sum[i]
        if (leads(team))
            t.h_0_bias_shard_sum[i] =
                d_h_sum * inverse_deviation + (follows_a_shard(batch) ? t.h_0_bias_shard_sum[i] : 0.0f);
    }
};

// gradient of y = linear(relu(h), 3)                                                               shards.mt:11
// optimizer = sgd(0.1, momentum = 0.9)                                                             shards.mt:16
//     d_y.weight[i, j] = sum over k of d_y[k, i] * h_relu[k, j]
//     y.weight.shard_sum[i, j] = d_y.weight[i, j] + y.weight.shard_sum[i, j]
//     d_y.bias[i] = sum over j of d_y[j, i]
//     y.bias.shard_sum[i] = d_y.bias[i] + y.bias.shard_sum[i]
struct d_y_weight {
    // 1 tile of 16 x 16 outputs, 4 x 4 a thread, 16 slices of k; panels in shared memory (cuda/staged.cuh)
    using Shape = Product<Y, H, BATCH>;
    using Cut = Tile<16, 16, 256, 4, 4>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        auto left = transposed(matrix<Y>(t.d_y));
        auto right = matrix<H>(t.h_relu);
        auto out = [&](int i, int j, float sum) {
            t.y_weight_shard_sum[i * H + j] = sum + (follows_a_shard(batch) ? t.y_weight_shard_sum[i * H + j] : 0.0f);
        };
        // the same for the sums over k of left(i, k)
        auto row_out = [&](int i, float sum) {
            t.y_bias_shard_sum[i] = sum + (follows_a_shard(batch) ? t.y_bias_shard_sum[i] : 0.0f);
        };
        matmul<Shape, Cut>(tile, left, right, shared, gate, out, sum_of_a(row_out));
    }
};

// loss = cross_entropy(y, label)                                                                   shards.mt:15
// optimizer = sgd(0.1, momentum = 0.9)                                                             shards.mt:16
struct report_loss {
    static constexpr int tiles = 1;
    static __device__ void run(const Tensors &t, const Batch &batch, int, char *shared, Gate &gate) {
        Warp team(shared);
        gate();
        if (team.row < WARPS - 1)
            return;

        // loss = sum over i of loss_part[i]
        // part_of_batch = sum over i of share(i)
        float loss_part_sum = 0;
        float part_of_batch = 0;
        for (int j = team.first; j < BATCH; j += team.stride) {
            loss_part_sum += t.loss_part[j];
            part_of_batch += share(batch, j);
        }
        loss_part_sum = team_sum(team, loss_part_sum);
        part_of_batch = team_sum(team, part_of_batch);
        if (leads(team))
            batch.reports[REPORT_LOSS] = loss_part_sum;

        // h.1.running_mean.shard_sum[i] = h_sub_2[i] * part_of_batch + h.1.running_mean.shard_sum[i]
        // h.1.running_var.shard_sum[i] = h_sub_3[i] * part_of_batch + h.1.running_var.shard_sum[i]
        for (int j = team.first; j < H; j += team.stride) {
            t.h_1_running_mean_shard_sum[j] =
                t.h_sub_2[j] * part_of_batch + (follows_a_shard(batch) ? t.h_1_running_mean_shard_sum[j] : 0.0f);
            t.h_1_running_var_shard_sum[j] =
                t.h_sub_3[j] * part_of_batch + (follows_a_shard(batch) ? t.h_1_running_var_shard_sum[j] : 0.0f);
        }
    }
};

// gradient of h = batch_norm(linear(dropout(x, 0.5), 6))                                           shards.mt:10
// optimizer = sgd(0.1, momentum = 0.9)                                                             shards.mt:16
//     d_h.0.weight[i, j] = sum over k of d_h_1_weight_mul[k, i] * to_h_2_where[k, j]
//     h.0.weight.shard_sum[i, j] = d_h.0.weight[i, j] + h.0.weight.shard_sum[i, j]
struct d_h_0_weight {
    // 1 tile of 16 x 16 outputs, 4 x 4 a thread, 16 slices of k; panels in shared memory (cuda/staged.cuh)
    using Shape = Product<H, X, BATCH>;
    using Cut = Tile<16, 16, 256, 4, 4>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        auto left = transposed(matrix<H>(t.d_h_1_weight_mul));
        auto right = matrix<X>(t.to_h_2_where);
        auto out = [&](int i, int j, float sum) {
            t.h_0_weight_shard_sum[i * X + j] =
                sum + (follows_a_shard(batch) ? t.h_0_weight_shard_sum[i * X + j] : 0.0f);
        };
        matmul<Shape, Cut>(tile, left, right, shared, gate, out);
    }
};

// ---- phases: one after the other; the kernels of a phase run at the same time -------------------------------

using train_1 = Phase<to_h, to_h_2>;
using train_4 = Phase<d_h_1_weight, d_y_weight, report_loss>;

using Train =
    ShardStep<Tensors, BATCH, WHOLE_BATCH, REPORTS, train_1, Phase<h>, Phase<y_to_d_h>, train_4, Phase<d_h_0_weight>>;

// ---- the step -----------------------------------------------------------------------------------------------

static Repeated<Train> repeated;

static Recorded shard_launches, update_launches;
static WholeBatches whole_batches;
static AmongPeers among;

// the gradients of the shard that the clock shows
static const char *train_shard(const MtcRun *run) {
    return replay_shard<Train>(shard_launches, run);
}

// phases 0 .. phase of one shard
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
    return nullptr;
}

static void release() {
    shard_launches.release();
    whole_batches.release();
    update_launches.release();
    among.release();
    repeated.release();
}

// ---- the update: sums over the shards of a batch become weights ---------------------------------------------

// optimizer = sgd(0.1, momentum = 0.9)                                                             shards.mt:16
//     momentum[i, j] = 0.9 * h.0.weight.momentum[i, j] + h.0.weight.shard_sum[i, j]
//     h.0.weight[i, j] = h.0.weight[i, j] - 0.1 * momentum[i, j]
static __constant__ constexpr unsigned update_h_0_weight_momentum_places[2][3] = {
    {16, 10, 0}, // update_h_0_weight_momentum
    {20, 14, 6}, // update_y_weight_momentum
};
template <int FIRST, int PLACES, int N, int N_2> struct update_h_0_weight_momentum_sized {
    struct Own {
        float *h_0_weight_momentum, *h_0_weight_shard_sum, *h_0_weight;
        __device__ Own(const Tensors &t, int row) {
            begin_at((update_h_0_weight_momentum_places + FIRST)[PLACES == 1 ? 0 : row], h_0_weight_momentum,
                     h_0_weight_shard_sum, h_0_weight);
        }
    };
    static constexpr int tiles = divide_up(N * N_2, Thread::rows);
    static __device__ void run(const Own &t, const Batch &, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= N * N_2)
            return;
        float momentum = 0.9f * t.h_0_weight_momentum[i] + t.h_0_weight_shard_sum[i];
        t.h_0_weight_momentum[i] = momentum;
        t.h_0_weight[i] -= 0.1f * momentum;
    }
};
struct update_h_0_weight_momentum : update_h_0_weight_momentum_sized<0, 1, H, X> {};
struct update_y_weight_momentum : update_h_0_weight_momentum_sized<1, 1, Y, H> {};

// optimizer = sgd(0.1, momentum = 0.9)                                                             shards.mt:16
//     momentum[i] = 0.9 * h.0.bias.momentum[i] + h.0.bias.shard_sum[i]
//     h.0.bias[i] = h.0.bias[i] - 0.1 * momentum[i]
static __constant__ constexpr Places<unsigned, 4, 3> update_h_0_bias_momentum_places({
    {0, 1, 3, {17, 11, 1}, {1, 1, 1}}, // update_h_0_bias_momentum ... update_h_1_bias_momentum
    {3, 1, 1, {21, 15, 7}},            // update_y_bias_momentum
});
template <int FIRST, int PLACES, int N> struct update_h_0_bias_momentum_sized {
    struct Own {
        float *h_0_bias_momentum, *h_0_bias_shard_sum, *h_0_bias;
        __device__ Own(const Tensors &t, int row) {
            begin_at((update_h_0_bias_momentum_places.at + FIRST)[PLACES == 1 ? 0 : row], h_0_bias_momentum,
                     h_0_bias_shard_sum, h_0_bias);
        }
    };
    static constexpr int tiles = divide_up(N, Thread::rows);
    static __device__ void run(const Own &t, const Batch &, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= N)
            return;
        float momentum = 0.9f * t.h_0_bias_momentum[i] + t.h_0_bias_shard_sum[i];
        t.h_0_bias_momentum[i] = momentum;
        t.h_0_bias[i] -= 0.1f * momentum;
    }
};
struct update_h_0_bias_momentum : update_h_0_bias_momentum_sized<0, 3, H> {};
struct update_y_bias_momentum : update_h_0_bias_momentum_sized<3, 1, Y> {};

//     h.1.running_mean[i] = h.1.running_mean[i] + h.1.running_mean.shard_sum[i]
static __constant__ unsigned update_h_1_running_mean_places[2][2] = {
    {4, 8}, // update_h_1_running_mean
    {5, 9}, // update_h_1_running_var
};
struct update_h_1_running_mean {
    struct Own {
        float *h_1_running_mean, *h_1_running_mean_shard_sum;
        __device__ Own(const Tensors &t, int row) {
            begin_at(update_h_1_running_mean_places[row], h_1_running_mean, h_1_running_mean_shard_sum);
        }
    };
    static constexpr int tiles = divide_up(H, Thread::rows);
    static __device__ void run(const Own &t, const Batch &, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= H)
            return;
        t.h_1_running_mean[i] += t.h_1_running_mean_shard_sum[i];
    }
};

using update_1 = Phase<update_h_0_weight_momentum, At<update_h_0_bias_momentum, 0, 0, 3>, update_y_weight_momentum,
                       update_y_bias_momentum, At<update_h_1_running_mean, 0, 0, 2>>;

using Update = Step<Tensors, WHOLE_BATCH, REPORTS, update_1>;

// once the sums are those of all shards
static const char *update(const MtcRun *run) {
    return replay_update<Update>(update_launches, run);
}

static const char *add_sums(void *to, const void *from, int64_t count) {
    return add_reals(to, from, count);
}

static const char *add_sums_over_peers(const MtcPeers *peers, size_t offset, size_t bytes) {
    return add_over_peers(peers, offset, bytes);
}

// steps of which each GPU computes one shard
static const char *train_among(const MtcRun *run, const MtcPeers *peers, int64_t steps) {
    return among.train<Train, Update>(run, peers, steps);
}

// steps of so many shards, all of which are computed here
static const char *train_whole(const MtcRun *run, char *waiting, int64_t shards, int64_t steps) {
    return whole_batches.train<Train, Update>(run, {shards, run->arena + 2048, waiting, 2048}, steps);
}

// ---- evaluation ---------------------------------------------------------------------------------------------

// h = batch_norm(linear(dropout(x, 0.5), 6))                                                       shards.mt:10
// y = linear(relu(h), 3)                                                                           shards.mt:11
// loss = cross_entropy(y, label)                                                                   shards.mt:15
struct eval_h_to_prediction {
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
        float *h_relu = row_memory(team, shared, row_floats);
        float *y = h_relu + H;

        // h[i, j] = ((sum over k of x[i, k] * h.0.weight[j, k]) + h.0.bias[j]) *
        //         (1 / sqrt(h.1.running_var[j] + ...) * h.1.weight[j]) +
        //         (h.1.bias[j] - h.1.running_mean[j] * (... / sqrt(...) * h.1.weight[j]))
        auto term = [&](int j, int k) { return t.x[example * X + k] * t.h_0_weight[j * X + k]; };
        auto store = [&](int j, float sum) {
            float scale = 1.0f / root(t.h_1_running_var[j] + 1e-05f) * t.h_1_weight[j];
            float h = (sum + t.h_0_bias[j]) * scale + (t.h_1_bias[j] - t.h_1_running_mean[j] * scale);
            h_relu[j] = relu(h);
        };
        team_product<H, X>(team, term, store);
        team.sync();

        // y[i, j] = (sum over k of relu(h[i, k]) * y.weight[j, k]) + y.bias[j]
        auto term_2 = [&](int j, int k) { return h_relu[k] * t.y_weight[j * H + k]; };
        auto store_2 = [&](int j, float sum) { y[j] = sum + t.y_bias[j]; };
        team_product<Y, H>(team, term_2, store_2);
        team.sync();

        // y_max[i] = max over j of y[i, j]
        float y_max = -INFINITY;
        for (int j = team.first; j < Y; j += team.stride)
            y_max = fmax(y_max, y[j]);
        y_max = team_max(team, y_max);

        // y_sum[i] = sum over j of exp(y[i, j] - y_max[i])
        // target_score[i] = sum over j of (label[i] == j ? y[i, j] - y_max[i] : 0)
        float y_sum = 0;
        float target_score = 0;
        int label = t.label[example];
        for (int j = team.first; j < Y; j += team.stride) {
            float y_sub = y[j] - y_max;
            y_sum += exp(y_sub);
            target_score += label == j ? y_sub : 0.0f;
        }
        y_sum = team_sum(team, y_sum);
        target_score = team_sum(team, target_score);

        // loss_part[i] = (log(y_sum[i]) - target_score[i]) * share(i)
        if (leads(team))
            t.eval_loss_part[i] = (log(y_sum) - target_score) * row_share;

        // prediction[i, j] = exp(y[i, j] - y_max[i]) * (1 / y_sum[i])
        for (int j = team.first; j < Y; j += team.stride)
            t.eval_prediction[i * Y + j] = exp(y[j] - y_max) * (1.0f / y_sum);
    }
};

// loss = cross_entropy(y, label)                                                                   shards.mt:15
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

using Eval = ShardStep<Tensors, BATCH, WHOLE_BATCH, REPORTS, Phase<eval_h_to_prediction>, Phase<eval_report_loss>>;

static const char *evaluate(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    return launch_evaluation<Eval>(run, first, rows, slot);
}

} // namespace

// ---- tables for the runtime ---------------------------------------------------------------------------------

// file, NULL: this model's own; line; text
static const MtcStatement statement_table[] = {
    {NULL, 10, "h = batch_norm(linear(dropout(x, 0.5), 6))"}, // 0: h.0.weight
    {NULL, 11, "y = linear(relu(h), 3)"},                     // 1: y.weight
    {NULL, 15, "loss = cross_entropy(y, label)"},             // 2: eval_loss_part
    {NULL, 16, "optimizer = sgd(0.1, momentum = 0.9)"},       // 3: h_sub
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
     .b = 0.44721359549995787, .statement = 0},
    {.name = "h.0.bias", .rank = 1, .dim = {6}, .offset = 256, .init = MTC_UNIFORM, .a = -0.44721359549995787,
     .b = 0.44721359549995787, .statement = 0},
    {.name = "h.1.weight", .rank = 1, .dim = {6}, .offset = 512, .init = MTC_CONSTANT, .a = 1, .statement = 0},
    {.name = "h.1.bias", .rank = 1, .dim = {6}, .offset = 768, .statement = 0},
    {.name = "h.1.running_mean", .role = MTC_BUFFER, .rank = 1, .dim = {6}, .offset = 1024, .statement = 0},
    {.name = "h.1.running_var", .role = MTC_BUFFER, .rank = 1, .dim = {6}, .offset = 1280, .init = MTC_CONSTANT,
     .a = 1, .statement = 0},
    {.name = "y.weight", .rank = 2, .dim = {3, 6}, .offset = 1536, .init = MTC_UNIFORM, .a = -0.40824829046386296,
     .b = 0.40824829046386296, .statement = 1},
    {.name = "y.bias", .rank = 1, .dim = {3}, .offset = 1792, .init = MTC_UNIFORM, .a = -0.40824829046386296,
     .b = 0.40824829046386296, .statement = 1},
    {.name = "h.0.weight.momentum", .role = MTC_STATE, .rank = 2, .dim = {6, 5}, .offset = 4096, .statement = 0},
    {.name = "h.0.bias.momentum", .role = MTC_STATE, .rank = 1, .dim = {6}, .offset = 4352, .statement = 0},
    {.name = "h.1.weight.momentum", .role = MTC_STATE, .rank = 1, .dim = {6}, .offset = 4608, .statement = 0},
    {.name = "h.1.bias.momentum", .role = MTC_STATE, .rank = 1, .dim = {6}, .offset = 4864, .statement = 0},
    {.name = "y.weight.momentum", .role = MTC_STATE, .rank = 2, .dim = {3, 6}, .offset = 5120, .statement = 1},
    {.name = "y.bias.momentum", .role = MTC_STATE, .rank = 1, .dim = {3}, .offset = 5376, .statement = 1},
    VALUE("to_h_2_where", MTC_F32, 5888, 0, 0, 2, {4, 5}),
    VALUE("to_h_add", MTC_F32, 5632, 0, 0, 2, {4, 6}),
    VALUE("h_sub", MTC_F32, 6400, 0, 1, 2, {4, 6}),
    VALUE("h.inverse_deviation", MTC_F32, 6656, 0, 1, 1, {6}),
    VALUE("h_relu", MTC_F32, 6144, 1, 1, 2, {4, 6}),
    VALUE("loss_part", MTC_F32, 5632, 2, 2, 1, {4}),
    VALUE("d_y", MTC_F32, 7424, 2, 2, 2, {4, 3}),
    VALUE("d_h", MTC_F32, 7680, 1, 2, 2, {4, 6}),
    VALUE("d_h_1_weight_mul", MTC_F32, 7936, 0, 3, 2, {4, 6}),
    VALUE("h_sub", MTC_F32, 6912, 3, 1, 1, {6}),
    VALUE("h_sub", MTC_F32, 7168, 3, 1, 1, {6}),
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
    {"to_h", 0, 0, MTC_MATH_FP32, 264, 344},
    {"to_h_2", 0, 0, MTC_MATH_FP32, 20, 160},
    {"h", 0, 1, MTC_MATH_FP32, 258, 456},
    {"y_to_d_h", 1, 2, MTC_MATH_FP32, 436, 476},
    {"d_h_1_weight", 0, 3, MTC_MATH_FP32, 252, 480},
    {"d_y_weight", 1, 3, MTC_MATH_FP32, 144, 312},
    {"report_loss", 2, 3, MTC_MATH_FP32, 44, 164},
    {"d_h_0_weight", 0, 4, MTC_MATH_FP32, 240, 416},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "shards",
    .source = "shards.mt",
    .target = "cuda",
    .architectures = "",
    .schedule = "graph",
    .model_hash = "f41066063bbcfdbd0a3894a597ee3050586dfdf073f902ea5fa7b89f84fa9857",
    .training = "loss = cross_entropy(y, label)\n"
                "optimizer = sgd(0.1, momentum = 0.9)\n"
                "batch = 10",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 69,
    .flops_per_step = 5193,
    .arena_bytes = 8192,
    .unshared_bytes = 8960,
    .train_phases = 5,
    .eval_phases = 2,
    .tensors = 25,
    .fields = 2,
    .origins = 1,
    .splits = 1,
    .knobs = 0,
    .fixed = 0,
    .settings = 1,
    .reports = REPORTS,
    .kernels = 8,
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
    .prediction_offset = 5888,
    .prediction_rank = 1,
    .prediction_dim = {3},
    .prediction_is_classes = true,
    .statements = 4,
    .statement = statement_table,
    .train_until = train_until,
    .eval = evaluate,
    .shuffle = shuffle,
    .draw = launch_draw,
    .run_kernel = run_kernel,
    .prepare = prepare,
    .release = release,
    .shards = 3,
    .whole_batch = WHOLE_BATCH,
    .sums_offset = 2048,
    .sums_bytes = 2048,
    .train_shard = train_shard,
    .train_whole = train_whole,
    .update = update,
    .add_sums = add_sums,
    .add_over_peers = add_sums_over_peers,
    .train_among = train_among,
};

// ---- main ---------------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    return mtc_main(&mtc_model, argc, argv);
}
