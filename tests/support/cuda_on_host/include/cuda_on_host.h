/* Kernels on a machine without a GPU. The blocks of a launch run one after the other; the threads of a block are fibers, which run in
 * turns from barrier to barrier, in the order of their numbers. Code is that of sm_80: what clusters do, and wgmma, is not seen.
 *
 * What bin/nvcc makes of "asm" is a call of a function of namespace ptx, and of "f<<<...>>>(x)" a launch_on_host. */
#ifndef CUDA_ON_HOST_H
#define CUDA_ON_HOST_H

#include "cuda_runtime_api.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <functional>
#include <vector>

#define __host__
#define __device__
#define __global__
#define __constant__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_assume(condition) ((void)0)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {
    }
};
struct OnHostIndex {
    int x, y, z;
};
static OnHostIndex threadIdx, blockIdx, blockDim, gridDim;

#define VECTORS(T, name)                                                                                               \
    struct alignas(2 * sizeof(T)) name##2 {                                                                            \
        T x, y;                                                                                                        \
    };                                                                                                                 \
    struct alignas(4 * sizeof(T)) name##4 {                                                                            \
        T x, y, z, w;                                                                                                  \
    };                                                                                                                 \
    static inline name##2 make_##name##2(T x, T y) {                                                                   \
        return {x, y};                                                                                                 \
    }                                                                                                                  \
    static inline name##4 make_##name##4(T x, T y, T z, T w) {                                                         \
        return {x, y, z, w};                                                                                           \
    }
VECTORS(float, float)
VECTORS(int, int)
VECTORS(unsigned, uint)
#undef VECTORS

/* ---- fibers ---- */

namespace on_host {

constexpr int MOST_THREADS = 1024, LANES = 32, STACK = 256 << 10;
constexpr size_t SHARED = 256 << 10;

/* Who comes to a barrier of `here` and `turn` waits until all have come who have not ended. */
struct Barrier {
    int here = 0, turn = 0;
};

/* It waits while the barrier's turn is this one, and as many run: who ends may be the last that was waited for. */
struct Fiber {
    jmp_buf at;
    ucontext_t start;
    std::vector<char> stack;
    const Barrier *waits = nullptr;
    int turn, running;
    bool ended = true;
};

struct Block {
    Fiber fibers[MOST_THREADS];
    jmp_buf caller;
    std::function<void()> work;
    Barrier all, lanes[MOST_THREADS]; // of the threads of a warp, by the first that takes part
    char handed[MOST_THREADS][32]; // what a thread gives to the others of its warp
    char *shared;
    size_t shared_bytes = 0;
    int threads = 0, running = 0;
    long moves = 0; // of threads that have come to a barrier, passed one or ended

