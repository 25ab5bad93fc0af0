// attention: a model of 21 parameters, compiled by mtc from attention.mt
//
//   step      920 FLOP in 6 phases: a | product_2 | s | product_2_2 | y_to_d_y | report_loss + d_y_weight
//   memory    1.2 KB arena (3.5 KB without sharing): weights 512 B, optimizer state 0 B, values 768 B
//   schedule  persistent: 10.7 us a step estimated (graph: 14.1 us)
//
// From top to bottom: sizes; tensors; one function per kernel, in the order of a training step; the phases that
// group them; the step; evaluation; tables for the runtime; main.

#include "mtc.h" // the runtime: data, command line, checkpoints

#include "cuda/batch.cuh"    // row: the example in a row of the batch; share: its part in a mean
#include "cuda/math.cuh"     // relu, sigmoid ...
#include "cuda/matmul.cuh"   // matmul<Product<M, N, K>, Tile<m, n, k, tm, tn>>(...)
#include "cuda/schedule.cuh" // phases as one persistent kernel or as a CUDA graph
#include "cuda/team.cuh"     // the threads of a row

#include <algorithm>

// ---- sizes --------------------------------------------------------------------------------------------------

enum { BATCH = 4, X = 6, A_ROWS = 3, A_COLUMNS = 2, Y_WEIGHT_COLUMNS = 6, Y = 3 };
enum { REPORT_LOSS, REPORTS };

// ---- tensors: where each lies in the arena ------------------------------------------------------------------

struct Tensors {
    const float *x;               // data set: [examples, X]
    const unsigned char *label;   // data set: [examples]
    float *y_weight;              // [Y, Y_WEIGHT_COLUMNS]
    float *y_bias;                // [Y]
    float *a;                     // [BATCH, A_ROWS, A_COLUMNS]
    float *eval_a;                // [BATCH, A_ROWS, A_COLUMNS]
    float *eval_loss_part;        // [BATCH]
    float *loss_part;             // [BATCH]
    float *eval_product_2_matmul; // [BATCH, A_ROWS, A_COLUMNS]
    float *eval_product_mul;      // [BATCH, A_ROWS, A_ROWS]
    float *product_2_matmul;      // [BATCH, A_ROWS, A_COLUMNS]
    float *product_mul;           // [BATCH, A_ROWS, A_ROWS]
    float *d_y;                   // [BATCH, Y]
    float *eval_prediction;       // [BATCH, Y]
    float *eval_s;                // [BATCH, A_ROWS, A_ROWS]
    float *s;                     // [BATCH, A_ROWS, A_ROWS]

    __device__ explicit Tensors(const MtcRun &run) {
        x = (const float *)run.data.field[0];
        label = (const unsigned char *)run.data.field[1];
        y_weight = (float *)(run.arena + 0);
        y_bias = (float *)(run.arena + 256);
        a = (float *)(run.arena + 512);
        eval_a = (float *)(run.arena + 512);
        eval_loss_part = (float *)(run.arena + 512);
        loss_part = (float *)(run.arena + 512);
        eval_product_2_matmul = (float *)(run.arena + 768);
        eval_product_mul = (float *)(run.arena + 768);
        product_2_matmul = (float *)(run.arena + 768);
        product_mul = (float *)(run.arena + 768);
        d_y = (float *)(run.arena + 1024);
        eval_prediction = (float *)(run.arena + 1024);
        eval_s = (float *)(run.arena + 1024);
        s = (float *)(run.arena + 1024);
    }
};

// ---- training step ------------------------------------------------------------------------------------------

// a = reshape(x, [3, 2])                                                                         attention.mt:9
//
//     a[i, j, k] = x[i, j * A_COLUMNS + k]
constexpr int a_tiles = divide_up(BATCH * A_ROWS * A_COLUMNS, Thread::rows);
static __device__ void a(const Tensors &t, const Batch &batch, int tile, Gate &gate) {
    int i = tile * THREADS + threadIdx.x;
    gate();
    if (i >= BATCH * A_ROWS * A_COLUMNS)
        return;
    t.a[i] = t.x[row(batch, i / X) * X + i % X];
}

