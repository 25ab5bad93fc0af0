/* Schedules: how the phases of a step become launches.
 *
 * A generated program names its phases once for training and once for evaluation,
 *
 *     using Train = Step<Tensors, BATCH, REPORTS, Phase<train_1, 128, 16384>, Phase<train_2, 64, 0>, ...>;
 *
 * where train_1(tensors, batch, tile, shared, gate) computes tile `tile` of its phase's 128 tiles with 16384 bytes of
 * shared memory, and Tensors is made from a MtcRun and the arena. All tiles of a phase may run at the same time. The phase before is
 * done when gate() returns; what it does not write may be read ahead of that. There are two schedules:
 *
 *     Persistent   one launch for all steps, in one of three forms; block b takes the tiles b, b + grid, b + 2 grid ...
 *                  of every phase, and a barrier over all blocks ends the phase:
 *
 *                      block 0   | h | logits |  update  | h | logits |
 *                      block 1   | h | logits |  update  | h | logits |
 *                      block 2   | h |        |  update  | h |        |
 *
 *     Replayed     a CUDA graph with a node per phase, replayed: of several steps where they are short, and of a single
 *                  one for the rest. A node is launched while the one before still runs, and waits for its end.
 *
 * Everything is enqueued on the default stream. What can fail returns NULL or the device's error text. */
#ifndef MTC_CUDA_SCHEDULE_CUH
#define MTC_CUDA_SCHEDULE_CUH

#include "cuda/batch.cuh"
#include "cuda/gate.cuh"
#include "cuda/tile.cuh"

#include <algorithm>

/* Of the shared memory that tiles get: panels of tensor cores want it so. */
constexpr int SHARED_ALIGNMENT = 1024;

/* A single block runs so many tiles of a phase without a loop. */
constexpr int UNROLLED_TILES = 8;

/* The first SHARING tiles use the SHARED bytes of shared memory. A block goes on to the others while some of its threads
 * are still busy. In a launch of its own, it gets WANTED bytes where the device has so many (cuda/hold.cuh). */
template <auto BODY, int TILES, int SHARED, int SHARING = TILES, int WANTED = SHARED> struct Phase {
    using Kernel = Phase; // what is launched
    static constexpr int tiles = TILES, shared = SHARED, wanted = WANTED, again = 0;
    static constexpr bool beside = false, in_turns = false;
    static constexpr int resident = 0; // blocks that a multiprocessor must have registers for; 0: as nvcc decides

    template <class Tensors>
    static __device__ void run_tile(const Tensors &tensors, const Batch &batch, int tile, char *shared, Gate &gate) {
        BODY(tensors, batch, tile, shared, gate);
    }

    /* The calling block's share of the tiles. */
    template <Form FORM, class Tensors>
    static __device__ void run(const Tensors &tensors, const Batch &batch, char *shared, Gate &gate) {
        constexpr bool solo = FORM == Form::solo;
        const int first = solo ? 0 : blockIdx.x, stride = solo ? 1 : gridDim.x;
#pragma unroll(solo &&TILES <= UNROLLED_TILES ? TILES : 1)
        for (int tile = first; tile < TILES; tile += stride) {
            if (tile < SHARING && tile != first)
                __syncthreads(); // the tile before has left the shared memory
            run_tile(tensors, batch, tile, shared, gate);
        }
        gate();
    }
};

/* In a graph, long kernels of a phase are launches of their own, each with the registers and the shared memory that it
 * needs; all but the first are this. */
template <auto BODY, int TILES, int SHARED, int SHARING = TILES, int WANTED = SHARED>
struct Beside : Phase<BODY, TILES, SHARED, SHARING, WANTED> {
    using Kernel = Beside;
    static constexpr bool beside = true;
};

/* The launch of one product whose tiles are TurnTiles. */
template <class First> struct InTurns : First {
    using Kernel = InTurns;
    static constexpr bool in_turns = true;
};

/* A launch that does little else than read, of so few tiles that a multiprocessor gets BLOCKS of them. Left alone, nvcc leaves
 * registers for more blocks, and has a thread wait for a few loads before it makes the next; but it is loads under way that
 * keep the memory busy. */
template <int BLOCKS, class First> struct Reading : First {
    using Kernel = Reading;
    static constexpr int resident = BLOCKS;
};

/* The same launch once more, AGAIN of them before. */
template <class First, int AGAIN> struct Again : First {
    using Kernel = typename First::Kernel;
    static constexpr int again = AGAIN;
};

