// vectors: a model of 4,224 parameters, compiled by mtc from vectors.mt
//
//   step      4.7 GFLOP in 7 phases, products in bf16
//   memory    117 MB arena (215 MB without sharing): weights 16.5 KB, optimizer state 0 B, values 117 MB
//   schedule  graph: 131.3 us a step estimated (persistent: 204.5 us)
//
//   phase 1   x_bf16_reshape        16,384 tiles
//             seen_weight_bf16      16 tiles
//   phase 2   seen                  2,048 tiles
//   phase 3   pool                  4,096 tiles
//   phase 4   z                     1,024 tiles
//   phase 5   d_scale_partial       512 tiles
//             loss_part             128 tiles
//             d_seen_to_d_seen_pre  2,048 tiles
//   phase 6   d_scale               8 tiles
//             d_seen_bias_partial   1,024 tiles
//             d_seen_weight_slices  128 tiles
//             report_loss           1 tile
//   phase 7   update_seen_bias      8 tiles
//             update_seen_weight    128 tiles
//             update_scale          1 tile
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

#include "cuda/batch.cuh"    // row: the example in a row of the batch; share: its part in a mean
#include "cuda/math.cuh"     // relu, sigmoid ...
#include "cuda/matmul.cuh"   // matmul<Product<M, N, K>, Tile<m, n, k, tm, tn>>(...)
#include "cuda/pack.cuh"     // neighbouring numbers that a thread moves at once
#include "cuda/patch.cuh"    // sums over windows of images, channel by channel
#include "cuda/repeated.cuh" // a kernel again and again, alone
#include "cuda/schedule.cuh" // phases as one persistent kernel or as a CUDA graph
#include "cuda/team.cuh"     // the threads of a row

#include <algorithm>

// ---- sizes --------------------------------------------------------------------------------------------------

enum { BATCH = 1024, X_CHANNELS = 64, X_ROWS = 16, X_COLUMNS = 16, Y = 64, POOL_ROWS = 8, POOL_COLUMNS = 8 };
enum { REPORT_LOSS, REPORTS };

namespace { // of this file alone: a kernel may be called like a function of others, or of another program

// ---- tensors: where each lies in the arena; values share bytes by turns -------------------------------------

struct Tensors {
    const MtcRun &run;
    char *arena;