    /* 32 bits say where it is: that is what instructions take. */
    Block() {
        shared = (char *)mmap(nullptr, SHARED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
        if (shared == MAP_FAILED)
            abort();
    }
};
static Block &block() {
    static Block *const block = new Block;
    return *block;
}

static inline void yield() {
    Block &b = block();
    const OnHostIndex self = threadIdx;
    if (!_setjmp(b.fibers[self.x].at))
        _longjmp(b.caller, 1);
    threadIdx = self;
}

static void live() {
    for (;;) {
        Block &b = block();
        b.work();
        Fiber &self = b.fibers[threadIdx.x];
        self.ended = true;
        b.running--;
        b.moves++;
        yield();
    }
}

static inline void wait(const Barrier &barrier) {
    Fiber &self = block().fibers[threadIdx.x];
    self.waits = &barrier;
    self.turn = barrier.turn;
    self.running = block().running;
    yield();
    self.waits = nullptr;
}

static inline bool may_go_on(const Fiber &fiber) {
    return !fiber.ended &&
           !(fiber.waits && fiber.waits->turn == fiber.turn && fiber.running == block().running);
}

/* `expected()`: how many have not ended. */
template <class Expected> void meet(Barrier &barrier, Expected expected) {
    const int turn = barrier.turn;
    barrier.here++;
    block().moves++;
    while (barrier.turn == turn) {
        if (barrier.here >= expected()) {
            barrier.here = 0;
            barrier.turn++;
            break;
        }
        wait(barrier);
    }
    block().moves++;
}

static inline int lanes_left(unsigned mask) {
    const int warp = threadIdx.x / LANES * LANES;
    if (block().running == block().threads && warp + LANES <= block().threads)
        return __builtin_popcount(mask);
    int count = 0;
    for (int lane = 0; lane < LANES; lane++)
        count += (mask >> lane & 1) && warp + lane < block().threads && !block().fibers[warp + lane].ended;
    return count;
}

static inline void meet_lanes(unsigned mask) {
    const int warp = threadIdx.x / LANES * LANES;
    meet(block().lanes[warp + __builtin_ctz(mask)], [&] { return lanes_left(mask); });
}

static void resume(int t) {
    Block &b = block();
    Fiber &fiber = b.fibers[t];
    if (_setjmp(b.caller))
        return;
    threadIdx = {t, 0, 0};
    if (!fiber.stack.empty())
        _longjmp(fiber.at, 1);
    fiber.stack.resize(STACK);
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.data();
    fiber.start.uc_stack.ss_size = STACK;
    makecontext(&fiber.start, live, 0);
    setcontext(&fiber.start);
}

static void run_block() {
    Block &b = block();
    b.running = b.threads;
    for (int t = 0; t < b.threads; t++)
        b.fibers[t].ended = false;
    while (b.running) {
        const long moves = b.moves;
        for (int t = 0; t < b.threads; t++)
            if (may_go_on(b.fibers[t]))
                resume(t);
        if (moves == b.moves) {
            fprintf(stderr, "on_host: threads wait at barriers that others never come to\n");
            abort();
        }
    }
}

struct Shape {
    dim3 grid, block;
    size_t shared;
    Shape(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t = nullptr) : grid(grid), block(block), shared(shared) {
    }
};

/* A number that nobody wrote is none. */
static inline void run_launch(const Shape &shape, const std::function<void()> &kernel) {
    Block &b = block();
    b.work = kernel;
    b.threads = (int)shape.block.x;
    b.shared_bytes = shape.shared;
    blockDim = {(int)shape.block.x, 1, 1};
    gridDim = {(int)shape.grid.x, (int)shape.grid.y, 1};
    for (int y = 0; y < (int)shape.grid.y; y++)
        for (int x = 0; x < (int)shape.grid.x; x++) {
            memset(b.shared, 0xff, shape.shared);
            blockIdx = {x, y, 0};
            run_block();
        }
}

/* ---- graphs ---- */

using Nodes = std::vector<std::function<void()>>;
static Nodes *captured; // NULL: launches run at once

} // namespace on_host

typedef on_host::Nodes *cudaGraph_t;
typedef on_host::Nodes *cudaGraphExec_t;
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };

static inline void launch_on_host(on_host::Shape shape, std::function<void()> kernel) {
    auto launch = [=] { on_host::run_launch(shape, kernel); };
    if (on_host::captured)
        on_host::captured->push_back(launch);
    else
        launch();
}

static inline cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
    on_host::captured = new on_host::Nodes;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph) {
    *graph = on_host::captured;
    on_host::captured = nullptr;
    return cudaSuccess;
}
static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, int) {
    *executable = new on_host::Nodes(*graph);
    return cudaSuccess;
}
static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t) {
    for (const auto &node : *executable)
        node();
    return cudaSuccess;
}
static inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}
static inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    delete executable;
    return cudaSuccess;
}

/* ---- launches ---- */

enum cudaLaunchAttributeID {
    cudaLaunchAttributeCooperative,
    cudaLaunchAttributeClusterDimension,
    cudaLaunchAttributeProgrammaticStreamSerialization
};
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    union {
        int cooperative, programmaticStreamSerializationAllowed;
        struct {
            unsigned x, y, z;
        } clusterDim;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};
struct cudaFuncAttributes {
    int ptxVersion, requiredClusterWidth;
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaFuncAttributeNonPortableClusterSizeAllowed };

template <class Kernel> cudaError_t cudaFuncSetAttribute(Kernel, cudaFuncAttribute, int) {
    return cudaSuccess;
}
template <class Kernel> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, Kernel) {
    *attributes = {__CUDA_ARCH__ / 10, 0};
    return cudaSuccess;
}
static inline cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *, const cudaLaunchConfig_t *) {
    *clusters = 0;
    return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Kernel, int, size_t) {
    *blocks = 1;
    return cudaSuccess;
}
template <class T, class From>
cudaError_t cudaMemcpyToSymbolAsync(T &symbol, From *from, size_t bytes, size_t = 0,
                                    cudaMemcpyKind = cudaMemcpyHostToDevice, cudaStream_t = nullptr) {
    memcpy((void *)&symbol, from, bytes);
    return cudaSuccess;
}
template <class T> cudaError_t cudaGetSymbolAddress(void **address, T &symbol) {
    *address = (void *)&symbol;
    return cudaSuccess;
}

