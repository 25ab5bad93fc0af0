// Products on tensor cores (kernels_lib/cuda/tensor.cuh) for bench/tensor.py, which has PyTorch beside it: the products of
// convolutions and plain ones, each with a tile.
//
//     nvcc -std=c++17 -O3 -gencode=arch=compute_90a,code=sm_90a -DCASES='"tensor_speed.inc"' -shared -Xcompiler -fPIC
//         -Ikernels_lib -Iruntime -Ibench bench/tensor.cu -o build/bench_tensor.so
//
// tensor_check.inc has small cases of all kinds, tensor_check_parts.inc those whose k blocks have in parts, tensor_check_float8.inc of floats of
// 8 bits, which devices before sm_89 do not multiply; tensor_speed.inc those of ResNet-18 and GPT-2.
#include <cstdio>

#include "cuda/matmul.cuh"
#include "cuda/schedule.cuh"
#include "cuda/window.cuh"

enum Kind { FORWARD, DATA, WEIGHTS, NN, NT, TN };

template <int N_, int SIZE, int C_, int O_, int KERNEL, int STRIDE> struct Shape {
    static constexpr int n = N_, size = SIZE, c = C_, o = O_, kernel = KERNEL, stride = STRIDE, pad = KERNEL / 2;
    static constexpr int out = (SIZE + 2 * pad - KERNEL) / STRIDE + 1, taps = KERNEL * KERNEL;
    using Forward = Axis<out, KERNEL, STRIDE, 1, pad, 1>;
    using Backward = Axis<SIZE, KERNEL, 1, -1, -pad, STRIDE>;
};

template <Kind KIND, class S, int SLICES> struct ProductOf;
template <class S, int SLICES> struct ProductOf<FORWARD, S, SLICES> {
    using Type = Product<S::n * S::out * S::out, S::o, S::taps * S::c>;
};
template <class S, int SLICES> struct ProductOf<DATA, S, SLICES> {
    using Type = Product<S::n * S::size * S::size, S::c, S::taps * S::o>;
};
template <class S, int SLICES> struct ProductOf<WEIGHTS, S, SLICES> {
    static_assert(S::n * S::out * S::out % SLICES == 0, "");
    using Type = Product<S::o, S::taps * S::c, S::n * S::out * S::out / SLICES>;
};
// A plain product: n x c times c x o.
template <class S, int SLICES> struct ProductOf<NN, S, SLICES> { using Type = Product<S::n, S::o, S::c>; };
template <class S, int SLICES> struct ProductOf<NT, S, SLICES> { using Type = Product<S::n, S::o, S::c>; };
// As the gradient of a weight: slices below each other.
template <class S, int SLICES> struct ProductOf<TN, S, SLICES> {
    using Type = Product<S::n, S::o, S::c / SLICES, SLICES>;
};

template <class Tile> struct Alone { using Type = Tile; };
template <int M, int N, int K, int STAGES, class T> struct Alone<TurnTile<M, N, K, STAGES, T>> {
    using Type = typename TurnTile<M, N, K, STAGES, T>::Alone;
};
// The calling block's tile; in turns, those of a launch of MAPS_ONLY tiles are the maps of the operands.
static __device__ OperandMaps maps;
template <class P, class Tile, class A, class B, class Out>
__device__ void multiply_tile(int first, const A &a, const B &b, char *shared, const Out &out) {
    if constexpr (takes_turns<Tile>)
        matmul_turns<P, Tile>(first + blockIdx.x, &maps, a, b, shared, NoGate(), out);
    else
        matmul<P, Tile>(blockIdx.x, a, b, shared, NoGate(), out);
}

