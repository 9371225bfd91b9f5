/* Sessions: one timeline of tokens each, evaluated in chunks, able to go back.
 *
 * Going back needs what later positions overwrote: window rings and carries.  A session keeps a few
 * copies of them (resume points) and, to reach a length in between, restores the nearest earlier
 * one and evaluates the tokens from there again; determinism makes the result the fresh one. */
#include "engine/engine.h"

#include "base/alloc.h"
#include "base/error.h"
#include "engine/memory_budget.h"

#include <stdlib.h>

enum {
    DEFAULT_CHUNK = 256,
    RESUME_DISTANCE = 64 /* positions between resume points while decoding */
};

/* ---- Life ------------------------------------------------------------------------------------ */

static plumb_status check_options(plumb_model *model, plumb_session_options *o, plumb_error *err) {
    int64_t most = model->network.config->max_positions;
    if (o->context == 0) o->context = most;
    if (o->context < 1 || o->context > most)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "context", -1,
                           plumb__format("%lld", (long long)o->context).s, "1 to %lld",
                           (long long)most);
    /* A sweep through all experts pays for as many rows as it can. */
    if (o->chunk == 0)
        o->chunk = model->streaming ? plumb__budget_chunk(model, o->context) : DEFAULT_CHUNK;
    if (o->chunk < 1)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "chunk", -1,
                           plumb__format("%lld", (long long)o->chunk).s, "1 or more");
    return PLUMB_OK;
}

static int64_t bytes_of(const plumb_session *s, int64_t state_bytes, int64_t points,
                        int64_t token_room) {
    return state_bytes + (points + 1) * plumb__state_fixed_bytes(s->state) +
           token_room * (int64_t)sizeof *s->tokens +
           s->model->network.config->vocab * (int64_t)sizeof *s->logits;
}

/* Brings the model's account of its sessions up to date. */
static void count_bytes(plumb_session *s) {
    int64_t bytes = bytes_of(s, plumb__state_bytes(s->state), s->n_points, s->token_capacity);
    s->model->session_bytes += bytes - s->counted_bytes;
    s->counted_bytes = bytes;
}

/* Refuses a session whose full context the budget has no room for beside what was promised to others. */
static plumb_status promise(plumb_session *s, plumb_error *err) {
    const plumb_session_options *o = &s->options;
    int64_t most = plumb__state_bytes_at(s->model->network.config, o->context);
    /* Lists of tokens grow by doubling. */
    s->promised_bytes = bytes_of(s, most, PLUMB_MAX_RESUME_POINTS, 2 * o->context);
    s->model->promised_bytes += s->promised_bytes;
    return plumb__budget_check_session(s->model, o->context,
                                       o->chunk < o->context ? o->chunk : o->context, err);
}

plumb_status plumb_session_create(plumb_model *model, const plumb_session_options *options,
                                  plumb_session **out, plumb_error *err) {
    plumb_session_options checked = options ? *options : (plumb_session_options){0};
    plumb_status status = check_options(model, &checked, err);
    if (status != PLUMB_OK) return status;
    plumb_session *session = calloc(1, sizeof *session);
    if (!session) return plumb__fail_memory(err, "session", sizeof *session);
    session->model = model;
    session->options = checked;
    size_t vocab = (size_t)model->network.config->vocab;
    status = plumb__state_create(model->network.config, model->backend, &session->state, err);
    if (status == PLUMB_OK) {
        session->state->limit = checked.context;
        status = promise(session, err);
    }
    if (status == PLUMB_OK) {
        session->logits = malloc(vocab * sizeof *session->logits);
        session->backup = malloc((size_t)plumb__state_fixed_bytes(session->state));
        if (!session->logits || !session->backup)
            status = plumb__fail_memory(err, "session", vocab * sizeof *session->logits);
    }
    if (status != PLUMB_OK) {
        plumb_session_destroy(session);
        return status;
    }
    count_bytes(session);
    *out = session;
    return PLUMB_OK;
}