/* What a kernel takes cannot be seen of an address: that of a launch takes a Work (cuda/launches.cuh), a persistent one steps; of tokens
 * nothing. */
struct Work;
template <class Taken = Work>
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments) {
    const on_host::Shape shape(config->gridDim, config->blockDim, config->dynamicSmemBytes);
    if (!arguments) {
        launch_on_host(shape, [=] { ((void (*)())kernel)(); });
        return cudaSuccess;
    }
    const Taken taken = *(Taken *)arguments[0];
    launch_on_host(shape, [=] { ((void (*)(Taken))kernel)(taken); });
    return cudaSuccess;
}
static inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, void *kernel, void **arguments) {
    return cudaLaunchKernelExC<int64_t>(config, (const void *)kernel, arguments);
}

/* ---- what kernels call ---- */

static inline void __syncthreads() {
    on_host::meet(on_host::block().all, [] { return on_host::block().running; });
}
static inline void __syncwarp(unsigned mask = ~0u) {
    on_host::meet_lanes(mask);
}
static inline void __threadfence() {
}
static inline void __threadfence_system() {
}
static inline void __nanosleep(unsigned) {
    on_host::yield();
}

/* Calls read(given) when all lanes have given a value: given[lane] is that of each. */
template <class T, class Read> static void on_host_among_lanes(unsigned mask, const T &value, Read read) {
    auto &handed = on_host::block().handed;
    static_assert(sizeof value <= sizeof handed[0], "as much as a thread can give");
    memcpy(handed[threadIdx.x], &value, sizeof value);
    on_host::meet_lanes(mask);
    const int warp = threadIdx.x / 32 * 32;
    read([&](int lane) {
        T given;
        memcpy(&given, handed[warp + lane], sizeof given);
        return given;
    });
    on_host::meet_lanes(mask);
}
template <class T> static T on_host_from_lane(unsigned mask, T value, int lane) {
    T found;
    on_host_among_lanes(mask, value, [&](auto given) { found = given(lane); });
    return found;
}
template <class T> static T __shfl_sync(unsigned mask, T value, int lane, int = 32) {
    return on_host_from_lane(mask, value, lane % 32);
}
template <class T> static T __shfl_xor_sync(unsigned mask, T value, int distance, int = 32) {
    return on_host_from_lane(mask, value, (threadIdx.x ^ distance) % 32);
}
template <class T> static T __shfl_up_sync(unsigned mask, T value, int distance, int = 32) {
    const int lane = threadIdx.x % 32;
    return on_host_from_lane(mask, value, lane < distance ? lane : lane - distance);
}
template <class T> static T __shfl_down_sync(unsigned mask, T value, int distance, int = 32) {
    const int lane = threadIdx.x % 32;
    return on_host_from_lane(mask, value, lane + distance > 31 ? lane : lane + distance);
}
template <class T, class Tell> static unsigned on_host_lanes_that(unsigned mask, T value, Tell tell) {
    unsigned lanes = 0;
    on_host_among_lanes(mask, value, [&](auto given) {
        for (int lane = 0; lane < 32; lane++)
            lanes |= (mask >> lane & 1 && tell(given(lane)) ? 1u : 0u) << lane;
    });
    return lanes;
}
static inline unsigned __ballot_sync(unsigned mask, int condition) {
    return on_host_lanes_that(mask, condition, [](int other) { return other != 0; });
}
static inline int __any_sync(unsigned mask, int condition) {
    return __ballot_sync(mask, condition) != 0;
}
template <class T> static unsigned __match_any_sync(unsigned mask, T value) {
    return on_host_lanes_that(mask, value, [=](T other) { return other == value; });
}

static inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
static inline int __ffs(int x) {
    return __builtin_ffs(x);
}
static inline int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline unsigned __float_as_uint(float x) {
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float __uint_as_float(unsigned bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline int __float_as_int(float x) {
    return (int)__float_as_uint(x);
}
static inline float __int_as_float(int bits) {
    return __uint_as_float((unsigned)bits);
}
#define __expf expf
#define __log2f log2f
static inline float __fsqrt_rn(float x) {
    return sqrtf(x);
}
static inline float rsqrtf(float x) {
    return 1 / sqrtf(x);
}
static inline int __dp4a(int a, int b, int sum) {
    for (int k = 0; k < 32; k += 8)
        sum += (signed char)(a >> k) * (signed char)(b >> k);
    return sum;
}
template <class T> static T __ldcg(const T *from) {
    return *from;
}
template <class T> static T __ldg(const T *from) {
    return *from;
}
static inline size_t __cvta_generic_to_shared(const void *p) {
    return (size_t)p;
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const uint64_t bytes = (uint64_t)y << 32 | x;
    unsigned result = 0;
    for (int k = 0; k < 4; k++)
        result |= (unsigned)(bytes >> (selector >> 4 * k & 7) * 8 & 0xff) << 8 * k;
    return result;
}
template <class T, class Added> static T atomicAdd(T *to, Added value) {
    const T before = *to;
    *to += value;
    return before;
}
template <class T> static T atomicMax(T *to, T value) {
    const T before = *to;
    *to = std::max(before, value);
    return before;
}
template <class T> static T atomicMin(T *to, T value) {
    const T before = *to;
    *to = std::min(before, value);
    return before;
}
using std::max;
using std::min;

/* ---- instructions ---- */

namespace ptx {

[[noreturn]] static inline void unknown(const char *name) {
    fprintf(stderr, "on_host: %s is not known here\n", name);
    abort();
}

static inline void ex2_approx_ftz_f32(float &y, float x) {
    y = x < -126 ? 0 : exp2f(x);
}
static inline void rcp_approx_ftz_f32(float &y, float x) {
    y = 1 / x;
}
static inline void sqrt_approx_f32(float &y, float x) {
    y = sqrtf(x);
}
static inline void mov_b32(float &y, unsigned short upper) {
    y = __uint_as_float((unsigned)upper << 16);
}
static inline void mov_u32(int &bytes) {
    bytes = (int)on_host::block().shared_bytes;
}
static inline unsigned bf16_of(float x) {
    const unsigned bits = __float_as_uint(x);
    return x == x ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : 0x7fff;
}
static inline void cvt_rn_bf16x2_f32(unsigned &pair, float high, float low) {
    pair = bf16_of(high) << 16 | bf16_of(low);
}
static inline unsigned short f16_of(float x) {
    const _Float16 half = (_Float16)x;
    unsigned short bits;
    memcpy(&bits, &half, sizeof bits);
    return bits;
}
static inline float of_f16(unsigned bits) {
    const unsigned short half = (unsigned short)bits;
    _Float16 x;
    memcpy(&x, &half, sizeof x);
    return (float)x;
}
static inline void cvt_f32_f16(float &y, unsigned short bits) {
    y = of_f16(bits);
}
static inline void cvt_rn_f16_f32(unsigned short &bits, float x) {
    bits = f16_of(x);
}
static inline void cvt_rn_f16x2_f32(unsigned &pair, float high, float low) {
    pair = (unsigned)f16_of(high) << 16 | f16_of(low);
}
static inline void cvt_rna_tf32_f32(unsigned &bits, float x) {
    bits = (__float_as_uint(x) + 0x1000) & ~0x1fffu;
}

template <class T> static T *at(unsigned address) {
    return (T *)(uintptr_t)address;
}
static inline void ld_shared_b32(unsigned &word, unsigned address) {
    word = *at<unsigned>(address);
}
static inline void ld_shared_v4_b32(unsigned &a, unsigned &b, unsigned &c, unsigned &d, unsigned address) {
    const unsigned *words = at<unsigned>(address);
    a = words[0], b = words[1], c = words[2], d = words[3];
}
static inline void st_shared_b32(unsigned address, unsigned word) {
    *at<unsigned>(address) = word;
}
static inline void cp_async_ca_shared_global(unsigned to, const void *from, int bytes, int inside) {
    memset(at<char>(to), 0, (size_t)bytes);
    if (inside)
        memcpy(at<char>(to), from, (size_t)inside);
}
static inline void cp_async_cg_shared_global(unsigned to, const void *from, int bytes, int inside) {
    cp_async_ca_shared_global(to, from, bytes, inside);
}
static inline void createpolicy_fractional_L2_evict_first_b64(unsigned long long &policy) {
    policy = 0;
}
static inline void cp_async_cg_shared_global_L2_cache_hint(unsigned to, const void *from, unsigned long long,
                                                           int bytes) {
    memcpy(at<char>(to), from, (size_t)bytes);
}
static inline void cp_async_commit_group() {
}
static inline void cp_async_wait_group(int) {
}
static inline void ld_acquire_gpu_global_u32(unsigned &value, unsigned *from) {
    value = *from;
}
static inline void red_release_gpu_global_add_u32(unsigned *to) {
    ++*to;
}

/* Four matrices of 8 rows of 16 bytes: lane l says where row l % 8 of matrix l / 8 lies, and gets the numbers 2 (l % 4) and the next of row
 * l / 4 of each; transposed, of that column. */
template <bool TRANSPOSED> static void load_matrices(unsigned (&v)[4], unsigned address) {
    const int lane = threadIdx.x % 32;
    on_host_among_lanes(~0u, address, [&](auto row) {
        for (int m = 0; m < 4; m++) {
            unsigned short pair[2];
            for (int k = 0; k < 2; k++) {
                const int along = lane % 4 * 2 + k, down = lane / 4;
                pair[k] = TRANSPOSED ? at<unsigned short>(row(m * 8 + along))[down]
                                     : at<unsigned short>(row(m * 8 + down))[along];
            }
            memcpy(&v[m], pair, sizeof v[m]);
        }
    });
}
static inline void ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned &a, unsigned &b, unsigned &c, unsigned &d,
                                                            unsigned address) {
    unsigned v[4];
    load_matrices<false>(v, address);
    a = v[0], b = v[1], c = v[2], d = v[3];
}
static inline void ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(unsigned &a, unsigned &b, unsigned &c, unsigned &d,
                                                                  unsigned address) {
    unsigned v[4];
    load_matrices<true>(v, address);
    a = v[0], b = v[1], c = v[2], d = v[3];
}

/* What a lane has of both factors. */
struct Fragments {
    unsigned a[4], b[2];
};

/* sum[16 x 8] += a[16 x K] b[K x 8], each lane with its fragments. A word has PER numbers along k. */
template <int PER, class Sum, class Number>
static void multiply(Sum (&sum)[4], const Fragments &own, Number number) {
    const int lane = threadIdx.x % 32;
    on_host_among_lanes(~0u, own, [&](auto given) {
        for (int k = 0; k < 8 * PER; k++) {
            const int group = k / (4 * PER), word = k % (4 * PER) / PER, half = k % PER;
            const Fragments left = given(lane / 4 * 4 + word);
            for (int column = 0; column < 2; column++) {
                const Sum y = number(given((lane % 4 * 2 + column) * 4 + word).b[group], half);
                for (int row = 0; row < 2; row++)
                    sum[row * 2 + column] += number(left.a[group * 2 + row], half) * y;
            }
        }
    });
}

#define MULTIPLY(name, Sum, per, number)                                                                               \
    static inline void name(Sum &s0, Sum &s1, Sum &s2, Sum &s3, unsigned a0, unsigned a1, unsigned a2, unsigned a3,    \
                            unsigned b0, unsigned b1) {                                                                \
        Sum sum[4] = {s0, s1, s2, s3};                                                                                 \
        multiply<per>(sum, {{a0, a1, a2, a3}, {b0, b1}}, number);                                                      \
        s0 = sum[0], s1 = sum[1], s2 = sum[2], s3 = sum[3];                                                            \
    }
static inline float half_bf16(unsigned word, int k) {
    return __uint_as_float((word >> 16 * k) << 16);
}
static inline float half_f16(unsigned word, int k) {
    return of_f16(word >> 16 * k);
}
static inline float of_tf32(unsigned word, int) {
    return __uint_as_float(word & ~0x1fffu);
}
static inline int byte_s8(unsigned word, int k) {
    return (int8_t)(word >> 8 * k);
}
MULTIPLY(mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32, float, 2, half_bf16)
MULTIPLY(mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32, float, 2, half_f16)
MULTIPLY(mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32, float, 1, of_tf32)
MULTIPLY(mma_sync_aligned_m16n8k32_row_col_s32_s8_s8_s32, int, 4, byte_s8)
#undef MULTIPLY

} // namespace ptx

#endif
