/* Taps of numbers of 16 bits (tensor_taps.cuh). Both operands lie in shared memory as in memory, a position a row. Taps of a row of the
 * filter begin a position apart, so that one instruction, which is told how far 64 lines are from the next 64, multiplies all three. */
#ifndef MTC_CUDA_TENSOR_TAPS_NARROW_CUH
#define MTC_CUDA_TENSOR_TAPS_NARROW_CUH

#include "cuda/tensor_taps_positions.cuh"

template <class Positions, class Tile> class NarrowTaps {
    static constexpr int columns = TAP_SIDE * TAP_CHANNELS; // of a row of the filter
    static constexpr int step = GROUP_STEP / 2;             // positions of an instruction
    using Sums = float[columns / 2];

public:
    using Outputs = TapChannels<Narrow>;
    using Pixels = TapChannels<Narrow>;
    static constexpr int depth = 2 * Tile::k, bytes = taps_panel(depth, Positions::width);
    static constexpr int lines = taps_lines(depth, Positions::width);
    using Table = TapTable<Positions, depth, lines>;

private:
    static constexpr int room = tensor_shared<Tile>() - Table::bytes, bytes_a = depth * PANEL_ROW;
    static constexpr int stages = smaller(3, room / bytes), behind = stages - 2; // one is on its way

    const Outputs outputs;
    const Pixels pixels;
    const Table &table;
    const unsigned base;
    Sums own = {}, middle = {};

    static __device__ int own_row() {
        return 2 * warp_group();
    }
    __device__ unsigned place(int panel) const {
        return base + panel % stages * bytes;
    }
    /* Of b, where the next 64 lines are those of the next tap. */
    static __device__ uint64_t taps_descriptor(unsigned address) {
        constexpr uint64_t mask = (uint64_t)0x3fff << 16, next_tap = (uint64_t)(PANEL_ROW / 16) << 16;
        return (panel_descriptor(address, false) & ~mask) | next_tap;
    }
    template <int STEPS> static __device__ void multiply_row(unsigned a, unsigned b, Sums &sum) {
        const uint64_t first_a = panel_descriptor(a, false), first_b = taps_descriptor(b);
#pragma unroll
        for (int s = 0; s < STEPS; s++)
            multiply_group<Narrow, columns, false, false>(first_a + s * step * PANEL_ROW / 16,
                                                          first_b + s * step * PANEL_ROW / 16, sum);
    }

public:
    static __device__ Outputs outputs_of(const TapChannels<Narrow> &channels, const Table &) {
        return channels;
    }
    __device__ NarrowTaps(const Outputs &outputs, const Pixels &pixels, const Table &table, char *shared)
        : outputs(outputs), pixels(pixels), table(table), base(shared_address(shared)) {
    }
    /* Begins to bring panel `panel`, of COUNT. */
    template <int COUNT> __device__ void fetch(int panel) {
        const unsigned to = place(panel);
        auto row = [](unsigned rows, int line, int chunk) { return rows + chunk_offset(line, chunk); };
        if (panel < COUNT) {
            const int *pixel = table.of(panel);
            fetch_positions<depth>(outputs, pixel + Positions::halo, [&](int l, int c) { return row(to, l, c); });
            fetch_positions<lines>(pixels, pixel, [&](int l, int c) { return row(to + bytes_a, l, c); });
        }
        end_copies();
    }
    /* Also returns while the panel is still read, if there is room for another. */
    __device__ void multiply(int panel) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        const unsigned a = place(panel), b = a + bytes_a, half = warp_group() * (depth / 2 * PANEL_ROW);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply_row<depth / step>(a, b + own_row() * Positions::across * PANEL_ROW, own);
        multiply_row<depth / step / 2>(a + half, b + half + Positions::across * PANEL_ROW, middle);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(behind) : "memory");
#endif
    }
    __device__ void finish() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
    }
    /* As [64 channels of the outputs][PITCH], taps by channels of the image. */
    template <int PITCH> __device__ void lay(float *sums) const {
        auto store = [](float *to, float sum) { *to = sum; };
        visit_group_sums<PITCH, 1>(sums, 0, own_row() * columns, own, store);
        if (warp_group() == 0)
            visit_group_sums<PITCH, 1>(sums, 0, columns, middle, store);
        __syncthreads();
        if (warp_group() == 1)
            visit_group_sums<PITCH, 1>(sums, 0, columns, middle, [](float *to, float sum) { *to += sum; });
    }
};

#endif
