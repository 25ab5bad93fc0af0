/* Schedules: how the phases of a step become launches.
 *
 * A generated program names its phases once for training and once for evaluation,
 *
 *     using Train = Step<Tensors, BATCH, REPORTS, Phase<Tensors, h, 128, 16384>, Phase<Tensors, train_2, 64, 0>, ...>;
 *
 * where h(tensors, batch, tile, shared, gate) computes tile `tile` of its phase's 128 tiles with 16384 bytes of
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
#include "cuda/bulk.cuh"
#include "cuda/compiled.cuh"
#include "cuda/fill.cuh"
#include "cuda/phase.cuh"

/* What the launches that follow work on; set on their stream. */
static __constant__ MtcRun current_run;

/* A tensor that begins `units` of 256 bytes behind the arena's start. */
template <class T> __device__ T *at_place(unsigned units) {
    return (T *)(current_run.arena + (int64_t)units * 256);
}

/* Tensors, each where a number of a table's row says. */
template <class... T> __device__ void begin_at(const unsigned *units, T *&...tensor) {
    int k = 0;
    ((tensor = at_place<T>(units[k++])), ...);
}

/* Rows of a table that go on evenly: row, row + every, ..., `times` of them. */
template <int columns> struct EvenRows {
    int row, every, times;
    long long begin[columns], step[columns];
};

/* A table that is made of such runs when it is compiled. */
template <class T, int rows, int columns> struct Places {
    T at[rows][columns] = {};

    Places() = default; // of the host's shadow
    template <int count> constexpr Places(const EvenRows<columns> (&runs)[count]) {
        for (const EvenRows<columns> &run : runs)
            for (int n = 0; n < run.times; n++)
                for (int k = 0; k < columns; k++)
                    at[run.row + n * run.every][k] = (T)(run.begin[k] + n * run.step[k]);
    }
};

/* ---- a launch per phase ---- */

/* What a launch works on: a training step, or examples to evaluate; all tiles of a phase from one on. */
struct Work {
    bool training;
    int64_t at;         // steps ahead of the clock; or the first example
    int64_t rows, slot; // evaluation only
    int tile, end;      // of block 0; after the last block's
    bool beside;        // the launch before belongs to the same phase
    int again;          // launches of the same kernel before it
    OperandMaps *maps;  // of the first launch in turns; or of this one
};

template <class Common> __device__ Batch batch_of(const Work &work) {
    const MtcRun &run = current_run;
    if (!work.training)
        return batch_of_examples(run, work.at, work.rows, work.slot, Common::reports);
    const int64_t clock[3] = {run.clock[0], run.clock[1], run.clock[2]};
    if constexpr (Common::whole > 0)
        return batch_of_shard(run, clock, Common::batch, Common::whole, Common::reports);
    else
        return batch_of_step(run, clock, work.at, Common::batch, Common::reports);
}

/* The calling block's tiles of a launch: those that it works on IN_TURNS, it takes in one go. A launch beside another starts
 * when all blocks of that one run, so that the phase before is complete; and ends only when that one has ended, so that who
 * waits for this one waits for both. */
