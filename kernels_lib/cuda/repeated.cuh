/* The kernels of a step one by one, for who measures them. */
#ifndef MTC_CUDA_REPEATED_CUH
#define MTC_CUDA_REPEATED_CUH

#include "cuda/launches.cuh"

/* What `count` kernels have of a launch, each `step` rows behind the one before it: `tiles` each, which come behind those of the parts of
 * that launch that are listed before them. */
struct Part {
    int kernel, launch, tiles, count = 1, step = 1;

    /* How many of them come before the kernel; -1: it is none of them. */
    int place_of(int row) const {
        const int behind = row - kernel;
        return behind >= 0 && behind % step == 0 && behind / step < count ? behind / step : -1;
    }
};

template <class Step> cudaError_t launch_part(const Part *parts, int kernel, OperandMaps *maps, cudaStream_t stream) {
    const Launch *launches = launches_of(Step());
    const Part *part = parts;
    Work work = {true};
    for (; part->place_of(kernel) < 0; part++)
        work.tile = part[1].launch == part->launch ? work.tile + part->count * part->tiles : 0;
    work.tile += part->place_of(kernel) * part->tiles;
    work.maps = maps;
    for (int k = 0; k < part->launch; k++)
        work.maps += launches[k].in_turns;
    return launch_tiles(launches[part->launch], work, part->tiles, stream);
}

/* One kernel of a training step again and again, the clock standing still: a graph of its launches, which is kept while
 * the same is asked for, so that its making is not measured. */
template <class Step> class Repeated {
    cudaGraphExec_t graph = nullptr;
    int kernel = 0;
    int64_t times = 0; // 0: there is no graph

    cudaError_t make(const Part *parts) {
        OperandMaps *maps = nullptr;
        cudaError_t found = find_maps<Step>(&maps);
        return capture(&graph, [&](cudaStream_t stream) {
            Attempt attempt{found};
            for (int64_t n = 0; n < times; n++)
                attempt.then([&] { return launch_part<Step>(parts, kernel, maps, stream); });
            return attempt.error;
        });
    }

public:
    const char *run(const MtcRun *run, const Part *parts, int wanted_kernel, int64_t wanted_times) {
        Attempt attempt;
        if (kernel != wanted_kernel || times != wanted_times) {
            release();
            kernel = wanted_kernel;
            times = wanted_times;
            attempt.then([&] { return make(parts); });
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
