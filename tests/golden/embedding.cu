// embedding: a model of 6,208 parameters, compiled by mtc from embedding.mt
//
//   step      211 MFLOP in 6 phases
//   memory    6.9 MB arena (15.0 MB without sharing): weights 24.2 KB, optimizer state 0 B, values 6.9 MB
//   schedule  graph: 30.9 us a step estimated (persistent: 38.8 us)
//
//   phase 1   x                   1,024 tiles
//             tokens              32 tiles
//   phase 2   scores              320 tiles
//   phase 3   d_scores            1,024 tiles
//   phase 4   d_x                 128 tiles
//             to_d_table          320 tiles
//             loss_part           32 tiles
//   phase 5   gather_grad_kernel  130 tiles
//             update_x            128 tiles
//             to_d_table_2        65 tiles
//             report_loss         1 tile
//   phase 6   update_table        17 tiles
//
// From top to bottom: sizes; tensors; one function per kernel, in the order of a training step; the phases that
// group them; the step; evaluation; decoding; tables for the runtime; main.
//
// How it runs: a kernel is cut into tiles, and a tile is the work of one block of 256 threads: a call of the
// kernel's run(). Phases run one after the other; the tiles of a phase, of all its kernels, may run at the same
// time, in any order. A tile may start while the phase before is still running; gate() returns when that has
// ended. What that phase does not write may be read ahead of the gate, and is. A step is a CUDA graph of a
// launch or more per phase, with a block for each tile (cuda/schedule.cuh).

#include "mtc.h" // the runtime: data, command line, checkpoints

#include "cuda/batch.cuh"    // row: the example in a row of the batch; share: its part in a mean
#include "cuda/gather.cuh"   // the gradient of a table that was looked up
#include "cuda/hold.cuh"     // rows that are read from shared memory
#include "cuda/math.cuh"     // relu, sigmoid ...
#include "cuda/matmul.cuh"   // matmul<Product<M, N, K>, Tile<m, n, k, tm, tn>>(...)
#include "cuda/pack.cuh"     // neighbouring numbers that a thread moves at once
#include "cuda/repeated.cuh" // a kernel again and again, alone
#include "cuda/schedule.cuh" // phases as one persistent kernel or as a CUDA graph
#include "cuda/team.cuh"     // the threads of a row
#include "cuda/tokens.cuh"   // tokens one after the other: graphs of their launches

#include <algorithm>

// ---- sizes --------------------------------------------------------------------------------------------------

enum { BATCH = 256, WINDOW = 33, TOKENS = 32, SCORES_COLUMNS = 65, X_COLUMNS = 64 };
enum { REPORT_LOSS, REPORTS };

namespace { // of this file alone: a kernel may be called like a function of others, or of another program

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

struct Tensors {
    const MtcRun &run;
    char *arena;

