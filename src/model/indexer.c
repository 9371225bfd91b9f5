/* Compressor and indexer of one layer (model.md sections 4.5 and 4.6). */
#include "model/network.h"

/* Latents of ratio 2: pairs of float32 projections, the first of which may wait in the carry.  The cache
 * has the latents of the first `held` of them already.  Returns how many were made.  The carry keeps the
 * first of the last pair when that is complete, too, so that a state can go back by one position. */
static int64_t compress_pairs(plumb_network *n, const plumb_sequence *s, int64_t layer, int64_t first,
                              int64_t held, float *pending) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    const plumb_layer_weights *weights = &n->weights.layer[layer];
    plumb_workspace *w = &n->work;
    int64_t dim = c->head_dim, rows = s->row + s->rows - first;
    int64_t row_bytes = dim * (int64_t)sizeof(float);
    int64_t waiting = (s->state->length + first - s->row) % 2;
    const float *carry = s->state->layer[layer].carry;
    if (waiting) {
        ops->copy(n->backend, carry, w->pair_value, row_bytes);
        ops->copy(n->backend, carry + dim, w->pair_gate, row_bytes);
    }
    const plumb_act *x = w->x + first * c->hidden;
    ops->linear(n->backend, x, c->hidden, rows, &weights->compress_kv, NULL,
                w->pair_value + waiting * dim, dim);
    ops->linear(n->backend, x, c->hidden, rows, &weights->compress_gate, NULL,
                w->pair_gate + waiting * dim, dim);
    int64_t tokens = waiting + rows, pairs = tokens / 2, last = (tokens - 1) / 2 * 2;
    ops->copy(n->backend, w->pair_value + last * dim, pending, row_bytes);
    ops->copy(n->backend, w->pair_gate + last * dim, pending + dim, row_bytes);
    if (held > pairs) held = pairs;
    ops->compress_pairs(n->backend, w->pair_value + 2 * held * dim, w->pair_gate + 2 * held * dim,
                        pairs - held, dim, w->latent);
    return pairs - held;
}

/* `count` latents at `position` / ratio and after, as the sequence's caches keep them. */
static void store_latents(plumb_network *n, const plumb_sequence *s, int64_t layer, int64_t at,
                          int64_t count) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    const plumb_layer_weights *weights = &n->weights.layer[layer];
    plumb_workspace *w = &n->work;
    plumb_layer_state *cache = &s->state->layer[layer];
    int64_t ratio = c->ratio[layer], pairs = c->rope_dim / 2;
    ops->rms_norm(n->backend, w->latent, count, c->head_dim, weights->compress_norm, c->norm_eps,
                  w->latent);
    /* A latent stands at the position of its first token. */
    int64_t angle = (s->row + at - s->state->length / ratio) * pairs;
    const float *cosine = (ratio > 1 ? w->pair_cosine : w->cosine[1]) + angle;
    const float *sine = (ratio > 1 ? w->pair_sine : w->sine[1]) + angle;
    /* The index key is made from the latent before it is rotated. */
    ops->linear(n->backend, w->latent, c->head_dim, count, &weights->index_key, w->index_key, NULL,
                c->index_dim);
    ops->rms_norm(n->backend, w->index_key, count, c->index_dim, weights->index_key_norm,
                  c->norm_eps, w->index_key);
    ops->rotate(n->backend, w->index_key, count, 1, c->index_dim, pairs, cosine, sine, false);
    ops->pack_index(n->backend, w->index_key, count, c->index_dim,
                    cache->index_keys + at * plumb__index_row_bytes(c->index_dim));
    ops->rotate(n->backend, w->latent, count, 1, c->head_dim, pairs, cosine, sine, false);
    ops->pack_compressed(n->backend, w->latent, count, c->head_dim,
                         cache->compressed + at * plumb__compressed_row_bytes(c->head_dim));
}

/* The matrices are small: several sequences are no reason to lay their pairs side by side. */
void plumb__compress(plumb_network *n, const plumb_batch *batch, int64_t layer, int64_t first_row) {
    const plumb_model_config *c = n->config;
    plumb_workspace *w = &n->work;
    int64_t ratio = c->ratio[layer], sequences = plumb__sequences(batch);
    for (int64_t i = 0; i < sequences; i++) {
        plumb_sequence s = plumb__sequence(batch, i);
        int64_t from = s.row > first_row ? s.row : first_row, count = s.row + s.rows - from;
        int64_t at = (s.state->length + from - s.row) / ratio;
        /* A pair that the cache has is here for its carry.  Its row is not written again: if this batch
         * fails for want of memory its values mean nothing, and the session goes on with the row. */
        int64_t held = at < s.cached / ratio;
        if (ratio > 1)
            count = compress_pairs(n, &s, layer, from, held,
                                   w->pending_carry + (layer * sequences + i) * 2 * c->head_dim);
        else
            n->backend->ops->linear(n->backend, w->x + from * c->hidden, c->hidden, count,
                                    &n->weights.layer[layer].compress_kv, w->latent, NULL, c->head_dim);
        store_latents(n, &s, layer, at + held, count);
    }
}

/* Keys are the owner's own, on every position (model.md 4.6, the note on the decode defect). */
static void select_keys(plumb_network *n, const plumb_sequence *s, int64_t layer, int64_t first,
                        int64_t first_query) {
    const plumb_model_config *c = n->config;
    plumb_workspace *w = &n->work;
    int64_t heads = (first - first_query) * c->index_heads;
    plumb_index_args args = {
        .query = w->index_query_packed + heads * plumb__index_row_bytes(c->index_dim),
        .weight = w->index_weight + heads,
        .keys = s->state->layer[c->kv_source[layer]].index_keys, .heads = c->index_heads,
        .dim = c->index_dim, .position = s->state->length + first - s->row, .ratio = c->ratio[layer],
        .top_k = n->top_k, .selected = w->selected + first * n->top_k,
        .selected_count = w->selected_count + first,
        .build_pool = layer == c->candidate_source,
        .use_pool = c->candidate_source >= 0 && layer > c->candidate_source,
        .pool_blocks = n->pool_blocks, .block_size = c->candidate_block_size,
        .pool = w->pool + first * n->pool_blocks, .pool_count = w->pool_count + first};
    n->backend->ops->index_select(n->backend, &args, s->row + s->rows - first);
}

void plumb__index(plumb_network *n, const plumb_batch *batch, int64_t layer, int64_t first) {
    const plumb_model_config *c = n->config;
    const plumb_backend_ops *ops = n->backend->ops;
    const plumb_layer_weights *weights = &n->weights.layer[layer];
    plumb_workspace *w = &n->work;
    int64_t rows = batch->rows - first, pairs = c->rope_dim / 2;
    ops->linear_quantized(n->backend, w->q_low_q, rows, &weights->index_query, w->index_query);
    ops->rotate(n->backend, w->index_query, rows, c->index_heads, c->index_dim, pairs,
                w->cosine[1] + first * pairs, w->sine[1] + first * pairs, false);
    ops->pack_index(n->backend, w->index_query, rows * c->index_heads, c->index_dim,
                    w->index_query_packed);
    ops->linear(n->backend, w->x + first * c->hidden, c->hidden, rows, &weights->index_weights,
                w->index_proj, NULL, c->index_heads);
    ops->index_weights(n->backend, w->index_proj, rows * c->index_heads, n->index_factor,
                       w->index_weight);
    for (int64_t i = 0; i < plumb__sequences(batch); i++) {
        plumb_sequence s = plumb__sequence(batch, i);
        select_keys(n, &s, layer, s.row > first ? s.row : first, first);
    }
}
