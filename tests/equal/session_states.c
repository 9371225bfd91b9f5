#include "equal/session_states.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct comparison {
    int64_t layer;
    session_difference difference;
} comparison;

static void compare_rows(comparison *c, const void *a, const void *b, int64_t rows, int64_t row_bytes,
                         const char *what) {
    const uint8_t *x = a, *y = b;
    for (int64_t r = 0; r < rows && c->difference.text[0] == 0; r++)
        if (memcmp(x + r * row_bytes, y + r * row_bytes, (size_t)row_bytes) != 0)
            snprintf(c->difference.text, sizeof c->difference.text,
                     "%s row %" PRId64 " of %" PRId64 " of layer %" PRId64, what, r, rows, c->layer);
}

/* Of a complete pair the carry is for one step back, which cannot be made twice. */
static bool carry_counts(const plumb_session *y) {
    int64_t length = y->state->length;
    return length % 2 == 1 || (length > 0 && !y->stepped_back);
}

static void compare_layer(comparison *c, const plumb_session *x, const plumb_session *y) {
    const plumb_model_config *config = x->state->config;
    const plumb_layer_state *a = &x->state->layer[c->layer], *b = &y->state->layer[c->layer];
    int64_t length = x->state->length, row_bytes = plumb__window_row_bytes(config->head_dim);
    int64_t slots = length < config->window ? length : config->window;
    int64_t whole = y->stepped_back && slots == config->window ? length % config->window : slots;
    compare_rows(c, a->ring, b->ring, whole, row_bytes, "ring");
    if (whole < slots)
        compare_rows(c, a->ring + (whole + 1) * row_bytes, b->ring + (whole + 1) * row_bytes,
                     slots - whole - 1, row_bytes, "later ring");
    if (a->carry && carry_counts(y)) compare_rows(c, a->carry, b->carry, 2, config->head_dim * 4, "carry");
    if (!config->is_kv_source[c->layer]) return;
    int64_t rows = length / config->ratio[c->layer];
    compare_rows(c, a->compressed, b->compressed, rows, plumb__compressed_row_bytes(config->head_dim),
                 "compressed");
    compare_rows(c, a->index_keys, b->index_keys, rows, plumb__index_row_bytes(config->index_dim),
                 "index key");
}

session_difference session_states_compare(const plumb_session *x, const plumb_session *y) {
    comparison c = {0};
    if (x->state->length != y->state->length)
        snprintf(c.difference.text, sizeof c.difference.text, "lengths %" PRId64 " and %" PRId64,
                 x->state->length, y->state->length);
    for (; c.layer < x->state->config->layers && c.difference.text[0] == 0; c.layer++)
        compare_layer(&c, x, y);
    return c.difference;
}