    // data set: [examples, WINDOW], which overlap
    const unsigned char *window = (const unsigned char *)run.data.field[0];
    int64_t window_stride = run.data.stride[0];              // elements from an example of window to the next
    float *table = (float *)(arena + 0);                     // [SCORES_COLUMNS, X_COLUMNS]
    float *x = (float *)(arena + 16640);                     // [TOKENS, X_COLUMNS]
    float *decode_prediction = (float *)(arena + 24832);     // [1, 1, SCORES_COLUMNS], in place of decode_scores
    float *decode_scores = (float *)(arena + 24832);         // [1, 1, SCORES_COLUMNS]
    float *eval_scores_matmul = (float *)(arena + 24832);    // [BATCH * TOKENS, SCORES_COLUMNS]
    float *gather_grad_2 = (float *)(arena + 24832);         // [SCORES_COLUMNS, X_COLUMNS]
    float *x_relu = (float *)(arena + 24832);                // [BATCH, TOKENS, X_COLUMNS]
    float *decode_x_relu = (float *)(arena + 25344);         // [1, 1, X_COLUMNS]
    float *to_d_table_2_sum = (float *)(arena + 41472);      // [SCORES_COLUMNS, X_COLUMNS]
    float *d_x = (float *)(arena + 2121984);                 // [BATCH, TOKENS, X_COLUMNS]
    float *scores_matmul = (float *)(arena + 2121984);       // [BATCH * TOKENS, SCORES_COLUMNS]
    float *eval_prediction = (float *)(arena + 2154752);     // [BATCH, TOKENS, SCORES_COLUMNS]
    float *eval_x_relu = (float *)(arena + 2154752);         // [BATCH, TOKENS, X_COLUMNS]
    float *d_scores = (float *)(arena + 4251904);            // [BATCH, TOKENS, SCORES_COLUMNS]
    float *eval_prediction_sub = (float *)(arena + 4284672); // [BATCH, TOKENS]
    bool *x_gt = (bool *)(arena + 6381824);                  // [BATCH, TOKENS, X_COLUMNS]
    float *to_d_table_matmul = (float *)(arena + 6906112);   // [16, SCORES_COLUMNS, X_COLUMNS]
    int *tokens = (int *)(arena + 7172352);                  // [BATCH, TOKENS]
    float *d_scores_sub = (float *)(arena + 7205120);        // [BATCH, TOKENS]
};

// Layers that are alike share their kernels, which are given the tensors of one place, Own: scores_places has a
// row for each, where its tensors begin, in units of 256 bytes. A launch takes row 0, made again row 1, 2 ...;
// At<kernel, 3, 2, 4> takes rows 3 to 6, made again 5 to 8 (cuda/phase.cuh).

// ---- training step ------------------------------------------------------------------------------------------

// x = gather(table, tokens) + weight([32, 64])                                                  embedding.mt:11
// scores = matmul(relu(x), table, transpose_b = true)                                           embedding.mt:12
//     x[i, j, k] = table[tokens[i, j], k] + x[j, k]
//     x_relu[i, j, k] = relu(x[i, j, k])
//     x_gt[i, j, k] = x_relu[i, j, k] > 0
struct x {
    static constexpr int tiles = divide_up(BATCH * TOKENS * X_COLUMNS, (2 * Thread::rows));
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *, Gate &gate) {
        int i = 2 * (tile * THREADS + threadIdx.x);
        gate();
        if (i >= BATCH * TOKENS * X_COLUMNS)
            return;
        int tokens = t.window[row(batch, i / X_COLUMNS / TOKENS) * t.window_stride + i / X_COLUMNS % TOKENS];
        Pack<float, 2> table = load_pack<2>(t.table + tokens * X_COLUMNS + i % X_COLUMNS);
        Pack<float, 2> x = load_pack<2>(t.x + i % (TOKENS * X_COLUMNS));
        Pack<float, 2> x_relu;
        Pack<bool, 2> x_gt;
        for (int v = 0; v < 2; v++) {
            float x_relu_2 = relu(table[v] + x[v]);
            x_relu[v] = x_relu_2;
            x_gt[v] = x_relu_2 > 0.0f;
        }
        store_pack(t.x_relu + i, x_relu);
        store_pack(t.x_gt + i, x_gt);
    }
};

// tokens = slice(window, 0, begin = 0, end = 32)                                                 embedding.mt:8
//     tokens[i, j] = window[i, j]
struct tokens {
    static constexpr int tiles = divide_up(BATCH * TOKENS, Thread::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= BATCH * TOKENS)
            return;
        t.tokens[i] = t.window[row(batch, i / TOKENS) * t.window_stride + i % TOKENS];
    }
};

// scores = matmul(relu(x), table, transpose_b = true)                                           embedding.mt:12
//     scores_matmul[i, j] = sum over k of x_relu[i / TOKENS, i % TOKENS, k] * table[j, k]
static __constant__ unsigned scores_places[2][3] = {
    {97, 0, 8289}, // scores
    {8417, 0, 97}, // eval_scores
};
struct scores {
    struct Own {
        float *x_relu, *table, *scores_matmul;
        __device__ Own(const Tensors &t, int row) {
            begin_at(scores_places[row], x_relu, table, scores_matmul);
        }
    };
    // 320 tiles of 128 x 16 outputs, 4 x 2 a thread; panels copied ahead to shared memory (cuda/pipelined.cuh)
    using Shape = Product<BATCH * TOKENS, SCORES_COLUMNS, X_COLUMNS>;
    using Cut = Tile<128, 16, 16, 4, 2>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Own &t, const Batch &, int tile, char *shared, Gate &gate) {
        auto left = matrix<X_COLUMNS>(t.x_relu);
        auto right = transposed(matrix<X_COLUMNS>(t.table));
        auto out = [&](int i, int j, float sum) { t.scores_matmul[i * SCORES_COLUMNS + j] = sum; };
        matmul<Shape, Cut>(tile, left, right, shared, gate, out);
    }
};

