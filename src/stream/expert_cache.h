/* Experts in memory: one pool of slots for all layers, filled from the files as they are needed.
 *
 * The evaluating thread asks for the experts of a layer (request), takes them as they become ready,
 * those in memory first, computes with them and gives them back; with fewer slots than experts the
 * rest is read into the slots that came back.  So a layer never needs more than one slot, and what
 * is being computed with is never overwritten: a slot is pinned from its request until it is given
 * back, and while a read into it is unfinished.
 *
 * Two uses of the same pool.  As a cache, slots give way by recency and use.  As a ring
 * (PLUMB_EVICT_OLDEST), with the next layer read ahead, they are the whole-layer buffers of a
 * machine too small to keep anything from one token to the next.
 *
 * Any thread may call; one request at a time. */
#ifndef PLUMB_STREAM_EXPERT_CACHE_H
#define PLUMB_STREAM_EXPERT_CACHE_H

#include "stream/expert_layout.h"
#include "stream/slot_table.h"

typedef struct plumb_expert_cache plumb_expert_cache;

typedef struct plumb_expert_cache_options {
    int64_t slots;           /* 1 to layers * experts */
    bool uncached;           /* read past the page cache, where the file system can */
    plumb_eviction eviction;
    plumb_reader *reader;    /* taken over, also when opening fails */
    int64_t piece_bytes;     /* as plumb__read_queue_open */
    plumb_backend *backend;  /* slots are its memory if it is a device's; NULL: none */
    plumb_log_fn log;        /* says how files are read; may be NULL */
    void *log_user;
} plumb_expert_cache_options;

/* The checkpoint is kept. */
PLUMB_MUST_CHECK plumb_status plumb__expert_cache_open(const plumb_checkpoint *checkpoint,
                                                       const plumb_expert_cache_options *options,
                                                       plumb_expert_cache **cache,
                                                       plumb_error *err);
void plumb__expert_cache_close(plumb_expert_cache *cache);

/* The layer needs experts ids[n], all different, for rows[i] rows each.  Starts reading those that
 * are not in memory, as far as there are slots. */
PLUMB_MUST_CHECK plumb_status plumb__expert_cache_request(plumb_expert_cache *cache, int64_t layer,
                                                          const int32_t *ids, const int32_t *rows,
                                                          int64_t n, plumb_error *err);
/* Up to `most` requested experts that are ready and were not taken before: *count of them, which[i]
 * their index in the request.  With `wait`, waits until there is at least one, unless all have been
 * taken (*count 0).  What was taken before must have been given back. */
PLUMB_MUST_CHECK plumb_status plumb__expert_cache_take(plumb_expert_cache *cache, int64_t most,
                                                       bool wait, int32_t *which,
                                                       plumb_expert *experts, int64_t *count,
                                                       plumb_error *err);
/* Nothing reads the experts taken last any more. */
void plumb__expert_cache_give_back(plumb_expert_cache *cache);
/* Ends a request early: what is being read goes on unseen, what has not begun is not read. */
void plumb__expert_cache_abandon(plumb_expert_cache *cache);

/* For a backend that finds experts by itself (backend.h, experts_held).  hold: the experts in memory are in
 * the table of addresses, and none of them gives way until let_go; false when that is not worth while for
 * batches of `rows` rows, or not to be had.  No operation of the backend may be unfinished, and no request
 * at work.  used: experts found in the table, by rows[i] rows each. */
bool plumb__expert_cache_hold(plumb_expert_cache *cache, int64_t rows);
void plumb__expert_cache_let_go(plumb_expert_cache *cache);
const plumb_expert_addresses *plumb__expert_cache_addresses(const plumb_expert_cache *cache);
void plumb__expert_cache_used(plumb_expert_cache *cache, int64_t layer, const int32_t *ids,
                              const int32_t *rows, int64_t n);

/* `layer` will be requested next, probably for these experts (NULL: all): read when nothing
 * demanded is outstanding, into at most half of the slots.  Replaces an earlier call. */
void plumb__expert_cache_read_ahead(plumb_expert_cache *cache, int64_t layer, const int32_t *ids,
                                    int64_t n);
/* Fills empty slots with these keys (layer * experts + id), best first, behind everything else. */
void plumb__expert_cache_warm(plumb_expert_cache *cache, const int32_t *keys, int64_t n);

/* More or fewer slots, at least 1.  Memory goes back at once, but for slots in use. */
void plumb__expert_cache_set_slots(plumb_expert_cache *cache, int64_t slots,
                                   plumb_eviction eviction);
int64_t plumb__expert_cache_slot_bytes(const plumb_expert_cache *cache);
/* uses [layers * experts] since opening, as the slot table counts them. */
void plumb__expert_cache_uses(plumb_expert_cache *cache, uint32_t *uses);

typedef struct plumb_expert_cache_stats {
    int64_t slots, held;          /* now; held: with an expert, or one on its way */
    int64_t bytes;                /* of memory for slots, used or ready to be */
    int64_t hits, misses;         /* experts asked for that were in memory, that had to be read */
    int64_t ahead_useful, ahead_wasted; /* read ahead, and asked for or not */
    double wait_seconds;          /* the evaluating thread waited for experts */
    double unpack_seconds;        /* the reader's threads unpacked blocks of a converted file */
    plumb_read_stats reads;
} plumb_expert_cache_stats;
void plumb__expert_cache_get_stats(plumb_expert_cache *cache, plumb_expert_cache_stats *stats);

#endif
