#include "model/weights.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>

/* A load in progress: the first fault stops everything after it, so that the lists below read as
 * lists. */
typedef struct loader {
    const plumb_checkpoint *checkpoint;
    plumb_weights *weights;
    plumb_error *err;
    plumb_status status;
    int64_t layer; /* -1: top level */
} loader;

/* Room for one more block to release with the weights. */
static bool reserve_block(loader *l) {
    plumb_weights *w = l->weights;
    void **grown = plumb__grow(w->blocks, &w->block_capacity, w->n_blocks + 1, sizeof *grown);
    if (grown) w->blocks = grown;
    return grown != NULL;
}

static void *hold(loader *l, int64_t bytes) {
    plumb_weights *w = l->weights;
    void *memory = reserve_block(l) ? w->backend->ops->allocate(w->backend, bytes) : NULL;
    if (!memory) {
        l->status = plumb__fail_memory(l->err, "weights", (size_t)bytes);
        return NULL;
    }
    w->blocks[w->n_blocks++] = memory;
    w->bytes += bytes;
    return memory;
}

/* The backend's notes about a matrix; without memory for them it does without. */
static void prepare(loader *l, plumb_matrix *m) {
    plumb_weights *w = l->weights;
    int64_t bytes;
    if (!reserve_block(l)) return;
    void *notes = w->backend->ops->prepare(w->backend, m, &bytes);
    if (!notes) return;
    w->blocks[w->n_blocks++] = notes;
    w->bytes += bytes;
    m->prepared = notes;
}

static const plumb_tensor *find(loader *l, const char *name, const char *suffix) {
    plumb__text192 full = l->layer < 0
                              ? plumb__format("%s%s", name, suffix)
                              : plumb__format("layers.%lld.%s%s", (long long)l->layer, name, suffix);
    const plumb_tensor *tensor = plumb__checkpoint_find(l->checkpoint, "%s", full.s);
    if (!tensor)
        l->status = plumb__fail(l->err, PLUMB_ERROR_TENSOR, plumb__checkpoint_path(l->checkpoint),
                                full.s, -1, "no such tensor", "it to be present");
    return tensor;
}

static void *read_payload(loader *l, const plumb_tensor *tensor) {
    void *memory = hold(l, tensor->bytes);
    if (!memory) return NULL;
    l->status = plumb__checkpoint_read(l->checkpoint, tensor, 0, tensor->bytes, memory, l->err);
    if (l->status == PLUMB_OK)
        l->status = plumb__checkpoint_check_values(l->checkpoint, tensor, 0, tensor->bytes, memory,
                                                   l->err);
    return l->status == PLUMB_OK ? memory : NULL;
}

/* NAME.weight (and NAME.scale of an FP8 one), or NAME itself when suffix is "". */
static void load_matrix(loader *l, plumb_matrix *m, const char *name, const char *suffix) {
    if (l->status != PLUMB_OK) return;
    const plumb_tensor *tensor = find(l, name, suffix);
    if (!tensor) return;
    static const int type_of[PLUMB_DTYPE_COUNT] = {[PLUMB_DTYPE_BF16] = PLUMB_MATRIX_BF16,
                                                   [PLUMB_DTYPE_F32] = PLUMB_MATRIX_F32,
                                                   [PLUMB_DTYPE_F8_E4M3] = PLUMB_MATRIX_FP8};
    *m = (plumb_matrix){.type = (plumb_matrix_type)type_of[tensor->dtype], .n = tensor->shape[0],
                        .k = tensor->shape[1]};
    m->codes = read_payload(l, tensor);
    if (l->status != PLUMB_OK || m->type != PLUMB_MATRIX_FP8) return;
    const plumb_tensor *scale = find(l, name, ".scale");
    if (scale) m->scales = read_payload(l, scale);
}

/* One that is multiplied by quantised activations. */
static void load_quantized(loader *l, plumb_matrix *m, const char *name) {
    load_matrix(l, m, name, ".weight");
    if (l->status == PLUMB_OK) prepare(l, m);
}

