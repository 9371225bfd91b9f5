/* The forward pass (model.md section 4): embedding, forty layers, head. */
#include "model/held.h"

#include "arith/rotary.h"
#include "base/error.h"

#include <string.h>

/* Four copies of each token's embedding; the first sublayer reads copy 0 alone. */
static plumb_status embed(plumb_network *n, const plumb_batch *batch, plumb_error *err) {
    plumb_workspace *w = &n->work;
    int64_t hidden = n->config->hidden;
    for (int64_t i = 0; i < plumb__sequences(batch); i++) {
        plumb_sequence s = plumb__sequence(batch, i);
        plumb_status status = plumb__source_embeddings(n->source, s.tokens + s.state->length, s.rows,
                                                       w->embedding + s.row * hidden, err);
        if (status != PLUMB_OK) return status;
    }
    for (int64_t r = 0; r < batch->rows; r++) {
        for (int64_t c = 0; c < PLUMB_HC; c++)
            for (int64_t i = 0; i < hidden; i++)
                w->h[(r * PLUMB_HC + c) * hidden + i] =
                    plumb__store(plumb__bf16_decode(w->embedding[r * hidden + i]));
        for (int64_t c = 0; c < PLUMB_HC; c++) w->pre[r * PLUMB_HC + c] = c == 0 ? 1.0f : 0.0f;
    }
    return PLUMB_OK;
}

/* cos and sin of every row's position, for both rotary tables, and of every pair's. */
static void rotary_rows(plumb_network *n, const plumb_batch *batch) {
    int64_t pairs = n->config->rope_dim / 2;
    plumb_workspace *w = &n->work;
    for (int64_t i = 0; i < plumb__sequences(batch); i++) {
        plumb_sequence s = plumb__sequence(batch, i);
        int64_t start = s.state->length;
        for (int64_t j = 0; start / 2 + j < (start + s.rows) / 2; j++)
            plumb__rotary_row(n->frequency[1], pairs, (start / 2 + j) * 2,
                              w->pair_cosine + (s.row + j) * pairs, w->pair_sine + (s.row + j) * pairs);
    }
    for (int table = 0; table < 2; table++)
        for (int64_t r = 0; r < batch->rows; r++)
            plumb__rotary_row(n->frequency[table], pairs, plumb__row_position(batch, r),
                              w->cosine[table] + r * pairs, w->sine[table] + r * pairs);
}

/* The three parts of a sublayer around its function, for rows `first` to `rows` of the batch. */
static void mix(plumb_network *n, int64_t first, int64_t rows, const plumb_hc_weights *hc) {
    const plumb_model_config *c = n->config;
    plumb_workspace *w = &n->work;
    int64_t copies = first * PLUMB_HC;
    n->backend->ops->hc_mix(n->backend, w->h + copies * c->hidden, rows - first, c->hidden, &hc->fn,
                            hc->base, hc->scale, c->norm_eps, c->hc_eps, c->sinkhorn_iterations,
                            w->pre_next + copies, w->post + copies, w->comb + copies * PLUMB_HC);
}

void plumb__swap_mixes(plumb_network *n) {
    float *used = n->work.pre;
    n->work.pre = n->work.pre_next;
    n->work.pre_next = used;
}

/* x = RMSNorm(sum_c pre[c] * h[c]), with the mix that the PREVIOUS sublayer computed; then this
 * sublayer's own mix becomes the next one's. */
static void sublayer_input(plumb_network *n, int64_t first, int64_t rows, const float *norm) {
    const plumb_backend_ops *ops = n->backend->ops;
    plumb_workspace *w = &n->work;
    int64_t hidden = n->config->hidden;
    plumb_act *x = w->x + first * hidden;
    ops->hc_collapse(n->backend, w->h + first * PLUMB_HC * hidden, w->pre + first * PLUMB_HC,
                     rows - first, hidden, x);
    ops->rms_norm(n->backend, x, rows - first, hidden, norm, n->config->norm_eps, x);
    plumb__swap_mixes(n);
}

static void sublayer_output(plumb_network *n, int64_t first, int64_t rows) {
    plumb_workspace *w = &n->work;
    int64_t hidden = n->config->hidden, copies = first * PLUMB_HC;
    n->backend->ops->hc_update(n->backend, w->h + copies * hidden, w->out + first * hidden,
                               w->post + copies, w->comb + copies * PLUMB_HC, rows - first, hidden);
}

