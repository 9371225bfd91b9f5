/* Where weights come from that are not always in memory: routed experts, Engram rows, embedding
 * rows.  The network asks by number and never knows about files.
 *
 * Payloads are checked for NaN as they come in (checkpoint.md section 7).  What arrives when, from
 * memory or from the files, changes no result. */
#ifndef PLUMB_STREAM_WEIGHT_SOURCE_H
#define PLUMB_STREAM_WEIGHT_SOURCE_H

#include "stream/engram_rows.h"
#include "stream/expert_cache.h"

typedef struct plumb_weight_source plumb_weight_source;

typedef struct plumb_source_options {
    int64_t slots;            /* experts in memory at most; 0: all of them */
    bool uncached;            /* read experts past the page cache */
    plumb_eviction eviction;
    bool read_ahead;          /* of the next layer's likely experts */
    plumb_reader_kind reader;
    int depth;                /* most unfinished reads; 0: 16 */
    int64_t piece_bytes;      /* of one read, as plumb__read_queue_open; 0: 4 MiB */
    plumb_backend *backend;   /* a device's memory for experts; kept; NULL: none */
    /* Puts a reader of the caller's between the files and us, which owns `inner`; NULL: nothing. */
    plumb_reader *(*wrap)(void *user, plumb_reader *inner);
    void *wrap_user;
    plumb_log_fn log;         /* may be NULL */
    void *log_user;
} plumb_source_options;

/* The checkpoint is kept and must outlive the source. */
PLUMB_MUST_CHECK plumb_status plumb__source_open(const plumb_checkpoint *checkpoint,
                                                 const plumb_source_options *options,
                                                 plumb_weight_source **source, plumb_error *err);
void plumb__source_close(plumb_weight_source *source);
plumb_expert_cache *plumb__source_cache(plumb_weight_source *source);
plumb_engram_rows *plumb__source_engram_rows(plumb_weight_source *source);
/* A batch has failed: forgets what it requested, began and did not collect. */
void plumb__source_abandon(plumb_weight_source *source);

/* ---- Experts: one layer at a time; see expert_cache.h ----------------------------------------- */

PLUMB_MUST_CHECK plumb_status plumb__source_request(plumb_weight_source *source, int64_t layer,
                                                    const int32_t *ids, const int32_t *rows,
                                                    int64_t n, plumb_error *err);
PLUMB_MUST_CHECK plumb_status plumb__source_take(plumb_weight_source *source, int64_t most,
                                                 bool wait, int32_t *which, plumb_expert *experts,
                                                 int64_t *count, plumb_error *err);
void plumb__source_give_back(plumb_weight_source *source);

/* For a backend that finds experts by itself; see expert_cache.h. */
bool plumb__source_hold(plumb_weight_source *source, int64_t rows);
void plumb__source_let_go(plumb_weight_source *source);
const plumb_expert_addresses *plumb__source_addresses(plumb_weight_source *source);
void plumb__source_used(plumb_weight_source *source, int64_t layer, const int32_t *ids,
                        const int32_t *rows, int64_t n);

/* Has reading the next layer's experts ahead been worth it lately?  Asked once a layer. */
bool plumb__source_reads_ahead(plumb_weight_source *source);
/* The next layer's experts, guessed (ids[n]) or certain to be nearly all (NULL). */
void plumb__source_read_ahead(plumb_weight_source *source, int64_t layer, const int32_t *ids,
                              int64_t n);

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Rows of Engram tables, as stream/engram_rows.h has it: begun for every Engram layer when a batch
 * starts, finished when the layer is reached, codes [n][dim] e4m3 and scales [n][dim/32] ue8m0.
 * `engram` counts the config's Engram layers. */
PLUMB_MUST_CHECK plumb_status plumb__source_engram_begin(plumb_weight_source *source, int engram,
                                                         const int64_t *rows, int64_t n,
                                                         plumb_error *err);
PLUMB_MUST_CHECK plumb_status plumb__source_engram_finish(plumb_weight_source *source, int engram,
                                                          uint8_t *codes, uint8_t *scales,
                                                          plumb_error *err);
/* Embedding rows of token ids: bf16 [n][hidden]. */
PLUMB_MUST_CHECK plumb_status plumb__source_embeddings(plumb_weight_source *source,
                                                       const int32_t *ids, int64_t n,
                                                       uint16_t *rows, plumb_error *err);

#endif
