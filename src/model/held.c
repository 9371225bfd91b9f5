/* Experts that the backend finds by itself, and a network that runs ahead of it.
 *
 * To look at a router's choice the host would have to wait for the device in every layer.  Instead all
 * layers are asked for at once; the device looks experts up in a table of those in memory, and stops by
 * itself at the first layer that lacks one.  Then the host, which finds the device idle and the layer's
 * activations as the router left them, reads what is missing, computes that layer's experts itself and
 * goes on from there.  What was asked for after the miss did nothing and is asked for again.
 *
 * While the device may look, no expert of the table gives way (plumb__source_hold). */
#include "model/held.h"

enum {
    WARY = 2, /* layers ahead when the last batch missed some: what is asked for in vain is little */
    QUICK_ROWS = 8 /* more take so long that who watches wants to see how far they are, and to cancel */
};

/* An observer wants to see each layer once, and done. */
static void hold(plumb_network *n, const plumb_batch *batch) {
    n->holding = n->backend->ops->experts_held && !batch->observe &&
                 plumb__source_hold(n->source, batch->rows);
}

static void let_go(plumb_network *n) {
    if (n->holding) plumb__source_let_go(n->source);
    n->holding = false;
}

void plumb__held_begin(plumb_network *n, const plumb_batch *batch) {
    hold(n, batch);
    n->first_unsettled = 0;
    bool is_slow = batch->progress && batch->rows > QUICK_ROWS;
    n->most_unsettled = n->missed_lately || is_slow ? WARY : n->config->layers;
    n->missed_lately = false;
}

void plumb__held_end(plumb_network *n) {
    /* A batch that was given up may still be at work, and may have stopped at a layer. */
    if (n->holding) (void)n->backend->ops->missed(n->backend);
    let_go(n);
}

int64_t plumb__held_layers_done(const plumb_network *n, int64_t layer) {
    return n->holding ? n->first_unsettled : layer + 1;
}

void plumb__held_experts(plumb_network *n, const plumb_batch *batch, int64_t layer, int64_t first) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    plumb_workspace *w = &n->work;
    int64_t rows = batch->rows - first;
    w->mix_at[layer] = w->pre;
    ops->quantize(n->backend, w->x + first * c->hidden, rows, c->hidden, w->xq);
    const plumb_held_experts args = {
        .layer = layer, .experts = c->experts, .k = c->experts_per_token,
        .table = plumb__source_addresses(n->source) + layer * c->experts,
        .shared = &n->weights.layer[layer].shared, .x = w->xq,
        .ids = plumb__expert_ids(n, batch->rows, layer), .weights = w->expert_weights,
        .limit = c->swiglu_limit, .slots = w->slots, .where = w->slot_where,
        .slot_weights = w->slot_weights, .outputs = w->expert_out, .out = w->out + first * c->hidden};
    ops->experts_held(n->backend, &args, rows);
}

bool plumb__held_is_due(const plumb_network *n, int64_t layer) {
    if (!n->holding) return false;
    return layer + 1 == n->config->layers || layer + 1 - n->first_unsettled >= n->most_unsettled;
}

/* Layers before `end` whose experts were found. */
static void tell_layers(plumb_network *n, const plumb_batch *batch, int64_t end) {
    for (int64_t l = n->first_unsettled; l < end; l++)
        plumb__experts_tell(n, batch, l, plumb__needed_rows(n->config, batch, l).full);
    n->first_unsettled = end;
}

plumb_status plumb__held_settle(plumb_network *n, const plumb_batch *batch, int64_t *layer,
                                plumb_error *err) {
    plumb_workspace *w = &n->work;
    int64_t missed = n->backend->ops->missed(n->backend);
    plumb_status status = plumb__network_check(n, "layer", *layer, err); /* ids are ids, then */
    if (status != PLUMB_OK) return status;
    tell_layers(n, batch, missed < 0 ? *layer + 1 : missed);
    if (missed < 0) return PLUMB_OK;
    int64_t first = plumb__needed_rows(n->config, batch, missed).full;
    if (w->pre != w->mix_at[missed]) plumb__swap_mixes(n);
    let_go(n);
    plumb__experts_tell(n, batch, missed, first);
    status = plumb__experts_from_source(n, batch, missed, first, err);
    if (status != PLUMB_OK) return status;
    plumb__layer_output(n, batch, missed, first);
    hold(n, batch);
    n->first_unsettled = missed + 1;
    n->most_unsettled = WARY;
    n->missed_lately = true;
    *layer = missed;
    return PLUMB_OK;
}
