/* The operands of convolutions, which lie nowhere as matrices: they are read straight from images and filters.
 *
 *     window<H, W, C, Rows, Columns>(p)   p: f32, rounded(f32) or Narrow images [N, H, W, C]. As a matrix, row (n, oh, ow) is what output
 *                                         (oh, ow) of image n sees of it, column (kh, kw, c) the number at tap (kh, kw)
 *     window<H, W, C, Rows, Columns>(gathered<H * W * C>(p, batch, f))    of the images of a data set, as they are loaded
 *     filter<O, TAPS, C>(p)               p: [O, TAPS, C]. As a matrix, row (tap, o) and column c
 *
 * Rows and Columns say how the window moves down and across the image, each an
 *
 *     Axis<OUT, KERNEL, STRIDE, DILATION, PAD, SPREAD>
 *
 * where output o sees at tap k the position o * STRIDE + k * DILATION - PAD of the image with SPREAD - 1 zeros between
 * neighbours, and zeros around it:
 *
 *     stride 2, pad 1        . x x x x x .        spread 2        x . x . x . x
 *     3 taps                 |_____|                              |___|
 *                                |_____|                            |___|                                            */
#ifndef MTC_CUDA_WINDOW_CUH
#define MTC_CUDA_WINDOW_CUH

#include "cuda/operand.cuh"

template <int OUT, int KERNEL, int STRIDE, int DILATION, int PAD, int SPREAD> struct Axis {
    static constexpr int out = OUT, kernel = KERNEL, stride = STRIDE, dilation = DILATION, pad = PAD, spread = SPREAD;

    static __device__ int of_output(int output) {
        return output * STRIDE - PAD;
    }
    static __device__ int of_tap(int tap) {
        return tap * DILATION;
    }
    static __device__ bool inside(int position, int size) {
        if constexpr (SPREAD == 1)
            return (unsigned)position < (unsigned)size;
        else
            return (unsigned)position < (unsigned)(size * SPREAD) && position % SPREAD == 0;
    }
};

/* Source: of which a row is an image. */
template <class T, int H, int W, int C, class Rows, class Columns, class Source = Matrix<H * W * C, T>> struct Window {
    using One = T;
    using Four = typename FourOf<T>::Type;
    struct Row {
        const T *image; // where its tap (0, 0) lies, even outside; spread out, the image
        int h, w;       // position of that tap
    };
    struct Column {
        int h, w, offset; // from tap (0, 0); spread out, the offset is the channel
    };
    static constexpr bool data_set = Source::data_set, row_runs = false, linear = false;
    static constexpr int neighbours = neighbours_of(C);
    static constexpr bool spread = Rows::spread > 1 || Columns::spread > 1;
    const T *numbers; // [N, H, W, C]
    Source source;

    __device__ Row row(int i) const {
        int output = i % (Rows::out * Columns::out), n = i / (Rows::out * Columns::out);
        int h = Rows::of_output(output / Columns::out), w = Columns::of_output(output % Columns::out);
        return {source.row(n) + (spread ? 0 : (h * W + w) * C), h, w};
    }
    __device__ Column column(int j) const {
        int tap = j / C, c = j % C;
        int h = Rows::of_tap(tap / Columns::kernel), w = Columns::of_tap(tap % Columns::kernel);
        return {h, w, (spread ? 0 : (h * W + w) * C) + c};
    }
    __device__ bool inside(const Row &row, const Column &column) const {
        return Rows::inside(row.h + column.h, H) && Columns::inside(row.w + column.w, W);
    }
    __device__ const T *at(const Row &row, const Column &column) const {
        int offset = column.offset;
        if constexpr (spread)
            offset += ((row.h + column.h) / Rows::spread * W + (row.w + column.w) / Columns::spread) * C;
        return row.image + offset;
    }
    template <class Raw> __device__ auto value(Raw raw) const {
        return source.value(raw);
    }
};

template <class T, int O, int TAPS, int C> struct Filter {
    using One = T;
    using Four = typename FourOf<T>::Type;
    using Row = const T *;
    using Column = int;
    static constexpr bool data_set = false, row_runs = true, linear = false;
    static constexpr int neighbours = neighbours_of(C);
    const T *numbers; // [O, TAPS, C]

    using Offset = std::conditional_t<((int64_t)O * TAPS * C > INT32_MAX), int64_t, int>;

    __device__ Row row(int i) const {
        int tap = i / O, o = i % O;
        return numbers + (Offset)(o * TAPS + tap) * C;
    }
    __device__ Column column(int j) const {
        return j;
    }
    __device__ bool inside(Row, Column) const {
        return true;
    }
    __device__ const T *at(Row row, Column column) const {
        return row + column;
    }
    template <class Raw> __device__ auto value(Raw raw) const {
        return to_float(raw);
    }
};

template <int H, int W, int C, class Rows, class Columns, class T>
__device__ Window<T, H, W, C, Rows, Columns> window(const T *images) {
    return {images, {images}};
}
template <int H, int W, int C, class Rows, class Columns, class T, class F>
__device__ auto window(const Gathered<H * W * C, T, F> &images) {
    return Window<T, H, W, C, Rows, Columns, Gathered<H * W * C, T, F>>{images.numbers, images};
}
template <int O, int TAPS, int C, class T> __device__ Filter<T, O, TAPS, C> filter(const T *numbers) {
    return {numbers};
}

#endif
