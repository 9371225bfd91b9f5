/* What going back and going on costs, and that it changes no bit.
 *
 * Costs are counted twice: by the session's report, and by the routes that the network shows for every
 * row that goes through a layer.  Expected costs follow from the windows alone and are worked out here
 * a second time (docs/model.md section 7). */
#include "engine/resume.h"
#include "equal/session_states.h"

#include <stdlib.h>

#include "t.h"

enum { MOST = 4096, ANSWER = 64 };

typedef struct subject {
    specimen specimen;
    plumb_model *model;
    plumb_session *live;
    int32_t tokens[MOST]; /* a prompt as long as the context */
    int64_t rows[PLUMB_MAX_LAYERS]; /* that went through each layer since count_anew */
    int64_t first_row;    /* the first position among them */
} subject;

static void on_route(void *user, int64_t position, int64_t layer, const int32_t *ids, int64_t n) {
    (void)ids;
    (void)n;
    subject *s = user;
    s->rows[layer]++;
    if (position < s->first_row) s->first_row = position;
}

static void count_anew(subject *s) {
    memset(s->rows, 0, sizeof s->rows);
    s->first_row = MOST;
}

static const plumb_model_config *config_of(const subject *s) { return s->model->network.config; }

static subject *open_subject(const char *name) {
    subject *s = calloc(1, sizeof *s);
    s->specimen = specimen_open(BUILD_DIR "/checkpoints", name);
    for (int64_t i = 0; i < MOST; i++)
        s->tokens[i] = (int32_t)(s->specimen.tokens[i % s->specimen.count] * (1 + i / 96) %
                                 s->specimen.vocab);
    plumb_error err;
    const plumb_model_options options = {.threads = 1, .routes = on_route, .routes_user = s};
    specimen_must(plumb_model_open(s->specimen.folder, &options, &s->model, &err), &err, "open");
    count_anew(s);
    return s;
}

static void close_subject(subject *s) {
    plumb_session_destroy(s->live);
    plumb_model_close(s->model);
    specimen_close(&s->specimen);
    free(s);
}

static plumb_session *new_session(const subject *s) { return specimen_session(s->model, 256); }

static int32_t best(const subject *s, const float *logits) {
    int32_t at = 0;
    for (int32_t i = 1; i < s->specimen.vocab; i++)
        if (logits[i] > logits[at]) at = i;
    return at;
}

/* Greedy tokens that follow `logits`, and the logits of each of them. */
static void decode(const subject *s, plumb_session *session, const float *logits, int64_t n,
                   int32_t *tokens, float *kept) {
    plumb_error err;
    for (int64_t i = 0; i < n; i++) {
        tokens[i] = best(s, logits);
        specimen_must(plumb_session_eval(session, &tokens[i], 1, &logits, &err), &err, "decode");
        memcpy(kept + i * s->specimen.vocab, logits, (size_t)s->specimen.vocab * sizeof *kept);
    }
}

static plumb_sync_report sync_to(plumb_session *session, const int32_t *tokens, int64_t n,
                                 const float **logits) {
    plumb_sync_report report = {-1, -1, -1};
    plumb_error err;
    specimen_must(plumb_session_sync(session, tokens, n, logits, &report, &err), &err, "sync");
    return report;
}

/* The live session's logits, and those of a few more tokens, against a fresh session's. */
static void check_fresh(const subject *s, const int32_t *tokens, int64_t n, const float *logits,
                        const char *how, int64_t value) {
    enum { MORE = 5 };
    size_t row = (size_t)s->specimen.vocab * sizeof(float);
    int32_t a[MORE], b[MORE];
    float *kept = malloc(2 * MORE * row), *later = kept + MORE * s->specimen.vocab;
    plumb_session *fresh = new_session(s);
    const float *expected;
    plumb_error err;
    specimen_must(plumb_session_eval(fresh, tokens, n, &expected, &err), &err, "fresh");
    T_CHECK(!memcmp(logits, expected, row), "%s %" PRId64 ": logits of %" PRId64 " tokens", how, value,
            n);
    decode(s, fresh, expected, MORE, a, kept);
    decode(s, s->live, logits, MORE, b, later);
    T_CHECK(!memcmp(a, b, sizeof a) && !memcmp(kept, later, MORE * row),
            "%s %" PRId64 ": tokens after %" PRId64, how, value, n);
    /* Compressed keys that no query happened to select would be wrong unnoticed. */
    CHECK_STATES(fresh, s->live, how);
    plumb_session_destroy(fresh);
    free(kept);
}