/* A BF16 or F32 tensor as floats. */
static void load_floats(loader *l, float **out, const char *name) {
    if (l->status != PLUMB_OK) return;
    const plumb_tensor *tensor = find(l, name, "");
    if (!tensor) return;
    if (tensor->dtype == PLUMB_DTYPE_F32) {
        *out = read_payload(l, tensor);
        return;
    }
    const uint16_t *narrow = read_payload(l, tensor);
    int64_t n = tensor->bytes / 2;
    *out = narrow ? hold(l, n * 4) : NULL;
    for (int64_t i = 0; *out && i < n; i++) (*out)[i] = plumb__bf16_decode(narrow[i]);
}

static void load_hc(loader *l, plumb_hc_weights *hc, const char *side) {
    load_matrix(l, &hc->fn, plumb__format("hc_%s_fn", side).s, "");
    load_floats(l, &hc->base, plumb__format("hc_%s_base", side).s);
    load_floats(l, &hc->scale, plumb__format("hc_%s_scale", side).s);
}

static void load_layer(loader *l, const plumb_model_config *config, plumb_layer_weights *w) {
    load_floats(l, &w->attn_norm, "attn_norm.weight");
    load_floats(l, &w->ffn_norm, "ffn_norm.weight");
    load_hc(l, &w->hc_attn, "attn");
    load_hc(l, &w->hc_ffn, "ffn");
    load_quantized(l, &w->wq_a, "attn.wq_a");
    load_floats(l, &w->q_norm, "attn.q_norm.weight");
    load_quantized(l, &w->wq_b, "attn.wq_b");
    load_quantized(l, &w->wkv, "attn.wkv");
    load_floats(l, &w->kv_norm, "attn.kv_norm.weight");
    load_floats(l, &w->sink, "attn.attn_sink");
    load_matrix(l, &w->wo_a, "attn.wo_a", ".weight");
    load_quantized(l, &w->wo_b, "attn.wo_b");
    load_matrix(l, &w->router, "ffn.gate", ".weight");
    load_floats(l, &w->router_bias, "ffn.gate.bias");
    load_quantized(l, &w->shared.gate, "ffn.shared_experts.w1");
    load_quantized(l, &w->shared.down, "ffn.shared_experts.w2");
    load_quantized(l, &w->shared.up, "ffn.shared_experts.w3");
    if (config->is_kv_source[l->layer]) {
        load_matrix(l, &w->compress_kv, "attn.compressor.wkv", ".weight");
        if (config->ratio[l->layer] > 1)
            load_matrix(l, &w->compress_gate, "attn.compressor.wgate", ".weight");
        load_floats(l, &w->compress_norm, "attn.compressor.norm.weight");
        load_matrix(l, &w->index_key, "attn.indexer.wk", ".weight");
        load_floats(l, &w->index_key_norm, "attn.indexer.k_norm.weight");
    }
    if (config->is_index_source[l->layer]) {
        load_quantized(l, &w->index_query, "attn.indexer.wq_b");
        load_matrix(l, &w->index_weights, "attn.indexer.weights_proj", ".weight");
    }
    if (plumb__config_engram_index(config, l->layer) >= 0) {
        load_quantized(l, &w->engram_kv, "engram.wkv");
        load_floats(l, &w->engram_query, "engram.q_weight");
        load_floats(l, &w->engram_key, "engram.k_weight");
    }
}

plumb_status plumb__weights_load(const plumb_checkpoint *checkpoint, plumb_backend *backend,
                                 plumb_weights *weights, plumb_error *err) {
    const plumb_model_config *config = plumb__checkpoint_config(checkpoint);
    *weights = (plumb_weights){.backend = backend};
    weights->layer = calloc((size_t)config->layers, sizeof *weights->layer);
    if (!weights->layer)
        return plumb__fail_memory(err, "weights", (size_t)config->layers * sizeof *weights->layer);
    loader l = {checkpoint, weights, err, PLUMB_OK, -1};
    load_floats(&l, &weights->norm, "norm.weight");
    load_matrix(&l, &weights->head, "head", ".weight");
    for (l.layer = 0; l.layer < config->layers; l.layer++)
        load_layer(&l, config, &weights->layer[l.layer]);
    if (l.status != PLUMB_OK) plumb__weights_free(weights);
    return l.status;
}

void plumb__weights_free(plumb_weights *weights) {
    for (int64_t i = 0; i < weights->n_blocks; i++)
        weights->backend->ops->release(weights->backend, weights->blocks[i]);
    free(weights->blocks);
    free(weights->layer);
    *weights = (plumb_weights){0};
}
