/* Tensor cores by groups of four warps, wgmma (sm_90a): both operands are read from panels in shared memory by the hardware
 * itself. 16-bit numbers, and tf32 and integers where both operands lie along k.
 *
 * An instruction multiplies 64 lines of one operand, x, by up to 256 lines of the other, y, in steps of 32 bytes of k. Shared
 * memory feeds it best when y is long: x is the operand that has fewer lines in the tile, so that the sums may lie in the
 * registers transposed. The two groups of a block share the tile along x where that has 128 lines, else along y; a tile too
 * small for that they share along k, and their sums are added at the end. */
#ifndef MTC_CUDA_TENSOR_GROUP_CUH
#define MTC_CUDA_TENSOR_GROUP_CUH

#include "cuda/tensor_panel.cuh"

constexpr int GROUP_THREADS = 128, GROUPS = THREADS / GROUP_THREADS, GROUP_LINES = 64, GROUP_STEP = 32;

/* How the hardware finds a panel, or a part of it: its address, and the bytes from eight rows to the next eight (along k:
 * lines; otherwise: steps of k) and, where it does not lie along k, from 64 lines to the next 64. All count 16 bytes. */
static inline __device__ uint64_t panel_descriptor(unsigned address, bool along_k) {
    constexpr uint64_t eight_rows = 8 * PANEL_ROW / 16, lines = 64 * PANEL_ROW / 16, swizzled = 1;
    return (uint64_t)(address / 16 & 0x3fff) | (along_k ? 1 : lines) << 16 | eight_rows << 32 | swizzled << 62;
}

#define TEN_NAMES(tens)                                                                                                \
    "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, %" #tens "7, %" #tens  \
    "8, %" #tens "9, "
#define FOUR_SUMS(to, i) to(sum[i]), to(sum[i + 1]), to(sum[i + 2]), to(sum[i + 3])
#define SIXTEEN_SUMS(to, i) FOUR_SUMS(to, i), FOUR_SUMS(to, i + 4), FOUR_SUMS(to, i + 8), FOUR_SUMS(to, i + 12)
#define SIXTY_SUMS(to, i)                                                                                              \
    SIXTEEN_SUMS(to, i), SIXTEEN_SUMS(to, i + 16), SIXTEEN_SUMS(to, i + 32), SIXTEEN_SUMS(to, i + 48)
#define SUMS_OF_64(to) SIXTEEN_SUMS(to, 0), SIXTEEN_SUMS(to, 16)
#define SUMS_OF_128(to) SIXTY_SUMS(to, 0)
#define SUMS_OF_136(to) SIXTY_SUMS(to, 0), FOUR_SUMS(to, 64)
#define SUMS_OF_144(to) SIXTY_SUMS(to, 0), FOUR_SUMS(to, 64), FOUR_SUMS(to, 68)
#define SUMS_OF_192(to) SIXTY_SUMS(to, 0), SIXTEEN_SUMS(to, 64), SIXTEEN_SUMS(to, 80)
#define SUMS_OF_256(to) SIXTY_SUMS(to, 0), SIXTY_SUMS(to, 64)
#define GROUP_MULTIPLY(lines, names, x_name, y_name, tx_name, ty_name)                                                 \
    if constexpr (is_integer<T>)                                                                                       \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #lines "k32.s32.s8.s8 {" names "}, %" #x_name ", %" #y_name   \
                     ", 1;"                                                                                            \
                     : SUMS_OF_##lines("+r")                                                                           \
                     : "l"(x), "l"(y));                                                                                \
    else if constexpr (is_float8<T>)                                                                                   \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #lines "k32.f32.e4m3.e4m3 {" names "}, %" #x_name             \
                     ", %" #y_name ", %" #tx_name ", 1, 1;"                                                            \
                     : SUMS_OF_##lines("+f")                                                                           \
                     : "l"(x), "l"(y), "n"(ADDS));                                                                     \
    else if constexpr (sizeof(T) == 2)                                                                                 \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #lines "k16.f32." NARROW_NAME "." NARROW_NAME " {" names      \
                     "}, %" #x_name ", %" #y_name ", 1, 1, 1, %" #tx_name ", %" #ty_name ";"                           \
                     : SUMS_OF_##lines("+f")                                                                           \
                     : "l"(x), "l"(y), "n"(!X_ALONG_K), "n"(!Y_ALONG_K));                                              \
    else                                                                                                               \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #lines "k8.f32.tf32.tf32 {" names "}, %" #x_name              \
                     ", %" #y_name ", 1, 1, 1;"                                                                        \
                     : SUMS_OF_##lines("+f")                                                                           \
                     : "l"(x), "l"(y))

