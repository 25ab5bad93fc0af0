// attend: a model of 339 parameters, compiled by mtc from attend.mt
//
//   step      33.9 KFLOP in 7 phases
//   memory    9.8 KB arena (16.2 KB without sharing): weights 2.0 KB, optimizer state 0 B, values 7.8 KB
//   schedule  graph: 17.8 us a step estimated
//             (persistent: 12.3 us, but functions of the library take the shared memory that a persistent
//             kernel keeps for all its phases)
//
//   phase 1   tokens_reshape   1 tile
//   phase 2   qkv              24 tiles
//   phase 3   mixed            8 tiles
//   phase 4   logits           1 tile
//   phase 5   d_qkv_dots       7 tiles
//             d_logits_weight  4 tiles
//             report_loss      1 tile
//   phase 6   d_qkv            8 tiles
//   phase 7   d_qkv_weight     2 tiles
//             update_qkv_bias  3 tiles
//
// From top to bottom: sizes; tensors; one function per kernel, in the order of a training step; the phases that
// group them; the step; evaluation; tables for the runtime; main.
//
// How it runs: a kernel is cut into tiles, and a tile is the work of one block of 256 threads: a call of the
// kernel's run(). Phases run one after the other; the tiles of a phase, of all its kernels, may run at the same
// time, in any order. A tile may start while the phase before is still running; gate() returns when that has
// ended. What that phase does not write may be read ahead of the gate, and is. A step is a CUDA graph of a
// launch or more per phase, with a block for each tile (cuda/schedule.cuh).

#include "mtc.h" // the runtime: data, command line, checkpoints

#include "cuda/attention.cuh" // softmax(scale q k^T) v of heads, and its gradient
#include "cuda/batch.cuh"     // row: the example in a row of the batch; share: its part in a mean
#include "cuda/math.cuh"      // relu, sigmoid ...
#include "cuda/matmul.cuh"    // matmul<Product<M, N, K>, Tile<m, n, k, tm, tn>>(...)
#include "cuda/pack.cuh"      // neighbouring numbers that a thread moves at once
#include "cuda/repeated.cuh"  // a kernel again and again, alone
#include "cuda/schedule.cuh"  // phases as one persistent kernel or as a CUDA graph
#include "cuda/team.cuh"      // the threads of a row

#include <algorithm>

// ---- sizes --------------------------------------------------------------------------------------------------

enum {
    BATCH = 4,
    TOKENS_ROWS = 7,
    TOKENS = 6,
    QKV_COLUMNS = 24,
    MIXED_COLUMNS = 8,
    LOGITS_WEIGHT_COLUMNS = 56,
    LOGITS = 3
};
enum { REPORT_LOSS, REPORTS };

namespace { // of this file alone: a kernel may be called like a function of others, or of another program

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

struct Tensors {
    const MtcRun &run;
    char *arena;

