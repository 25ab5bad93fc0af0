/* A block of a kernel on the host: a fiber for each of its threads, which run in turns from barrier to barrier, and lanes that hand each
 * other values through memory. */
#ifndef BLOCK_ON_HOST_H
#define BLOCK_ON_HOST_H

#undef _FORTIFY_SOURCE /* its longjmp refuses another fiber's stack */
#define __CUDACC__
#define __host__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#include "shared.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using std::min;

struct Index {
    int x, y;
};
static Index threadIdx, blockIdx;
static char handed[THREADS][8];

/* ---- fibers ---- */

/* A context gives each its stack; from then on they go to and fro by jumps, which call no system as swapcontext() does. */
static ucontext_t fiber[THREADS];
static jmp_buf caller, left[THREADS];
static std::vector<char> stack[THREADS];
static bool begun[THREADS], ended[THREADS];

static void leave(int self) {
    if (!_setjmp(left[self]))
        _longjmp(caller, 1);
    threadIdx.x = self;
}

static void go_on(int self) {
    if (_setjmp(caller))
        return;
    if (begun[self])
        _longjmp(left[self], 1);
    begun[self] = true;
    setcontext(&fiber[self]);
}

/* Who comes waits until all have come. */
struct Barrier {
    int all, here = 0, turn = 0;

    void wait() {
        const int self = threadIdx.x, own = turn;
        if (++here == all) {
            here = 0;
            turn++;
        }
        while (turn == own)
            leave(self);
    }
};
static Barrier of_block = {THREADS};
static std::vector<Barrier> of_warp(WARPS, Barrier{LANES});

template <class Work> void begin(Work *work, int self) {
    threadIdx.x = self;
    (*work)();
    ended[self] = true;
    leave(self);
}

/* work() by all threads of a block. */
template <class Work> void run_block(Work work) {
    static Work *given;
    given = &work;
    void (*const enter)(int) = [](int self) { begin(given, self); };
    for (int t = 0; t < THREADS; t++) {
        stack[t].resize(1 << 16);
        begun[t] = ended[t] = false;
        getcontext(&fiber[t]);
        fiber[t].uc_stack.ss_sp = stack[t].data();
        fiber[t].uc_stack.ss_size = stack[t].size();
        makecontext(&fiber[t], (void (*)())enter, 1, t);
    }
    while (std::find(ended, ended + THREADS, false) != ended + THREADS)
        for (int t = 0; t < THREADS; t++)
            if (!ended[t])
                go_on(t);
}

/* ---- what kernels call ---- */

static void __syncthreads() {
    of_block.wait();
}
static void __syncwarp(unsigned = ~0u) {
    of_warp[threadIdx.x / LANES].wait();
}
template <class T> static T __shfl_xor_sync(unsigned, T value, int distance) {
    memcpy(handed[threadIdx.x], &value, sizeof value);
    __syncwarp();
    memcpy(&value, handed[threadIdx.x ^ distance], sizeof value);
    __syncwarp();
    return value;
}
template <class T> static T __shfl_up_sync(unsigned, T value, int distance) {
    const int lane = threadIdx.x % LANES;
    return __shfl_xor_sync(~0u, value, lane ^ (lane < distance ? lane : lane - distance));
}

#endif
