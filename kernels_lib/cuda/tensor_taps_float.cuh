/* Taps of floats, as tf32 (tensor_taps.cuh). Groups of warps read floats along k alone, but those of their first operand may be in
 * registers: so the pixels lie in shared memory as in memory, a position a row, where threads find the fragments of each tap, and the
 * gradient of the outputs is turned on its way (tensor_turned.cuh). */
#ifndef MTC_CUDA_TENSOR_TAPS_FLOAT_CUH
#define MTC_CUDA_TENSOR_TAPS_FLOAT_CUH

#include "cuda/tensor_taps_positions.cuh"
#include "cuda/tensor_turned.cuh"
#include "cuda/tensor_warp.cuh"

/* The gradient of the outputs as lines of a TurnedPanel: a channel a line, a position a step of k. */
template <class Table, class T> struct TapOutputs {
    using Line = int;
    using Step = int; // a pixel
    static constexpr bool along_k = false, is_float = true, is_rounded = std::is_same_v<T, tf32>;
    static constexpr int neighbours = 4;
    TapChannels<T> channels;
    const Table &table;

    __device__ Line line(int i) const {
        return i;
    }
    __device__ Step step(int k) const {
        return table.at(k);
    }
    __device__ bool inside(Line, Step pixel) const {
        return pixel >= 0;
    }
    __device__ const T *at(Line channel, Step pixel) const {
        return channels.numbers + (int64_t)pixel * channels.pitch + channel;
    }
};

/* One: of the gradient's numbers. */
template <class Positions, class Tile, class One> class FloatTaps {
public:
    static constexpr int depth = 2 * Tile::k, bytes = taps_float_panel(depth, Positions::width);
    static constexpr int lines = depth + 2 * Positions::halo;
    using Table = TapTable<Positions, depth, lines>;
    using Outputs = TapOutputs<Table, One>;
    using Pixels = TapChannels<typename Positions::One>;

private:
    using Turned = TurnedPanel<Outputs, TAP_CHANNELS, Tile::k, TAP_CHANNELS, 1>;

    static constexpr int pitch = TAP_FLOAT_PITCH;
    static constexpr int step = GROUP_STEP / (int)sizeof(float), steps = depth / step; // positions of an instruction
    static constexpr int own_taps = TAPS / GROUPS, middle = own_taps;                  // and one that groups share

    const Pixels pixels;
    const Table &table;
    char *const shared;
    Turned turned[2];
    float sum[own_taps + 1][TAP_CHANNELS / 2] = {};

    using Fragments = unsigned[own_taps + 1][4];

    /* Panels of a come first, which hardware reads from multiples of 1024. */
    static __device__ int place_a(int panel) {
        return panel % TAP_STAGES * 2 * Turned::bytes;
    }
    static __device__ int place_b(int panel) {
        return TAP_STAGES * 2 * Turned::bytes + panel % TAP_STAGES * lines * pitch;
    }
    /* The groups' taps from either end. */
    static __device__ int own_tap(int t) {
        return warp_group() == 0 ? t : TAPS - 1 - t;
    }
    /* 16 channels of the calling warp by the positions of a step, of which the calling thread's first is at `address`. */
    static __device__ void load(unsigned address, unsigned (&x)[4]) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
            x[e] = load_word(address + e % 2 * 8 * (int)sizeof(float) + e / 2 * step / 2 * pitch);
            if (!std::is_same_v<typename Positions::One, tf32>)
                x[e] = __float_as_uint(to_tf32(__uint_as_float(x[e])));
        }
    }
    static __device__ void load_step(const unsigned (&tap)[own_taps + 1], int s, Fragments &x) {
#pragma unroll
        for (int t = 0; t < own_taps; t++)
            load(tap[t] + s * step * pitch, x[t]);
        if (s % 2 == 0)
            load(tap[middle] + s / 2 * step * pitch, x[middle]);
    }

public:
    static __device__ Outputs outputs_of(const TapChannels<One> &channels, const Table &table) {
        return {channels, table};
    }
    /* `outputs` stays where it is. */
    __device__ FloatTaps(const Outputs &outputs, const Pixels &pixels, const Table &table, char *shared)
        : pixels(pixels), table(table),
          shared(shared), turned{{outputs, 0, 0, [](int i) { return i; }}, {outputs, 0, 0, [](int i) { return i; }}} {
    }
    /* Begins to bring panel `panel`, of COUNT; what passes through registers is laid, and the panel behind it is read. */
    template <int COUNT> __device__ void fetch(int panel) {
        const unsigned to = shared_address(shared) + place_b(panel);
        if (panel == 0)
            read<COUNT>(0);
        if (panel < COUNT)
            fetch_positions<lines>(pixels, table.of(panel),
                                   [=](int line, int chunk) { return to + line * pitch + chunk * CHUNK; });
        end_copies();
        if (panel < COUNT)
#pragma unroll
            for (int half = 0; half < 2; half++)
                turned[half].lay(shared + place_a(panel) + half * Turned::bytes);
        read<COUNT>(panel + 1);
    }
    template <int COUNT> __device__ void read(int panel) {
        if (panel < COUNT)
#pragma unroll
            for (int half = 0; half < 2; half++)
                turned[half].fetch(panel * depth + half * Tile::k, 0);
    }
    __device__ void multiply(int panel) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        const int lane = threadIdx.x % LANES, warp = threadIdx.x % GROUP_THREADS / LANES;
        const unsigned base = shared_address(shared);
        const unsigned first = base + place_b(panel) + lane % 4 * pitch + (warp * 16 + lane / 4) * (int)sizeof(float);
        const uint64_t y = panel_descriptor(base + place_a(panel), true);
        const uint64_t half_y = y + warp_group() * (Turned::bytes / 16);
        unsigned tap[own_taps + 1];
#pragma unroll
        for (int t = 0; t < own_taps; t++)
            tap[t] = first + Positions::shift(own_tap(t)) * pitch;
        tap[middle] = first + (Positions::shift(TAPS / 2) + warp_group() * Tile::k) * pitch;
        Fragments x[2];
        load_step(tap, 0, x[0]);
#pragma unroll
        for (int s = 0; s < steps; s++) {
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int t = 0; t < own_taps; t++)
                multiply_group<TAP_CHANNELS, true>(
                    x[s % 2][t], y + s / STEPS * (Turned::bytes / 16) + s % STEPS * GROUP_STEP / 16, sum[t]);
            if (s % 2 == 0)
                multiply_group<TAP_CHANNELS, true>(x[s % 2][middle], half_y + s / 2 * GROUP_STEP / 16, sum[middle]);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            if (s + 1 < steps) {
                asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); // who read the other fragments
                load_step(tap, s + 1, x[(s + 1) % 2]);
            }
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
    }
    __device__ void finish() {
    }
    /* As [64 channels of the outputs][PITCH], taps by channels of the image. */
    template <int PITCH> __device__ void lay(float *sums) const {
        auto store = [](float *to, float sum) { *to = sum; };
#pragma unroll
        for (int t = 0; t < own_taps; t++)
            visit_group_sums<1, PITCH>(sums, own_tap(t) * TAP_CHANNELS, 0, sum[t], store);
        if (warp_group() == 0)
            visit_group_sums<1, PITCH>(sums, middle * TAP_CHANNELS, 0, sum[middle], store);
        __syncthreads();
        if (warp_group() == 1)
            visit_group_sums<1, PITCH>(sums, middle * TAP_CHANNELS, 0, sum[middle],
                                       [](float *to, float sum) { *to += sum; });
    }
};

#endif
