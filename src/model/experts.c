/* Mixture of experts of one layer (model.md sections 4.8 and 4.9).
 *
 * Rows are grouped by expert, so that each expert's weights are read once for all its rows.  A slot
 * is one (row, place): places 0..k-1 are the row's routed experts in ascending id, place k is the
 * shared expert.  Experts are computed as they come, the shared one and those in memory first, while
 * the missing ones are being read; outputs are kept by slot and added at the end in ascending place,
 * so that the order in which experts arrive changes no bit. */
#include "model/held.h"

#include "base/error.h"

enum {
    EXPERTS_AT_ONCE = 16, /* more would only keep their slots from being read into again */
    GUESSED_ROWS = 8,     /* of the next layer, at most: guesses are for decoding */
    NEARLY_ALL = 4        /* choices for each expert of a layer: e^-4 of them are left out */
};

int32_t *plumb__expert_ids(const plumb_network *n, int64_t rows, int64_t layer) {
    return n->work.expert_ids + layer * rows * n->config->experts_per_token;
}

/* Sorts slots by expert, by counting, and makes one group per expert in use; their ids go to
 * work.distinct.  Returns the number of groups. */
static int64_t group_slots(const plumb_network *n, const int32_t *ids, int64_t rows) {
    const plumb_workspace *w = &n->work;
    int64_t experts = n->config->experts, k = n->config->experts_per_token;
    for (int64_t e = 0; e < experts; e++) w->slot_end[e] = 0;
    for (int64_t i = 0; i < rows * k; i++) w->slot_end[ids[i]]++;
    int32_t begin = 0;
    for (int64_t e = 0; e < experts; e++) {
        int32_t count = w->slot_end[e];
        w->slot_end[e] = begin; /* moves to the end as slots are placed */
        begin += count;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < k; i++) {
            int32_t slot = (int32_t)(r * (k + 1) + i);
            int32_t at = w->slot_end[ids[r * k + i]]++;
            w->slots[at] = slot;
            w->slot_where[slot] = at;
            w->slot_weights[slot] = w->expert_weights[r * k + i];
        }
    int64_t n_groups = 0;
    begin = 0;
    for (int64_t e = 0; e < experts; e++) {
        int32_t count = w->slot_end[e] - begin;
        if (count == 0) continue;
        w->distinct[n_groups] = (int32_t)e;
        w->distinct_rows[n_groups] = count;
        w->groups[n_groups++] =
            (plumb_expert_group){.slots = w->slots + begin, .count = count, .first = begin};
        begin = w->slot_end[e];
    }
    return n_groups;
}

/* The shared expert: one more slot per row, with weight 1. */
static plumb_expert_group group_shared(const plumb_network *n, int64_t rows, int64_t layer) {
    const plumb_workspace *w = &n->work;
    int64_t k = n->config->experts_per_token, first = rows * k;
    for (int64_t r = 0; r < rows; r++) {
        int32_t slot = (int32_t)(r * (k + 1) + k);
        w->slots[first + r] = slot;
        w->slot_where[slot] = (int32_t)(first + r);
        w->slot_weights[slot] = 1.0f;
    }
    return (plumb_expert_group){n->weights.layer[layer].shared, w->slots + first, rows, first};
}

static void route(plumb_network *n, const plumb_act *x, int64_t rows, int64_t layer, int32_t *ids,
                  float *weights) {
    const plumb_model_config *c = n->config;
    const plumb_layer_weights *router = &n->weights.layer[layer];
    n->backend->ops->linear(n->backend, x, c->hidden, rows, &router->router, NULL,
                            n->work.router_logits, c->experts);
    n->backend->ops->route(n->backend, n->work.router_logits, router->router_bias, rows, c->experts,
                           c->experts_per_token, c->route_scale, ids, weights);
}

/* What the next layer will probably need: all experts when rows are many; when they are few, what its
 * router says of this layer's input. */
static void look_ahead(plumb_network *n, const plumb_batch *batch, const plumb_act *x, int64_t rows,
                       int64_t layer) {
    const plumb_model_config *c = n->config;
    int64_t k = c->experts_per_token, next = layer + 1;
    if (next == c->layers || !plumb__source_reads_ahead(n->source)) return;
    int64_t next_rows = batch->rows - plumb__needed_rows(c, batch, next).full;
    if (next_rows * k >= NEARLY_ALL * c->experts) {
        plumb__source_read_ahead(n->source, next, NULL, 0);
    } else if (next_rows > 0 && rows <= GUESSED_ROWS) {
        plumb_workspace *w = &n->work;
        route(n, x, rows, next, w->guessed_ids, w->guessed_weights);
        n->backend->ops->wait(n->backend);
        int64_t count = 0;
        for (int64_t i = 0; i < rows * k; i++) {
            bool is_new = true;
            for (int64_t j = 0; j < count; j++) is_new &= w->guessed_ids[j] != w->guessed_ids[i];
            if (is_new) w->guessed_ids[count++] = w->guessed_ids[i];
        }
        plumb__source_read_ahead(n->source, next, w->guessed_ids, count);
    }
}

