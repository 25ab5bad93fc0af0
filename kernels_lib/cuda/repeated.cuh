/* The kernels of a step one by one, for who measures them. */
#ifndef MTC_CUDA_REPEATED_CUH
#define MTC_CUDA_REPEATED_CUH

#include "cuda/launches.cuh"

/* One of the kernels of a launch: from tile `tile` on. */
struct Part {
    int tile, tiles;
};

/* The kernel with this number among those of the launch; else the number that it has behind them. */
static inline bool has_kernel(const Launch &launch, int *number, Part *part) {
    *part = {0, 0};
    for (int k = 0; k < launch.kinds; k++) {
        const Alike &alike = launch.kernels[k];
        if (*number < alike.count) {
            *part = {part->tile + *number * alike.tiles, alike.tiles};
            return true;
        }
        *number -= alike.count;
        part->tile += alike.count * alike.tiles;
    }
    return false;
}

/* Kernels are counted through all launches: kernel_table has them in this order. */
template <class Step> cudaError_t launch_kernel(int number, OperandMaps *maps, cudaStream_t stream) {
    const Launch *launch = launches_of(Step());
    Part part;
    Work work = {true};
    work.maps = maps;
    for (; !has_kernel(*launch, &number, &part); launch++)
        work.maps += launch->in_turns;
    work.tile = part.tile;
    return launch_tiles(*launch, work, part.tiles, stream);
}

/* One kernel of a training step again and again, the clock standing still: a graph of its launches, which is kept while
 * the same is asked for, so that its making is not measured. */
template <class Step> class Repeated {
    cudaGraphExec_t graph = nullptr;
    int kernel = 0;
    int64_t times = 0; // 0: there is no graph

    cudaError_t make() {
        OperandMaps *maps = nullptr;
        cudaError_t found = find_maps<Step>(&maps);
        return capture(&graph, [&](cudaStream_t stream) {
            Attempt attempt{found};
            for (int64_t n = 0; n < times; n++)
                attempt.then([&] { return launch_kernel<Step>(kernel, maps, stream); });
            return attempt.error;
        });
    }

public:
    const char *run(const MtcRun *run, int wanted_kernel, int64_t wanted_times) {
        Attempt attempt;
        if (kernel != wanted_kernel || times != wanted_times) {
            release();
            kernel = wanted_kernel;
            times = wanted_times;
            attempt.then([&] { return make(); });
        }
        return attempt.then([&] { return set_run<Step>(run); })
            .then([&] { return cudaGraphLaunch(graph, nullptr); })
            .text();
    }

    void release() {
        if (graph)
            cudaGraphExecDestroy(graph);
        graph = nullptr;
        times = 0;
    }
};

#endif