    const float *tokens = (const float *)run.data.field[0];                // data set: [examples, TOKENS_ROWS, TOKENS]
    const unsigned char *label = (const unsigned char *)run.data.field[1]; // data set: [examples]
    float *qkv_weight = (float *)(arena + 0);                              // [QKV_COLUMNS, TOKENS]
    float *qkv_bias = (float *)(arena + 768);                              // [QKV_COLUMNS]
    float *logits_weight = (float *)(arena + 1024);                        // [LOGITS, LOGITS_WEIGHT_COLUMNS]
    float *logits_bias = (float *)(arena + 1792);                          // [LOGITS]
    float *eval_loss_part = (float *)(arena + 2048);                       // [BATCH]
    float *eval_qkv = (float *)(arena + 2048);                             // [BATCH, TOKENS_ROWS, QKV_COLUMNS]
    float *qkv = (float *)(arena + 2048);                                  // [BATCH, TOKENS_ROWS, QKV_COLUMNS]
    float *eval_prediction = (float *)(arena + 2304);                      // [BATCH, LOGITS]
    float *d_qkv = (float *)(arena + 4864);                                // [BATCH, TOKENS_ROWS, QKV_COLUMNS]
    float *eval_mixed = (float *)(arena + 4864);                           // [BATCH, TOKENS_ROWS, MIXED_COLUMNS]
    float *mixed = (float *)(arena + 4864);                                // [BATCH, TOKENS_ROWS, MIXED_COLUMNS]
    float *loss_part = (float *)(arena + 5888);                            // [BATCH]
    float *d_logits = (float *)(arena + 6144);                             // [BATCH, LOGITS]
    float *logits_matmul = (float *)(arena + 7680);                        // [BATCH, LOGITS_WEIGHT_COLUMNS]
    float *tokens_reshape = (float *)(arena + 8704);                       // [BATCH * TOKENS_ROWS, TOKENS]
    float *mixed_sums = (float *)(arena + 9472);                           // [BATCH, TOKENS_ROWS, 2]
    float *d_qkv_dots = (float *)(arena + 9728);                           // [BATCH, TOKENS_ROWS, 2]
};

// Layers that are alike share their kernels, which are given the tensors of one place, Own:
// tokens_reshape_places has a row for each, where its tensors begin, in units of 256 bytes. A launch takes row
// 0, made again row 1, 2 ...; At<kernel, 3, 2, 4> takes rows 3 to 6, made again 5 to 8 (cuda/phase.cuh).

// ---- training step ------------------------------------------------------------------------------------------

// qkv = linear(tokens, 24)                                                                          attend.mt:9
//     tokens.reshape[i, j] = tokens[i / TOKENS_ROWS, i % TOKENS_ROWS, j]
static __constant__ unsigned tokens_reshape_places[2][1] = {
    {34}, // tokens_reshape
    {19}, // eval_tokens_reshape
};
struct tokens_reshape {
    struct Own {
        const float *tokens;
        float *tokens_reshape;
        __device__ Own(const Tensors &t, int row) {
            tokens = t.tokens;
            begin_at(tokens_reshape_places[row], tokens_reshape);
        }
    };
    static constexpr int tiles = divide_up(BATCH * TOKENS_ROWS * TOKENS, Thread::rows);
    static __device__ void run(const Own &t, const Batch &batch, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= BATCH * TOKENS_ROWS * TOKENS)
            return;
        t.tokens_reshape[i] =
            t.tokens[row(batch, i / (TOKENS_ROWS * TOKENS)) * TOKENS_ROWS * TOKENS + i % (TOKENS_ROWS * TOKENS)];
    }
};

// qkv = linear(tokens, 24)                                                                          attend.mt:9
//     qkv[i, j, k] = (sum over l of tokens.reshape[i * TOKENS_ROWS + j, l] * qkv.weight[k, l]) + qkv.bias[k]
static __constant__ unsigned qkv_places[2][4] = {
    {34, 0, 3, 8}, // qkv
    {19, 0, 3, 8}, // eval_qkv
};
struct qkv {
    struct Own {
        float *tokens_reshape, *qkv_weight, *qkv_bias, *qkv;
        __device__ Own(const Tensors &t, int row) {
            begin_at(qkv_places[row], tokens_reshape, qkv_weight, qkv_bias, qkv);
        }
    };
    // 24 tiles of 8 x 4 outputs, 4 x 4 a thread, 128 slices of k; no panels in shared memory (cuda/direct.cuh)
    using Shape = Product<BATCH * TOKENS_ROWS, QKV_COLUMNS, TOKENS>;
    using Cut = Tile<8, 4, 64, 4, 4>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Own &t, const Batch &, int tile, char *shared, Gate &gate) {
        auto left = matrix<TOKENS>(t.tokens_reshape);
        auto right = transposed(matrix<TOKENS>(t.qkv_weight));
        struct Ahead {
            float qkv_bias;
        };
        auto read = [&](int i, int j) { return Ahead{t.qkv_bias[j]}; };
        auto out = [&](int i, int j, float sum, const Ahead &ahead) {
            t.qkv[i * QKV_COLUMNS + j] = sum + ahead.qkv_bias;
        };
        matmul<Shape, Cut>(tile, left, right, shared, gate, preloaded_early(read, out));
    }
};

