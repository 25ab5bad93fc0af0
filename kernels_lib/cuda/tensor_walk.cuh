/* The order in which a product on tensor cores takes the lines of operand a and the panels of k: as they are counted, but
 * for windows of a spread image, the data gradient of a convolution with stride 2. There only every fourth tap meets a number, the
 * same taps for all outputs of the same parity:
 *
 *     x . x . x .        even columns meet the outer taps of three, odd ones the middle tap
 *     |___|
 *       |___|
 *
 * So lines are sorted by parity, and a tile leaves out the panels that are zero. */
#ifndef MTC_CUDA_TENSOR_WALK_CUH
#define MTC_CUDA_TENSOR_WALK_CUH

#include "cuda/tile.cuh"
#include "cuda/window.cuh"

template <class Product, class Tile> struct PlainWalk {
    static constexpr int panels = divide_up(Product::K, Tile::k);

    __device__ explicit PlainWalk(int) {
    }
    static __device__ int line(int i) {
        return i;
    }
    static __device__ int step(int panel) {
        return panel * Tile::k;
    }
};

/* Along an axis: the taps that outputs of a parity meet, every second from `first` on. A window of one tap keeps it where it
 * meets zeros, which is then all that it meets. */
template <class Axis> struct ParityTaps {
    int first, count;
    bool meets; // a number

    __device__ explicit ParityTaps(int parity) {
        bool meets_first = (Axis::of_output(parity) + Axis::of_tap(0)) % 2 == 0;
        meets = meets_first || Axis::kernel > 1;
        first = meets_first || !meets ? 0 : 1;
        count = (Axis::kernel - first + 1) / 2;
    }
};

template <class Product, class Tile, int C, class Rows, class Columns> class ParityWalk {
    static constexpr int lines = Product::M / 4; // of a parity
    static constexpr int slabs = C / Tile::k;    // panels of a tap
    ParityTaps<Rows> rows;
    ParityTaps<Columns> columns;

public:
    int panels;

    static constexpr bool is_possible = Rows::spread == 2 && Columns::spread == 2 && Rows::stride == 1 &&
                                        Columns::stride == 1 && Rows::dilation % 2 != 0 && Columns::dilation % 2 != 0 &&
                                        Rows::out % 2 == 0 && Columns::out % 2 == 0 && C % Tile::k == 0 &&
                                        lines % Tile::m == 0;

    __device__ explicit ParityWalk(int i0) : rows(i0 / lines / 2), columns(i0 / lines % 2) {
        panels = rows.meets && columns.meets ? rows.count * columns.count * slabs : 1;
    }
    static __device__ int line(int i) {
        constexpr int across = Columns::out / 2;
        int parity = i / lines, place = i % lines;
        return (place / across * 2 + parity / 2) * Columns::out + place % across * 2 + parity % 2;
    }
    __device__ int step(int panel) const {
        int tap = panel / slabs, row = rows.first + tap / columns.count * 2,
            column = columns.first + tap % columns.count * 2;
        return (row * Columns::kernel + column) * C + panel % slabs * Tile::k;
    }
};

template <class Product, class Tile, class A> struct WalkOf { using Type = PlainWalk<Product, Tile>; };
template <class Product, class Tile, class T, int H, int W, int C, class Rows, class Columns>
struct WalkOf<Product, Tile, Lines<Window<T, H, W, C, Rows, Columns>, true>> {
    using Parity = ParityWalk<Product, Tile, C, Rows, Columns>;
    using Type = std::conditional_t<Parity::is_possible, Parity, PlainWalk<Product, Tile>>;
};

#endif
