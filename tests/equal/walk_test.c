/* Random walks through all that a session can be asked for: evaluating, syncing, going back, saving and
 * restoring, being cancelled and meeting errors of the drive.
 *
 * After every step the session is compared with a fresh one of the same tokens: the logits, if there are
 * any, then rings, carries and the caches of every position that it says it knows.  The fresh one
 * belongs to a model of its own and strangers evaluate other tokens on the models under test, so no right
 * value lies about in shared working memory.  Seeds are fixed. */
#include "engine/resume.h"
#include "equal/scarce_memory.h"
#include "equal/specimen.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "stream/faulty_reader.h"
#include "t.h"

enum {
    MODELS = 3,
    WALKERS = 4, /* two of them on the first model */
    MOST = 700,
    FILES = 3,
    READERS = 2
};

typedef struct walker {
    plumb_session *session;
    int model;
    int64_t context;
    int64_t calls;        /* of progress until it cancels; negative: it does not */
    int64_t done, total;  /* that progress was told last */
    int32_t tokens[MOST]; /* what the session ought to hold */
    int64_t length;
} walker;

typedef struct saved {
    bool there;
    int32_t tokens[MOST];
    int64_t length;
} saved;

typedef struct walk {
    uint64_t random;
    const char *name;
    int64_t step, vocab, longest;
    plumb_model *fresh_model;
    plumb_model *model[MODELS];
    plumb_session *stranger[MODELS];
    plumb_reader *reader[READERS]; /* of the last model */
    int readers;
    walker walker[WALKERS];
    saved file[FILES];
    float *rows; /* [MOST][vocab] */
    int cancelled, spoiled, short_of_memory; /* calls that failed */
} walk;

/* ---- Chance ------------------------------------------------------------------------------------- */

static int64_t below(walk *w, int64_t bound) {
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((w->random >> 33) % (uint64_t)bound);
}

static bool one_in(walk *w, int64_t n) { return below(w, n) == 0; }

/* Small numbers as often as large ones. */
static int64_t some(walk *w, int64_t most) {
    int64_t bound = one_in(w, 2) ? 4 : one_in(w, 2) ? 40 : most;
    return 1 + below(w, bound < most ? bound : most);
}

static void draw_tokens(walk *w, int32_t *tokens, int64_t n) {
    for (int64_t i = 0; i < n; i++) tokens[i] = (int32_t)below(w, w->vocab);
}

/* ---- Models and sessions ------------------------------------------------------------------------- */

static plumb_reader *wrap(void *user, plumb_reader *inner) {
    walk *w = user;
    return w->reader[w->readers++] = faulty_reader_open(inner, NULL, 0);
}

static void spoil(walk *w, int64_t nth) {
    const fault_rule rule = {.nth = nth, .kind = FAULT_ERROR, .amount = EIO};
    for (int i = 0; i < w->readers; i++) faulty_reader_set_rules(w->reader[i], &rule, nth > 0);
}

static int on_progress(void *user, int64_t done, int64_t total) {
    walker *k = user;
    T_CHECK(done >= k->done && done <= total && (k->total == 0 || total == k->total),
            "%" PRId64 " of %" PRId64 " rows after %" PRId64 " of %" PRId64, done, total, k->done, k->total);
    k->done = done;
    k->total = total;
    return k->calls >= 0 && k->calls-- == 0;
}

static void create(walk *w, walker *k) {
    k->context = one_in(w, 3) ? some(w, w->longest) : w->longest;
    k->calls = -1;
    k->length = 0;
    const plumb_session_options options = {.context = k->context, .chunk = some(w, 300),
                                           .progress = on_progress, .progress_user = k};
    plumb_error err;
    specimen_must(plumb_session_create(w->model[k->model], &options, &k->session, &err), &err,
                  "session");
}

