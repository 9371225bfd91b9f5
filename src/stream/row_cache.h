/* Rows that were read lately.
 *
 * Direct-mapped: a row can be in one slot only, and the latest one put there stays.  Row numbers of
 * Engram tables are hashes already, so a remainder spreads them evenly. */
#ifndef PLUMB_STREAM_ROW_CACHE_H
#define PLUMB_STREAM_ROW_CACHE_H

#include "plumb.h"

/* Used by one thread at a time. */
typedef struct plumb_row_cache {
    int64_t slots, row_bytes;
    int64_t *key;   /* [slots], -1: empty */
    uint8_t *bytes; /* [slots][row_bytes] */
} plumb_row_cache;

/* slots >= 0; with none, nothing is ever found. */
PLUMB_MUST_CHECK plumb_status plumb__row_cache_init(plumb_row_cache *cache, int64_t slots,
                                                    int64_t row_bytes, plumb_error *err);
void plumb__row_cache_free(plumb_row_cache *cache);
/* Copies the row of that key (>= 0) to `into`; false when it is not here. */
bool plumb__row_cache_get(const plumb_row_cache *cache, int64_t key, uint8_t *into);
void plumb__row_cache_put(plumb_row_cache *cache, int64_t key, const uint8_t *from);

#endif