    const float *x = (const float *)run.data.field[0];      // data set: [examples, X_CHANNELS, X_ROWS, X_COLUMNS]
    const float *y = (const float *)run.data.field[1];      // data set: [examples, Y]
    float *seen_weight = (float *)(arena + 0);              // [Y, 1, 1, X_CHANNELS]
    float *seen_bias = (float *)(arena + 16384);            // [Y]
    float *scale = (float *)(arena + 16640);                // [Y, 1, 1]
    float *eval_loss_part = (float *)(arena + 16896);       // [BATCH]
    float *eval_pool = (float *)(arena + 16896);            // [BATCH, POOL_ROWS, POOL_COLUMNS, Y]
    bfloat16 *x_bf16_reshape = (bfloat16 *)(arena + 16896); // [BATCH * X_ROWS * X_COLUMNS, X_CHANNELS]
    float *eval_z = (float *)(arena + 16794112);            // [BATCH, Y]
    float *d_seen_weight_slices_matmul = (float *)(arena + 33571328); // [128, Y, X_CHANNELS]
    bfloat16 *eval_seen = (bfloat16 *)(arena + 33571328);             // [BATCH, X_ROWS, X_COLUMNS, Y]
    bfloat16 *seen = (bfloat16 *)(arena + 33571328);                  // [BATCH, X_ROWS, X_COLUMNS, Y]
    float *d_seen_bias_partial = (float *)(arena + 35668480);         // [BATCH, Y]
    float *d_scale_sum = (float *)(arena + 35930624);                 // [Y]
    bfloat16 *d_seen_pre = (bfloat16 *)(arena + 67125760);            // [BATCH, X_ROWS, X_COLUMNS, Y]
    float *pool = (float *)(arena + 67125760);                        // [BATCH, POOL_ROWS, POOL_COLUMNS, Y]
    float *z_mul_2 = (float *)(arena + 100680192);                    // [BATCH, POOL_ROWS, POOL_COLUMNS, Y]
    unsigned char *pool_cast = (unsigned char *)(arena + 117457408);  // [BATCH, POOL_ROWS, POOL_COLUMNS, Y]
    float *z_mul = (float *)(arena + 121651712);                      // [BATCH, Y]
    float *z_mul_3 = (float *)(arena + 121913856);                    // [BATCH, Y]
    float *d_scale_partial = (float *)(arena + 122176000);            // [256, Y]
    float *loss_part = (float *)(arena + 122241536);                  // [BATCH]
};

// Layers that are alike share their kernels, which are given the tensors of one place, Own:
// x_bf16_reshape_places has a row for each, where its tensors begin, in units of 256 bytes. A launch takes row
// 0, made again row 1, 2 ...; At<kernel, 3, 2, 4> takes rows 3 to 6, made again 5 to 8 (cuda/phase.cuh).

// ---- training step ------------------------------------------------------------------------------------------

// seen = relu(conv2d(x, 64, 1))                                                                    vectors.mt:9
//     x.bf16[i, j, k, l] = x[i, j, k, l]
//     x.bf16.reshape[i, j] = x.bf16[i / (X_ROWS * X_COLUMNS), j, i % (X_ROWS * X_COLUMNS) / X_COLUMNS, i %
//         (X_ROWS * X_COLUMNS) % X_COLUMNS]
static __constant__ unsigned x_bf16_reshape_places[2][1] = {
    {66}, // x_bf16_reshape
    {66}, // eval_x_bf16_reshape
};
struct x_bf16_reshape {
    struct Own {
        const float *x;
        bfloat16 *x_bf16_reshape;
        __device__ Own(const Tensors &t, int row) {
            x = t.x;
            begin_at(x_bf16_reshape_places[row], x_bf16_reshape);
        }
    };
    static constexpr int tiles = divide_up(BATCH * X_ROWS * X_COLUMNS * X_CHANNELS, (4 * Thread::rows));
    static __device__ void run(const Own &t, const Batch &batch, int tile, char *, Gate &gate) {
        int i = 4 * (tile * THREADS + threadIdx.x);
        gate();
        if (i >= BATCH * X_ROWS * X_COLUMNS * X_CHANNELS)
            return;
        Pack<bfloat16, 4> x_bf16_reshape;
        for (int v = 0; v < 4; v++) {
            float x = t.x[row(batch, i / (X_ROWS * X_COLUMNS * X_CHANNELS)) * X_CHANNELS * X_ROWS * X_COLUMNS +
                          (i % X_CHANNELS + v) * X_ROWS * X_COLUMNS + i / X_CHANNELS % (X_ROWS * X_COLUMNS)];
            x_bf16_reshape[v] = to_bf16(x);
        }
        store_pack(t.x_bf16_reshape + i, x_bf16_reshape);
    }
};

// seen = relu(conv2d(x, 64, 1))                                                                    vectors.mt:9
//     seen.weight.bf16[i, 0, 0, l] = seen.weight[i, 0, 0, l]
static __constant__ unsigned seen_weight_bf16_places[2][2] = {
    {262210, 0}, // seen_weight_bf16
    {262210, 0}, // eval_seen_weight_bf16
};
struct seen_weight_bf16 {
    struct Own {
        bfloat16 *seen_weight_bf16;
        float *seen_weight;
        __device__ Own(const Tensors &t, int row) {
            begin_at(seen_weight_bf16_places[row], seen_weight_bf16, seen_weight);
        }
    };
    static constexpr int tiles = divide_up(Y * X_CHANNELS, Thread::rows);
    static __device__ void run(const Own &t, const Batch &, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= Y * X_CHANNELS)
            return;
        t.seen_weight_bf16[i] = to_bf16(t.seen_weight[i]);
    }
};

// seen = relu(conv2d(x, 64, 1))                                                                    vectors.mt:9
//     seen[i, j, k, l] = relu((sum over m of x.bf16.reshape[i * X_ROWS * X_COLUMNS + j * X_COLUMNS + k, m] *
//         seen.weight.bf16[l, 0, 0, m]) + seen.bias[l])
static __constant__ unsigned seen_places[2][4] = {
    {66, 262210, 64, 131138}, // seen
    {66, 262210, 64, 131138}, // eval_seen
};
struct seen {
    struct Own {
        bfloat16 *x_bf16_reshape, *seen_weight_bf16, *seen;
        float *seen_bias;
        __device__ Own(const Tensors &t, int row) {
            begin_at(seen_places[row], x_bf16_reshape, seen_weight_bf16, seen_bias, seen);
        }
    };
    // 2,048 tiles of 128 x 128 outputs, one a group of four warps, in turns; bf16 on tensor cores, panels copied
    // ahead by the hardware (cuda/tensor_turns.cuh)
    using Shape = Product<BATCH * X_ROWS * X_COLUMNS, Y, X_CHANNELS>;
    using Cut = TurnTile<128, 128, 64, 6, bfloat16>;
    static constexpr int tiles = product_tiles<Shape, Cut>();
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Own &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        auto left = matrix<X_CHANNELS>(t.x_bf16_reshape);
        auto right = transposed(matrix<X_CHANNELS>(t.seen_weight_bf16));
        struct OfColumn {
            Pack<float, 8> seen_bias;
        };
        auto columns = [&](int j) { return OfColumn{load_pack<8>(t.seen_bias + j)}; };
        auto out = [&](int i, int j, const Pack<float, 8> &sum, const OfColumn &column) {
            Pack<float, 8> seen;
            for (int v = 0; v < 8; v++)
                seen[v] = relu(sum[v] + column.seen_bias[v]);
            store_pack(t.seen + i * Y + j, to_bf16(seen));
        };
        auto results = vectorized<8>(of_columns(columns, out));
        matmul_turns<Shape, Cut>(tile, batch.maps, left, right, shared, gate, results);
    }
};

