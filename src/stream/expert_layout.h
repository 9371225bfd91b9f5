/* Where an expert's bytes are in the files, and where they land in memory.
 *
 * An expert is six payloads: codes and scales of w1, w2, w3.  Those that lie beside each other in a
 * shard are read as one run; a released shard keeps all codes together and all scales together, so
 * an expert is two runs.  Uncached files are read in whole pages: a run is aligned out on both
 * sides, and the payloads lie inside it where they fell, so that nothing is copied after a read.
 *
 * In a converted file codes and scales of a matrix share MXFP4 blocks: an expert is three runs, one of
 * each stack.  Its blocks are unpacked where they were read, codes first and scales after them; then
 * what computes sees the same as from released files. */
#ifndef PLUMB_STREAM_EXPERT_LAYOUT_H
#define PLUMB_STREAM_EXPERT_LAYOUT_H

#include "backend/backend.h"
#include "format/checkpoint.h"
#include "stream/read_queue.h"

enum { PLUMB_EXPERT_PAYLOADS = 6 }; /* codes and scales of w1, w2, w3, in this order */

typedef struct plumb_expert_layout {
    const plumb_tensor *tensor[PLUMB_EXPERT_PAYLOADS];
    int64_t place[PLUMB_EXPERT_PAYLOADS]; /* offset of each payload in the expert's memory */
    struct {
        int shard;
        int64_t offset, size, needed, place; /* as in plumb_extent; place in the expert's memory */
    } run[PLUMB_LOAD_EXTENTS];
    int n_runs;
} plumb_expert_layout;

/* alignment: PLUMB_READ_ALIGNMENT for uncached files, 1 otherwise. */
PLUMB_MUST_CHECK plumb_status plumb__expert_layout_find(const plumb_checkpoint *checkpoint,
                                                        int64_t layer, int64_t id,
                                                        int64_t alignment,
                                                        plumb_expert_layout *layout,
                                                        plumb_error *err);
/* Memory that any expert of this config fits into. */
int64_t plumb__expert_layout_bytes(const plumb_model_config *config, int64_t alignment);
/* The end, in its shard, of what holds payload i. */
int64_t plumb__expert_layout_end(const plumb_expert_layout *layout, int i);

/* Are there blocks to unpack after reading? */
bool plumb__expert_layout_is_packed(const plumb_expert_layout *layout);
/* Memory beside, while one expert of this config is unpacked. */
int64_t plumb__expert_unpack_room(const plumb_model_config *config);
/* Unpacks the blocks of all three matrices, once after their runs were read into `memory`. */
void plumb__expert_unpack(const plumb_expert_layout *layout, uint8_t *memory, uint8_t *room);

/* The matrices of an expert whose runs were read into `memory`, and unpacked. */
plumb_expert plumb__expert_layout_bind(const plumb_expert_layout *layout, const uint8_t *memory);

#endif
