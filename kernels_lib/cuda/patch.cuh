/* Sums of products with windows that sweep over images, channel by channel. A thread has a patch of neighbouring outputs, of V
 * channels: what their windows see is found once, and used by all of them.
 *
 *     a patch of 1 x 4, 3 x 3 taps       . . . . . .
 *                                        . o o o o .
 *                                        . . . . . .
 *
 *     sum_taps<Patch<H, W, Rows, Columns, DOWN, ACROSS>, V>(top, left, image, weight, out)      for each output, over the taps
 *     sum_terms<Patch<...>, V>(top, left, image, term, out)             the same of terms that are no products, 0 where the image is
 *     sum_outputs<Patch<...>, V, IMAGES, PACKS>(shared, image, factor, out)                     for each tap, over the outputs
 *
 * Rows and Columns are each an Axis of window.cuh, along which DOWN and ACROSS divide the outputs; the first output of a patch sees
 * its tap 0 at a whole pixel. image(line, column) is a pack of V numbers, called for pixels of the image alone; both_images(image, other)
 * sees two images in the same way. */
#ifndef MTC_CUDA_PATCH_CUH
#define MTC_CUDA_PATCH_CUH

#include "cuda/outputs.cuh"
#include "cuda/window.cuh"

/* The pixels along an axis that OUTPUTS neighbours see, counted from `first` on, which is where the first output of them begins in the
 * image, and a few pixels more or less. */
template <class Axis, int OUTPUTS> struct Seen {
    static constexpr int step = Axis::dilation < 0 ? -1 : 1; // from pixel to pixel in the order of taps

    /* Position of a tap, in the image spread out. */
    static constexpr int position(int output, int tap) {
        return output * Axis::stride + tap * Axis::dilation - Axis::pad;
    }
    static constexpr bool is_pixel(int position) {
        return position % Axis::spread == 0;
    }
    /* The least pixel, or the largest. */
    static constexpr int bound(bool largest) {
        int bound = 0;
        for (int k = 0, found = 0; k < OUTPUTS * Axis::kernel; k++) {
            int at = position(k / Axis::kernel, k % Axis::kernel), pixel = at / Axis::spread;
            if (is_pixel(at) && (!found++ || (largest ? pixel > bound : pixel < bound)))
                bound = pixel;
        }
        return bound;
    }
    static constexpr int least = bound(false), count = bound(true) - least + 1;

    static constexpr __host__ __device__ int pixel(int k) {
        return step > 0 ? least + k : least + count - 1 - k;
    }
    /* By which tap the output sees it; -1: by none. */
    static constexpr __host__ __device__ int tap(int output, int k) {
        int from = pixel(k) * Axis::spread + Axis::pad - output * Axis::stride, tap = from / Axis::dilation;
        return from % Axis::dilation == 0 && tap >= 0 && tap < Axis::kernel ? tap : -1;
    }
    static constexpr __host__ __device__ bool is_seen(int k) {
        for (int output = 0; output < OUTPUTS; output++)
            if (tap(output, k) >= 0)
                return true;
        return false;
    }
};

/* What two images have at a pixel. */
template <class A, class B> struct BothSeen {
    A a;
    B b;
};
template <class Image, class Other> struct TwoImages {
    Image image;
    Other other;

    __device__ auto operator()(int line, int column) const {
        return BothSeen<decltype(image(0, 0)), decltype(other(0, 0))>{image(line, column), other(line, column)};
    }
};
template <class Image, class Other> __device__ TwoImages<Image, Other> both_images(Image image, Other other) {
    return {image, other};
}

template <class T, int V> __device__ void zero_unless(bool inside, Pack<T, V> &pixel) {
#pragma unroll
    for (int v = 0; v < V; v++)
        pixel[v] = inside ? pixel[v] : (T)0;
}
template <class A, class B> __device__ void zero_unless(bool inside, BothSeen<A, B> &pixel) {
    zero_unless(inside, pixel.a);
    zero_unless(inside, pixel.b);
}

