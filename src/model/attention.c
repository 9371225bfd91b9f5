/* Attention of one layer (model.md section 4.4). */
#include "model/network.h"

/* The quantised row `row` of a batch of width k. */
static const plumb_quantized *quantized_row(plumb_network *n, const plumb_quantized *q, int64_t k,
                                            int64_t row) {
    return (const plumb_quantized *)(const void *)((const char *)q +
                                                   n->backend->ops->quantized_bytes(n->backend, row, k));
}

/* q = rope(wq_b RMSNorm(wq_a x)) of rows `first` to `end`, of which xq is the first; no norm per
 * head. */
static void make_queries(plumb_network *n, int64_t first, int64_t end, const plumb_quantized *xq,
                         int64_t layer) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    const plumb_layer_weights *weights = &n->weights.layer[layer];
    plumb_workspace *w = &n->work;
    int64_t rows = end - first, pairs = c->rope_dim / 2;
    int table = c->ratio[layer] > 0;
    plumb_act *query = w->query + first * c->heads * c->head_dim;
    ops->linear_quantized(n->backend, xq, rows, &weights->wq_a, w->q_low);
    ops->rms_norm(n->backend, w->q_low, rows, c->q_rank, weights->q_norm, c->norm_eps, w->q_low);
    ops->quantize(n->backend, w->q_low, rows, c->q_rank, w->q_low_q);
    ops->linear_quantized(n->backend, w->q_low_q, rows, &weights->wq_b, query);
    ops->rotate(n->backend, query, rows, c->heads, c->head_dim, pairs,
                w->cosine[table] + first * pairs, w->sine[table] + first * pairs, false);
}

/* The shared key and value of rows from `first` on, packed as the window keeps it. */
static void make_window_keys(plumb_network *n, const plumb_batch *batch, int64_t first, int64_t layer) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    const plumb_layer_weights *weights = &n->weights.layer[layer];
    plumb_workspace *w = &n->work;
    int64_t rows = batch->rows - first, pairs = c->rope_dim / 2;
    int64_t row_bytes = plumb__window_row_bytes(c->head_dim);
    int table = c->ratio[layer] > 0;
    ops->linear_quantized(n->backend, w->xq, rows, &weights->wkv, w->kv);
    ops->rms_norm(n->backend, w->kv, rows, c->head_dim, weights->kv_norm, c->norm_eps, w->kv);
    ops->rotate(n->backend, w->kv, rows, 1, c->head_dim, pairs, w->cosine[table] + first * pairs,
                w->sine[table] + first * pairs, false);
    ops->pack_window(n->backend, w->kv, rows, c->head_dim, w->chunk + first * row_bytes);
    /* Rows before `first` that a ring would keep belong to positions that nothing reads again. */
    int64_t kept = plumb__rows_kept(batch, c->window);
    ops->copy(n->backend, w->chunk + (batch->rows - kept) * row_bytes,
              w->pending_ring + layer * kept * row_bytes, kept * row_bytes);
}

/* out = wo_b (wo_a per group of heads): the groups are bf16 products, not quantised ones. */
static void project_output(plumb_network *n, int64_t first, int64_t end, int64_t layer) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    const plumb_layer_weights *weights = &n->weights.layer[layer];
    plumb_workspace *w = &n->work;
    int64_t rows = end - first, all = c->o_groups * c->o_rank;
    int64_t width = c->heads * c->head_dim / c->o_groups; /* of a group's input */
    const plumb_act *attended = w->attended + first * c->heads * c->head_dim;
    for (int64_t g = 0; g < c->o_groups; g++) {
        plumb_matrix group = weights->wo_a; /* rows g*o_rank .. of it */
        group.n = c->o_rank;
        group.prepared = NULL;
        group.codes = (const uint8_t *)group.codes + g * c->o_rank * width;
        group.scales += g * c->o_rank / PLUMB_BLOCK * ((width + PLUMB_BLOCK - 1) / PLUMB_BLOCK);
        ops->linear(n->backend, attended + g * width, c->heads * c->head_dim, rows, &group,
                    w->group_out + g * c->o_rank, NULL, all);
    }
    ops->quantize(n->backend, w->group_out, rows, all, w->group_out_q);
    ops->linear_quantized(n->backend, w->group_out_q, rows, &weights->wo_b,
                          w->out + first * c->hidden);
}

/* The window and the selected compressed keys of a sequence's rows from `first` on. */
static void attend_sequence(plumb_network *n, const plumb_sequence *s, int64_t first, int64_t layer) {
    const plumb_model_config *c = n->config;
    plumb_workspace *w = &n->work;
    int64_t source = c->kv_source[layer], row_width = c->heads * c->head_dim;
    plumb_attention_args args = {
        .query = w->query + first * row_width, .heads = c->heads, .dim = c->head_dim,
        .window = c->window, .position = s->state->length + first - s->row,
        .ring = s->state->layer[layer].ring,
        .chunk = w->chunk + s->row * plumb__window_row_bytes(c->head_dim),
        .chunk_position = s->state->length,
        .compressed = source >= 0 ? s->state->layer[source].compressed : NULL,
        .selected = w->selected + first * n->top_k,
        .selected_count = w->selected_count + first, .selected_stride = n->top_k,
        .sink = n->weights.layer[layer].sink, .scale = n->attention_scale,
        .out = w->attended + first * row_width};
    n->backend->ops->attention(n->backend, &args, s->row + s->rows - first);
}

static void attend(plumb_network *n, const plumb_batch *batch, int64_t first, int64_t layer) {
    const plumb_model_config *c = n->config;
    plumb_workspace *w = &n->work;
    int64_t pairs = c->rope_dim / 2;
    int table = c->ratio[layer] > 0;
    for (int64_t i = 0; i < plumb__sequences(batch); i++) {
        plumb_sequence s = plumb__sequence(batch, i);
        attend_sequence(n, &s, s.row > first ? s.row : first, layer);
    }
    n->backend->ops->rotate(n->backend, w->attended + first * c->heads * c->head_dim, batch->rows - first,
                            c->heads, c->head_dim, pairs, w->cosine[table] + first * pairs,
                            w->sine[table] + first * pairs, true);
}

void plumb__attention(plumb_network *n, const plumb_batch *batch, int64_t layer,
                      plumb_needed_rows needed) {
    const plumb_model_config *c = n->config;
    plumb_workspace *w = &n->work;
    int64_t rows = batch->rows;
    if (needed.compress < rows) plumb__compress(n, batch, layer, needed.compress);
    if (needed.key == rows) return;
    n->backend->ops->quantize(n->backend, w->x + needed.key * c->hidden, rows - needed.key,
                              c->hidden, w->xq);
    make_window_keys(n, batch, needed.key, layer);
    if (needed.full == rows) return;
    make_queries(n, needed.full, rows,
                 quantized_row(n, w->xq, c->hidden, needed.full - needed.key), layer);
    if (c->is_index_source[layer]) plumb__index(n, batch, layer, needed.full);
    attend(n, batch, needed.full, layer);
    project_output(n, needed.full, rows, layer);
}