static void observe(plumb_network *n, const plumb_batch *batch, plumb_point point, int64_t layer) {
    if (!batch->observe) return;
    n->backend->ops->wait(n->backend);
    batch->observe(batch->observe_user, n, point, layer, batch->rows);
}

void plumb__layer_output(plumb_network *n, const plumb_batch *batch, int64_t layer, int64_t first) {
    observe(n, batch, PLUMB_POINT_FFN_OUT, layer);
    sublayer_output(n, first, batch->rows);
    observe(n, batch, PLUMB_POINT_LAYER_OUT, layer);
}

static plumb_status run_layer(plumb_network *n, const plumb_batch *batch, int64_t layer,
                              plumb_error *err) {
    const plumb_layer_weights *weights = &n->weights.layer[layer];
    const plumb_needed_rows needed = plumb__needed_rows(n->config, batch, layer);
    int64_t rows = batch->rows, full = needed.full;
    observe(n, batch, PLUMB_POINT_LAYER_IN, layer);
    if (needed.input == rows) return PLUMB_OK;
    if (plumb__config_engram_index(n->config, layer) >= 0) {
        plumb_status status = plumb__engram(n, batch, layer, needed.input, err);
        if (status != PLUMB_OK) return status;
        observe(n, batch, PLUMB_POINT_ENGRAM_OUT, layer);
    }
    if (full < rows) mix(n, full, rows, &weights->hc_attn);
    sublayer_input(n, needed.input, rows, weights->attn_norm);
    observe(n, batch, PLUMB_POINT_ATTN_IN, layer);
    plumb__attention(n, batch, layer, needed);
    if (full == rows) return PLUMB_OK;
    observe(n, batch, PLUMB_POINT_ATTN_OUT, layer);
    sublayer_output(n, full, rows);

    mix(n, full, rows, &weights->hc_ffn);
    sublayer_input(n, full, rows, weights->ffn_norm);
    observe(n, batch, PLUMB_POINT_FFN_IN, layer);
    plumb_status status = plumb__experts(n, batch, layer, full, err);
    if (status != PLUMB_OK) return status;
    plumb__layer_output(n, batch, layer, full);
    return PLUMB_OK;
}

/* Faults that operations met since the last look; a backend that runs behind may have met them in an
 * earlier layer. */
plumb_status plumb__network_check(plumb_network *n, const char *where, int64_t layer,
                                  plumb_error *err) {
    const char *device = n->backend->ops->name;
    switch (n->backend->ops->check(n->backend)) {
    case PLUMB_OK: return PLUMB_OK;
    case PLUMB_ERROR_VALUE:
        return plumb__fail(err, PLUMB_ERROR_VALUE, NULL, where, layer, "a NaN or infinite activation",
                           "finite numbers");
    case PLUMB_ERROR_MEMORY:
        return plumb__fail(err, PLUMB_ERROR_MEMORY, NULL, where, layer,
                           plumb__format("no memory for the work of the %s device", device).s,
                           "a smaller memory budget, chunk or context, or less beside it");
    default:
        return plumb__fail(err, PLUMB_ERROR_IO, NULL, where, layer,
                           plumb__format("a failure of the %s device", device).s,
                           "it to finish its work, as a second try may");
    }
}

static plumb_status run_head(plumb_network *n, const plumb_batch *batch, plumb_error *err) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    plumb_workspace *w = &n->work;
    int64_t first = batch->first_logits, wanted = batch->rows - first;
    if (wanted <= 0) return PLUMB_OK;
    ops->hc_collapse(n->backend, w->h + first * PLUMB_HC * c->hidden, w->pre + first * PLUMB_HC,
                     wanted, c->hidden, w->x);
    ops->rms_norm(n->backend, w->x, wanted, c->hidden, n->weights.norm, c->norm_eps, w->x);
    for (int64_t r = 0; r < wanted; r += PLUMB_HEAD_ROWS) {
        int64_t part = wanted - r < PLUMB_HEAD_ROWS ? wanted - r : PLUMB_HEAD_ROWS;
        ops->linear(n->backend, w->x + r * c->hidden, c->hidden, part, &n->weights.head, NULL,
                    w->logits, c->vocab);
        ops->wait(n->backend);
        plumb_status status = plumb__network_check(n, "head", -1, err);
        if (status != PLUMB_OK) return status;
        for (int64_t i = 0; i < part; i++)
            if (batch->sink(batch->sink_user,
                            batch->steps ? first + r + i : plumb__row_position(batch, first + r + i),
                            w->logits + i * c->vocab))
                return plumb__fail(err, PLUMB_ERROR_CANCELLED, NULL, NULL, -1, "cancelled", NULL);
    }
    return PLUMB_OK;
}