template <class P, class Tile, Kind KIND, bool SIDE, class A, class B>
__device__ void multiply_and_store(int first, const A &a, const B &b, char *shared, void *out, float *side) {
    using T = Stored<typename Alone<Tile>::Type>;
    using Result = std::conditional_t<is_integer<T>, float, std::conditional_t<is_float8<T>, bfloat16, T>>;
    if constexpr (KIND == WEIGHTS || P::slices > 1) {
        float *sums = (float *)out + (int64_t)blockIdx.y * P::M * P::N, *lines = side + blockIdx.y * P::M;
        constexpr int width = P::N % 4 == 0 ? 4 : 1;
        auto out = vectorized<width>([=](int i, int j, const auto &sum) {
            *(Pack<float, width> *)(sums + (int64_t)i * P::N + j) = (const Pack<float, width> &)sum;
        });
        if constexpr (SIDE)
            matmul<P, Tile>(blockIdx.x, a, b, shared, NoGate(), out,
                            sum_of_a([=](int i, float sum) { lines[i] = sum; }));
        else
            multiply_tile<P, Tile>(first, a, b, shared, out);
    } else if constexpr (P::N % 8 == 0)
        multiply_tile<P, Tile>(first, a, b, shared, vectorized<8>([=](int i, int j, const Pack<float, 8> &sum) {
                                   Pack<Result, 8> y;
                                   for (int v = 0; v < 8; v++)
                                       y[v] = rounded_to<Result>(sum[v]);
                                   store_pack((Result *)out + (int64_t)i * P::N + j, y);
                               }));
    else
        multiply_tile<P, Tile>(first, a, b, shared, [=](int i, int j, float sum) {
            ((Result *)out)[(int64_t)i * P::N + j] = rounded_to<Result>(sum);
        });
}

template <Kind KIND, class S, class Tile, int SLICES>
__device__ void compute_product(const void *a, const void *b, void *out, float *side, int first = 0) {
    using T = Stored<typename Alone<Tile>::Type>;
    using P = typename ProductOf<KIND, S, SLICES>::Type;
    extern __shared__ __align__(1024) char shared[];
    const T *x = (const T *)a, *y = (const T *)b;
    if constexpr (KIND == FORWARD)
        multiply_and_store<P, Tile, KIND, (S::n < 64)>(
            first, window<S::size, S::size, S::c, typename S::Forward, typename S::Forward>(x),
            transposed(matrix<P::K>(y)), shared, out, side);
    else if constexpr (KIND == DATA)
        multiply_and_store<P, Tile, KIND, (S::n < 64)>(
            first, window<S::out, S::out, S::o, typename S::Backward, typename S::Backward>(x),
            filter<S::o, S::taps, S::c>(y), shared, out, side);
    else if constexpr (KIND == WEIGHTS) {
        auto images = window<S::size, S::size, S::c, typename S::Forward, typename S::Forward>(y);
        int begin = blockIdx.y * P::K;
        multiply_and_store<P, Tile, KIND, (S::n < 64)>(first, transposed(rows_from(matrix<S::o>(x), begin)),
                                                       rows_from(images, begin), shared, out, side);
    } else if constexpr (KIND == NN)
        multiply_and_store<P, Tile, KIND, (S::n < 64)>(first, matrix<P::K>(x), matrix<P::N>(y), shared, out, side);
    else if constexpr (KIND == NT)
        multiply_and_store<P, Tile, KIND, (S::n < 64)>(first, matrix<P::K>(x), transposed(matrix<P::K>(y)), shared, out,
                                                       side);
    else
        multiply_and_store<P, Tile, KIND, (S::n < 64)>(first, transposed(matrix<P::rows>(x)), matrix<P::N>(y), shared,
                                                       out, side);
}

template <Kind KIND, class S, class Tile, int SLICES>
__global__ void __launch_bounds__(THREADS) product_kernel(const void *a, const void *b, void *out, float *side) {
    compute_product<KIND, S, Tile, SLICES>(a, b, out, side);
}
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <Kind KIND, class S, class Tile, int SLICES>
__global__ void __cluster_dims__(TURN_BLOCKS) __launch_bounds__(TURN_THREADS, 1)
    product_in_turns(const void *a, const void *b, void *out, float *side, int first) {
    compute_product<KIND, S, Tile, SLICES>(a, b, out, side, first);
}
#else
template <Kind KIND, class S, class Tile, int SLICES>
__global__ void __launch_bounds__(THREADS)
    product_in_turns(const void *a, const void *b, void *out, float *side, int first) {
    compute_product<KIND, S, Tile, SLICES>(a, b, out, side, first);
}
#endif

