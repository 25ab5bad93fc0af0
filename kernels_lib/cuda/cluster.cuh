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

#endif
