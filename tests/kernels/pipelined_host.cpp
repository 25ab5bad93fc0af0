/* kernels_lib/cuda/pipelined.cuh on the host. Prints of each case how far an output, or the sum of a line, is from that of float64 at most, for
 * copies that are done as soon as they are begun, and as late as they may be: no panel is read before it is waited for, or written
 * while threads still read what was there. */
#include "operands_on_host.h"

#include <cuda_pipeline.h>
#undef __pipeline_memcpy_async
#undef __pipeline_commit
#undef __pipeline_wait_prior

#include <deque>

/* What copies may read. */
struct Range {
    const char *first, *behind;
};
static std::vector<Range> operands;

static std::vector<float> numbers(size_t count) {
    std::vector<float> all(count);
    for (float &x : all)
        x = (float)rand() / (float)RAND_MAX - 0.5f;
    operands.push_back({(const char *)all.data(), (const char *)(all.data() + count)});
    return all;
}
static bool is_there(const void *from, size_t bytes) {
    for (const Range &range : operands)
        if (range.first <= from && (const char *)from + bytes <= range.behind)
            return true;
    return bytes == 0;
}

/* Of a thread: groups of copies that are not done, the last one not committed. */
struct Copy {
    void *to;
    const void *from;
    size_t bytes, zeros;

    void run() const {
        if (!is_there(from, bytes - zeros))
            abort();
        memcpy(to, from, bytes - zeros);
        memset((char *)to + bytes - zeros, 0, zeros);
    }
};
static std::vector<std::deque<std::vector<Copy>>> pending;
static bool late;

static void __pipeline_memcpy_async(void *to, const void *from, size_t bytes, size_t zeros = 0) {
    const Copy copy = {to, from, bytes, zeros};
    if (late)
        pending[self].back().push_back(copy);
    else
        copy.run();
}
static void __pipeline_commit() {
    pending[self].emplace_back();
}
static void __pipeline_wait_prior(size_t groups) {
    for (; pending[self].size() > groups + 1; pending[self].pop_front())
        for (const Copy &copy : pending[self].front())
            copy.run();
}

#include "cuda/float8.cuh"
#include "cuda/integer.cuh"
#include "cuda/tf32.cuh"

#include "cuda/pipelined.cuh"
#include "cuda/window.cuh"

/* What operands are in float64: a number of line `line` at step `k`. */
template <class Lines> double number(const Lines &lines, int line, int k) {
    const auto of_line = lines.line(line);
    const auto step = lines.step(k);
    return lines.inside(of_line, step) ? (double)*lines.at(of_line, step) : 0;
}

template <class Product, class Tile, class A, class B>
double error_of(const A &a, const B &b, const std::vector<float> &out, const std::vector<float> &sums) {
    double largest = 0;
    for (int i = 0; i < Product::M; i++)
        for (int j = 0; j <= Product::N; j++) { // behind the last: of the line
            double exact = 0;
            for (int k = 0; k < Product::K; k++)
                exact += number(a, i, k) * (j < Product::N ? number(b, j, k) : 1);
            const double off = std::fabs((j < Product::N ? out[i * Product::N + j] : sums[i]) - exact);
            largest = off <= largest ? largest : off; // of no number, that
        }
    return largest;
}

/* Of operands as lines; sums of a's lines too, where threads share them. */
template <class Product, class Tile, class A, class B> void check(const char *name, const A &a, const B &b) {
    alignas(16) static char shared[product_shared<Product, Tile>()];
    printf("%s:", name);
    for (bool lately : {false, true}) {
        late = lately;
        std::vector<float> out(Product::M * Product::N, NAN), sums(Product::M, NAN);
        for (int tile = 0; tile < product_tiles<Product, Tile>(); tile++) {
            constexpr int across = divide_up(Product::N, Tile::n);
            const int i0 = tile / across * Tile::m, j0 = tile % across * Tile::n;
            auto gate = [] {};
            const auto store = [&](int i, int j, float sum) { out[i * Product::N + j] = sum; };
            const auto side = sum_of_a([&](int i, float sum) { sums[i] = sum; });
            memset(shared, 0xff, sizeof shared);
            pending.assign(THREADS, {{}});
            run_block([&] {
                matmul_pipelined<Product, PipelinedTile<Tile>>(i0, j0, a, b, (float *)shared, gate, store, side);
                if (pending[self].size() > 1 ||
                    !pending[self].back().empty()) // they would come when others use the memory
                    abort();
            });
        }
        printf(" %.2g", error_of<Product, Tile>(a, b, out, sums));
    }
    printf("\n");
}

template <class Product, class Tile> void check_matrices(const char *name) {
    operands.clear();
    const auto a = numbers(Product::M * Product::K), b = numbers(Product::K * Product::N);
    constexpr int M = Product::M, N = Product::N, K = Product::K;
    const auto left = matrix<K>(a.data()), right = matrix<N>(b.data());
    const auto left_turned = transposed(matrix<M>(a.data())), right_turned = transposed(matrix<K>(b.data()));
    printf("NN ");
    check<Product, Tile>(name, lines_of_a(left), lines_of_b(right));
    printf("NT ");
    check<Product, Tile>(name, lines_of_a(left), lines_of_b(right_turned));
    printf("TN ");
    check<Product, Tile>(name, lines_of_a(left_turned), lines_of_b(right));
}

/* A convolution's outputs, and the gradient of its filters. */
template <int IMAGES, int SIZE, int C, int COLUMNS, class Rows> void check_windows() {
    constexpr int outputs = IMAGES * Rows::out * Rows::out, taps = Rows::kernel * Rows::kernel * C;
    operands.clear();
    const auto image = numbers(IMAGES * SIZE * SIZE * C), filters = numbers(COLUMNS * taps);
    const auto gradient = numbers(outputs * COLUMNS);
    const auto windows = window<SIZE, SIZE, C, Rows, Rows>(image.data());
    const auto weights = transposed(matrix<taps>(filters.data()));
    const auto turned = transposed(matrix<COLUMNS>(gradient.data()));
    check<Product<outputs, COLUMNS, taps>, Tile<128, 64, 32, 8, 4>>("windows", lines_of_a(windows),
                                                                    lines_of_b(weights));
    check<Product<COLUMNS, taps, outputs>, Tile<64, 192, 16, 8, 6>>("filters", lines_of_a(turned), lines_of_b(windows));
}

int main() {
    check_matrices<Product<131, 70, 101>, Tile<128, 64, 32, 16, 8>>("ragged, in slices");
    check_matrices<Product<128, 64, 160>, Tile<128, 64, 32, 16, 8>>("whole, in slices");
    check_matrices<Product<130, 66, 33>, Tile<128, 64, 16, 8, 4>>("ragged");
    check_matrices<Product<100, 60, 72>, Tile<128, 64, 32, 8, 4>>("lines of whole fours");
    check_matrices<Product<256, 128, 48>, Tile<256, 128, 16, 16, 8>>("large");
    check_windows<2, 9, 4, 20, Axis<5, 3, 2, 1, 1, 1>>();
    check_windows<2, 7, 3, 8, Axis<7, 3, 1, 1, 1, 1>>();
    return 0;
}