template <int H, int W, class Rows, class Columns, int DOWN, int ACROSS> struct Patch {
    static constexpr int rows = DOWN, columns = ACROSS, taps = Rows::kernel * Columns::kernel;
    static constexpr int down = Rows::out / DOWN, across = Columns::out / ACROSS, count = down * across;
    static_assert(Rows::out % DOWN == 0 && Columns::out % ACROSS == 0, "whole patches");
    static_assert(DOWN * Rows::stride % Rows::spread == 0 && ACROSS * Columns::stride % Columns::spread == 0,
                  "patches begin at pixels");

    /* use(row, column, tap, pixel) for each tap of each output of the patch at (top, left), in the order of taps. Outside of the image
     * are zeros, which rows without any pixel leave out. */
    template <class Image, class Use>
    static __device__ void visit(int top, int left, const Image &image, const Use &use) {
        using Down = Seen<Rows, DOWN>;
        using Across = Seen<Columns, ACROSS>;
        const int line0 = top * Rows::stride / Rows::spread, column0 = left * Columns::stride / Columns::spread;
#pragma unroll
        for (int k = 0; k < Down::count; k++) {
            const int line = line0 + Down::pixel(k);
            if (!Down::is_seen(k) || (unsigned)line >= (unsigned)H)
                continue;
            decltype(image(0, 0)) pixel[Across::count];
#pragma unroll
            for (int l = 0; l < Across::count; l++)
                if (Across::is_seen(l)) {
                    const int column = column0 + Across::pixel(l);
                    pixel[l] = image(line, min(max(column, 0), W - 1));
                    zero_unless((unsigned)column < (unsigned)W, pixel[l]);
                }
#pragma unroll
            for (int l = 0; l < Across::count; l++)
#pragma unroll
                for (int o = 0; o < DOWN * ACROSS; o++) {
                    const int row_tap = Down::tap(o / ACROSS, k), column_tap = Across::tap(o % ACROSS, l);
                    if (row_tap >= 0 && column_tap >= 0)
                        use(o / ACROSS, o % ACROSS, row_tap * Columns::kernel + column_tap, pixel[l]);
                }
        }
    }
};

template <int V> __device__ void add_product(Pack<float, V> &sum, const Pack<float, V> &a, const Pack<float, V> &b) {
#pragma unroll
    for (int v = 0; v < V; v++)
        sum[v] = fmaf(a[v], b[v], sum[v]);
}

/* out(line, column, sum over the taps of image * weight) for the outputs of a patch, as of matmul.cuh. What it reads ahead is read
 * before the image. */
template <class Patch, int V, class Image, class Weight, class Out>
__device__ void sum_taps(int top, int left, const Image &image, const Weight &weight, const Out &out) {
    constexpr int outputs = Patch::rows * Patch::columns;
    decltype(load_ahead(out, 0, 0)) ahead[outputs];
    Pack<float, V> sum[outputs] = {}, weights[Patch::taps];
#pragma unroll
    for (int o = 0; o < outputs; o++)
        ahead[o] = load_ahead(out, top + o / Patch::columns, left + o % Patch::columns);
#pragma unroll
    for (int tap = 0; tap < Patch::taps; tap++)
        weights[tap] = weight(tap);
    Patch::visit(top, left, image, [&](int row, int column, int tap, const Pack<float, V> &pixel) {
        add_product(sum[row * Patch::columns + column], pixel, weights[tap]);
    });
#pragma unroll
    for (int o = 0; o < outputs; o++)
        store_sum(out, ahead[o], top + o / Patch::columns, left + o % Patch::columns, sum[o]);
}

template <class Term, class T, int V>
__device__ void add_term(const Term &term, int tap, const Pack<T, V> &seen, Pack<float, V> &sum) {
    term(tap, seen, sum);
}
template <class Term, class A, class B, int V>
__device__ void add_term(const Term &term, int tap, const BothSeen<A, B> &seen, Pack<float, V> &sum) {
    term(tap, seen.a, seen.b, sum);
}

