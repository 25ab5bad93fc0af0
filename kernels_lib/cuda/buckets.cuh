/* Sums of several GPUs that go from one to the other beside the phases of their backward pass.
 *
 * Those that are complete long before the backward pass ends, in buckets (MtcBucket), are sent by the engines that copy, which take no
 * multiprocessor: parts go into room of those whose own they are; when the next bucket is complete, its blocks meet, each GPU adds what
 * has come to what it has, and its sums go back into the memory of all, beside the next phases:
 *
 *     phases      | .. bucket 0 | .. bucket 1 | adds 0 | .. bucket 2 | adds 1 | .. | adds 2 | what is left, as above | update
 *     copies                    | parts of 0  |        | parts of 1, sums of 0 | parts of 2, sums of 1 | sums of 2 */
#ifndef MTC_CUDA_BUCKETS_CUH
#define MTC_CUDA_BUCKETS_CUH

#include "cuda/peers.cuh"

/* Where in the room of `to` the part of `from` lies, counted in parts. */
static __host__ __device__ int peer_slot(int count, int to, int from) {
    return (from - to - 1 + count) % count;
}

/* `EACH` times four numbers, `stride` apart: all are read before one is written. */
template <int COUNT, int EACH>
__device__ void add_sent(float4 *sums, const float4 *sent, int64_t part, int64_t first, int64_t stride, int64_t end) {
    const int rank = current_peers.rank;
    float4 value[EACH][COUNT];
#pragma unroll
    for (int k = 0; k < EACH; k++)
#pragma unroll
        for (int from = 0; from < COUNT; from++)
            if (first + k * stride < end)
                value[k][from] =
                    __ldcg((from == rank ? sums : sent + peer_slot(COUNT, rank, from) * part) + first + k * stride);
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (first + k * stride < end)
            sums[first + k * stride] = tree_sum(value[k]);
}

/* The own part of a bucket: what the others have sent is added to what lies in the arena. */
template <int COUNT>
__global__ void __launch_bounds__(PEER_THREADS) add_parts(size_t offset, size_t place, int64_t fours) {
    constexpr int EACH = 2 * FOURS_UNDER_WAY / COUNT;
    const int rank = current_peers.rank;
    const PeerPart own(fours, COUNT, rank);
    const float4 *sent = (const float4 *)(current_peers.room[rank] + place) - own.begin;
    const int64_t stride = (int64_t)gridDim.x * PEER_THREADS;
    const unsigned turn = begin_turn();
    if (turn == 0)
        return;
    meet_peers(0, turn);
    for (int64_t i = own.begin + blockIdx.x * PEER_THREADS + threadIdx.x; i < own.end; i += EACH * stride)
        add_sent<COUNT, EACH>(fours_of(rank, offset), sent, own.each, i, stride, own.end);
    end_turn(turn);
}

/* What a program's table has of exchanges or buckets. */
template <class Row> struct TableOf {
    const Row *at = nullptr;
    int count = 0;
    TableOf() = default;
    template <int COUNT> TableOf(const Row (&table)[COUNT]) : at(table), count(COUNT) {
    }
};
using Buckets = TableOf<MtcBucket>;

/* A stream beside that of the phases. It outlives the capture that it is part of. */
class BucketCopies {
    const MtcPeers &peers;
    const Buckets buckets;
    cudaStream_t copies = nullptr;
    cudaEvent_t ready = nullptr, sent = nullptr;

    /* Where the bucket's parts lie in the room of their owner: behind the mail and those of the buckets before it. */
    size_t place_of(int bucket) const {
        size_t parts = 0;
        for (int k = 0; k < bucket; k++)
            parts += (peers.count - 1) * PeerPart(count_fours(buckets.at[k].bytes), peers.count, 0).each;
        return 2 * MTC_MAIL_BYTES * peers.count + parts * sizeof(float4);
    }

    cudaError_t copy(char *to, const char *from, int64_t fours) const {
        return fours ? cudaMemcpyAsync(to, from, fours * sizeof(float4), cudaMemcpyDeviceToDevice, copies)
                     : cudaSuccess;
    }

