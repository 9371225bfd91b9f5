#include "busy_memory.h"

#include "base/alloc.h"
#include "base/memory_read.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { BYTES = 256 << 20 }; /* larger than any cache */

struct bench_busy_memory {
    plumb_pool *pool;
    void *memory;
    pthread_t thread;
    atomic_bool stop;
    uint64_t sum; /* of what was read: nothing may be left out */
};

static void *read_on(void *arg) {
    bench_busy_memory *busy = arg;
    while (!busy->stop) busy->sum += plumb__memory_read(busy->pool, busy->memory, BYTES);
    return NULL;
}

bench_busy_memory *bench_busy_memory_start(int threads) {
    plumb_error ignored;
    bench_busy_memory *busy = threads > 0 ? calloc(1, sizeof *busy) : NULL;
    if (!busy) return NULL;
    busy->memory = plumb__alloc_aligned(BYTES, 1);
    if (busy->memory && plumb__pool_create(threads, NULL, &busy->pool, &ignored) == PLUMB_OK &&
        pthread_create(&busy->thread, NULL, read_on, busy) == 0)
        return busy;
    plumb__pool_destroy(busy->pool);
    plumb__free_aligned(busy->memory);
    free(busy);
    return NULL;
}

void bench_busy_memory_stop(bench_busy_memory *busy) {
    if (!busy) return;
    busy->stop = true;
    pthread_join(busy->thread, NULL);
    plumb__pool_destroy(busy->pool);
    plumb__free_aligned(busy->memory);
    free(busy);
}