/* sum += 64 lines of x by LINES of y; of float8 without ADDS, sum becomes the product. */
template <class T, int LINES, bool X_ALONG_K, bool Y_ALONG_K, bool ADDS = true>
__device__ void multiply_group(uint64_t x, uint64_t y, SumOf<T> (&sum)[LINES / 2]) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    if constexpr (LINES == 64) {
        GROUP_MULTIPLY(64, TEN_NAMES() TEN_NAMES(1) TEN_NAMES(2) "%30, %31", 32, 33, 34, 35);
    } else if constexpr (LINES == 128) {
        GROUP_MULTIPLY(
            128, TEN_NAMES() TEN_NAMES(1) TEN_NAMES(2) TEN_NAMES(3) TEN_NAMES(4) TEN_NAMES(5) "%60, %61, %62, %63", 64,
            65, 66, 67);
    } else if constexpr (LINES == 136) {
        GROUP_MULTIPLY(136,
                       TEN_NAMES() TEN_NAMES(1) TEN_NAMES(2) TEN_NAMES(3) TEN_NAMES(4)
                           TEN_NAMES(5) "%60, %61, %62, %63, %64, %65, %66, %67",
                       68, 69, 70, 71);
    } else if constexpr (LINES == 144) {
        GROUP_MULTIPLY(
            144, TEN_NAMES() TEN_NAMES(1) TEN_NAMES(2) TEN_NAMES(3) TEN_NAMES(4) TEN_NAMES(5) TEN_NAMES(6) "%70, %71",
            72, 73, 74, 75);
    } else if constexpr (LINES == 192) {
        GROUP_MULTIPLY(192,
                       TEN_NAMES() TEN_NAMES(1) TEN_NAMES(2) TEN_NAMES(3) TEN_NAMES(4) TEN_NAMES(5) TEN_NAMES(6)
                           TEN_NAMES(7) TEN_NAMES(8) "%90, %91, %92, %93, %94, %95",
                       96, 97, 98, 99);
    } else if constexpr (LINES == 256) {
        GROUP_MULTIPLY(256,
                       TEN_NAMES() TEN_NAMES(1) TEN_NAMES(2) TEN_NAMES(3) TEN_NAMES(4) TEN_NAMES(5) TEN_NAMES(6)
                           TEN_NAMES(7) TEN_NAMES(8) TEN_NAMES(9) TEN_NAMES(10)
                               TEN_NAMES(11) "%120, %121, %122, %123, %124, %125, %126, %127",
                       128, 129, 130, 131);
    } else
        static_assert(LINES == 64, "no instruction for so many lines");
#endif
}

#define TERMS_MULTIPLY(lines, names, x0_name, x1_name, x2_name, x3_name, y_name, adds_name, ...)                       \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #lines "k8.f32.tf32.tf32 {" names "}, {%" #x0_name ", %" #x1_name \
                 ", %" #x2_name ", %" #x3_name "}, %" #y_name ", %" #adds_name ", 1, 1;"                               \
                 : __VA_ARGS__                                                                                         \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(y), "n"(ADDS))

/* The same of tf32 with x in registers, a fragment for each warp; without ADDS, sum becomes the product. */
template <int LINES, bool ADDS>
__device__ void multiply_group(const unsigned (&x)[4], uint64_t y, float (&sum)[LINES / 2]) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    static_assert(LINES == 64 || LINES == 128, "no instruction for so many lines");
    if constexpr (LINES == 64)
        TERMS_MULTIPLY(64, TEN_NAMES() TEN_NAMES(1) TEN_NAMES(2) "%30, %31", 32, 33, 34, 35, 36, 37, SUMS_OF_64("+f"));
    else
        TERMS_MULTIPLY(
            128, TEN_NAMES() TEN_NAMES(1) TEN_NAMES(2) TEN_NAMES(3) TEN_NAMES(4) TEN_NAMES(5) "%60, %61, %62, %63", 64,
            65, 66, 67, 68, 69, SUMS_OF_128("+f"));
#endif
}

#undef TERMS_MULTIPLY
#undef TEN_NAMES
#undef FOUR_SUMS
#undef SIXTEEN_SUMS
#undef SIXTY_SUMS
#undef SUMS_OF_64
#undef SUMS_OF_128
#undef SUMS_OF_136
#undef SUMS_OF_144
#undef SUMS_OF_192
#undef SUMS_OF_256
#undef GROUP_MULTIPLY

