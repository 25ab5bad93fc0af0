/* Steps of several GPUs of one host, whose sums are added up where they lie: each GPU reads and writes the memory of the others over
 * the links between them. Of four,
 *
 *     each GPU    backward pass | sums of the quarter that is its own: those of all four, along the tree
 *                               | (0 + 1) + (2 + 3); they go into the memory of all | update
 *
 * so that a GPU reads and writes 2 (N - 1) / N times the bytes of the sums over its links, and what it adds is what one process with as many
 * shards would. Block b of a GPU meets block b of all others twice: before it reads what they have computed, and behind what they
 * have written. Nothing waits for the host, so that steps are a CUDA graph as they are on one GPU.
 *
 * Words, by which blocks meet, lie in memory of the GPU that reads them. They count: a word never goes back. */
#ifndef MTC_CUDA_PEERS_CUH
#define MTC_CUDA_PEERS_CUH

#include "cuda/launches.cuh"

/* Set on the stream of the launches that follow. */
static __constant__ MtcPeers current_peers;

/* Few blocks, so that any device runs all of them at a time, and many bytes of each thread under way at a time. */
constexpr int PEER_BLOCKS = 64, PEER_THREADS = 512, FOURS_UNDER_WAY = 8;

/* Of MtcPeers.words. */
struct PeerWords {
    unsigned met[2][PEER_BLOCKS][MTC_MAX_PEERS]; // [ahead of reading, behind writing][block][who has come], how often
    unsigned turn[PEER_BLOCKS];                  // sums that the block has made
    unsigned alone;                              // a peer was waited for in vain: nothing is waited for any more
};
static_assert(sizeof(PeerWords) <= MTC_PEER_BYTES, "the words of a GPU have room");
static_assert(PEER_BLOCKS * PEER_THREADS * sizeof(float4) == MTC_MAIL_BYTES, "the mail of a GPU has room");

static __device__ PeerWords *peer_words(int rank) {
    return (PeerWords *)current_peers.words[rank];
}

