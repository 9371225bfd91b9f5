/* What a sequence leaves behind is as independent of its history as its logits: window rings,
 * compressed caches, index keys and the carry of an unfinished pair have the same bytes after token
 * by token evaluation, after chunks of any size and after going back.
 *
 * Lengths around multiples of the chunk, of the window and of the compression ratio are where rings
 * wrap, pairs stay open and rows change hands. */
#include "engine/engine.h"
#include "equal/session_states.h"

#include <stdlib.h>

#include "t.h"

/* Rings and caches that are all zeros would be equal for no merit. */
static void check_alive(const plumb_state *state) {
    const plumb_model_config *c = state->config;
    for (int64_t l = 0; l < c->layers; l++) {
        int64_t nonzero = 0, bytes = c->window * plumb__window_row_bytes(c->head_dim);
        for (int64_t i = 0; i < bytes; i++) nonzero += state->layer[l].ring[i] != 0;
        T_CHECK(nonzero > bytes / 2, "layer %" PRId64 ": an empty ring", l);
    }
}

/* Evaluates up to `end`; returns the logits of the last position. */
static const float *evaluate(const specimen *s, plumb_session *session, int64_t end) {
    int64_t begin = plumb_session_length(session);
    const float *logits = NULL;
    plumb_error err;
    specimen_must(plumb_session_eval(session, s->tokens + begin, end - begin, &logits, &err), &err,
                  "eval");
    return logits;
}

/* `session` goes to the length of `by_token` in one call and must then be in the same state; `last`
 * are the logits of by_token's last position. */
static void check_length(const specimen *s, plumb_session *by_token, const float *last,
                         plumb_session *session, int64_t chunk) {
    char how[96];
    int64_t length = plumb_session_length(by_token);
    snprintf(how, sizeof how, "%s, length %" PRId64 ", chunk %" PRId64, s->name, length, chunk);
    const float *logits = evaluate(s, session, length);
    T_CHECK(!memcmp(logits, last, (size_t)s->vocab * sizeof *logits), "%s: logits", how);
    CHECK_STATES(by_token, session, how);
}

static void check_fresh(const specimen *s, plumb_model *model, plumb_session *by_token,
                        const float *last, int64_t chunk) {
    plumb_session *session = specimen_session(model, chunk);
    check_length(s, by_token, last, session, chunk);
    plumb_session_destroy(session);
}

/* Logits of the last position, kept: the session's own are lost with its next call. */
static const float *decode_to(const specimen *s, plumb_session *session, int64_t length,
                              float *kept) {
    const float *last = NULL;
    while (plumb_session_length(session) < length)
        last = evaluate(s, session, plumb_session_length(session) + 1);
    if (last) memcpy(kept, last, (size_t)s->vocab * sizeof *kept);
    return kept;
}

static void every_length_of_tiny(void) {
    static const int64_t chunks[] = {1, 3, 8, 128};
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    plumb_model *model = specimen_model(&s, 1, NULL);
    plumb_session *by_token = specimen_session(model, 1);
    float *kept = specimen_logits(&s);
    for (int64_t length = 1; length <= s.count; length += length < 26 ? 1 : 7) {
        const float *last = decode_to(&s, by_token, length, kept);
        for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++)
            check_fresh(&s, model, by_token, last, chunks[i]);
    }
    check_alive(by_token->state);
    free(kept);
    plumb_session_destroy(by_token);
    plumb_model_close(model);
    specimen_close(&s);
}

static void boundaries_of_deep40(void) {
    static const int64_t lengths[] = {15, 16, 17, 127, 128, 129, 511, 512, 513};
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "deep40");
    plumb_model *model = specimen_model(&s, 1, NULL);
    plumb_session *by_token = specimen_session(model, 1);
    plumb_session *by_ones = specimen_session(model, 1); /* whole calls, rows one at a time */
    float *kept = specimen_logits(&s);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const float *last = decode_to(&s, by_token, lengths[i], kept);
        check_fresh(&s, model, by_token, last, 128);
        /* One call of many chunks differs from many calls in the session alone. */
        if (lengths[i] < 200) check_length(&s, by_token, last, by_ones, 1);
    }
    check_alive(by_token->state);
    free(kept);
    plumb_session_destroy(by_ones);
    plumb_session_destroy(by_token);
    plumb_model_close(model);
    specimen_close(&s);
}

/* A rewound session's state is the fresh one's, before anything is evaluated again. */
static void after_rewind(void) {
    static const int64_t lengths[] = {95, 90, 89, 65, 64, 41, 40, 16, 9, 8, 7, 1};
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    plumb_model *model = specimen_model(&s, 1, NULL);
    plumb_session *session = specimen_session(model, 10);
    for (int64_t end = 12; end <= s.count; end += 12) evaluate(&s, session, end);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        plumb_session *fresh = specimen_session(model, 128);
        plumb_error err;
        /* First: the working memory that they share would hold the right bytes otherwise. */
        specimen_must(plumb_session_rewind(session, lengths[i], &err), &err, "rewind");
        evaluate(&s, fresh, lengths[i]);
        char how[64];
        snprintf(how, sizeof how, "rewind to %" PRId64, lengths[i]);
        CHECK_STATES(fresh, session, how);
        plumb_session_destroy(fresh);
    }
    plumb_session_destroy(session);
    plumb_model_close(model);
    specimen_close(&s);
}

/* A prompt whose last logits alone are wanted leaves out the rows that cannot reach them: layer 20 of
 * deep40 works on 286 of 520.  The last logits, the whole state and 64 decoded rows are those of the
 * full computation, which all logits are asked of. */
static void rows_left_out(void) {
    enum { DECODED = 64, LAYER = 20, NEEDED = 286 };
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "deep40");
    plumb_model *model = specimen_model(&s, 1, NULL);
    plumb_session *few = specimen_session(model, s.count), *all = specimen_session(model, s.count);
    float *full = specimen_logits(&s);
    plumb_error err;
    const plumb_batch whole = {.state = few->state, .rows = s.count, .end = s.count,
                               .first_logits = s.count - 1};
    int64_t first = plumb__needed_rows(model->network.config, &whole, LAYER).full;
    T_CHECK(s.count - first == NEEDED, "%" PRId64 " rows of layer 20", s.count - first);
    const float *last = evaluate(&s, few, s.count);
    specimen_advance(&s, all, s.count, full);
    T_CHECK(!memcmp(last, full + (s.count - 1) * s.vocab, (size_t)s.vocab * sizeof *last), "%s",
            "last row");
    CHECK_STATES(few, all, "rows left out");
    for (int64_t i = 0; i < DECODED; i++) {
        const float *a = NULL, *b = NULL;
        specimen_must(plumb_session_eval(few, s.tokens + i, 1, &a, &err), &err, "eval");
        specimen_must(plumb_session_eval(all, s.tokens + i, 1, &b, &err), &err, "eval");
        T_CHECK(!memcmp(a, b, (size_t)s.vocab * sizeof *a), "decoded row %" PRId64, i);
    }
    CHECK_STATES(few, all, "64 rows later");
    free(full);
    plumb_session_destroy(few);
    plumb_session_destroy(all);
    plumb_model_close(model);
    specimen_close(&s);
}

T_MAIN({"every_length_of_tiny", every_length_of_tiny},
       {"boundaries_of_deep40", boundaries_of_deep40}, {"after_rewind", after_rewind},
       {"rows_left_out", rows_left_out})
