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

/* The same place of shared memory in block `block` of the cluster. */
template <class T> __device__ T *in_block(T *shared, int block) {
#if __CUDA_ARCH__ >= 900
    asm("mapa.u64 %0, %1, %2;" : "=l"(shared) : "l"(shared), "r"(block));
#endif
    return shared;
}

#endif