// loss = cross_entropy(scores, target)                                                          embedding.mt:16
struct d_scores {
    static constexpr int tiles = divide_up(BATCH * TOKENS, Warp::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int window = t.window[row(batch, i / TOKENS) * t.window_stride + i % TOKENS + 1];
        gate();
        if (i >= BATCH * TOKENS)
            return;

        // scores[i, j, k] = scores_matmul[i * TOKENS + j, k]
        // scores_max[i, j] = max over k of scores[i, j, k]
        float scores_max = -INFINITY;
        for (int j = team.first; j < SCORES_COLUMNS; j += team.stride)
            scores_max = fmax(scores_max, t.scores_matmul[i * SCORES_COLUMNS + j]);
        scores_max = team_max(team, scores_max);

        // scores_sum[i, j] = sum over k of exp(scores[i, j, k] - scores_max[i, j])
        // target[i, j] = window[i, j + 1]
        // target_score[i, j] = sum over k of (target[i, j] == k ? scores[i, j, k] - scores_max[i, j] : 0)
        float scores_sum = 0;
        float target_score = 0;
        for (int j = team.first; j < SCORES_COLUMNS; j += team.stride) {
            float scores_sub = t.scores_matmul[i * SCORES_COLUMNS + j] - scores_max;
            scores_sum += exp(scores_sub);
            target_score += window == j ? scores_sub : 0.0f;
        }
        scores_sum = team_sum(team, scores_sum);
        target_score = team_sum(team, target_score);

        // d_scores_sub[i, j] = log(scores_sum[i, j]) - target_score[i, j]
        if (leads(team))
            t.d_scores_sub[i] = log(scores_sum) - target_score;

        // d_scores[i, j, k] = share(i) * ... / scores_sum[i, j] * exp(scores[i, j, k] - scores_max[i, j]) -
        //         (target[i, j] == k ? share(i) * 0.03125 : 0)
        float share_mul = share(batch, i / TOKENS) * 0.03125f;
        for (int j = team.first; j < SCORES_COLUMNS; j += team.stride) {
            float share_mul_2 = share_mul / scores_sum * exp(t.scores_matmul[i * SCORES_COLUMNS + j] - scores_max);
            t.d_scores[i * SCORES_COLUMNS + j] = share_mul_2 - (window == j ? share_mul : 0.0f);
        }
    }
};

// gradient of scores = matmul(relu(x), table, transpose_b = true)                               embedding.mt:12
//     d_scores_pre[i, j] = d_scores[i / TOKENS, i % TOKENS, j]
//     d_x[i, j, k] = x_gt[i, j, k] ? (sum over l of d_scores_pre[i * TOKENS + j, l] * table[l, k]) : 0
struct d_x {
    // 128 tiles of 64 x 64 outputs, 4 x 4 a thread; panels copied ahead to shared memory (cuda/pipelined.cuh)
    using Shape = Product<BATCH * TOKENS, X_COLUMNS, SCORES_COLUMNS>;
    using Cut = Tile<64, 64, 16, 4, 4>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        auto left = matrix<SCORES_COLUMNS>(t.d_scores);
        auto right = matrix<X_COLUMNS>(t.table);
        struct Ahead {
            bool x_gt;
        };
        auto read = [&](int i, int j) { return Ahead{t.x_gt[i * X_COLUMNS + j]}; };
        auto out = [&](int i, int j, float sum, const Ahead &ahead) {
            t.d_x[i * X_COLUMNS + j] = ahead.x_gt ? sum : 0.0f;
        };
        matmul<Shape, Cut>(tile, left, right, shared, gate, preloaded_early(read, out));
    }
};

