/* One session becomes the equal of another, without evaluating anything. */
#include "engine/resume.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static plumb_status refuse(plumb_error *err, const char *found, const char *expected) {
    return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "session to copy", -1, found, "%s", expected);
}

static plumb_status copy_state(const plumb_session *from, int64_t limit, plumb_session_contents *to,
                               plumb_error *err) {
    const plumb_state *state = from->state;
    const plumb_model_config *c = state->config;
    plumb_status status = plumb__state_create(c, state->backend, &to->state, err);
    if (status != PLUMB_OK) return status;
    to->state->limit = limit;
    status = plumb__state_reserve(to->state, state->length, err);
    if (status != PLUMB_OK) return status;
    size_t fixed_bytes = (size_t)plumb__state_fixed_bytes(state);
    uint8_t *fixed = malloc(fixed_bytes);
    if (!fixed) return plumb__fail_memory(err, "copy of a session", fixed_bytes);
    plumb__state_save_fixed(state, fixed);
    plumb__state_restore_fixed(to->state, state->length, fixed);
    free(fixed);
    for (int64_t l = 0; l < c->layers; l++) {
        if (!c->is_kv_source[l]) continue;
        size_t rows = (size_t)(state->length / c->ratio[l]);
        if (rows == 0) continue;
        memcpy(to->state->layer[l].compressed, state->layer[l].compressed,
               rows * (size_t)plumb__compressed_row_bytes(c->head_dim));
        memcpy(to->state->layer[l].index_keys, state->layer[l].index_keys,
               rows * (size_t)plumb__index_row_bytes(c->index_dim));
    }
    return PLUMB_OK;
}

/* Resume points are a luxury: without memory for one there are fewer. */
static void copy_points(const plumb_session *from, plumb_session_contents *to) {
    size_t bytes = (size_t)plumb__state_fixed_bytes(from->state);
    for (int i = 0; i < from->n_points; i++) {
        uint8_t *fixed = malloc(bytes);
        if (!fixed) continue;
        memcpy(fixed, from->point[i].fixed, bytes);
        to->point[to->n_points++] = (plumb_resume_point){from->point[i].length, fixed};
    }
}

plumb_status plumb_session_copy(plumb_session *s, const plumb_session *from, plumb_error *err) {
    if (s == from) return PLUMB_OK;
    if (s->model != from->model) return refuse(err, "of another model", "one of the same model");
    int64_t length = from->state->length;
    if (length > s->options.context)
        return plumb__fail(err, PLUMB_ERROR_CONTEXT, NULL, "context", -1,
                           plumb__format("%lld tokens to copy", (long long)length).s, "at most %lld",
                           (long long)s->options.context);
    plumb_session_contents contents = {.stepped_back = from->stepped_back};
    plumb_status status = copy_state(from, s->state->limit, &contents, err);
    if (status == PLUMB_OK && length > 0) {
        contents.tokens = plumb__grow(NULL, &contents.token_capacity, length, sizeof *contents.tokens);
        if (contents.tokens) memcpy(contents.tokens, from->tokens, (size_t)length * sizeof *contents.tokens);
        else status = plumb__fail_memory(err, "tokens", (size_t)length * sizeof *contents.tokens);
    }
    if (status != PLUMB_OK) {
        plumb__state_destroy(contents.state);
        return status;
    }
    copy_points(from, &contents);
    plumb__session_replace(s, &contents);
    return PLUMB_OK;
}
