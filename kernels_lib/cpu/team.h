/* The barrier between the phases of a step.
 *
 * A thread that has to wait spins for a moment, then sleeps. OpenMP's own barrier spins for so long that, on a busy
 * machine, the thread that everybody waits for does not get a processor. */
#ifndef MTC_CPU_TEAM_H
#define MTC_CPU_TEAM_H

#include <pthread.h>
#include <stdatomic.h>

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

#endif
