/* Schedules: how the phases of a step become launches.
 *
 * A generated program names its phases once for training and once for evaluation,
 *
 *     using Train = Step<Tensors, BATCH, REPORTS, Phase<h>, Phase<d_h_weight, report_loss>, ...>;
 *
 * where h::run(tensors, batch, tile, shared, gate) computes tile `tile` of the kernel's h::tiles with h::shared_bytes of shared
 * memory, and Tensors is made from a MtcRun and the arena. All tiles of a phase may run at the same time. The phase before is
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

#include "cuda/launches.cuh"

template <class Step> class Replayed {
    Unrolled graphs;

    static cudaError_t enqueue(OperandMaps *maps, int steps, cudaStream_t stream) {
        Work work = {true};
        Attempt attempt;
        work.maps = maps;
        for (work.at = 0; work.at < steps; work.at++)
            attempt.then([&] { return launch_phases<Step>(work, 0, Step::launches, stream); });
        attempt.then([&] {
            advance_clock<<<1, 3, 0, stream>>>(steps);
            return cudaGetLastError();
        });
        return attempt.error;
    }

public:
    const char *prepare() {
        OperandMaps *maps = nullptr;
        return Attempt()
            .then([&] { return find_maps<Step>(&maps); })
            .then([&] {
                return graphs.capture_all(Step::launches,
                                          [&](int steps, cudaStream_t stream) { return enqueue(maps, steps, stream); });
            })
            .text();
    }

    const char *train(const MtcRun *run, int64_t steps) {
        return Attempt().then([&] { return set_run<Step>(run); }).then([&] { return graphs.launch(steps); }).text();
    }

    void release() {
        graphs.release();
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

/* SHARED: what a kernel's name says of its phases (tools/check_architectures). */
template <class Step, Form FORM, int SHARED = Step::shared>
__global__ void __launch_bounds__(THREADS, 1) persistent_kernel(int64_t steps) {
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