/* What the launches of all phases have in common. */
template <class Tensors_, int BATCH, int REPORTS> struct Common {
    using Tensors = Tensors_;
    static constexpr int batch = BATCH, reports = REPORTS;
};

template <class Tensors, int BATCH, int REPORTS, class... Phases> struct Step : Common<Tensors, BATCH, REPORTS> {
    static constexpr int launches = sizeof...(Phases), shared = std::max({Phases::shared...});

    /* All phases, each behind the gate that the one before closes; `last` is called before the last gate closes. */
    template <Form FORM, class Last>
    static __device__ void run(const Tensors &tensors, const Batch &batch, char *shared, Gate &gate, Last last) {
        int phase = 0;
        ((Phases::template run<FORM>(tensors, batch, shared, gate), ++phase == launches ? last() : (void)0,
          gate.close()),
         ...);
    }
};

/* What the launches that follow work on; set on their stream. */
static __constant__ MtcRun current_run;

/* A tensor that begins `units` of 256 bytes behind the arena's start. */
template <class T> __device__ T *at_place(unsigned units) {
    return (T *)(current_run.arena + (int64_t)units * 256);
}

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

/* Compiled for sm_90 or later. What was compiled for an older one, as PTX, runs on newer devices too, without the
 * instructions that wait for another launch, or for a cluster. */
static inline bool has_instructions_of_sm_90(const void *kernel) {
    cudaFuncAttributes compiled = {};
    return cudaFuncGetAttributes(&compiled, kernel) == cudaSuccess && compiled.ptxVersion >= 90;
}

/* ---- a launch per phase ---- */

/* What a launch works on: a training step, or examples to evaluate; all tiles of a phase from one on. */
struct Work {
    bool training;
    int64_t at;         // steps ahead of the clock; or the first example
    int64_t rows, slot; // evaluation only
    int tile, end;      // of block 0; after the last block's
    bool beside;        // the launch before belongs to the same phase
    int again;          // launches of the same kernel before it
};

static inline __device__ Batch batch_of(const Work &work, int size, int reports) {
    const MtcRun &run = current_run;
    if (!work.training)
        return batch_of_examples(run, work.at, work.rows, work.slot, reports);
    const int64_t clock[3] = {run.clock[0], run.clock[1], run.clock[2]};
    return batch_of_step(run, clock, work.at, size, reports);
}

/* The calling block's tiles of a launch: those that it works on IN_TURNS, it takes in one go. A launch beside another starts
 * when all blocks of that one run, so that the phase before is complete; and ends only when that one has ended, so that who
 * waits for this one waits for both. */
template <class Common, class Phase, bool IN_TURNS> __device__ void run_launch(const Work &work) {
    extern __shared__ __align__(SHARED_ALIGNMENT) char shared[];
    if (work.beside)
        admit_next_launch();
    Gate gate = work.beside ? Gate() : Gate::of_launch();
    const typename Common::Tensors tensors(current_run, current_run.arena);
    Batch batch = batch_of(work, Common::batch, Common::reports);
    batch.again = work.again;
    int tile = work.tile + blockIdx.x;
    if constexpr (IN_TURNS)
        Phase::run_tile(tensors, batch, tile, shared, gate);
    else // one tile a block; as a loop, nvcc reads what does not depend on the tile first, and 1.2 us of a step are saved
        for (; tile < work.end; tile += gridDim.x)
            Phase::run_tile(tensors, batch, tile, shared, gate);
    if (work.beside)
        await_previous_launch();
}

template <class Common, class Phase>
__global__ void __launch_bounds__(THREADS, Phase::resident) phase_kernel(Work work) {
    run_launch<Common, Phase, false>(work);
}

/* Where the architecture has the instructions, clusters of larger blocks stay for many tiles; the host sees by the cluster
 * that the kernel asks for which of the two was compiled for its device. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <class Common, class Phase>
__global__ void __cluster_dims__(TURN_BLOCKS) __launch_bounds__(TURN_THREADS, 1) turns_kernel(Work work) {
    run_launch<Common, Phase, true>(work);
}
#else
template <class Common, class Phase> __global__ void __launch_bounds__(THREADS) turns_kernel(Work work) {
    run_launch<Common, Phase, false>(work);
}
#endif

static __global__ void advance_clock(int64_t steps) {
    current_run.clock[threadIdx.x] += steps;
}

/* What the host knows of a phase. */
struct Launch {
    const void *kernel;
    int tiles, shared, wanted;
    bool beside, in_turns;
    int again;
};