// pool = max_pool(seen, 2)                                                                        vectors.mt:11
struct pool {
    static constexpr int tiles = divide_up(BATCH * POOL_ROWS * POOL_COLUMNS * Y, (4 * Thread::rows));
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *, Gate &gate) {
        int i = 4 * (tile * THREADS + threadIdx.x);
        gate();
        if (i >= BATCH * POOL_ROWS * POOL_COLUMNS * Y)
            return;
        int n = i / Y / (POOL_ROWS * POOL_COLUMNS);
        int line = i / Y / POOL_COLUMNS % POOL_ROWS;
        int column = i / Y % POOL_COLUMNS;
        int channel = i % Y;

        // pool[i, j, k, l] = max over m, n of seen[i, j * 2 + m, k * 2 + n, l]
        auto pool = fill_pack<4, float>(-INFINITY);
        for (int j = 0; j < 2 * 2; j++) {
            int at =
                n * X_ROWS * X_COLUMNS * Y + (line * 2 + j / 2) * X_COLUMNS * Y + (column * 2 + j % 2) * Y + channel;
            Pack<bfloat16, 4> seen = load_pack<4>(t.seen + at);
            for (int v = 0; v < 4; v++)
                pool[v] = fmax(pool[v], to_float(seen[v]));
        }

        // first[i, j, k, l] = min over m, n of (seen[i, j * 2 + m, k * 2 + n, l] == pool[i, j, k, l] ? m * 2 + n : 4)
        auto first = fill_pack<4, float>(INFINITY);
        for (int j = 0; j < 2 * 2; j++) {
            int at =
                n * X_ROWS * X_COLUMNS * Y + (line * 2 + j / 2) * X_COLUMNS * Y + (column * 2 + j % 2) * Y + channel;
            Pack<bfloat16, 4> seen = load_pack<4>(t.seen + at);
            for (int v = 0; v < 4; v++)
                first[v] = fmin(first[v], to_float(seen[v]) == pool[v] ? (float)j : 4.0f);
        }

        // pool_cast[i, j, k, l] = first[i, j, k, l]
        Pack<unsigned char, 4> first_cast;
        for (int v = 0; v < 4; v++)
            first_cast[v] = (unsigned char)first[v];
        store_pack(t.pool + i, pool);
        store_pack(t.pool_cast + i, first_cast);
    }
};

// z = global_avg_pool(pool * scale)                                                               vectors.mt:12
// loss = mse(z, y)                                                                                vectors.mt:16
struct z {
    static constexpr int tiles = divide_up(BATCH * Y, Column<4, 16>::rows);
    static constexpr int shared_bytes = team_shared<Column<4, 16>>(0);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Column<4, 16> team(shared);
        int i = tile * Column<4, 16>::rows + team.row;
        Pack<float, 4> y = load_pack<4>(t.y + row(batch, i / Y) * Y + i % Y);
        gate();
        int line = i / Y;
        int column = i % Y;

        // pool_sum[i, j] = sum over k, l of pool[i, k, l, j]
        auto pool_sum = fill_pack<4, float>(0);
        for (int j = team.first; j < POOL_ROWS * POOL_COLUMNS; j += team.stride) {
            int at = line * POOL_ROWS * POOL_COLUMNS * Y + j * Y + column;
            Pack<float, 4> pool = load_pack<4>(t.pool + at);
            for (int v = 0; v < 4; v++)
                pool_sum[v] += pool[v];
        }
        pool_sum = team_sum(team, pool_sum);

        // z[i, j] = pool_sum[i, j] * scale[j, 0, 0] * (1 / (POOL_ROWS * POOL_COLUMNS))
        // z_mul[i, j] = (z[i, j] - y[i, j]) * (z[i, j] - y[i, j])
        // d_z[i, j] = share(i) * 0.015625 * (z[i, j] - y[i, j]) + share(i) * 0.015625 * (z[i, j] - y[i, j])
        // d_z_pre[i, j] = d_z[i, j] * 0.015625
        // z_mul_3[i, j] = d_z_pre[i, j] * scale[j, 0, 0]
        if (leads(team)) {
            Pack<float, 4> scale = load_pack<4>(t.scale + column);
            Pack<float, 4> y = load_pack<4>(t.y + row(batch, line) * Y + column);
            Pack<float, 4> z_mul;
            Pack<float, 4> d_z_pre_mul;
            for (int v = 0; v < 4; v++) {
                float z_sub = pool_sum[v] * scale[v] * (1.0f / (POOL_ROWS * POOL_COLUMNS)) - y[v];
                float share_mul = share(batch, line) * 0.015625f * z_sub;
                z_mul[v] = z_sub * z_sub;
                d_z_pre_mul[v] = (share_mul + share_mul) * 0.015625f * scale[v];
            }
            store_pack(t.z_mul + i, z_mul);
            store_pack(t.z_mul_3 + i, d_z_pre_mul);
        }