// In clusters of CLUSTER blocks, where code has them.
template <Kind KIND, class S, class Tile, int SLICES, int CLUSTER>
static int launch(const void *a, const void *b, void *out, float *side, cudaStream_t stream) {
    using P = typename ProductOf<KIND, S, SLICES>::Type;
    constexpr int tiles = product_tiles<P, Tile>(), shared = product_shared<P, Tile>();
    const void *kernel;
    if constexpr (takes_turns<Tile>)
        kernel = (const void *)product_in_turns<KIND, S, Tile, SLICES>;
    else
        kernel = (const void *)product_kernel<KIND, S, Tile, SLICES>;
    Launch launch = {kernel, tiles, shared, shared, false, takes_turns<Tile>};
    launch.cluster = CLUSTER;
    int first = 0;
    void *arguments[] = {&a, &b, &out, &side, &first};
    cudaLaunchConfig_t config = {}, mapping = {};
    cudaLaunchAttribute attributes[1];
    config.stream = stream;
    config.attrs = attributes;
    cudaError_t known;
    const Compiled compiled = Compiled::of(kernel, &known);
    return Attempt{known}
        .then([&] { return size_launch(launch, compiled, tiles, &config); })
        .then([&] {
            if (CLUSTER == 1 || !compiled.has_instructions_of_sm_90())
                return cudaSuccess;
            cudaError_t error = ask_for_cluster(launch, &config, attributes);
            return error == cudaSuccess && !config.numAttrs ? cudaErrorInvalidClusterSize : error;
        })
        .then([&] {
            if (!takes_turns<Tile> || !compiled.in_clusters)
                return cudaSuccess;
            mapping = config;
            mapping.gridDim = TURN_BLOCKS;
            first = MAPS_ONLY;
            return cudaLaunchKernelExC(&mapping, kernel, arguments);
        })
        .then([&] {
            first = 0;
            config.gridDim.y = SLICES / P::slices;
            return cudaLaunchKernelExC(&config, kernel, arguments);
        })
        .error;
}

struct Case {
    int kind, n, size, c, o, kernel, stride, slices, bytes, tile_m, tile_n, warps_m, warps_n, stages, terms, whole,
        parts, cluster;
    int (*launch)(const void *, const void *, void *, float *, cudaStream_t);
};

template <Kind KIND, class S, class Tile, int SLICES = 1, int CLUSTER = splits_of<Tile>()>
static constexpr Case make() {
    using Warps = typename Alone<Tile>::Type;
    return {KIND,
            S::n,
            S::size,
            S::c,
            S::o,
            S::kernel,
            S::stride,
            SLICES,
            sizeof(typename Tile::Element),
            Tile::m,
            Tile::n,
            Warps::warps_m,
            Warps::warps_n,
            Tile::stages,
            Warps::terms,
            is_integer<typename Tile::Element>,
            splits_of<Tile>(),
            CLUSTER,
            launch<KIND, S, Tile, SLICES, CLUSTER>};
}
/* A block by itself, where a tile is the work of several. */
template <Kind KIND, class S, class Tile> static constexpr Case make_alone() {
    return make<KIND, S, Tile, 1, 1>();
}

template <int M, int N, int WM, int WN, int STAGES, int PARTS = 1>
using Bf16 = TensorTile<M, N, 64, WM, WN, STAGES, bfloat16, PARTS>;
using Turns = TurnTile<128, 128, 64, 6, bfloat16>;
using Int8Turns = TurnTile<128, 128, 128, 6, Integer>;
using Fp8Turns = TurnTile<128, 128, 128, 6, e4m3>;
template <int M, int N, bool EARLY = true> using Few = FewTile<M, N, EARLY>;
template <int M, int N, int WM, int WN, int STAGES, int PARTS = 1>
using Tf32 = TensorTile<M, N, 32, WM, WN, STAGES, float, PARTS>;
template <int M, int N, int WM, int WN, int STAGES> using Tf32x3 = TensorTile<M, N, 32, WM, WN, STAGES, tf32x3>;
template <int M, int N, int WM, int WN, int STAGES> using Int8 = TensorTile<M, N, 128, WM, WN, STAGES, Integer>;
template <int M, int N, int WM, int WN, int STAGES> using Fp8 = TensorTile<M, N, 128, WM, WN, STAGES, e4m3>;

static const Case cases[] = {
#include CASES
};

extern "C" int case_count() {
    return sizeof cases / sizeof *cases;
}
extern "C" const Case *case_at(int i) {
    return &cases[i];
}
