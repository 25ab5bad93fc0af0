/* Training steps of which each GPU of a host computes one shard: CUDA graphs, in which the GPUs meet without their hosts. */
#ifndef MTC_CUDA_AMONG_CUH
#define MTC_CUDA_AMONG_CUH

#include "cuda/peers.cuh"

/* What a program's table has of them. */
struct Exchanges {
    const MtcExchange *at = nullptr;
    int count = 0;
    Exchanges() = default;
    template <int COUNT> Exchanges(const MtcExchange (&table)[COUNT]) : at(table), count(COUNT) {
    }
};

/* Steps of which each GPU computes one shard. */
class AmongPeers {
    Unrolled graphs;
    int count = 0; // of the peers that the graphs are for

    /* With the maps of operands that were found before, so many steps ahead of the clock. */
    template <class Step>
    static cudaError_t enqueue_phases(OperandMaps *maps, int64_t ahead, int first, int last, cudaStream_t stream) {
        Work work = {true, ahead};
        work.maps = maps;
        return launch_phases<Step>(work, first, last, stream, false);
    }

    /* All phases of a shard, and the sums that they read on the way. */
    template <class Shard>
    static cudaError_t enqueue_shard(const MtcPeers &peers, const Exchanges &exchanges, OperandMaps *maps,
                                     int64_t ahead, cudaStream_t stream) {
        Attempt attempt;
        int first = 0;
        for (int k = 0; k < exchanges.count; k++) {
            const MtcExchange &sum = exchanges.at[k];
            if (sum.phase > first)
                attempt.then([&] { return enqueue_phases<Shard>(maps, ahead, first, sum.phase - 1, stream); });
            attempt.then([&] { return launch_peer_sums(peers, sum.offset, sum.count * sizeof(float), stream); });
            first = sum.phase;
        }
        return attempt.then([&] { return enqueue_phases<Shard>(maps, ahead, first, Shard::launches, stream); }).error;
    }

    template <class Shard, class Update>
    cudaError_t capture_steps(const MtcPeers &peers, const Exchanges &exchanges, OperandMaps *const (&maps)[2]) {
        auto enqueue = [&](int steps, cudaStream_t stream) {
            Attempt attempt;
            for (int step = 0; step < steps; step++)
                attempt.then([&] { return enqueue_shard<Shard>(peers, exchanges, maps[0], step, stream); })
                    .then([&] { return launch_peer_sums(peers, peers.offset, peers.bytes, stream); })
                    .then([&] { return enqueue_phases<Update>(maps[1], step, 0, Update::launches, stream); });
            return attempt
                .then([&] {
                    advance_clock<<<1, 3, 0, stream>>>(steps);
                    return cudaGetLastError();
                })
                .error;
        };
        return graphs.capture_all(Shard::launches + exchanges.count + Update::launches, enqueue);
    }

    template <class Shard, class Update> cudaError_t prepare(const MtcPeers &peers, const Exchanges &exchanges) {
        OperandMaps *maps[2] = {};
        if (count == peers.count)
            return cudaSuccess;
        release();
        count = peers.count;
        return Attempt()
            .then([&] { return find_maps<Shard>(&maps[0]); })
            .then([&] { return find_maps<Update>(&maps[1]); })
            .then([&] { return capture_steps<Shard, Update>(peers, exchanges, maps); })
            .error;
    }

public:
    template <class Shard, class Update>
    const char *train(const MtcRun *run, const MtcPeers *peers, int64_t steps, Exchanges exchanges = {}) {
        return Attempt()
            .then([&] { return prepare<Shard, Update>(*peers, exchanges); })
            .then([&] { return set_run<Shard>(run); })
            .then([&] { return make_maps<Update>(run); })
            .then([&] { return set_peers(peers); })
            .then([&] { return graphs.launch(steps); })
            .text();
    }

    void release() {
        graphs.release();
        count = 0;
    }
};

#endif