/* What threads have written to shared memory becomes visible to the tensor cores, after a barrier. */
static inline __device__ void show_to_tensor_cores() {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

static inline __device__ int warp_group() {
    return __shfl_sync(~0u, threadIdx.x / GROUP_THREADS, 0); // known to be the same for all lanes
}

/* The calling group's sums, of lines from x and y on, in shared memory: a thread has two neighbours of y at two x, eight apart, again every
 * eight of y. */
template <int TO_NEXT_X, int TO_NEXT_Y, int COUNT, class Sum, class Visit>
__device__ void visit_group_sums(float *sums, int x, int y, const Sum (&sum)[COUNT], Visit visit) {
    int lane = threadIdx.x % LANES, warp = threadIdx.x % GROUP_THREADS / LANES;
    float *first = sums + (x + warp * 16 + lane / 4) * TO_NEXT_X + (y + lane % 4 * 2) * TO_NEXT_Y;
#pragma unroll
    for (int e = 0; e < COUNT; e++)
        visit(first + e / 2 % 2 * 8 * TO_NEXT_X + (e / 4 * 8 + e % 2) * TO_NEXT_Y, sum[e]);
}

/* The calling group's sums of a tile. */
template <class Tile, bool A_ALONG_K, bool B_ALONG_K> class GroupSums {
    using T = typename Tile::Element;
    static constexpr bool swapped = Tile::m > Tile::n;
    static constexpr bool x_along_k = swapped ? B_ALONG_K : A_ALONG_K, y_along_k = swapped ? A_ALONG_K : B_ALONG_K;
    static constexpr int x_lines = swapped ? Tile::n : Tile::m, y_lines = swapped ? Tile::m : Tile::n;
    static constexpr bool share_x = x_lines == GROUPS * GROUP_LINES;
    static constexpr int unit = y_along_k ? 8 : GROUP_LINES; // of lines, that a group's share may begin at
    static constexpr bool share_y = !share_x && y_lines >= GROUPS * GROUP_LINES && y_lines % (GROUPS * unit) == 0;
    static constexpr bool share_k = !share_x && !share_y;
    static constexpr int lines = share_y ? y_lines / GROUPS : y_lines; // of y, of a group
    static constexpr int steps = PANEL_ROW / GROUP_STEP / (share_k ? GROUPS : 1);
    static_assert(share_x || x_lines == GROUP_LINES, "groups must cover the tile");

    static_assert(sizeof(T) > 1 || (A_ALONG_K && B_ALONG_K), "no instruction turns bytes round");

    static constexpr bool apart = is_float8<T>; // tensor cores keep 14 bits of a sum: those of a panel join the others
    SumOf<T> sum[lines / 2] = {}, of_panel[apart ? lines / 2 : 1];

    static __device__ constexpr int step_bytes(bool along_k) {
        return along_k ? GROUP_STEP : GROUP_STEP / (int)sizeof(T) * PANEL_ROW;
    }

    template <bool ADDS> __device__ void add_step(uint64_t first_x, uint64_t first_y, int step) {
        const uint64_t x = first_x + step * step_bytes(x_along_k) / 16, y = first_y + step * step_bytes(y_along_k) / 16;
        if constexpr (apart)
            multiply_group<T, lines, x_along_k, y_along_k, ADDS>(x, y, of_panel);
        else
            multiply_group<T, lines, x_along_k, y_along_k>(x, y, sum);
    }

    template <class Visit> __device__ void visit(float *sums, Visit visit) const {
        int x = share_x ? warp_group() * GROUP_LINES : 0, y = share_y ? warp_group() * lines : 0;
        visit_group_sums<swapped ? 1 : Tile::pitch, swapped ? Tile::pitch : 1>(sums, x, y, sum, visit);
    }

public:
    /* Panels that are still read when `multiply` returns. With few stages two blocks share a multiprocessor: one multiplies
     * while the other waits, and a panel more on its way is worth more. */
    static constexpr int behind = Tile::stages > 3 && !apart ? 1 : 0;

    __device__ void multiply(unsigned a, unsigned b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        unsigned x = (swapped ? b : a) + (share_x ? warp_group() * GROUP_LINES * PANEL_ROW : 0);
        unsigned y = (swapped ? a : b) + (share_y ? warp_group() * lines * PANEL_ROW : 0);
        int first = share_k ? warp_group() * steps : 0;
        uint64_t first_x = panel_descriptor(x + first * step_bytes(x_along_k), x_along_k);
        uint64_t first_y = panel_descriptor(y + first * step_bytes(y_along_k), y_along_k);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int step = 0; step < steps; step++)
            if (apart && step == 0)
                add_step<false>(first_x, first_y, step);
            else
                add_step<true>(first_x, first_y, step);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(behind) : "memory");
        if constexpr (apart)
#pragma unroll
            for (int e = 0; e < lines / 2; e++)
                sum[e] += of_panel[e];
#endif
    }
    __device__ void finish() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
    }
    /* Lays the sums out as [m][pitch], floats. */
    __device__ void lay(float *sums) const {
        if constexpr (share_k) {
            if (warp_group() == 0)
                visit(sums, [](float *to, SumOf<T> value) { *(SumOf<T> *)to = value; });
            __syncthreads();
            if (warp_group() == 1)
                visit(sums, [](float *to, SumOf<T> value) { *to = (float)(*(SumOf<T> *)to + value); });
        } else {
            visit(sums, [](float *to, SumOf<T> value) { *to = (float)value; });
        }
    }
};

#endif
