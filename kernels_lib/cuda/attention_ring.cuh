/* The ring in shared memory by which blocks of rows reach a tile of attention: turn t finds what it works on at stage t % STAGES.
 *
 *     begin            once the first AHEAD turns are on their way
 *     await(t)         turn t is there
 *     publish(t)       what the calling thread has copied for turn t is there: before the next turn is asked for
 *     reuse(t)         nobody reads any more what lies where turn t will
 *     release(t)       the calling warp reads nothing of turn t any more
 *     take_turn        the tensor cores are the calling group's until give_turn; first, after open_turns, those of group 0
 *
 * All threads copy. Where a block works in step, a barrier of all does for each turn. Two groups of four warps work out of
 * step instead, the one on the softmax while the other has the tensor cores: a barrier in shared memory for each stage counts
 * the warps that have brought it, another those that have read it. Turns at the tensor cores keep the groups apart. */
#ifndef MTC_CUDA_ATTENTION_RING_CUH
#define MTC_CUDA_ATTENTION_RING_CUH

#include "cuda/bulk.cuh"
#include "cuda/tensor_group.cuh"

constexpr int RING_AHEAD = 2;

/* Of its barriers. */
template <int STAGES> constexpr int ring_bytes = 2 * STAGES *(int)sizeof(uint64_t);

template <int STAGES> struct StepRing {
    static_assert(STAGES > RING_AHEAD, "a stage is in use");

    __device__ explicit StepRing(unsigned) {
    }
    __device__ void begin() const {
    }
    __device__ void await(int) const {
        await_copies<RING_AHEAD - 1>();
        __syncthreads();
    }
    __device__ void publish(int) const {
    }
    __device__ void reuse(int) const {
    }
    __device__ void release(int) const {
    }
    __device__ void open_turns() const {
    }
    __device__ void take_turn() const {
    }
    __device__ void give_turn(bool) const {
    }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <int STAGES> class GroupRing {
    static_assert(STAGES > RING_AHEAD, "a stage is in use");
    unsigned barriers; // of stages that are full, then of those that are empty

    __device__ unsigned full(int turn) const {
        return barriers + turn % STAGES * 8;
    }
    __device__ unsigned empty(int turn) const {
        return full(turn) + STAGES * 8;
    }
    static __device__ int phase(int turn) {
        return turn / STAGES % 2;
    }
    static __device__ void arrive(unsigned barrier) {
        __syncwarp();
        if (threadIdx.x % LANES == 0)
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
    }
    static __device__ int group() {
        return __shfl_sync(~0u, threadIdx.x / GROUP_THREADS, 0);
    }
    template <int PENDING> __device__ void publish_but(int turn) const {
        await_copies<PENDING>();
        show_to_tensor_cores();
        arrive(full(turn));
    }

public:
    __device__ explicit GroupRing(unsigned at) : barriers(at) {
    }
    __device__ void begin() const {
        if (threadIdx.x == 0)
            for (int barrier = 0; barrier < 2 * STAGES; barrier++)
                make_barrier(barriers + barrier * 8, WARPS);
        __syncthreads();
        publish_but<RING_AHEAD - 1>(0);
    }
    __device__ void await(int turn) const {
        await_phase(full(turn), phase(turn));
    }
    __device__ void publish(int turn) const {
        publish_but<0>(turn);
    }
    __device__ void reuse(int turn) const {
        await_phase(empty(turn), phase(turn) ^ 1);
    }
    __device__ void release(int turn) const {
        arrive(empty(turn));
    }
    __device__ void open_turns() const {
        if (group() == 1)
            give_turn(true);
    }
    __device__ void take_turn() const {
        asm volatile("bar.sync %0, %1;" ::"r"(1 + group()), "n"(THREADS) : "memory");
    }
    /* To the other group, which takes it; group 0 has had all of its own unless there is `another`. */
    __device__ void give_turn(bool another) const {
        if (another || group() == 0)
            asm volatile("bar.arrive %0, %1;" ::"r"(2 - group()), "n"(THREADS) : "memory");
    }
};
#else
template <int STAGES> using GroupRing = StepRing<STAGES>; // never used
#endif

#endif
