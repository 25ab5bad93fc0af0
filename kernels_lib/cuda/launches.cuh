/* Launches: how a phase becomes one, and a step a graph of them.
 *
 * A kernel finds what it works on in the device's memory (current_run, set on the stream), so that a launch is the same each time and a graph
 * of launches may be replayed. Everything is enqueued on the default stream. What can fail returns NULL or the device's error text. */
#ifndef MTC_CUDA_LAUNCHES_CUH
#define MTC_CUDA_LAUNCHES_CUH

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
    int shard;          // shards behind the one that the clock shows
};

template <class Common> __device__ Batch batch_of(const Work &work) {
    const MtcRun &run = current_run;
    if (!work.training)
        return batch_of_examples(run, work.at, work.rows, work.slot, Common::reports);
    const int64_t clock[3] = {run.clock[0], run.clock[1], run.clock[2]};
    if constexpr (Common::whole > 0)
        return batch_of_shard(run, clock, work.at, work.shard, Common::batch, Common::whole, Common::reports);
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
    else if constexpr (Phase::one_tile) {
        if (tile < work.end)
            Phase::run_tile(tensors, batch, tile, shared, gate);
    } else // one tile a block; as a loop, nvcc reads what does not depend on the tile first, and 1.2 us of a step are saved
        for (; tile < work.end; tile += gridDim.x)
            Phase::run_tile(tensors, batch, tile, shared, gate);
    if (work.beside)
        await_previous_launch();
}

/* SHARED bytes are asked for, as the kernel's name says (tools/check_architectures). */
template <class Common, class Phase, int SHARED>
__global__ void __launch_bounds__(THREADS, smaller(Phase::resident, MOST_RESIDENT / THREADS)) phase_kernel(Work work) {
    run_launch<Common, Phase, false>(work);
}

/* Where the architecture has the instructions, clusters of larger blocks stay for many tiles; the host sees by the cluster
 * that the kernel asks for which of the two was compiled for its device. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <class Common, class Phase, int SHARED>
__global__ void __cluster_dims__(TURN_BLOCKS) __launch_bounds__(TURN_THREADS, 1) turns_kernel(Work work) {
    run_launch<Common, Phase, true>(work);
}
#else
template <class Common, class Phase, int SHARED> __global__ void __launch_bounds__(THREADS) turns_kernel(Work work) {
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
    bool beside, in_turns, early;
    int again, cluster;
    const Alike *kernels; // `kinds` of them
    int kinds;
};

template <class Common, class Phase> const void *kernel_of() {
    if constexpr (Phase::in_turns)
        return (const void *)turns_kernel<Common, typename Phase::Kernel, Phase::shared>;
    else
        return (const void *)phase_kernel<Common, typename Phase::Kernel, Phase::shared>;
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
                                 Phases::beside, Phases::in_turns, Phases::early, Phases::again, Phases::cluster,
                                 Phases::kernels, Phases::kinds}...};
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

/* `tiles` tiles. The launch may begin `early`, while the one before still runs, where it can wait for its end. */
static inline cudaError_t launch_tiles(const Launch &launch, Work work, int tiles, cudaStream_t stream,
                                       bool early = true) {
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = early && launch.early;
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

/* Phases first .. last. A kernel reads ahead of its gate what no phase of its own step writes: where launches of another kind come before
 * that may write it, the first does not begin `early`. */
template <class Step>
cudaError_t launch_phases(Work work, int first, int last, cudaStream_t stream, bool early = true) {
    const Launch *launches = launches_of(Step());
    Attempt attempt;
    for (int k = 0, phase = -1; k < Step::launches; k++) {
        work.beside = launches[k].beside;
        phase += !work.beside;
        if (phase >= first && phase <= last)
            attempt.then([&] {
                const bool begins = phase == first && !work.beside;
                return launch_tiles(launches[k], work, launches[k].tiles, stream, early || !begins);
            });
        work.maps += launches[k].in_turns;
    }
    return attempt.error;
}

/* One training step, phases from .. to - 1 of it, counted from 0; the clock stays. What comes before the first may have written what it
 * reads. */
template <class Step> const char *launch_between(const MtcRun *run, int from, int to) {
    Work work = {true};
    return Attempt()
        .then([&] { return set_run<Step>(run); })
        .then([&] { return find_maps<Step>(&work.maps); })
        .then([&] { return launch_phases<Step>(work, from, to - 1, nullptr, from == 0); })
        .text();
}

template <class Step> const char *launch_until(const MtcRun *run, int last) {
    return launch_between<Step>(run, 0, last + 1);
}

template <class Step> const char *launch_evaluation(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    Work work = {false, first, rows, slot};
    return Attempt()
        .then([&] { return set_run<Step>(run); })
        .then([&] { return find_maps<Step>(&work.maps); })
        .then([&] { return launch_phases<Step>(work, 0, Step::launches, nullptr); })
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

/* Graphs of a step's launches: of several steps where they are few, and of a single one for the rest. A graph's launch costs more
 * than a short step takes; the nodes of a long one, more memory and time than that. */
class Unrolled {
    static constexpr int MOST_NODES = 256, MOST_STEPS = 16;
    cudaGraphExec_t many = nullptr, one = nullptr;
    int unrolled = 1; // steps of the first

public:
    /* `enqueue(steps, stream)` gives so many steps, of `launches` each, to a stream. */
    template <class Enqueue> cudaError_t capture_all(int launches, Enqueue enqueue) {
        auto steps = [&](int count) {
            return [&enqueue, count](cudaStream_t stream) { return enqueue(count, stream); };
        };
        unrolled = std::max(1, std::min(MOST_STEPS, MOST_NODES / launches));
        return Attempt()
            .then([&] { return unrolled > 1 ? capture(&many, steps(unrolled)) : cudaSuccess; })
            .then([&] { return capture(&one, steps(1)); })
            .error;
    }

    cudaError_t launch(int64_t steps) const {
        Attempt attempt;
        for (; many && steps >= unrolled; steps -= unrolled)
            attempt.then([&] { return cudaGraphLaunch(many, nullptr); });
        for (; steps > 0; steps--)
            attempt.then([&] { return cudaGraphLaunch(one, nullptr); });
        return attempt.error;
    }

    void release() {
        if (many)
            cudaGraphExecDestroy(many);
        if (one)
            cudaGraphExecDestroy(one);
        many = one = nullptr;
    }
};

#endif