        // z_mul_2[i, j, k, l] = d_z_pre[i, l] * pool[i, j, k, l]
        Pack<float, 4> scale = load_pack<4>(t.scale + column);
        for (int j = team.first; j < POOL_ROWS * POOL_COLUMNS; j += team.stride) {
            int at = line * POOL_ROWS * POOL_COLUMNS * Y + j * Y + column;
            Pack<float, 4> pool = load_pack<4>(t.pool + at);
            Pack<float, 4> d_z_pre_mul;
            for (int v = 0; v < 4; v++) {
                float z_sub = pool_sum[v] * scale[v] * (1.0f / (POOL_ROWS * POOL_COLUMNS)) - y[v];
                float share_mul = share(batch, line) * 0.015625f * z_sub;
                d_z_pre_mul[v] = (share_mul + share_mul) * 0.015625f * pool[v];
            }
            store_pack(t.z_mul_2 + line * POOL_ROWS * POOL_COLUMNS * Y + j * Y + column, d_z_pre_mul);
        }
    }
};

// gradient of z = global_avg_pool(pool * scale)                                                   vectors.mt:12
struct d_scale_partial {
    static constexpr int tiles = divide_up(256 * Y, Column<4, 32>::rows);
    static constexpr int shared_bytes = team_shared<Column<4, 32>>(0);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        Column<4, 32> team(shared);
        int i = tile * Column<4, 32>::rows + team.row;
        gate();

        // d_scale.partial[i, j] = sum over k of z_mul_2[(i * 256 + k) / (POOL_ROWS * POOL_COLUMNS), (i * 256 + k) /
        //         POOL_COLUMNS % POOL_ROWS, (i * 256 + k) % POOL_COLUMNS, j]
        auto partial = fill_pack<4, float>(0);
        for (int j = team.first; j < 256; j += team.stride) {
            int at = (i / Y * 256 + j) * Y + i % Y;
            Pack<float, 4> d_z_pre_mul = load_pack<4>(t.z_mul_2 + at);
            for (int v = 0; v < 4; v++)
                partial[v] += d_z_pre_mul[v];
        }
        partial = team_sum(team, partial);
        if (leads(team))
            store_pack(t.d_scale_partial + i, partial);
    }
};

// loss = mse(z, y)                                                                                vectors.mt:16
struct loss_part {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        float row_share = share(batch, i);
        gate();
        if (i >= BATCH)
            return;

        // z_sum[i] = sum over j of z_mul[i, j]
        float z_sum = 0;
        for (int j = team.first; j < Y; j += team.stride)
            z_sum += t.z_mul[i * Y + j];
        z_sum = team_sum(team, z_sum);

        // loss_part[i] = z_sum[i] * (1 / Y) * share(i)
        if (leads(team))
            t.loss_part[i] = z_sum * (1.0f / Y) * row_share;
    }
};