// mixed = attention(q, k, v, heads = 2, causal = true)                                             attend.mt:13
//     w[i, j] = softmax over j <= i of 0.5 * (q[i] . k[j])
//     mixed[i] = sum over j of w[i, j] * v[j]
//     where q, k, v are heads in the rows of qkv, 2 of each
struct mixed {
    // shape: type of numbers, examples, positions, heads of queries, of keys, numbers of a head, causal, window
    using Shape = Attention<float, BATCH, TOKENS_ROWS, 2, 2, 4, true, 0>;
    static constexpr int tiles = attend_tiles<Shape>();
    static constexpr int shared_bytes = attend_shared<Shape>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        gate();
        attend<Shape>(t.qkv, t.mixed, t.mixed_sums, 0.5f, tile, shared);
    }
};

// logits = linear(flatten(mixed), 3)                                                               attend.mt:14
// loss = cross_entropy(logits, label)                                                              attend.mt:18
struct logits {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = LOGITS + LOGITS; // that a row keeps from stage to stage
    static constexpr int shared_bytes = team_shared<Warp>(row_floats);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        float row_share = share(batch, i);
        gate();
        if (i >= BATCH)
            return;
        float *logits = row_memory(team, shared, row_floats);
        float *d_logits = logits + LOGITS;

        // logits[i, j] = (sum over k of mixed[i, k / MIXED_COLUMNS, k % MIXED_COLUMNS] * logits.weight[j, k]) +
        //         logits.bias[j]
        auto term = [&](int j, int k) {
            return t.mixed[i * TOKENS_ROWS * MIXED_COLUMNS + k] * t.logits_weight[j * LOGITS_WEIGHT_COLUMNS + k];
        };
        auto store = [&](int j, float sum) { logits[j] = sum + t.logits_bias[j]; };
        team_product<LOGITS, LOGITS_WEIGHT_COLUMNS>(team, term, store);
        team.sync();

        // logits_max[i] = max over j of logits[i, j]
        float logits_max = -INFINITY;
        for (int j = team.first; j < LOGITS; j += team.stride)
            logits_max = fmax(logits_max, logits[j]);
        logits_max = team_max(team, logits_max);

        // logits_sum[i] = sum over j of exp(logits[i, j] - logits_max[i])
        // target_score[i] = sum over j of (label[i] == j ? logits[i, j] - logits_max[i] : 0)
        float logits_sum = 0;
        float target_score = 0;
        int label = t.label[example];
        for (int j = team.first; j < LOGITS; j += team.stride) {
            float logits_sub = logits[j] - logits_max;
            logits_sum += exp(logits_sub);
            target_score += label == j ? logits_sub : 0.0f;
        }
        logits_sum = team_sum(team, logits_sum);
        target_score = team_sum(team, target_score);

        // d_logits[i, j] = share(i) / logits_sum[i] * exp(logits[i, j] - logits_max[i]) -
        //         (label[i] == j ? share(i) : 0)
        for (int j = team.first; j < LOGITS; j += team.stride)
            d_logits[j] = t.d_logits[i * LOGITS + j] =
                row_share / logits_sum * exp(logits[j] - logits_max) - (label == j ? row_share : 0.0f);
        team.sync();

        // loss_part[i] = (log(logits_sum[i]) - target_score[i]) * share(i)
        if (leads(team))
            t.loss_part[i] = (log(logits_sum) - target_score) * row_share;

        // logits_matmul[i, j] = sum over k of d_logits[i, k] * logits.weight[k, j]
        auto term_2 = [&](int j, int k) { return d_logits[k] * t.logits_weight[k * LOGITS_WEIGHT_COLUMNS + j]; };
        auto store_2 = [&](int j, float sum) { t.logits_matmul[i * LOGITS_WEIGHT_COLUMNS + j] = sum; };
        team_product<LOGITS_WEIGHT_COLUMNS, LOGITS>(team, term_2, store_2);
    }
};