// s = softmax(matmul(a, a, transpose_b = true) / sqrt(2))                                       attention.mt:10
//
//     product_mul[i, j, k] = (sum over l of a[i, j, l] * a[i, k, l]) * 0.70710678
using product_2_product = Product<A_ROWS, A_ROWS, A_COLUMNS>;
using product_2_tile = Tile<64, 64, 16, 4, 4>;
constexpr int product_2_each = product_tiles<product_2_product, product_2_tile>();
constexpr int product_2_tiles = BATCH * product_2_each;
constexpr int product_2_shared = product_shared<product_2_product, product_2_tile>();
static __device__ void product_2(const Tensors &t, int tile, char *shared, Gate &gate) {
    int b = tile / product_2_each;
    auto left = matrix<A_COLUMNS>(t.a + b * A_ROWS * A_COLUMNS);
    auto right = transposed(matrix<A_COLUMNS>(t.a + b * A_ROWS * A_COLUMNS));
    auto out = [&](int i, int j, float sum) {
        t.product_mul[b * A_ROWS * A_ROWS + i * A_ROWS + j] = sum * 0.70710678f;
    };
    matmul<product_2_product, product_2_tile>(tile % product_2_each, left, right, shared, gate, out);
}

// s = softmax(matmul(a, a, transpose_b = true) / sqrt(2))                                       attention.mt:10
//
//     a_max[i, j] = max over k of product_mul[i, j, k]
//     a_sum[i, j] = sum over k of exp(product_mul[i, j, k] - a_max[i, j])
//     s[i, j, k] = exp(product_mul[i, j, k] - a_max[i, j]) * (1 / a_sum[i, j])
constexpr int s_tiles = divide_up(BATCH * A_ROWS, Warp::rows);
constexpr int s_shared = team_shared<Warp>(0);
static __device__ void s(const Tensors &t, int tile, char *shared, Gate &gate) {
    Warp team(shared);
    int i = tile * Warp::rows + team.row;
    gate();
    if (i >= BATCH * A_ROWS)
        return;
    float a_max = -INFINITY;
    for (int j = team.first; j < A_ROWS; j += team.stride)
        a_max = fmax(a_max, t.product_mul[i * A_ROWS + j]);
    a_max = team_max(team, a_max);
    float a_sum = 0;
    for (int j = team.first; j < A_ROWS; j += team.stride)
        a_sum += exp(t.product_mul[i * A_ROWS + j] - a_max);
    a_sum = team_sum(team, a_sum);
    for (int j = team.first; j < A_ROWS; j += team.stride)
        t.s[i * A_ROWS + j] = exp(t.product_mul[i * A_ROWS + j] - a_max) * (1.0f / a_sum);
}

// y = linear(flatten(matmul(s, a)), 3)                                                          attention.mt:11
//
//     product_2_matmul[i, j, k] = sum over l of s[i, j, l] * a[i, l, k]
using product_2_2_product = Product<A_ROWS, A_COLUMNS, A_ROWS>;
using product_2_2_tile = Tile<64, 64, 16, 4, 4>;
constexpr int product_2_2_each = product_tiles<product_2_2_product, product_2_2_tile>();
constexpr int product_2_2_tiles = BATCH * product_2_2_each;
constexpr int product_2_2_shared = product_shared<product_2_2_product, product_2_2_tile>();
static __device__ void product_2_2(const Tensors &t, int tile, char *shared, Gate &gate) {
    int b = tile / product_2_2_each;
    auto left = matrix<A_ROWS>(t.s + b * A_ROWS * A_ROWS);
    auto right = matrix<A_COLUMNS>(t.a + b * A_ROWS * A_COLUMNS);
    auto out = [&](int i, int j, float sum) { t.product_2_matmul[b * A_ROWS * A_COLUMNS + i * A_COLUMNS + j] = sum; };
    matmul<product_2_2_product, product_2_2_tile>(tile % product_2_2_each, left, right, shared, gate, out);
}