/* ---- The same prompt again ---------------------------------------------------------------------- */

static void resend(subject *s, int64_t n) {
    size_t bytes = (size_t)(ANSWER * s->specimen.vocab) * sizeof(float);
    float *first = malloc(bytes), *again = malloc(bytes);
    int32_t answer[ANSWER], repeated[ANSWER];
    const float *logits;
    s->live = new_session(s);
    plumb_sync_report report = sync_to(s->live, s->tokens, n, &logits);
    T_CHECK(report.cached == 0 && report.replayed == 0 && report.evaluated == n, "%" PRId64, n);
    decode(s, s->live, logits, ANSWER, answer, first);
    for (int i = 0; i < 2; i++) {
        count_anew(s);
        report = sync_to(s->live, s->tokens, n, &logits);
        T_CHECK(report.cached == n - 1 && report.replayed == 0 && report.evaluated == 1,
                "%" PRId64 " tokens again: %" PRId64 " cached, %" PRId64 " replayed", n, report.cached,
                report.replayed);
        for (int64_t l = 0; l < config_of(s)->layers; l++)
            T_CHECK(s->rows[l] == 1 && s->first_row == n - 1, "%" PRId64 " rows of layer %" PRId64,
                    s->rows[l], l);
        decode(s, s->live, logits, ANSWER, repeated, again);
        T_CHECK(!memcmp(answer, repeated, sizeof answer) && !memcmp(first, again, bytes),
                "%" PRId64 " tokens again: another answer", n);
    }
    report = sync_to(s->live, s->tokens, n, &logits);
    check_fresh(s, s->tokens, n, logits, "again after", n);
    plumb_session_destroy(s->live);
    s->live = NULL;
    free(first);
    free(again);
}

static void exact_resend(void) {
    static const int64_t of_tiny[] = {1, 2, 7, 8, 9, 127, 128, 129, 2048, 2541},
                         of_deep40[] = {1, 15, 16, 17, 127, 128, 129};
    subject *tiny = open_subject("tiny"), *deep40 = open_subject("deep40");
    for (size_t i = 0; i < sizeof of_tiny / sizeof of_tiny[0]; i++) resend(tiny, of_tiny[i]);
    for (size_t i = 0; i < sizeof of_deep40 / sizeof of_deep40[0]; i++) resend(deep40, of_deep40[i]);
    close_subject(tiny);
    close_subject(deep40);
}

/* ---- Divergence --------------------------------------------------------------------------------- */

/* The first position that has to be seen again: the caches hold `cached` positions, the rings nothing, and
 * the last of n tokens is asked for its logits. */
static int64_t first_again(const plumb_model_config *c, int64_t cached, int64_t n) {
    int64_t first = n - 1; /* goes through the layer as a whole */
    for (int64_t l = c->layers - 1; l >= 0; l--) {
        int64_t seen = first - (c->window - 1);
        if (c->is_kv_source[l]) {
            int64_t missing = cached; /* or the first of the last pair, which has a carry */
            if (c->ratio[l] == 2 && cached > 0) missing = cached % 2 == 0 ? cached - 2 : cached - 1;
            if (missing < seen) seen = missing;
        }
        if (seen < first) first = seen;
    }
    return first > 0 ? first : 0;
}

/* The live session has gone to `length` by way of `prompt` tokens at once and the rest one by one; now its
 * last `back` tokens turn out to be others, `tail` of them. */