template <class Common, class Phase> const void *kernel_of() {
    if constexpr (Phase::in_turns)
        return (const void *)turns_kernel<Common, typename Phase::Kernel>;
    else
        return (const void *)phase_kernel<Common, typename Phase::Kernel>;
}

template <class Tensors, int BATCH, int REPORTS, class... Phases>
const Launch *launches_of(Step<Tensors, BATCH, REPORTS, Phases...>) {
    static const Launch launches[] = {{kernel_of<Common<Tensors, BATCH, REPORTS>, Phases>(), Phases::tiles,
                                       Phases::shared, Phases::wanted, Phases::beside, Phases::in_turns,
                                       Phases::again}...};
    return launches;
}

/* Bytes of shared memory: as many as the launch wants, or where the device has less, as it needs. */
static inline cudaError_t choose_shared(const Launch &launch, size_t *bytes) {
    *bytes = launch.wanted;
    cudaError_t error = allow_shared(launch.kernel, launch.wanted);
    if (error == cudaSuccess || launch.wanted == launch.shared)
        return error;
    cudaGetLastError(); // too much is no error of what follows
    *bytes = launch.shared;
    return allow_shared(launch.kernel, launch.shared);
}

/* Blocks, threads and shared memory of a launch of `tiles` tiles: a block for each; or, in turns, as many clusters as the
 * device holds at a time. */
static inline cudaError_t size_launch(const Launch &launch, int tiles, cudaLaunchConfig_t *config) {
    cudaFuncAttributes compiled = {};
    int clusters = 0;
    config->gridDim = tiles;
    config->blockDim = THREADS;
    if (!launch.in_turns)
        return choose_shared(launch, &config->dynamicSmemBytes);
    Attempt attempt;
    attempt.then([&] { return cudaFuncGetAttributes(&compiled, launch.kernel); });
    if (!compiled.requiredClusterWidth) {
        config->dynamicSmemBytes = TURN_SHARED_ALONE;
        return attempt.then([&] { return allow_shared(launch.kernel, TURN_SHARED_ALONE); }).error;
    }
    config->blockDim = TURN_THREADS;
    config->dynamicSmemBytes = launch.shared;
    attempt.then([&] { return allow_shared(launch.kernel, launch.shared); }).then([&] {
        return cudaOccupancyMaxActiveClusters(&clusters, launch.kernel, config);
    });
    config->gridDim = std::min(tiles, clusters * TURN_BLOCKS);
    return attempt.error;
}

/* `tiles` tiles. The launch may begin while the one before still runs, where it can wait for its end. */
static inline cudaError_t launch_tiles(const Launch &launch, Work work, int tiles, cudaStream_t stream) {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.stream = stream;
    work.end = work.tile + tiles;
    work.again = launch.again;
    void *arguments[] = {&work};
    return Attempt()
        .then([&] { return size_launch(launch, tiles, &config); })
        .then([&] {
            config.attrs = &early;
            config.numAttrs = has_instructions_of_sm_90(launch.kernel);
            return cudaLaunchKernelExC(&config, launch.kernel, arguments);
        })
        .error;
}

/* Phases 0 .. last. */
template <class Step> cudaError_t launch_phases(Work work, int last, cudaStream_t stream) {
    const Launch *launches = launches_of(Step());
    Attempt attempt;
    for (int k = 0, phase = -1; k < Step::launches; k++) {
        work.beside = launches[k].beside;
        phase += !work.beside;
        if (phase <= last)
            attempt.then([&] { return launch_tiles(launches[k], work, launches[k].tiles, stream); });
    }
    return attempt.error;
}

/* One training step, phases 0 .. last of it, counted from 0; the clock stays. */
template <class Step> const char *launch_until(const MtcRun *run, int last) {
    return Attempt()
        .then([&] { return set_run(run); })
        .then([&] { return launch_phases<Step>(Work{true}, last, nullptr); })
        .text();
}

template <class Step> const char *launch_evaluation(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    return Attempt()
        .then([&] { return set_run(run); })
        .then([&] {
            return launch_phases<Step>(Work{false, first, rows, slot}, Step::launches, nullptr);
        })
        .text();
}