// gradient of mixed = attention(q, k, v, heads = 2, causal = true)                                 attend.mt:13
struct d_qkv_dots {
    static constexpr int tiles = divide_up(BATCH * TOKENS_ROWS * 2, Warp::rows);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        gate();
        if (i >= BATCH * TOKENS_ROWS * 2)
            return;

        // d_mixed[i, j, k] = logits_matmul[i, j * MIXED_COLUMNS + k]
        // d_qkv.dots[i, j, k] = sum over l of d_mixed[i, j, k * 4 + l] * mixed[i, j, k * 4 + l]
        float dots = 0;
        for (int j = team.first; j < 4; j += team.stride)
            dots += t.logits_matmul[i * 4 + j] * t.mixed[i * 4 + j];
        dots = team_sum(team, dots);
        if (leads(team))
            t.d_qkv_dots[i] = dots;
    }
};

// gradient of logits = linear(flatten(mixed), 3)                                                   attend.mt:14
// optimizer = sgd(0.1)                                                                             attend.mt:19
//     d_logits.weight[i, j] = sum over k of d_logits[k, i] * mixed[k, j / MIXED_COLUMNS, j % MIXED_COLUMNS]
//     logits.weight[i, j] = logits.weight[i, j] - 0.1 * d_logits.weight[i, j]
//     d_logits.bias[i] = sum over j of d_logits[j, i]
//     logits.bias[i] = logits.bias[i] - 0.1 * d_logits.bias[i]
struct d_logits_weight {
    // 4 tiles of 16 x 16 outputs, 4 x 4 a thread, 16 slices of k; panels in shared memory (cuda/staged.cuh)
    using Shape = Product<LOGITS, LOGITS_WEIGHT_COLUMNS, BATCH>;
    using Cut = Tile<16, 16, 256, 4, 4>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        auto left = transposed(matrix<LOGITS>(t.d_logits));
        auto right = matrix<LOGITS_WEIGHT_COLUMNS>(t.mixed);
        struct Ahead {
            float logits_weight;
        };
        auto read = [&](int i, int j) { return Ahead{t.logits_weight[i * LOGITS_WEIGHT_COLUMNS + j]}; };
        auto out = [&](int i, int j, float sum, const Ahead &ahead) {
            t.logits_weight[i * LOGITS_WEIGHT_COLUMNS + j] = ahead.logits_weight - 0.1f * sum;
        };
        // the same for the sums over k of left(i, k)
        struct RowAhead {
            float logits_bias;
        };
        auto read_row = [&](int i) { return RowAhead{t.logits_bias[i]}; };
        auto row_out = [&](int i, float sum, const RowAhead &ahead) {
            t.logits_bias[i] = ahead.logits_bias - 0.1f * sum;
        };
        matmul<Shape, Cut>(tile, left, right, shared, gate, preloaded_early(read, out),
                           sum_of_a(preloaded_early(read_row, row_out)));
    }
};

