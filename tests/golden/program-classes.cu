// program-classes: a model of 43 parameters, compiled by mtc from program-classes.mt
//
//   step      980 FLOP in 2 phases
//   memory    4.2 KB arena (5.0 KB without sharing): weights 1.0 KB, optimizer state 2.0 KB, values 1.2 KB
//   schedule  persistent: 1.3 us a step estimated (graph: 5.8 us)
//
//   phase 1   h_to_d_h     1 tile
//   phase 2   d_z_weight   1 tile
//             d_h_weight   1 tile
//             report_loss  1 tile
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

enum { BATCH = 4, X = 6, H = 4, Z = 3 };
enum { REPORT_LOSS, REPORT_ACCURACY, REPORTS };
constexpr float LOG_BETA1 = -0.105360516f;
constexpr float LOG_BETA2 = -0.0010005003f;

namespace { // of this file alone: a kernel may be called like a function of others, or of another program

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

struct Tensors {
    static constexpr int64_t arena_bytes = 4352;

    const MtcRun &run;
    char *arena;

    const float *x = (const float *)run.data.field[0];                     // data set: [examples, X]
    const unsigned char *label = (const unsigned char *)run.data.field[1]; // data set: [examples]
    float *h_weight = (float *)(arena + 0);                                // [H, X]
    float *h_bias = (float *)(arena + 256);                                // [H]
    float *z_weight = (float *)(arena + 512);                              // [Z, H]
    float *z_bias = (float *)(arena + 768);                                // [Z]
    float *h_weight_m = (float *)(arena + 1024);                           // [H, X]
    float *h_weight_v = (float *)(arena + 1280);                           // [H, X]
    float *h_bias_m = (float *)(arena + 1536);                             // [H]
    float *h_bias_v = (float *)(arena + 1792);                             // [H]
    float *z_weight_m = (float *)(arena + 2048);                           // [Z, H]
    float *z_weight_v = (float *)(arena + 2304);                           // [Z, H]
    float *z_bias_m = (float *)(arena + 2560);                             // [Z]
    float *z_bias_v = (float *)(arena + 2816);                             // [Z]
    float *eval_loss_part = (float *)(arena + 3072);                       // [BATCH]
    float *loss_part = (float *)(arena + 3072);                            // [BATCH]
    float *accuracy_part = (float *)(arena + 3328);                        // [BATCH]
    float *eval_accuracy_part = (float *)(arena + 3328);                   // [BATCH]
    float *d_z = (float *)(arena + 3584);                                  // [BATCH, Z]
    float *eval_prediction = (float *)(arena + 3584);                      // [BATCH, Z]
    float *h = (float *)(arena + 3840);                                    // [BATCH, H]
    float *h_to_d_h_where = (float *)(arena + 4096);                       // [BATCH, H]
};

// ---- training step ------------------------------------------------------------------------------------------

// h = dropout(relu(linear(x, 4)), 0.5)                                                     program-classes.mt:9
// z = linear(h, 3)                                                                        program-classes.mt:10
// loss = cross_entropy(z, label)                                                          program-classes.mt:14
// metric = accuracy(z, label)                                                             program-classes.mt:17
struct h_to_d_h {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = H + H + Z + Z; // that a row keeps from stage to stage
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
        float *x_relu = h + H;
        float *z = x_relu + H;
        float *d_z = z + Z;

        // h[i, j] = uniform(0, i * H + j) >= 0.5 ? relu((sum over k of x[i, k] * h.weight[j, k]) + h.bias[j]) * 2 : 0
        auto term = [&](int j, int k) { return t.x[example * X + k] * t.h_weight[j * X + k]; };
        auto store = [&](int j, float sum) {
            float x_relu_2 = relu(sum + t.h_bias[j]);
            float h_2 = uniform(batch, 0, i * H + j) >= 0.5f ? x_relu_2 * 2.0f : 0.0f;
            h[j] = h_2;
            x_relu[j] = x_relu_2;
            t.h[i * H + j] = h_2;
        };
        team_product<H, X>(team, term, store);
        team.sync();

