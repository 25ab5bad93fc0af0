#include "base/parallel.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 64 };

static long limited_by(const char *variable, long count) {
    const char *text = getenv(variable);
    long limit = text ? strtol(text, NULL, 10) : 0;
    return limit > 0 && limit < count ? limit : count;
}

int mtc_processors(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    count = limited_by("OMP_NUM_THREADS", limited_by("OMP_THREAD_LIMIT", count));
    return count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : (int)count;
}

typedef struct Crew {
    void (*work)(void *context, int64_t task);
    void *context;
    int64_t tasks, next;
    bool out_of_memory;
} Crew;

static int take_tasks(void *argument) {
    Crew *crew = (Crew *)argument;
    int64_t task;
    while ((task = __atomic_fetch_add(&crew->next, 1, __ATOMIC_RELAXED)) < crew->tasks)
        crew->work(crew->context, task);
    return 0;
}

/* A thread that finds no memory leaves the rest to the others; in the end the caller has found none either. */
static void *work_on(void *argument) {
    Crew *crew = (Crew *)argument;
    if (mtc_guard(NULL, take_tasks, crew))
        __atomic_store_n(&crew->out_of_memory, true, __ATOMIC_RELAXED);
    return NULL;
}

void mtc_parallel(int64_t tasks, void (*work)(void *context, int64_t task), void *context) {
    Crew crew = {work, context, tasks, 0, false};
    pthread_t thread[MOST_THREADS];
    int processors = mtc_processors(), others = 0;
    while (others + 1 < processors && others + 1 < tasks && pthread_create(&thread[others], NULL, work_on, &crew) == 0)
        others++;
    work_on(&crew);
    for (int i = 0; i < others; i++)
        pthread_join(thread[i], NULL);
    if (crew.out_of_memory)
        mtc_out_of_memory();
}

typedef struct MemoryCopy {
    char *to;
    const char *from;
    size_t bytes;
} MemoryCopy;

enum { COPIED_AT_ONCE = 1 << 20 };

static void copy_part(void *context, int64_t part) {
    const MemoryCopy *copy = (const MemoryCopy *)context;
    const size_t from = (size_t)part * COPIED_AT_ONCE, left = copy->bytes - from;
    memcpy(copy->to + from, copy->from + from, left < COPIED_AT_ONCE ? left : COPIED_AT_ONCE);
}

void mtc_copy_memory(void *to, const void *from, size_t bytes) {
    MemoryCopy copy = {(char *)to, (const char *)from, bytes};
    mtc_parallel((int64_t)((bytes + COPIED_AT_ONCE - 1) / COPIED_AT_ONCE), copy_part, &copy);
}

enum { TOUCHED_AT_ONCE = 1 << 22, PAGE = 4096 };

static void touch_part(void *context, int64_t part) {
    const MemoryCopy *memory = (const MemoryCopy *)context;
    const size_t from = (size_t)part * TOUCHED_AT_ONCE, left = memory->bytes - from;
    const volatile char *bytes = memory->from + from;
    for (size_t at = 0; at < left && at < TOUCHED_AT_ONCE; at += PAGE)
        (void)bytes[at];
}

void mtc_touch_memory(const void *memory, size_t bytes) {
    MemoryCopy touched = {NULL, (const char *)memory, bytes};
    mtc_parallel((int64_t)((bytes + TOUCHED_AT_ONCE - 1) / TOUCHED_AT_ONCE), touch_part, &touched);
}