// loss = cross_entropy(logits, label)                                                              attend.mt:18
static __constant__ unsigned report_loss_places[2][1] = {
    {23}, // report_loss
    {8},  // eval_report_loss
};
struct report_loss {
    struct Own {
        float *loss_part;
        __device__ Own(const Tensors &t, int row) {
            begin_at(report_loss_places[row], loss_part);
        }
    };
    static constexpr int tiles = 1;
    static __device__ void run(const Own &t, const Batch &batch, int, char *shared, Gate &gate) {
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

// gradient of mixed = attention(q, k, v, heads = 2, causal = true)                                 attend.mt:13
//     w[i, j] = softmax over j <= i of 0.5 * (q[i] . k[j]), from the sums
//     d[i, j] = 0.5 * w[i, j] * (d_mixed[i] . v[j] - d_qkv.dots[i])
//     dq[i] = sum over j of d[i, j] * k[j]
//     dk[j] = sum over i of d[i, j] * q[i]
//     dv[j] = sum over i of w[i, j] * d_mixed[i]
//     where q, k, v are heads in the rows of qkv, 2 of each; dq, dk, dv in those of d_qkv
struct d_qkv {
    // shape: type of numbers, examples, positions, heads of queries, of keys, numbers of a head, causal, window
    using Shape = Attention<float, BATCH, TOKENS_ROWS, 2, 2, 4, true, 0>;
    static constexpr int tiles = attend_grad_tiles<Shape>();
    static constexpr int shared_bytes = attend_grad_shared<Shape>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        gate();
        attend_grad<Shape>(t.qkv, t.mixed_sums, t.d_qkv_dots, t.logits_matmul, t.d_qkv, 0.5f, tile, shared);
    }
};

// gradient of qkv = linear(tokens, 24)                                                              attend.mt:9
// optimizer = sgd(0.1)                                                                             attend.mt:19
//     d_qkv.weight[i, j] = sum over k of d_qkv[k / TOKENS_ROWS, k % TOKENS_ROWS, i] * tokens.reshape[k, j]
//     qkv.weight[i, j] = qkv.weight[i, j] - 0.1 * d_qkv.weight[i, j]
struct d_qkv_weight {
    // 2 tiles of 16 x 16 outputs, 4 x 4 a thread, 16 slices of k; panels in shared memory (cuda/staged.cuh)
    using Shape = Product<QKV_COLUMNS, TOKENS, BATCH * TOKENS_ROWS>;
    using Cut = Tile<16, 16, 256, 4, 4>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        auto left = transposed(matrix<QKV_COLUMNS>(t.d_qkv));
        auto right = matrix<TOKENS>(t.tokens_reshape);
        struct Ahead {
            float qkv_weight;
        };
        auto read = [&](int i, int j) { return Ahead{t.qkv_weight[i * TOKENS + j]}; };
        auto out = [&](int i, int j, float sum, const Ahead &ahead) {
            t.qkv_weight[i * TOKENS + j] = ahead.qkv_weight - 0.1f * sum;
        };
        matmul<Shape, Cut>(tile, left, right, shared, gate, preloaded_early(read, out));
    }
};

// gradient of qkv = linear(tokens, 24)                                                              attend.mt:9
// optimizer = sgd(0.1)                                                                             attend.mt:19
struct update_qkv_bias {
    static constexpr int tiles = divide_up(QKV_COLUMNS, Warp::rows);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        gate();
        if (i >= QKV_COLUMNS)
            return;

        // d_qkv.bias[i] = sum over j, k of d_qkv[j, k, i]
        float d_qkv_bias = 0;
        for (int j = team.first; j < BATCH * TOKENS_ROWS; j += team.stride)
            d_qkv_bias += t.d_qkv[j * QKV_COLUMNS + i];
        d_qkv_bias = team_sum(team, d_qkv_bias);

        // qkv.bias[i] = qkv.bias[i] - 0.1 * d_qkv.bias[i]
        if (leads(team))
            t.qkv_bias[i] -= 0.1f * d_qkv_bias;
    }
};

// ---- phases: one after the other; the kernels of a phase run at the same time -------------------------------

using train_5 = Phase<d_qkv_dots, d_logits_weight, At<report_loss, 0, 0>>;
using train_7 = Phase<d_qkv_weight, update_qkv_bias>;

using Train = Step<Tensors, BATCH, REPORTS, Phase<tokens_reshape>, Phase<qkv>, Phase<mixed>, Phase<logits>, train_5,
                   Phase<d_qkv>, train_7>;

// ---- the step -----------------------------------------------------------------------------------------------

static Replayed<Train> schedule;

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
    return schedule.prepare();
}

static void release() {
    schedule.release();
    repeated.release();
}

// ---- evaluation ---------------------------------------------------------------------------------------------