        // z[i, j] = (sum over k of h[i, k] * z.weight[j, k]) + z.bias[j]
        auto term_2 = [&](int j, int k) { return h[k] * t.z_weight[j * H + k]; };
        auto store_2 = [&](int j, float sum) { z[j] = sum + t.z_bias[j]; };
        team_product<Z, H>(team, term_2, store_2);
        team.sync();

        // z_max[i] = max over j of z[i, j]
        float z_max = -INFINITY;
        for (int j = team.first; j < Z; j += team.stride)
            z_max = fmax(z_max, z[j]);
        z_max = team_max(team, z_max);

        // z_sum[i] = sum over j of exp(z[i, j] - z_max[i])
        // target_score[i] = sum over j of (label[i] == j ? z[i, j] - z_max[i] : 0)
        // predicted[i] = min over j of (z[i, j] == z_max[i] ? j : 3)
        float z_sum = 0;
        float target_score = 0;
        float predicted = INFINITY;
        int label = t.label[example];
        for (int j = team.first; j < Z; j += team.stride) {
            float z_sub = z[j] - z_max;
            z_sum += exp(z_sub);
            target_score += label == j ? z_sub : 0.0f;
            predicted = fmin(predicted, z[j] == z_max ? (float)j : 3.0f);
        }
        z_sum = team_sum(team, z_sum);
        target_score = team_sum(team, target_score);
        predicted = team_min(team, predicted);

        // d_z[i, j] = share(i) / z_sum[i] * exp(z[i, j] - z_max[i]) - (label[i] == j ? share(i) : 0)
        for (int j = team.first; j < Z; j += team.stride)
            d_z[j] = t.d_z[i * Z + j] = row_share / z_sum * exp(z[j] - z_max) - (label == j ? row_share : 0.0f);
        team.sync();

        // loss_part[i] = (log(z_sum[i]) - target_score[i]) * share(i)
        // accuracy_part[i] = predicted[i] == label[i] ? share(i) : 0
        if (leads(team)) {
            t.loss_part[i] = (log(z_sum) - target_score) * row_share;
            t.accuracy_part[i] = (int)predicted == label ? row_share : 0.0f;
        }

        // d_h[i, j] = sum over k of d_z[i, k] * z.weight[k, j]
        // d_h_pre[i, j] = uniform(0, i * H + j) >= 0.5 ? d_h[i, j] : 0
        // h_to_d_h_where[i, j] = relu((sum over k of x[i, k] * h.weight[j, k]) + h.bias[j]) > 0 ? d_h_pre[i, j] * 2 : 0
        auto term_3 = [&](int j, int k) { return d_z[k] * t.z_weight[k * H + j]; };
        auto store_3 = [&](int j, float sum) {
            float d_h_pre_mul = (uniform(batch, 0, i * H + j) >= 0.5f ? sum : 0.0f) * 2.0f;
            t.h_to_d_h_where[i * H + j] = x_relu[j] > 0.0f ? d_h_pre_mul : 0.0f;
        };
        team_product<H, Z>(team, term_3, store_3);
    }
};

