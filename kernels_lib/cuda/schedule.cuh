/* Schedules: how the phases of a step become launches.
 *
 * A generated program names its phases once for training and once for evaluation,
 *
 *     using Train = Step<Tensors, BATCH, REPORTS, TRAIN_SHARED, Phase<train_1, 128>, Phase<train_2, 64>, ...>;
 *
 * where train_1(tensors, batch, tile, shared, gate) computes tile `tile` of its phase's tiles with TRAIN_SHARED bytes of
 * shared memory, and Tensors is made from a MtcRun. All tiles of a phase may run at the same time. The phase before is
 * done when gate() returns; what it does not write may be read ahead of that. There are two schedules:
 *
 *     Persistent   one cooperative launch for all steps; block b takes the tiles b, b + grid, b + 2 grid ... of every
 *                  phase, and a barrier over the grid ends the phase:
 *
 *                      block 0   | h | logits |  update  | h | logits |
 *                      block 1   | h | logits |  update  | h | logits |
 *                      block 2   | h |        |  update  | h |        |
 *
 *     Replayed     a CUDA graph of UNROLLED steps with a node per phase, replayed; one of a single step for the rest. A
 *                  node is launched while the one before still runs, and waits for its end.
 *
 * Everything is enqueued on the default stream. What can fail returns NULL or the device's error text. */
#ifndef MTC_CUDA_SCHEDULE_CUH
#define MTC_CUDA_SCHEDULE_CUH

#include "cuda/batch.cuh"
#include "cuda/team.cuh"

static __device__ unsigned grid_arrivals; // at the barriers of the running persistent kernel

/* Between two phases: a barrier over all blocks of a cooperative launch, in two halves. A block closes its gate when it
 * is done with a phase, and gate() returns when all have; at a gate that was never closed, at once. What needs no other
 * block's writes may be done between, for nothing. Arrivals are only ever added, so no block can take one round for
 * another; differences stay right when the count wraps. Behind the gate, plain loads see what any block wrote before. */
class Gate {
    unsigned target = 0;
    bool closed = false;

    __device__ bool all_arrived() const {
        unsigned arrived;
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(&grid_arrivals) : "memory");
        return (int)(arrived - target) >= 0;
    }

public:
    __device__ void close() {
        __syncthreads();
        closed = gridDim.x > 1;
        target += gridDim.x;
        if (closed && threadIdx.x == 0)
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(&grid_arrivals) : "memory");
    }
    __device__ void operator()() {
        if (!closed)
            return;
        while (threadIdx.x == 0 && !all_arrived())
            __nanosleep(20); // many waiting blocks hinder those that arrive
        __syncthreads();
        closed = false;
    }
};

template <auto BODY, int TILES> struct Phase {
    static constexpr int tiles = TILES;

    /* The calling block's share of the tiles. */
    template <class Tensors>
    static __device__ void run(const Tensors &tensors, const Batch &batch, char *shared, Gate &gate) {
        for (int tile = blockIdx.x; tile < TILES; tile += gridDim.x) {
            if (tile != blockIdx.x)
                __syncthreads(); // the tile before has left the shared memory
            BODY(tensors, batch, tile, shared, gate);
        }
        gate();
    }
};

template <class Tensors_, int BATCH, int REPORTS, int SHARED, class... Phases> struct Step {
    using Tensors = Tensors_;
    static constexpr int batch = BATCH, reports = REPORTS, shared = SHARED, phases = sizeof...(Phases);

    /* All phases, each behind the gate that the one before closes; `meanwhile` is called once, in the shade of one. */
    template <class Meanwhile>
    static __device__ void run(const Tensors &tensors, const Batch &batch, char *shared, Gate &gate,
                               Meanwhile meanwhile) {
        int phase = 0;
        ((Phases::run(tensors, batch, shared, gate), gate.close(), phase++ ? (void)0 : meanwhile()), ...);
    }
};

/* What the launches that follow work on; set on their stream. */
static __constant__ MtcRun current_run;

/* The first error of a sequence of calls: nothing runs after it. */
struct Attempt {
    cudaError_t error = cudaSuccess;

