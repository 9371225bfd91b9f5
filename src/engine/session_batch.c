/* One step of several sessions, as one batch: each expert and each matrix is read once for all of them.
 *
 * Rows are independent of each other, so every session gets the bits of a step alone. */
#include "engine/resume.h"

#include "base/error.h"
#include "engine/memory_budget.h"

#include <stdlib.h>

typedef struct group {
    plumb_session *const *session; /* [n] */
    int64_t n;
} group;

static int keep_row(void *user, int64_t row, const float *logits) {
    const group *g = user;
    plumb__session_keep_logits(g->session[row], logits);
    return 0;
}

/* Whoever watches may cancel all. */
static int report_progress(void *user, int64_t layer, int64_t layers) {
    const group *g = user;
    int cancel = 0;
    for (int64_t i = 0; i < g->n; i++) {
        const plumb_session_options *o = &g->session[i]->options;
        if (o->progress) cancel |= o->progress(o->progress_user, layer / layers, 1);
    }
    return cancel;
}

static plumb_status check(const group *g, const int32_t *tokens, plumb_error *err) {
    if (g->n < 1 || g->n > PLUMB_MOST_STEPS || !tokens)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "sessions", -1,
                           plumb__format("%lld", (long long)g->n).s, "1 to %d, with a token each",
                           PLUMB_MOST_STEPS);
    for (int64_t i = 0; i < g->n; i++) {
        const plumb_session *s = g->session[i];
        bool is_first = true;
        for (int64_t j = 0; j < i; j++) is_first &= g->session[j] != s;
        if (s->model != g->session[0]->model || !is_first)
            return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "sessions", i,
                               is_first ? "one of another model" : "one that is there already",
                               "different sessions of one model");
        plumb_status status = plumb__session_check_tokens(s, s->state->length, tokens + i, 1, err);
        if (status != PLUMB_OK) return status;
    }
    return PLUMB_OK;
}

static plumb_status put_and_reserve(plumb_session *s, int32_t token, plumb_step *step, plumb_error *err) {
    int64_t length = s->state->length;
    plumb_status status = plumb__session_put_tokens(s, length, &token, 1, err);
    /* Caches take their room first: experts get what is left of it. */
    if (status == PLUMB_OK) status = plumb__state_reserve(s->state, length + 1, err);
    if (status != PLUMB_OK) return status;
    plumb__session_count_bytes(s);
    *step = (plumb_step){s->state, s->tokens};
    return PLUMB_OK;
}

static plumb_status evaluate(group *g, const int32_t *tokens, bool wanted, plumb_error *err) {
    plumb_model *model = g->session[0]->model;
    plumb_step steps[PLUMB_MOST_STEPS];
    bool watched = false;
    for (int64_t i = 0; i < g->n; i++) {
        plumb_status status = put_and_reserve(g->session[i], tokens[i], &steps[i], err);
        if (status != PLUMB_OK) return status;
        watched |= g->session[i]->options.progress != NULL;
    }
    plumb_batch batch = {.steps = steps, .rows = g->n, .first_logits = wanted ? 0 : g->n, .sink = keep_row,
                         .sink_user = g, .progress = watched ? report_progress : NULL, .progress_user = g};
    pthread_mutex_lock(&model->lock);
    plumb__budget_apply(model, g->n);
    plumb_status status = plumb__network_forward(&model->network, &batch, err);
    pthread_mutex_unlock(&model->lock);
    return status;
}

plumb_status plumb_sessions_step(plumb_session *const *sessions, const int32_t *tokens, int64_t n,
                                 const float **logits, plumb_error *err) {
    group g = {sessions, n};
    plumb_status status = check(&g, tokens, err);
    if (status == PLUMB_OK) status = evaluate(&g, tokens, logits != NULL, err);
    if (status != PLUMB_OK) return status;
    for (int64_t i = 0; i < n; i++) {
        plumb_session *s = sessions[i];
        if (s->known < s->state->length) s->known = s->state->length;
        s->stepped_back = false;
        plumb__session_advanced(s, 1);
        plumb__session_count_bytes(s);
        if (logits) logits[i] = s->logits;
    }
    return PLUMB_OK;
}