// gradient of z = linear(h, 3)                                                            program-classes.mt:10
// optimizer = adam(1e-2)                                                                  program-classes.mt:15
//     d_z.weight[i, j] = sum over k of d_z[k, i] * h[k, j]
//     m[i, j] = 0.9 * z.weight.m[i, j] + 0.1 * d_z.weight[i, j]
//     v[i, j] = 0.999 * z.weight.v[i, j] + 0.001 * (d_z.weight[i, j] * d_z.weight[i, j])
//     correction = 1 / sqrt(1 - 0.999^step)
//     deviation[i, j] = sqrt(v[i, j]) * correction + 1e-08
//     rate = 0.01 / (1 - 0.9^step)
//     z.weight[i, j] = z.weight[i, j] - rate * (m[i, j] / deviation[i, j])
//     d_z.bias[i] = sum over j of d_z[j, i]
//     m[i] = 0.9 * z.bias.m[i] + 0.1 * d_z.bias[i]
//     v[i] = 0.999 * z.bias.v[i] + 0.001 * (d_z.bias[i] * d_z.bias[i])
//     deviation[i] = sqrt(v[i]) * correction + 1e-08
//     z.bias[i] = z.bias[i] - rate * (m[i] / deviation[i])
struct d_z_weight {
    // 1 tile of 16 x 16 outputs, 1 x 1 a thread; straight from memory (cuda/thin.cuh)
    using Shape = Product<Z, H, BATCH>;
    using Cut = Tile<16, 16, 1, 1, 1>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        auto left = transposed(matrix<Z>(t.d_z));
        auto right = matrix<H>(t.h);
        float rate = 0.01f / -expm1(step(batch) * LOG_BETA1);
        float correction = 1.0f / root(-expm1(step(batch) * LOG_BETA2));
        struct Ahead {
            float z_weight_m;
            float z_weight_v;
            float z_weight;
        };
        auto read = [&](int i, int j) {
            return Ahead{t.z_weight_m[i * H + j], t.z_weight_v[i * H + j], t.z_weight[i * H + j]};
        };
        auto out = [&](int i, int j, float sum, const Ahead &ahead) {
            float m = 0.9f * ahead.z_weight_m + 0.1f * sum;
            float v = 0.999f * ahead.z_weight_v + 0.001f * (sum * sum);
            t.z_weight_m[i * H + j] = m;
            t.z_weight_v[i * H + j] = v;
            t.z_weight[i * H + j] = ahead.z_weight - rate * (m / (root(v) * correction + 1e-08f));
        };
        // the same for the sums over k of left(i, k)
        struct RowAhead {
            float z_bias_m;
            float z_bias_v;
            float z_bias;
        };
        auto read_row = [&](int i) { return RowAhead{t.z_bias_m[i], t.z_bias_v[i], t.z_bias[i]}; };
        auto row_out = [&](int i, float sum, const RowAhead &ahead) {
            float m = 0.9f * ahead.z_bias_m + 0.1f * sum;
            float v = 0.999f * ahead.z_bias_v + 0.001f * (sum * sum);
            t.z_bias_m[i] = m;
            t.z_bias_v[i] = v;
            t.z_bias[i] = ahead.z_bias - rate * (m / (root(v) * correction + 1e-08f));
        };
        matmul<Shape, Cut>(tile, left, right, shared, gate, preloaded_early(read, out),
                           sum_of_a(preloaded_early(read_row, row_out)));
    }
};