// mixed = attention(q, k, v, heads = 2, causal = true)                                             attend.mt:13
//     w[i, j] = softmax over j <= i of 0.5 * (q[i] . k[j])
//     mixed[i] = sum over j of w[i, j] * v[j]
//     where q, k, v are heads in the rows of qkv, 2 of each
struct eval_mixed {
    // shape: type of numbers, examples, positions, heads of queries, of keys, numbers of a head, causal, window
    using Shape = Attention<float, BATCH, TOKENS_ROWS, 2, 2, 4, true, 0>;
    static constexpr int tiles = attend_tiles<Shape>();
    static constexpr int shared_bytes = attend_shared<Shape>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        gate();
        attend<Shape>(t.eval_qkv, t.eval_mixed, nullptr, 0.5f, tile, shared);
    }
};

// logits = linear(flatten(mixed), 3)                                                               attend.mt:14
// loss = cross_entropy(logits, label)                                                              attend.mt:18
struct eval_logits_to_prediction {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static constexpr int row_floats = LOGITS; // that a row keeps from stage to stage
    static constexpr int shared_bytes = team_shared<Warp>(row_floats);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        float row_share = share(batch, i);
        gate();
        if (i >= BATCH)
            return;
        float *logits = row_memory(team, shared, row_floats);

        // logits[i, j] = (sum over k of mixed[i, k / MIXED_COLUMNS, k % MIXED_COLUMNS] * logits.weight[j, k]) +
        //         logits.bias[j]
        auto term = [&](int j, int k) {
            return t.eval_mixed[i * TOKENS_ROWS * MIXED_COLUMNS + k] * t.logits_weight[j * LOGITS_WEIGHT_COLUMNS + k];
        };
        auto store = [&](int j, float sum) { logits[j] = sum + t.logits_bias[j]; };
        team_product<LOGITS, LOGITS_WEIGHT_COLUMNS>(team, term, store);
        team.sync();

        // logits_max[i] = max over j of logits[i, j]
        float logits_max = -INFINITY;
        for (int j = team.first; j < LOGITS; j += team.stride)
            logits_max = fmax(logits_max, logits[j]);
        logits_max = team_max(team, logits_max);

        // logits_sum[i] = sum over j of exp(logits[i, j] - logits_max[i])
        // target_score[i] = sum over j of (label[i] == j ? logits[i, j] - logits_max[i] : 0)
        float logits_sum = 0;
        float target_score = 0;
        int label = t.label[example];
        for (int j = team.first; j < LOGITS; j += team.stride) {
            float logits_sub = logits[j] - logits_max;
            logits_sum += exp(logits_sub);
            target_score += label == j ? logits_sub : 0.0f;
        }
        logits_sum = team_sum(team, logits_sum);
        target_score = team_sum(team, target_score);

        // loss_part[i] = (log(logits_sum[i]) - target_score[i]) * share(i)
        if (leads(team))
            t.eval_loss_part[i] = (log(logits_sum) - target_score) * row_share;

        // prediction[i, j] = exp(logits[i, j] - logits_max[i]) * (1 / logits_sum[i])
        for (int j = team.first; j < LOGITS; j += team.stride)
            t.eval_prediction[i * LOGITS + j] = exp(logits[j] - logits_max) * (1.0f / logits_sum);
    }
};

using eval_5 = Phase<At<report_loss, 1, 0>>;

using Eval = Step<Tensors, BATCH, REPORTS, Again<Phase<tokens_reshape>, 1>, Again<Phase<qkv>, 1>, Phase<eval_mixed>,
                  Phase<eval_logits_to_prediction>, eval_5>;

static const char *evaluate(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    return launch_evaluation<Eval>(run, first, rows, slot);
}

} // namespace

// ---- tables for the runtime ---------------------------------------------------------------------------------