// gradient of seen = relu(conv2d(x, 64, 1))                                                        vectors.mt:9
// gradient of pool = max_pool(seen, 2)                                                            vectors.mt:11
struct d_seen_to_d_seen_pre {
    static constexpr int tiles = divide_up(BATCH * X_ROWS * X_COLUMNS * Y / 32, THREADS);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *, Gate &gate) {
        // outputs, taps, stride, dilation, pad, spread
        using Rows = Axis<X_ROWS, 2, 1, -1, 0, 2>;
        using Columns = Axis<X_COLUMNS, 2, 1, -1, 0, 2>;
        using Patches = Patch<POOL_ROWS, POOL_COLUMNS, Rows, Columns, 2, 4>;
        int i = tile * THREADS + threadIdx.x, patch = i / (Y / 4) % Patches::count;
        gate();
        if (i >= BATCH * Patches::count * (Y / 4))
            return;
        int image = i / (Y / 4) / Patches::count, channel = i % (Y / 4) * 4;
        int top = patch / Patches::across * Patches::rows;
        int left = patch % Patches::across * Patches::columns;

        // d_pool[i, j, k, l] = z_mul_3[i, l]
        // d_seen[i, j, k, l] = sum over m, n of (pool_cast[i, (j - m) / 2, (k - n) / 2, l] == m * 2 + n ?
        //         d_pool[i, (j - m) / 2, (k - n) / 2, l] : 0)
        // d_seen_pre[i, j, k, l] = seen[i, j, k, l] > 0 ? d_seen[i, j, k, l] : 0
        auto seen = [&](int line, int column) {
            int at = image * POOL_ROWS * POOL_COLUMNS * Y + line * POOL_COLUMNS * Y + column * Y + channel;
            Pack<unsigned char, 4> first_cast_2 = load_pack<4>(t.pool_cast + at);
            return first_cast_2;
        };
        Pack<float, 4> d_z_pre_mul = load_pack<4>(t.z_mul_3 + image * Y + channel);
        auto seen_2 = [&](int line, int column) { return d_z_pre_mul; };
        auto term = [&](int tap, const Pack<unsigned char, 4> &seen, const Pack<float, 4> &seen_2,
                        Pack<float, 4> &sum) {
            for (int v = 0; v < 4; v++)
                if ((float)seen[v] == (float)tap)
                    sum[v] += seen_2[v];
        };
        struct Ahead {
            Pack<bfloat16, 4> seen_3;
        };
        auto read = [&](int line, int column) {
            return Ahead{
                load_pack<4>(t.seen + image * X_ROWS * X_COLUMNS * Y + line * X_COLUMNS * Y + column * Y + channel)};
        };
        auto out = [&](int line, int column, const Pack<float, 4> &sum, const Ahead &ahead) {
            Pack<float, 4> d_seen_pre;
            for (int v = 0; v < 4; v++)
                d_seen_pre[v] = to_float(ahead.seen_3[v]) > 0.0f ? sum[v] : 0.0f;
            store_pack(t.d_seen_pre + image * X_ROWS * X_COLUMNS * Y + line * X_COLUMNS * Y + column * Y + channel,
                       to_bf16(d_seen_pre));
        };
        sum_terms<Patches, 4>(top, left, both_images(seen, seen_2), term, preloaded(read, out));
    }
};

// gradient of z = global_avg_pool(pool * scale)                                                   vectors.mt:12
struct d_scale {
    static constexpr int tiles = divide_up(Y, Column<1, 32>::rows);
    static constexpr int shared_bytes = team_shared<Column<1, 32>>(0);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        Column<1, 32> team(shared);
        int i = tile * Column<1, 32>::rows + team.row;
        gate();

        // d_scale_sum[i] = sum over j of d_scale.partial[j, i]
        float partial_sum = 0;
        for (int j = team.first; j < 256; j += team.stride)
            partial_sum += t.d_scale_partial[j * Y + i];
        partial_sum = team_sum(team, partial_sum);
        if (leads(team))
            t.d_scale_sum[i] = partial_sum;
    }
};

// gradient of seen = relu(conv2d(x, 64, 1))                                                        vectors.mt:9
struct d_seen_bias_partial {
    static constexpr int tiles = divide_up(BATCH * Y, Column<8, 32>::rows);
    static constexpr int shared_bytes = team_shared<Column<8, 32>>(0);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        Column<8, 32> team(shared);
        int i = tile * Column<8, 32>::rows + team.row;
        gate();

        // d_seen.bias.partial[i, j] = sum over k of d_seen_pre[i, k / X_COLUMNS, k % X_COLUMNS, j]
        auto partial = fill_pack<8, float>(0);
        for (int j = team.first; j < X_ROWS * X_COLUMNS; j += team.stride) {
            int at = i / Y * X_ROWS * X_COLUMNS * Y + j * Y + i % Y;
            Pack<bfloat16, 8> d_seen_pre = load_pack<8>(t.d_seen_pre + at);
            for (int v = 0; v < 8; v++)
                partial[v] += to_float(d_seen_pre[v]);
        }
        partial = team_sum(team, partial);
        if (leads(team))
            store_pack(t.d_seen_bias_partial + i, partial);
    }
};

// gradient of seen = relu(conv2d(x, 64, 1))                                                        vectors.mt:9
//     d_seen_weight_slices_matmul[i, j, k] = sum over l of
//         d_seen_pre[(i * 2048 + l) / (X_ROWS * X_COLUMNS), (i * 2048 + l) / X_COLUMNS % X_ROWS, (i * 2048 + l)
//         % X_COLUMNS, j] * x.bf16.reshape[i * 2048 + l, k]
struct d_seen_weight_slices {
    // 128 tiles of 64 x 64 outputs, 16 x 32 a warp; bf16 on tensor cores, panels copied ahead to shared memory
    // (cuda/tensor.cuh)
    using Shape = Product<Y, X_CHANNELS, 2048>;
    using Cut = TensorTile<64, 64, 64, 4, 2, 4, bfloat16>;
    static constexpr int each = product_tiles<Shape, Cut>();
    static constexpr int tiles = 128 * each;
    static constexpr int shared_bytes = product_shared<Shape, Cut>();
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        int b = tile / each;
        auto left = transposed(matrix<Y>(t.d_seen_pre + b * 2048 * Y));
        auto right = matrix<X_CHANNELS>(t.x_bf16_reshape + b * 2048 * X_CHANNELS);
        auto out = [&](int i, int j, const Pack<float, 8> &sum) {
            store_pack(t.d_seen_weight_slices_matmul + b * Y * X_CHANNELS + i * X_CHANNELS + j, sum);
        };
        auto results = vectorized<8>(out);
        matmul<Shape, Cut>(tile % each, left, right, shared, gate, results);
    }
};

