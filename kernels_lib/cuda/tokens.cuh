/* Tokens one after the other: a graph of the launches that decode one, and of those that draw the next (cuda/draw.cuh), so that the device
 * goes on by itself. What is made of weights alone is made where a text begins, and stays. */
#ifndef MTC_CUDA_TOKENS_CUH
#define MTC_CUDA_TOKENS_CUH

#include "cuda/draw.cuh"

/* Graphs that are made when they are first asked for. */
class Tokens {
    cudaGraphExec_t graph[2][2] = {}; // of a token with which a text begins, or of another; the next one is drawn

    /* Without the first ONCE launches, where what they make is there. */
    template <class Step, int ONCE>
    static cudaError_t enqueue(bool begins, const MtcDrawing *drawing, OperandMaps *maps, cudaStream_t stream) {
        const Launch *launches = launches_of(Step());
        Work work = {false, 0, 1, 0};
        Attempt attempt;
        work.maps = maps;
        for (int k = 0; k < Step::launches; k++) {
            work.beside = launches[k].beside;
            if (begins || k >= ONCE)
                attempt.then([&] { return launch_tiles(launches[k], work, launches[k].tiles, stream); });
            work.maps += launches[k].in_turns;
        }
        return drawing ? attempt.then([&] { return launch_draw(drawing->tiles, drawing->texts, stream); }).error
                       : attempt.error;
    }

    template <class Step, int ONCE> cudaError_t launch(const MtcDrawing *drawing, bool begins, OperandMaps *maps) {
        cudaGraphExec_t *wanted = &graph[begins][drawing != nullptr];
        auto launches = [&](cudaStream_t stream) { return enqueue<Step, ONCE>(begins, drawing, maps, stream); };
        return Attempt()
            .then([&] { return *wanted ? cudaSuccess : capture(wanted, launches); })
            .then([&] { return cudaGraphLaunch(*wanted, nullptr); })
            .error;
    }

public:
    /* The token that the clock has. */
    template <class Step, int ONCE = 0> const char *decode(const MtcRun *run) {
        return draw<Step, ONCE>(run, nullptr, 1);
    }

    /* And those that are drawn after it. */
    template <class Step, int ONCE = 0> const char *draw(const MtcRun *run, const MtcDrawing *drawing, int64_t tokens) {
        OperandMaps *maps = nullptr;
        Attempt attempt;
        attempt.then([&] { return find_maps<Step>(&maps); }).then([&] { return set_run<Step>(run); });
        if (drawing)
            attempt.then([&] { return cudaMemcpyToSymbolAsync(current_drawing, drawing, sizeof *drawing); });
        for (int64_t n = 0; n < tokens; n++)
            attempt.then([&] { return launch<Step, ONCE>(drawing, run->begins && n == 0, maps); });
        return attempt.text();
    }

    void release() {
        for (auto &of_begin : graph)
            for (cudaGraphExec_t &one : of_begin) {
                if (one)
                    cudaGraphExecDestroy(one);
                one = nullptr;
            }
    }
};

#endif