void plumb_session_destroy(plumb_session *session) {
    if (!session) return;
    session->model->session_bytes -= session->counted_bytes;
    session->model->promised_bytes -= session->promised_bytes;
    for (int i = 0; i < session->n_points; i++) free(session->point[i].fixed);
    plumb__state_destroy(session->state);
    free(session->tokens);
    free(session->logits);
    free(session->backup);
    free(session);
}

int64_t plumb_session_length(const plumb_session *session) { return session->state->length; }
int64_t plumb_session_context(const plumb_session *session) { return session->options.context; }
const int32_t *plumb_session_tokens(const plumb_session *session) { return session->tokens; }

/* ---- Resume points ---------------------------------------------------------------------------- */

static void drop_point(plumb_session *s, int i) {
    free(s->point[i].fixed);
    for (int j = i; j + 1 < s->n_points; j++) s->point[j] = s->point[j + 1];
    s->n_points--;
}

/* The point whose loss costs least: the smallest gap between its neighbours, measured against how
 * far back it lies, so that recent points stay dense and old ones sparse. */
static int least_useful_point(const plumb_session *s) {
    int best = 0;
    double least = 0;
    for (int i = 0; i + 1 < s->n_points; i++) {
        int64_t before = i > 0 ? s->point[i - 1].length : 0;
        double gap = (double)(s->point[i + 1].length - before);
        double cost = gap / (double)(s->state->length - s->point[i].length + 1);
        if (i == 0 || cost < least) {
            least = cost;
            best = i;
        }
    }
    return best;
}

/* Remembers the present length.  Without memory there is simply no point here: rewinding works from an
 * earlier one. */
static void add_point(plumb_session *s) {
    int64_t length = s->state->length;
    if (s->n_points > 0 && s->point[s->n_points - 1].length == length) return;
    uint8_t *fixed = malloc((size_t)plumb__state_fixed_bytes(s->state));
    if (!fixed) return;
    if (s->n_points == PLUMB_MAX_RESUME_POINTS) drop_point(s, least_useful_point(s));
    plumb__state_save_fixed(s->state, fixed);
    s->point[s->n_points++] = (plumb_resume_point){length, fixed};
}

/* ---- Evaluation -------------------------------------------------------------------------------- */

typedef struct progress_of_call {
    const plumb_session_options *options;
    int64_t done, rows, total;
} progress_of_call;

static int report_progress(void *user, int64_t layer, int64_t layers) {
    const progress_of_call *p = user;
    return p->options->progress(p->options->progress_user, p->done + p->rows * layer / layers,
                                p->total);
}

static plumb_status check_tokens(const plumb_session *s, const int32_t *tokens, int64_t n,
                                 plumb_error *err) {
    int64_t vocab = s->model->network.config->vocab, length = s->state->length;
    if (n < 1 || !tokens)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "tokens", -1, "none", "at least one");
    if (n > s->options.context - length)
        return plumb__fail(err, PLUMB_ERROR_CONTEXT, NULL, "context", -1,
                           plumb__format("%lld tokens after %lld", (long long)n, (long long)length).s,
                           "at most %lld in all", (long long)s->options.context);
    for (int64_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= vocab)
            return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "token", i,
                               plumb__format("%d", (int)tokens[i]).s, "0 to %lld",
                               (long long)vocab - 1);
    return PLUMB_OK;
}

/* Evaluates s->tokens[length .. end) chunk by chunk; undone as a whole when a chunk fails. */
static plumb_status run_to(plumb_session *s, int64_t end, bool all_logits, plumb_logits_sink sink,
                           void *user, plumb_error *err) {
    int64_t start = s->state->length;
    plumb__state_save_fixed(s->state, s->backup);
    plumb_status status = PLUMB_OK;
    pthread_mutex_lock(&s->model->lock);
    while (status == PLUMB_OK && s->state->length < end) {
        int64_t left = end - s->state->length;
        int64_t rows = left < s->options.chunk ? left : s->options.chunk;
        /* Caches take their room first: experts get what is left of it. */
        status = plumb__state_reserve(s->state, s->state->length + rows, err);
        if (status != PLUMB_OK) break;
        count_bytes(s);
        plumb__budget_apply(s->model, rows);
        progress_of_call progress = {&s->options, s->state->length - start, rows, end - start};
        plumb_batch batch = {.state = s->state, .tokens = s->tokens, .rows = rows,
                             .end = end,
                             .first_logits = all_logits ? 0 : (left == rows && sink) ? rows - 1 : rows,
                             .sink = sink, .sink_user = user,
                             .progress = s->options.progress ? report_progress : NULL,
                             .progress_user = &progress};
        status = plumb__network_forward(&s->model->network, &batch, err);
    }
    pthread_mutex_unlock(&s->model->lock);
    if (status != PLUMB_OK) plumb__state_restore_fixed(s->state, start, s->backup);
    return status;
}