// loss = mse(z, y)                                                                                vectors.mt:16
static __constant__ unsigned report_loss_places[2][1] = {
    {477506}, // report_loss
    {66},     // eval_report_loss
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

// gradient of seen = relu(conv2d(x, 64, 1))                                                        vectors.mt:9
// optimizer = sgd(0.1)                                                                            vectors.mt:17
struct update_seen_bias {
    static constexpr int tiles = divide_up(Y, Column<1, 32>::rows);
    static constexpr int shared_bytes = team_shared<Column<1, 32>>(0);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        Column<1, 32> team(shared);
        int i = tile * Column<1, 32>::rows + team.row;
        gate();

        // d_seen.bias[i] = sum over j of d_seen.bias.partial[j, i]
        float d_seen_bias = 0;
        for (int j = team.first; j < BATCH; j += team.stride)
            d_seen_bias += t.d_seen_bias_partial[j * Y + i];
        d_seen_bias = team_sum(team, d_seen_bias);

        // seen.bias[i] = seen.bias[i] - 0.1 * d_seen.bias[i]
        if (leads(team))
            t.seen_bias[i] -= 0.1f * d_seen_bias;
    }
};

// gradient of seen = relu(conv2d(x, 64, 1))                                                        vectors.mt:9
// optimizer = sgd(0.1)                                                                            vectors.mt:17
struct update_seen_weight {
    static constexpr int tiles = divide_up(Y * X_CHANNELS, Column<4, 32>::rows);
    static constexpr int shared_bytes = team_shared<Column<4, 32>>(0);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        Column<4, 32> team(shared);
        int i = tile * Column<4, 32>::rows + team.row;
        gate();

        // d_seen.weight[i, 0, 0, l] = sum over m of d_seen_weight_slices_matmul[m, i, l]
        auto d_seen_weight = fill_pack<4, float>(0);
        for (int j = team.first; j < 128; j += team.stride) {
            Pack<float, 4> d_seen_weight_slices = load_pack<4>(t.d_seen_weight_slices_matmul + j * Y * X_CHANNELS + i);
            for (int v = 0; v < 4; v++)
                d_seen_weight[v] += d_seen_weight_slices[v];
        }
        d_seen_weight = team_sum(team, d_seen_weight);

        // seen.weight[i, 0, 0, l] = seen.weight[i, 0, 0, l] - 0.1 * d_seen.weight[i, 0, 0, l]
        if (leads(team)) {
            Pack<float, 4> seen_weight = load_pack<4>(t.seen_weight + i);
            Pack<float, 4> seen_weight_sub;
            for (int v = 0; v < 4; v++)
                seen_weight_sub[v] = seen_weight[v] - 0.1f * d_seen_weight[v];
            store_pack(t.seen_weight + i, seen_weight_sub);
        }
    }
};

// optimizer = sgd(0.1)                                                                            vectors.mt:17
//     d_scale[i, 0, 0] = d_scale_sum[i]
//     scale[i, 0, 0] = scale[i, 0, 0] - 0.1 * d_scale[i, 0, 0]
struct update_scale {
    static constexpr int tiles = divide_up(Y, Thread::rows);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *, Gate &gate) {
        int i = tile * THREADS + threadIdx.x;
        gate();
        if (i >= Y)
            return;
        t.scale[i] -= 0.1f * t.d_scale_sum[i];
    }
};

// ---- phases: one after the other; the kernels of a phase run at the same time -------------------------------

using train_5_beside_1 = Beside<d_scale_partial, loss_part>;
using train_6_beside_2 = Beside<d_scale, At<report_loss, 0, 0>>;
using train_7 = Phase<update_seen_bias, update_seen_weight, update_scale>;

using Train = Step<Tensors, BATCH, REPORTS, Phase<x_bf16_reshape>, Beside<seen_weight_bf16>, InTurns<Phase<seen>>,
                   Phase<pool>, Phase<z>, Phase<d_seen_to_d_seen_pre>, train_5_beside_1, Phase<d_seen_bias_partial>,
                   Beside<d_seen_weight_slices>, train_6_beside_2, train_7>;

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