// y = linear(flatten(matmul(s, a)), 3)                                                          attention.mt:11
// loss = cross_entropy(y, label)                                                                attention.mt:15
//
//     y[i, j] = (sum over k of product_2_matmul[i, k / A_COLUMNS, k % A_COLUMNS] * y.weight[j, k]) + y.bias[j]
//     y_max[i] = max over j of y[i, j]
//     y_sum[i] = sum over j of exp(y[i, j] - y_max[i])
//     label_sum[i] = sum over j of (label[i] == j) * (y[i, j] - y_max[i])
//     loss_part[i] = (log(y_sum[i]) - label_sum[i]) * share(i)
//     d_y[i, j] = share(i) / y_sum[i] * exp(y[i, j] - y_max[i]) - share(i) * (label[i] == j)
constexpr int y_to_d_y_tiles = divide_up(BATCH, Warp::rows);
constexpr int y_to_d_y_shared = team_shared<Warp>(Y);
static __device__ void y_to_d_y(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
    Warp team(shared);
    int i = tile * Warp::rows + team.row;
    gate();
    if (i >= BATCH)
        return;
    float *y = row_memory(team, shared, Y);
    auto term = [&](int j, int k) {
        return t.product_2_matmul[i * A_ROWS * A_COLUMNS + k] * t.y_weight[j * Y_WEIGHT_COLUMNS + k];
    };
    auto store = [&](int j, float sum) { y[j] = sum + t.y_bias[j]; };
    team_product<Y, Y_WEIGHT_COLUMNS>(team, term, store);
    team.sync();
    float y_max = -INFINITY;
    for (int j = team.first; j < Y; j += team.stride)
        y_max = fmax(y_max, y[j]);
    y_max = team_max(team, y_max);
    float y_sum = 0;
    float label_sum = 0;
    int label = t.label[row(batch, i)];
    for (int j = team.first; j < Y; j += team.stride) {
        float y_sub = y[j] - y_max;
        y_sum += exp(y_sub);
        label_sum += (float)(label == j) * y_sub;
    }
    y_sum = team_sum(team, y_sum);
    label_sum = team_sum(team, label_sum);
    if (team.first == 0)
        t.loss_part[i] = (log(y_sum) - label_sum) * share(batch, i);
    for (int j = team.first; j < Y; j += team.stride)
        t.d_y[i * Y + j] = share(batch, i) / y_sum * exp(y[j] - y_max) - share(batch, i) * (float)(label == j);
}

// loss = cross_entropy(y, label)                                                                attention.mt:15
//
//     loss = sum over i of loss_part[i]
constexpr int report_loss_tiles = 1;
constexpr int report_loss_shared = team_shared<Warp>(0);
static __device__ void report_loss(const Tensors &t, const Batch &batch, char *shared, Gate &gate) {
    Warp team(shared);
    gate();
    if (team.row > 0)
        return;
    float loss_part_sum = 0;
    for (int j = team.first; j < BATCH; j += team.stride)
        loss_part_sum += t.loss_part[j];
    loss_part_sum = team_sum(team, loss_part_sum);
    if (team.first == 0)
        batch.reports[REPORT_LOSS] = loss_part_sum;
}

