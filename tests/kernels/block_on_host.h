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
#include <array>
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

/* ---- fibers ---- */

/* Who comes waits until all have come. */
struct Barrier {
    int all, here = 0, turn = 0;

    void wait();
};

/* A context gives it its stack; from then on it goes to and fro by jumps, which call no system as swapcontext() does. */
struct Fiber {
    ucontext_t start;
    jmp_buf left;
    std::vector<char> stack;
    const Barrier *waits; // until its turn is another one
    int turn;
    bool begun, ended;
};
static std::vector<Fiber> fibers;
static jmp_buf caller;
static int self; // the fiber that runs

static void leave() {
    if (!_setjmp(fibers[self].left))
        _longjmp(caller, 1);
}

static void go_on(int next) {
    self = next;
    threadIdx.x = next % THREADS;
    if (_setjmp(caller))
        return;
    if (fibers[next].begun)
        _longjmp(fibers[next].left, 1);
    fibers[next].begun = true;
    setcontext(&fibers[next].start);
}

void Barrier::wait() {
    const int own = turn;
    if (++here == all) {
        here = 0;
        turn++;
        return;
    }
    fibers[self].waits = this;
    fibers[self].turn = own;
    leave();
    fibers[self].waits = nullptr;
}
static std::vector<Barrier> of_block, of_warp;
static std::vector<std::array<char, 8>> handed;

static bool may_go_on(const Fiber &fiber) {
    return !fiber.ended && !(fiber.waits && fiber.waits->turn == fiber.turn);
}

/* work() by as many fibers, in turns: the threads of whole blocks. */
template <class Work> void run_fibers(int count, Work work) {
    static Work *given;
    given = &work;
    void (*const live)() = [] {
        (*given)();
        fibers[self].ended = true;
        leave();
    };
    fibers.resize(count);
    handed.resize(count);
    of_block.assign(count / THREADS, {THREADS});
    of_warp.assign(count / LANES, {LANES});
    for (Fiber &fiber : fibers) {
        fiber.stack.resize(1 << 16);
        fiber.waits = nullptr;
        fiber.begun = fiber.ended = false;
        getcontext(&fiber.start);
        fiber.start.uc_stack.ss_sp = fiber.stack.data();
        fiber.start.uc_stack.ss_size = fiber.stack.size();
        makecontext(&fiber.start, live, 0);
    }
    for (bool all = false; !all;) {
        all = true;
        for (int t = 0; t < count; t++) {
            all &= fibers[t].ended;
            if (may_go_on(fibers[t]))
                go_on(t);
        }
    }
}

/* By all threads of a block. */
template <class Work> void run_block(Work work) {
    run_fibers(THREADS, work);
}

/* ---- what kernels call ---- */

static void __syncthreads() {
    of_block[self / THREADS].wait();
}
static void __syncwarp(unsigned = ~0u) {
    of_warp[self / LANES].wait();
}
template <class T> static T __shfl_xor_sync(unsigned, T value, int distance) {
    memcpy(handed[self].data(), &value, sizeof value);
    __syncwarp();
    memcpy(&value, handed[self ^ distance].data(), sizeof value);
    __syncwarp();
    return value;
}
template <class T> static T __shfl_up_sync(unsigned, T value, int distance) {
    const int lane = threadIdx.x % LANES;
    return __shfl_xor_sync(~0u, value, lane ^ (lane < distance ? lane : lane - distance));
}

#endif