/* The same with term(tap, seen, sum), which adds to the sum what is seen through the tap; of two images, both. */
template <class Patch, int V, class Image, class Term, class Out>
__device__ void sum_terms(int top, int left, const Image &image, const Term &term, const Out &out) {
    constexpr int outputs = Patch::rows * Patch::columns;
    decltype(load_ahead(out, 0, 0)) ahead[outputs];
    Pack<float, V> sum[outputs] = {};
#pragma unroll
    for (int o = 0; o < outputs; o++)
        ahead[o] = load_ahead(out, top + o / Patch::columns, left + o % Patch::columns);
    Patch::visit(top, left, image, [&](int row, int column, int tap, const auto &pixel) {
        add_term(term, tap, pixel, sum[row * Patch::columns + column]);
    });
#pragma unroll
    for (int o = 0; o < outputs; o++)
        store_sum(out, ahead[o], top + o / Patch::columns, left + o % Patch::columns, sum[o]);
}

/* PACKS neighbouring threads have V channels each, and the patches of IMAGES images are dealt to the rows of threads:
 *
 *         V channels
 *     | thread 0 | thread 1 | ... | PACKS - 1 |     patches 0, WALKERS, 2 WALKERS ...
 *     | PACKS    | ...                        |     patches 1, ...
 */
template <int V, int PACKS> struct Walkers {
    static constexpr int count = THREADS / PACKS, channels = V * PACKS;
    static constexpr bool shuffles = LANES % PACKS == 0;   // warps have whole rows
    static constexpr int parts = shuffles ? WARPS : count; // that shared memory puts together
    static constexpr int shared_bytes = parts * channels * (int)sizeof(float);

    static __device__ int channel() {
        return threadIdx.x % PACKS * V;
    }
    static __device__ int first() {
        return threadIdx.x / PACKS;
    }
    /* out(c, total over all rows of threads of channel c), for each channel of the block. */
    template <class Out> static __device__ void fold(Pack<float, V> sum, char *shared, const Out &out) {
        float *partial = (float *)shared;
        if constexpr (shuffles)
#pragma unroll
            for (int distance = LANES / 2; distance >= PACKS; distance /= 2)
#pragma unroll
                for (int v = 0; v < V; v++)
                    sum[v] += __shfl_xor_sync(~0u, sum[v], distance);
        __syncthreads();
        const int part = shuffles ? threadIdx.x / LANES : first();
        if (shuffles ? threadIdx.x % LANES < PACKS : part < count)
            store_pack(partial + part * channels + channel(), sum);
        __syncthreads();
        if (threadIdx.x < channels)
            out(threadIdx.x, sum_strided<parts, channels>(partial + threadIdx.x));
    }
};

/* out(tap, c, sum over the outputs of IMAGES images of image(n, line, column) * factor(n, line, column)), where c counts the channels of
 * the block; by all threads of the block. */
template <class Patch, int V, int IMAGES, int PACKS, class Image, class Factor, class Out>
__device__ void sum_outputs(char *shared, const Image &image, const Factor &factor, const Out &out) {
    constexpr int outputs = Patch::rows * Patch::columns;
    using Team = Walkers<V, PACKS>;
    Pack<float, V> sum[Patch::taps] = {};
#pragma unroll 1
    for (int j = Team::first(); Team::first() < Team::count && j < IMAGES * Patch::count; j += Team::count) {
        const int n = j / Patch::count, top = j / Patch::across % Patch::down * Patch::rows;
        const int left = j % Patch::across * Patch::columns;
        Pack<float, V> factors[outputs];
#pragma unroll
        for (int o = 0; o < outputs; o++)
            factors[o] = factor(n, top + o / Patch::columns, left + o % Patch::columns);
        Patch::visit(
            top, left, [&](int line, int column) { return image(n, line, column); },
            [&](int row, int column, int tap, const Pack<float, V> &pixel) {
                add_product(sum[tap], pixel, factors[row * Patch::columns + column]);
            });
    }
#pragma unroll
    for (int tap = 0; tap < Patch::taps; tap++)
        Team::fold(sum[tap], shared, [&](int c, float total) { out(tap, c, total); });
}

#endif