// gradient of y = linear(flatten(matmul(s, a)), 3)                                              attention.mt:11
// optimizer = sgd(0.1)                                                                          attention.mt:16
//
//     d_y.weight[i, j] = sum over k of d_y[k, i] * product_2_matmul[k, j / A_COLUMNS, j % A_COLUMNS]
//     y.weight[i, j] = y.weight[i, j] - 0.1 * d_y.weight[i, j]
//     d_y.bias[i] = sum over j of d_y[j, i]
//     y.bias[i] = y.bias[i] - 0.1 * d_y.bias[i]
using d_y_weight_product = Product<Y, Y_WEIGHT_COLUMNS, BATCH>;
using d_y_weight_tile = Tile<32, 32, 64, 4, 4>;
constexpr int d_y_weight_tiles = product_tiles<d_y_weight_product, d_y_weight_tile>();
constexpr int d_y_weight_shared = product_shared<d_y_weight_product, d_y_weight_tile>();
static __device__ void d_y_weight(const Tensors &t, int tile, char *shared, Gate &gate) {
    auto left = transposed(matrix<Y>(t.d_y));
    auto right = matrix<Y_WEIGHT_COLUMNS>(t.product_2_matmul);
    struct Old {
        float y_weight;
    };
    auto read = [&](int i, int j) { return Old{t.y_weight[i * Y_WEIGHT_COLUMNS + j]}; };
    auto out = [&](int i, int j, float sum, const Old &old) {
        t.y_weight[i * Y_WEIGHT_COLUMNS + j] = old.y_weight - 0.1f * sum;
    };
    struct OldSide {
        float y_bias;
    };
    auto read_side = [&](int i) { return OldSide{t.y_bias[i]}; };
    auto side = [&](int i, float sum, const OldSide &old) { t.y_bias[i] = old.y_bias - 0.1f * sum; };
    matmul<d_y_weight_product, d_y_weight_tile>(tile, left, right, shared, gate, preloaded_early(read, out),
                                                sum_of_a(preloaded_early(read_side, side)));
}

// ---- phases: kernels that may run at the same time ----------------------------------------------------------

constexpr int train_1_tiles = a_tiles;
static __device__ void train_1(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
    a(t, batch, tile, gate);
}

constexpr int train_2_tiles = product_2_tiles;
static __device__ void train_2(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
    product_2(t, tile, shared, gate);
}

constexpr int train_3_tiles = s_tiles;
static __device__ void train_3(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
    s(t, tile, shared, gate);
}

constexpr int train_4_tiles = product_2_2_tiles;
static __device__ void train_4(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
    product_2_2(t, tile, shared, gate);
}

constexpr int train_5_tiles = y_to_d_y_tiles;
static __device__ void train_5(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
    y_to_d_y(t, batch, tile, shared, gate);
}

constexpr int train_6_tiles = report_loss_tiles + d_y_weight_tiles;
static __device__ void train_6(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
    if (tile < report_loss_tiles)
        return report_loss(t, batch, shared, gate);
    tile -= report_loss_tiles;
    d_y_weight(t, tile, shared, gate);
}

// bytes of shared memory: the most that any kernel takes
constexpr int TRAIN_SHARED = std::max({
    0,
    product_2_shared,
    s_shared,
    product_2_2_shared,
    y_to_d_y_shared,
    report_loss_shared,
    d_y_weight_shared,
});
using Train = Step<Tensors, BATCH, REPORTS, TRAIN_SHARED, Phase<train_1, train_1_tiles>, Phase<train_2, train_2_tiles>,
                   Phase<train_3, train_3_tiles>, Phase<train_4, train_4_tiles>, Phase<train_5, train_5_tiles>,
                   Phase<train_6, train_6_tiles>>;

// ---- the step -----------------------------------------------------------------------------------------------

static Persistent<Train> schedule;

static const char *train(const MtcRun *run, int64_t steps) {
    return schedule.train(run, steps);
}

static const char *train_until(const MtcRun *run, int phase) {
    return train_until<Train>(run, phase);
}

static const char *prepare(const MtcRun *) {
    return schedule.prepare(4);
}

static void release() {
    schedule.release();
}

// ---- evaluation ---------------------------------------------------------------------------------------------

// a = reshape(x, [3, 2])                                                                         attention.mt:9
//
//     a[i, j, k] = x[i, j * A_COLUMNS + k]
constexpr int eval_a_tiles = divide_up(BATCH * A_ROWS * A_COLUMNS, Thread::rows);
static __device__ void eval_a(const Tensors &t, const Batch &batch, int tile, Gate &gate) {
    int i = tile * THREADS + threadIdx.x;
    gate();
    if (i >= BATCH * A_ROWS * A_COLUMNS)
        return;
    t.eval_a[i] = t.x[row(batch, i / X) * X + i % X];
}

