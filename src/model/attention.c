/* Attention of one layer (model.md section 4.4). */
#include "model/network.h"

#include <string.h>

/* q = rope(wq_b RMSNorm(wq_a x)); no norm per head. */
static void make_queries(plumb_network *n, int64_t rows, int64_t layer) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    const plumb_layer_weights *weights = &n->weights.layer[layer];
    plumb_workspace *w = &n->work;
    int table = c->ratio[layer] > 0;
    ops->linear_quantized(n->backend, w->xq, rows, &weights->wq_a, w->q_low);
    ops->rms_norm(n->backend, w->q_low, rows, c->q_rank, weights->q_norm, c->norm_eps, w->q_low);
    ops->quantize(n->backend, w->q_low, rows, c->q_rank, w->q_low_q);
    ops->linear_quantized(n->backend, w->q_low_q, rows, &weights->wq_b, w->query);
    ops->rotate(n->backend, w->query, rows, c->heads, c->head_dim, c->rope_dim / 2,
                w->cosine[table], w->sine[table], false);
}

/* The shared key and value of each row, packed as the window keeps it. */
static void make_window_keys(plumb_network *n, int64_t rows, int64_t layer) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    const plumb_layer_weights *weights = &n->weights.layer[layer];
    plumb_workspace *w = &n->work;
    int table = c->ratio[layer] > 0;
    ops->linear_quantized(n->backend, w->xq, rows, &weights->wkv, w->kv);
    ops->rms_norm(n->backend, w->kv, rows, c->head_dim, weights->kv_norm, c->norm_eps, w->kv);
    ops->rotate(n->backend, w->kv, rows, 1, c->head_dim, c->rope_dim / 2, w->cosine[table],
                w->sine[table], false);
    ops->pack_window(n->backend, w->kv, rows, c->head_dim, w->chunk);
    int64_t row_bytes = plumb__window_row_bytes(c->head_dim);
    int64_t kept = rows < c->window ? rows : c->window;
    memcpy(w->pending_ring + layer * kept * row_bytes, w->chunk + (rows - kept) * row_bytes,
           (size_t)(kept * row_bytes));
}

/* out = wo_b (wo_a per group of heads): the groups are bf16 products, not quantised ones. */
static void project_output(plumb_network *n, int64_t rows, int64_t layer) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    const plumb_layer_weights *weights = &n->weights.layer[layer];
    plumb_workspace *w = &n->work;
    int64_t width = c->heads * c->head_dim / c->o_groups; /* of a group's input */
    int64_t all = c->o_groups * c->o_rank;
    for (int64_t g = 0; g < c->o_groups; g++) {
        plumb_matrix group = weights->wo_a; /* rows g*o_rank .. of it */
        group.n = c->o_rank;
        group.codes = (const uint8_t *)group.codes + g * c->o_rank * width;
        group.scales += g * c->o_rank / PLUMB_BLOCK * ((width + PLUMB_BLOCK - 1) / PLUMB_BLOCK);
        ops->linear(n->backend, w->attended + g * width, c->heads * c->head_dim, rows, &group,
                    w->group_out + g * c->o_rank, NULL, all);
    }
    ops->quantize(n->backend, w->group_out, rows, all, w->group_out_q);
    ops->linear_quantized(n->backend, w->group_out_q, rows, &weights->wo_b, w->out);
}

void plumb__attention(plumb_network *n, const plumb_batch *batch, int64_t layer) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    plumb_workspace *w = &n->work;
    const plumb_state *state = batch->state;
    int table = c->ratio[layer] > 0;
    ops->quantize(n->backend, w->x, batch->rows, c->hidden, w->xq);
    make_queries(n, batch->rows, layer);
    make_window_keys(n, batch->rows, layer);
    if (c->is_kv_source[layer]) plumb__compress(n, batch, layer);
    if (c->is_index_source[layer]) plumb__index(n, batch, layer);

    int64_t source = c->kv_source[layer];
    plumb_attention_args args = {
        .query = w->query, .heads = c->heads, .dim = c->head_dim, .window = c->window,
        .position = state->length, .ring = state->layer[layer].ring, .chunk = w->chunk,
        .compressed = source >= 0 ? state->layer[source].compressed : NULL,
        .selected = w->selected, .selected_count = w->selected_count,
        .selected_stride = c->index_topk, .sink = n->weights.layer[layer].sink,
        .scale = n->attention_scale, .out = w->attended};
    ops->attention(n->backend, &args, batch->rows);
    ops->rotate(n->backend, w->attended, batch->rows, c->heads, c->head_dim, c->rope_dim / 2,
                w->cosine[table], w->sine[table], true);
    project_output(n, batch->rows, layer);
}