static void open_walk(walk *w, const specimen *s, uint64_t seed, int64_t longest) {
    *w = (walk){.random = seed, .name = s->name, .vocab = s->vocab, .longest = longest};
    const plumb_model_options options[MODELS] = {
        {.threads = 1}, {.threads = 2, .cpu_level = "portable"},
        /* Two layers' buffers, or a cache where a backend may find experts itself. */
        {.threads = 1, .streaming = true, .cache_experts = seed % 3 ? 9 : 13, .no_read_ahead = seed % 2}};
    const plumb_reading plain = {.reader = PLUMB_READER_BEST},
                        faulty = {.reader = PLUMB_READER_PREAD, .wrap = wrap, .wrap_user = w};
    plumb_error err;
    for (int i = 0; i < MODELS; i++) {
        specimen_must(plumb__model_open_reading(s->folder, &options[i], i + 1 < MODELS ? &plain : &faulty,
                                                &w->model[i], &err),
                      &err, "open");
        w->stranger[i] = specimen_session(w->model[i], 64);
    }
    scarce_memory_of(w->model[0]->backend);
    const plumb_model_options cpu = {.device = PLUMB_DEVICE_CPU, .threads = 1};
    specimen_must(plumb_model_open(s->folder, &cpu, &w->fresh_model, &err), &err, "open");
    w->rows = calloc((size_t)(MOST * w->vocab), sizeof *w->rows);
    for (int i = 0; i < WALKERS; i++) {
        w->walker[i].model = i % MODELS;
        create(w, &w->walker[i]);
    }
}

static void close_walk(walk *w) {
    for (int i = 0; i < WALKERS; i++) plumb_session_destroy(w->walker[i].session);
    for (int i = 0; i < MODELS; i++) {
        plumb_session_destroy(w->stranger[i]);
        T_CHECK(w->model[i]->session_bytes == 0 && w->model[i]->promised_bytes == 0, "model %d", i);
        plumb_model_close(w->model[i]);
    }
    plumb_model_close(w->fresh_model);
    free(w->rows);
}

/* ---- Against a fresh session --------------------------------------------------------------------- */

#define WHERE "%s, step %" PRId64 ": "
#define HERE(w) (w)->name, (w)->step

static plumb_session *fresh_session(const walk *w, const int32_t *tokens, int64_t n,
                                    const float **logits) {
    plumb_session *fresh = specimen_session(w->fresh_model, 0);
    plumb_error err;
    if (n > 0) specimen_must(plumb_session_eval(fresh, tokens, n, logits, &err), &err, "fresh");
    return fresh;
}

static void check_caches(const walk *w, const plumb_state *a, const plumb_state *b, int64_t known) {
    const plumb_model_config *c = a->config;
    for (int64_t l = 0; l < c->layers; l++) {
        if (!c->is_kv_source[l]) continue;
        size_t rows = (size_t)(known / c->ratio[l]);
        T_CHECK(rows == 0 || (!memcmp(a->layer[l].compressed, b->layer[l].compressed,
                                      rows * (size_t)plumb__compressed_row_bytes(c->head_dim)) &&
                              !memcmp(a->layer[l].index_keys, b->layer[l].index_keys,
                                      rows * (size_t)plumb__index_row_bytes(c->index_dim))),
                WHERE "caches of layer %" PRId64 ", %" PRId64 " known", HERE(w), l, known);
    }
}

/* Window keys of the positions that the next one sees, or (all) that the last one saw. */
static void check_rings(const walk *w, const plumb_state *a, const plumb_state *b, bool all) {
    const plumb_model_config *c = a->config;
    size_t bytes = (size_t)plumb__window_row_bytes(c->head_dim);
    for (int64_t l = 0; l < c->layers; l++) {
        int64_t n = a->length, first = n - c->window + (all ? 0 : 1);
        for (int64_t p = first > 0 ? first : 0; p < n; p++) {
            size_t at = (size_t)(p % c->window) * bytes;
            T_CHECK(!memcmp(a->layer[l].ring + at, b->layer[l].ring + at, bytes),
                    WHERE "window key %" PRId64 " of layer %" PRId64 " at %" PRId64, HERE(w), p, l, n);
        }
        if (a->layer[l].carry && n > 0 && (all || n % 2 == 1))
            T_CHECK(!memcmp(a->layer[l].carry, b->layer[l].carry,
                            (size_t)(2 * c->head_dim) * sizeof(float)),
                    WHERE "carry of layer %" PRId64 " at %" PRId64, HERE(w), l, n);
    }
}

