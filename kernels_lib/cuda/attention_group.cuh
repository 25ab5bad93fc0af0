/* The products of attention_tensor.cuh by groups of four warps, wgmma (sm_90a): 64 own rows, from registers or from shared
 * memory, by LINES passing rows that the hardware reads from shared memory itself. The fragments are those of warps. */
#ifndef MTC_CUDA_ATTENTION_GROUP_CUH
#define MTC_CUDA_ATTENTION_GROUP_CUH

#include "cuda/attention_tensor.cuh"

#define FOUR_SUMS(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SIXTEEN_SUMS(i) FOUR_SUMS(i), FOUR_SUMS(i + 4), FOUR_SUMS(i + 8), FOUR_SUMS(i + 12)
#define TEN_NAMES(tens)                                                                                                \
    "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, %" #tens "7, %" #tens  \
    "8, %" #tens "9, "
#define SIXTEEN_NAMES TEN_NAMES() "%10, %11, %12, %13, %14, %15"
#define THIRTY_TWO_NAMES TEN_NAMES() TEN_NAMES(1) TEN_NAMES(2) "%30, %31"
#define SIXTY_FOUR_NAMES                                                                                               \
    TEN_NAMES() TEN_NAMES(1) TEN_NAMES(2) TEN_NAMES(3) TEN_NAMES(4) TEN_NAMES(5) "%60, %61, %62, %63"
/* a0 .. to_add, and x_name .. to_add: the numbers of the operands that follow the sums. */
#define HELD_MULTIPLY(lines, names, a0, a1, a2, a3, y_name, to_transpose, to_add, ...)                                 \
    asm volatile("{\n.reg .pred added;\nsetp.ne.b32 added, %" #to_add ", 0;\n"                                         \
                 "wgmma.mma_async.sync.aligned.m64n" #lines "k16.f32." NARROW_NAME "." NARROW_NAME " {" names          \
                 "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #y_name ", added, 1, 1, %" #to_transpose ";\n}"      \
                 : __VA_ARGS__                                                                                         \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(y), "n"(!Y_ALONG_K), "r"((int)added))
#define SHARED_MULTIPLY(lines, names, x_name, y_name, to_transpose, to_add, ...)                                       \
    asm volatile("{\n.reg .pred added;\nsetp.ne.b32 added, %" #to_add ", 0;\n"                                         \
                 "wgmma.mma_async.sync.aligned.m64n" #lines "k16.f32." NARROW_NAME "." NARROW_NAME " {" names          \
                 "}, %" #x_name ", %" #y_name ", added, 1, 1, 0, %" #to_transpose ";\n}"                               \
                 : __VA_ARGS__                                                                                         \
                 : "l"(x), "l"(y), "n"(!Y_ALONG_K), "r"((int)added))

/* sum = or, if `added`, += 64 rows of x, a step of k in fragments or in shared memory, by LINES of y. */
template <int LINES, bool Y_ALONG_K>
__device__ void multiply_step(const unsigned (&x)[4], uint64_t y, float (&sum)[LINES / 2], bool added) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    if constexpr (LINES == 32)
        HELD_MULTIPLY(32, SIXTEEN_NAMES, 16, 17, 18, 19, 20, 21, 22, SIXTEEN_SUMS(0));
    else if constexpr (LINES == 64)
        HELD_MULTIPLY(64, THIRTY_TWO_NAMES, 32, 33, 34, 35, 36, 37, 38, SIXTEEN_SUMS(0), SIXTEEN_SUMS(16));
    else {
        static_assert(LINES == 128, "no instruction for so many lines");
        HELD_MULTIPLY(128, SIXTY_FOUR_NAMES, 64, 65, 66, 67, 68, 69, 70, SIXTEEN_SUMS(0), SIXTEEN_SUMS(16),
                      SIXTEEN_SUMS(32), SIXTEEN_SUMS(48));
    }
