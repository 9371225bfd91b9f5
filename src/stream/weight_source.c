#include "stream/weight_source.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>

/* One expert's six payloads in one block of memory: w1, w2, w3 codes, then their scales. */
typedef struct resident_expert {
    uint8_t *memory; /* NULL: not read yet */
    plumb_expert expert;
} resident_expert;

struct plumb_weight_source {
    const plumb_checkpoint *checkpoint;
    const plumb_model_config *config;
    resident_expert *experts; /* [layers][experts] */
    const plumb_tensor *embed;
    const plumb_tensor *table[PLUMB_MAX_ENGRAM_LAYERS], *table_scale[PLUMB_MAX_ENGRAM_LAYERS];
    _Atomic int64_t resident_bytes; /* anyone may ask while experts come in */
};

void plumb__source_close(plumb_weight_source *source) {
    if (!source) return;
    int64_t n = source->config->layers * source->config->experts;
    for (int64_t i = 0; source->experts && i < n; i++)
        plumb__free_aligned(source->experts[i].memory);
    free(source->experts);
    free(source);
}

/* A tensor the checkpoint was already checked to have. */
static plumb_status find(const plumb_checkpoint *checkpoint, const char *name,
                         const plumb_tensor **tensor, plumb_error *err) {
    *tensor = plumb__checkpoint_find(checkpoint, "%s", name);
    if (*tensor) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_TENSOR, plumb__checkpoint_folder(checkpoint), name, -1,
                       "no such tensor", "it to be present");
}

plumb_status plumb__source_open(const plumb_checkpoint *checkpoint, plumb_weight_source **out,
                                plumb_error *err) {
    plumb_weight_source *source = calloc(1, sizeof *source);
    if (!source) return plumb__fail_memory(err, "weight source", sizeof *source);
    source->checkpoint = checkpoint;
    source->config = plumb__checkpoint_config(checkpoint);
    size_t n = (size_t)(source->config->layers * source->config->experts);
    source->experts = calloc(n, sizeof *source->experts);
    plumb_status status =
        source->experts ? PLUMB_OK : plumb__fail_memory(err, "experts", n * sizeof(resident_expert));
    if (status == PLUMB_OK) status = find(checkpoint, "embed.weight", &source->embed, err);
    for (int64_t i = 0; status == PLUMB_OK && i < source->config->engram_layers; i++) {
        long long layer = source->config->engram_layer[i];
        status = find(checkpoint, plumb__format("layers.%lld.engram.embed.weight", layer).s,
                      &source->table[i], err);
        if (status == PLUMB_OK)
            status = find(checkpoint, plumb__format("layers.%lld.engram.embed.scale", layer).s,
                          &source->table_scale[i], err);
    }
    if (status != PLUMB_OK) {
        plumb__source_close(source);
        return status;
    }
    *out = source;
    return PLUMB_OK;
}

/* Reads part of a payload and refuses NaN in it. */
static plumb_status read_checked(const plumb_weight_source *source, const plumb_tensor *tensor,
                                 int64_t begin, int64_t size, void *into, plumb_error *err) {
    plumb_status status =
        plumb__checkpoint_read(source->checkpoint, tensor, begin, size, into, err);
    if (status != PLUMB_OK) return status;
    return plumb__checkpoint_check_values(source->checkpoint, tensor, begin, size, into, err);
}

/* ---- Experts ----------------------------------------------------------------------------- */

typedef struct expert_part {
    const plumb_tensor *codes, *scales;
    plumb_matrix *matrix;
} expert_part;

static plumb_status find_parts(const plumb_weight_source *source, int64_t layer, int32_t id,
                               expert_part parts[3], plumb_error *err) {
    for (int i = 0; i < 3; i++) {
        plumb__text192 prefix =
            plumb__format("layers.%lld.ffn.experts.%d.w%d", (long long)layer, (int)id, i + 1);
        plumb_status status =
            find(source->checkpoint, plumb__format("%s.weight", prefix.s).s, &parts[i].codes, err);
        if (status == PLUMB_OK)
            status = find(source->checkpoint, plumb__format("%s.scale", prefix.s).s,
                          &parts[i].scales, err);
        if (status != PLUMB_OK) return status;
    }
    return PLUMB_OK;
}

static plumb_status read_expert(plumb_weight_source *source, int64_t layer, int32_t id,
                                resident_expert *slot, plumb_error *err) {
    plumb_expert expert;
    expert_part parts[3] = {{.matrix = &expert.gate}, {.matrix = &expert.down},
                            {.matrix = &expert.up}};
    plumb_status status = find_parts(source, layer, id, parts, err);
    if (status != PLUMB_OK) return status;
    int64_t bytes = 0;
    for (int i = 0; i < 3; i++) bytes += parts[i].codes->bytes + parts[i].scales->bytes;
    uint8_t *memory = plumb__alloc_aligned(bytes, 1), *at = memory;
    if (!memory) return plumb__fail_memory(err, "expert", (size_t)bytes);
    for (int i = 0; i < 3 && status == PLUMB_OK; i++) {
        const expert_part *p = &parts[i];
        *p->matrix = (plumb_matrix){.type = PLUMB_MATRIX_FP4, .n = p->codes->shape[0],
                                    .k = p->codes->shape[1] * 2, .codes = at,
                                    .scales = at + p->codes->bytes};
        status = read_checked(source, p->codes, 0, p->codes->bytes, at, err);
        at += p->codes->bytes;
        if (status == PLUMB_OK)
            status = read_checked(source, p->scales, 0, p->scales->bytes, at, err);
        at += p->scales->bytes;
    }
    if (status != PLUMB_OK) {
        plumb__free_aligned(memory);
        return status;
    }
    slot->memory = memory;
    slot->expert = expert;
    source->resident_bytes += bytes;
    return PLUMB_OK;
}

plumb_status plumb__source_experts(plumb_weight_source *source, int64_t layer, const int32_t *ids,
                                   int64_t n, plumb_expert *experts, plumb_error *err) {
    for (int64_t i = 0; i < n; i++) {
        resident_expert *slot = &source->experts[layer * source->config->experts + ids[i]];
        if (!slot->memory) {
            plumb_status status = read_expert(source, layer, ids[i], slot, err);
            if (status != PLUMB_OK) return status;
        }
        experts[i] = slot->expert;
    }
    return PLUMB_OK;
}

/* ---- Rows ---------------------------------------------------------------------------------- */

plumb_status plumb__source_engram_rows(plumb_weight_source *source, int engram, const int64_t *rows,
                                       int64_t n, uint8_t *codes, uint8_t *scales,
                                       plumb_error *err) {
    int64_t dim = source->config->engram_dim, scale_dim = dim / PLUMB_BLOCK;
    plumb_status status = PLUMB_OK;
    for (int64_t i = 0; i < n && status == PLUMB_OK; i++) {
        status = read_checked(source, source->table[engram], rows[i] * dim, dim, codes + i * dim,
                              err);
        if (status == PLUMB_OK)
            status = read_checked(source, source->table_scale[engram], rows[i] * scale_dim,
                                  scale_dim, scales + i * scale_dim, err);
    }
    return status;
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

int64_t plumb__source_resident_bytes(const plumb_weight_source *source) {
    return source->resident_bytes;
}
