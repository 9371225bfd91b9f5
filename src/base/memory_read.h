/* Reading memory on all threads, as fast as this machine can: the yardstick for everything that
 * streams weights. */
#ifndef PLUMB_BASE_MEMORY_READ_H
#define PLUMB_BASE_MEMORY_READ_H

#include "base/thread_pool.h"

/* Returns a number that depends on every byte, so that no compiler may skip one.  `memory` is
 * aligned to 8 bytes. */
uint64_t plumb__memory_read(plumb_pool *pool, const void *memory, int64_t bytes);

#endif
