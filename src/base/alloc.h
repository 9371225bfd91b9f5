/* Allocation helpers.  All sizes are checked for overflow; NULL means no memory. */
#ifndef PLUMB_BASE_ALLOC_H
#define PLUMB_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUMB_ALIGNMENT 64 /* cache line; widest vector register */

/* count * size zeroed bytes, aligned to PLUMB_ALIGNMENT; freed with plumb__free_aligned. */
void *plumb__alloc_aligned(int64_t count, size_t size);
void plumb__free_aligned(void *memory);

/* Makes *memory hold `bytes`, aligned to PLUMB_ALIGNMENT; what was in it is lost when it grows.  False
 * without memory, in which case *memory is NULL and *room 0. */
bool plumb__reserve_aligned(uint8_t **memory, int64_t *room, int64_t bytes);

/* Makes room for `needed` items of `size` bytes in a growing array, at least doubling it.
 * Returns the (moved) array or NULL, in which case the old array is intact. */
void *plumb__grow(void *items, int64_t *capacity, int64_t needed, size_t size);

#endif
