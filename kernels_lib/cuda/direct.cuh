/* Products of few outputs and long k, without panels. A slice of the block is at least a warp, and both operands lie along
 * k: numbers go from memory to the registers of the one thread that uses them; lanes are folded by shuffles, warps in
 * shared memory. */
#ifndef MTC_CUDA_DIRECT_CUH
#define MTC_CUDA_DIRECT_CUH

#include "cuda/operand.cuh"
#include "cuda/outputs.cuh"
#include <type_traits>

/* Folds v[0 .. COUNT) over the lanes of a warp. Each lane ends with the totals of COUNT / LANES elements, from
 * lane * COUNT / LANES on; of fewer than LANES elements, each is with LANES / COUNT neighbouring lanes. At every
 * exchange a lane gives half of what it holds and keeps the other half. */
template <int COUNT> __device__ void fold_lanes(float (&v)[COUNT], int lane) {
#pragma unroll
    for (int distance = LANES / 2, held = COUNT; distance; distance /= 2) {
        if (held == 1) {
            v[0] += __shfl_xor_sync(~0u, v[0], distance);
            continue;
        }
        held /= 2;
#pragma unroll
        for (int e = 0; e < COUNT / 2; e++) {
            if (e >= held)
                break;
            bool upper = lane & distance;
            float kept = upper ? v[e + held] : v[e], given = upper ? v[e] : v[e + held];
            v[e] = kept + __shfl_xor_sync(~0u, given, distance);
        }
    }
}

/* One line's numbers of one step of k, as floats. */
template <class Lines, class Raw> __device__ void unpack(const Lines &lines, Raw raw, float (&v)[4]) {
    float4 four = lines.value(raw);
    v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
}
template <class Lines, class Raw> __device__ void unpack(const Lines &lines, Raw raw, float (&v)[1]) {
    v[0] = lines.value(raw);
}

/* COUNT lines of an operand, of TOTAL cut into tiles of TILE: where they lie, and their numbers at STEPS steps of k. */
template <class Lines, int COUNT, int TOTAL, int TILE, int WIDTH, int STEPS> struct Strip {
    using Raw = std::conditional_t<WIDTH == 4, typename Lines::Four, typename Lines::One>;
    const typename Lines::One *from[COUNT];
    Raw raw[STEPS][COUNT];

    __device__ Strip(const Lines &lines, int line0) {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            from[i] = lines.at(lines.line(TOTAL % TILE == 0 || line0 + i < TOTAL ? line0 + i : 0), lines.step(0));
    }
    __device__ void fetch(int step, int k) {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            raw[step][i] = *(const Raw *)(from[i] + k);
    }
};

/* sum[i * TN + j] += products of line i of a and line j of b at one fetched step. */
template <int WIDTH, class A, class B, class RawA, class RawB, int TM, int TN>
__device__ void multiply_strips(const A &a, const B &b, const RawA (&raw_a)[TM], const RawB (&raw_b)[TN],
                                float (&sum)[TM * TN]) {
    float y[TN][WIDTH];
#pragma unroll
    for (int j = 0; j < TN; j++)
        unpack(b, raw_b[j], y[j]);
#pragma unroll
    for (int i = 0; i < TM; i++) {
        float x[WIDTH];
        unpack(a, raw_a[i], x);
#pragma unroll
        for (int j = 0; j < TN; j++)
#pragma unroll
            for (int k = 0; k < WIDTH; k++)
                sum[i * TN + j] = fmaf(x[k], y[j][k], sum[i * TN + j]);
    }
}

/* So many that fold_lanes can deal them to lanes: COUNT, and zeros. */
template <int COUNT> __host__ __device__ constexpr int padded_outputs() {
    int padded = 1;
    while (padded < COUNT && padded < LANES)
        padded *= 2;
    return padded < COUNT ? divide_up(COUNT, LANES) * LANES : padded;
}

