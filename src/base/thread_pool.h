/* A pool of threads with a fixed split of work: range i of n always holds the same items, so that
 * which thread does what never depends on timing. */
#ifndef PLUMB_BASE_THREAD_POOL_H
#define PLUMB_BASE_THREAD_POOL_H

#include "plumb.h"

typedef struct plumb_pool plumb_pool;

/* Does items [begin, end) on thread `thread` of the pool (0 = the caller). */
typedef void (*plumb_pool_task)(void *arg, int64_t begin, int64_t end, int thread);

/* threads >= 1, the caller counted; `start` (may be NULL) runs once in every other thread. */
PLUMB_MUST_CHECK plumb_status plumb__pool_create(int threads, void (*start)(void), plumb_pool **pool,
                                                 plumb_error *err);
void plumb__pool_destroy(plumb_pool *pool);
int plumb__pool_threads(const plumb_pool *pool);

/* Splits `items` into contiguous ranges, one per thread, and returns when all are done.  With at most
 * `grain` items the caller does them alone: waking a thread would cost more than the work. */
void plumb__pool_run(plumb_pool *pool, int64_t items, int64_t grain, plumb_pool_task task, void *arg);

#endif