static void diverge(subject *s, int64_t prompt, int64_t length, int64_t back, int64_t tail) {
    enum { EVERY = 64 };
    char how[64];
    const float *logits;
    plumb_error err;
    s->live = new_session(s);
    specimen_must(plumb_session_eval(s->live, s->tokens, prompt, NULL, &err), &err, "prompt");
    for (int64_t i = prompt; i < length; i++)
        specimen_must(plumb_session_eval(s->live, s->tokens + i, 1, NULL, &err), &err, "decode");
    int32_t *other = malloc((size_t)length * 2 * sizeof *other);
    int64_t shared = length - back, n = shared + tail;
    memcpy(other, s->tokens, (size_t)n * sizeof *other);
    for (int64_t i = shared; i < n; i++) other[i] = (int32_t)((s->tokens[i] + 1) % s->specimen.vocab);
    if (tail == 0) shared--; /* a beginning of the old tokens: its last one is evaluated for its logits */
    count_anew(s);
    plumb_sync_report report = sync_to(s->live, other, n, &logits);
    /* The nearest place that costs nothing: the prompt's end and every 64th position after it, or the
     * one before any of these. */
    int64_t place = shared + 1 < prompt ? 0 : prompt + (shared + 1 - prompt) / EVERY * EVERY;
    if (place > shared) place = shared;
    if (back == 0) place = length;
    if (back == 1 && tail > 0) place = shared;
    int64_t cached = tail == 0 ? n : shared; /* the caches have its last token, too */
    int64_t least = first_again(config_of(s), cached, n), expected = shared - (place > least ? place : least);
    if (expected < 0) expected = 0;
    snprintf(how, sizeof how, "%s, %" PRId64 " of %" PRId64 " at once, tail %" PRId64 ", back",
             s->specimen.name, prompt, length, tail);
    T_CHECK(report.cached == shared && report.evaluated == n - shared, "%s %" PRId64 ": %" PRId64, how,
            back, report.cached);
    T_CHECK(report.replayed == expected, "%s %" PRId64 ": %" PRId64 " replayed, not %" PRId64, how, back,
            report.replayed, expected);
    T_CHECK(s->first_row >= shared - expected, "%s %" PRId64 ": row %" PRId64, how, back, s->first_row);
    check_fresh(s, other, n, logits, how, back);
    free(other);
    plumb_session_destroy(s->live);
    s->live = NULL;
}

/* Around a step, a pair, both models' windows, and as far back as a real session once went. */
static void divergence(void) {
    static const int64_t backs[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 335};
    static const struct {
        const char *name;
        int64_t prompt, length;
    } cases[] = {{"tiny", 340, 340}, {"tiny", 341, 341}, {"tiny", 250, 381}, {"deep40", 300, 300},
                 {"deep40", 100, 170}};
    static const int64_t tails[] = {0, 1, 40};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        subject *s = open_subject(cases[c].name);
        bool tiny = !strcmp(cases[c].name, "tiny");
        for (size_t i = 0; i < sizeof backs / sizeof backs[0]; i++)
            for (size_t t = 0; t < 3; t++)
                if (backs[i] < cases[c].length && (i + t) % (tiny ? 3 : 5) == 0)
                    diverge(s, cases[c].prompt, cases[c].length, backs[i], tails[t]);
        close_subject(s);
    }
}

/* Two conversations with a common beginning take turns in one session, each time from another place: what
 * one has left behind must not be taken for the other's. */
static void branches(void) {
    enum { SHARED = 60, LENGTH = 150 };
    static const int64_t turns[] = {150, 149, 100, 101, 150, 61, 130, 62, 150, 60, 99, 150};
    subject *s = open_subject("tiny");
    int32_t other[LENGTH];
    const float *logits;
    memcpy(other, s->tokens, sizeof other);
    for (int i = SHARED; i < LENGTH; i++) other[i] = (other[i] + 3) % (int32_t)s->specimen.vocab;
    s->live = new_session(s);
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++) {
        const int32_t *tokens = i % 2 ? other : s->tokens;
        sync_to(s->live, tokens, turns[i], &logits);
        check_fresh(s, tokens, turns[i], logits, "turn", (int64_t)i);
        /* Shorter again, and back by one: points of the other conversation lie there. */
        for (int64_t n = turns[i] - 1; n > turns[i] - 4; n--) {
            sync_to(s->live, tokens, n, &logits);
            check_fresh(s, tokens, n, logits, "after turn", (int64_t)i);
        }
    }
    close_subject(s);
}