template <class Common, class Phase, bool IN_TURNS> __device__ void run_launch(const Work &work) {
    extern __shared__ __align__(SHARED_ALIGNMENT) char shared[];
    if (work.beside)
        admit_next_launch();
    Gate gate = work.beside ? Gate() : Gate::of_launch();
    const typename Common::Tensors tensors{current_run, current_run.arena};
    Batch batch = batch_of<Common>(work);
    batch.again = work.again;
    batch.maps = work.maps;
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
__global__ void __launch_bounds__(THREADS, smaller(Phase::resident, MOST_RESIDENT / THREADS)) phase_kernel(Work work) {
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
    int again, cluster;
};

template <class Common, class Phase> const void *kernel_of() {
    if constexpr (Phase::in_turns)
        return (const void *)turns_kernel<Common, typename Phase::Kernel>;
    else
        return (const void *)phase_kernel<Common, typename Phase::Kernel>;
}

/* A kernel that is launched once more is told how often it was before. */
static inline bool count_again(Launch *launches, int count) {
    for (int k = 0; k < count; k++)
        for (int before = 0; before < k; before++)
            if (launches[before].kernel == launches[k].kernel)
                launches[k].again = launches[before].again + 1;
    return true;
}

template <class Common, class... Phases> const Launch *launches_in(Launches<Phases...>) {
    static Launch launches[] = {{kernel_of<Common, Phases>(), Phases::tiles, Phases::shared, Phases::wanted,
                                 Phases::beside, Phases::in_turns, Phases::again, Phases::cluster}...};
    static const bool counted = count_again(launches, sizeof...(Phases));
    (void)counted;
    return launches;
}

template <class Step> const Launch *launches_of(Step) {
    using In = Common<typename Step::Tensors, Step::batch, Step::reports, Step::whole>;
    return launches_in<In>(typename Step::List());
}

/* Bytes of shared memory: as many as the launch wants, or where the device has less, as its code needs. */
static inline cudaError_t choose_shared(const Launch &launch, const Compiled &compiled, size_t *bytes) {
    if (launch.wanted > launch.shared) {
        *bytes = launch.wanted;
        if (allow_shared(launch.kernel, launch.wanted) == cudaSuccess)
            return cudaSuccess;
        cudaGetLastError(); // too much is no error of what follows
    }
    *bytes = compiled.shared(launch.shared);
    return allow_shared(launch.kernel, (int)*bytes);
}

/* Blocks, threads and shared memory of a launch of `tiles` tiles: a block for each; or, in turns, as many clusters as the
 * device holds at a time. */
static inline cudaError_t size_launch(const Launch &launch, const Compiled &compiled, int tiles,
                                      cudaLaunchConfig_t *config) {
    int clusters = 0;
    config->gridDim = tiles;
    config->blockDim = THREADS;
    if (!launch.in_turns)
        return choose_shared(launch, compiled, &config->dynamicSmemBytes);
    if (!compiled.in_clusters) {
        config->dynamicSmemBytes = TURN_SHARED_ALONE;
        return allow_shared(launch.kernel, TURN_SHARED_ALONE);
    }
    config->blockDim = TURN_THREADS;
    config->dynamicSmemBytes = launch.shared;
    Attempt attempt;
    attempt.then([&] { return allow_shared(launch.kernel, launch.shared); }).then([&] {
        return cudaOccupancyMaxActiveClusters(&clusters, launch.kernel, config);
    });
    config->gridDim = std::min(tiles, clusters * TURN_BLOCKS);
    return attempt.error;
}

/* Asks for clusters, where the device can hold one: what works together else, works one after the other. */
static inline cudaError_t ask_for_cluster(const Launch &launch, cudaLaunchConfig_t *config,
                                          cudaLaunchAttribute *attributes) {
    constexpr int PORTABLE = 8; // blocks that all devices with clusters have
    cudaLaunchAttribute *cluster = &attributes[config->numAttrs];
    cudaLaunchConfig_t alone = *config;
    int clusters = 0;
    if (launch.cluster == 1)
        return cudaSuccess;
    cluster->id = cudaLaunchAttributeClusterDimension;
    cluster->val.clusterDim = {(unsigned)launch.cluster, 1, 1};
    alone.attrs = cluster;
    alone.numAttrs = 1;
    Attempt attempt;
    if (launch.cluster > PORTABLE)
        attempt.then(
            [&] { return cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1); });
    attempt.then([&] { return cudaOccupancyMaxActiveClusters(&clusters, launch.kernel, &alone); });
    config->numAttrs += attempt.error == cudaSuccess && clusters;
    cudaGetLastError(); // a cluster too large is no error of what follows
    return cudaSuccess;
}

/* `tiles` tiles. The launch may begin while the one before still runs, where it can wait for its end. */
static inline cudaError_t launch_tiles(const Launch &launch, Work work, int tiles, cudaStream_t stream) {
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.stream = stream;
    work.end = work.tile + tiles;
    work.again = launch.again;
    void *arguments[] = {&work};
    cudaError_t known;
    const Compiled compiled = Compiled::of(launch.kernel, &known);
    return Attempt{known}
        .then([&] { return size_launch(launch, compiled, tiles, &config); })
        .then([&] {
            config.attrs = attributes;
            config.numAttrs = compiled.has_instructions_of_sm_90();
            return config.numAttrs ? ask_for_cluster(launch, &config, attributes) : cudaSuccess;
        })
        .then([&] { return cudaLaunchKernelExC(&config, launch.kernel, arguments); })
        .error;
}

/* ---- the maps of operands that the hardware copies ---- */

/* Of each launch in turns. They say where operands lie, so that all sessions of a library would need others; a graph, which
 * sessions share, finds those of the arena that was set last, as it finds current_run. */
template <class Step> __device__ OperandMaps operand_maps[Step::in_turns + 1];