// s = softmax(matmul(a, a, transpose_b = true) / sqrt(2))                                       attention.mt:10
//
//     eval_product_mul[i, j, k] = (sum over l of a[i, j, l] * a[i, k, l]) * 0.70710678
using eval_product_product = Product<A_ROWS, A_ROWS, A_COLUMNS>;
using eval_product_tile = Tile<64, 64, 16, 4, 4>;
constexpr int eval_product_each = product_tiles<eval_product_product, eval_product_tile>();
constexpr int eval_product_tiles = BATCH * eval_product_each;
constexpr int eval_product_shared = product_shared<eval_product_product, eval_product_tile>();
static __device__ void eval_product(const Tensors &t, int tile, char *shared, Gate &gate) {
    int b = tile / eval_product_each;
    auto left = matrix<A_COLUMNS>(t.eval_a + b * A_ROWS * A_COLUMNS);
    auto right = transposed(matrix<A_COLUMNS>(t.eval_a + b * A_ROWS * A_COLUMNS));
    auto out = [&](int i, int j, float sum) {
        t.eval_product_mul[b * A_ROWS * A_ROWS + i * A_ROWS + j] = sum * 0.70710678f;
    };
    matmul<eval_product_product, eval_product_tile>(tile % eval_product_each, left, right, shared, gate, out);
}

// s = softmax(matmul(a, a, transpose_b = true) / sqrt(2))                                       attention.mt:10
//
//     a_max[i, j] = max over k of eval_product_mul[i, j, k]
//     a_sum[i, j] = sum over k of exp(eval_product_mul[i, j, k] - a_max[i, j])
//     s[i, j, k] = exp(eval_product_mul[i, j, k] - a_max[i, j]) * (1 / a_sum[i, j])
constexpr int eval_s_tiles = divide_up(BATCH * A_ROWS, Warp::rows);
constexpr int eval_s_shared = team_shared<Warp>(0);
static __device__ void eval_s(const Tensors &t, int tile, char *shared, Gate &gate) {
    Warp team(shared);
    int i = tile * Warp::rows + team.row;
    gate();
    if (i >= BATCH * A_ROWS)
        return;
    float a_max = -INFINITY;
    for (int j = team.first; j < A_ROWS; j += team.stride)
        a_max = fmax(a_max, t.eval_product_mul[i * A_ROWS + j]);
    a_max = team_max(team, a_max);
    float a_sum = 0;
    for (int j = team.first; j < A_ROWS; j += team.stride)
        a_sum += exp(t.eval_product_mul[i * A_ROWS + j] - a_max);
    a_sum = team_sum(team, a_sum);
    for (int j = team.first; j < A_ROWS; j += team.stride)
        t.eval_s[i * A_ROWS + j] = exp(t.eval_product_mul[i * A_ROWS + j] - a_max) * (1.0f / a_sum);
}

// y = linear(flatten(matmul(s, a)), 3)                                                          attention.mt:11
//
//     eval_product_2_matmul[i, j, k] = sum over l of s[i, j, l] * a[i, l, k]
using eval_product_2_product = Product<A_ROWS, A_COLUMNS, A_ROWS>;
using eval_product_2_tile = Tile<64, 64, 16, 4, 4>;
constexpr int eval_product_2_each = product_tiles<eval_product_2_product, eval_product_2_tile>();
constexpr int eval_product_2_tiles = BATCH * eval_product_2_each;
constexpr int eval_product_2_shared = product_shared<eval_product_2_product, eval_product_2_tile>();
static __device__ void eval_product_2(const Tensors &t, int tile, char *shared, Gate &gate) {
    int b = tile / eval_product_2_each;
    auto left = matrix<A_ROWS>(t.eval_s + b * A_ROWS * A_ROWS);
    auto right = matrix<A_COLUMNS>(t.eval_a + b * A_ROWS * A_COLUMNS);
    auto out = [&](int i, int j, float sum) {
        t.eval_product_2_matmul[b * A_ROWS * A_COLUMNS + i * A_COLUMNS + j] = sum;
    };
    matmul<eval_product_2_product, eval_product_2_tile>(tile % eval_product_2_each, left, right, shared, gate, out);
}