/* The last token taken back and chosen anew, again and again: going back evaluates nothing. */
static void last_token_anew(void) {
    enum { PROMPT = 40, LENGTH = 50, TIMES = 3 };
    subject *s = open_subject("tiny");
    plumb_error err;
    const float *logits;
    s->live = new_session(s);
    specimen_must(plumb_session_eval(s->live, s->tokens, PROMPT, NULL, &err), &err, "prompt");
    for (int64_t i = PROMPT; i < LENGTH; i++)
        specimen_must(plumb_session_eval(s->live, s->tokens + i, 1, &logits, &err), &err, "decode");
    for (int i = 0; i < TIMES; i++) {
        count_anew(s);
        specimen_must(plumb_session_rewind(s->live, LENGTH - 1, &err), &err, "rewind");
        T_CHECK(s->rows[0] == 0, "time %d: %" PRId64 " rows", i, s->rows[0]);
        specimen_must(plumb_session_eval(s->live, s->tokens + LENGTH - 1, 1, &logits, &err), &err, "eval");
        T_CHECK(s->rows[0] == 1, "time %d: %" PRId64 " rows", i, s->rows[0]);
    }
    check_fresh(s, s->tokens, LENGTH, logits, "last token anew", 0);
    close_subject(s);
}

/* What the released shape pays for going back, however long the session: see docs/sessions.md. */
static void released_shape(void) {
    static const int64_t lengths[] = {5082, 55572, 1000000, 1000001};
    plumb_model_config config;
    plumb_error err;
    specimen_must(plumb__config_load(TEST_DATA "/config/released.json", NULL, NULL, &config, &err), &err, "config");
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        int64_t n = lengths[i];
        T_CHECK(n - plumb__first_needed(&config, n, n - 1) == 5081, "%" PRId64, n);
        T_CHECK(plumb__first_needed(&config, n, n - 1) == first_again(&config, n, n), "%" PRId64, n);
        /* 4,000 other tokens at its end: rows of layers 0 to 19 beneath all of them. */
        int64_t again = n - plumb__first_needed(&config, n, n + 3999);
        T_CHECK(again == n - first_again(&config, n, n + 4000) && again == 20 * 127, "%" PRId64, again);
    }
    T_CHECK(plumb__first_needed(&config, 5081, 5080) == 0, "from the start");
    /* Without compressed keys nothing is left of positions before the windows; they are evaluated all the
     * same, once, so that what a session knows grows by what it has evaluated. */
    memset(config.is_kv_source, 0, sizeof config.is_kv_source);
    T_CHECK(plumb__first_needed(&config, 100, 5999) == 100, "a longer prompt");
    T_CHECK(plumb__first_needed(&config, 6000, 5999) == 919, "going back");
}

/* ---- Cut short ---------------------------------------------------------------------------------- */

typedef struct countdown {
    int64_t calls;
} countdown;

static int stop_at_zero(void *user, int64_t done, int64_t total) {
    countdown *c = user;
    T_CHECK(done >= 0 && done <= total, "%" PRId64 " of %" PRId64, done, total);
    return c->calls-- == 0;
}

/* A prompt of `length` cancelled in a chunk is not lost: whoever sends n tokens with the same beginning pays
 * for what was not done, and gets the bits of a fresh session. */
static void cancel_and_send(subject *s, int64_t rows, int64_t length, int64_t chunk, int64_t n) {
    countdown left = {chunk * config_of(s)->layers + 2};
    const plumb_session_options options = {.chunk = rows, .progress = stop_at_zero,
                                           .progress_user = &left};
    plumb_error err;
    const float *logits;
    specimen_must(plumb_session_create(s->model, &options, &s->live, &err), &err, "session");
    T_CHECK(plumb_session_sync(s->live, s->tokens, length, &logits, NULL, &err) == PLUMB_ERROR_CANCELLED,
            "chunk %" PRId64, chunk);
    T_CHECK(plumb_session_length(s->live) == 0, "length %" PRId64, plumb_session_length(s->live));
    left.calls = INT64_MAX;
    int64_t done = chunk * rows, again = done - first_again(config_of(s), done, n);
    plumb_sync_report report = sync_to(s->live, s->tokens, n, &logits);
    T_CHECK(report.cached == done && report.evaluated == n - done && (report.replayed == again || done == 0),
            "cancelled after %" PRId64 ": %" PRId64 " cached, %" PRId64 " replayed", done, report.cached,
            report.replayed);
    check_fresh(s, s->tokens, n, logits, "cancelled after", done);
    plumb_session_destroy(s->live);
    s->live = NULL;
}