/* Up to EXPERTS_AT_ONCE experts that are in memory; waits for one only when there is nothing else to do
 * (`idle`), and asks before whether to go on. */
static plumb_status take(plumb_network *n, const plumb_batch *batch, int64_t layer, bool idle,
                         int32_t *which, plumb_expert *experts, int64_t *count, plumb_error *err) {
    plumb_status status =
        plumb__source_take(n->source, EXPERTS_AT_ONCE, false, which, experts, count, err);
    if (status != PLUMB_OK || *count > 0 || !idle) return status;
    if (batch->progress && batch->progress(batch->progress_user, layer, n->config->layers))
        return plumb__fail(err, PLUMB_ERROR_CANCELLED, NULL, NULL, -1, "cancelled", NULL);
    return plumb__source_take(n->source, EXPERTS_AT_ONCE, true, which, experts, count, err);
}

/* Computes the shared expert with those of the groups that are in memory, then the others as they
 * arrive. */
static plumb_status compute(plumb_network *n, const plumb_batch *batch, int64_t rows, int64_t layer,
                            int64_t n_groups, plumb_error *err) {
    const plumb_model_config *c = n->config;
    plumb_workspace *w = &n->work;
    plumb_expert_group ready[1 + EXPERTS_AT_ONCE] = {group_shared(n, rows, layer)};
    int64_t n_ready = 1;
    while (n_groups > 0) {
        int32_t which[EXPERTS_AT_ONCE];
        plumb_expert expert[EXPERTS_AT_ONCE];
        int64_t count;
        plumb_status status = take(n, batch, layer, n_ready == 0, which, expert, &count, err);
        if (status != PLUMB_OK) return status;
        for (int64_t i = 0; i < count; i++) {
            ready[n_ready] = w->groups[which[i]];
            ready[n_ready++].expert = expert[i];
        }
        n->backend->ops->experts(n->backend, w->xq, ready, n_ready, w->slot_weights,
                                 c->experts_per_token + 1, c->swiglu_limit, w->expert_out);
        n->backend->ops->wait(n->backend); /* nothing reads them any more */
        plumb__source_give_back(n->source);
        n_groups -= count;
        n_ready = 0;
    }
    return PLUMB_OK;
}

void plumb__experts_tell(plumb_network *n, const plumb_batch *batch, int64_t layer, int64_t first) {
    int64_t rows = batch->rows - first, k = n->config->experts_per_token;
    const int32_t *ids = plumb__expert_ids(n, batch->rows, layer);
    if (rows == 0) return;
    if (n->routes)
        for (int64_t r = 0; r < rows; r++)
            n->routes(n->routes_user, plumb__row_position(batch, first + r), layer, ids + r * k, k);
    if (!n->holding) return;
    int64_t count = group_slots(n, ids, rows);
    plumb__source_used(n->source, layer, n->work.distinct, n->work.distinct_rows, count);
}

plumb_status plumb__experts_from_source(plumb_network *n, const plumb_batch *batch, int64_t layer,
                                        int64_t first, plumb_error *err) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    plumb_workspace *w = &n->work;
    int64_t rows = batch->rows - first, k = c->experts_per_token;
    const plumb_act *x = w->x + first * c->hidden;
    int64_t n_groups = group_slots(n, plumb__expert_ids(n, batch->rows, layer), rows);
    plumb_status status =
        plumb__source_request(n->source, layer, w->distinct, w->distinct_rows, n_groups, err);
    if (status != PLUMB_OK) return status;
    look_ahead(n, batch, x, rows, layer);
    ops->quantize(n->backend, x, rows, c->hidden, w->xq);
    status = compute(n, batch, rows, layer, n_groups, err);
    if (status != PLUMB_OK) return status;
    ops->experts_sum(n->backend, w->expert_out, w->slot_where, rows, k + 1, c->hidden,
                     w->out + first * c->hidden);
    return PLUMB_OK;
}

plumb_status plumb__experts(plumb_network *n, const plumb_batch *batch, int64_t layer,
                            int64_t first, plumb_error *err) {
    const plumb_act *x = n->work.x + first * n->config->hidden;
    route(n, x, batch->rows - first, layer, plumb__expert_ids(n, batch->rows, layer),
          n->work.expert_weights);
    if (n->holding) {
        plumb__held_experts(n, batch, layer, first);
        return PLUMB_OK;
    }
    n->backend->ops->wait(n->backend);
    plumb_status status = plumb__network_check(n, "layer", layer, err); /* ids are ids, then */
    if (status != PLUMB_OK) return status;
    plumb__experts_tell(n, batch, layer, first);
    return plumb__experts_from_source(n, batch, layer, first, err);
}
