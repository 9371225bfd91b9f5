/* The keys that a row of a search may choose from (arguments.h): all that it sees, or those of them in
 * the blocks of its pool. */
#ifndef PLUMB_BACKEND_METAL_CANDIDATES_H
#define PLUMB_BACKEND_METAL_CANDIDATES_H

#include "backend/metal/kernels/common.h"

/* A key is visible from its last token on. */
static inline uint visible_keys(uint position, uint row, uint ratio) {
    return (position + row + 1) / ratio;
}

static inline uint blocks_of(uint keys, uint block_size) {
    return (keys + block_size - 1) / block_size;
}

/* Keys in the n blocks of a pool.  Only the newest can be short, and being always chosen and the pool
 * ascending, it comes last. */
static inline uint pooled_keys(device const int *pool, uint n, uint block_size, uint visible) {
    if (n == 0) return 0;
    uint newest = (uint)pool[n - 1] * block_size;
    uint in_newest = visible - newest < block_size ? visible - newest : block_size;
    return (n - 1) * block_size + in_newest;
}

/* The position of candidate j of a pool. */
static inline uint pooled_position(device const int *pool, uint block_size, uint j) {
    return (uint)pool[j / block_size] * block_size + j % block_size;
}

#endif
