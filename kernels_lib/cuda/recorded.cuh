/* Launches that are the same each time, since what they are for lies in device memory: the position and token that text goes on
 * from, the shard of a batch. */
#ifndef MTC_CUDA_RECORDED_CUH
#define MTC_CUDA_RECORDED_CUH

#include "cuda/launches.cuh"

/* A graph of a program's launches that is made when it is first asked for; from then on all of them cost one. */
class Recorded {
    cudaGraphExec_t graph = nullptr;

public:
    template <class Step> const char *replay(const MtcRun *run, Work work = {false, 0, 1, 0}) {
        Attempt attempt;
        if (!graph)
            attempt.then([&] { return find_maps<Step>(&work.maps); }).then([&] {
                return capture(
                    &graph, [&](cudaStream_t stream) { return launch_phases<Step>(work, 0, Step::launches, stream); });
            });
        return attempt.then([&] { return set_run<Step>(run); })
            .then([&] { return cudaGraphLaunch(graph, nullptr); })
            .text();
    }

    void release() {
        if (graph)
            cudaGraphExecDestroy(graph);
        graph = nullptr;
    }
};

#endif
