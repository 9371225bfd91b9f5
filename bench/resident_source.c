#include "resident_source.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 64 }; /* different Engram and embedding rows */

struct plumb_weight_source {
    plumb_backend *backend;
    const plumb_model_config *config;
    uint8_t *memory;
    int64_t bytes;
    plumb_expert *expert; /* [experts] */
    int64_t experts, next;
    int64_t requested, taken; /* of the layer at work */
    uint8_t *engram_codes, *engram_scales; /* [ROWS][engram_dim], [ROWS][engram_dim / 32] */
    int64_t engram_asked[PLUMB_MAX_ENGRAM_LAYERS]; /* rows begun and not finished */
    uint16_t *embedding;                   /* [ROWS][hidden] */
};

static int64_t expert_bytes(const plumb_model_config *c) {
    return 2 * bench_matrix_stride(PLUMB_MATRIX_FP4, c->inter, c->hidden) +
           bench_matrix_stride(PLUMB_MATRIX_FP4, c->hidden, c->inter);
}

/* gate, down, up one after the other, as a reader of the released files lays them out. */
static plumb_expert make_expert(const plumb_model_config *c, bench_random *random, uint8_t *at) {
    plumb_expert expert;
    expert.gate = bench_make_matrix(random, PLUMB_MATRIX_FP4, c->inter, c->hidden, at);
    at += bench_matrix_stride(PLUMB_MATRIX_FP4, c->inter, c->hidden);
    expert.down = bench_make_matrix(random, PLUMB_MATRIX_FP4, c->hidden, c->inter, at);
    at += bench_matrix_stride(PLUMB_MATRIX_FP4, c->hidden, c->inter);
    expert.up = bench_make_matrix(random, PLUMB_MATRIX_FP4, c->inter, c->hidden, at);
    return expert;
}

void bench_source_destroy(plumb_weight_source *source) {
    if (!source) return;
    if (source->memory) source->backend->ops->release(source->backend, source->memory);
    free(source->expert);
    free(source->engram_codes);
    free(source->engram_scales);
    free(source->embedding);
    free(source);
}

plumb_status bench_source_create(plumb_backend *backend, const plumb_model_config *c,
                                 int64_t experts, bench_random *random, plumb_weight_source **out,
                                 plumb_error *err) {
    int64_t dim = c->engram_dim, bytes = experts * expert_bytes(c);
    plumb_weight_source *source = calloc(1, sizeof *source);
    if (!source) return plumb__fail_memory(err, "source", sizeof *source);
    *source = (plumb_weight_source){.backend = backend, .config = c, .bytes = bytes,
                                    .experts = experts};
    source->memory = backend->ops->allocate(backend, bytes);
    source->expert = calloc((size_t)experts, sizeof *source->expert);
    source->engram_codes = malloc((size_t)(ROWS * dim));
    source->engram_scales = malloc((size_t)(ROWS * dim / PLUMB_BLOCK));
    source->embedding = malloc((size_t)(ROWS * c->hidden) * sizeof *source->embedding);
    if (!source->memory || !source->expert || !source->engram_codes || !source->engram_scales ||
        !source->embedding) {
        bench_source_destroy(source);
        return plumb__fail_memory(err, "experts", (size_t)bytes);
    }
    for (int64_t e = 0; e < experts; e++)
        source->expert[e] = make_expert(c, random, source->memory + e * expert_bytes(c));
    for (int64_t i = 0; i < ROWS * dim; i++)
        source->engram_codes[i] = plumb__e4m3_encode(64 * bench_draw_gaussian(random));
    memset(source->engram_scales, 127 - 6, (size_t)(ROWS * dim / PLUMB_BLOCK));
    for (int64_t i = 0; i < ROWS * c->hidden; i++)
        source->embedding[i] = plumb__bf16_encode(bench_draw_gaussian(random));
    *out = source;
    return PLUMB_OK;
}

int64_t bench_source_bytes(const plumb_weight_source *source) { return source->bytes; }

/* ---- stream/weight_source.h, as far as a network calls it ---------------------------------- */

plumb_status plumb__source_request(plumb_weight_source *source, int64_t layer, const int32_t *ids,
                                   const int32_t *rows, int64_t n, plumb_error *err) {
    (void)layer;
    (void)ids;
    (void)rows;
    (void)err;
    source->requested = n;
    source->taken = 0;
    return PLUMB_OK;
}

plumb_status plumb__source_take(plumb_weight_source *source, int64_t most, bool wait,
                                int32_t *which, plumb_expert *experts, int64_t *count,
                                plumb_error *err) {
    (void)wait;
    (void)err;
    for (*count = 0; *count < most && source->taken < source->requested; ++*count) {
        which[*count] = (int32_t)source->taken++;
        experts[*count] = source->expert[source->next];
        source->next = (source->next + 1) % source->experts;
    }
    return PLUMB_OK;
}

void plumb__source_give_back(plumb_weight_source *source) { (void)source; }

void plumb__source_abandon(plumb_weight_source *source) { source->requested = 0; }

bool plumb__source_hold(plumb_weight_source *source, int64_t rows) {
    (void)source;
    (void)rows;
    return false;
}

void plumb__source_let_go(plumb_weight_source *source) { (void)source; }

const plumb_expert_addresses *plumb__source_addresses(plumb_weight_source *source) {
    (void)source;
    return NULL;
}

void plumb__source_used(plumb_weight_source *source, int64_t layer, const int32_t *ids,
                        const int32_t *rows, int64_t n) {
    (void)source;
    (void)layer;
    (void)ids;
    (void)rows;
    (void)n;
}

bool plumb__source_reads_ahead(plumb_weight_source *source) {
    (void)source;
    return false;
}

void plumb__source_read_ahead(plumb_weight_source *source, int64_t layer, const int32_t *ids,
                              int64_t n) {
    (void)source;
    (void)layer;
    (void)ids;
    (void)n;
}

plumb_status plumb__source_engram_begin(plumb_weight_source *source, int engram,
                                        const int64_t *rows, int64_t n, plumb_error *err) {
    (void)rows;
    (void)err;
    source->engram_asked[engram] = n;
    return PLUMB_OK;
}

plumb_status plumb__source_engram_finish(plumb_weight_source *source, int engram, uint8_t *codes,
                                         uint8_t *scales, plumb_error *err) {
    (void)err;
    int64_t dim = source->config->engram_dim, scale_dim = dim / PLUMB_BLOCK;
    for (int64_t i = 0; i < source->engram_asked[engram]; i++) {
        int64_t row = i % ROWS;
        memcpy(codes + i * dim, source->engram_codes + row * dim, (size_t)dim);
        memcpy(scales + i * scale_dim, source->engram_scales + row * scale_dim, (size_t)scale_dim);
    }
    return PLUMB_OK;
}

plumb_status plumb__source_embeddings(plumb_weight_source *source, const int32_t *ids, int64_t n,
                                      uint16_t *rows, plumb_error *err) {
    (void)err;
    int64_t hidden = source->config->hidden;
    for (int64_t i = 0; i < n; i++)
        memcpy(rows + i * hidden, source->embedding + ids[i] % ROWS * hidden,
               (size_t)hidden * sizeof *rows);
    return PLUMB_OK;
}
