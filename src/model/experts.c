/* Mixture of experts of one layer (model.md sections 4.8 and 4.9).
 *
 * Rows are grouped by expert, so that each expert's weights are read once for all its rows.  A slot
 * is one (row, place): places 0..k-1 are the row's routed experts in ascending id, place k is the
 * shared expert, and outputs are added in ascending place whatever order they are made in. */
#include "model/network.h"

/* Sorts slots by expert, by counting, and makes one group per expert in use; their ids go to
 * work.distinct.  Returns the number of groups. */
static int64_t group_slots(const plumb_network *n, int64_t rows) {
    const plumb_workspace *w = &n->work;
    int64_t experts = n->config->experts, k = n->config->experts_per_token;
    for (int64_t e = 0; e < experts; e++) w->slot_end[e] = 0;
    for (int64_t i = 0; i < rows * k; i++) w->slot_end[w->expert_ids[i]]++;
    int32_t begin = 0;
    for (int64_t e = 0; e < experts; e++) {
        int32_t count = w->slot_end[e];
        w->slot_end[e] = begin; /* moves to the end as slots are placed */
        begin += count;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < k; i++)
            w->slots[w->slot_end[w->expert_ids[r * k + i]]++] = (int32_t)(r * (k + 1) + i);
    int64_t n_groups = 0;
    begin = 0;
    for (int64_t e = 0; e < experts; e++) {
        if (w->slot_end[e] == begin) continue;
        w->distinct[n_groups] = (int32_t)e;
        w->groups[n_groups++] =
            (plumb_expert_group){.slots = w->slots + begin, .count = w->slot_end[e] - begin};
        begin = w->slot_end[e];
    }
    return n_groups;
}

/* The shared expert: one more slot per row, with weight 1. */
static void add_shared(const plumb_network *n, int64_t rows, int64_t layer, int64_t group) {
    const plumb_workspace *w = &n->work;
    int64_t k = n->config->experts_per_token;
    int32_t *slots = w->slots + rows * k;
    for (int64_t r = 0; r < rows; r++) {
        slots[r] = (int32_t)(r * (k + 1) + k);
        for (int64_t i = 0; i < k; i++)
            w->slot_weights[r * (k + 1) + i] = w->expert_weights[r * k + i];
        w->slot_weights[r * (k + 1) + k] = 1.0f;
    }
    w->groups[group] = (plumb_expert_group){n->weights.layer[layer].shared, slots, rows};
}

plumb_status plumb__experts(plumb_network *n, int64_t end, int64_t first, int64_t layer,
                            plumb_error *err) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    const plumb_layer_weights *weights = &n->weights.layer[layer];
    plumb_workspace *w = &n->work;
    int64_t rows = end - first;
    const plumb_act *x = w->x + first * c->hidden;
    ops->quantize(n->backend, x, rows, c->hidden, w->xq);
    ops->linear(n->backend, x, c->hidden, rows, &weights->router, NULL, w->router_logits,
                c->experts);
    ops->route(n->backend, w->router_logits, weights->router_bias, rows, c->experts,
               c->experts_per_token, c->route_scale, w->expert_ids, w->expert_weights);
    int64_t n_groups = group_slots(n, rows);
    plumb_status status =
        plumb__source_experts(n->source, layer, w->distinct, n_groups, w->loaded, err);
    if (status != PLUMB_OK) return status;
    for (int64_t g = 0; g < n_groups; g++) w->groups[g].expert = w->loaded[g];
    add_shared(n, rows, layer, n_groups);
    ops->experts(n->backend, w->xq, w->groups, n_groups + 1, w->slot_weights, rows,
                 c->experts_per_token + 1, c->swiglu_limit, w->out + first * c->hidden);
    return PLUMB_OK;
}
