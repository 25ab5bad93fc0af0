// The product of kernels_lib/cuda/matmul.cuh against cuBLAS in strict fp32 and against the naive kernel. One JSON line
// per size, orientation and tile; each result is checked at random places against double precision.
//
//     nvcc -std=c++17 -O3 -arch=sm_90 -DCASES='"matmul_all.inc"' -Ikernels_lib -Iruntime -Ibench bench/matmul.cu -lcublas
//         -o build/bench_matmul
//
// matmul_all.inc has sizes and orientations of all kinds, matmul_squares.inc those of `bench/figures products`, and
// matmul_limits.inc those of bench/vision. -DNAIVE=0: the naive kernels, which take long, are left out.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include <cublas_v2.h>

#include "cuda/matmul.cuh"

#ifndef NAIVE
#define NAIVE 1
#endif

static void check(cudaError_t error, int line) {
    if (error == cudaSuccess)
        return;
    printf("{\"error\": \"%s\", \"line\": %d}\n", cudaGetErrorString(error), line);
    exit(1);
}
#define CHECK(call) check(call, __LINE__)

// Median time of one call in milliseconds, each timing long enough to hide the launch.
template <class Call> static double milliseconds(double flops, Call call) {
    int repeats = (int)std::clamp(2e10 / flops, 1.0, 100.0);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    std::vector<float> times(11);
    for (int i = 0; i < 3; i++)
        call();
    for (float &time : times) {
        CHECK(cudaEventRecord(start));
        for (int i = 0; i < repeats; i++)
            call();
        CHECK(cudaEventRecord(stop));
        CHECK(cudaEventSynchronize(stop));
        CHECK(cudaEventElapsedTime(&time, start, stop));
    }
    CHECK(cudaGetLastError());
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    std::sort(times.begin(), times.end());
    return times[times.size() / 2] / repeats;
}

// A thread per output. COALESCED: neighbouring threads take neighbouring columns of c; otherwise neighbouring rows, as
// the textbook's first kernel does.
template <class Product, bool TA, bool TB, bool COALESCED>
__global__ void naive_kernel(const float *a, const float *b, float *c) {
    int fast = blockIdx.x * blockDim.x + threadIdx.x, slow = blockIdx.y * blockDim.y + threadIdx.y;
    int i = COALESCED ? slow : fast, j = COALESCED ? fast : slow;
    if (i >= Product::M || j >= Product::N)
        return;
    float sum = 0;
    for (int k = 0; k < Product::K; k++)
        sum += a[TA ? k * Product::M + i : i * Product::K + k] * b[TB ? j * Product::K + k : k * Product::N + j];
    c[i * Product::N + j] = sum;
}

// The textbook's second kernel: a tile of both operands in shared memory, a thread per output.
template <class Product, bool TA, bool TB>
__global__ void shared_tile_kernel(const float *a, const float *b, float *c) {
    constexpr int SIDE = 32;
    __shared__ float left[SIDE][SIDE], right[SIDE][SIDE];
    const int x = threadIdx.x, y = threadIdx.y, i = blockIdx.y * SIDE + y, j = blockIdx.x * SIDE + x;
    float sum = 0;
    for (int k0 = 0; k0 < Product::K; k0 += SIDE) {
        int k = k0 + x, l = k0 + y;
        left[y][x] = i < Product::M && k < Product::K ? a[TA ? k * Product::M + i : i * Product::K + k] : 0;
        right[y][x] = l < Product::K && j < Product::N ? b[TB ? j * Product::K + l : l * Product::N + j] : 0;
        __syncthreads();
        for (int k = 0; k < SIDE; k++)
            sum += left[y][k] * right[k][x];
        __syncthreads();
    }
    if (i < Product::M && j < Product::N)
        c[i * Product::N + j] = sum;
}