/* Sums of which each warp of a slice has left a part: [place][warp][output of a thread], OUTPUTS of a thread in rows of TN. */
template <class Tile, int OUTPUTS, int TN> struct StripSums {
    const float *parts;

    __device__ float sum(int i, int j) const {
        constexpr int warps = Tile::slices / LANES;
        int place = i / Tile::tm * Tile::across + j / Tile::tn;
        const float *first = parts + place * warps * OUTPUTS + i % Tile::tm * TN + j % Tile::tn;
        float total = first[0];
        for (int warp = 1; warp < warps; warp++)
            total += first[warp * OUTPUTS];
        return total;
    }
    template <int WIDTH> __device__ Pack<float, WIDTH> at(int row, int column) const {
        Pack<float, WIDTH> total;
#pragma unroll
        for (int v = 0; v < WIDTH; v++)
            total[v] = sum(row, column + v);
        return total;
    }
};

/* The threads' sums, in rows of TN, become the tile's outputs. */
template <class Tile, int TN, int OUTPUTS, class Finished, class Out>
__device__ void finish_strips(Finished &finished, const Out &out, float (&sum)[OUTPUTS], float *shared) {
    constexpr int each = divide_up(OUTPUTS, LANES);
    constexpr int copies = OUTPUTS < LANES ? LANES / OUTPUTS : 1; // lanes that hold the same total
    int lane = threadIdx.x % LANES;
    fold_lanes(sum, lane);
    float *partial = shared + threadIdx.x / LANES * OUTPUTS;
    if (lane % copies == 0)
#pragma unroll
        for (int e = 0; e < each; e++)
            partial[lane / copies * each + e] = sum[e];
    __syncthreads();
    finished.write(
        out, 0, [](int row) { return row; }, StripSums<Tile, OUTPUTS, TN>{shared});
    finished.fold(out, shared);
}

template <class Product, class Tile, class A, class B, class Out, class Gate>
__device__ void matmul_direct(int i0, int j0, const A &a, const B &b, float *shared, Gate &gate, const Out &out) {
    constexpr int width = A::aligned && B::aligned && Product::K % 4 == 0 ? 4 : 1, stride = width * Tile::slices;
    constexpr int steps = divide_up(Product::K, stride);
    constexpr int bytes = width * (Tile::tm * sizeof(typename A::One) + Tile::tn * sizeof(typename B::One));
    constexpr int room = DIRECT_BYTES / bytes, held = room < 1       ? 1
                                                      : room < steps ? room
                                                                     : steps; // steps fetched at a time
    constexpr int outputs = Tile::tm * Tile::tn;
    auto identity = [](int row) { return row; };

    int place = threadIdx.x / Tile::slices, slice = threadIdx.x % Tile::slices;
    Strip<A, Tile::tm, Product::M, Tile::m, width, held> strip_a(a, i0 + place / Tile::across * Tile::tm);
    Strip<B, Tile::tn, Product::N, Tile::n, width, held> strip_b(b, j0 + place % Tile::across * Tile::tn);
    Outputs<Product, Tile, Tile::m, Out> finished{i0, j0};
    if constexpr (is_early<Out>)
        finished.read(out, 0, identity);

    float sum[outputs] = {};
    for (int start = 0; start < steps; start += held) {
        int first = (start * Tile::slices + slice) * width;
        auto fetch = [&](auto &strip) {
#pragma unroll
            for (int q = 0; q < held; q++) {
                int k = first + q * stride;
                strip.fetch(q, Product::K % (stride * held) == 0 || k < Product::K ? k : 0);
            }
        };
        if constexpr (A::data_set)
            fetch(strip_a);
        if constexpr (B::data_set)
            fetch(strip_b);
        if (start == 0)
            gate();
        if constexpr (!A::data_set)
            fetch(strip_a);
        if constexpr (!B::data_set)
            fetch(strip_b);
        if (!is_early<Out> && start == 0)
            finished.read(out, 0, identity);
#pragma unroll
        for (int q = 0; q < held; q++)
            if (Product::K % (stride * held) == 0 || first + q * stride < Product::K)
                multiply_strips<width>(a, b, strip_a.raw[q], strip_b.raw[q], sum);
    }

    finish_strips<Tile, Tile::tn>(finished, out, sum, shared);
}

#endif