static void check_account(const walk *w, const plumb_model *model) {
    int64_t bytes = 0;
    for (int i = 0; i < MODELS; i++)
        if (w->model[i] == model) bytes += w->stranger[i]->counted_bytes;
    for (int i = 0; i < WALKERS; i++) {
        plumb_session *s = w->walker[i].session;
        if (s->model != model) continue;
        int64_t fixed = (s->n_points + 1 + (s->part.fixed != NULL)) * plumb__state_fixed_bytes(s->state);
        T_CHECK(s->counted_bytes == plumb__state_bytes(s->state) + fixed + s->token_capacity * 4 +
                                        w->vocab * 4,
                WHERE "%" PRId64 " bytes counted", HERE(w), s->counted_bytes);
        T_CHECK(s->counted_bytes <= s->promised_bytes, WHERE "more than promised", HERE(w));
        bytes += s->counted_bytes;
    }
    T_CHECK(model->session_bytes == bytes, WHERE "account of sessions", HERE(w));
}

/* logits NULL: there are none. */
static void check(const walk *w, const walker *k, const float *logits) {
    plumb_session *s = k->session;
    T_CHECK(plumb_session_length(s) == k->length, WHERE "length %" PRId64 ", not %" PRId64, HERE(w),
            plumb_session_length(s), k->length);
    T_CHECK(k->length == 0 || !memcmp(plumb_session_tokens(s), k->tokens, (size_t)k->length * 4),
            WHERE "tokens", HERE(w));
    T_CHECK(s->known >= k->length && s->known <= s->state->capacity, WHERE "%" PRId64 " known",
            HERE(w), s->known);
    int64_t last = 0;
    for (int i = 0; i < s->n_points; i++) {
        T_CHECK(s->point[i].length > last && s->point[i].length <= k->length, WHERE "point %d", HERE(w),
                i);
        last = s->point[i].length;
    }
    const float *expected = NULL;
    plumb_session *fresh = fresh_session(w, s->tokens, k->length, &expected);
    T_CHECK(!logits || !memcmp(logits, expected, (size_t)w->vocab * sizeof *logits), WHERE "logits",
            HERE(w));
    check_rings(w, s->state, fresh->state, !s->stepped_back);
    if (s->known > k->length) {
        plumb_session_destroy(fresh);
        fresh = fresh_session(w, s->tokens, s->known, &expected);
    }
    check_caches(w, s->state, fresh->state, s->known);
    plumb_session_destroy(fresh);
    check_account(w, s->model);
}

/* ---- Steps --------------------------------------------------------------------------------------- */

/* From now on the call at work may fail; says whether it may. */
static bool threaten(walk *w, walker *k) {
    k->calls = one_in(w, 3) ? below(w, one_in(w, 2) ? 8 : 200) : -1;
    bool reads = k->session->model == w->model[MODELS - 1] && one_in(w, 4);
    spoil(w, reads ? 1 + below(w, one_in(w, 2) ? 10 : 300) : 0);
    bool is_scarce = k->session->model == w->model[0] && one_in(w, 3);
    scarce_memory_after(is_scarce ? below(w, one_in(w, 2) ? 60 : 1000) : -1);
    k->done = k->total = 0;
    return k->calls >= 0 || reads || is_scarce;
}

/* True when the call was done; else it is one that may fail. */
static bool went_well(walk *w, walker *k, plumb_status status, bool threatened) {
    k->calls = -1;
    spoil(w, 0);
    scarce_memory_after(-1);
    T_CHECK(status != PLUMB_OK || k->done == k->total, WHERE "%" PRId64 " of %" PRId64 " rows", HERE(w),
            k->done, k->total);
    if (status == PLUMB_OK) return true;
    T_CHECK(threatened && (status == PLUMB_ERROR_CANCELLED || status == PLUMB_ERROR_IO ||
                           status == PLUMB_ERROR_MEMORY),
            WHERE "status %d", HERE(w), (int)status);
    w->cancelled += status == PLUMB_ERROR_CANCELLED;
    w->spoiled += status == PLUMB_ERROR_IO;
    w->short_of_memory += status == PLUMB_ERROR_MEMORY;
    return false;
}

/* Tokens that follow: those that the session knows from an earlier time, their beginning, or others. */
static int64_t draw_next(walk *w, const walker *k, int32_t *next) {
    const plumb_session *s = k->session;
    int64_t n = some(w, k->context - k->length), remembered = s->known - k->length;
    draw_tokens(w, next, n);
    if (remembered > 0 && !one_in(w, 4)) {
        int64_t same = one_in(w, 2) ? remembered : below(w, remembered + 1);
        if (same > n) n = same;
        memcpy(next, s->tokens + k->length, (size_t)same * sizeof *next);
    }
    return n;
}