// gradient of h = dropout(relu(linear(x, 4)), 0.5)                                         program-classes.mt:9
// optimizer = adam(1e-2)                                                                  program-classes.mt:15
//     d_h.weight[i, j] = sum over k of h_to_d_h_where[k, i] * x[k, j]
//     m[i, j] = 0.9 * h.weight.m[i, j] + 0.1 * d_h.weight[i, j]
//     v[i, j] = 0.999 * h.weight.v[i, j] + 0.001 * (d_h.weight[i, j] * d_h.weight[i, j])
//     deviation[i, j] = sqrt(v[i, j]) * correction + 1e-08
//     h.weight[i, j] = h.weight[i, j] - rate * (m[i, j] / deviation[i, j])
//     d_h.bias[i] = sum over j of h_to_d_h_where[j, i]
//     m[i] = 0.9 * h.bias.m[i] + 0.1 * d_h.bias[i]
//     v[i] = 0.999 * h.bias.v[i] + 0.001 * (d_h.bias[i] * d_h.bias[i])
//     deviation[i] = sqrt(v[i]) * correction + 1e-08
//     h.bias[i] = h.bias[i] - rate * (m[i] / deviation[i])
struct d_h_weight {
    // 1 tile of 16 x 16 outputs, 1 x 1 a thread; straight from memory (cuda/thin.cuh)
    using Shape = Product<H, X, BATCH>;
    using Cut = Tile<16, 16, 1, 1, 1, 2>; // the last: its first warp
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        auto from_stored = [](float v) { return v; };
        auto left = transposed(matrix<H>(t.h_to_d_h_where));
        auto right = gathered<X>(t.x, batch, from_stored);
        float rate = 0.01f / -expm1(step(batch) * LOG_BETA1);
        float correction = 1.0f / root(-expm1(step(batch) * LOG_BETA2));
        struct Ahead {
            float h_weight_m;
            float h_weight_v;
            float h_weight;
        };
        auto read = [&](int i, int j) {
            return Ahead{t.h_weight_m[i * X + j], t.h_weight_v[i * X + j], t.h_weight[i * X + j]};
        };
        auto out = [&](int i, int j, float sum, const Ahead &ahead) {
            float m = 0.9f * ahead.h_weight_m + 0.1f * sum;
            float v = 0.999f * ahead.h_weight_v + 0.001f * (sum * sum);
            t.h_weight_m[i * X + j] = m;
            t.h_weight_v[i * X + j] = v;
            t.h_weight[i * X + j] = ahead.h_weight - rate * (m / (root(v) * correction + 1e-08f));
        };
        // the same for the sums over k of left(i, k)
        struct RowAhead {
            float h_bias_m;
            float h_bias_v;
            float h_bias;
        };
        auto read_row = [&](int i) { return RowAhead{t.h_bias_m[i], t.h_bias_v[i], t.h_bias[i]}; };
        auto row_out = [&](int i, float sum, const RowAhead &ahead) {
            float m = 0.9f * ahead.h_bias_m + 0.1f * sum;
            float v = 0.999f * ahead.h_bias_v + 0.001f * (sum * sum);
            t.h_bias_m[i] = m;
            t.h_bias_v[i] = v;
            t.h_bias[i] = ahead.h_bias - rate * (m / (root(v) * correction + 1e-08f));
        };
        matmul<Shape, Cut>(tile, left, right, shared, gate, preloaded_early(read, out),
                           sum_of_a(preloaded_early(read_row, row_out)));
    }
};

// loss = cross_entropy(z, label)                                                          program-classes.mt:14
// metric = accuracy(z, label)                                                             program-classes.mt:17
struct report_loss {
    static constexpr int tiles = 1;
    static __device__ void run(const Tensors &t, const Batch &batch, int, char *shared, Gate &gate) {
        Warp team(shared);
        gate();
        if (team.row < WARPS - 1)
            return;

        // loss = sum over i of loss_part[i]
        // accuracy = sum over i of accuracy_part[i]
        float loss_part_sum = 0;
        float accuracy_part_sum = 0;
        for (int j = team.first; j < BATCH; j += team.stride) {
            loss_part_sum += t.loss_part[j];
            accuracy_part_sum += t.accuracy_part[j];
        }
        loss_part_sum = team_sum(team, loss_part_sum);
        accuracy_part_sum = team_sum(team, accuracy_part_sum);
        if (leads(team)) {
            batch.reports[REPORT_LOSS] = loss_part_sum;
            batch.reports[REPORT_ACCURACY] = accuracy_part_sum;
        }
    }
};

// ---- phases: one after the other; the kernels of a phase run at the same time -------------------------------

using train_2 = Phase<d_z_weight, d_h_weight, report_loss>;

using Train = Step<Tensors, BATCH, REPORTS, Phase<h_to_d_h>, train_2>;

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

// h = dropout(relu(linear(x, 4)), 0.5)                                                     program-classes.mt:9
// z = linear(h, 3)                                                                        program-classes.mt:10
// loss = cross_entropy(z, label)                                                          program-classes.mt:14
// metric = accuracy(z, label)                                                             program-classes.mt:17
struct eval_h_to_prediction {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = H + Z; // that a row keeps from stage to stage
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
        float *z = h + H;

        // h[i, j] = relu((sum over k of x[i, k] * h.weight[j, k]) + h.bias[j])
        auto term = [&](int j, int k) { return t.x[example * X + k] * t.h_weight[j * X + k]; };
        auto store = [&](int j, float sum) { h[j] = relu(sum + t.h_bias[j]); };
        team_product<H, X>(team, term, store);
        team.sync();