/* Rings take a sequence's last rows; carries take the first of its last pair. */
static void commit_layer(plumb_network *n, const plumb_batch *batch, int64_t layer, int64_t i) {
    const plumb_model_config *c = n->config;
    plumb_sequence s = plumb__sequence(batch, i);
    plumb_layer_state *to = &s.state->layer[layer];
    int64_t row_bytes = plumb__window_row_bytes(c->head_dim);
    int64_t kept = plumb__rows_kept(batch, c->window), own = batch->steps ? 1 : kept;
    int64_t end = s.state->length + s.rows;
    const uint8_t *ring = n->work.pending_ring + (layer * kept + s.row) * row_bytes;
    for (int64_t r = 0; r < own; r++)
        memcpy(to->ring + (end - own + r) % c->window * row_bytes, ring + r * row_bytes,
               (size_t)row_bytes);
    if (to->carry)
        memcpy(to->carry,
               n->work.pending_carry + (layer * plumb__sequences(batch) + i) * 2 * c->head_dim,
               (size_t)(2 * c->head_dim) * sizeof(float));
}

static void commit(plumb_network *n, const plumb_batch *batch) {
    for (int64_t i = 0; i < plumb__sequences(batch); i++) {
        for (int64_t l = 0; l < n->config->layers; l++) commit_layer(n, batch, l, i);
        plumb_sequence s = plumb__sequence(batch, i);
        s.state->length += s.rows;
    }
}

/* One after the other.  A backend that finds experts by itself may turn out to have stopped at one that
 * is not in memory: then the layers after it begin again. */
static plumb_status run_layers(plumb_network *n, const plumb_batch *batch, plumb_error *err) {
    for (int64_t layer = 0; layer < n->config->layers; layer++) {
        plumb_status status = run_layer(n, batch, layer, err);
        if (status == PLUMB_OK) status = plumb__network_check(n, "layer", layer, err);
        if (status == PLUMB_OK && plumb__held_is_due(n, layer))
            status = plumb__held_settle(n, batch, &layer, err);
        if (status != PLUMB_OK) return status;
        if (batch->progress && batch->progress(batch->progress_user, plumb__held_layers_done(n, layer),
                                               n->config->layers))
            return plumb__fail(err, PLUMB_ERROR_CANCELLED, NULL, NULL, -1, "cancelled", NULL);
    }
    n->backend->ops->wait(n->backend);
    return plumb__network_check(n, "layer", n->config->layers - 1, err);
}

static plumb_status run_batch(plumb_network *n, const plumb_batch *batch, plumb_error *err) {
    plumb_status status = plumb__engram_begin(n, batch, err);
    if (status == PLUMB_OK) status = embed(n, batch, err);
    if (status != PLUMB_OK) return status;
    rotary_rows(n, batch);
    plumb__held_begin(n, batch);
    status = run_layers(n, batch, err);
    plumb__held_end(n);
    if (status != PLUMB_OK) return status;
    status = run_head(n, batch, err);
    if (status == PLUMB_OK) commit(n, batch);
    return status;
}

plumb_status plumb__network_forward(plumb_network *n, const plumb_batch *batch, plumb_error *err) {
    plumb_status status = plumb__workspace_reserve(n, batch->rows, err);
    for (int64_t i = 0; i < plumb__sequences(batch) && status == PLUMB_OK; i++) {
        plumb_sequence s = plumb__sequence(batch, i);
        status = plumb__state_reserve(s.state, s.state->length + s.rows, err);
    }
    if (status != PLUMB_OK) return status;
    n->backend->ops->begin(n->backend);
    status = run_batch(n, batch, err);
    n->backend->ops->end(n->backend);
    if (status != PLUMB_OK) {
        /* A cancelled batch may leave requests and a fault behind; they are not the next one's. */
        n->backend->ops->wait(n->backend);
        plumb__source_abandon(n->source);
        (void)n->backend->ops->check(n->backend);
    }
    return status;
}
