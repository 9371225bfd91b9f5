#include "model/state.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static int64_t ring_bytes(const plumb_model_config *c) {
    return c->window * plumb__window_row_bytes(c->head_dim);
}

static int64_t carry_bytes(const plumb_model_config *c) {
    return 2 * c->head_dim * (int64_t)sizeof(float);
}

static bool has_carry(const plumb_model_config *c, int64_t layer) {
    return c->is_kv_source[layer] && c->ratio[layer] > 1;
}

plumb_status plumb__state_create(const plumb_model_config *config, plumb_backend *backend,
                                 plumb_state **out, plumb_error *err) {
    plumb_state *state = calloc(1, sizeof *state);
    if (!state) return plumb__fail_memory(err, "state", sizeof *state);
    state->config = config;
    state->backend = backend;
    for (int64_t l = 0; l < config->layers; l++) {
        plumb_layer_state *layer = &state->layer[l];
        layer->ring = backend->ops->allocate(backend, ring_bytes(config));
        if (has_carry(config, l)) layer->carry = backend->ops->allocate(backend, carry_bytes(config));
        if (!layer->ring || (has_carry(config, l) && !layer->carry)) {
            plumb__state_destroy(state);
            return plumb__fail_memory(err, "window rings", (size_t)ring_bytes(config));
        }
    }
    *out = state;
    return PLUMB_OK;
}

void plumb__state_destroy(plumb_state *state) {
    if (!state) return;
    const plumb_backend_ops *ops = state->backend->ops;
    for (int64_t l = 0; l < state->config->layers; l++) {
        plumb_layer_state *layer = &state->layer[l];
        if (layer->ring) ops->release(state->backend, layer->ring);
        if (layer->compressed) ops->release(state->backend, layer->compressed);
        if (layer->index_keys) ops->release(state->backend, layer->index_keys);
        if (layer->carry) ops->release(state->backend, layer->carry);
    }
    free(state);
}

/* Moves a cache of `rows` rows of `row_bytes` to a block with room for `capacity` rows. */
static bool grow_cache(plumb_state *state, uint8_t **cache, int64_t rows, int64_t capacity,
                       int64_t row_bytes) {
    uint8_t *grown = state->backend->ops->allocate(state->backend, capacity * row_bytes);
    if (!grown) return false;
    if (*cache) {
        memcpy(grown, *cache, (size_t)(rows * row_bytes));
        state->backend->ops->release(state->backend, *cache);
    }
    *cache = grown;
    return true;
}

plumb_status plumb__state_reserve(plumb_state *state, int64_t length, plumb_error *err) {
    enum { LEAST = 1024 };
    if (length <= state->capacity) return PLUMB_OK;
    const plumb_model_config *c = state->config;
    /* By a quarter: a long context never holds much more than it needs. */
    int64_t capacity = state->capacity + state->capacity / 4;
    if (capacity < length) capacity = length;
    if (capacity < LEAST) capacity = LEAST;
    if (state->limit > 0 && capacity > state->limit) capacity = state->limit;
    for (int64_t l = 0; l < c->layers; l++) {
        if (!c->is_kv_source[l]) continue;
        /* All of it: a session may know more positions than its length. */
        int64_t kept = state->capacity / c->ratio[l], rows = capacity / c->ratio[l];
        if (!grow_cache(state, &state->layer[l].compressed, kept, rows,
                        plumb__compressed_row_bytes(c->head_dim)) ||
            !grow_cache(state, &state->layer[l].index_keys, kept, rows,
                        plumb__index_row_bytes(c->index_dim)))
            return plumb__fail_memory(err, "compressed cache", (size_t)rows);
    }
    state->capacity = capacity;
    return PLUMB_OK;
}

int64_t plumb__state_ring_offset(const plumb_model_config *c, int64_t layer) {
    int64_t bytes = 0;
    for (int64_t l = 0; l < layer; l++)
        bytes += ring_bytes(c) + (has_carry(c, l) ? carry_bytes(c) : 0);
    return bytes;
}

static int64_t fixed_bytes(const plumb_model_config *c) {
    return plumb__state_ring_offset(c, c->layers);
}

int64_t plumb__state_fixed_bytes(const plumb_state *state) { return fixed_bytes(state->config); }

void plumb__state_save_fixed(const plumb_state *state, uint8_t *to) {
    const plumb_model_config *c = state->config;
    for (int64_t l = 0; l < c->layers; l++) {
        memcpy(to, state->layer[l].ring, (size_t)ring_bytes(c));
        to += ring_bytes(c);
        if (!has_carry(c, l)) continue;
        memcpy(to, state->layer[l].carry, (size_t)carry_bytes(c));
        to += carry_bytes(c);
    }
}

void plumb__state_restore_fixed(plumb_state *state, int64_t length, const uint8_t *from) {
    const plumb_model_config *c = state->config;
    for (int64_t l = 0; l < c->layers; l++) {
        memcpy(state->layer[l].ring, from, (size_t)ring_bytes(c));
        from += ring_bytes(c);
        if (!has_carry(c, l)) continue;
        memcpy(state->layer[l].carry, from, (size_t)carry_bytes(c));
        from += carry_bytes(c);
    }
    state->length = length;
}

void plumb__state_clear(plumb_state *state) { state->length = 0; }
void plumb__state_step_back(plumb_state *state) { state->length--; }

int64_t plumb__state_bytes_at(const plumb_model_config *c, int64_t length) {
    int64_t bytes = fixed_bytes(c);
    for (int64_t l = 0; l < c->layers; l++)
        if (c->is_kv_source[l])
            bytes += length / c->ratio[l] * (plumb__compressed_row_bytes(c->head_dim) +
                                             plumb__index_row_bytes(c->index_dim));
    return bytes;
}

int64_t plumb__state_bytes(const plumb_state *state) {
    return plumb__state_bytes_at(state->config, state->capacity);
}
