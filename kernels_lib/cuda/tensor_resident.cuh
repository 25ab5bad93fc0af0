/* Convolutions of 64 channels that keep the size of the image: its window moves by single steps. Each number meets every
 * tap, so that the loads of panels are the limit. Here a tile's part of the image stays in shared memory for all taps, and a
 * tap is the same rows read from another one on.
 *
 * For that the pixels of all images lie in one line, with `margin` zeros behind each row and `margin` rows of zeros below each
 * image, which serve the row and the image behind them as well:
 *
 *     x x x x .          pixel (h, w) of image n at position (n * down + h) * across + w;
 *     x x x x .          tap (dh, dw) of any position is dh * across + dw further.
 *     . . . . .
 *
 * A tile takes `lines` positions, those of the zeros among them for nothing, so that there are as many tiles as in any
 * other way. Panels of the other operand pass by, one a tap. */
#ifndef MTC_CUDA_TENSOR_RESIDENT_CUH
#define MTC_CUDA_TENSOR_RESIDENT_CUH

#include "cuda/outputs.cuh"
#include "cuda/tensor_group.cuh"
#include "cuda/window.cuh"

template <class Axis, int SIZE> __host__ __device__ constexpr bool keeps_size() {
    constexpr bool centred = Axis::pad == Axis::dilation * (Axis::kernel / 2);
    return Axis::out == SIZE && Axis::stride == 1 && Axis::spread == 1 && Axis::kernel % 2 == 1 && centred &&
           (Axis::dilation == 1 || Axis::dilation == -1);
}

template <class Product, class Tile, class A> struct Resident {
    static __host__ __device__ constexpr bool is_possible() {
        return false;
    }
};

template <class Product, class Tile, class T, int H, int W, int C, class Rows, class Columns>
class Resident<Product, Tile, Lines<Window<T, H, W, C, Rows, Columns>, true>> {
    static constexpr int across = W + Columns::kernel / 2, down = H + Rows::kernel / 2;
    static constexpr int positions = Product::M / (H * W) * down * across, tiles = divide_up(Product::M, Tile::m);
    static constexpr int halo = Rows::kernel / 2 * across + Columns::kernel / 2;
    static constexpr int row_step = THREADS / CHUNKS;

public:
    static constexpr int taps = Rows::kernel * Columns::kernel;
    static constexpr int lines = divide_up(positions, tiles * 16) * 16; // both groups have a multiple of 8
    static constexpr int rows = divide_up(lines + 2 * halo, row_step) * row_step, bytes = rows * PANEL_ROW;

    static __host__ __device__ constexpr bool is_possible() {
        constexpr bool narrow = sizeof(T) == 2 && std::is_same_v<T, typename Tile::Element>;
        constexpr bool has_instruction = lines == 272 || lines == 288;
        constexpr bool fits = bytes + 2 * Tile::n * PANEL_ROW <= tensor_shared<Tile>();
        return narrow && C == Tile::k && Tile::m == 256 && Tile::n == 64 && taps > 1 && keeps_size<Rows, H>() &&
               keeps_size<Columns, W>() && has_instruction && Product::M % (H * W) == 0 && fits;
    }

    /* The row of the product at a position; Product::M if there is none. */
    static __device__ int line(int position) {
        int row = position / across, w = position % across, image = row / down, h = row % down;
        return position >= 0 && position < positions && w < W && h < H ? (image * H + h) * W + w : Product::M;
    }
    /* Begins to bring the positions from `first` on, and those around them. */
    static __device__ void fetch(const T *images, int first, unsigned shared) {
        int place = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
        unsigned to = shared + chunk_offset(place, chunk);
#pragma unroll
        for (int r = 0; r < rows; r += row_step) {
            int at = line(first - halo + place + r);
            const T *from = images + (int64_t)at * C + chunk * (CHUNK / (int)sizeof(T));
            copy_piece<CHUNK>(to + r * PANEL_ROW, from, at < Product::M);
        }
    }
    /* Where the numbers that a tap meets begin. */
    static __device__ int offset(int tap) {
        int h = Rows::of_tap(tap / Columns::kernel) - Rows::pad,
            w = Columns::of_tap(tap % Columns::kernel) - Columns::pad;
        return (halo + h * across + w) * PANEL_ROW;
    }
    struct Positions : Tile {
        static constexpr int m = lines, pitch = Tile::n + 4, stages = 3;
    };
};

template <class Product, class Tile, class A, class B, class Out, class Gate>
__device__ void matmul_resident(int i0, int j0, const A &a, const B &b, char *shared, Gate &gate, const Out &out) {
    using Images = Resident<Product, Tile, A>;
    using PanelB = TensorPanel<B, Product::N, Product::K, Tile::n, Narrow>;
    using Positions = typename Images::Positions;
    using Sums = GroupSums<Positions, true, PanelB::along_k>;
    constexpr int room = tensor_shared<Tile>() - Images::bytes, most = room / PanelB::bytes;
    constexpr int stages = most < Images::taps ? most : Images::taps, ahead = stages - 1 - Sums::behind;
    constexpr int rows = divide_up(Positions::m, 4 * THREADS / 8) * (4 * THREADS / 8); // whole groups of outputs
    static_assert(ahead > 0 && Positions::m * Positions::pitch * sizeof(float) <= tensor_shared<Tile>(),
                  "room for a tile");

    unsigned images = shared_address(shared), panels = images + Images::bytes;
    int first = i0 / Tile::m * Images::lines;
    PanelB panel_b(b, j0, panels, [](int j) { return j; });
    Sums sums;
    auto fetch = [&](int tap) {
        if (tap < Images::taps)
            panel_b.fetch(tap * Tile::k, tap % stages * PanelB::bytes);
        end_copies();
    };

    gate();
    Images::fetch(a.any(), first, images);
    for (int tap = 0; tap < ahead; tap++)
        fetch(tap);
#pragma unroll 1
    for (int tap = 0; tap < Images::taps; tap++) {
        await_copies<ahead - 1>();
        show_to_tensor_cores();
        __syncthreads();
        fetch(tap + ahead);
        sums.multiply(images + Images::offset(tap), panels + tap % stages * PanelB::bytes);
    }
    sums.finish();

    __syncthreads();
    sums.lay((float *)shared);
    __syncthreads();
    Outputs<Product, Positions, rows, Out, false> outputs{first, j0};
    outputs.read_and_write(
        out, [=](int row) { return (row < Images::lines ? Images::line(first + row) : Product::M) - first; },
        TileSums{(float *)shared, Positions::pitch});
    outputs.fold(out, (float *)shared);
}

#endif