// pool = max_pool(seen, 2)                                                                        vectors.mt:11
struct eval_pool {
    static constexpr int tiles = divide_up(BATCH * POOL_ROWS * POOL_COLUMNS * Y, (4 * Thread::rows));
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *, Gate &gate) {
        int i = 4 * (tile * THREADS + threadIdx.x);
        gate();
        if (i >= BATCH * POOL_ROWS * POOL_COLUMNS * Y)
            return;

        // pool[i, j, k, l] = max over m, n of seen[i, j * 2 + m, k * 2 + n, l]
        auto pool = fill_pack<4, float>(-INFINITY);
        for (int j = 0; j < 2 * 2; j++) {
            int at = i / Y / (POOL_ROWS * POOL_COLUMNS) * X_ROWS * X_COLUMNS * Y +
                     (i / Y / POOL_COLUMNS % POOL_ROWS * 2 + j / 2) * X_COLUMNS * Y +
                     (i / Y % POOL_COLUMNS * 2 + j % 2) * Y + i % Y;
            Pack<bfloat16, 4> seen = load_pack<4>(t.eval_seen + at);
            for (int v = 0; v < 4; v++)
                pool[v] = fmax(pool[v], to_float(seen[v]));
        }
        store_pack(t.eval_pool + i, pool);
    }
};

// z = global_avg_pool(pool * scale)                                                               vectors.mt:12
struct eval_output_z {
    static constexpr int tiles = divide_up(BATCH * Y, Column<4, 16>::rows);
    static constexpr int shared_bytes = team_shared<Column<4, 16>>(0);
    static __device__ void run(const Tensors &t, const Batch &, int tile, char *shared, Gate &gate) {
        Column<4, 16> team(shared);
        int i = tile * Column<4, 16>::rows + team.row;
        gate();
        int column = i % Y;

        // pool_sum[i, j] = sum over k, l of pool[i, k, l, j]
        auto pool_sum = fill_pack<4, float>(0);
        for (int j = team.first; j < POOL_ROWS * POOL_COLUMNS; j += team.stride) {
            int at = i / Y * POOL_ROWS * POOL_COLUMNS * Y + j * Y + column;
            Pack<float, 4> pool = load_pack<4>(t.eval_pool + at);
            for (int v = 0; v < 4; v++)
                pool_sum[v] += pool[v];
        }
        pool_sum = team_sum(team, pool_sum);

        // z[i, j] = pool_sum[i, j] * scale[j, 0, 0] * (1 / (POOL_ROWS * POOL_COLUMNS))
        if (leads(team)) {
            Pack<float, 4> scale = load_pack<4>(t.scale + column);
            Pack<float, 4> z;
            for (int v = 0; v < 4; v++)
                z[v] = pool_sum[v] * scale[v] * (1.0f / (POOL_ROWS * POOL_COLUMNS));
            store_pack(t.eval_z + i, z);
        }
    }
};

// loss = mse(z, y)                                                                                vectors.mt:16
struct eval_loss_part {
    static constexpr int tiles = divide_up(BATCH, Warp::rows);
    static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {
        Warp team(shared);
        int i = tile * Warp::rows + team.row;
        int64_t example = row(batch, i);
        float row_share = share(batch, i);
        gate();
        if (i >= BATCH)
            return;

        // z_sum[i] = sum over j of (z[i, j] - y[i, j]) * (z[i, j] - y[i, j])
        float z_sum = 0;
        for (int j = team.first; j < Y; j += team.stride) {
            float z_sub = t.eval_z[i * Y + j] - t.y[example * Y + j];
            z_sum += z_sub * z_sub;
        }
        z_sum = team_sum(team, z_sum);

        // loss_part[i] = z_sum[i] * (1 / Y) * share(i)
        if (leads(team))
            t.eval_loss_part[i] = z_sum * (1.0f / Y) * row_share;
    }
};

using eval_6 = Phase<At<report_loss, 1, 0>>;

using Eval =
    Step<Tensors, BATCH, REPORTS, Again<Phase<x_bf16_reshape>, 1>, Again<Beside<seen_weight_bf16>, 1>,
         Again<InTurns<Phase<seen>>, 1>, Phase<eval_pool>, Phase<eval_output_z>, Phase<eval_loss_part>, eval_6>;

static const char *evaluate(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    return launch_evaluation<Eval>(run, first, rows, slot);
}

} // namespace

// ---- tables for the runtime ---------------------------------------------------------------------------------