// y = linear(flatten(matmul(s, a)), 3)                                                          attention.mt:11
// loss = cross_entropy(y, label)                                                                attention.mt:15
//
//     y[i, j] = (sum over k of eval_product_2_matmul[i, k / A_COLUMNS, k % A_COLUMNS] * y.weight[j, k]) +
//         y.bias[j]
//     y_max[i] = max over j of y[i, j]
//     y_sum[i] = sum over j of exp(y[i, j] - y_max[i])
//     label_sum[i] = sum over j of (label[i] == j) * (y[i, j] - y_max[i])
//     loss_part[i] = (log(y_sum[i]) - label_sum[i]) * share(i)
//     prediction[i, j] = exp(y[i, j] - y_max[i]) * (1 / y_sum[i])
constexpr int eval_y_to_prediction_tiles = divide_up(BATCH, Warp::rows);
constexpr int eval_y_to_prediction_shared = team_shared<Warp>(Y);
static __device__ void eval_y_to_prediction(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
    Warp team(shared);
    int i = tile * Warp::rows + team.row;
    gate();
    if (i >= BATCH)
        return;
    float *y = row_memory(team, shared, Y);
    auto term = [&](int j, int k) {
        return t.eval_product_2_matmul[i * A_ROWS * A_COLUMNS + k] * t.y_weight[j * Y_WEIGHT_COLUMNS + k];
    };
    auto store = [&](int j, float sum) { y[j] = sum + t.y_bias[j]; };
    team_product<Y, Y_WEIGHT_COLUMNS>(team, term, store);
    team.sync();
    float y_max = -INFINITY;
    for (int j = team.first; j < Y; j += team.stride)
        y_max = fmax(y_max, y[j]);
    y_max = team_max(team, y_max);
    float y_sum = 0;
    float label_sum = 0;
    int label = t.label[row(batch, i)];
    for (int j = team.first; j < Y; j += team.stride) {
        float y_sub = y[j] - y_max;
        y_sum += exp(y_sub);
        label_sum += (float)(label == j) * y_sub;
    }
    y_sum = team_sum(team, y_sum);
    label_sum = team_sum(team, label_sum);
    if (team.first == 0)
        t.eval_loss_part[i] = (log(y_sum) - label_sum) * share(batch, i);
    for (int j = team.first; j < Y; j += team.stride)
        t.eval_prediction[i * Y + j] = exp(y[j] - y_max) * (1.0f / y_sum);
}

// loss = cross_entropy(y, label)                                                                attention.mt:15
//
//     loss = sum over i of loss_part[i]
constexpr int eval_report_loss_tiles = 1;
constexpr int eval_report_loss_shared = team_shared<Warp>(0);
static __device__ void eval_report_loss(const Tensors &t, const Batch &batch, char *shared, Gate &gate) {
    Warp team(shared);
    gate();
    if (team.row > 0)
        return;
    float loss_part_sum = 0;
    for (int j = team.first; j < BATCH; j += team.stride)
        loss_part_sum += t.eval_loss_part[j];
    loss_part_sum = team_sum(team, loss_part_sum);
    if (team.first == 0)
        batch.reports[REPORT_LOSS] = loss_part_sum;
}

constexpr int eval_1_tiles = eval_a_tiles;
static __device__ void eval_1(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
    eval_a(t, batch, tile, gate);
}

constexpr int eval_2_tiles = eval_product_tiles;
static __device__ void eval_2(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
    eval_product(t, tile, shared, gate);
}

constexpr int eval_3_tiles = eval_s_tiles;
static __device__ void eval_3(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
    eval_s(t, tile, shared, gate);
}

constexpr int eval_4_tiles = eval_product_2_tiles;
static __device__ void eval_4(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
    eval_product_2(t, tile, shared, gate);
}

constexpr int eval_5_tiles = eval_y_to_prediction_tiles;
static __device__ void eval_5(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
    eval_y_to_prediction(t, batch, tile, shared, gate);
}

constexpr int eval_6_tiles = eval_report_loss_tiles;
static __device__ void eval_6(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
    eval_report_loss(t, batch, shared, gate);
}

