/* Tensor cores by warps, mma.sync: integers in steps of 32 along k, 16-bit numbers of 16, tf32 of 8; all are 32 bytes of a line, two
 * chunks.
 *
 * A warp's share of a tile is made of blocks of 16 lines of a by 8 lines of b; fragments of them come from panels in shared memory,
 * eight rows of a chunk at a time (ldmatrix), transposed on the way where the panel does not lie along k. */
#ifndef MTC_CUDA_TENSOR_WARP_CUH
#define MTC_CUDA_TENSOR_WARP_CUH

#include "cuda/tensor_panel.cuh"

constexpr int STEP_CHUNKS = 2, STEPS = CHUNKS / STEP_CHUNKS; // chunks of a step, steps of a panel

template <bool TRANSPOSED> __device__ void load_fragments(unsigned address, unsigned (&v)[4]) {
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                     : "r"(address)
                     : "memory");
}

static inline __device__ unsigned load_word(unsigned address) {
    unsigned word;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
    return word;
}

/* 16 lines by one step, from line `line` (a multiple of 16) of a panel. The four 8 x 1-chunk parts come in the order
 *
 *     BY_LINES: lines 0-7, 8-15 of the first chunk, then of the second (operand a)
 *     else:     first, second chunk of lines 0-7, then of lines 8-15   (operand b: two blocks of 8 lines) */
template <class T, bool ALONG_K, bool BY_LINES>
__device__ void load_lines(unsigned panel, int line, int step, unsigned (&v)[4]) {
    constexpr int depth = PANEL_ROW / sizeof(T), per_chunk = CHUNK / sizeof(T);
    int lane = threadIdx.x % LANES, part = lane / 8, of_line = BY_LINES ? part % 2 : part / 2;
    int of_chunk = BY_LINES ? part / 2 : part % 2;
    if constexpr (ALONG_K)
        load_fragments<false>(
            panel + chunk_offset_of<T, ALONG_K>(line + of_line * 8 + lane % 8, step * STEP_CHUNKS + of_chunk), v);
    else if constexpr (sizeof(T) == 2) {
        int row = line / depth * depth + (step * STEP_CHUNKS + of_chunk) * per_chunk + lane % 8;
        load_fragments<true>(panel + chunk_offset_of<T, ALONG_K>(row, line % depth / per_chunk + of_line), v);
    } else
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int l = line + (BY_LINES ? e % 2 : e / 2) * 8 + lane / 4;
            int row = line / depth * depth + (step * STEP_CHUNKS + (BY_LINES ? e / 2 : e % 2)) * per_chunk + lane % 4;
            v[e] =
                load_word(panel + chunk_offset_of<T, ALONG_K>(row, l % depth / per_chunk) + l % per_chunk * sizeof(T));
        }
}

/* sum += 16 lines of a by 8 lines of b, a step of k. sm_75 has an instruction for half a step, of IEEE's halves. */
template <class T>
__device__ void multiply_fragments(const unsigned (&a)[4], unsigned b0, unsigned b1, float (&sum)[4]) {
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
    const unsigned b[2] = {b0, b1};
#pragma unroll
    for (int half = 0; half < 2; half++)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[half * 2]), "r"(a[half * 2 + 1]), "r"(b[half]));
#else
    static_assert(!is_float8<T> || HAS_FLOAT8<T>, "numbers of 8 bits are multiplied from sm_89 on");
    if constexpr (is_float8<T>)
        asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else if constexpr (sizeof(T) == 2)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." NARROW_NAME "." NARROW_NAME ".f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/* Of integers that lie along k: fragments of the same bytes. sm_75 has an instruction for a quarter. */
template <class T> __device__ void multiply_fragments(const unsigned (&a)[4], unsigned b0, unsigned b1, int (&sum)[4]) {
    static_assert(is_integer<T>, "what is added up in 32 bits");
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
    const unsigned b[2] = {b0, b1};
#pragma unroll
    for (int quarter = 0; quarter < 4; quarter++)
        asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+r"(sum[quarter % 2 * 2]), "+r"(sum[quarter % 2 * 2 + 1])
                     : "r"(a[quarter]), "r"(b[quarter / 2]));