/* The graph of what `enqueue` gives to a stream. */
template <class Enqueue> cudaError_t capture(cudaGraphExec_t *executable, Enqueue enqueue) {
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    Attempt attempt;
    attempt.then([&] { return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); })
        .then([&] { return cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal); })
        .then([&] { return enqueue(stream); })
        .then([&] { return cudaStreamEndCapture(stream, &graph); })
        .then([&] { return cudaGraphInstantiate(executable, graph, 0); });
    if (graph)
        cudaGraphDestroy(graph);
    if (stream)
        cudaStreamDestroy(stream);
    return attempt.error;
}

template <class Step> class Replayed {
    /* A graph's launch costs more than a short step takes; the nodes of a long one, more memory and time than that. */
    static constexpr int MOST_NODES = 256, MOST_STEPS = 16;
    static constexpr int UNROLLED = std::max(1, std::min(MOST_STEPS, MOST_NODES / Step::launches));
    cudaGraphExec_t many = nullptr, one = nullptr;

    static cudaError_t capture_steps(int steps, cudaGraphExec_t *executable) {
        return capture(executable, [&](cudaStream_t stream) {
            Attempt attempt;
            for (int ahead = 0; ahead < steps; ahead++)
                attempt.then([&] { return launch_phases<Step>(Work{true, ahead}, Step::launches, stream); });
            attempt.then([&] {
                advance_clock<<<1, 3, 0, stream>>>(steps);
                return cudaGetLastError();
            });
            return attempt.error;
        });
    }

public:
    const char *prepare() {
        return Attempt()
            .then([&] { return UNROLLED > 1 ? capture_steps(UNROLLED, &many) : cudaSuccess; })
            .then([&] { return capture_steps(1, &one); })
            .text();
    }

    const char *train(const MtcRun *run, int64_t steps) {
        Attempt attempt;
        attempt.then([&] { return set_run(run); });
        for (; many && steps >= UNROLLED; steps -= UNROLLED)
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

/* The examples of a batch on their way to a list in shared memory: read a step ahead, so that nothing waits for them. */
template <int BATCH> class Listing {
public:
    static constexpr bool listed = BATCH <= LISTED;
    using List = int[2][listed ? BATCH : 1];

private:
    static constexpr int each = listed ? (BATCH + THREADS - 1) / THREADS : 0;
    int (&list)[2][listed ? BATCH : 1];
    int example[each ? each : 1];
    int turn = 0;

public:
    __device__ explicit Listing(List &list) : list(list) {
    }
    __device__ void fetch(const Batch &batch) {
#pragma unroll
        for (int q = 0, i = threadIdx.x; q < each; q++, i += THREADS)
            if (i < BATCH)
                example[q] = (int)row(batch, i);
    }
    /* The batch that was fetched, read from the list that the batch in use does not lie in. */
    __device__ Batch lay(Batch batch) {
        if constexpr (listed) {
#pragma unroll
            for (int q = 0, i = threadIdx.x; q < each; q++, i += THREADS)
                if (i < BATCH)
                    list[turn][i] = example[q];
            batch.order = list[turn];
            batch.first = 0;
            batch.ordered = BATCH;
            turn = 1 - turn;
        }
        return batch;
    }
};

static inline __device__ void copy_by_block(void *to, const void *from, int bytes) {
    for (int i = threadIdx.x; i < bytes / (int)sizeof(int4); i += THREADS)
        ((int4 *)to)[i] = ((const int4 *)from)[i];
}

/* Bytes of shared memory; the arena comes first. */
template <class Step, Form FORM> __host__ __device__ constexpr int persistent_arena() {
    constexpr int bytes = (int)Step::Tensors::arena_bytes;
    return FORM == Form::solo ? (bytes + SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT * SHARED_ALIGNMENT : 0;
}
template <class Step, Form FORM> constexpr int persistent_shared() {
    return Step::shared + persistent_arena<Step, FORM>();
}

template <class Step, Form FORM> __global__ void __launch_bounds__(THREADS, 1) persistent_kernel(int64_t steps) {
    extern __shared__ __align__(SHARED_ALIGNMENT) char memory[];
    __shared__ typename Listing<Step::batch>::List examples; // of this step and the next
    constexpr bool solo = FORM == Form::solo;
    constexpr int arena_bytes = persistent_arena<Step, FORM>();
    const MtcRun &run = current_run;
    const int64_t clock[3] = {run.clock[0], run.clock[1], run.clock[2]};
    char *shared = memory + arena_bytes;
    if (solo)
        copy_by_block(memory, run.arena, (int)Step::Tensors::arena_bytes);
    typename Step::Tensors tensors(run, solo ? memory : run.arena);
    Listing<Step::batch> listing(examples);
    Gate gate(FORM);
    Batch coming = batch_of_step(run, clock, 0, Step::batch, Step::reports);
    listing.fetch(coming);
    Batch batch = listing.lay(coming);
    __syncthreads();
    for (int64_t s = 0; s < steps; s++) {
        if (Listing<Step::batch>::listed)
            __builtin_assume(batch.order != nullptr); // a question at each row makes its loads wait for one another
        if (s + 1 < steps) {
            coming = batch_after(coming, Step::batch, Step::reports);
            listing.fetch(coming);
        }
        Batch next;
        Step::template run<FORM>(tensors, batch, shared, gate, [&] { next = listing.lay(coming); });
        batch = next;
    }
    gate();
    if (solo)
        copy_by_block(run.arena, memory, (int)Step::Tensors::arena_bytes);
    if (blockIdx.x == 0 && threadIdx.x < 3)
        run.clock[threadIdx.x] += steps;
}

/* A device that cannot run FORM, because it has no clusters or too little shared memory, runs Form::grid: the tiles are
 * the same, and so are the results. */
template <class Step, Form FORM> class Persistent {
    int grid = 0;
    Form form = FORM;

    template <Form F> cudaError_t launch(int64_t steps) const {
        void *arguments[] = {&steps};
        cudaLaunchAttribute together = {};
        together.id = F == Form::cluster ? cudaLaunchAttributeClusterDimension : cudaLaunchAttributeCooperative;
        if (F == Form::cluster)
            together.val.clusterDim = {(unsigned)grid, 1, 1};
        else
            together.val.cooperative = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = grid;
        config.blockDim = THREADS;
        config.dynamicSmemBytes = persistent_shared<Step, F>();
        config.attrs = &together;
        config.numAttrs = 1;
        return cudaLaunchKernelExC(&config, (void *)persistent_kernel<Step, F>, arguments);
    }

    /* As many blocks as wanted, or as the device holds at a time. */
    template <Form F> cudaError_t prepare_form(int wanted, int device) {
        int processors = 0, each = 0;
        auto kernel = persistent_kernel<Step, F>;
        constexpr int shared = persistent_shared<Step, F>();
        Attempt attempt;
        attempt.then([&] { return cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device); })
            .then([&] { return allow_shared(kernel, shared); })
            .then([&] { return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, THREADS, shared); });
        grid = wanted < processors * each ? wanted : processors * each;
        if (F == Form::cluster && wanted > 8)
            attempt.then(
                [&] { return cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1); });
        return attempt.error;
    }

public:
    const char *prepare(int wanted) {
        int device = 0;
        cudaError_t error = cudaGetDevice(&device);
        if (FORM != Form::grid && error == cudaSuccess) {
            const auto *kernel = (const void *)persistent_kernel<Step, FORM>;
            if ((FORM != Form::cluster || has_instructions_of_sm_90(kernel)) &&
                prepare_form<FORM>(wanted, device) == cudaSuccess)
                return nullptr;
            cudaGetLastError(); // what FORM needed is no error of what follows
            form = Form::grid;
        }
        return Attempt()
            .then([&] { return error; })
            .then([&] { return prepare_form<Form::grid>(wanted, device); })
            .text();
    }

    const char *train(const MtcRun *run, int64_t steps) {
        unsigned none = 0;
        return Attempt()
            .then([&] { return set_run(run); })
            .then([&] { return cudaMemcpyToSymbolAsync(grid_arrivals, &none, sizeof none); })
            .then([&] { return form == FORM ? launch<FORM>(steps) : launch<Form::grid>(steps); })
            .text();
    }

    void release() {
    }
};

/* ---- the order of the examples ---- */

static __global__ void fill_orders(int *order, uint64_t seed, int64_t epoch, int64_t epochs, int64_t examples) {
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at < epochs * examples)
        order[at] = (int)mtc_permute(mtc_shuffle_key(seed, (uint64_t)(epoch + at / examples)), (uint32_t)examples,
                                     (uint32_t)(at % examples));
}

static inline const char *launch_shuffle(const MtcRun *run, int *order, int64_t epoch, int64_t epochs) {
    int64_t examples = run->data.examples, blocks = (epochs * examples + THREADS - 1) / THREADS;
    fill_orders<<<(unsigned)blocks, THREADS>>>(order, run->seed, epoch, epochs, examples);
    return Attempt().then([] { return cudaGetLastError(); }).text();
}

#endif