static void step_eval(walk *w, walker *k) {
    int32_t next[MOST];
    if (k->length == k->context) return;
    int64_t n = draw_next(w, k, next);
    bool silent = one_in(w, 4), threatened = threaten(w, k);
    const float *logits = NULL;
    plumb_error err;
    plumb_status status =
        plumb_session_eval(k->session, next, n, silent ? NULL : &logits, &err);
    if (went_well(w, k, status, threatened)) {
        memcpy(k->tokens + k->length, next, (size_t)n * sizeof *next);
        k->length += n;
    }
    check(w, k, status == PLUMB_OK ? logits : NULL);
}

static int keep_row(void *user, int64_t position, const float *logits) {
    walk *w = user;
    memcpy(w->rows + position * w->vocab, logits, (size_t)w->vocab * sizeof *logits);
    return 0;
}

static int compare_row(void *user, int64_t position, const float *logits) {
    walk *w = user;
    T_CHECK(!memcmp(w->rows + position * w->vocab, logits, (size_t)w->vocab * sizeof *logits),
            WHERE "row %" PRId64, HERE(w), position);
    return 0;
}

static void step_eval_all(walk *w, walker *k) {
    int32_t next[MOST];
    if (k->length == k->context) return;
    int64_t n = draw_next(w, k, next), start = k->length;
    bool threatened = threaten(w, k);
    plumb_error err;
    plumb_status status = plumb_session_eval_all(k->session, next, n, keep_row, w, &err);
    if (!went_well(w, k, status, threatened)) {
        check(w, k, NULL);
        return;
    }
    memcpy(k->tokens + k->length, next, (size_t)n * sizeof *next);
    k->length += n;
    check(w, k, w->rows + (k->length - 1) * w->vocab);
    const float *logits;
    plumb_session *fresh = fresh_session(w, k->tokens, start, &logits);
    specimen_must(plumb_session_eval_all(fresh, next, n, compare_row, w, &err), &err, "fresh");
    plumb_session_destroy(fresh);
}

/* A prompt that shares some of what the session knows; *shared: how much at least. */
static int64_t draw_prompt(walk *w, const walker *k, int32_t *next, int64_t *shared) {
    int64_t known = k->session->known, n = some(w, k->context);
    *shared = one_in(w, 3) ? below(w, known + 1) : known - below(w, known < 20 ? known + 1 : 20);
    if (one_in(w, 2)) n = *shared + below(w, 5);
    if (n > k->context) n = k->context;
    if (n < 1) n = 1;
    draw_tokens(w, next, n);
    if (*shared > 0) memcpy(next, k->session->tokens, (size_t)(*shared < n ? *shared : n) * sizeof *next);
    return n;
}

static void check_report(const walk *w, const walker *k, const plumb_sync_report *report, int64_t shared,
                         int64_t n) {
    const plumb_model_config *c = k->session->state->config;
    T_CHECK(report->cached >= (shared < n ? shared : n - 1) && report->cached < n &&
                report->evaluated == n - report->cached && report->replayed >= 0 &&
                report->replayed <= c->layers * (c->window - 1) + 2,
            WHERE "%" PRId64 " cached, %" PRId64 " replayed, %" PRId64 " evaluated of %" PRId64, HERE(w),
            report->cached, report->replayed, report->evaluated, n);
}

static void step_sync(walk *w, walker *k) {
    const plumb_session *s = k->session;
    int32_t next[MOST];
    int64_t old = k->length, shared, n = draw_prompt(w, k, next, &shared);
    /* Its own list is as good as any. */
    const int32_t *given = next;
    if (shared >= n && one_in(w, 2)) given = s->tokens;
    bool silent = one_in(w, 5), threatened = threaten(w, k);
    const float *logits = NULL;
    plumb_sync_report report = {-1, -1, -1};
    plumb_error err;
    plumb_status status =
        plumb_session_sync(k->session, given, n, silent ? NULL : &logits, &report, &err);
    if (went_well(w, k, status, threatened)) {
        memcpy(k->tokens, next, (size_t)n * sizeof *next);
        k->length = n;
        check_report(w, k, &report, shared, n);
    } else {
        int64_t left = plumb_session_length(s);
        T_CHECK(left <= old && s->known >= (shared < n ? shared : n - 1), WHERE "%" PRId64 " of %" PRId64,
                HERE(w), left, old);
        k->length = left;
    }
    check(w, k, status == PLUMB_OK ? logits : NULL);
}