// gradient of scores = matmul(relu(x), table, transpose_b = true)                               embedding.mt:12
//     d_scores_pre[i, j] = d_scores[i / TOKENS, i % TOKENS, j]
//     to_d_table_matmul[i, j, k] = sum over l of d_scores_pre[i * 512 + l, j] *
//         x_relu[(i * 512 + l) / TOKENS, (i * 512 + l) % TOKENS, k]
struct to_d_table {
    // 320 tiles of 16 x 16 outputs, 4 x 4 a thread, 16 slices of k; panels in shared memory (cuda/staged.cuh)
    using Shape = Product<SCORES_COLUMNS, X_COLUMNS, 512>;
    using Cut = Tile<16, 16, 256, 4, 4>;
    static constexpr int each = product_tiles<Shape, Cut>();
    static constexpr int tiles = 16 * each;
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        int b = tile / each;
        auto left = transposed(matrix<SCORES_COLUMNS>(t.d_scores + b * 512 * SCORES_COLUMNS));
        auto right = matrix<X_COLUMNS>(t.x_relu + b * 512 * X_COLUMNS);
        auto out = [&](int i, int j, float sum) {
            t.to_d_table_matmul[b * SCORES_COLUMNS * X_COLUMNS + i * X_COLUMNS + j] = sum;
        };
        matmul<Shape, Cut>(tile % each, left, right, shared, gate, out);
    }
};

// loss = cross_entropy(scores, target)                                                          embedding.mt:16
static __constant__ unsigned loss_part_places[2][2] = {
    {28145, 16481}, // loss_part
    {16737, 97},    // eval_loss_part
};
struct loss_part {
    struct Own {
        float *d_scores_sub, *loss_part;
        __device__ Own(const Tensors &t, int row) {
            begin_at(loss_part_places[row], d_scores_sub, loss_part);
        }
    };
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static __device__ void run(const Own &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        float row_share = share(batch, i);
        gate();
        if (i >= BATCH)
            return;

        // scores_sum[i] = sum over j of d_scores_sub[i, j]
        float scores_sum = 0;
        for (int j = team.first; j < TOKENS; j += team.stride)
            scores_sum += t.d_scores_sub[i * TOKENS + j];
        scores_sum = team_sum(team, scores_sum);

        // loss_part[i] = scores_sum[i] * (1 / TOKENS) * share(i)
        if (leads(team))
            t.loss_part[i] = scores_sum * (1.0f / TOKENS) * row_share;
    }
};

// gradient of x = gather(table, tokens) + weight([32, 64])                                      embedding.mt:11
//     gather_grad[i] = sum over k with tokens[k] = i of d_x[k]
struct gather_grad_kernel {
    // shape: type of numbers, indices, rows of the table, numbers in a row
    using Shape = GatherGrad<float, BATCH * TOKENS, SCORES_COLUMNS, X_COLUMNS>;
    static constexpr int tiles = gather_grad_tiles<Shape>();
    static constexpr int shared_bytes = gather_grad_shared<Shape>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        gather_grad<Shape>(t.tokens, t.d_x, t.gather_grad_2, tile, shared, gate);
    }
};

// gradient of x = gather(table, tokens) + weight([32, 64])                                      embedding.mt:11
// optimizer = sgd(0.1)                                                                          embedding.mt:17
struct update_x {
    static constexpr int tiles = divide_up(TOKENS * X_COLUMNS, Column<2, 32>::rows);
    static constexpr int shared_bytes = team_shared<Column<2, 32>>(0);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        Column<2, 32> team(shared);
        int i = tile * Column<2, 32>::rows + team.row;
        gate();

        // d_x[i, j] = sum over k of d_x[k, i, j]
        auto d_x = fill_pack<2, float>(0);
        for (int j = team.first; j < BATCH; j += team.stride) {
            Pack<float, 2> d_x_2 = load_pack<2>(t.d_x + j * TOKENS * X_COLUMNS + i);
            for (int v = 0; v < 2; v++)
                d_x[v] += d_x_2[v];
        }
        d_x = team_sum(team, d_x);

