/* Sessions: one timeline of tokens each, evaluated in chunks, able to go back.
 *
 * Going back needs what later positions overwrote: window rings and carries.  The nearest place where
 * they are at hand (resume.h) is restored and the tokens from there are evaluated again, in those rows
 * only that the wanted state depends on: a few thousand positions at most, however long the session
 * (docs/model.md section 7).  Determinism makes the result the fresh one. */
#include "engine/resume.h"

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

/* `kept`: copies of rings and carries. */
static int64_t bytes_of(const plumb_session *s, int64_t state_bytes, int64_t kept,
                        int64_t token_room) {
    return state_bytes + kept * plumb__state_fixed_bytes(s->state) +
           token_room * (int64_t)sizeof *s->tokens +
           s->model->network.config->vocab * (int64_t)sizeof *s->logits;
}

/* Brings the model's account of its sessions up to date. */
void plumb__session_count_bytes(plumb_session *s) {
    int64_t kept = s->n_points + 1 + (s->part.fixed != NULL);
    int64_t bytes = bytes_of(s, plumb__state_bytes(s->state), kept, s->token_capacity);
    s->model->session_bytes += bytes - s->counted_bytes;
    s->counted_bytes = bytes;
}

/* Refuses a session whose full context the budget has no room for beside what was promised to others. */
static plumb_status promise(plumb_session *s, plumb_error *err) {
    const plumb_session_options *o = &s->options;
    int64_t most = plumb__state_bytes_at(s->model->network.config, o->context);
    /* Lists of tokens grow by doubling. */
    s->promised_bytes = bytes_of(s, most, PLUMB_MAX_RESUME_POINTS + 2, 2 * o->context);
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
    plumb__session_count_bytes(session);
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
    free(session->part.fixed);
    free(session);
}

int64_t plumb_session_length(const plumb_session *session) { return session->state->length; }
int64_t plumb_session_context(const plumb_session *session) { return session->options.context; }
const int32_t *plumb_session_tokens(const plumb_session *session) { return session->tokens; }

int64_t plumb_session_state_bytes(const plumb_session *session) {
    return plumb__state_bytes_at(session->model->network.config, session->state->length);
}

/* ---- Snapshots --------------------------------------------------------------------------------- */