/* Other values into the working memory that the model's sessions share. */
static void step_stranger(walk *w, walker *k) {
    int32_t next[MOST];
    plumb_session *s = w->stranger[k->model];
    int64_t n = some(w, 300);
    const float *logits;
    plumb_error err;
    draw_tokens(w, next, n);
    specimen_must(plumb_session_sync(s, next, n, &logits, NULL, &err), &err, "stranger");
    check(w, k, NULL);
}

/* In parts, between which strangers use the model, and which may fail, or be given up. */
static void step_sync_part(walk *w, walker *k) {
    int32_t next[MOST];
    int64_t shared, n = draw_prompt(w, k, next, &shared);
    for (int64_t parts = some(w, 40); parts > 0; parts--) {
        bool done = false, threatened = threaten(w, k);
        const float *logits = NULL;
        plumb_sync_report report = {-1, -1, -1};
        plumb_error err;
        plumb_status status = plumb_session_sync_part(k->session, next, n, some(w, 90), &done, &logits,
                                                      &report, &err);
        if (status == PLUMB_OK && !done) k->done = k->total;
        if (went_well(w, k, status, threatened) && done) {
            memcpy(k->tokens, next, (size_t)n * sizeof *next);
            k->length = n;
            check_report(w, k, &report, shared, n);
            check(w, k, logits);
            return;
        }
        T_CHECK(plumb_session_length(k->session) <= k->length, WHERE "a part", HERE(w));
        k->length = plumb_session_length(k->session);
        if (one_in(w, 4)) step_stranger(w, k);
        else check(w, k, NULL);
    }
}

/* A walker and a stranger of its model, or two walkers. */
static void step_together(walk *w, walker *k) {
    plumb_session *both[2] = {k->session, w->stranger[k->model]};
    walker *other = NULL;
    for (int i = 0; i < WALKERS; i++)
        if (&w->walker[i] != k && w->walker[i].model == k->model) other = &w->walker[i];
    if (other && !one_in(w, 3)) both[1] = other->session;
    else other = NULL;
    int32_t tokens[2];
    draw_tokens(w, tokens, 2);
    if (k->length == k->context || plumb_session_length(both[1]) == plumb_session_context(both[1])) return;
    bool threatened = threaten(w, k);
    const float *logits[2] = {NULL, NULL};
    if (other) other->done = other->total = 0;
    plumb_error err;
    plumb_status status = plumb_sessions_step(both, tokens, 2, logits, &err);
    if (went_well(w, k, status, threatened)) {
        k->tokens[k->length++] = tokens[0];
        if (other) other->tokens[other->length++] = tokens[1];
    }
    check(w, k, logits[0]);
    if (other) check(w, other, logits[1]);
}

static void step_copy(walk *w, walker *k) {
    const plumb_session *from = w->stranger[k->model];
    int32_t tokens[MOST];
    int64_t length = plumb_session_length(from);
    if (length > MOST) return;
    if (length > 0) memcpy(tokens, plumb_session_tokens(from), (size_t)length * sizeof *tokens);
    bool threatened = threaten(w, k);
    plumb_error err;
    plumb_status status = plumb_session_copy(k->session, from, &err);
    if (length > k->context) {
        T_CHECK(status == PLUMB_ERROR_CONTEXT, WHERE "status %d", HERE(w), (int)status);
        (void)went_well(w, k, PLUMB_OK, false);
    } else if (went_well(w, k, status, threatened)) {
        memcpy(k->tokens, tokens, (size_t)length * sizeof *tokens);
        k->length = length;
    }
    check(w, k, NULL);
}

static void step_rewind(walk *w, walker *k) {
    int64_t back = one_in(w, 2) ? below(w, 4) : below(w, k->length + 1);
    if (back > k->length) back = k->length;
    bool threatened = threaten(w, k);
    plumb_error err;
    plumb_status status = plumb_session_rewind(k->session, k->length - back, &err);
    if (went_well(w, k, status, threatened)) k->length -= back;
    check(w, k, NULL);
}

