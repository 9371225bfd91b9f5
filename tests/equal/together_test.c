/* Answers that are written together: sessions of different lengths step as one batch, and each row has the
 * bits that its token has alone. */
#include "equal/specimen.h"

#include <stdlib.h>

#include "t.h"

enum { MOST = 64, STEPS = 24 };

/* n sessions whose lengths are spread over the prompt; all step, and each new row goes to `logits`. */
static void step_together(const specimen *s, plumb_model *model, int64_t n, float *logits, float *expected) {
    plumb_session *session[MOST];
    plumb_error err;
    for (int64_t i = 0; i < n; i++) {
        session[i] = specimen_session(model, 0);
        int64_t length = 1 + i * (s->count - STEPS - 1) / n;
        specimen_must(plumb_session_eval(session[i], s->tokens, length, NULL, &err), &err, "prompt");
    }
    for (int step = 0; step < STEPS; step++) {
        int32_t tokens[MOST];
        const float *row[MOST];
        for (int64_t i = 0; i < n; i++) tokens[i] = s->tokens[plumb_session_length(session[i])];
        specimen_must(plumb_sessions_step(session, tokens, n, row, &err), &err, "step");
        for (int64_t i = 0; i < n; i++) {
            int64_t position = plumb_session_length(session[i]) - 1;
            T_CHECK(!memcmp(row[i], expected + position * s->vocab, (size_t)s->vocab * sizeof(float)),
                    "%s, %" PRId64 " together: position %" PRId64, s->name, n, position);
            memcpy(logits + position * s->vocab, row[i], (size_t)s->vocab * sizeof(float));
            T_CHECK(plumb_session_known(session[i], s->tokens, s->count) == position + 1, "what was evaluated is known");
        }
    }
    for (int64_t i = 0; i < n; i++) plumb_session_destroy(session[i]);
}

/* Enough sessions to pass every position of the prompt but the first: the one hash. */
static void one_hash_of(const char *name) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", name);
    plumb_model *model = specimen_model(&s, 2, NULL);
    float *expected = specimen_logits(&s), *logits = specimen_logits(&s);
    plumb_session *alone = specimen_session(model, 1);
    specimen_advance(&s, alone, s.count, expected);
    plumb_session_destroy(alone);
    memcpy(logits, expected, (size_t)s.vocab * sizeof *logits);
    for (int64_t from = 1; from < s.count; from += STEPS) {
        plumb_session *session[2] = {specimen_session(model, 0), specimen_session(model, 0)};
        plumb_error err;
        for (int i = 0; i < 2; i++)
            specimen_must(plumb_session_eval(session[i], s.tokens, from, NULL, &err), &err, "prompt");
        for (int64_t p = from; p < s.count && p < from + STEPS; p++) {
            /* The other one says something else each time. */
            const int32_t tokens[2] = {s.tokens[p], (int32_t)((s.tokens[p] * 7 + 3) % s.vocab)};
            const float *row[2];
            specimen_must(plumb_sessions_step(session, tokens, 2, row, &err), &err, "step");
            memcpy(logits + p * s.vocab, row[0], (size_t)s.vocab * sizeof *logits);
        }
        for (int i = 0; i < 2; i++) plumb_session_destroy(session[i]);
    }
    uint64_t whole = specimen_hash(&s, expected, s.count), joined = specimen_hash(&s, logits, s.count);
    T_CHECK(whole == joined, "%s: %016" PRIx64 ", not %016" PRIx64, name, joined, whole);
    printf("%s %016" PRIx64 "\n", name, joined);
    free(expected);
    free(logits);
    plumb_model_close(model);
    specimen_close(&s);
}

static void one_hash(void) { one_hash_of("tiny"); }
static void one_hash_of_deep40(void) { one_hash_of("deep40"); }

static void many(const char *name, const plumb_model_options *options, const int64_t *counts) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", name);
    plumb_model *model;
    plumb_error err;
    specimen_must(plumb_model_open(s.folder, options, &model, &err), &err, "open");
    float *expected = specimen_logits(&s), *logits = specimen_logits(&s);
    plumb_session *alone = specimen_session(model, 0);
    specimen_advance(&s, alone, s.count, expected);
    plumb_session_destroy(alone);
    for (int i = 0; counts[i] > 0; i++) step_together(&s, model, counts[i], logits, expected);
    free(expected);
    free(logits);
    plumb_model_close(model);
    specimen_close(&s);
}

static void tiny(void) { many("tiny", &(plumb_model_options){.threads = 2}, (int64_t[]){1, 2, 3, 8, 64, 0}); }
static void deep40(void) { many("deep40", &(plumb_model_options){.threads = 2}, (int64_t[]){5, 0}); }
static void streamed(void) {
    many("tiny", &(plumb_model_options){.threads = 2, .streaming = true, .cache_experts = 20}, (int64_t[]){4, 16, 0});
}

/* Where each row takes long. */
static void few(void) {
    many("tiny", &(plumb_model_options){.threads = 2, .streaming = true, .cache_experts = 20}, (int64_t[]){3, 0});
}

/* What is refused moves no session. */
static void refused(void) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    plumb_model *model = specimen_model(&s, 1, NULL), *other = specimen_model(&s, 1, NULL);
    plumb_error err;
    plumb_session *a = specimen_session(model, 0), *b = specimen_session(model, 0), *c = specimen_session(other, 0);
    plumb_session *full;
    const plumb_session_options short_one = {.context = 1};
    specimen_must(plumb_session_create(model, &short_one, &full, &err), &err, "session");
    specimen_must(plumb_session_eval(full, s.tokens, 1, NULL, &err), &err, "prompt");
    const struct {
        plumb_session *session[2];
        int32_t token[2];
        int64_t n;
        plumb_status status;
    } cases[] = {
        {{a, b}, {1, 2}, 0, PLUMB_ERROR_ARGUMENT},
        {{a, b}, {1, 2}, 65, PLUMB_ERROR_ARGUMENT},
        {{a, a}, {1, 2}, 2, PLUMB_ERROR_ARGUMENT},
        {{a, c}, {1, 2}, 2, PLUMB_ERROR_ARGUMENT},
        {{a, b}, {1, -1}, 2, PLUMB_ERROR_ARGUMENT},
        {{a, b}, {1, (int32_t)s.vocab}, 2, PLUMB_ERROR_ARGUMENT},
        {{a, full}, {1, 2}, 2, PLUMB_ERROR_CONTEXT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const float *logits[2];
        plumb_status status = plumb_sessions_step(cases[i].session, cases[i].token, cases[i].n, logits, &err);
        T_CHECK(status == cases[i].status, "case %zu: status %d", i, (int)status);
        T_CHECK(plumb_session_length(a) == 0 && plumb_session_length(b) == 0 && plumb_session_length(c) == 0 &&
                    plumb_session_length(full) == 1,
                "case %zu: a session moved", i);
    }
    plumb_session *sessions[] = {a, b, c, full};
    for (int i = 0; i < 4; i++) plumb_session_destroy(sessions[i]);
    plumb_model_close(model);
    plumb_model_close(other);
    specimen_close(&s);
}

T_MAIN({"one_hash", one_hash}, {"one_hash_of_deep40", one_hash_of_deep40}, {"tiny", tiny}, {"deep40", deep40}, {"streamed", streamed}, {"few", few}, {"refused", refused})
