#include "stream/weight_source.h"

#include "base/error.h"
#include "stream/guess_control.h"

#include <stdlib.h>

enum {
    /* As fast as more of them on the drives we measured, and little in front of a demanded read. */
    DEPTH = 16,
    PIECE = 4 << 20
};

struct plumb_weight_source {
    const plumb_checkpoint *checkpoint;
    const plumb_model_config *config;
    plumb_expert_cache *experts;
    bool read_ahead;
    plumb_guess_control control;
    const plumb_tensor *embed;
    plumb_engram_rows *engram_rows;
};

/* ---- Life ------------------------------------------------------------------------------------ */

/* A tensor the checkpoint was already checked to have. */
static plumb_status find(const plumb_checkpoint *checkpoint, const char *name,
                         const plumb_tensor **tensor, plumb_error *err) {
    *tensor = plumb__checkpoint_find(checkpoint, "%s", name);
    if (*tensor) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_TENSOR, plumb__checkpoint_path(checkpoint), name, -1,
                       "no such tensor", "it to be present");
}

static plumb_status open_experts(plumb_weight_source *source, const plumb_source_options *options,
                                 plumb_error *err) {
    plumb_reader *reader;
    char why[160];
    plumb_status status =
        plumb__reader_open(options->reader, options->depth > 0 ? options->depth : DEPTH, &reader, why,
                           sizeof why, err);
    if (status != PLUMB_OK) return status;
    if (options->log && options->uncached)
        options->log(options->log_user, PLUMB_LOG_INFO, plumb__format("reads: %s", why).s);
    if (options->wrap) reader = options->wrap(options->wrap_user, reader);
    int64_t all = source->config->layers * source->config->experts;
    const plumb_expert_cache_options cache = {
        .slots = options->slots > 0 && options->slots < all ? options->slots : all,
        .uncached = options->uncached, .eviction = options->eviction, .reader = reader,
        .piece_bytes = options->piece_bytes > 0 ? options->piece_bytes : PIECE,
        .backend = options->backend, .log = options->log, .log_user = options->log_user};
    return plumb__expert_cache_open(source->checkpoint, &cache, &source->experts, err);
}

static plumb_status open_engram_rows(plumb_weight_source *source,
                                     const plumb_source_options *options, plumb_error *err) {
    plumb_reader *reader;
    plumb_status status = plumb__engram_rows_reader(options->reader, &reader, err);
    if (status != PLUMB_OK) return status;
    if (options->wrap) reader = options->wrap(options->wrap_user, reader);
    return plumb__engram_rows_open(source->checkpoint, reader, PLUMB_ENGRAM_CACHE_ROWS,
                                   &source->engram_rows, err);
}

plumb_status plumb__source_open(const plumb_checkpoint *checkpoint,
                                const plumb_source_options *options, plumb_weight_source **out,
                                plumb_error *err) {
    plumb_weight_source *source = calloc(1, sizeof *source);
    if (!source) return plumb__fail_memory(err, "weight source", sizeof *source);
    source->checkpoint = checkpoint;
    source->config = plumb__checkpoint_config(checkpoint);
    source->read_ahead = options->read_ahead;
    plumb_status status = find(checkpoint, "embed.weight", &source->embed, err);
    if (status == PLUMB_OK) status = open_engram_rows(source, options, err);
    if (status == PLUMB_OK) status = open_experts(source, options, err);
    if (status == PLUMB_OK) *out = source;
    else plumb__source_close(source);
    return status;
}

void plumb__source_close(plumb_weight_source *source) {
    if (!source) return;
    plumb__expert_cache_close(source->experts);
    plumb__engram_rows_close(source->engram_rows);
    free(source);
}

plumb_expert_cache *plumb__source_cache(plumb_weight_source *source) { return source->experts; }

plumb_engram_rows *plumb__source_engram_rows(plumb_weight_source *source) {
    return source->engram_rows;
}

void plumb__source_abandon(plumb_weight_source *source) {
    plumb__expert_cache_abandon(source->experts);
    plumb__engram_rows_abandon(source->engram_rows);
}

/* ---- Experts --------------------------------------------------------------------------------- */

plumb_status plumb__source_request(plumb_weight_source *source, int64_t layer, const int32_t *ids,
                                   const int32_t *rows, int64_t n, plumb_error *err) {
    return plumb__expert_cache_request(source->experts, layer, ids, rows, n, err);
}

plumb_status plumb__source_take(plumb_weight_source *source, int64_t most, bool wait,
                                int32_t *which, plumb_expert *experts, int64_t *count,
                                plumb_error *err) {
    return plumb__expert_cache_take(source->experts, most, wait, which, experts, count, err);
}

void plumb__source_give_back(plumb_weight_source *source) {
    plumb__expert_cache_give_back(source->experts);
}

bool plumb__source_hold(plumb_weight_source *source, int64_t rows) {
    return plumb__expert_cache_hold(source->experts, rows);
}

void plumb__source_let_go(plumb_weight_source *source) {
    plumb__expert_cache_let_go(source->experts);
}

const plumb_expert_addresses *plumb__source_addresses(plumb_weight_source *source) {
    return plumb__expert_cache_addresses(source->experts);
}

void plumb__source_used(plumb_weight_source *source, int64_t layer, const int32_t *ids,
                        const int32_t *rows, int64_t n) {
    plumb__expert_cache_used(source->experts, layer, ids, rows, n);
}

bool plumb__source_reads_ahead(plumb_weight_source *source) {
    if (!source->read_ahead) return false;
    plumb_expert_cache_stats stats;
    plumb__expert_cache_get_stats(source->experts, &stats);
    return stats.slots < source->config->layers * source->config->experts &&
           plumb__guess_pays(&source->control, stats.ahead_useful, stats.ahead_wasted);
}

void plumb__source_read_ahead(plumb_weight_source *source, int64_t layer, const int32_t *ids,
                              int64_t n) {
    plumb__expert_cache_read_ahead(source->experts, layer, ids, n);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Reads part of a payload and refuses NaN in it. */
static plumb_status read_checked(const plumb_weight_source *source, const plumb_tensor *tensor,
                                 int64_t begin, int64_t size, void *into, plumb_error *err) {
    plumb_status status =
        plumb__checkpoint_read(source->checkpoint, tensor, begin, size, into, err);
    if (status != PLUMB_OK) return status;
    return plumb__checkpoint_check_values(source->checkpoint, tensor, begin, size, into, err);
}

plumb_status plumb__source_engram_begin(plumb_weight_source *source, int engram,
                                        const int64_t *rows, int64_t n, plumb_error *err) {
    return plumb__engram_rows_begin(source->engram_rows, engram, rows, n, err);
}

plumb_status plumb__source_engram_finish(plumb_weight_source *source, int engram, uint8_t *codes,
                                         uint8_t *scales, plumb_error *err) {
    return plumb__engram_rows_finish(source->engram_rows, engram, codes, scales, err);
}

plumb_status plumb__source_embeddings(plumb_weight_source *source, const int32_t *ids, int64_t n,
                                      uint16_t *rows, plumb_error *err) {
    int64_t row_bytes = source->config->hidden * 2;
    plumb_status status = PLUMB_OK;
    for (int64_t i = 0; i < n && status == PLUMB_OK; i++)
        status = read_checked(source, source->embed, ids[i] * row_bytes, row_bytes,
                              rows + i * source->config->hidden, err);
    return status;
}