        // z[i, j] = (sum over k of h[i, k] * z.weight[j, k]) + z.bias[j]
        auto term_2 = [&](int j, int k) { return h[k] * t.z_weight[j * H + k]; };
        auto store_2 = [&](int j, float sum) { z[j] = sum + t.z_bias[j]; };
        team_product<Z, H>(team, term_2, store_2);
        team.sync();

        // z_max[i] = max over j of z[i, j]
        float z_max = -INFINITY;
        for (int j = team.first; j < Z; j += team.stride)
            z_max = fmax(z_max, z[j]);
        z_max = team_max(team, z_max);

        // z_sum[i] = sum over j of exp(z[i, j] - z_max[i])
        // target_score[i] = sum over j of (label[i] == j ? z[i, j] - z_max[i] : 0)
        // predicted[i] = min over j of (z[i, j] == z_max[i] ? j : 3)
        float z_sum = 0;
        float target_score = 0;
        float predicted = INFINITY;
        int label = t.label[example];
        for (int j = team.first; j < Z; j += team.stride) {
            float z_sub = z[j] - z_max;
            z_sum += exp(z_sub);
            target_score += label == j ? z_sub : 0.0f;
            predicted = fmin(predicted, z[j] == z_max ? (float)j : 3.0f);
        }
        z_sum = team_sum(team, z_sum);
        target_score = team_sum(team, target_score);
        predicted = team_min(team, predicted);

        // loss_part[i] = (log(z_sum[i]) - target_score[i]) * share(i)
        // accuracy_part[i] = predicted[i] == label[i] ? share(i) : 0
        if (leads(team)) {
            t.eval_loss_part[i] = (log(z_sum) - target_score) * row_share;
            t.eval_accuracy_part[i] = (int)predicted == label ? row_share : 0.0f;
        }

        // prediction[i, j] = exp(z[i, j] - z_max[i]) * (1 / z_sum[i])
        for (int j = team.first; j < Z; j += team.stride)
            t.eval_prediction[i * Z + j] = exp(z[j] - z_max) * (1.0f / z_sum);
    }
};

// loss = cross_entropy(z, label)                                                          program-classes.mt:14
// metric = accuracy(z, label)                                                             program-classes.mt:17
struct eval_report_loss {
    static constexpr int tiles = 1;
    static __device__ void run(const Tensors &t, const Batch &batch, int, char *shared, Gate &gate) {
        Warp team(shared);
        gate();
        if (team.row < WARPS - 1)
            return;

        // loss = sum over i of loss_part[i]
        // accuracy = sum over i of accuracy_part[i]
        float loss_part_sum = 0;
        float accuracy_part_sum = 0;
        for (int j = team.first; j < BATCH; j += team.stride) {
            loss_part_sum += t.eval_loss_part[j];
            accuracy_part_sum += t.eval_accuracy_part[j];
        }
        loss_part_sum = team_sum(team, loss_part_sum);
        accuracy_part_sum = team_sum(team, accuracy_part_sum);
        if (leads(team)) {
            batch.reports[REPORT_LOSS] = loss_part_sum;
            batch.reports[REPORT_ACCURACY] = accuracy_part_sum;
        }
    }
};

using Eval = Step<Tensors, BATCH, REPORTS, Phase<eval_h_to_prediction>, Phase<eval_report_loss>>;

static const char *evaluate(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    return launch_evaluation<Eval>(run, first, rows, slot);
}

} // namespace

// ---- tables for the runtime ---------------------------------------------------------------------------------

