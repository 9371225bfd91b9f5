/* Prompts around every size that matters, windows, pairs, chunks, the list of selected keys, the rows that
 * prompts are cut down to: logits of the last row and every byte of the state are those of evaluation token
 * by token, whatever the chunk.
 *
 * tiny with its context made longer goes to 16,385 positions; the numbers are those that real sessions meet. */
#include "equal/session_states.h"
#include "equal/specimen_copy.h"

#include <stdlib.h>

#include "t.h"

enum { MOST = 16385 };

/* ---- A context of 16,385 positions -------------------------------------------------------------- */

/* Writes `from` to `to` with another max_position_embeddings. */
static void lengthen_context(const char *from, const char *to) {
    static const char key[] = "\"max_position_embeddings\": 4096";
    FILE *file = fopen(from, "rb");
    static char text[1 << 16];
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    char *at = strstr(text, key);
    file = at ? fopen(to, "wb") : NULL;
    if (!file) {
        fprintf(stderr, "%s has no %s\n", from, key);
        exit(1);
    }
    fwrite(text, 1, (size_t)(at - text), file);
    fprintf(file, "\"max_position_embeddings\": %d", (int)MOST);
    fwrite(at + sizeof key - 1, 1, size - (size_t)(at - text) - (sizeof key - 1), file);
    fclose(file);
}

typedef struct subject {
    specimen specimen;
    plumb_model *model;
    int32_t *tokens; /* [MOST] */
} subject;

static subject open_subject(void) {
    char from[600], to[600];
    specimen tiny = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    subject s = {.specimen = specimen_copy(&tiny, BUILD_DIR "/lengths", "tiny")};
    snprintf(from, sizeof from, "%s/config.json", tiny.folder);
    snprintf(to, sizeof to, "%s/config.json", s.specimen.folder);
    lengthen_context(from, to);
    specimen_close(&tiny);
    s.model = specimen_model(&s.specimen, 2, NULL);
    s.tokens = malloc(MOST * sizeof *s.tokens);
    for (int64_t i = 0; i < MOST; i++) s.tokens[i] = (int32_t)((i * i + i / 5) % s.specimen.vocab);
    return s;
}

static void close_subject(subject *s) {
    plumb_model_close(s->model);
    specimen_close(&s->specimen);
    free(s->tokens);
}

/* ---- Lengths ------------------------------------------------------------------------------------ */

static const float *eval(const subject *s, plumb_session *session, int64_t end) {
    int64_t begin = plumb_session_length(session);
    const float *logits = NULL;
    plumb_error err;
    specimen_must(plumb_session_eval(session, s->tokens + begin, end - begin, &logits, &err), &err,
                  "eval");
    return logits;
}

static void check_chunk(const subject *s, const plumb_session *by_token, const float *last,
                        int64_t chunk) {
    char how[64];
    int64_t length = plumb_session_length(by_token);
    snprintf(how, sizeof how, "length %" PRId64 ", chunk %" PRId64, length, chunk);
    plumb_session *session = specimen_session(s->model, chunk);
    T_CHECK(!memcmp(last, eval(s, session, length), (size_t)s->specimen.vocab * sizeof *last),
            "%s: logits", how);
    CHECK_STATES(by_token, session, how);
    plumb_session_destroy(session);
}

/* Chunks of one row are the evaluation token by token but for the calls: tried up to 600. */
static void lengths_and_chunks(void) {
    static const int64_t lengths[] = {127,  128,  129,  511,  512,  513,  1023,  1024,  1025, 2047, 2048,
                                      2049, 2540, 2541, 2542, 4095, 4096, 4097, 16383, 16384, MOST};
    subject s = open_subject();
    plumb_session *by_token = specimen_session(s.model, 1);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const float *last = NULL;
        while (plumb_session_length(by_token) < lengths[i])
            last = eval(&s, by_token, plumb_session_length(by_token) + 1);
        if (lengths[i] < 600) check_chunk(&s, by_token, last, 1);
        if (lengths[i] < 5000) check_chunk(&s, by_token, last, 128);
        check_chunk(&s, by_token, last, i % 2 ? 2048 : 8192);
    }
    plumb_session_destroy(by_token);
    close_subject(&s);
}

T_MAIN({"lengths_and_chunks", lengths_and_chunks})