        // x[i, j] = x[i, j] - 0.1 * d_x[i, j]
        if (leads(team)) {
            Pack<float, 2> x = load_pack<2>(t.x + i);
            Pack<float, 2> x_sub;
            for (int v = 0; v < 2; v++)
                x_sub[v] = x[v] - 0.1f * d_x[v];
            store_pack(t.x + i, x_sub);
        }
    }
};

// gradient of scores = matmul(relu(x), table, transpose_b = true)                               embedding.mt:12
struct to_d_table_2 {
    static constexpr int tiles = divide_up(SCORES_COLUMNS * X_COLUMNS, Column<4, 16>::rows);
    static constexpr int shared_bytes = team_shared<Column<4, 16>>(0);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        Column<4, 16> team(shared);
        int i = tile * Column<4, 16>::rows + team.row;
        gate();

        // to_d_table_2_sum[i, j] = sum over k of to_d_table_matmul[k, i, j]
        auto d_scores_pre_sum = fill_pack<4, float>(0);
        for (int j = team.first; j < 16; j += team.stride) {
            Pack<float, 4> d_scores_pre_matmul = load_pack<4>(t.to_d_table_matmul + j * SCORES_COLUMNS * X_COLUMNS + i);
            for (int v = 0; v < 4; v++)
                d_scores_pre_sum[v] += d_scores_pre_matmul[v];
        }
        d_scores_pre_sum = team_sum(team, d_scores_pre_sum);
        if (leads(team))
            store_pack(t.to_d_table_2_sum + i, d_scores_pre_sum);
    }
};

// loss = cross_entropy(scores, target)                                                          embedding.mt:16
static __constant__ unsigned report_loss_places[2][1] = {
    {16481}, // report_loss
    {97},    // eval_report_loss
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

// gradient of x = gather(table, tokens) + weight([32, 64])                                      embedding.mt:11
// optimizer = sgd(0.1)                                                                          embedding.mt:17
//     d_table[i, j] = to_d_table_2_sum[i, j] + gather_grad[i, j]
//     table[i, j] = table[i, j] - 0.1 * d_table[i, j]
struct update_table {
    static constexpr int tiles = divide_up(SCORES_COLUMNS * X_COLUMNS, Thread::rows);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= SCORES_COLUMNS * X_COLUMNS)
            return;
        t.table[i] -= 0.1f * (t.to_d_table_2_sum[i] + t.gather_grad_2[i]);
    }
};

// ---- phases: one after the other; the kernels of a phase run at the same time -------------------------------

using train_4 = Phase<d_x, to_d_table, At<loss_part, 0, 0>>;
using train_5 = Phase<gather_grad_kernel, update_x, to_d_table_2, At<report_loss, 0, 0>>;

using Train = Step<Tensors, BATCH, REPORTS, Phase<x>, Beside<tokens>, Phase<scores>, Phase<d_scores>, train_4, train_5,
                   Phase<update_table>>;

// ---- the step -----------------------------------------------------------------------------------------------

static Replayed<Train> schedule;

static Repeated<Train> repeated;

static Tokens token_graphs; // the launches that decode one

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
    token_graphs.release();
}

// ---- evaluation ---------------------------------------------------------------------------------------------

// x = gather(table, tokens) + weight([32, 64])                                                  embedding.mt:11
// scores = matmul(relu(x), table, transpose_b = true)                                           embedding.mt:12
//     tokens[i, j] = window[i, j]
//     x[i, j, k] = table[tokens[i, j], k] + x[j, k]
//     eval_x_relu[i, j, k] = relu(x[i, j, k])
struct eval_x {
    static constexpr int tiles = divide_up(BATCH * TOKENS * X_COLUMNS, (2 * Thread::rows));
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *, Gate &gate) {
        int i = 2 * (tile * THREADS + threadIdx.x);
        gate();
        if (i >= BATCH * TOKENS * X_COLUMNS)
            return;
        int tokens = t.window[row(batch, i / X_COLUMNS / TOKENS) * t.window_stride + i / X_COLUMNS % TOKENS];
        Pack<float, 2> table = load_pack<2>(t.table + tokens * X_COLUMNS + i % X_COLUMNS);
        Pack<float, 2> x = load_pack<2>(t.x + i % (TOKENS * X_COLUMNS));
        Pack<float, 2> x_relu;
        for (int v = 0; v < 2; v++)
            x_relu[v] = relu(table[v] + x[v]);
        store_pack(t.eval_x_relu + i, x_relu);
    }
};