static void cancelled_prompt(void) {
    subject *s = open_subject("tiny");
    for (int64_t chunk = 0; chunk < 10; chunk++)
        cancel_and_send(s, 64, 640, chunk, chunk % 2 ? chunk * 64 + 10 : 640);
    /* Room for 1024 positions is taken first: it grows while 1000 are known and fewer evaluated. */
    cancel_and_send(s, 100, 1024, 10, 1100);
    close_subject(s);
}

/* plumb_session_eval goes on in the same way; other tokens take the place of what was known. */
static void cancelled_eval(void) {
    enum { CHUNK = 32, LENGTH = 320, DONE = 192 };
    subject *s = open_subject("tiny");
    for (int other = 0; other < 2; other++) {
        countdown left = {DONE / CHUNK * config_of(s)->layers};
        const plumb_session_options options = {.chunk = CHUNK, .progress = stop_at_zero,
                                               .progress_user = &left};
        plumb_error err;
        const float *logits;
        specimen_must(plumb_session_create(s->model, &options, &s->live, &err), &err, "session");
        T_CHECK(plumb_session_eval(s->live, s->tokens, LENGTH, &logits, &err) == PLUMB_ERROR_CANCELLED,
                "%d", other);
        left.calls = INT64_MAX;
        count_anew(s);
        const int32_t *tokens = s->tokens + other;
        specimen_must(plumb_session_eval(s->live, tokens, LENGTH, &logits, &err), &err, "eval");
        T_CHECK(other ? s->rows[0] == LENGTH : s->rows[0] < LENGTH - DONE + 64, "%" PRId64 " rows",
                s->rows[0]);
        check_fresh(s, tokens, LENGTH, logits, "eval after cancelling", other);
        plumb_session_destroy(s->live);
    }
    s->live = NULL;
    close_subject(s);
}

/* A sync that fails after its first part leaves a beginning, which goes on like any session. */
static void cancelled_divergence(void) {
    enum { LENGTH = 400, SHARED = 300 };
    subject *s = open_subject("tiny");
    const int64_t layers = config_of(s)->layers;
    int32_t other[LENGTH];
    memcpy(other, s->tokens, sizeof other);
    for (int i = SHARED; i < LENGTH; i++) other[i] = (other[i] + 3) % (int32_t)s->specimen.vocab;
    for (int64_t calls = 0; calls < 2 * layers; calls += 3) {
        countdown left = {INT64_MAX};
        const plumb_session_options options = {.chunk = 80, .progress = stop_at_zero,
                                               .progress_user = &left};
        plumb_error err;
        const float *logits;
        specimen_must(plumb_session_create(s->model, &options, &s->live, &err), &err, "session");
        sync_to(s->live, s->tokens, LENGTH, &logits);
        left.calls = calls;
        T_CHECK(plumb_session_sync(s->live, other, LENGTH, &logits, NULL, &err) == PLUMB_ERROR_CANCELLED,
                "%" PRId64, calls);
        int64_t length = plumb_session_length(s->live);
        T_CHECK(length <= SHARED && !memcmp(plumb_session_tokens(s->live), other, (size_t)length * 4),
                "length %" PRId64, length);
        left.calls = INT64_MAX;
        const int32_t *next = calls % 2 ? other : s->tokens;
        plumb_sync_report report = sync_to(s->live, next, LENGTH, &logits);
        T_CHECK(report.cached >= SHARED, "%" PRId64 " cached", report.cached);
        check_fresh(s, next, LENGTH, logits, "divergence cancelled at", calls);
        plumb_session_destroy(s->live);
    }
    s->live = NULL;
    close_subject(s);
}

