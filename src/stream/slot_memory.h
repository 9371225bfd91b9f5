/* Memory for slots, ready before it is needed.
 *
 * The system clears pages when they are first touched, and registering them for io_uring touches them
 * all: for one expert that takes about as long as reading it.  So a thread keeps a few pieces ready
 * while slots are still being filled for the first time.  All functions may be called by any thread. */
#ifndef PLUMB_STREAM_SLOT_MEMORY_H
#define PLUMB_STREAM_SLOT_MEMORY_H

#include "backend/backend.h"
#include "stream/reader.h"

typedef struct plumb_slot_memory plumb_slot_memory;

/* Pieces of `bytes`, for `reader`, which is kept, of the memory of `backend` if that is a device's (NULL:
 * none); at most `ahead` are ready and not taken, 0: made when
 * they are taken. */
PLUMB_MUST_CHECK plumb_status plumb__slot_memory_open(plumb_reader *reader, plumb_backend *backend, int64_t bytes,
                                                      int64_t ahead, plumb_slot_memory **memory,
                                                      plumb_error *err);
/* Every piece must have been given back. */
void plumb__slot_memory_close(plumb_slot_memory *memory);

/* At most so many pieces are to exist, those that are ready included: what is too much of these goes
 * back to the system. */
void plumb__slot_memory_limit(plumb_slot_memory *memory, int64_t pieces);
/* A piece; NULL when the system has no memory.  The limit is the caller's to keep. */
void *plumb__slot_memory_take(plumb_slot_memory *memory);
/* Back to the system.  No read into it may be unfinished. */
void plumb__slot_memory_give_back(plumb_slot_memory *memory, void *piece);
/* Of all pieces, taken or ready. */
int64_t plumb__slot_memory_bytes(plumb_slot_memory *memory);

#endif
