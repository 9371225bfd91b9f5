#include "base/thread_pool.h"

#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct worker {
    plumb_pool *pool;
    pthread_t thread;
    int number; /* 1.. */
} worker;

/* A step of the network is hundreds of short runs, and waking a sleeping thread can take longer than
 * one of them.  So a thread that waits looks for news a little while before it sleeps, but no longer:
 * where another process has the core, waiting in a loop only keeps it away. */
enum { LOOKS = 4000 }; /* about 100 microseconds */

struct plumb_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    _Atomic uint64_t round; /* rises with every run; a worker that sees a new round has work */
    _Atomic int running;    /* workers still busy with this round */
    _Atomic bool stop;
    int sleeping;           /* workers that need a signal; under the lock */
    bool caller_sleeps;     /* under the lock */
    int threads;            /* the caller included */
    void (*start)(void);
    plumb_pool_task task;
    void *arg;
    int64_t items;
    worker *workers;
};

static inline void pause_a_moment(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* Range of thread t: as even as possible, the first ones one longer. */
static void do_range(plumb_pool *pool, int t) {
    int64_t share = pool->items / pool->threads, extra = pool->items % pool->threads;
    int64_t begin = share * t + (t < extra ? t : extra);
    int64_t end = begin + share + (t < extra);
    if (begin < end) pool->task(pool->arg, begin, end, t);
}

/* Returns with a round that is not `seen`, or when the pool stops. */
static uint64_t await_round(plumb_pool *pool, uint64_t seen) {
    for (int i = 0; i < LOOKS; i++) {
        if (atomic_load(&pool->round) != seen || atomic_load(&pool->stop))
            return atomic_load(&pool->round);
        pause_a_moment();
    }
    pthread_mutex_lock(&pool->lock);
    pool->sleeping++;
    while (atomic_load(&pool->round) == seen && !atomic_load(&pool->stop))
        pthread_cond_wait(&pool->work, &pool->lock);
    pool->sleeping--;
    pthread_mutex_unlock(&pool->lock);
    return atomic_load(&pool->round);
}

static void *work_loop(void *arg) {
    worker *self = arg;
    plumb_pool *pool = self->pool;
    if (pool->start) pool->start();
    uint64_t seen = 0;
    for (;;) {
        uint64_t round = await_round(pool, seen);
        if (round == seen) return NULL; /* the pool stops */
        seen = round;
        do_range(pool, self->number);
        if (atomic_fetch_sub(&pool->running, 1) > 1) continue;
        pthread_mutex_lock(&pool->lock);
        if (pool->caller_sleeps) pthread_cond_signal(&pool->done);
        pthread_mutex_unlock(&pool->lock);
    }
}

static void stop_workers(plumb_pool *pool, int started) {
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->stop, true);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < started; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool);
}

plumb_status plumb__pool_create(int threads, void (*start)(void), plumb_pool **out,
                                plumb_error *err) {
    if (threads < 1)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "threads", -1,
                           plumb__format("%d", threads).s, "at least 1");
    plumb_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return plumb__fail_memory(err, "thread pool", sizeof *pool);
    pool->threads = threads;
    pool->start = start;
    pool->workers = calloc((size_t)threads, sizeof *pool->workers);
    if (!pool->workers) {
        free(pool);
        return plumb__fail_memory(err, "thread pool", (size_t)threads * sizeof *pool->workers);
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    for (int i = 0; i < threads - 1; i++) {
        pool->workers[i].pool = pool;
        pool->workers[i].number = i + 1;
        if (pthread_create(&pool->workers[i].thread, NULL, work_loop, &pool->workers[i]) != 0) {
            stop_workers(pool, i);
            return plumb__fail(err, PLUMB_ERROR_MEMORY, NULL, "threads", i + 1,
                               "the system starts no more", "%d threads", threads);
        }
    }
    *out = pool;
    return PLUMB_OK;
}

void plumb__pool_destroy(plumb_pool *pool) {
    if (pool) stop_workers(pool, pool->threads - 1);
}

int plumb__pool_threads(const plumb_pool *pool) { return pool->threads; }

void plumb__pool_run(plumb_pool *pool, int64_t items, int64_t grain, plumb_pool_task task,
                     void *arg) {
    if (items <= 0) return;
    if (pool->threads == 1 || items <= grain) {
        task(arg, 0, items, 0);
        return;
    }
    pool->task = task;
    pool->arg = arg;
    pool->items = items;
    atomic_store(&pool->running, pool->threads - 1);
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->round, 1);
    if (pool->sleeping > 0) pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    do_range(pool, 0);
    for (int i = 0; i < LOOKS; i++) {
        if (atomic_load(&pool->running) == 0) return;
        pause_a_moment();
    }
    pthread_mutex_lock(&pool->lock);
    pool->caller_sleeps = true;
    while (atomic_load(&pool->running) > 0) pthread_cond_wait(&pool->done, &pool->lock);
    pool->caller_sleeps = false;
    pthread_mutex_unlock(&pool->lock);
}
