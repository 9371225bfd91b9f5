/* Where weights come from that are not always in memory: routed experts, Engram rows, embedding
 * rows.  The network asks by number and never knows about files.
 *
 * This implementation reads an expert the first time it is needed and keeps it.  Payloads are
 * checked for NaN as they come in (checkpoint.md section 7). */
#ifndef PLUMB_STREAM_WEIGHT_SOURCE_H
#define PLUMB_STREAM_WEIGHT_SOURCE_H

#include "backend/backend.h"
#include "format/checkpoint.h"

typedef struct plumb_weight_source plumb_weight_source;

/* The checkpoint is kept and must outlive the source. */
PLUMB_MUST_CHECK plumb_status plumb__source_open(const plumb_checkpoint *checkpoint,
                                                 plumb_weight_source **source, plumb_error *err);
void plumb__source_close(plumb_weight_source *source);

/* Experts ids[n] of a backbone layer; valid until the source is closed. */
PLUMB_MUST_CHECK plumb_status plumb__source_experts(plumb_weight_source *source, int64_t layer,
                                                    const int32_t *ids, int64_t n,
                                                    plumb_expert *experts, plumb_error *err);
/* Rows of an Engram table: codes [n][dim] e4m3, scales [n][dim/32] ue8m0.  `engram` counts the
 * config's Engram layers. */
PLUMB_MUST_CHECK plumb_status plumb__source_engram_rows(plumb_weight_source *source, int engram,
                                                        const int64_t *rows, int64_t n,
                                                        uint8_t *codes, uint8_t *scales,
                                                        plumb_error *err);
/* Embedding rows of token ids: bf16 [n][hidden]. */
PLUMB_MUST_CHECK plumb_status plumb__source_embeddings(plumb_weight_source *source,
                                                       const int32_t *ids, int64_t n,
                                                       uint16_t *rows, plumb_error *err);
int64_t plumb__source_resident_bytes(const plumb_weight_source *source);

#endif