// file, NULL: this model's own; line; text
static const MtcStatement statement_table[] = {
    {NULL, 9, "seen = relu(conv2d(x, 64, 1))"},
    {NULL, 10, "scale = weight([64, 1, 1], init = normal(0, 1))"},
    {NULL, 11, "pool = max_pool(seen, 2)"},
    {NULL, 12, "z = global_avg_pool(pool * scale)"},
    {NULL, 16, "loss = mse(z, y)"},
    {NULL, 17, "optimizer = sgd(0.1)"},
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
    {.name = "seen.weight", .rank = 4, .dim = {64, 1, 1, 64}, .offset = 0, .init = MTC_UNIFORM,
     .a = -0.12499999999999999, .b = 0.12499999999999999, .statement = 0, .file_axis = {0, 3, 1, 2}},
    {.name = "seen.bias", .rank = 1, .dim = {64}, .offset = 16384, .init = MTC_UNIFORM, .a = -0.12499999999999999,
     .b = 0.12499999999999999, .statement = 0},
    {.name = "scale", .rank = 3, .dim = {64, 1, 1}, .offset = 16640, .init = MTC_NORMAL, .b = 1, .statement = 1},
    VALUE("x.bf16.reshape", MTC_BF16, 16896, 0, 0, 2, {262144, 64}),
    VALUE("seen.weight.bf16", MTC_BF16, 67125760, 0, 0, 4, {64, 1, 1, 64}),
    VALUE("seen", MTC_BF16, 33571328, 0, 1, 4, {1024, 16, 16, 64}),
    VALUE("pool", MTC_F32, 67125760, 2, 2, 4, {1024, 8, 8, 64}),
    VALUE("z_mul", MTC_F32, 121651712, 4, 3, 2, {1024, 64}),
    VALUE("loss_part", MTC_F32, 122241536, 4, 4, 1, {1024}),
    VALUE("z_mul", MTC_F32, 121913856, 3, 3, 2, {1024, 64}),
    VALUE("z_mul", MTC_F32, 100680192, 3, 3, 4, {1024, 8, 8, 64}),
    VALUE("d_scale.partial", MTC_F32, 122176000, 3, 4, 2, {256, 64}),
    VALUE("d_scale_sum", MTC_F32, 35930624, 3, 5, 1, {64}),
    VALUE("pool_cast", MTC_U8, 117457408, 2, 2, 4, {1024, 8, 8, 64}),
    VALUE("d_seen_pre", MTC_BF16, 67125760, 0, 4, 4, {1024, 16, 16, 64}),
    VALUE("d_seen.bias.partial", MTC_F32, 35668480, 0, 5, 2, {1024, 64}),
    VALUE("d_seen_weight_slices_matmul", MTC_F32, 33571328, 0, 5, 3, {128, 64, 64}),
};
// clang-format on
#undef VALUE
static const MtcField field_table[] = {
    {.name = "x",
     .type = MTC_F32,
     .rank = 3,
     .dim = {64, 16, 16},
     .elements = 16384,
     .classes = 0,
     .predicts = true,
     .scaled = true},
    {.name = "y", .type = MTC_F32, .rank = 1, .dim = {64}, .elements = 64, .classes = 0, .predicts = false},
};
static const char *const paths[] = {"x", "y"};
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
    {"x_bf16_reshape", 0, 0, MTC_MATH_FP32, 16777216, 100663296},
    {"seen_weight_bf16", 0, 0, MTC_MATH_FP32, 4096, 24576},
    {"seen", 0, 1, MTC_MATH_BF16, 2147483648, 67117312},
    {"pool", 2, 2, MTC_MATH_FP32, 71303168, 54525952},
    {"z", 3, 3, MTC_MATH_FP32, 8912896, 34341120},
    {"d_seen_to_d_seen_pre", 2, 4, MTC_MATH_FP32, 301989888, 71565312},
    {"d_scale_partial", 3, 4, MTC_MATH_FP32, 4194304, 16842752},
    {"loss_part", 4, 4, MTC_MATH_FP32, 67584, 266240},
    {"d_seen_bias_partial", 0, 5, MTC_MATH_FP32, 16777216, 33816576},
    {"d_seen_weight_slices", 0, 5, MTC_MATH_BF16, 2147483648, 69206016},
    {"d_scale", 3, 5, MTC_MATH_FP32, 16384, 65792},
    {"report_loss", 4, 5, MTC_MATH_FP32, 1024, 4100},
    {"update_seen_bias", 0, 6, MTC_MATH_FP32, 65664, 262656},
    {"update_seen_weight", 0, 6, MTC_MATH_FP32, 532480, 2129920},
    {"update_scale", 5, 6, MTC_MATH_FP32, 128, 768},
};
// clang-format on

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = "vectors",
    .source = "vectors.mt",
    .target = "cuda",
    .architectures = "",
    .schedule = "graph",
    .model_hash = "2a6d016035c86a3c2e1beead0ec2945e6fb98d700fcc59b953f273f9c211c1ff",
    .training = "loss = mse(z, y)\n"
                "optimizer = sgd(0.1)\n"
                "precision = bf16\n"
                "batch = 1024",
    .batch = BATCH,
    .epochs = 10,
    .seed = 0u,
    .parameters = 4224,
    .flops_per_step = 4715609344,
    .arena_bytes = 122245632,
    .unshared_bytes = 225551104,
    .train_phases = 7,
    .eval_phases = 6,
    .tensors = 17,
    .fields = 2,
    .origins = 1,
    .splits = 1,
    .knobs = 0,
    .fixed = 0,
    .reports = REPORTS,
    .kernels = 15,
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
    .prediction_offset = 16794112,
    .prediction_rank = 1,
    .prediction_dim = {64},
    .prediction_is_classes = false,
    .statements = 6,
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
