/* Fills the shards of a plan with generated numbers. */
#ifndef PLUMB_SYNTH_SHARD_WRITER_H
#define PLUMB_SYNTH_SHARD_WRITER_H

#include "base/thread_pool.h"
#include "synth/output_folder.h"
#include "synth/plan.h"

typedef struct plumb__shard_writer {
    const plumb_synth_options *options;
    const plumb_model_config *shape;
    const plumb__plan *plan;
    plumb__output *output;
    plumb_pool *pool;
    int64_t depth;             /* layers of the uncut model */
    int64_t done_bytes;        /* payload written so far */
    double *work;              /* one stripe per thread */
    uint8_t *payload, *scales; /* a batch of stripes */
} plumb__shard_writer;

/* Writes all shards of the plan. */
PLUMB_MUST_CHECK plumb_status plumb__write_shards(plumb__shard_writer *writer, plumb_error *err);

#endif