// loss = cross_entropy(scores, target)                                                          embedding.mt:16
struct eval_prediction {
    static constexpr int tiles = divide_up(BATCH * TOKENS, Warp::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int window = t.window[row(batch, i / TOKENS) * t.window_stride + i % TOKENS + 1];
        gate();
        if (i >= BATCH * TOKENS)
            return;

        // scores[i, j, k] = eval_scores_matmul[i * TOKENS + j, k]
        // scores_max[i, j] = max over k of scores[i, j, k]
        float scores_max = -INFINITY;
        for (int j = team.first; j < SCORES_COLUMNS; j += team.stride)
            scores_max = fmax(scores_max, t.eval_scores_matmul[i * SCORES_COLUMNS + j]);
        scores_max = team_max(team, scores_max);

        // scores_sum[i, j] = sum over k of exp(scores[i, j, k] - scores_max[i, j])
        // target[i, j] = window[i, j + 1]
        // target_score[i, j] = sum over k of (target[i, j] == k ? scores[i, j, k] - scores_max[i, j] : 0)
        float scores_sum = 0;
        float target_score = 0;
        for (int j = team.first; j < SCORES_COLUMNS; j += team.stride) {
            float scores_sub = t.eval_scores_matmul[i * SCORES_COLUMNS + j] - scores_max;
            scores_sum += exp(scores_sub);
            target_score += window == j ? scores_sub : 0.0f;
        }
        scores_sum = team_sum(team, scores_sum);
        target_score = team_sum(team, target_score);

        // eval_prediction_sub[i, j] = log(scores_sum[i, j]) - target_score[i, j]
        if (leads(team))
            t.eval_prediction_sub[i] = log(scores_sum) - target_score;

        // prediction[i, j, k] = exp(scores[i, j, k] - scores_max[i, j]) * (1 / scores_sum[i, j])
        for (int j = team.first; j < SCORES_COLUMNS; j += team.stride)
            t.eval_prediction[i * SCORES_COLUMNS + j] =
                exp(t.eval_scores_matmul[i * SCORES_COLUMNS + j] - scores_max) * (1.0f / scores_sum);
    }
};

using eval_4 = Phase<At<loss_part, 1, 0>>;
using eval_5 = Phase<At<report_loss, 1, 0>>;

using Eval =
    Step<Tensors, BATCH, REPORTS, Phase<eval_x>, Again<Phase<scores>, 1>, Phase<eval_prediction>, eval_4, eval_5>;

static const char *evaluate(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    return launch_evaluation<Eval>(run, first, rows, slot);
}

// ---- decoding: the scores of the token after a position -----------------------------------------------------

// scores = matmul(relu(x), table, transpose_b = true)                                           embedding.mt:12
struct decode_scores {
    static constexpr int tiles = divide_up(SCORES_COLUMNS, Warp::rows);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        gate();
        if (i >= SCORES_COLUMNS)
            return;

        // scores[0, 0, k] = sum over l of decode_x_relu[0, 0, l] * table[k, l]
        float scores = 0;
        for (int j = team.first; j < team.first + X_COLUMNS; j += team.stride)
            scores += t.decode_x_relu[j] * t.table[i * X_COLUMNS + j];
        scores = team_sum(team, scores);
        if (leads(team))
            t.decode_scores[i] = scores;
    }
};

// x = gather(table, tokens) + weight([32, 64])                                                  embedding.mt:11
// scores = matmul(relu(x), table, transpose_b = true)                                           embedding.mt:12
//     tokens[0, 0] = token
//     x[0, 0, k] = table[tokens[0, 0], k] + x[position, k]
//     decode_x_relu[0, 0, k] = relu(x[0, 0, k])
struct decode_x {
    static constexpr int tiles = divide_up(X_COLUMNS, Thread::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= X_COLUMNS)
            return;
        float x = t.table[token(batch) * X_COLUMNS + i] + t.x[position(batch) * X_COLUMNS + i];
        t.decode_x_relu[i] = relu(x);
    }
};

