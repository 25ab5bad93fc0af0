/* The launches of a token, which are the same for every token: position and token lie in device memory. */
#ifndef MTC_CUDA_RECORDED_CUH
#define MTC_CUDA_RECORDED_CUH

#include "cuda/schedule.cuh"

/* A program for one example, as a graph that is made when it is first asked for: a token costs a launch. */
class Recorded {
    cudaGraphExec_t graph = nullptr;

public:
    template <class Step> const char *replay(const MtcRun *run) {
        Attempt attempt;
        Work work = {false, 0, 1, 0};
        if (!graph)
            attempt.then([&] { return find_maps<Step>(&work.maps); }).then([&] {
                return capture(&graph,
                               [&](cudaStream_t stream) { return launch_phases<Step>(work, Step::launches, stream); });
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
