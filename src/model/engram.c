/* Engram: a gated lookup by the hash of the last few folded token ids (model.md section 5). */
#include "model/network.h"

enum { DEAD = -1 }; /* no token here: before the start of the sequence */

static int64_t columns_of(const plumb_model_config *c) {
    return (c->engram_ngram - 1) * c->engram_heads;
}

/* Folded ids of the last tokens up to a position, oldest first. */
static void recall(const plumb_network *n, const int32_t *tokens, int64_t position,
                   int32_t history[PLUMB_MAX_NGRAM]) {
    int64_t ngram = n->config->engram_ngram;
    for (int64_t i = 0; i < ngram; i++) {
        int64_t at = position - (ngram - 1) + i;
        history[i] = at < 0 ? DEAD : n->token_map[tokens[at]];
    }
}

/* Table rows of the batch's rows from `first` on: they depend on token ids only. */
static void hash_rows(const plumb_network *n, const plumb_batch *batch, int64_t first, int engram,
                      int64_t *rows) {
    int64_t columns = columns_of(n->config);
    for (int64_t r = first; r < batch->rows; r++) {
        int32_t history[PLUMB_MAX_NGRAM];
        recall(n, batch->steps ? batch->steps[r].tokens : batch->tokens, plumb__row_position(batch, r),
               history);
        plumb__engram_hash_rows(&n->engram[engram], history, rows + (r - first) * columns);
    }
}

plumb_status plumb__engram_begin(plumb_network *n, const plumb_batch *batch, plumb_error *err) {
    const plumb_model_config *c = n->config;
    int64_t columns = columns_of(c);
    plumb_status status = PLUMB_OK;
    for (int i = 0; i < c->engram_layers && status == PLUMB_OK; i++) {
        n->work.engram_read[i] = false;
        int64_t first = plumb__needed_rows(c, batch, c->engram_layer[i]).input;
        if (first == batch->rows) continue;
        int64_t *rows = n->work.engram_rows + i * n->work.rows * columns;
        hash_rows(n, batch, first, i, rows);
        status = plumb__source_engram_begin(n->source, i, rows, (batch->rows - first) * columns,
                                            err);
    }
    return status;
}

int64_t plumb__engram_stages(const plumb_network *n) {
    return n->backend->ops->experts_held ? n->config->engram_layers : 1;
}

/* bf16(code * scale), as the published code gathers them. */
static void decode_rows(const plumb_network *n, int64_t count, plumb_act *out) {
    int64_t dim = n->config->engram_dim;
    const plumb_workspace *w = &n->work;
    for (int64_t i = 0; i < count * dim; i++) {
        float scale = plumb__power_of_two((int32_t)w->engram_scales[i / PLUMB_BLOCK] - 127);
        out[i] = plumb__store(plumb__e4m3_decode(w->engram_codes[i]) * scale);
    }
}

/* Rows of the tables, gathered once a batch, however often the layer begins anew. */
static plumb_status gather_rows(plumb_network *n, int engram, int64_t count, plumb_act *out,
                                plumb_error *err) {
    plumb_workspace *w = &n->work;
    if (w->engram_read[engram]) return PLUMB_OK;
    plumb_status status = plumb__source_engram_finish(n->source, engram, w->engram_codes,
                                                      w->engram_scales, err);
    if (status != PLUMB_OK) return status;
    decode_rows(n, count, out);
    w->engram_read[engram] = true;
    return PLUMB_OK;
}

plumb_status plumb__engram(plumb_network *n, const plumb_batch *batch, int64_t layer, int64_t first,
                           plumb_error *err) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    const plumb_layer_weights *weights = &n->weights.layer[layer];
    plumb_workspace *w = &n->work;
    int64_t columns = columns_of(c), rows = batch->rows - first, width = columns * c->engram_dim;
    int engram = plumb__config_engram_index(c, layer);
    int64_t stage = plumb__engram_stages(n) > 1 ? engram : 0;
    plumb_act *gathered = w->engram_in + stage * w->rows * width;
    plumb_status status = gather_rows(n, engram, rows * columns, gathered, err);
    if (status != PLUMB_OK) return status;
    ops->quantize(n->backend, gathered, rows, width, w->engram_in_q);
    ops->linear_quantized(n->backend, w->engram_in_q, rows, &weights->engram_kv, w->engram_kv);
    ops->engram_gate(n->backend, w->h + first * PLUMB_HC * c->hidden, w->engram_kv,
                     weights->engram_query, weights->engram_key, w->live + first, rows, c->hidden,
                     c->norm_eps, n->hidden_factor);
    return PLUMB_OK;
}
