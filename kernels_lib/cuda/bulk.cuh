/* Panels of matrices copied to shared memory by the hardware (sm_90a): one thread asks, a barrier counts the bytes that have
 * arrived, and a copy may go to both blocks of a cluster at once. What a matrix in memory looks like, the hardware reads from
 * a map of 128 bytes. The maps of a product's operands are made by a launch of its kernel before all others, for whoever
 * multiplies them to read (make_maps in launches.cuh). */
#ifndef MTC_CUDA_BULK_CUH
#define MTC_CUDA_BULK_CUH

#include "cuda/tensor_panel.cuh"

constexpr int MAP_BYTES = 128, BOX = 64; // a copy is 64 rows of PANEL_ROW bytes

struct alignas(MAP_BYTES) MatrixMap {
    unsigned words[MAP_BYTES / 4];
};

/* Of a product's operands. */
struct OperandMaps {
    MatrixMap a, b;
};

/* A kernel that is told to work on this tile, or on one of its neighbours below 0, makes the maps of its operands instead. */
constexpr int MAPS_ONLY = -TURN_BLOCKS;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* ---- maps ---- */

/* What `global_stride` is given: bytes; of ptxas before CUDA 12.5, without their last four bits, which are 0. */
static inline __device__ int64_t stride_of_map(int64_t bytes) {
#if __CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ < 5
    return bytes >> 4;
#else
    return bytes;
#endif
}

/* Of a matrix of `rows` rows with `columns` numbers of one or two bytes, `pitch` of them from row to row, a multiple of 16 bytes; panels are
 * laid as in tensor_panel.cuh, with zeros for what is outside. By one thread, in shared memory. */
template <class T> __device__ void describe_matrix(MatrixMap *map, const T *numbers, int columns, int rows, int pitch) {
    constexpr int not_interleaved = 0, swizzle_128 = 3, zeros = 0, bytes = 0;
    constexpr int type = sizeof(T) == 1 ? bytes : NARROW_MAP, across = PANEL_ROW / (int)sizeof(T);
    unsigned at = shared_address(map);
    for (unsigned &word : map->words)
        word = 0;
    asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(at), "l"(numbers)
                 : "memory");
    asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" ::"r"(at) : "memory"); // less one
    asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(at), "r"(across) : "memory");
    asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(at), "r"(BOX) : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(at), "r"(columns)
                 : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(at), "r"(rows)
                 : "memory");
    asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"r"(at),
                 "l"(stride_of_map((int64_t)pitch * (int)sizeof(T)))
                 : "memory");
    asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, 1;" ::"r"(at) : "memory");
    asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, 1;" ::"r"(at) : "memory");
    asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], %1;" ::"r"(at), "n"(type) : "memory");
    asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], %1;" ::"r"(at),
                 "n"(not_interleaved)
                 : "memory");
    asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], %1;" ::"r"(at), "n"(swizzle_128)
                 : "memory");
    asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], %1;" ::"r"(at), "n"(zeros) : "memory");
}

/* By a warp: the map goes to memory, where the hardware can read it. */
static inline __device__ void publish_map(MatrixMap *to, const MatrixMap *from) {
    __syncwarp();
    asm volatile(
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(
            to),
        "r"(shared_address(from))
        : "memory");
}
/* By the thread that copies, before it does: the map is what another launch has published. */
static inline __device__ void acquire_map(const MatrixMap *map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

/* ---- barriers ---- */

static inline __device__ void make_barrier(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/* The other block of the cluster, and the copying hardware, see the barriers that were made. */
static inline __device__ void show_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/* Until phase `phase` of the barrier, counted 0, 1, 0, 1 ..., is complete. */
static inline __device__ void await_phase(unsigned barrier, int phase) {
    unsigned done = 0;
    while (!done)
        asm volatile("{\n.reg .pred done;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, done;\n}"
                     : "=r"(done)
                     : "r"(barrier), "r"(phase)
                     : "memory");
}
/* Arrives, and announces so many bytes of copies. */
static inline __device__ void expect_bytes(unsigned barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/* At the same barrier in block `block` of the cluster. */
static inline __device__ void arrive_in(int block, unsigned barrier) {
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
                 "r"(block)
                 : "memory");
}

/* ---- copies ---- */

/* By one thread: the box whose first number is [row][column] of the matrix, to `to`; counted at `full`. */
static inline __device__ void copy_box(unsigned to, const MatrixMap *map, int column, int row, unsigned full) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            to),
        "l"(map), "r"(column), "r"(row), "r"(full)
        : "memory");
}
/* To the same place in both blocks of the cluster, each of which counts it. */
static inline __device__ void copy_box_to_both(unsigned to, const MatrixMap *map, int column, int row, unsigned full) {
    constexpr unsigned short both = 3;
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
                 "[%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(full), "h"(both)
                 : "memory");
}

#endif
#endif