/* Before a capture begins. */
template <class Step> cudaError_t find_maps(OperandMaps **maps) {
    if constexpr (Step::in_turns > 0)
        return cudaGetSymbolAddress((void **)maps, operand_maps<Step>);
    return cudaSuccess;
}

/* By a cluster of the launch's own kernel, for only that knows its operands; where it works on tiles alone, it has no maps. */
static inline cudaError_t launch_maps(const Launch &launch, Work work) {
    cudaError_t known;
    const Compiled compiled = Compiled::of(launch.kernel, &known);
    cudaLaunchConfig_t config = {};
    config.gridDim = TURN_BLOCKS;
    config.blockDim = TURN_THREADS;
    config.dynamicSmemBytes = launch.shared;
    work.tile = MAPS_ONLY;
    work.again = launch.again;
    void *arguments[] = {&work};
    if (known != cudaSuccess || !compiled.in_clusters)
        return known;
    return Attempt()
        .then([&] { return allow_shared(launch.kernel, launch.shared); })
        .then([&] { return cudaLaunchKernelExC(&config, launch.kernel, arguments); })
        .error;
}

/* All maps of a step, one after the other. */
template <class Step> cudaError_t launch_all_maps(Work work) {
    const Launch *launches = launches_of(Step());
    Attempt attempt;
    for (int k = 0; k < Step::launches; k++)
        if (launches[k].in_turns) {
            attempt.then([&] { return launch_maps(launches[k], work); });
            work.maps++;
        }
    return attempt.error;
}

/* Maps of a step, where they are not there yet: once for an arena, on a device. */
template <class Step> cudaError_t make_maps(const MtcRun *run) {
    static const char *arena = nullptr;
    static int device = -1;
    int now = -1;
    Work work = {true};
    Attempt attempt;
    if constexpr (Step::in_turns > 0) {
        attempt.then([&] { return cudaGetDevice(&now); }).then([&] { return find_maps<Step>(&work.maps); });
        if (arena == run->arena && device == now)
            return attempt.error;
        attempt.then([&] { return launch_all_maps<Step>(work); });
        arena = attempt.error == cudaSuccess ? run->arena : nullptr;
        device = now;
    }
    return attempt.error;
}

template <class Step> cudaError_t set_run(const MtcRun *run) {
    return Attempt()
        .then([&] { return cudaMemcpyToSymbolAsync(current_run, run, sizeof *run); })
        .then([&] { return make_maps<Step>(run); })
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
        work.maps += launches[k].in_turns;
    }
    return attempt.error;
}

/* One training step, phases 0 .. last of it, counted from 0; the clock stays. */
template <class Step> const char *launch_until(const MtcRun *run, int last) {
    Work work = {true};
    return Attempt()
        .then([&] { return set_run<Step>(run); })
        .then([&] { return find_maps<Step>(&work.maps); })
        .then([&] { return launch_phases<Step>(work, last, nullptr); })
        .text();
}