/* A session that went back by one position cannot do so twice, also after it failed to go farther. */
static void cancelled_rewind(void) {
    enum { PROMPT = 100, LENGTH = 120 };
    subject *s = open_subject("tiny");
    countdown left = {INT64_MAX};
    const plumb_session_options options = {.progress = stop_at_zero, .progress_user = &left};
    plumb_error err;
    const float *logits;
    specimen_must(plumb_session_create(s->model, &options, &s->live, &err), &err, "session");
    sync_to(s->live, s->tokens, PROMPT, &logits);
    for (int64_t i = PROMPT; i < LENGTH; i++)
        specimen_must(plumb_session_eval(s->live, s->tokens + i, 1, NULL, &err), &err, "decode");
    specimen_must(plumb_session_rewind(s->live, LENGTH - 1, &err), &err, "one back");
    left.calls = 0;
    T_CHECK(plumb_session_rewind(s->live, LENGTH - 10, &err) == PLUMB_ERROR_CANCELLED &&
                plumb_session_length(s->live) == LENGTH - 1,
            "%" PRId64, plumb_session_length(s->live));
    left.calls = INT64_MAX;
    specimen_must(plumb_session_rewind(s->live, LENGTH - 2, &err), &err, "one more");
    specimen_must(plumb_session_eval(s->live, s->tokens + LENGTH - 2, 1, &logits, &err), &err, "eval");
    check_fresh(s, s->tokens, LENGTH - 1, logits, "cancelled rewind", 0);
    close_subject(s);
}

/* ---- Refusals ----------------------------------------------------------------------------------- */

/* A prompt in parts costs each layer the rows that it costs at once, and one more chunk border changes no bit. */
static void in_parts_of(subject *s, int64_t n, int64_t most_rows) {
    int64_t whole[PLUMB_MAX_LAYERS], layers = config_of(s)->layers, parts = 0;
    s->live = new_session(s);
    count_anew(s);
    sync_to(s->live, s->tokens, n, &(const float *){NULL});
    memcpy(whole, s->rows, sizeof whole);
    plumb_session_destroy(s->live);
    s->live = new_session(s);
    count_anew(s);
    const float *logits = NULL;
    plumb_sync_report report;
    plumb_error err;
    for (bool done = false; !done; parts++)
        specimen_must(plumb_session_sync_part(s->live, s->tokens, n, most_rows, &done, &logits, &report, &err),
                      &err, "part");
    T_CHECK(parts == (n + most_rows - 1) / most_rows, "%" PRId64 " parts", parts);
    T_CHECK(report.cached == 0 && report.replayed == 0 && report.evaluated == n, "%" PRId64, most_rows);
    for (int64_t l = 0; l < layers; l++)
        T_CHECK(s->rows[l] == whole[l], "layer %" PRId64 ": %" PRId64 " rows, not %" PRId64, l, s->rows[l], whole[l]);
    check_fresh(s, s->tokens, n, logits, "parts", most_rows);
    plumb_session_destroy(s->live);
    s->live = NULL;
}

/* Another prompt of the same length takes nothing of a part but what both begin with. */
static void parts_of_another(subject *s, int64_t n, int64_t shared) {
    int32_t *other = malloc((size_t)n * sizeof *other);
    for (int64_t i = 0; i < n; i++)
        other[i] = i < shared ? s->tokens[i] : (int32_t)((s->tokens[i] + 1) % s->specimen.vocab);
    bool done = false;
    const float *logits = NULL;
    plumb_error err;
    s->live = new_session(s);
    specimen_must(plumb_session_sync_part(s->live, other, n, n / 2, &done, &logits, NULL, &err), &err, "part");
    T_CHECK(!done, "%" PRId64, n);
    while (!done)
        specimen_must(plumb_session_sync_part(s->live, s->tokens, n, 60, &done, &logits, NULL, &err), &err, "part");
    check_fresh(s, s->tokens, n, logits, "parts of another", shared);
    plumb_session_destroy(s->live);
    s->live = NULL;
    free(other);
}