#else
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/* The calling warp's sums of a tile. */
template <class Tile, bool A_ALONG_K, bool B_ALONG_K> class WarpSums {
    using T = Stored<Tile>;
    static constexpr int down = Tile::m / Tile::warps_m / 16, across = Tile::n / Tile::warps_n / 8;
    static_assert(Tile::warps_m * Tile::warps_n == WARPS && down > 0 && across % 2 == 0, "warps must cover the tile");

    static_assert(sizeof(T) > 1 || (A_ALONG_K && B_ALONG_K), "no instruction turns bytes round");

    SumOf<T> sum[down][across][4] = {};

    static __device__ int row() {
        return threadIdx.x / LANES / Tile::warps_n * (down * 16);
    }
    static __device__ int column() {
        return threadIdx.x / LANES % Tile::warps_n * (across * 8);
    }

    using X = unsigned[down][4];
    using Y = unsigned[across / 2][4];
    using Sums = SumOf<T>[down][across][4];

    static __device__ void load_step(unsigned a, unsigned b, int step, X &x, Y &y) {
#pragma unroll
        for (int i = 0; i < down; i++)
            load_lines<T, A_ALONG_K, true>(a, row() + i * 16, step, x[i]);
#pragma unroll
        for (int j = 0; j < across / 2; j++)
            load_lines<T, B_ALONG_K, false>(b, column() + j * 16, step, y[j]);
    }
    static __device__ void multiply_step(const X &x, const Y &y, Sums &sum) {
#pragma unroll
        for (int i = 0; i < down; i++)
#pragma unroll
            for (int j = 0; j < across; j++)
                multiply_fragments<T>(x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1], sum[i][j]);
    }
    template <int COUNT> static __device__ void split(unsigned (&first)[COUNT][4], unsigned (&second)[COUNT][4]) {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                split_terms(first[i][e], second[i][e]);
    }
    /* The products of a panel that have a SMALL factor, or those that have none. */
    template <bool SMALL> static __device__ void add_steps(unsigned a, unsigned b, Sums &sum) {
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            X x, second_x;
            Y y, second_y;
            load_step(a, b, step, x, y);
            split(x, second_x);
            split(y, second_y);
            if constexpr (SMALL) {
                multiply_step(second_x, y, sum);
                multiply_step(x, second_y, sum);
            } else
                multiply_step(x, y, sum);
        }
    }
    static __device__ void multiply_steps(unsigned a, unsigned b, Sums &sum) {
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            X x;
            Y y;
            load_step(a, b, step, x, y);
            multiply_step(x, y, sum);
        }
    }
    /* Tensor cores cut off what they add up: small products come first, and sums of a panel are made apart, and rounded when
     * they join the others. */
    __device__ void multiply_apart(unsigned a, unsigned b) {
        Sums of_panel = {};
        if constexpr (Tile::terms == 2) {
            add_steps<true>(a, b, of_panel);
            add_steps<false>(a, b, of_panel);
        } else {
            multiply_steps(a, b, of_panel);
        }
#pragma unroll
        for (int i = 0; i < down; i++)
#pragma unroll
            for (int j = 0; j < across; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    sum[i][j][e] += of_panel[i][j][e];
    }

public:
    static constexpr int behind = 0; // panels that are still read when `multiply` returns

    __device__ void multiply(unsigned a, unsigned b) {
        if constexpr (Tile::terms == 2 || is_float8<T>)
            multiply_apart(a, b);
        else
            multiply_steps(a, b, sum);
    }
    __device__ void finish() {
    }
    /* Lays the sums out as [m][PITCH]. */
    __device__ void lay(float *sums) const {
        int lane = threadIdx.x % LANES;
        float *first = sums + (row() + lane / 4) * Tile::pitch + column() + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < down; i++)
#pragma unroll
            for (int j = 0; j < across; j++) {
                float *at = first + i * 16 * Tile::pitch + j * 8;
                *(float2 *)at = make_float2((float)sum[i][j][0], (float)sum[i][j][1]);
                *(float2 *)(at + 8 * Tile::pitch) = make_float2((float)sum[i][j][2], (float)sum[i][j][3]);
            }
    }
};

#endif