    template <class Call> Attempt &then(Call call) {
        if (error == cudaSuccess)
            error = call();
        return *this;
    }
    const char *text() const {
        return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
    }
};

static inline cudaError_t set_run(const MtcRun *run) {
    return cudaMemcpyToSymbolAsync(current_run, run, sizeof *run);
}

/* Beyond 48 KB, its own arrays counted in, a kernel gets shared memory only when it has been asked for. */
template <class Kernel> cudaError_t allow_shared(Kernel kernel, int bytes) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

/* ---- a launch per phase ---- */

/* What a phase works on: a training step, or examples to evaluate. */
struct Work {
    bool training;
    int64_t at;         // steps ahead of the clock; or the first example
    int64_t rows, slot; // evaluation only
};

static inline __device__ Batch batch_of(const Work &work, int size, int reports) {
    const MtcRun &run = current_run;
    if (!work.training)
        return batch_of_examples(run, work.at, work.rows, work.slot, reports);
    const int64_t clock[3] = {run.clock[0], run.clock[1], run.clock[2]};
    return batch_of_step(run, clock, work.at, size, reports);
}

/* Waits until the launch before has ended and its writes are seen; then lets the launch after start waiting. */
static inline __device__ void await_previous_launch() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

template <class Step, class Phase> __global__ void __launch_bounds__(THREADS) phase_kernel(Work work) {
    extern __shared__ __align__(16) char shared[];
    await_previous_launch();
    Gate open;
    Phase::run(typename Step::Tensors(current_run), batch_of(work, Step::batch, Step::reports), shared, open);
}

static __global__ void advance_clock(int64_t steps) {
    current_run.clock[threadIdx.x] += steps;
}

/* The launch may begin while the one before still runs, where the device can do so. */
template <class Step, class Phase> cudaError_t launch_phase(Work work, cudaStream_t stream) {
    int device = 0, major = 0;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = Phase::tiles;
    config.blockDim = THREADS;
    config.dynamicSmemBytes = Step::shared;
    config.stream = stream;
    config.attrs = &early;
    return Attempt()
        .then([&] { return cudaGetDevice(&device); })
        .then([&] { return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device); })
        .then([&] { return allow_shared(phase_kernel<Step, Phase>, Step::shared); })
        .then([&] {
            config.numAttrs = major >= 9;
            return cudaLaunchKernelEx(&config, phase_kernel<Step, Phase>, work);
        })
        .error;
}

/* Phases 0 .. last. */
template <class Tensors, int BATCH, int REPORTS, int SHARED, class... Phases>
cudaError_t launch_phases(Step<Tensors, BATCH, REPORTS, SHARED, Phases...>, Work work, int last, cudaStream_t stream) {
    using Whole = Step<Tensors, BATCH, REPORTS, SHARED, Phases...>;
    Attempt attempt;
    int phase = 0;
    (attempt.then([&] { return phase++ <= last ? launch_phase<Whole, Phases>(work, stream) : cudaSuccess; }), ...);
    return attempt.error;
}

/* One training step, phases 0 .. last of it, counted from 0; the clock stays. */
template <class Step> const char *launch_until(const MtcRun *run, int last) {
    return Attempt()
        .then([&] { return set_run(run); })
        .then([&] {
            return launch_phases(Step(), Work{true, 0, 0, 0}, last, nullptr);
        })
        .text();
}

template <class Step> const char *launch_evaluation(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    return Attempt()
        .then([&] { return set_run(run); })
        .then([&] {
            return launch_phases(Step(), Work{false, first, rows, slot}, Step::phases, nullptr);
        })
        .text();
}

template <class Step> class Replayed {
    static constexpr int UNROLLED = 16;
    cudaGraphExec_t many = nullptr, one = nullptr;

    static cudaError_t capture(int steps, cudaStream_t stream, cudaGraphExec_t *executable) {
        cudaGraph_t graph = nullptr;
        Attempt attempt;
        attempt.then([&] { return cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal); });
        for (int ahead = 0; ahead < steps; ahead++)
            attempt.then([&] { return launch_phases(Step(), Work{true, ahead, 0, 0}, Step::phases, stream); });
        attempt
            .then([&] {
                advance_clock<<<1, 3, 0, stream>>>(steps);
                return cudaGetLastError();
            })
            .then([&] { return cudaStreamEndCapture(stream, &graph); })
            .then([&] { return cudaGraphInstantiate(executable, graph, 0); });
        if (graph)
            cudaGraphDestroy(graph);
        return attempt.error;
    }

