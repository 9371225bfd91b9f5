/* Which rows a layer must work on (model.md section 7).
 *
 * A layer attends raw keys only over its own window, and to older positions only through compressed
 * keys that a lower layer made.  So above the last layer that makes compressed keys a prompt needs a
 * trapezoid of trailing rows: one row of the top layer, window - 1 more for each layer below.  Where
 * the caches hold the compressed keys already, since a session goes back or on after a fault, the
 * trapezoid reaches down to the first layer: any state can be made again from (window - 1) * layers
 * positions.  Rows are independent, so leaving the others out changes no bit of what is kept. */
#include "model/network.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* First position that a layer has to compress.  The last pair that the cache holds, or has begun, is
 * compressed again for its carry. */
static int64_t first_compressed(const plumb_model_config *c, int64_t layer, int64_t cached) {
    if (c->ratio[layer] == 1 || cached == 0) return cached;
    return cached - 1 - (cached - 1) % c->ratio[layer];
}

/* Positions that a layer needs when those from `full` on go through the top layer. */
static plumb_needed_rows needed_positions(const plumb_model_config *c, int64_t cached, int64_t full,
                                          int64_t layer) {
    for (int64_t l = c->layers - 1;; l--) {
        /* The windows of the full rows.  The last position is always among them, so the last window,
         * which later positions will read, is too. */
        int64_t key = full - (c->window - 1), compress = INT64_MAX;
        if (c->is_kv_source[l]) compress = first_compressed(c, l, cached);
        int64_t input = least(key, compress);
        if (l == layer) return (plumb_needed_rows){input, key, full, compress};
        full = least(full, input);
    }
}

static int64_t row_of(const plumb_batch *batch, int64_t position) {
    int64_t start = batch->state->length;
    return position < start ? 0 : least(position - start, batch->rows);
}

plumb_needed_rows plumb__needed_rows(const plumb_model_config *c, const plumb_batch *batch,
                                     int64_t layer) {
    if (batch->steps) return (plumb_needed_rows){0, 0, 0, c->is_kv_source[layer] ? 0 : batch->rows};
    int64_t full = batch->end - 1;
    if (batch->first_logits < batch->rows)
        full = least(full, batch->state->length + batch->first_logits);
    plumb_needed_rows at = needed_positions(c, batch->cached, full, layer);
    return (plumb_needed_rows){row_of(batch, at.input), row_of(batch, at.key),
                               row_of(batch, at.full), row_of(batch, at.compress)};
}

int64_t plumb__first_needed(const plumb_model_config *c, int64_t cached, int64_t full) {
    int64_t first = least(needed_positions(c, cached, full, 0).input, cached);
    return first > 0 ? first : 0;
}

bool plumb__serves_end(const plumb_model_config *c, int64_t cached, int64_t done, int64_t end, int64_t other) {
    for (int64_t l = 0; l < c->layers; l++) {
        /* What is compressed is the same for all ends, and the full rows lie as far behind the first key. */
        int64_t made = needed_positions(c, cached, end - 1, l).key;
        int64_t wanted = needed_positions(c, cached, other - 1, l).key;
        if (wanted < made && wanted < done) return false;
    }
    return true;
}