/* A part goes on to another end, with no row evaluated twice, if that needs no row that the first end did not. */
static void parts_to(subject *s, int64_t first_end, int64_t parts, int64_t n, bool serves) {
    enum { ROWS = 100 };
    bool done = false;
    const float *logits = NULL;
    plumb_sync_report report;
    plumb_error err;
    s->live = new_session(s);
    count_anew(s);
    for (int64_t i = 0; i < parts; i++)
        specimen_must(plumb_session_sync_part(s->live, s->tokens, first_end, ROWS, &done, &logits, NULL, &err), &err,
                      "part");
    T_CHECK(!done, "%" PRId64 " parts", parts);
    while (!done)
        specimen_must(plumb_session_sync_part(s->live, s->tokens, n, ROWS, &done, &logits, &report, &err), &err,
                      "part");
    T_CHECK((report.cached == 0) == serves && (report.replayed == 0) == serves,
            "%" PRId64 ", then %" PRId64 ": %" PRId64 " cached, %" PRId64 " replayed", first_end, n, report.cached,
            report.replayed);
    T_CHECK((s->rows[0] == n) == serves, "%" PRId64 " rows", s->rows[0]);
    check_fresh(s, s->tokens, n, logits, "another end", n);
    plumb_session_destroy(s->live);
    s->live = NULL;
}

static void to_another_end(void) {
    subject *s = open_subject("tiny");
    const plumb_model_config *c = config_of(s);
    int64_t source = c->layers - 1; /* the last one */
    while (!c->is_kv_source[source]) source--;
    const int64_t reach = 1 + (c->layers - source) * (c->window - 1); /* rows at its end that a prompt needs there */
    for (int64_t parts = 1; parts <= 2; parts++) {
        const int64_t done = 100 * parts, end = done + reach + 90;
        parts_to(s, end, parts, end + 1, true);
        parts_to(s, end, parts, 2 * end, true);
        parts_to(s, end, parts, done + reach, true);
        parts_to(s, end, parts, done + reach - 1, false);
        parts_to(s, end, parts, done + 1, false);
    }
    close_subject(s);
}

static void in_parts(void) {
    subject *s = open_subject("tiny");
    in_parts_of(s, 130, 1);
    in_parts_of(s, 401, 7);
    in_parts_of(s, 1500, 100);
    in_parts_of(s, 1500, 256);
    in_parts_of(s, 1000, 5000);
    parts_of_another(s, 300, 0);
    parts_of_another(s, 300, 100);
    parts_of_another(s, 300, 149);
    close_subject(s);
}

static void refused(void) {
    subject *s = open_subject("tiny");
    const plumb_session_options options = {.context = 20};
    plumb_error err;
    const float *logits;
    int32_t bad[] = {3, 4, (int32_t)s->specimen.vocab}, negative[] = {-1};
    specimen_must(plumb_session_create(s->model, &options, &s->live, &err), &err, "session");
    sync_to(s->live, s->tokens, 12, &logits);
    const struct {
        const int32_t *tokens;
        int64_t n;
        plumb_status status;
        int64_t offset;
    } cases[] = {{s->tokens, 0, PLUMB_ERROR_ARGUMENT, -1}, {NULL, 3, PLUMB_ERROR_ARGUMENT, -1},
                 {s->tokens, 21, PLUMB_ERROR_CONTEXT, -1}, {bad, 3, PLUMB_ERROR_ARGUMENT, 2},
                 {negative, 1, PLUMB_ERROR_ARGUMENT, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        T_CHECK(plumb_session_sync(s->live, cases[i].tokens, cases[i].n, &logits, NULL, &err) ==
                        cases[i].status &&
                    err.offset == cases[i].offset,
                "case %zu: %d at %" PRId64, i, (int)err.status, err.offset);
        T_CHECK(plumb_session_length(s->live) == 12, "case %zu: length", i);
    }
    /* Its own tokens, a part of them, and no logits. */
    plumb_sync_report report = sync_to(s->live, plumb_session_tokens(s->live), 7, NULL);
    T_CHECK(report.cached == 6 && report.evaluated == 1, "%" PRId64, report.cached);
    sync_to(s->live, s->tokens, 20, &logits);
    T_CHECK(plumb_session_length(s->live) == 20, "%s", "full");
    plumb_session_destroy(s->live);
    s->live = NULL;
    close_subject(s);
}

T_MAIN({"in_parts", in_parts}, {"to_another_end", to_another_end}, {"exact_resend", exact_resend}, {"divergence", divergence}, {"branches", branches},
       {"last_token_anew", last_token_anew}, {"released_shape", released_shape},
       {"cancelled_prompt", cancelled_prompt}, {"cancelled_eval", cancelled_eval},
       {"cancelled_divergence", cancelled_divergence}, {"cancelled_rewind", cancelled_rewind},
       {"refused", refused})