static const char *file_path(int file) {
    static char path[512];
    (void)mkdir(BUILD_DIR "/walks", 0777);
    snprintf(path, sizeof path, BUILD_DIR "/walks/%d.snapshot", file);
    return path;
}

static void step_save(walk *w, walker *k) {
    int file = (int)below(w, FILES);
    const plumb_snapshot_extra extra = {.resume_points = one_in(w, 2)};
    plumb_error err;
    specimen_must(plumb_session_save(k->session, file_path(file), &extra, &err), &err, "save");
    w->file[file].there = true;
    w->file[file].length = k->length;
    memcpy(w->file[file].tokens, k->tokens, sizeof k->tokens);
    check(w, k, NULL);
}

static void step_restore(walk *w, walker *k) {
    int file = (int)below(w, FILES);
    const saved *from = &w->file[file];
    if (!from->there) return;
    plumb_snapshot *snapshot;
    plumb_error err;
    specimen_must(plumb_snapshot_open(file_path(file), &snapshot, &err), &err, "open");
    bool threatened = threaten(w, k);
    plumb_status status = plumb_session_restore(k->session, snapshot, &err);
    plumb_snapshot_close(snapshot);
    if (from->length > k->context) {
        T_CHECK(status == PLUMB_ERROR_CONTEXT, WHERE "status %d", HERE(w), (int)status);
        (void)went_well(w, k, PLUMB_OK, false);
    } else if (went_well(w, k, status, threatened)) {
        memcpy(k->tokens, from->tokens, sizeof k->tokens);
        k->length = from->length;
    }
    check(w, k, NULL);
}

/* Too many tokens, or none that there are: nothing happens. */
static void step_refused(walk *w, walker *k) {
    int32_t next[MOST + 1] = {0};
    const float *logits;
    plumb_error err;
    int64_t room = k->context - k->length;
    T_CHECK(plumb_session_eval(k->session, next, room + 1, &logits, &err) == PLUMB_ERROR_CONTEXT,
            WHERE "too many", HERE(w));
    next[room / 2] = (int32_t)w->vocab;
    if (room > 0)
        T_CHECK(plumb_session_eval(k->session, next, room, &logits, &err) == PLUMB_ERROR_ARGUMENT,
                WHERE "no token", HERE(w));
    T_CHECK(plumb_session_rewind(k->session, k->length + 1, &err) == PLUMB_ERROR_ARGUMENT,
            WHERE "forward", HERE(w));
    check(w, k, NULL);
}

static void step(walk *w) {
    walker *k = &w->walker[below(w, WALKERS)];
    int64_t draw = below(w, 100);
    if (draw < 20) step_eval(w, k);
    else if (draw < 28) step_eval_all(w, k);
    else if (draw < 42) step_sync(w, k);
    else if (draw < 52) step_sync_part(w, k);
    else if (draw < 60) step_together(w, k);
    else if (draw < 62) step_copy(w, k);
    else if (draw < 76) step_rewind(w, k);
    else if (draw < 82) step_save(w, k);
    else if (draw < 88) step_restore(w, k);
    else if (draw < 90) step_refused(w, k);
    else if (draw < 98) step_stranger(w, k);
    else {
        plumb_session_destroy(k->session);
        create(w, k);
    }
}

static void walk_through(const char *folder, const char *name, uint64_t seed, int64_t longest,
                         int64_t steps) {
    specimen s = specimen_open(folder, name);
    walk *w = malloc(sizeof *w);
    open_walk(w, &s, seed, longest);
    for (w->step = 0; w->step < steps; w->step++) step(w);
    T_CHECK(w->cancelled > steps / 50 && w->spoiled > steps / 200 && w->short_of_memory > steps / 200,
            "%d cancelled, %d spoiled, %d without memory", w->cancelled, w->spoiled, w->short_of_memory);
    close_walk(w);
    free(w);
    specimen_close(&s);
}

static void tiny(void) { walk_through(BUILD_DIR "/checkpoints", "tiny", 1, 250, 400); }
static void deep40(void) { walk_through(BUILD_DIR "/checkpoints", "deep40", 2, 100, 40); }
/* Where each row takes long. */
static void few_rows(void) { walk_through(BUILD_DIR "/checkpoints", "tiny", 3, 24, 80); }

T_MAIN({"tiny", tiny}, {"few_rows", few_rows}, {"deep40", deep40})