static plumb_status append(plumb_session *s, const int32_t *tokens, int64_t n, bool all_logits,
                           plumb_logits_sink sink, void *user, plumb_error *err) {
    plumb_status status = check_tokens(s, tokens, n, err);
    if (status != PLUMB_OK) return status;
    int64_t start = s->state->length;
    /* The tokens may be the session's own, from before a rewind, and growing moves them. */
    bool own = s->tokens && tokens >= s->tokens && tokens < s->tokens + s->token_capacity;
    int64_t own_offset = own ? tokens - s->tokens : 0;
    int32_t *grown = plumb__grow(s->tokens, &s->token_capacity, start + n, sizeof *grown);
    if (!grown) return plumb__fail_memory(err, "tokens", (size_t)(start + n) * sizeof *grown);
    s->tokens = grown;
    memmove(s->tokens + start, own ? s->tokens + own_offset : tokens, (size_t)n * sizeof *tokens);
    status = run_to(s, start + n, all_logits, sink, user, err);
    int64_t last = s->n_points > 0 ? s->point[s->n_points - 1].length : 0;
    if (status == PLUMB_OK && (n > 1 || s->state->length - last >= RESUME_DISTANCE)) add_point(s);
    count_bytes(s);
    return status;
}

static int keep_logits(void *user, int64_t position, const float *logits) {
    (void)position;
    plumb_session *s = user;
    memcpy(s->logits, logits, (size_t)s->model->network.config->vocab * sizeof *logits);
    return 0;
}

plumb_status plumb_session_eval(plumb_session *s, const int32_t *tokens, int64_t n_tokens,
                                const float **logits, plumb_error *err) {
    plumb_status status =
        append(s, tokens, n_tokens, false, logits ? keep_logits : NULL, s, err);
    if (status == PLUMB_OK && logits) *logits = s->logits;
    return status;
}

plumb_status plumb_session_eval_all(plumb_session *s, const int32_t *tokens, int64_t n_tokens,
                                    plumb_logits_sink sink, void *user, plumb_error *err) {
    if (!sink)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "sink", -1, "NULL", "a function");
    return append(s, tokens, n_tokens, true, sink, user, err);
}

plumb_status plumb_session_rewind(plumb_session *s, int64_t length, plumb_error *err) {
    int64_t now = s->state->length;
    if (length < 0 || length > now)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "length", -1,
                           plumb__format("%lld", (long long)length).s, "0 to %lld", (long long)now);
    if (length == now) return PLUMB_OK;
    int kept = s->n_points;
    while (kept > 0 && s->point[kept - 1].length > length) kept--;
    /* Replaying writes cache rows that are there already, with the same bits, so the present can be
     * brought back by its rings alone should the replay fail. */
    uint8_t *present = malloc((size_t)plumb__state_fixed_bytes(s->state));
    if (!present) return plumb__fail_memory(err, "rewind", 0);
    plumb__state_save_fixed(s->state, present);
    if (kept > 0)
        plumb__state_restore_fixed(s->state, s->point[kept - 1].length, s->point[kept - 1].fixed);
    else plumb__state_clear(s->state);
    plumb_status status = PLUMB_OK;
    if (s->state->length < length) status = run_to(s, length, false, NULL, NULL, err);
    if (status != PLUMB_OK) plumb__state_restore_fixed(s->state, now, present);
    else
        while (s->n_points > kept) drop_point(s, s->n_points - 1);
    free(present);
    return status;
}
