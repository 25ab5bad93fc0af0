/* Products of few rows on tensor cores, such as those of several texts at a position: reading operand b, a weight that lies along k, is
 * what takes the time. So a tile has all rows, and few columns, for there to be many tiles:
 *
 *     warps of a tile of 32 columns      columns 0-15    warp 0   2   4   6        16 columns each, and every fourth step of k,
 *                                        columns 16-31   warp 1   3   5   7        of 32 numbers
 *
 * The instructions' operand a is the 16 columns, their b 8 rows. A lane takes 16 bytes of a line: steps of k come in another order in a
 * fragment than in memory, the same in both operands. They come by way of shared memory that no other thread reads, so that there are
 * no barriers, and more is under way than registers would hold: those of the columns ahead of the gate, where the weight is there. The
 * warps' sums are added in their order. */
#ifndef MTC_CUDA_TENSOR_FEW_CUH
#define MTC_CUDA_TENSOR_FEW_CUH

#include "cuda/outputs.cuh"
#include "cuda/tensor_warp.cuh"

/* A lane's lines of an operand, COUNT of them, eight apart; those behind the last of LINES are the last. */
template <class Lines, int COUNT, int LINES, int K> class FewLines {
    const Lines &lines;
    typename Lines::Line line[COUNT];
    unsigned own; // of shared memory

public:
    static constexpr int slot = COUNT * THREADS * PACK_BYTES; // of a step, of all threads

    __device__ FewLines(const Lines &lines, int first, char *shared)
        : lines(lines), own(shared_address(shared) + threadIdx.x * PACK_BYTES) {
#pragma unroll
        for (int n = 0; n < COUNT; n++)
            line[n] = lines.line(min(first + 8 * n, LINES - 1));
    }
    __device__ void fetch(int k, int place) const {
#pragma unroll
        for (int n = 0; n < COUNT; n++)
            copy_piece<PACK_BYTES>(own + place * slot + n * THREADS * PACK_BYTES, lines.at(line[n], lines.step(k)),
                                   k < K);
    }
    __device__ void load(int place, unsigned (&v)[COUNT][4]) const {
#pragma unroll
        for (int n = 0; n < COUNT; n++)
            asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(v[n][0]), "=r"(v[n][1]), "=r"(v[n][2]), "=r"(v[n][3])
                         : "r"(own + place * slot + n * THREADS * PACK_BYTES)
                         : "memory");
    }
};

/* The sums of a tile as the warps of its slices have laid them. */
template <class Tile> struct FewSums {
    static constexpr int pitch = few_pitch(Tile::n), slice = Tile::m * pitch, blocks = Tile::m / 8;
    const float *sums;

    static __device__ void lay(const float (&sum)[blocks][4], int of_slice, int column, float *sums) {
        float *first = sums + of_slice * slice + threadIdx.x % 4 * 2 * pitch + column;
#pragma unroll
        for (int r = 0; r < blocks; r++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                first[(r * 8 + e % 2) * pitch + e / 2 * 8] = sum[r][e];
    }
    template <int WIDTH> __device__ Pack<float, WIDTH> at(int row, int column) const {
        const float *first = sums + row * pitch + column;
        Pack<float, WIDTH> total = load_pack<WIDTH>(first);
#pragma unroll
        for (int s = 1; s < Tile::slices; s++) {
            Pack<float, WIDTH> more = load_pack<WIDTH>(first + s * slice);
#pragma unroll
            for (int v = 0; v < WIDTH; v++)
                total[v] += more[v];
        }
        return total;
    }
};

/* What a warp has of a step of k, into its sums. */
template <int BLOCKS>
__device__ void multiply_few(const unsigned (&column)[2][4], const unsigned (&row)[BLOCKS][4],
                             float (&sum)[BLOCKS][4]) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int w = 2 * half;
        const unsigned a[4] = {column[0][w], column[1][w], column[0][w + 1], column[1][w + 1]};
#pragma unroll
        for (int r = 0; r < BLOCKS; r++)
            multiply_fragments<Narrow>(a, row[r][w], row[r][w + 1], sum[r]);
    }
}

template <class Product, class Tile, class A, class B, class Gate, class Out>
__device__ void matmul_few(int i0, int j0, const A &a, const B &b, char *shared, Gate &gate, const Out &out) {
    static_assert(HAS_TENSOR_CORES<Tile>, "sm_75 has no tensor cores for bf16: compile it with --precision fp32");
    static_assert(A::runs_along_k && B::runs_along_k && Product::K % PACK_HALVES == 0, "16 bytes of a line");
    constexpr int stride = Tile::slices * Tile::k, steps = divide_up(Product::K, stride); // of a warp
    constexpr int ahead = smaller(steps, few_ahead(Tile::m, MOST_SHARED)), blocks = Tile::m / 8;
    constexpr int stages = smaller(steps, few_stages(Tile::m, MOST_SHARED)); // of columns, as many or more
    using Rows = FewLines<A, blocks, Product::M, Product::K>;
    using Columns = FewLines<B, 2, Product::N, Product::K>;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, slice = warp / Tile::warps_n;
    const int column = warp % Tile::warps_n * 16 + lane / 4, k0 = slice * Tile::k + lane % 4 * PACK_HALVES;
    const Rows rows(a, i0 + lane / 4, shared);
    const Columns columns(b, j0 + column, shared + ahead * Rows::slot);
    Outputs<Product, Tile, Tile::m, Out> outputs{i0, j0};
    constexpr bool reads_ahead = outputs.each == outputs.group;
    auto own_row = [](int row) { return row; };
    auto fetch_columns = [&] {
#pragma unroll
        for (int s = 0; s < stages; s++)
            columns.fetch(k0 + s * stride, s);
    };

    if (Tile::early)
        fetch_columns();
    if (reads_ahead && is_early<Out>)
        outputs.read(out, 0, own_row);
    gate();
    if (!Tile::early)
        fetch_columns();
#pragma unroll
    for (int s = 0; s < ahead; s++) {
        rows.fetch(k0 + s * stride, s);
        end_copies();
    }
    if (reads_ahead && !is_early<Out>)
        outputs.read(out, 0, own_row);

    float sum[blocks][4] = {};
#pragma unroll(steps <= 16 ? steps : 1)
    for (int s = 0; s < steps; s++) {
        unsigned of_columns[2][4], of_rows[blocks][4];
        await_copies<ahead - 1>();
        columns.load(s % stages, of_columns);
        rows.load(s % ahead, of_rows);
        multiply_few(of_columns, of_rows, sum);
        if (s + ahead < steps)
            rows.fetch(k0 + (s + ahead) * stride, s % ahead);
        if (s + stages < steps)
            columns.fetch(k0 + (s + stages) * stride, s % stages);
        end_copies();
    }

    __syncthreads(); // all have read their own
    FewSums<Tile>::lay(sum, slice, column, (float *)shared);
    __syncthreads();
    const FewSums<Tile> sums{(const float *)shared};
    if (reads_ahead)
        outputs.write(out, 0, own_row, sums);
    else
        outputs.read_and_write(out, own_row, sums);
}

#endif
