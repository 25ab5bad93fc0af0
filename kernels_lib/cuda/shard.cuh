/* A batch in shards: what each adds to its sums, and what becomes of these. */
#ifndef MTC_CUDA_SHARD_CUH
#define MTC_CUDA_SHARD_CUH

#include "cuda/recorded.cuh"

/* The gradients of the shard that the clock shows. */
template <class Step> const char *replay_shard(Recorded &launches, const MtcRun *run) {
    return launches.replay<Step>(run, {true});
}

/* Of a step whose sums are those of all shards: the clock advances. */
template <class Step> const char *replay_update(Recorded &launches, const MtcRun *run) {
    const char *error = launches.replay<Step>(run, {true});
    if (error)
        return error;
    advance_clock<<<1, 3>>>(1);
    return Attempt().then([] { return cudaGetLastError(); }).text();
}

/* Sums begin where tensors do: at a multiple of 16 bytes. */
static __global__ void add_fours(float *to, const float *from, int64_t count) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, at = 4 * i;
    if (at + 4 <= count) {
        float4 sum = ((const float4 *)to)[i];
        const float4 more = ((const float4 *)from)[i];
        sum.x += more.x;
        sum.y += more.y;
        sum.z += more.z;
        sum.w += more.w;
        ((float4 *)to)[i] = sum;
    } else
        for (int64_t k = at; k < count; k++)
            to[k] += from[k];
}

static inline cudaError_t launch_addition(void *to, const void *from, int64_t count, cudaStream_t stream) {
    const int64_t each = 4 * THREADS, blocks = (count + each - 1) / each;
    add_fours<<<(unsigned)blocks, THREADS, 0, stream>>>((float *)to, (const float *)from, count);
    return cudaGetLastError();
}

static inline const char *add_reals(void *to, const void *from, int64_t count) {
    return Attempt().then([&] { return launch_addition(to, from, count, nullptr); }).text();
}

/* The shards of one process: their sums, `bytes` of them, and memory in which those of two wait for the next two, of four for the next
 * four ... */
struct OwnShards {
    int64_t count = 0;
    char *sums = nullptr, *waiting = nullptr;
    size_t bytes = 0;

    bool operator==(const OwnShards &other) const {
        return count == other.count && sums == other.sums && waiting == other.waiting && bytes == other.bytes;
    }

    char *level(int number) const {
        return waiting + (size_t)(number - 1) * bytes;
    }

    cudaError_t add(int number, cudaStream_t stream) const {
        return launch_addition(sums, level(number), (int64_t)(bytes / sizeof(float)), stream);
    }

    /* Behind shard i: two neighbours have come together as they were computed (follows_a_shard). */
    cudaError_t climb(int64_t i, cudaStream_t stream) const {
        const bool last = i + 1 == count;
        Attempt attempt;
        int number = 1;
        if (!last && i % 2 == 0)
            return cudaSuccess;
        for (; last ? i >> number : i >> number & 1; number++)
            if (i >> number & 1)
                attempt.then([&] { return add(number, stream); });
        if (!last)
            attempt.then([&] { return cudaMemcpyAsync(level(number), sums, bytes, cudaMemcpyDeviceToDevice, stream); });
        return attempt.error;
    }
};

/* Steps whose shards are all computed here: a graph has all shards of a step, their sums and the update. */
class WholeBatches {
    Unrolled graphs;
    OwnShards captured; // that the graphs are for; sums have addresses

    /* Between the first of two shards and the second there is nothing. */
    template <class Step> static cudaError_t enqueue(Work work, cudaStream_t stream) {
        return launch_phases<Step>(work, 0, Step::launches, stream, work.shard % 2 == 1);
    }

    template <class Shard, class Update>
    static cudaError_t enqueue_step(const OwnShards &own, Work shard, Work update, cudaStream_t stream) {
        Attempt attempt;
        for (; shard.shard < own.count; shard.shard++)
            attempt.then([&] { return enqueue<Shard>(shard, stream); }).then([&] {
                return own.climb(shard.shard, stream);
            });
        return attempt.then([&] { return enqueue<Update>(update, stream); }).error;
    }

    template <class Shard, class Update>
    static cudaError_t enqueue_steps(const OwnShards &own, int steps, OperandMaps *const (&maps)[2],
                                     cudaStream_t stream) {
        Work shard = {true}, update = {true};
        shard.maps = maps[0];
        update.maps = maps[1];
        Attempt attempt;
        for (; shard.at < steps; shard.at++, update.at++)
            attempt.then([&] { return enqueue_step<Shard, Update>(own, shard, update, stream); });
        return attempt
            .then([&] {
                advance_clock<<<1, 3, 0, stream>>>(steps);
                return cudaGetLastError();
            })
            .error;
    }

    template <class Shard, class Update> cudaError_t capture_steps(const OwnShards &own) {
        OperandMaps *maps[2] = {};
        const int launches = (int)own.count * Shard::launches + Update::launches;
        return Attempt()
            .then([&] { return find_maps<Shard>(&maps[0]); })
            .then([&] { return find_maps<Update>(&maps[1]); })
            .then([&] {
                return graphs.capture_all(launches, [&](int steps, cudaStream_t stream) {
                    return enqueue_steps<Shard, Update>(own, steps, maps, stream);
                });
            })
            .error;
    }

    template <class Shard, class Update> cudaError_t prepare(const OwnShards &own) {
        if (captured == own)
            return cudaSuccess;
        release();
        return Attempt()
            .then([&] { return capture_steps<Shard, Update>(own); })
            .then([&] {
                captured = own; // or who tries again would launch what was not captured
                return cudaSuccess;
            })
            .error;
    }

public:
    template <class Shard, class Update> const char *train(const MtcRun *run, const OwnShards &own, int64_t steps) {
        return Attempt()
            .then([&] { return prepare<Shard, Update>(own); })
            .then([&] { return set_run<Shard>(run); })
            .then([&] { return make_maps<Update>(run); })
            .then([&] { return graphs.launch(steps); })
            .text();
    }

    void release() {
        graphs.release();
        captured = {};
    }
};

#endif
