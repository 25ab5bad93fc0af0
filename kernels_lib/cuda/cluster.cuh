/* Clusters: neighbouring blocks that run at the same time and have a barrier in hardware (sm_90 and later). */
#ifndef MTC_CUDA_CLUSTER_CUH
#define MTC_CUDA_CLUSTER_CUH

static inline __device__ void arrive_at_cluster() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
}
static inline __device__ void await_cluster() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

/* The calling block's place in its cluster. */
static inline __device__ int block_of_cluster() {
    int rank = 0;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return rank;
}

/* Blocks of its cluster; 1: it is by itself. */
static inline __device__ int blocks_of_cluster() {
    int blocks = 1;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
#endif
    return blocks;
}

/* What lies at this place in the shared memory of block `block`. */
static inline __device__ float4 load_from(const float *place, int block) {
    float4 four = {};
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %4, %5;\nld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n}"
                 : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
                 : "r"((unsigned)__cvta_generic_to_shared(place)), "r"(block)
                 : "memory");
#endif
    return four;
}

static inline __device__ float load_one_from(const float *place, int block) {
    float one = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %1, %2;\nld.shared::cluster.f32 %0, [there];\n}"
                 : "=f"(one)
                 : "r"((unsigned)__cvta_generic_to_shared(place)), "r"(block)
                 : "memory");
#endif
    return one;
}

/* A place in shared memory where a block waits for what the blocks of its cluster write into it: bytes are counted as they arrive,
 * and who has read them knows that all are there. Each use is a phase, 0, 1, 0, 1 .. */
struct Mailbox {
    unsigned long long barrier;
};

/* By one thread, before a barrier of the cluster. */
static inline __device__ void open_mailbox(Mailbox *box) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"((unsigned)__cvta_generic_to_shared(box)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
/* By one thread, once for each phase. */
static inline __device__ void expect_mail(Mailbox *box, int bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"((unsigned)__cvta_generic_to_shared(box)),
        "r"(bytes)
        : "memory");
#endif
}
static inline __device__ void await_mail(Mailbox *box, int phase) {
#if __CUDA_ARCH__ >= 900
    unsigned done = 0;
    while (!done)
        asm volatile("{\n.reg .pred done;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, done;\n}"
                     : "=r"(done)
                     : "r"((unsigned)__cvta_generic_to_shared(box)), "r"(phase)
                     : "memory");
#endif
}
/* To the same place in block `block`, counted there. */
static inline __device__ void mail(float *to, float value, Mailbox *box, int block) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .b32 there, counted;\n"
                 "mapa.shared::cluster.u32 there, %0, %3;\nmapa.shared::cluster.u32 counted, %2, %3;\n"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [there], %1, [counted];\n}" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "r"(__float_as_uint(value)), "r"((unsigned)__cvta_generic_to_shared(box)), "r"(block)
                 : "memory");
#endif
}
static inline __device__ void mail(float *to, float4 value, Mailbox *box, int block) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .b32 there, counted;\n"
                 "mapa.shared::cluster.u32 there, %0, %6;\nmapa.shared::cluster.u32 counted, %5, %6;\n"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [there], {%1, %2, %3, %4}, "
                 "[counted];\n}" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "r"(__float_as_uint(value.x)), "r"(__float_as_uint(value.y)), "r"(__float_as_uint(value.z)),
                 "r"(__float_as_uint(value.w)), "r"((unsigned)__cvta_generic_to_shared(box)), "r"(block)
                 : "memory");
#endif
}

#endif
