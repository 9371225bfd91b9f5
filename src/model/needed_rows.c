/* Which rows a layer must work on (model.md section 7).
 *
 * A layer attends raw keys only over its own window, and to older positions only through compressed
 * keys that a lower layer made.  So above the last layer that makes compressed keys a prompt needs a
 * trapezoid of trailing rows: one row of the top layer, window - 1 more for each layer below.  Rows
 * are independent, so leaving the others out changes no bit of what is kept. */
#include "model/network.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t row_of(const plumb_batch *batch, int64_t position) {
    int64_t row = position - batch->state->length;
    return row < 0 ? 0 : row > batch->rows ? batch->rows : row;
}

plumb_needed_rows plumb__needed_rows(const plumb_model_config *c, const plumb_batch *batch,
                                     int64_t layer) {
    /* Positions, from the top layer down: the last one of the call, and those whose logits are wanted. */
    int64_t full = batch->end - 1, key = 0, input = 0;
    if (batch->first_logits < batch->rows)
        full = least(full, batch->state->length + batch->first_logits);
    for (int64_t l = c->layers - 1;; l--) {
        /* The windows of the full rows.  The last position is always among them, so the last window,
         * which later positions will read, is too. */
        key = full - (c->window - 1);
        input = c->is_kv_source[l] ? 0 : key;
        if (l == layer) break;
        full = least(full, input);
    }
    return (plumb_needed_rows){row_of(batch, input), row_of(batch, key), row_of(batch, full)};
}
