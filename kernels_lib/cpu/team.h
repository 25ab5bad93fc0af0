/* The threads that run a step: the barrier between its phases, and how they compute with numbers next to 0.
 *
 * A thread that has to wait spins for a moment, then sleeps. OpenMP's own barrier spins for so long that, on a busy
 * machine, the thread that everybody waits for does not get a processor. */
#ifndef MTC_CPU_TEAM_H
#define MTC_CPU_TEAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct Team {
    atomic_int arrived, round;
    pthread_mutex_t lock;
    pthread_cond_t next_round;
} Team;

#define TEAM_READY                                                                                                     \
    { .lock = PTHREAD_MUTEX_INITIALIZER, .next_round = PTHREAD_COND_INITIALIZER }

#ifdef _OPENMP
int omp_get_num_threads(void);
#else
static inline int omp_get_num_threads(void) {
    return 1;
}
#endif

static inline void team_pause(void) {
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#endif
}

static inline void team_next_round(Team *team) {
    atomic_store(&team->arrived, 0);
    pthread_mutex_lock(&team->lock);
    atomic_fetch_add(&team->round, 1);
    pthread_mutex_unlock(&team->lock);
    pthread_cond_broadcast(&team->next_round);
}

/* Returns when every thread of the parallel region is here. */
static inline void team_wait(Team *team) {
    enum { SPINS = 2000 };
    int round = atomic_load(&team->round);
    if (atomic_fetch_add(&team->arrived, 1) + 1 == omp_get_num_threads()) {
        team_next_round(team);
        return;
    }
    for (int spin = 0; spin < SPINS; spin++) {
        if (atomic_load(&team->round) != round)
            return;
        team_pause();
    }
    pthread_mutex_lock(&team->lock);
    while (atomic_load(&team->round) == round)
        pthread_cond_wait(&team->next_round, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

/* ---- subnormal numbers ---- */

/* Numbers below 1.2e-38 count as 0, as operands and as results. A processor takes a hundred cycles for each of them, and
 * where gradients are 0 the moments of an optimizer shrink to nothing else: steps took four times as long. Each thread has
 * a mode of its own. */
#if defined __SSE__
typedef unsigned FloatMode;
enum { SUBNORMALS_ARE_ZERO = 0x8000 | 0x0040 }; /* results: FTZ; operands: DAZ */
static inline FloatMode float_mode(void) {
    return __builtin_ia32_stmxcsr();
}
static inline void set_float_mode(FloatMode mode) {
    __builtin_ia32_ldmxcsr(mode);
}
#elif defined __aarch64__
typedef uint64_t FloatMode;
enum { SUBNORMALS_ARE_ZERO = 1 << 24 };
static inline FloatMode float_mode(void) {
    FloatMode mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
static inline void set_float_mode(FloatMode mode) {
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}
#else
typedef unsigned FloatMode;
enum { SUBNORMALS_ARE_ZERO = 0 };
static inline FloatMode float_mode(void) {
    return 0;
}
static inline void set_float_mode(FloatMode mode) {
    (void)mode;
}
#endif

/* The mode before. */
static inline FloatMode flush_subnormals(void) {
    FloatMode before = float_mode();
    set_float_mode(before | SUBNORMALS_ARE_ZERO);
    return before;
}

#endif
