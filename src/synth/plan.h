/* Which tensor goes where: the shards of a checkpoint before any byte is written. */
#ifndef PLUMB_SYNTH_PLAN_H
#define PLUMB_SYNTH_PLAN_H

#include "format/tensor_table.h"
#include "synth/json_text.h"
#include "synth/synth.h"

typedef struct plumb__planned {
    const char *name; /* owned by the plan */
    plumb_tensor_spec spec;
    int shard;
    int64_t begin; /* of the payload, counted from the end of the shard's header */
    bool real;     /* false: a hole */
} plumb__planned;

typedef struct plumb__planned_shard {
    char file[64];
    int64_t first, count; /* tensors of the plan, in ascending name order */
    int64_t data_bytes;
} plumb__planned_shard;

typedef struct plumb__plan {
    plumb__planned *tensors; /* shard by shard, then by name; a scale stands before its weight */
    int64_t count, capacity;
    plumb__planned_shard *shards;
    int n_shards;
    int64_t total_bytes, real_bytes; /* payload; without holes */
    char *names;
    int64_t names_size, names_capacity;
} plumb__plan;

/* Lays out the checkpoint of `shape`; release the result in any case. */
PLUMB_MUST_CHECK plumb_status plumb__plan_make(const plumb_synth_options *options,
                                               const plumb_model_config *shape, plumb__plan *plan,
                                               plumb_error *err);
void plumb__plan_free(plumb__plan *plan);

/* The JSON header of a shard, padded with spaces to a multiple of 8 bytes. */
void plumb__plan_write_header(const plumb__plan *plan, int shard, plumb__json_text *text);
/* model.safetensors.index.json, without a newline at its end; the caller chose the layout. */
plumb_status plumb__plan_write_index(const plumb__plan *plan, plumb__json_text *text,
                                     plumb_error *err);

#endif
