/* Gates: what a block waits at for what others have written, in a persistent launch and between launches. */
#ifndef MTC_CUDA_GATE_CUH
#define MTC_CUDA_GATE_CUH

#include "cuda/cluster.cuh"

/* The blocks of a persistent launch. */
enum class Form {
    grid,    // as many as there are multiprocessors, at most; they meet at a counter in memory
    cluster, // up to 16 neighbours with a barrier in hardware: sm_90 and later
    solo     // a single one, with the arena in its shared memory while it runs
};

static __device__ unsigned grid_arrivals; // at the barriers of the running persistent kernel

/* Until the launch before has ended and its writes are seen. */
static inline __device__ void await_previous_launch() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* The launch after may start once all blocks of this one are here. */
static inline __device__ void admit_next_launch() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* Between two phases. In a persistent launch, a barrier over all its blocks, in two halves: a block closes its gate when it
 * is done with a phase, and gate() returns when all have; at a gate that was never closed, at once. What needs no other
 * block's writes may be done between, for nothing. Arrivals are only ever added, so no block can take one round for
 * another; differences stay right when the count wraps. Behind the gate, plain loads see what any block wrote before.
 *
 * In a launch per phase, gate() returns when the launch before has ended, and only then admits the launch after: whatever
 * runs ahead of a gate, all phases but the one before are complete. */
class Gate {
    Form form = Form::grid;
    unsigned target = 0;
    bool closed = false, behind_launch = false;

    __device__ bool all_arrived() const {
        unsigned arrived;
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(&grid_arrivals) : "memory");
        return (int)(arrived - target) >= 0;
    }

    __device__ void arrive_at_grid() {
        target += gridDim.x;
        if (threadIdx.x == 0)
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(&grid_arrivals) : "memory");
    }
    __device__ void await_grid() const {
        while (threadIdx.x == 0 && !all_arrived())
            __nanosleep(20); // many waiting blocks hinder those that arrive
        __syncthreads();
    }

public:
    Gate() = default;
    __device__ explicit Gate(Form form) : form(form) {
    }
    /* Of a launch that may begin while the one before still runs. */
    static __device__ Gate of_launch() {
        Gate gate;
        gate.behind_launch = true;
        return gate;
    }
    __device__ void close() {
        __syncthreads();
        closed = form != Form::solo && gridDim.x > 1;
        if (closed && form == Form::cluster)
            arrive_at_cluster();
        else if (closed)
            arrive_at_grid();
    }
    __device__ void operator()() {
        if (behind_launch) {
            await_previous_launch();
            admit_next_launch();
        }
        if (closed && form == Form::cluster)
            await_cluster();
        else if (closed)
            await_grid();
        closed = false;
    }
};

#endif