/* What a thread of any GPU wrote before it wrote the word, its reader sees behind it. */
static __device__ void write_word(unsigned *word, unsigned value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

static __device__ unsigned read_word(const unsigned *word) {
    unsigned value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

static __device__ long long nanoseconds() {
    long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* The host is told whom nobody must wait for any more. */
static __device__ void give_up_on(int other) {
    *(volatile unsigned *)&peer_words(current_peers.rank)->alone = 1;
    *(volatile int *)current_peers.lost = 1 + other;
    __threadfence_system();
}

/* A clock is looked at now and then, since it takes longer than a word. */
static __device__ void await_peer(int other, const unsigned *word, unsigned turn) {
    constexpr int LOOKS = 256;
    long long since = 0;
    for (unsigned looks = 0; (int)(read_word(word) - turn) < 0; looks++) {
        if (looks % LOOKS)
            continue;
        const long long now = nanoseconds();
        since = since ? since : now;
        if (now - since > current_peers.patience || read_word(&peer_words(current_peers.rank)->alone))
            return give_up_on(other);
    }
}

/* Blocks of this number of all GPUs. */
static __device__ void meet_peers(int where, unsigned turn) {
    const int other = threadIdx.x, own = current_peers.rank;
    __syncthreads();
    if (other < current_peers.count && other != own) {
        write_word(&peer_words(other)->met[where][blockIdx.x][own], turn);
        await_peer(other, &peer_words(own)->met[where][blockIdx.x][other], turn);
    }
    __syncthreads();
}

static __device__ float4 operator+(const float4 &a, const float4 &b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

/* Neighbours first: what one process adds up in this order. */
template <int COUNT> __device__ float4 tree_sum(float4 (&value)[COUNT]) {
#pragma unroll
    for (int apart = 1; apart < COUNT; apart *= 2)
#pragma unroll
        for (int i = 0; i < COUNT; i += 2 * apart)
            value[i] = value[i] + value[i + apart];
    return value[0];
}

static __device__ float4 *fours_of(int rank, size_t offset) {
    return (float4 *)(current_peers.arena[rank] + offset);
}

/* Of `EACH` times four numbers, `stride` apart: all are read before one is written. */
template <int COUNT, int EACH> __device__ void sum_fours(size_t offset, int64_t first, int64_t stride, int64_t end) {
    float4 value[EACH][COUNT];
#pragma unroll
    for (int k = 0; k < EACH; k++)
#pragma unroll
        for (int rank = 0; rank < COUNT; rank++)
            if (first + k * stride < end)
                value[k][rank] = __ldcg(fours_of(rank, offset) + first + k * stride);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const float4 sum = tree_sum(value[k]);
#pragma unroll
        for (int rank = 0; rank < COUNT; rank++)
            if (first + k * stride < end)
                fours_of(rank, offset)[first + k * stride] = sum;
    }
}

/* Of so many times four numbers, those of a rank. */
struct PeerPart {
    int64_t each, begin, end;
    __host__ __device__ PeerPart(int64_t fours, int count, int rank)
        : each((fours + count - 1) / count), begin(smaller(rank * each, fours)), end(smaller(begin + each, fours)) {
    }
    __host__ __device__ static int64_t smaller(int64_t a, int64_t b) {
        return a < b ? a : b;
    }
};

/* The block's turn, the same on all GPUs; 0: a peer is lost. */
static __device__ unsigned begin_turn() {
    __shared__ unsigned turn;
    const PeerWords *words = peer_words(current_peers.rank);
    if (threadIdx.x == 0)
        turn = read_word(&words->alone) ? 0 : words->turn[blockIdx.x] + 1;
    __syncthreads();
    return turn;
}

static __device__ void end_turn(unsigned turn) {
    if (threadIdx.x == 0)
        peer_words(current_peers.rank)->turn[blockIdx.x] = turn;
}

/* ---- small sums: one meeting ----
 *
 * Every GPU sends all that it has to all others, and adds up the whole by itself: the bytes of N - 1 GPUs in place of 2 (N - 1) / N, where
 * a meeting takes longer than to send them. Block b of all GPUs has the same numbers, and mail of its own, twice: what it sends
 * in a turn nobody reads any more when all have come to the next one. */

static __device__ float4 *mail_of(int to, int from, unsigned turn) {
    const int place = ((int)(turn & 1) * current_peers.count + from) * PEER_BLOCKS + blockIdx.x;
    return (float4 *)current_peers.room[to] + place * PEER_THREADS;
}

template <int COUNT> __global__ void __launch_bounds__(PEER_THREADS) send_and_sum(size_t offset, int64_t fours) {
    const int rank = current_peers.rank;
    const int64_t i = (int64_t)blockIdx.x * PEER_THREADS + threadIdx.x;
    float4 value[COUNT];
    admit_next_launch();
    await_previous_launch();
    const unsigned turn = begin_turn();
    if (turn == 0)
        return;
    float4 *sums = fours_of(rank, offset);
    const float4 own = i < fours ? __ldcg(sums + i) : float4{};
#pragma unroll
    for (int to = 0; to < COUNT; to++)
        if (to != rank && i < fours)
            mail_of(to, rank, turn)[threadIdx.x] = own;
    meet_peers(0, turn);
#pragma unroll
    for (int from = 0; from < COUNT; from++)
        value[from] = from == rank || i >= fours ? own : __ldcg(mail_of(rank, from, turn) + threadIdx.x);
    if (i < fours)
        sums[i] = tree_sum(value);
    end_turn(turn);
}

/* Behind what the stream has; `early`: it may be there before that has ended. */
template <class... Arguments>
cudaError_t launch_sums(void (*kernel)(Arguments...), int blocks, bool early, cudaStream_t stream,
                        Arguments... arguments) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = early;
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = PEER_THREADS;
    config.stream = stream;
    config.attrs = &attribute;
    cudaError_t known;
    config.numAttrs = Compiled::of((const void *)kernel, &known).has_instructions_of_sm_90();
    void *all[] = {&arguments...};
    return Attempt{known}.then([&] { return cudaLaunchKernelExC(&config, (const void *)kernel, all); }).error;
}

/* ---- large ones: two ---- */

/* Of so many times four numbers in the arenas. */
template <int COUNT> __global__ void __launch_bounds__(PEER_THREADS) sum_over_peers(size_t offset, int64_t fours) {
    constexpr int EACH = FOURS_UNDER_WAY / COUNT;
    const PeerPart own(fours, COUNT, current_peers.rank);
    const int64_t stride = (int64_t)gridDim.x * PEER_THREADS;
    admit_next_launch();
    await_previous_launch();
    const unsigned turn = begin_turn();
    if (turn == 0)
        return;
    meet_peers(0, turn);
    for (int64_t i = own.begin + blockIdx.x * PEER_THREADS + threadIdx.x; i < own.end; i += EACH * stride)
        sum_fours<COUNT, EACH>(offset, i, stride, own.end);
    meet_peers(1, turn);
    end_turn(turn);
}

/* As many blocks on each GPU, whatever it is. What lies in an arena has memory up to a multiple of four numbers. */
static inline int peer_blocks(const MtcPeers &peers, int64_t fours) {
    const int64_t each = divide_up(fours, (int64_t)peers.count);
    return (int)std::min<int64_t>(divide_up(each, (int64_t)PEER_THREADS), PEER_BLOCKS);
}

static inline int64_t count_fours(size_t bytes) {
    return divide_up((int64_t)bytes, (int64_t)sizeof(float4));
}

static inline cudaError_t launch_peer_sums(const MtcPeers &peers, size_t offset, size_t bytes, cudaStream_t stream,
                                           bool early = true) {
    const int64_t fours = count_fours(bytes);
    if (fours <= (int64_t)(MTC_MAIL_BYTES / sizeof(float4)))
        return launch_sums(peers.count == 2   ? send_and_sum<2>
                           : peers.count == 4 ? send_and_sum<4>
                                              : send_and_sum<8>,
                           (int)divide_up(fours, (int64_t)PEER_THREADS), early, stream, offset, fours);
    return launch_sums(peers.count == 2   ? sum_over_peers<2>
                       : peers.count == 4 ? sum_over_peers<4>
                                          : sum_over_peers<8>,
                       peer_blocks(peers, fours), early, stream, offset, fours);
}

static inline cudaError_t set_peers(const MtcPeers *peers) {
    return cudaMemcpyToSymbolAsync(current_peers, peers, sizeof *peers);
}

/* The sums of a step whose shards are more than the GPUs. */
static inline const char *add_over_peers(const MtcPeers *peers, size_t offset, size_t bytes) {
    return Attempt()
        .then([&] { return set_peers(peers); })
        .then([&] { return launch_peer_sums(*peers, offset, bytes, nullptr); })
        .text();
}

#endif
