/* Training steps of which each GPU of a host computes one shard: CUDA graphs, in which the GPUs meet without their hosts. */
#ifndef MTC_CUDA_AMONG_CUH
#define MTC_CUDA_AMONG_CUH

#include "cuda/buckets.cuh"

using Exchanges = TableOf<MtcExchange>;

/* Steps of which each GPU computes one shard. */
class AmongPeers {
    Unrolled graphs;
    MtcPeers captured = {}; // that the graphs are for; copies have addresses

    bool is_for(const MtcPeers &peers) const {
        bool same = captured.count == peers.count;
        for (int rank = 0; rank < peers.count; rank++)
            same = same && captured.arena[rank] == peers.arena[rank] && captured.room[rank] == peers.room[rank];
        return same;
    }

    /* With the maps of operands that were found before, so many steps ahead of the clock. */
    template <class Step>
    static cudaError_t enqueue_phases(OperandMaps *maps, int64_t ahead, int first, int last, cudaStream_t stream,
                                      bool early = false) {
        Work work = {true, ahead};
        work.maps = maps;
        return launch_phases<Step>(work, first, last, stream, early);
    }

    /* What comes between two phases: an exchange, or a bucket is complete. */
    struct Stop {
        int phase;
        const MtcExchange *exchange; // NULL: it is the bucket
        int bucket;
    };

    static Stop next_stop(const Exchanges &exchanges, const Buckets &buckets, int e, int b) {
        const bool bucket = b < buckets.count && (e == exchanges.count || buckets.at[b].phase < exchanges.at[e].phase);
        return bucket ? Stop{buckets.at[b].phase, nullptr, b} : Stop{exchanges.at[e].phase, &exchanges.at[e], 0};
    }

    static cudaError_t stop_for(const Stop &stop, const MtcPeers &peers, const BucketCopies &copies,
                                cudaStream_t stream) {
        return stop.exchange
                   ? launch_peer_sums(peers, stop.exchange->offset, stop.exchange->count * sizeof(float), stream)
                   : copies.begin(stop.bucket, stream);
    }

    /* All phases of a shard, the sums that they read on the way, and those that go beside them. */
    template <class Shard>
    static cudaError_t enqueue_shard(const MtcPeers &peers, const Exchanges &exchanges, const Buckets &buckets,
                                     const BucketCopies &copies, OperandMaps *maps, int64_t ahead,
                                     cudaStream_t stream) {
        Attempt attempt;
        int first = 0;
        bool early = false; // an exchange writes nothing that no phase writes
        for (int e = 0, b = 0; e < exchanges.count || b < buckets.count;) {
            const Stop stop = next_stop(exchanges, buckets, e, b);
            if (stop.phase > first)
                attempt.then([&] { return enqueue_phases<Shard>(maps, ahead, first, stop.phase - 1, stream, early); });
            attempt.then([&] { return stop_for(stop, peers, copies, stream); });
            early = stop.exchange != nullptr;
            first = stop.phase;
            (stop.exchange ? e : b)++;
        }
        return attempt.then([&] { return enqueue_phases<Shard>(maps, ahead, first, Shard::launches, stream, early); })
            .then([&] { return copies.end(stream); })
            .then([&] { return copies.add_the_rest(stream); })
            .error;
    }

    template <class Shard, class Update>
    cudaError_t capture_steps(const MtcPeers &peers, const Exchanges &exchanges, const Buckets &buckets,
                              OperandMaps *const (&maps)[2]) {
        BucketCopies copies(peers, buckets);
        auto enqueue = [&](int steps, cudaStream_t stream) {
            Attempt attempt;
            for (int step = 0; step < steps; step++)
                attempt
                    .then(
                        [&] { return enqueue_shard<Shard>(peers, exchanges, buckets, copies, maps[0], step, stream); })
                    .then([&] { return enqueue_phases<Update>(maps[1], step, 0, Update::launches, stream); });
            return attempt
                .then([&] {
                    advance_clock<<<1, 3, 0, stream>>>(steps);
                    return cudaGetLastError();
                })
                .error;
        };
        const int sums = exchanges.count + 2 * peers.count * buckets.count;
        return Attempt()
            .then([&] { return copies.open(); })
            .then([&] { return graphs.capture_all(Shard::launches + sums + Update::launches, enqueue); })
            .error;
    }

    template <class Shard, class Update>
    cudaError_t prepare(const MtcPeers &peers, const Exchanges &exchanges, const Buckets &buckets) {
        OperandMaps *maps[2] = {};
        if (is_for(peers))
            return cudaSuccess;
        release();
        captured = peers;
        return Attempt()
            .then([&] { return find_maps<Shard>(&maps[0]); })
            .then([&] { return find_maps<Update>(&maps[1]); })
            .then([&] { return capture_steps<Shard, Update>(peers, exchanges, buckets, maps); })
            .error;
    }

public:
    template <class Shard, class Update>
    const char *train(const MtcRun *run, const MtcPeers *peers, int64_t steps, Exchanges exchanges = {},
                      Buckets buckets = {}) {
        return Attempt()
            .then([&] { return prepare<Shard, Update>(*peers, exchanges, buckets); })
            .then([&] { return set_run<Shard>(run); })
            .then([&] { return make_maps<Update>(run); })
            .then([&] { return set_peers(peers); })
            .then([&] { return graphs.launch(steps); })
            .text();
    }

    void release() {
        graphs.release();
        captured = {};
    }
};

#endif
