/* Products of floats as two terms of tf32 each, by groups of four warps (sm_90a), where both operands lie along k:
 *
 *     x y = (x1 + x2) (y1 + y2) = x1 y1 + x1 y2 + x2 y1,    x2 y2 is below 2^-22 of it
 *
 * A group has the terms of its 64 lines of a in registers, where it makes them of a panel as it was copied. Of b the
 * tensor cores read both from shared memory: the first lie where the numbers were, the second ones in three panels of their
 * own, of which two are multiplied while the next is written.
 *
 * Tensor cores cut off what they add up, which over a long sum would be more than all else: sums of a panel are made apart, and rounded when
 * they join the others. */
#ifndef MTC_CUDA_TENSOR_TERMS_CUH
#define MTC_CUDA_TENSOR_TERMS_CUH

#include "cuda/tensor_group.cuh"
#include "cuda/tensor_warp.cuh"

/* The calling warp's 16 lines of a, as two terms. */
struct TermFragments {
    unsigned first[STEPS][4], second[STEPS][4];

    __device__ void load(unsigned panel, int line) {
#pragma unroll
        for (int step = 0; step < STEPS; step++)
            load_lines<float, true, true>(panel, line, step, first[step]);
#pragma unroll
        for (int step = 0; step < STEPS; step++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                split_terms(first[step][e], second[step][e]);
                asm volatile("" : "+r"(first[step][e]), "+r"(second[step][e])); // here, not between multiplications
            }
    }
};

/* Where panels lie in shared memory, each of a and then of b, and how they come there: `ahead` of them are on their way. Behind them are three
 * panels of second terms of b. */
template <class Tile, class PanelA, class PanelB, class Walk> struct TermPanels {
    static constexpr int buffer = PanelA::bytes + PanelB::bytes, seconds = Tile::stages * buffer;
    static constexpr int ahead = Tile::stages - 1;
    static_assert(ahead > 1, "a panel is split while another is multiplied");
    PanelA &a;
    PanelB &b;
    const Walk &walk;
    char *shared;
    unsigned base;

    static __device__ int place(int panel) {
        return panel % Tile::stages * buffer;
    }
    static __device__ int second_place(int panel) {
        return seconds + panel % 3 * PanelB::bytes;
    }
    __device__ const char *at(int panel) const {
        return shared + place(panel);
    }
    __device__ const char *b_at(int panel) const {
        return at(panel) + PanelA::bytes;
    }
    __device__ const char *second_at(int panel) const {
        return shared + second_place(panel);
    }
    __device__ void fetch(int panel) {
        if (panel < walk.panels) {
            a.fetch(walk.step(panel), place(panel));
            b.fetch(walk.step(panel), place(panel));
        }
        end_copies();
    }
    __device__ void lay(int panel) const {
        if (panel < walk.panels) {
            a.lay(shared + place(panel));
            b.lay(shared + place(panel) + PanelA::bytes);
        }
    }
    /* What this thread has brought, when all but PENDING are there. Behind the last panel, for nothing. */
    template <int PENDING> __device__ void split(int panel) const {
        await_copies<PENDING>();
        b.split(shared + place(panel) + PanelA::bytes, shared + second_place(panel));
        show_to_tensor_cores();
    }
    /* Until the first is split; the last that was fetched is not laid. */
    __device__ void begin() {
        for (int panel = 0; panel < ahead; panel++) {
            fetch(panel);
            if (panel < ahead - 1)
                lay(panel);
        }
        split<ahead - 1>(0);
        __syncthreads();
    }
};

/* The calling group's sums of a tile: groups share a, or where that has only 64 lines, b. */
template <class Tile> class TermSums {
    static constexpr bool share_a = Tile::m == GROUPS * GROUP_LINES;
    static constexpr int lines = share_a ? Tile::n : Tile::n / GROUPS; // of b
    static_assert(share_a || Tile::m == GROUP_LINES, "groups must cover the tile");

    static constexpr bool is_large = lines > 64; // one block fills a multiprocessor

    float sum[lines / 2] = {}, of_panel[lines / 2];

    static __device__ int line() {
        return share_a ? 0 : warp_group() * lines;
    }

    /* Of its lines of a, the calling warp's first. */
    static __device__ int warp_line() {
        return (share_a ? threadIdx.x / LANES : threadIdx.x % GROUP_THREADS / LANES) * 16;
    }
    /* Begins to multiply; what is small comes first, of which less is cut off. */
    __device__ void begin(const TermFragments &a, unsigned b, unsigned second_b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        uint64_t y = panel_descriptor(b + line() * PANEL_ROW, true);
        uint64_t second_y = panel_descriptor(second_b + line() * PANEL_ROW, true);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply_group<lines, false>(a.second[0], y, of_panel);
#pragma unroll
        for (int step = 1; step < STEPS; step++)
            multiply_group<lines, true>(a.second[step], y + step * GROUP_STEP / 16, of_panel);
#pragma unroll
        for (int step = 0; step < STEPS; step++)
            multiply_group<lines, true>(a.first[step], second_y + step * GROUP_STEP / 16, of_panel);
#pragma unroll
        for (int step = 0; step < STEPS; step++)
            multiply_group<lines, true>(a.first[step], y + step * GROUP_STEP / 16, of_panel);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
    }
    __device__ void end() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
#pragma unroll
        for (int e = 0; e < lines / 2; e++)
            sum[e] += of_panel[e];
    }
    /* While a panel is multiplied, the next is split, and another is on its way to where the one before was. */
    template <class Panels, class Visit>
    __device__ void turn(Panels &panels, int panel, const TermFragments &now, TermFragments &next, Visit visit) {
        begin(now, panels.base + panels.place(panel) + Tile::m * PANEL_ROW, panels.base + panels.second_place(panel));
        panels.lay(panel - 1 + Panels::ahead);
        visit(panel);
        panels.template split<Panels::ahead - 2>(panel + 1);
        __syncthreads();
        panels.fetch(panel + Panels::ahead); // over a panel that was multiplied before the barrier
        unsigned next_a = panels.base + panels.place(panel + 1);
        if constexpr (is_large) {
            next.load(next_a, warp_line());
            end();
        } else { // another block multiplies meanwhile
            end();
            next.load(next_a, warp_line());
        }
    }

public:
    /* The sums over all panels, which `visit` sees one by one. */
    template <class Panels, class Visit> __device__ void multiply(Panels &panels, Visit visit) {
        TermFragments even, odd;
        even.load(panels.base, warp_line());
        int panel = 0;
#pragma unroll 1
        do { // at least once, as in tensor.cuh
            turn(panels, panel, even, is_large ? odd : even, visit);
            if (is_large && ++panel < panels.walk.panels)
                turn(panels, panel, odd, even, visit);
        } while (++panel < panels.walk.panels);
    }
    /* Lays the sums out as [m][pitch]. */
    __device__ void lay(float *sums) const {
        visit_group_sums<Tile::pitch, 1>(sums, share_a ? warp_group() * GROUP_LINES : 0, line(), sum,
                                         [](float *to, float value) { *to = value; });
    }
};

#endif