    /* From here on, copies may begin. */
    cudaError_t follow(cudaStream_t phases) const {
        return Attempt()
            .then([&] { return cudaEventRecord(ready, phases); })
            .then([&] { return cudaStreamWaitEvent(copies, ready, 0); })
            .error;
    }

    cudaError_t send_parts(int bucket) const {
        const int64_t fours = count_fours(buckets.at[bucket].bytes);
        const char *sums = peers.arena[peers.rank] + buckets.at[bucket].offset;
        Attempt attempt;
        for (int turn = 1; turn < peers.count; turn++) {
            const int to = (peers.rank + turn) % peers.count;
            const PeerPart part(fours, peers.count, to);
            const int64_t at = peer_slot(peers.count, to, peers.rank) * part.each;
            attempt.then([&] {
                return copy(peers.room[to] + place_of(bucket) + at * sizeof(float4), sums + part.begin * sizeof(float4),
                            part.end - part.begin);
            });
        }
        return attempt.then([&] { return cudaEventRecord(sent, copies); }).error;
    }

    cudaError_t send_sums(int bucket) const {
        const PeerPart own(count_fours(buckets.at[bucket].bytes), peers.count, peers.rank);
        const size_t at = buckets.at[bucket].offset + own.begin * sizeof(float4);
        Attempt attempt;
        for (int turn = 1; turn < peers.count; turn++) {
            const int to = (peers.rank + turn) % peers.count;
            attempt.then([&] { return copy(peers.arena[to] + at, peers.arena[peers.rank] + at, own.end - own.begin); });
        }
        return attempt.error;
    }

    /* Once what this rank sends has gone: others go on when they meet it. */
    cudaError_t add(int bucket, cudaStream_t phases) const {
        const int64_t fours = count_fours(buckets.at[bucket].bytes);
        const auto launch = [&] {
            (peers.count == 2   ? add_parts<2>
             : peers.count == 4 ? add_parts<4>
                                : add_parts<8>)<<<peer_blocks(peers, fours), PEER_THREADS, 0, phases>>>(
                buckets.at[bucket].offset, place_of(bucket), fours);
            return cudaGetLastError();
        };
        return Attempt().then([&] { return cudaStreamWaitEvent(phases, sent, 0); }).then(launch).error;
    }

public:
    BucketCopies(const MtcPeers &peers, Buckets buckets) : peers(peers), buckets(buckets) {
    }
    BucketCopies(const BucketCopies &) = delete;
    ~BucketCopies() {
        if (ready)
            cudaEventDestroy(ready);
        if (sent)
            cudaEventDestroy(sent);
        if (copies)
            cudaStreamDestroy(copies);
    }

    cudaError_t open() {
        if (!buckets.count)
            return cudaSuccess;
        return Attempt()
            .then([&] { return cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking); })
            .then([&] { return cudaEventCreateWithFlags(&ready, cudaEventDisableTiming); })
            .then([&] { return cudaEventCreateWithFlags(&sent, cudaEventDisableTiming); })
            .error;
    }

    /* Behind the phase that completes the bucket. */
    cudaError_t begin(int bucket, cudaStream_t phases) const {
        return Attempt()
            .then([&] { return bucket ? add(bucket - 1, phases) : cudaSuccess; })
            .then([&] { return follow(phases); })
            .then([&] { return send_parts(bucket); })
            .then([&] { return bucket ? send_sums(bucket - 1) : cudaSuccess; })
            .error;
    }

    /* Behind the last phase: all that this rank sends has gone. */
    cudaError_t end(cudaStream_t phases) const {
        return !buckets.count ? cudaSuccess
                              : Attempt()
                                    .then([&] { return cudaEventRecord(sent, copies); })
                                    .then([&] { return cudaStreamWaitEvent(phases, sent, 0); })
                                    .error;
    }

    /* What is in no bucket: the first of the sums, since the backward pass ends with them. */
    cudaError_t add_the_rest(cudaStream_t phases) const {
        size_t bytes = peers.bytes;
        for (int k = 0; k < buckets.count; k++)
            bytes -= buckets.at[k].bytes;
        return launch_peer_sums(peers, peers.offset, bytes, phases, !buckets.count);
    }
};

#endif
