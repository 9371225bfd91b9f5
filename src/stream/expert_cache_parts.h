/* What the two halves of the expert cache share: expert_cache.c decides what to read and what gives
 * way, expert_loading.c gets it into memory. */
#ifndef PLUMB_STREAM_EXPERT_CACHE_PARTS_H
#define PLUMB_STREAM_EXPERT_CACHE_PARTS_H

#include "stream/expert_cache.h"
#include "stream/slot_memory.h"

#include <pthread.h>

/* What the table does not know of a slot. */
typedef struct expert_slot {
    plumb_expert_cache *cache;
    int64_t number;
    uint8_t *memory; /* [slot_bytes], taken at the first load */
    int64_t listed;  /* the key that the table of addresses has for it, or PLUMB_SLOT_EMPTY */
    const uint8_t *listed_memory;
    plumb_expert_layout layout;
    plumb_load load;
    plumb_error *fault; /* of a load that failed, until it has been reported */
    bool loading, ready;
    bool given_up;      /* loading, and nobody wanted it for a while */
    bool ahead;         /* kept for the next request: one pin */
    bool guessed;       /* and read only for that */
    bool requested;     /* by the request at work: one pin */
    bool warming;
} expert_slot;

typedef struct wanted_expert {
    int64_t key, slot; /* slot -1: not begun */
    int32_t rows;
    bool taken;
} wanted_expert;

enum { PLUMB_UNPACKERS = 4 }; /* threads of the reader that unpack at a time: it keeps memory busy */

struct plumb_expert_cache {
    const plumb_checkpoint *checkpoint;
    const plumb_model_config *config;
    plumb_read_queue *queue;
    plumb_slot_memory *memory;
    plumb_backend *backend;            /* NULL: memory of our own */
    plumb_expert_addresses *addresses; /* [table.keys] in its memory; NULL: it does not look */
    int64_t slot_bytes, alignment;
    int *fd;              /* [shards], -1: not open yet */
    bool uncached;
    plumb_log_fn log;
    void *log_user;
    uint8_t *rooms;       /* [PLUMB_UNPACKERS] for unpacking; NULL: nothing is packed */

    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t arrived;
    plumb_slot_table table;
    expert_slot **slot;   /* [table.capacity] */
    int64_t slot_room, target; /* target: slots there should be */
    wanted_expert *wanted; /* [experts] the request at work */
    int64_t n_wanted, next_wanted, n_taken;
    bool sweeps, ahead_sweeps; /* the request, what is read ahead: most of a layer */
    int64_t *out;         /* [experts] slots taken and not given back */
    int64_t n_out;
    int64_t *ahead;       /* [experts] keys to read ahead */
    int64_t n_ahead, next_ahead, held_ahead;
    int32_t *warm;        /* hot keys not yet read */
    int64_t n_warm, next_warm, warming;
    uint8_t *room[PLUMB_UNPACKERS]; /* [n_rooms] those not in use */
    int n_rooms;
    pthread_cond_t room_free;
    plumb_expert_cache_stats stats;
};

/* Everything below is called with the lock held, or by whoever opens and closes the cache. */

/* Opens every shard for reading experts. */
PLUMB_MUST_CHECK plumb_status plumb__expert_files_open(plumb_expert_cache *cache, plumb_error *err);
void plumb__expert_files_close(plumb_expert_cache *cache);
/* Memory for unpacking, where the files need it. */
PLUMB_MUST_CHECK plumb_status plumb__expert_rooms_open(plumb_expert_cache *cache, plumb_error *err);

/* The table of addresses, where the backend wants one (expert_hold.c). */
PLUMB_MUST_CHECK plumb_status plumb__expert_table_open(plumb_expert_cache *cache, plumb_error *err);
void plumb__expert_table_close(plumb_expert_cache *cache);

/* Claims a slot for a key that is in none and starts reading it: *slot, or -1 when there is no room
 * now.  *displaced: another key gave way. */
PLUMB_MUST_CHECK plumb_status plumb__expert_load(plumb_expert_cache *cache, int64_t key, bool urgent,
                                                 int64_t *slot, bool *displaced, plumb_error *err);
/* Empties a slot that nobody pins: its expert failed to load. */
void plumb__expert_drop_failed(plumb_expert_cache *cache, expert_slot *slot);
void plumb__expert_unmap(plumb_expert_cache *cache, expert_slot *slot);
/* Starts loads of the hot list while there are empty slots (expert_cache.c; also called when a load
 * is done). */
void plumb__expert_go_on_warming(plumb_expert_cache *cache);

#endif