template <class Step> const char *launch_evaluation(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    Work work = {false, first, rows, slot};
    return Attempt()
        .then([&] { return set_run<Step>(run); })
        .then([&] { return find_maps<Step>(&work.maps); })
        .then([&] { return launch_phases<Step>(work, Step::launches, nullptr); })
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
        Work work = {true};
        cudaError_t found = find_maps<Step>(&work.maps);
        return capture(executable, [&](cudaStream_t stream) {
            Attempt attempt{found};
            for (work.at = 0; work.at < steps; work.at++)
                attempt.then([&] { return launch_phases<Step>(work, Step::launches, stream); });
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
        attempt.then([&] { return set_run<Step>(run); });
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

/* The examples of a batch on their way to a list in shared memory, if there is ROOM: read a step ahead, so that nothing waits
 * for them. */
template <int BATCH, int ROOM> class Listing {
public:
    static constexpr bool listed = BATCH <= LISTED && shared_aligned(2 * BATCH * (int)sizeof(int)) <= ROOM;
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
    return FORM == Form::solo ? shared_aligned(bytes) : 0;
}
/* `most`: what code may use. */
template <class Step, Form FORM> __host__ __device__ constexpr int persistent_shared(int most) {
    return smaller(Step::shared, most) + persistent_arena<Step, FORM>();
}

template <class Step, Form FORM> __global__ void __launch_bounds__(THREADS, 1) persistent_kernel(int64_t steps) {
    extern __shared__ __align__(SHARED_ALIGNMENT) char memory[];
    using Examples = Listing<Step::batch, MOST_SHARED - persistent_shared<Step, FORM>(MOST_SHARED)>;
    __shared__ typename Examples::List examples; // of this step and the next
    constexpr bool solo = FORM == Form::solo;
    constexpr int arena_bytes = persistent_arena<Step, FORM>();
    const MtcRun &run = current_run;
    const int64_t clock[3] = {run.clock[0], run.clock[1], run.clock[2]};
    char *shared = memory + arena_bytes;
    if (solo)
        copy_by_block(memory, run.arena, (int)Step::Tensors::arena_bytes);
    typename Step::Tensors tensors{run, solo ? memory : run.arena};
    Examples listing(examples);
    Gate gate(FORM);
    Batch coming = batch_of_step(run, clock, 0, Step::batch, Step::reports);
    listing.fetch(coming);
    Batch batch = listing.lay(coming);
    __syncthreads();
    for (int64_t s = 0; s < steps; s++) {
        if (Examples::listed)
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

/* A device that cannot run FORM, because it has no such clusters or too little shared memory, runs Form::grid: the tiles are
 * the same, and so are the results. */
template <class Step, Form FORM> class Persistent {
    int grid = 0, shared = 0;
    Form form = FORM;

    /* `together`: what the configuration points to. */
    template <Form F> cudaLaunchConfig_t configure(cudaLaunchAttribute &together) const {
        together.id = F == Form::cluster ? cudaLaunchAttributeClusterDimension : cudaLaunchAttributeCooperative;
        if (F == Form::cluster)
            together.val.clusterDim = {(unsigned)grid, 1, 1};
        else
            together.val.cooperative = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = grid;
        config.blockDim = THREADS;
        config.dynamicSmemBytes = shared;
        config.attrs = &together;
        config.numAttrs = 1;
        return config;
    }

    template <Form F> cudaError_t launch(int64_t steps) const {
        void *arguments[] = {&steps};
        cudaLaunchAttribute together = {};
        cudaLaunchConfig_t config = configure<F>(together);
        return cudaLaunchKernelExC(&config, (void *)persistent_kernel<Step, F>, arguments);
    }

    /* The device can hold a cluster of all blocks. */
    cudaError_t find_cluster(const void *kernel) const {
        int clusters = 0;
        cudaLaunchAttribute together = {};
        cudaLaunchConfig_t config = configure<Form::cluster>(together);
        cudaError_t error = cudaOccupancyMaxActiveClusters(&clusters, kernel, &config);
        return error == cudaSuccess && !clusters ? cudaErrorInvalidClusterSize : error;
    }

    /* As many blocks as wanted, or as the device holds at a time. */
    template <Form F> cudaError_t prepare_form(int wanted, int device, const Compiled &compiled) {
        int processors = 0, each = 0;
        auto kernel = persistent_kernel<Step, F>;
        shared = persistent_shared<Step, F>(most_shared(compiled.architecture));
        Attempt attempt;
        attempt.then([&] { return cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device); })
            .then([&] { return allow_shared(kernel, shared); })
            .then([&] { return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, THREADS, shared); });
        grid = wanted < processors * each ? wanted : processors * each;
        if (F == Form::cluster && wanted > 8)
            attempt.then(
                [&] { return cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1); });
        if (F == Form::cluster)
            attempt.then([&] { return find_cluster((const void *)kernel); });
        return attempt.then([&] { return grid ? cudaSuccess : cudaErrorLaunchOutOfResources; }).error;
    }

public:
    const char *prepare(int wanted) {
        int device = 0;
        cudaError_t error = cudaGetDevice(&device), known;
        const Compiled compiled = Compiled::of((const void *)persistent_kernel<Step, FORM>, &known);
        error = error == cudaSuccess ? known : error;
        if (FORM != Form::grid && error == cudaSuccess) {
            if ((FORM != Form::cluster || compiled.has_instructions_of_sm_90()) &&
                prepare_form<FORM>(wanted, device, compiled) == cudaSuccess)
                return nullptr;
            cudaGetLastError(); // what FORM needed is no error of what follows
            form = Form::grid;
        }
        return Attempt()
            .then([&] { return error; })
            .then([&] { return prepare_form<Form::grid>(wanted, device, compiled); })
            .text();
    }

    const char *train(const MtcRun *run, int64_t steps) {
        unsigned none = 0;
        return Attempt()
            .then([&] { return set_run<Step>(run); })
            .then([&] { return cudaMemcpyToSymbolAsync(grid_arrivals, &none, sizeof none); })
            .then([&] { return form == FORM ? launch<FORM>(steps) : launch<Form::grid>(steps); })
            .text();
    }

    void release() {
    }
};

#endif