// file, NULL: this model's own; line; text
static const MtcStatement statement_table[] = {
    {NULL, 9, "h = dropout(relu(linear(x, 4)), 0.5)"}, // 0: h.weight
    {NULL, 10, "z = linear(h, 3)"},                    // 1: z.weight
    {NULL, 14, "loss = cross_entropy(z, label)"},      // 2: eval_loss_part
    {NULL, 17, "metric = accuracy(z, label)"},         // 3: accuracy_part
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
    {.name = "z.weight", .rank = 2, .dim = {3, 4}, .offset = 512, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 1},
    {.name = "z.bias", .rank = 1, .dim = {3}, .offset = 768, .init = MTC_UNIFORM, .a = -0.49999999999999994,
     .b = 0.49999999999999994, .statement = 1},
    {.name = "h.weight.m", .role = MTC_STATE, .rank = 2, .dim = {4, 6}, .offset = 1024, .statement = 0},
    {.name = "h.weight.v", .role = MTC_STATE, .rank = 2, .dim = {4, 6}, .offset = 1280, .statement = 0},
    {.name = "h.bias.m", .role = MTC_STATE, .rank = 1, .dim = {4}, .offset = 1536, .statement = 0},
    {.name = "h.bias.v", .role = MTC_STATE, .rank = 1, .dim = {4}, .offset = 1792, .statement = 0},
    {.name = "z.weight.m", .role = MTC_STATE, .rank = 2, .dim = {3, 4}, .offset = 2048, .statement = 1},
    {.name = "z.weight.v", .role = MTC_STATE, .rank = 2, .dim = {3, 4}, .offset = 2304, .statement = 1},
    {.name = "z.bias.m", .role = MTC_STATE, .rank = 1, .dim = {3}, .offset = 2560, .statement = 1},
    {.name = "z.bias.v", .role = MTC_STATE, .rank = 1, .dim = {3}, .offset = 2816, .statement = 1},
    VALUE("h", MTC_F32, 3840, 0, 0, 2, {4, 4}),
    VALUE("loss_part", MTC_F32, 3072, 2, 0, 1, {4}),
    VALUE("accuracy_part", MTC_F32, 3328, 3, 0, 1, {4}),
    VALUE("d_z", MTC_F32, 3584, 2, 0, 2, {4, 3}),
    VALUE("h_to_d_h_where", MTC_F32, 4096, 0, 0, 2, {4, 4}),
};
// clang-format on
#undef VALUE
static const MtcField field_table[] = {
    {.name = "x", .type = MTC_F32, .rank = 1, .dim = {6}, .elements = 6, .classes = 0, .predicts = true},
    {.name = "label", .type = MTC_U8, .rank = 0, .dim = {0}, .elements = 1, .classes = 3, .predicts = false},
};
static const char *const paths[] = {"x", "y"};
static const MtcOrigin origin_table[] = {
    {.format = "idx", .paths = 2, .path = paths},
};
static const MtcSplit split_table[] = {
    {.name = "train", .origin = 0, .from = 0, .to = 1},
};
static const char *const report_table[] = {"loss", "accuracy"};
static const bool rises_table[] = {false, true};
// name; statement; phase, from 0 on; what its arithmetic is in, how much of it; bytes, if every buffer is touched once
// clang-format off
static const MtcKernel kernel_table[] = {
    {"h_to_d_h", 0, 0, MTC_MATH_FP32, 684, 492},
    {"d_z_weight", 1, 1, MTC_MATH_FP32, 96, 472},
    {"d_h_weight", 0, 1, MTC_MATH_FP32, 192, 832},
    {"report_loss", 2, 1, MTC_MATH_FP32, 8, 40},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "program-classes",
    .source = "program-classes.mt",
    .target = "cuda",
    .architectures = "",
    .schedule = "persistent",
    .model_hash = "4178b8256f416389ab1b9d13e7b380e31a5b19c8e82217ce6d6980e33087e305",
    .training = "loss = cross_entropy(z, label)\n"
                "optimizer = adam(1e-2)\n"
                "batch = 4\n"
                "metric = accuracy(z, label)",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 43,
    .flops_per_step = 980,
    .arena_bytes = 4352,
    .unshared_bytes = 5120,
    .train_phases = 2,
    .eval_phases = 2,
    .tensors = 17,
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
    .prediction_offset = 3584,
    .prediction_rank = 1,
    .prediction_dim = {3},
    .prediction_is_classes = true,
    .statements = 4,
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