template <int LD, bool TRANSPOSED> __device__ auto operand(const float *p) {
    if constexpr (TRANSPOSED)
        return transposed(matrix<LD>(p));
    else
        return matrix<LD>(p);
}

// BLOCKS: as many as a multiprocessor must be able to hold.
template <class Tile_, int BLOCKS> struct Variant {
    using Tile = Tile_;
    static constexpr int blocks = BLOCKS;
};

template <class Product, class Variant, bool TA, bool TB>
__global__ void __launch_bounds__(THREADS, Variant::blocks) tiled_kernel(const float *a, const float *b, float *c) {
    extern __shared__ __align__(16) char shared[];
    matmul<Product, typename Variant::Tile>(blockIdx.x, operand < TA ? Product::M : Product::K, TA > (a),
                                            operand < TB ? Product::K : Product::N, TB > (b), shared, NoGate(),
                                            [=](int i, int j, float sum) { c[i * Product::N + j] = sum; });
}

struct Matrices {
    std::vector<float> host_a, host_b, host_c;
    float *a, *b, *c;
    size_t outputs;

    Matrices(size_t m, size_t n, size_t k) : host_a(m * k), host_b(k * n), host_c(m * n), outputs(m * n) {
        std::mt19937 random(1);
        float scale = 1 / std::sqrt((float)k);
        std::uniform_real_distribution<float> uniform(-scale, scale);
        for (float &x : host_a)
            x = uniform(random);
        for (float &x : host_b)
            x = uniform(random);
        CHECK(cudaMalloc(&a, m * k * sizeof(float)));
        CHECK(cudaMalloc(&b, k * n * sizeof(float)));
        CHECK(cudaMalloc(&c, m * n * sizeof(float)));
        CHECK(cudaMemcpy(a, host_a.data(), m * k * sizeof(float), cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(b, host_b.data(), k * n * sizeof(float), cudaMemcpyHostToDevice));
    }
    ~Matrices() {
        for (float *p : {a, b, c})
            cudaFree(p);
    }
    // Poison: an output that is not written is not a number.
    void forget() {
        CHECK(cudaMemset(c, 0xff, outputs * sizeof(float)));
    }
};

// Largest error of c: everywhere for being a number, at up to 4096 random places against double precision.
template <class Product, bool TA, bool TB> static double worst_error(Matrices &x) {
    CHECK(cudaMemcpy(x.host_c.data(), x.c, x.outputs * sizeof(float), cudaMemcpyDeviceToHost));
    for (float v : x.host_c)
        if (!std::isfinite(v))
            return NAN;
    std::mt19937 random(2);
    double worst = 0;
    for (int sample = 0; sample < 4096; sample++) {
        size_t at = random() % x.outputs, i = at / Product::N, j = at % Product::N;
        double sum = 0;
        for (size_t k = 0; k < Product::K; k++)
            sum += (double)x.host_a[TA ? k * Product::M + i : i * Product::K + k] *
                   x.host_b[TB ? j * Product::K + k : k * Product::N + j];
        worst = std::max(worst, std::fabs(sum - x.host_c[at]));
    }
    return worst;
}

struct Peers {
    double cublas, naive, coalesced, shared_tile;
};

template <class Product, bool TA, bool TB> static Peers time_peers(cublasHandle_t cublas, Matrices &x, double flops) {
    constexpr int M = Product::M, N = Product::N, K = Product::K;
    const float one = 1, zero = 0;
    Peers peers = {};
    peers.cublas = milliseconds(flops, [&] { // column-major: the transpose of c is the transpose of b times that of a
        cublasSgemm(cublas, TB ? CUBLAS_OP_T : CUBLAS_OP_N, TA ? CUBLAS_OP_T : CUBLAS_OP_N, N, M, K, &one, x.b,
                    TB ? K : N, x.a, TA ? M : K, &zero, x.c, N);
    });
    if (!NAIVE)
        return peers;
    dim3 block(32, 8), by_rows((M + 31) / 32, (N + 7) / 8), by_columns((N + 31) / 32, (M + 7) / 8);
    dim3 square(32, 32), by_squares((N + 31) / 32, (M + 31) / 32);
    peers.naive = milliseconds(flops, [&] { naive_kernel<Product, TA, TB, false><<<by_rows, block>>>(x.a, x.b, x.c); });
    peers.coalesced =
        milliseconds(flops, [&] { naive_kernel<Product, TA, TB, true><<<by_columns, block>>>(x.a, x.b, x.c); });
    x.forget();
    peers.shared_tile =
        milliseconds(flops, [&] { shared_tile_kernel<Product, TA, TB><<<by_squares, square>>>(x.a, x.b, x.c); });
    if (!(worst_error<Product, TA, TB>(x) < 1e-4))
        printf("{\"error\": \"the tiled product of %d x %d x %d is wrong\"}\n", M, N, K), exit(1);
    return peers;
}

template <class Product, class Variant, bool TA, bool TB>
static void time_tiled(Matrices &x, double flops, const Peers &peers) {
    using Tile = typename Variant::Tile;
    constexpr int tiles = product_tiles<Product, Tile>(), shared = product_shared<Product, Tile>();
    auto kernel = tiled_kernel<Product, Variant, TA, TB>;
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    x.forget();
    double ms = milliseconds(flops, [&] { kernel<<<tiles, THREADS, shared>>>(x.a, x.b, x.c); });
    double error = worst_error<Product, TA, TB>(x);
    printf("{\"work\": \"matmul %dx%dx%d %c%c\", \"tile\": \"%dx%dx%d %dx%d\", \"ms\": %.5f, \"tflops\": %.2f, "
           "\"of_cublas\": %.3f, \"over_naive\": %.1f, \"over_coalesced_naive\": %.1f, "
           "\"cublas_ms\": %.5f, \"naive_ms\": %.5f, \"coalesced_ms\": %.5f, \"shared_tile_ms\": %.5f, \"error\": "
           "%.2g, \"ok\": %s}\n",
           Product::M, Product::N, Product::K, TA ? 'T' : 'N', TB ? 'T' : 'N', Tile::m, Tile::n, Tile::k, Tile::tm,
           Tile::tn, ms, flops / ms * 1e-9, peers.cublas / ms, peers.naive / ms, peers.coalesced / ms, peers.cublas,
           peers.naive, peers.coalesced, peers.shared_tile, error, error < 1e-4 ? "true" : "false");
}

template <class Product, bool TA, bool TB, class... Variants> static void compare(cublasHandle_t cublas) {
    Matrices x(Product::M, Product::N, Product::K);
    double flops = 2.0 * Product::M * Product::N * Product::K;
    Peers peers = time_peers<Product, TA, TB>(cublas, x, flops);
    (time_tiled<Product, Variants, TA, TB>(x, flops, peers), ...);
}

template <class Product, class... Variants> static void compare_orientations(cublasHandle_t cublas) {
    compare<Product, false, false, Variants...>(cublas);
    compare<Product, false, true, Variants...>(cublas);
    compare<Product, true, false, Variants...>(cublas);
}

int main() {
    cublasHandle_t cublas;
    if (cublasCreate(&cublas) != CUBLAS_STATUS_SUCCESS)
        return printf("{\"error\": \"no cuBLAS\"}\n"), 1;
    using Small = Variant<Tile<32, 32, 64, 4, 4>, 2>;
    using Middle = Variant<Tile<64, 64, 32, 8, 4>, 2>;
    using Tall = Variant<Tile<128, 64, 16, 8, 4>, 2>;
    using Large = Variant<Tile<128, 128, 16, 8, 8>, 1>;
    using Huge = Variant<Tile<256, 128, 16, 16, 8>, 1>;
#include CASES
    return cublasDestroy(cublas) != CUBLAS_STATUS_SUCCESS;
}
