/* Products whose panels pass through registers: a panel is fetched while the one before is multiplied, made floats where
 * it is not, and laid into shared memory. Two pairs of buffers, one barrier a panel. A panel that spans all of K has no
 * loop: every load is issued up front. */
#ifndef MTC_CUDA_STAGED_CUH
#define MTC_CUDA_STAGED_CUH

#include "cuda/operand.cuh"
#include "cuda/outputs.cuh"

/* A panel: WIDTH lines of an operand by DEPTH steps of k, on its way from memory to shared memory, where it lies as
 * [k][line]. An operand that lies along k is transposed on the way: its lanes then store to different k, and the lines
 * of each group of k are rotated (exclusive or) so that the stores meet different banks. */
template <class Lines, int COUNT, int K, int WIDTH, int DEPTH> struct Panel {
    static constexpr bool four =
        Lines::aligned && (Lines::along_k ? K % 4 == 0 && DEPTH % 4 == 0 : COUNT % 4 == 0 && WIDTH % 4 == 0);
    static constexpr bool by_k = Lines::along_k && (four || Lines::runs_along_k); // so do neighbouring threads go
    static constexpr int width = four ? 4 : 1, vectors = WIDTH * DEPTH / width, loads = divide_up(vectors, THREADS);
    static constexpr int pitch = WIDTH, groups = DEPTH / width < 8 ? floor_power(DEPTH / width) : 8;
    static constexpr bool rotated = by_k && WIDTH % LANES == 0;
    using Raw = std::conditional_t<four, typename Lines::Four, typename Lines::One>;
    Raw raw[loads];

    static __device__ int place(int line, int k) {
        return k * pitch + (line ^ rotation(k));
    }
    static __device__ int rotation(int k) {
        return rotated ? k / width % groups * (LANES / groups) : 0;
    }
    static __device__ int line_of(int e) {
        return by_k ? e / (DEPTH / width) : e % (WIDTH / width) * width;
    }
    static __device__ int k_of(int e) {
        return by_k ? e % (DEPTH / width) * width : e / (WIDTH / width);
    }
    static __device__ bool inside(int e, int line0, int k0) {
        return (vectors % THREADS == 0 || e < vectors) && (COUNT % WIDTH == 0 || line0 + line_of(e) < COUNT) &&
               (K % DEPTH == 0 || k0 + k_of(e) < K);
    }

    /* Of one line are all that a thread fetches, or each of its own. */
    static constexpr bool one_line = !by_k && THREADS % (WIDTH / width) == 0;
    static_assert(loads <= 32, "a bit of `valid` for each");
    typename Lines::Line line[one_line ? 1 : loads];
    unsigned valid; // bit q: raw[q] is an element, not beyond the edge of something

    __device__ Panel(const Lines &lines, int line0) {
#pragma unroll
        for (int q = 0; q < (one_line ? 1 : loads); q++)
            line[q] = lines.line(line0 + line_of(threadIdx.x + q * THREADS));
    }
    __device__ void fetch(const Lines &lines, int line0, int k0) {
        const typename Lines::One *from[loads];
        valid = 0;
#pragma unroll
        for (int q = 0, e = threadIdx.x; q < loads; q++, e += THREADS)
            if (inside(e, line0, k0)) {
                typename Lines::Step step = lines.step(k0 + k_of(e));
                from[q] = lines.at(line[one_line ? 0 : q], step);
                valid |= lines.inside(line[one_line ? 0 : q], step) ? 1u << q : 0;
            }
#pragma unroll
        for (int q = 0; q < loads; q++)
            if (valid >> q & 1)
                raw[q] = *(const Raw *)from[q];
    }
    __device__ void lay(const Lines &lines, float *shared) const {
#pragma unroll
        for (int q = 0; q < loads; q++) {
            int e = threadIdx.x + q * THREADS, line = line_of(e), k = k_of(e);
            if (vectors % THREADS != 0 && e >= vectors)
                continue;
            if constexpr (!four)
                shared[k * WIDTH + (line ^ rotation(k))] = valid >> q & 1 ? lines.value(raw[q]) : 0;
            else {
                float4 v = valid >> q & 1 ? lines.value(raw[q]) : make_float4(0, 0, 0, 0);
                if constexpr (!Lines::along_k)
                    *(float4 *)(shared + k * WIDTH + line) = v;
                else {
                    float *column = shared + k * WIDTH + (line ^ rotation(k));
                    column[0] = v.x;
                    column[WIDTH] = v.y;
                    column[2 * WIDTH] = v.z;
                    column[3 * WIDTH] = v.w;
                }
            }
        }
    }
};

template <class Product, class Tile, class A, class B, class Out, class Side, class Gate>
__device__ void matmul_staged(int i0, int j0, const A &a, const B &b, float *shared, Gate &gate, const Out &out,
                              const Side &side) {
    constexpr int chunks = divide_up(Product::K, Tile::k), buffer = (Tile::m + Tile::n) * Tile::k;
    static_assert(Tile::k % Tile::slices == 0, "slices must share a panel");
    using PanelA = Panel<A, Product::M, Product::K, Tile::m, Tile::k>;
    using PanelB = Panel<B, Product::N, Product::K, Tile::n, Tile::k>;
    Place<Tile> place;
    Results<Product, Tile, Out, Side> results(out, side, i0, j0);
    PanelA panel_a(a, i0);
    PanelB panel_b(b, j0);
    float sum[Tile::tm][Tile::tn] = {};

    results.template read_ahead<true>();
    if constexpr (A::data_set)
        panel_a.fetch(a, i0, 0);
    if constexpr (B::data_set)
        panel_b.fetch(b, j0, 0);
    gate();
    if constexpr (!A::data_set)
        panel_a.fetch(a, i0, 0);
    if constexpr (!B::data_set)
        panel_b.fetch(b, j0, 0);
    results.template read_ahead<false>();
    for (int chunk = 0; chunk < chunks; chunk++) {
        float *laid_a = shared + chunk % 2 * buffer, *laid_b = laid_a + Tile::m * Tile::k;
        panel_a.lay(a, laid_a);
        panel_b.lay(b, laid_b);
        __syncthreads();
        if (chunk + 1 < chunks) {
            panel_a.fetch(a, i0, (chunk + 1) * Tile::k);
            panel_b.fetch(b, j0, (chunk + 1) * Tile::k);
        }
        multiply<Tile, PanelA, PanelB>(place, laid_a, laid_b, sum);
        results.template add_lines<PanelA, PanelB>(laid_a, laid_b);
    }
    results.write(place, sum, shared);
}

#endif
