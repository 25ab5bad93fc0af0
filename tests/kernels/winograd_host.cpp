/* kernels_lib/cuda/winograd.cuh on the host. Prints of each case how far an output is from that of float64 at most, and the root of the mean
 * square beside that of sums of floats one after the other; likewise a fold's. */
#include "operands_on_host.h"

#include "cuda/float8.cuh"
#include "cuda/integer.cuh"
#include "cuda/tf32.cuh"
#include "cuda/winograd.cuh"

struct Error {
    double largest = 0, squares = 0;
    size_t count = 0;

    void add(double value, double exact) {
        const double off = std::fabs(value - exact);
        largest = off <= largest ? largest : off; // of no number, that
        squares += off * off;
        count++;
    }
    double mean() const {
        return std::sqrt(squares / (double)count);
    }
};

/* Filters as they lie, [columns, 3, 3, C]; or of a gradient, [C, 3, 3, columns]. */
template <int IMAGES, int H, int W, int C, int COLUMNS, class Rows, class Columns, bool GRADIENT, int WIDTH = 1>
struct Case {
    using Convolution = Product<IMAGES * Rows::out * Columns::out, COLUMNS, 9 * C>;
    using Tile = SquareTile<Rows::out, Columns::out>;
    static constexpr int M = Convolution::M, tiles = product_tiles<Convolution, Tile>(),
                         groups = tiles / divide_up(COLUMNS, Tile::n);
    std::vector<float> image, filters, out, sums;

    Case() : image(IMAGES * H * W * C), filters(9 * C * COLUMNS), out(M * COLUMNS, NAN), sums(groups * COLUMNS, NAN) {
        for (float &x : image)
            x = (float)rand() / (float)RAND_MAX - 0.25f;
        for (float &w : filters)
            w = (float)rand() / (float)RAND_MAX - 0.5f;
    }
    void run_tile(int tile) {
        alignas(16) static char shared[product_shared<Convolution, Tile, WIDTH>()];
        constexpr int across = divide_up(COLUMNS, Tile::n);
        const int i0 = tile / across * Tile::m, j0 = tile % across * Tile::n;
        auto gate = [] {};
        auto store = vectorized<WIDTH>([&](int i, int j, const auto &sum, auto(&term)[1]) {
            for (int v = 0; v < WIDTH; v++)
                out[(size_t)i * COLUMNS + j + v] = ((float *)term)[v] = ((const float *)&sum)[v];
        });
        auto results =
            folded<1>(store, [&](int group, int j, const float(&total)[1]) { sums[group * COLUMNS + j] = *total; });
        const auto windows = window<H, W, C, Rows, Columns>(image.data());
        const auto multiply = [&](const auto &b) {
            run_block([&] {
                matmul_squares<Convolution, Tile>(i0, j0, lines_of_a(windows), lines_of_b(b), (float *)shared, gate,
                                                  results);
            });
        };
        if constexpr (GRADIENT)
            multiply(filter<C, 9, COLUMNS>(filters.data()));
        else
            multiply(transposed(matrix<9 * C>(filters.data())));
    }

    /* The sum of an output by steps of the type. */
    template <class Real> Real sum(int i, int j) const {
        const int n = i / (Rows::out * Columns::out), h = i / Columns::out % Rows::out, w = i % Columns::out;
        Real sum = 0;
        for (int k = 0; k < 9 * C; k++) {
            const int tap = k / C, c = k % C, row = Rows::of_output(h) + Rows::of_tap(tap / 3);
            const int column = Columns::of_output(w) + Columns::of_tap(tap % 3);
            const float weight = filters[GRADIENT ? (c * 9 + tap) * COLUMNS + j : (j * 9 + tap) * C + c];
            if (row >= 0 && row < H && column >= 0 && column < W)
                sum = std::fma((Real)image[((n * H + row) * W + column) * C + c], (Real)weight, sum);
        }
        return sum;
    }
    void check(const char *name) {
        Error squares, plain, fold;
        for (int tile = 0; tile < tiles; tile++)
            run_tile(tile);
        for (int j = 0; j < COLUMNS; j++) {
            double all = 0, total = 0;
            for (int i = 0; i < M; i++) {
                const double exact = sum<double>(i, j);
                all += exact;
                squares.add(out[(size_t)i * COLUMNS + j], exact);
                plain.add(sum<float>(i, j), exact);
            }
            for (int group = 0; group < groups; group++)
                total += sums[group * COLUMNS + j];
            fold.add(total / M, all / M);
        }
        printf("%s: %.2g at most, %.2g beside %.2g, folds %.2g\n", name, squares.largest, squares.mean(), plain.mean(),
               fold.largest);
    }
};

using One = Axis<1, 3, 1, 1, 1, 1>;
template <int SIZE> using Same = Axis<SIZE, 3, 1, 1, 1, 1>;
template <int SIZE> using Back = Axis<SIZE, 3, 1, -1, -1, 1>;

int main() {
    Case<2, 8, 8, 64, 64, Same<8>, Same<8>, false, 4>().check("even");
    Case<3, 7, 5, 16, 20, Same<7>, Same<5>, false>().check("odd");
    Case<3, 7, 6, 8, 72, Back<7>, Back<6>, true, 4>().check("gradient");
    Case<9, 4, 4, 24, 33, Back<4>, Same<4>, true>().check("one way turned");
    Case<1, 1, 1, 32, 64, One, One, false, 2>().check("one pixel");
    Case<2, 9, 6, 8, 8, Axis<7, 3, 1, 1, 0, 1>, Axis<10, 3, 1, 1, 3, 1>, false>().check("no padding, and much");
    return 0;
}