// bytes of shared memory: the most that any kernel takes
constexpr int EVAL_SHARED = std::max({
    0,
    eval_product_shared,
    eval_s_shared,
    eval_product_2_shared,
    eval_y_to_prediction_shared,
    eval_report_loss_shared,
});
using Eval = Step<Tensors, BATCH, REPORTS, EVAL_SHARED, Phase<eval_1, eval_1_tiles>, Phase<eval_2, eval_2_tiles>,
                  Phase<eval_3, eval_3_tiles>, Phase<eval_4, eval_4_tiles>, Phase<eval_5, eval_5_tiles>,
                  Phase<eval_6, eval_6_tiles>>;

static const char *evaluate(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    return evaluate<Eval>(run, first, rows, slot);
}

// ---- tables for the runtime ---------------------------------------------------------------------------------

// name, role, type, rank, dimensions, offset, initialiser, its numbers, line, phase
static const MtcTensor tensor_table[] = {
    {"y.weight", MTC_WEIGHT, MTC_F32, 2, {3, 6}, 0, MTC_UNIFORM, -0.40824829046386296, 0.40824829046386296, 11, -1},
    {"y.bias", MTC_WEIGHT, MTC_F32, 1, {3}, 256, MTC_UNIFORM, -0.40824829046386296, 0.40824829046386296, 11, -1},
    {"a", MTC_VALUE, MTC_F32, 3, {4, 3, 2}, 512, MTC_ZEROS, 0, 0, 9, 0},
    {"product_mul", MTC_VALUE, MTC_F32, 3, {4, 3, 3}, 768, MTC_ZEROS, 0, 0, 10, 1},
    {"s", MTC_VALUE, MTC_F32, 3, {4, 3, 3}, 1024, MTC_ZEROS, 0, 0, 10, 2},
    {"product_2_matmul", MTC_VALUE, MTC_F32, 3, {4, 3, 2}, 768, MTC_ZEROS, 0, 0, 11, 3},
    {"loss_part", MTC_VALUE, MTC_F32, 1, {4}, 512, MTC_ZEROS, 0, 0, 15, 4},
    {"d_y", MTC_VALUE, MTC_F32, 2, {4, 3}, 1024, MTC_ZEROS, 0, 0, 15, 4},
};
static const MtcField field_table[] = {
    {.name = "x", .type = MTC_F32, .rank = 1, .dim = {6}, .elements = 6, .classes = 0},
    {.name = "label", .type = MTC_U8, .rank = 0, .dim = {0}, .elements = 1, .classes = 3},
};
static const MtcSplit split_table[] = {
    {.name = "train", .format = "idx", .paths = 2, .path = {"x", "label"}},
};
static const char *const report_table[] = {"loss"};
static const MtcStatement statement_table[] = {
    {.line = 9, .text = "a = reshape(x, [3, 2])"},
    {.line = 10, .text = "s = softmax(matmul(a, a, transpose_b = true) / sqrt(2))"},
    {.line = 11, .text = "y = linear(flatten(matmul(s, a)), 3)"},
    {.line = 15, .text = "loss = cross_entropy(y, label)"},
};

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "attention",
    .source = "attention.mt",
    .target = "cuda",
    .architectures = "",
    .schedule = "persistent",
    .model_hash = "28a5e3c2f3dc5d694dd72e659e3b641d3c00ffefa02aa46dd90d6ea2921c6b92",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 21,
    .flops_per_step = 920,
    .arena_bytes = 1280,
    .unshared_bytes = 3584,
    .train_phases = 6,
    .eval_phases = 6,
    .tensors = 8,
    .fields = 2,
    .splits = 1,
    .knobs = 0,
    .fixed = 0,
    .reports = REPORTS,
    .tensor = tensor_table,
    .field = field_table,
    .split = split_table,
    .knob = NULL,
    .fixed_param = NULL,
    .report = report_table,
    .prediction_offset = 1024,
    .prediction_rank = 1,
    .prediction_dim = {3},
    .prediction_is_classes = true,
    .statements = 4,
    .statement = statement_table,
    .train = train,
    .train_until = train_until,
    .eval = evaluate,
    .prepare = prepare,
    .release = release,
};

// ---- main ---------------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    return mtc_main(&mtc_model, argc, argv);
}
