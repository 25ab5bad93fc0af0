/* Gradients of filters of 3 x 3 taps, of convolutions that keep the size of the image: operand a is the gradient of the outputs, operand
 * b the windows, and k runs over pixels. As windows, each number of the image would be copied nine times, once for each tap. Here a panel
 * has the pixels themselves, with those around them, and a tap is the same rows of it from another one on.
 *
 * For that the pixels lie in one line of positions, with a zero behind each row and a row of zeros below each image, as in
 * tensor_resident.cuh:
 *
 *     x x x x .          pixel (h, w) of image n at position (n * down + h) * across + w, a step of k
 *     x x x x .          a panel: `depth` positions of a, and of b `halo` more at either end
 *     . . . . .          tap (h, w): b from h * across + w on
 *
 * A tile has 64 channels of the outputs by all taps of 64 channels of the image. Its two groups of warps have as many taps each, and the
 * middle ones both, at half of the positions. */
#ifndef MTC_CUDA_TENSOR_TAPS_CUH
#define MTC_CUDA_TENSOR_TAPS_CUH

#include "cuda/outputs.cuh"
#include "cuda/tensor_taps_float.cuh"
#include "cuda/tensor_taps_narrow.cuh"

/* Where an operand's first window lies. */
template <class Stored> __device__ int first_window(const Section<Stored, 0> &windows) {
    return windows.first_row;
}
template <class Stored> __device__ int first_window(const Stored &) {
    return 0;
}
template <class Stored> struct WholeOf { using Type = Stored; };
template <class Stored> struct WholeOf<Section<Stored, 0>> { using Type = Stored; };

template <class B>
using TapPositionsOf = TapPositions<typename WholeOf<std::decay_t<decltype(std::declval<B>().stored)>>::Type>;
template <class Tile, class A, class B>
using TapsOf = std::conditional_t<sizeof(typename Tile::Element) == 2, NarrowTaps<TapPositionsOf<B>, Tile>,
                                  FloatTaps<TapPositionsOf<B>, Tile, typename A::One>>;

template <class Lines, class T>
constexpr bool has_numbers = std::is_same_v<T, float> ? Lines::is_float : std::is_same_v<typename Lines::One, T>;

template <class Product, class Tile, class A, class B> __host__ __device__ constexpr bool has_taps() {
    using T = typename Tile::Element;
    using Positions = TapPositionsOf<B>;
    constexpr bool lie = A::linear && !A::along_k && !B::along_k && has_numbers<A, T> && has_numbers<B, T>;
    if constexpr (lie && Positions::is_possible)
        return Tile::m == TAP_CHANNELS && Tile::n == TAPS * TAP_CHANNELS && Product::M % TAP_CHANNELS == 0 &&
               Positions::channels % TAP_CHANNELS == 0 && Product::slices == 1 &&
               Product::K % Positions::pixels_of_image == 0 &&
               TAP_STAGES * TapsOf<Tile, A, B>::bytes + taps_table(2 * Tile::k, Positions::width) <=
                   tensor_shared<Tile>();
    return false;
}

template <class Tile> struct OneTap : Tile { static constexpr int n = TAP_CHANNELS; };

template <class Product, class Tile, class A, class B, class Gate, class Out>
__device__ void matmul_taps(int i0, int j0, const A &a, const B &b, char *shared, Gate &gate, const Out &out) {
    using Positions = TapPositionsOf<B>;
    using Taps = TapsOf<Tile, A, B>;
    constexpr int C = Positions::channels, pitch = tensor_pitch(Tile::n);
    constexpr int count = divide_up(Positions::count(Product::K), Taps::depth); // of panels
    const int channel = j0 / TAPS;
    const typename Taps::Table table{(int *)(shared + tensor_shared<Tile>() - Taps::Table::bytes), Product::K};
    const auto outputs = Taps::outputs_of({a.at(a.line(i0), a.step(0)), A::pitch()}, table);
    Taps taps(outputs, {b.any() + (int64_t)first_window(b.stored) * C + channel, C}, table, shared);

    for (int panel = 0; panel < table.ahead; panel++)
        table.find(panel);
    __syncthreads();
    gate();
    taps.template fetch<count>(0);
#pragma unroll 1
    for (int panel = 0; panel < count; panel++) {
        await_copies<0>();
        show_to_tensor_cores();
        __syncthreads();
        taps.template fetch<count>(panel + 1); // over one that was multiplied before the barrier
        table.find(panel + table.ahead);
        taps.multiply(panel);
    }
    taps.finish();

    __syncthreads();
    taps.template lay<pitch>((float *)shared);
    __syncthreads();
#pragma unroll 1
    for (int tap = 0; tap < TAPS; tap++)
        Outputs<Product, OneTap<Tile>, Tile::m, Out>{i0, tap * C + channel}.read_and_write(
            out, [](int row) { return row; }, TileSums{(float *)shared + tap * TAP_CHANNELS, pitch});
}

#endif