#endif
}
template <int LINES, bool Y_ALONG_K>
__device__ void multiply_step(uint64_t x, uint64_t y, float (&sum)[LINES / 2], bool added) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    if constexpr (LINES == 32)
        SHARED_MULTIPLY(32, SIXTEEN_NAMES, 16, 17, 18, 19, SIXTEEN_SUMS(0));
    else if constexpr (LINES == 64)
        SHARED_MULTIPLY(64, THIRTY_TWO_NAMES, 32, 33, 34, 35, SIXTEEN_SUMS(0), SIXTEEN_SUMS(16));
    else {
        static_assert(LINES == 128, "no instruction for so many lines");
        SHARED_MULTIPLY(128, SIXTY_FOUR_NAMES, 64, 65, 66, 67, SIXTEEN_SUMS(0), SIXTEEN_SUMS(16), SIXTEEN_SUMS(32),
                        SIXTEEN_SUMS(48));
    }
#endif
}

#undef FOUR_SUMS
#undef SIXTEEN_SUMS
#undef TEN_NAMES
#undef SIXTEEN_NAMES
#undef THIRTY_TWO_NAMES
#undef SIXTY_FOUR_NAMES
#undef HELD_MULTIPLY
#undef SHARED_MULTIPLY

/* Registers that the tensor cores read or write on their own: what comes after in the program comes after. */
template <int COUNT> __device__ void settle(float (&value)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        asm volatile("" : "+f"(value[i])::"memory");
}
template <int COUNT> __device__ void settle(unsigned (&value)[COUNT][4]) {
#pragma unroll
    for (int i = 0; i < COUNT * 4; i++)
        asm volatile("" : "+r"(value[i / 4][i % 4])::"memory");
}

struct GroupProducts {
    static constexpr int rows = GROUP_LINES;
    /* Nothing: both operands come from shared memory. Fragments of operand a that live on from one turn of a loop to the next
     * would be faster, but ptxas of CUDA 13.0 gives their registers away in between. */
    template <int SIZE> static constexpr bool holds = false;
    template <class Shape> static constexpr int lines = Shape::size > 64 && Shape::length > 64 ? 128 : 64;
    template <class Shape> static constexpr int grad_lines = 64;
    template <int STAGES> using Ring = GroupRing<STAGES>;
    static __device__ int first_row() {
        return __shfl_sync(~0u, threadIdx.x / GROUP_THREADS, 0) * GROUP_LINES; // known to be the same for all lanes
    }
    static __device__ void begin() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
    }
    static __device__ void end() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
    }
    template <int LINES, int SIZE>
    static __device__ void dot_rows(const OwnRows<SIZE, false> &own, unsigned block, float (&sum)[LINES / 2]) {
        const uint64_t x = panel_descriptor(own.address(first_row()), true), y = panel_descriptor(block, true);
        begin();
#pragma unroll
        for (int step = 0; step < own.steps; step++) {
            int panel = step / STEPS, inside = step % STEPS * GROUP_STEP;
            multiply_step<LINES, true>(further(x, panel * HeadBlock<OWN_ROWS, SIZE>::panel + inside),
                                       further(y, panel * HeadBlock<LINES, SIZE>::panel + inside), sum, step > 0);
        }
        end();
    }
    template <int SIZE, int STEPS_, int WIDTH>
    static __device__ void mix_rows(unsigned (&weight)[STEPS_][4], unsigned block, float (&sum)[WIDTH]) {
        const uint64_t y = mixed_descriptor<STEPS_ * 16>(block);
        settle(weight);
        settle(sum);
        begin();
#pragma unroll
        for (int step = 0; step < STEPS_; step++)
            multiply_step<2 * WIDTH, false>(weight[step], further(y, step * 16 * PANEL_ROW), sum, true);
        end();
    }
    template <int PENDING, class... Settled> static __device__ void await(Settled &...settled) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
        (settle(settled), ...);
#endif
    }

private:
    /* The same `bytes` further. The address is in the lower half, and never carries: one addition for an instruction that
     * takes 32 cycles, where the chain of a new descriptor would take longer than that. */
    static __device__ uint64_t further(uint64_t descriptor, int bytes) {
        return descriptor & ~0xffffffffull | (unsigned)descriptor + bytes / 16;
    }
    /* Of ROWS rows that are steps of k: the next 64 columns lie in the next panel. */
    template <int ROWS> static __device__ uint64_t mixed_descriptor(unsigned address) {
        constexpr uint64_t as_of_64 = (uint64_t)(64 * PANEL_ROW / 16) << 16, columns = (uint64_t)(ROWS * PANEL_ROW / 16)
                                                                                       << 16;
        return panel_descriptor(address, false) - as_of_64 + columns;
    }
};

#endif
