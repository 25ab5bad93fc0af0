/* Work for all processors: tasks of the host that do not depend on each other. */
#ifndef MTC_PARALLEL_H
#define MTC_PARALLEL_H

#include "base/common.h"

/* How many threads are worth starting: processors, or fewer where OMP_NUM_THREADS or OMP_THREAD_LIMIT say so. */
int mtc_processors(void);

/* Calls work(context, i) for i from 0 to tasks - 1, begun in this order, on as many threads; returns when all are done. */
void mtc_parallel(int64_t tasks, void (*work)(void *context, int64_t task), void *context);

/* memcpy by all threads: of memory that is touched for the first time, which is slow. */
void mtc_copy_memory(void *to, const void *from, size_t bytes);
/* Has the system find the pages of a file that is mapped, before one thread reads all of it. */
void mtc_touch_memory(const void *memory, size_t bytes);

#endif