// loss = cross_entropy(scores, target)                                                          embedding.mt:16
struct decode_output_prediction {
    static constexpr int tiles = 1;
    static __device__ void run(const Tensors &t, const Batch &, int, char *shared, Gate &gate) {
        Warp team(shared);
        gate();
        if (team.row < WARPS - 1)
            return;

        // scores_max[0, 0] = max over k of scores[0, 0, k]
        float scores_max = -INFINITY;
        for (int j = team.first; j < SCORES_COLUMNS; j += team.stride)
            scores_max = fmax(scores_max, t.decode_scores[j]);
        scores_max = team_max(team, scores_max);

        // scores_sum[0, 0] = sum over k of exp(scores[0, 0, k] - scores_max[0, 0])
        float scores_sum = 0;
        for (int j = team.first; j < SCORES_COLUMNS; j += team.stride)
            scores_sum += exp(t.decode_scores[j] - scores_max);
        scores_sum = team_sum(team, scores_sum);

        // prediction[0, 0, k] = exp(scores[0, 0, k] - scores_max[0, 0]) * (1 / scores_sum[0, 0])
        for (int j = team.first; j < SCORES_COLUMNS; j += team.stride)
            t.decode_prediction[j] = exp(t.decode_scores[j] - scores_max) * (1.0f / scores_sum);
    }
};

// phase 1 of 2: 9 tiles
struct decode_1 {
    static constexpr int tiles = decode_scores::tiles;
    static constexpr int kernel_bytes = 0;
    static constexpr int weights_at = with_row<char>(with_row<float>(kernel_bytes, 64), 0);
    static constexpr int shared_bytes = weights_at;
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        float *row = (float *)(shared + with_row<float>(kernel_bytes, 0)); // decode_x_relu
        auto compute_row = [&] {
            Tensors own = t;
            own.decode_x_relu = row;
            decode_x::run(own, batch, 0, shared, gate);
            __syncthreads();
        };
        Tensors own = t;
        own.decode_x_relu = row;
        compute_row();
        decode_scores::run(own, batch, tile, shared, gate);
    }
};

using Decode = Step<Tensors, BATCH, REPORTS, Phase<decode_1>, Phase<decode_output_prediction>>;

static const char *decode(const MtcRun *run) {
    return token_graphs.decode<Decode>(run);
}

static const char *draw_tokens(const MtcRun *run, const MtcDrawing *drawing, int64_t count) {
    return token_graphs.draw<Decode>(run, drawing, count);
}

} // namespace

// ---- tables for the runtime ---------------------------------------------------------------------------------