// file, NULL: this model's own; line; text
static const MtcStatement statement_table[] = {
    {NULL, 9, "qkv = linear(tokens, 24)"},
    {NULL, 13, "mixed = attention(q, k, v, heads = 2, causal = true)"},
    {NULL, 14, "logits = linear(flatten(mixed), 3)"},
    {NULL, 18, "loss = cross_entropy(logits, label)"},
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
    {.name = "qkv.weight", .rank = 2, .dim = {24, 6}, .offset = 0, .init = MTC_UNIFORM, .a = -0.40824829046386296,
     .b = 0.40824829046386296, .statement = 0},
    {.name = "qkv.bias", .rank = 1, .dim = {24}, .offset = 768, .init = MTC_UNIFORM, .a = -0.40824829046386296,
     .b = 0.40824829046386296, .statement = 0},
    {.name = "logits.weight", .rank = 2, .dim = {3, 56}, .offset = 1024, .init = MTC_UNIFORM, .a = -0.1336306209562122,
     .b = 0.1336306209562122, .statement = 2},
    {.name = "logits.bias", .rank = 1, .dim = {3}, .offset = 1792, .init = MTC_UNIFORM, .a = -0.1336306209562122,
     .b = 0.1336306209562122, .statement = 2},
    VALUE("tokens.reshape", MTC_F32, 8704, 0, 0, 2, {28, 6}),
    VALUE("qkv", MTC_F32, 2048, 0, 1, 3, {4, 7, 24}),
    VALUE("mixed", MTC_F32, 4864, 1, 2, 3, {4, 7, 8}),
    VALUE("loss_part", MTC_F32, 5888, 3, 3, 1, {4}),
    VALUE("d_logits", MTC_F32, 6144, 3, 3, 2, {4, 3}),
    VALUE("logits_matmul", MTC_F32, 7680, 2, 3, 2, {4, 56}),
    VALUE("mixed.sums", MTC_F32, 9472, 1, 2, 3, {4, 7, 2}),
    VALUE("d_qkv.dots", MTC_F32, 9728, 1, 4, 3, {4, 7, 2}),
    VALUE("d_qkv", MTC_F32, 4864, 1, 5, 3, {4, 7, 24}),
};
// clang-format on
#undef VALUE
static const MtcField field_table[] = {
    {.name = "tokens", .type = MTC_F32, .rank = 2, .dim = {7, 6}, .elements = 42, .classes = 0, .predicts = true},
    {.name = "label", .type = MTC_U8, .rank = 0, .dim = {0}, .elements = 1, .classes = 3, .predicts = false},
};
static const char *const paths[] = {"tokens", "label"};
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
    {"tokens_reshape", 0, 0, MTC_MATH_FP32, 168, 1344},
    {"qkv", 0, 1, MTC_MATH_FP32, 8064, 4032},
    {"mixed", 1, 2, MTC_MATH_FP32, 3584, 3808},
    {"logits", 2, 3, MTC_MATH_FP32, 2812, 2556},
    {"d_qkv_dots", 1, 4, MTC_MATH_FP32, 224, 2016},
    {"d_logits_weight", 2, 4, MTC_MATH_FP32, 1344, 2312},
    {"report_loss", 3, 4, MTC_MATH_FP32, 4, 20},
    {"d_qkv", 1, 5, MTC_MATH_FP32, 8960, 6720},
    {"d_qkv_weight", 0, 6, MTC_MATH_FP32, 8064, 4512},
    {"update_qkv_bias", 0, 6, MTC_MATH_FP32, 720, 2880},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "attend",
    .source = "attend.mt",
    .target = "cuda",
    .architectures = "",
    .schedule = "graph",
    .model_hash = "b890da68b4072fa8c0f62f5819707a5baafcb1f079c8aa8f1d1990cdb4e0b0f1",
    .training = "loss = cross_entropy(logits, label)\n"
                "optimizer = sgd(0.1)\n"
                "batch = 4",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 339,
    .flops_per_step = 33944,
    .arena_bytes = 9984,
    .unshared_bytes = 16640,
    .train_phases = 7,
    .eval_phases = 5,
    .tensors = 13,
    .fields = 2,
    .origins = 1,
    .splits = 1,
    .knobs = 0,
    .fixed = 0,
    .reports = REPORTS,
    .kernels = 10,
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
    .prediction_offset = 2304,
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
