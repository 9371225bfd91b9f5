/* Which expert is in which slot, and which slot gives way: the bookkeeping of the expert cache,
 * without memory or reads, so that `plumb plan` can replay recorded routes through the same code.
 *
 * Keys are layer * experts + id.  One global pool: slots belong to no layer.  Not thread-safe. */
#ifndef PLUMB_STREAM_SLOT_TABLE_H
#define PLUMB_STREAM_SLOT_TABLE_H

#include "plumb.h"

typedef enum plumb_eviction {
    PLUMB_EVICT_LRU,          /* the one used longest ago */
    PLUMB_EVICT_AGE_OVER_USE, /* the largest age / (1 + uses): what is used often may rest longer */
    PLUMB_EVICT_OLDEST,       /* the one loaded longest ago: a ring */
    PLUMB_EVICTIONS
} plumb_eviction;

enum { PLUMB_SLOT_EMPTY = -1, PLUMB_SLOT_RETIRED = -2 }; /* instead of a key */

typedef struct plumb_slot {
    int64_t key;
    int64_t last_use; /* clock of its last use; of its load until it is used */
    int64_t loaded;   /* clock of its load */
    int32_t pins;     /* > 0: must not give way */
    bool passing;     /* the first to give way, see plumb__slot_pass */
} plumb_slot;

typedef struct plumb_slot_table {
    plumb_slot *slot;     /* [capacity] */
    int64_t capacity;
    int64_t slots;        /* that are not retired */
    int64_t used;         /* slots with a key */
    int64_t pinned;       /* slots with pins */
    int64_t keys;
    int32_t *slot_of;     /* [keys] or -1 */
    uint32_t *uses;       /* [keys], kept when a key gives way: also the hot list */
    int64_t clock;        /* rises with every load and use */
    plumb_eviction eviction;
    bool frozen;          /* no key gives way to another */
} plumb_slot_table;

PLUMB_MUST_CHECK plumb_status plumb__slot_table_open(int64_t keys, int64_t slots,
                                                     plumb_eviction eviction,
                                                     plumb_slot_table *table, plumb_error *err);
void plumb__slot_table_free(plumb_slot_table *table);
const char *plumb__eviction_name(plumb_eviction eviction); /* "lru", "age/(1+uses)", "ring" */

/* The key's slot or -1. */
int64_t plumb__slot_find(const plumb_slot_table *table, int64_t key);
/* Gives the key an empty slot, or one whose key gives way (*evicted: that key or -1).  -1 when every
 * slot is pinned, or taken while the table is frozen. */
int64_t plumb__slot_claim(plumb_slot_table *table, int64_t key, int64_t *evicted);
/* The key was used by `uses` rows of activations. */
void plumb__slot_use(plumb_slot_table *table, int64_t slot, int64_t uses);
/* The key came with a sweep through most of a layer and displaced another: until its next use it gives way
 * before all others, ring apart.  So a sweep larger than the cache goes through a few slots, and what it
 * found in the others is there for the next sweep and for the tokens after it. */
void plumb__slot_pass(plumb_slot_table *table, int64_t slot);
/* Do n of a layer's experts make a sweep? */
bool plumb__slot_is_sweep(int64_t n, int64_t experts);
void plumb__slot_pin(plumb_slot_table *table, int64_t slot);
void plumb__slot_unpin(plumb_slot_table *table, int64_t slot);
/* Empties an unpinned slot. */
void plumb__slot_drop(plumb_slot_table *table, int64_t slot);
/* Takes a slot out of use: an empty one, else the one that gives way.  -1 when all are pinned. */
int64_t plumb__slot_retire(plumb_slot_table *table);
/* Up to `slots` slots: retired ones come back, and new ones follow the last. */
PLUMB_MUST_CHECK plumb_status plumb__slot_table_grow(plumb_slot_table *table, int64_t slots,
                                                     plumb_error *err);

#endif