// file, NULL: this model's own; line; text
static const MtcStatement statement_table[] = {
    {NULL, 8, "tokens = slice(window, 0, begin = 0, end = 32)"},
    {NULL, 10, "table = weight([65, 64], init = normal(0, 0.02))"},
    {NULL, 11, "x = gather(table, tokens) + weight([32, 64])"},
    {NULL, 12, "scores = matmul(relu(x), table, transpose_b = true)"},
    {NULL, 16, "loss = cross_entropy(scores, target)"},
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
    {.name = "table", .rank = 2, .dim = {65, 64}, .offset = 0, .init = MTC_NORMAL, .b = 0.02, .statement = 1},
    {.name = "x", .rank = 2, .dim = {32, 64}, .offset = 16640, .init = MTC_UNIFORM, .a = -0.12499999999999999,
     .b = 0.12499999999999999, .statement = 2},
    VALUE("tokens", MTC_I32, 7172352, 0, 0, 2, {256, 32}),
    VALUE("x_relu", MTC_F32, 24832, 3, 0, 3, {256, 32, 64}),
    VALUE("scores_matmul", MTC_F32, 2121984, 3, 1, 2, {8192, 65}),
    VALUE("d_scores_sub", MTC_F32, 7205120, 4, 2, 2, {256, 32}),
    VALUE("loss_part", MTC_F32, 4219136, 4, 3, 1, {256}),
    VALUE("d_scores", MTC_F32, 4251904, 4, 2, 3, {256, 32, 65}),
    VALUE("to_d_table_matmul", MTC_F32, 6906112, 3, 3, 3, {16, 65, 64}),
    VALUE("to_d_table_2_sum", MTC_F32, 41472, 3, 4, 2, {65, 64}),
    VALUE("x_gt", MTC_BOOL, 6381824, 3, 0, 3, {256, 32, 64}),
    VALUE("d_x", MTC_F32, 2121984, 3, 3, 3, {256, 32, 64}),
    VALUE("gather_grad", MTC_F32, 24832, 2, 4, 2, {65, 64}),
};
// clang-format on
#undef VALUE
static const MtcField field_table[] = {
    {.name = "window",
     .type = MTC_U8,
     .rank = 1,
     .dim = {33},
     .elements = 33,
     .classes = 65,
     .predicts = true,
     .windows = true},
};
static const char *const paths[] = {"input.txt"};
static const MtcOrigin origin_table[] = {
    {.format = "characters", .paths = 1, .path = paths, .stride = 32},
};
static const MtcSplit split_table[] = {
    {.name = "train", .origin = 0, .from = 0, .to = 1},
};
static const char *const report_table[] = {"loss"};
static const bool rises_table[] = {false};
// name; statement; phase, from 0 on; what its arithmetic is in, how much of it; bytes, if every buffer is touched once
// clang-format off
static const MtcKernel kernel_table[] = {
    {"x", 2, 0, MTC_MATH_FP32, 1572864, 2680064},
    {"tokens", 0, 0, MTC_MATH_FP32, 8192, 66560},
    {"scores", 3, 1, MTC_MATH_FP32, 68157440, 4243712},
    {"d_scores", 4, 2, MTC_MATH_FP32, 4284416, 4326400},
    {"d_x", 3, 3, MTC_MATH_FP32, 68157440, 4768000},
    {"to_d_table", 3, 3, MTC_MATH_FP32, 68157440, 4493312},
    {"loss_part", 4, 3, MTC_MATH_FP32, 8704, 33792},
    {"gather_grad", 2, 4, MTC_MATH_FP32, 524288, 2146560},
    {"update_x", 2, 4, MTC_MATH_FP32, 528384, 2113536},
    {"to_d_table_2", 3, 4, MTC_MATH_FP32, 66560, 282880},
    {"report_loss", 4, 4, MTC_MATH_FP32, 256, 1028},
    {"update_table", 2, 5, MTC_MATH_FP32, 12480, 66560},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "embedding",
    .source = "embedding.mt",
    .target = "cuda",
    .architectures = "",
    .schedule = "graph",
    .model_hash = "56cb88cb226864e8c6b34e574ae11863af6b2a8572ba64f36a6a59ae09f27960",
    .training = "loss = cross_entropy(scores, target)\n"
                "optimizer = sgd(0.1)\n"
                "batch = 256",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 6208,
    .flops_per_step = 211478464,
    .arena_bytes = 7237888,
    .unshared_bytes = 15761408,
    .train_phases = 6,
    .eval_phases = 5,
    .tensors = 13,
    .fields = 1,
    .origins = 1,
    .splits = 1,
    .knobs = 0,
    .fixed = 0,
    .reports = REPORTS,
    .kernels = 12,
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
    .prediction_offset = 2154752,
    .prediction_rank = 2,
    .prediction_dim = {32, 65},
    .prediction_is_classes = true,
    .scores_offset = 24832,
    .context = 32,
    .vocabulary = 65,
    .statements = 5,
    .statement = statement_table,
    .train = train,
    .train_until = train_until,
    .eval = evaluate,
    .shuffle = shuffle,
    .draw = launch_draw,
    .decode = decode,
    .draw_tokens = draw_tokens,
    .run_kernel = run_kernel,
    .prepare = prepare,
    .release = release,
};

// ---- main ---------------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    return mtc_main(&mtc_model, argc, argv);
}