public:
    const char *prepare() {
        cudaStream_t stream = nullptr;
        Attempt attempt;
        attempt.then([&] { return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); })
            .then([&] { return capture(UNROLLED, stream, &many); })
            .then([&] { return capture(1, stream, &one); });
        if (stream)
            cudaStreamDestroy(stream);
        return attempt.text();
    }

    const char *train(const MtcRun *run, int64_t steps) {
        Attempt attempt;
        attempt.then([&] { return set_run(run); });
        for (; steps >= UNROLLED; steps -= UNROLLED)
            attempt.then([&] { return cudaGraphLaunch(many, nullptr); });
        for (; steps > 0; steps--)
            attempt.then([&] { return cudaGraphLaunch(one, nullptr); });
        return attempt.text();
    }

    void release() {
        if (many)
            cudaGraphExecDestroy(many);
        if (one)
            cudaGraphExecDestroy(one);
        many = one = nullptr;
    }
};

/* ---- persistent ---- */

/* Batches up to this size are listed in shared memory, so that finding a row costs nothing. */
constexpr int LISTED = 1024;

template <int BATCH> __device__ void list_examples(Batch &batch, int *list) {
    for (int i = threadIdx.x; i < BATCH; i += THREADS)
        list[i] = (int)row(batch, i);
    batch.order = list;
    batch.first = 0;
}

template <class Step> __global__ void __launch_bounds__(THREADS, 1) persistent_kernel(int64_t steps) {
    extern __shared__ __align__(16) char shared[];
    constexpr bool listed = Step::batch <= LISTED;
    __shared__ int examples[2][listed ? Step::batch : 1]; // of this step and the next
    const MtcRun &run = current_run;
    const int64_t clock[3] = {run.clock[0], run.clock[1], run.clock[2]};
    typename Step::Tensors tensors(run);
    Gate gate;
    auto batch_at = [&](int64_t ahead) {
        Batch batch = batch_of_step(run, clock, ahead, Step::batch, Step::reports);
        if constexpr (listed)
            list_examples<Step::batch>(batch, examples[ahead % 2]);
        return batch;
    };
    Batch batch = batch_at(0);
    __syncthreads();
    for (int64_t s = 0; s < steps; s++) {
        Batch next = batch;
        Step::run(tensors, batch, shared, gate, [&] {
            if (s + 1 < steps)
                next = batch_at(s + 1);
        });
        if (Step::phases == 1)
            __syncthreads(); // the list of examples is complete
        batch = next;
    }
    gate();
    if (blockIdx.x == 0 && threadIdx.x < 3)
        run.clock[threadIdx.x] += steps;
}

template <class Step> class Persistent {
    int grid = 0;

public:
    /* As many blocks as wanted, or as the device holds at a time. */
    const char *prepare(int wanted) {
        int device = 0, processors = 0, each = 0;
        auto kernel = persistent_kernel<Step>;
        Attempt attempt;
        attempt.then([&] { return cudaGetDevice(&device); })
            .then([&] { return cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device); })
            .then([&] { return allow_shared(kernel, Step::shared); })
            .then([&] { return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, THREADS, Step::shared); });
        grid = wanted < processors * each ? wanted : processors * each;
        return attempt.text();
    }

    const char *train(const MtcRun *run, int64_t steps) {
        void *arguments[] = {&steps}, *kernel = (void *)persistent_kernel<Step>;
        unsigned none = 0;
        return Attempt()
            .then([&] { return set_run(run); })
            .then([&] { return cudaMemcpyToSymbolAsync(grid_arrivals, &none, sizeof none); })
            .then([&] { return cudaLaunchCooperativeKernel(kernel, grid, THREADS, arguments, Step::shared, 0); })
            .text();
    }

    void release() {
    }
};

#endif