void plumb__session_replace(plumb_session *s, const plumb_session_contents *contents) {
    plumb__resume_drop_after(s, -1);
    plumb__state_destroy(s->state);
    free(s->tokens);
    s->state = contents->state;
    s->tokens = contents->tokens;
    s->token_capacity = contents->token_capacity;
    s->known = s->state->length;
    s->stepped_back = contents->stepped_back;
    s->n_points = contents->n_points;
    s->part.length = 0;
    memcpy(s->point, contents->point, sizeof s->point);
    /* A point is a place to step back from. */
    if (s->state->length > 0 && !s->stepped_back) plumb__resume_add(s);
    plumb__session_count_bytes(s);
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

plumb_status plumb__session_check_tokens(const plumb_session *s, int64_t length, const int32_t *tokens,
                                         int64_t n, plumb_error *err) {
    int64_t vocab = s->model->network.config->vocab;
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

/* How many of tokens[n] are those that the session knows from `start` on. */
static int64_t count_known(const plumb_session *s, int64_t start, const int32_t *tokens, int64_t n) {
    int64_t same = 0;
    while (same < n && start + same < s->known && s->tokens[start + same] == tokens[same]) same++;
    return same;
}

/* What a call evaluates, and whom it tells. */
typedef struct evaluation {
    int64_t end;      /* the session's length after it */
    bool all_logits;  /* of every row, or only of the last */
    plumb_logits_sink sink;
    void *user;
    int64_t most_rows; /* 0: all; otherwise it may stop, and go on, after so many */
    int64_t first;    /* out: the first position that was evaluated */
    bool stopped;     /* out: after most_rows */
} evaluation;

/* The first chunk's position.  What the caches hold need not be evaluated again, but for what the rings
 * at the end depend on; before that nothing is. */
static int64_t first_position(const plumb_session *s, const evaluation *e) {
    int64_t start = s->state->length;
    if (e->all_logits) return start;
    int64_t first = plumb__first_needed(s->model->network.config, s->known, e->end - 1);
    return first > start ? first : start;
}

static plumb_status run_chunk(plumb_session *s, const evaluation *e, int64_t cached, int64_t most,
                              plumb_error *err) {
    int64_t at = s->state->length, left = e->end - at;
    int64_t rows = left < s->options.chunk ? left : s->options.chunk;
    if (rows > most) rows = most;
    /* Caches take their room first: experts get what is left of it. */
    plumb_status status = plumb__state_reserve(s->state, at + rows, err);
    if (status != PLUMB_OK) return status;
    plumb__session_count_bytes(s);
    plumb__budget_apply(s->model, rows);
    progress_of_call progress = {&s->options, at - e->first, rows, e->end - e->first};
    plumb_batch batch = {.state = s->state, .tokens = s->tokens, .rows = rows, .end = e->end,
                         .cached = cached,
                         .first_logits = e->all_logits                ? 0
                                         : (left == rows && e->sink) ? rows - 1
                                                                      : rows,
                         .sink = e->sink, .sink_user = e->user,
                         .progress = s->options.progress ? report_progress : NULL,
                         .progress_user = &progress};
    return plumb__network_forward(&s->model->network, &batch, err);
}

/* Where the evaluation begins, or goes on; returns the positions whose compressed keys it need not make. */
static int64_t begin(plumb_session *s, evaluation *e) {
    if (e->most_rows > 0 && s->part.length > 0) {
        plumb__state_restore_fixed(s->state, s->part.length, s->part.fixed);
        e->first = s->part.first;
        return s->part.cached;
    }
    s->state->length = e->first = first_position(s, e);
    return s->known;
}

/* Remembers how far it came; without memory the next part begins anew. */
static void stop(plumb_session *s, evaluation *e, int64_t cached) {
    plumb_sync_part *part = &s->part;
    if (!part->fixed) part->fixed = malloc((size_t)plumb__state_fixed_bytes(s->state));
    part->length = part->fixed ? s->state->length : 0;
    if (!part->fixed) return;
    part->end = e->end;
    part->cached = cached;
    part->first = e->first;
    plumb__state_save_fixed(s->state, part->fixed);
}

/* Evaluates s->tokens[length .. end) chunk by chunk.  When one fails the session is where it was, but it
 * knows the chunks that were done: the next call with these tokens goes on from there. */
static plumb_status run(plumb_session *s, evaluation *e, plumb_error *err) {
    int64_t start = s->state->length;
    plumb__state_save_fixed(s->state, s->backup);
    plumb_status status = PLUMB_OK;
    pthread_mutex_lock(&s->model->lock);
    int64_t cached = begin(s, e), most = e->most_rows > 0 ? e->most_rows : INT64_MAX;
    while (status == PLUMB_OK && s->state->length < e->end && most > 0) {
        int64_t before = s->state->length;
        status = run_chunk(s, e, cached, most, err);
        most -= s->state->length - before;
        if (s->state->length > s->known) s->known = s->state->length;
    }
    pthread_mutex_unlock(&s->model->lock);
    e->stopped = status == PLUMB_OK && s->state->length < e->end;
    if (e->most_rows > 0 && s->state->length < e->end) stop(s, e, cached);
    if (status != PLUMB_OK || e->stopped) plumb__state_restore_fixed(s->state, start, s->backup);
    else s->stepped_back = false;
    return status;
}

plumb_status plumb__session_put_tokens(plumb_session *s, int64_t start, const int32_t *tokens,
                                       int64_t n, plumb_error *err) {
    int64_t known = start + count_known(s, start, tokens, n);
    bool own = s->tokens && tokens >= s->tokens && tokens < s->tokens + s->token_capacity;
    int64_t own_offset = own ? tokens - s->tokens : 0;
    int32_t *grown = plumb__grow(s->tokens, &s->token_capacity, start + n, sizeof *grown);
    if (!grown) return plumb__fail_memory(err, "tokens", (size_t)(start + n) * sizeof *grown);
    s->tokens = grown;
    memmove(s->tokens + start, own ? s->tokens + own_offset : tokens, (size_t)n * sizeof *tokens);
    s->known = known;
    return PLUMB_OK;
}

void plumb__session_advanced(plumb_session *s, int64_t n) {
    int64_t last = s->n_points > 0 ? s->point[s->n_points - 1].length : 0;
    if (n > 1 || s->state->length - last >= RESUME_DISTANCE) plumb__resume_add(s);
}

static plumb_status append(plumb_session *s, const int32_t *tokens, int64_t n, bool all_logits,
                           plumb_logits_sink sink, void *user, plumb_error *err) {
    int64_t start = s->state->length;
    plumb_status status = plumb__session_check_tokens(s, start, tokens, n, err);
    if (status == PLUMB_OK) status = plumb__session_put_tokens(s, start, tokens, n, err);
    if (status != PLUMB_OK) return status;
    evaluation e = {.end = start + n, .all_logits = all_logits, .sink = sink, .user = user};
    status = run(s, &e, err);
    if (status == PLUMB_OK) plumb__session_advanced(s, n);
    plumb__session_count_bytes(s);
    return status;
}

void plumb__session_keep_logits(plumb_session *s, const float *logits) {
    memcpy(s->logits, logits, (size_t)s->model->network.config->vocab * sizeof *logits);
}

static int keep_logits(void *user, int64_t position, const float *logits) {
    (void)position;
    plumb__session_keep_logits(user, logits);
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

/* ---- Going back --------------------------------------------------------------------------------- */

int64_t plumb_session_known(const plumb_session *s, const int32_t *tokens, int64_t n_tokens) {
    return count_known(s, 0, tokens, n_tokens);
}

/* Whether a part that was done goes on to these tokens, of which the session knows the first `same`: then
 * what it put into the caches is still there. */
static bool goes_on(const plumb_session *s, int64_t n, int64_t same) {
    const plumb_sync_part *part = &s->part;
    return part->length > 0 && part->length <= same &&
           plumb__serves_end(s->model->network.config, part->cached, part->length, part->end, n);
}

static plumb_status sync(plumb_session *s, const int32_t *tokens, int64_t n, int64_t most_rows,
                         bool *done, const float **logits, plumb_sync_report *report,
                         plumb_error *err) {
    plumb_status status = plumb__session_check_tokens(s, 0, tokens, n, err);
    if (status != PLUMB_OK) return status;
    int64_t same = count_known(s, 0, tokens, n);
    if (most_rows == 0 || !goes_on(s, n, same)) s->part.length = 0;
    /* The last token's logits are wanted: at least that one is evaluated. */
    int64_t shared = s->part.length > 0 ? s->part.shared : same < n ? same : n - 1;
    status = plumb__session_put_tokens(s, same, tokens + same, n - same, err);
    if (status != PLUMB_OK) return status;
    plumb__resume_nearest(s, shared);
    plumb__resume_drop_after(s, shared);
    evaluation e = {.end = n, .sink = logits ? keep_logits : NULL, .user = s, .most_rows = most_rows};
    status = run(s, &e, err);
    if (s->part.length > 0) s->part.shared = shared;
    if (status == PLUMB_OK && !e.stopped) {
        plumb__resume_add(s);
        s->part.length = 0;
    }
    plumb__session_count_bytes(s);
    if (status != PLUMB_OK) return status;
    *done = !e.stopped;
    if (e.stopped) return PLUMB_OK;
    if (logits) *logits = s->logits;
    if (report)
        *report = (plumb_sync_report){.cached = shared, .replayed = shared - e.first,
                                      .evaluated = n - shared};
    return PLUMB_OK;
}

plumb_status plumb_session_sync(plumb_session *s, const int32_t *tokens, int64_t n_tokens,
                                const float **logits, plumb_sync_report *report, plumb_error *err) {
    bool done;
    return sync(s, tokens, n_tokens, 0, &done, logits, report, err);
}

plumb_status plumb_session_sync_part(plumb_session *s, const int32_t *tokens, int64_t n_tokens,
                                     int64_t most_rows, bool *done, const float **logits,
                                     plumb_sync_report *report, plumb_error *err) {
    if (most_rows < 1)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "most_rows", -1,
                           plumb__format("%lld", (long long)most_rows).s, "1 or more");
    return sync(s, tokens, n_tokens, most_rows, done, logits, report, err);
}

plumb_status plumb_session_rewind(plumb_session *s, int64_t length, plumb_error *err) {
    int64_t now = s->state->length, known = s->known;
    if (length < 0 || length > now)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "length", -1,
                           plumb__format("%lld", (long long)length).s, "0 to %lld", (long long)now);
    if (length == now) return PLUMB_OK;
    /* Evaluating again writes no cache row, so the present can be brought back by its rings alone. */
    bool stepped_back = s->stepped_back;
    uint8_t *present = malloc((size_t)plumb__state_fixed_bytes(s->state));
    if (!present) return plumb__fail_memory(err, "rewind", 0);
    plumb__state_save_fixed(s->state, present);
    plumb__resume_nearest(s, length);
    s->known = length;
    plumb_status status = PLUMB_OK;
    if (s->state->length < length) {
        evaluation e = {.end = length};
        status = run(s, &e, err);
    }
    if (status == PLUMB_OK) plumb__resume_drop_after(s, length);
    else {
        plumb__state_restore_fixed(s->state, now, present);
        s->known = known;
        s->stepped_back = stepped_back;
    }
    plumb__session_count_bytes(s);
    free(present);
    return status;
}
