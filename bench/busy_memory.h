/* Threads that stream memory while something else is measured: reads arrive in the same memory that
 * weights are read from, so a drive beside a computing model has less of it. */
#ifndef BENCH_BUSY_MEMORY_H
#define BENCH_BUSY_MEMORY_H

#include "plumb.h"

typedef struct bench_busy_memory bench_busy_memory;

/* `threads` of them until the stop; NULL when there are none to start, or no memory. */
bench_busy_memory *bench_busy_memory_start(int threads);
void bench_busy_memory_stop(bench_busy_memory *busy);

#endif
