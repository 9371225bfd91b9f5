/* Recorded routes run through the bookkeeping of the expert cache, at any number of slots and with
 * either way of giving way: what the cache would have held and what it would have had to read. */
#ifndef PLUMB_STREAM_ROUTE_REPLAY_H
#define PLUMB_STREAM_ROUTE_REPLAY_H

#include "stream/route_trace.h"
#include "stream/slot_table.h"

/* Of one kind of batch.  An expert counts once per batch and layer, however many rows want it. */
typedef struct plumb_replay_count {
    int64_t batches;
    int64_t tokens; /* rows of the batches' first layers */
    int64_t wanted; /* experts */
    int64_t hits;   /* of those, in a slot already */
} plumb_replay_count;

typedef struct plumb_replay {
    int64_t slots; /* as asked for, >= 1 */
    plumb_eviction eviction;
    plumb_replay_count decode;  /* batches of one row */
    plumb_replay_count prefill; /* of more */
    int64_t distinct;           /* different (layer, expert) pairs in the whole trace */
} plumb_replay;

/* Fills the counts of all `n` replays in one pass over the file; all start with an empty cache. */
PLUMB_MUST_CHECK plumb_status plumb__route_replay(const char *path, plumb_route_shape *shape,
                                                  plumb_replay *replays, int64_t n,
                                                  plumb_error *err);

/* Shares of wanted experts found; 0 when none was wanted. */
double plumb__replay_hit_rate(const plumb_replay_count *count);
/* Experts read for each token; 0 when there was none. */
double plumb__replay_misses(const plumb_replay_count *count);

#endif
