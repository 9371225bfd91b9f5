/* The public contract of models and sessions: what a failed call leaves behind, what an error says,
 * what cancelling does, what an impossible argument gets.
 *
 * "Where it was" is checked the hard way: after each failure the session goes on with the prompt
 * and must give the reference's bits. */
#include "equal/specimen.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/machine.h"
#include "synth/synth.h"
#include "t.h"

static specimen tiny;
static plumb_model *model;
static float *reference; /* [count][vocab] of the undisturbed prompt */

/* The model and the reference, made by the first test that runs. */
static void set_up(void) {
    if (model) return;
    tiny = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    model = specimen_model(&tiny, 1, NULL);
    reference = specimen_logits(&tiny);
    plumb_session *session = specimen_session(model, 0);
    specimen_advance(&tiny, session, tiny.count, reference);
    plumb_session_destroy(session);
}

static plumb_session *session_at(const plumb_session_options *options, int64_t length) {
    plumb_session *session = NULL;
    plumb_error err;
    specimen_must(plumb_session_create(model, options, &session, &err), &err, "session");
    if (length > 0)
        specimen_must(plumb_session_eval(session, tiny.tokens, length, NULL, &err), &err, "eval");
    return session;
}

/* The session stands at `length` and goes on to `end` with the reference's logits. */
static void check_goes_on(plumb_session *session, int64_t length, int64_t end, const char *after) {
    T_CHECK(plumb_session_length(session) == length, "%s: length %" PRId64 " instead of %" PRId64,
            after, plumb_session_length(session), length);
    if (plumb_session_length(session) != length) return;
    T_CHECK(length == 0 || !memcmp(plumb_session_tokens(session), tiny.tokens,
                                   (size_t)length * sizeof(int32_t)),
            "%s: tokens", after);
    float *logits = specimen_logits(&tiny);
    specimen_advance(&tiny, session, end, logits);
    int64_t at = specimen_first_difference(&tiny, reference, logits, length, end);
    T_CHECK(at < 0, "%s: position %" PRId64 " differs", after, at);
    free(logits);
}

/* ---- Refused calls
 * --------------------------------------------------------------------------------- */

static const float untouched;

/* An eval that must fail with `status` and say `field`, `found` and `expected` (parts of them). */
static plumb_error refused(plumb_session *session, const int32_t *tokens, int64_t n,
                           plumb_status status, const char *field, const char *found,
                           const char *expected) {
    const float *logits = &untouched;
    plumb_error err = {0};
    plumb_status got = plumb_session_eval(session, tokens, n, &logits, &err);
    T_CHECK(got == status && err.status == status, "%s: status %d", field, (int)got);
    T_CHECK(!strcmp(err.field, field), "field %s instead of %s", err.field, field);
    T_CHECK(strstr(err.found, found) != NULL, "found: %s", err.found);
    T_CHECK(strstr(err.expected, expected) != NULL, "expected: %s", err.expected);
    T_CHECK(logits == &untouched, "%s: logits were touched", field);
    return err;
}

static void context_overflow(void) {
    set_up();
    plumb_session_options options = {.context = 20, .chunk = 4};
    plumb_session *session = session_at(&options, 15);
    T_CHECK(plumb_session_context(session) == 20, "%" PRId64, plumb_session_context(session));
    refused(session, tiny.tokens + 15, 6, PLUMB_ERROR_CONTEXT, "context", "6 tokens after 15",
            "20");
    refused(session, tiny.tokens + 15, INT64_MAX, PLUMB_ERROR_CONTEXT, "context", "", "20");
    check_goes_on(session, 15, 20, "overflow");
    refused(session, tiny.tokens, 1, PLUMB_ERROR_CONTEXT, "context", "1 tokens after 20", "20");
    plumb_error err;
    specimen_must(plumb_session_rewind(session, 3, &err), &err, "rewind");
    check_goes_on(session, 3, 20, "overflow and rewind");
    plumb_session_destroy(session);
}

static void token_out_of_range(void) {
    set_up();
    static const int32_t bad[] = {-1, 512, INT32_MAX, INT32_MIN};
    plumb_session *session = session_at(NULL, 10);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char found[16];
        int32_t tokens[4] = {tiny.tokens[10], tiny.tokens[11], bad[i], 5};
        snprintf(found, sizeof found, "%d", (int)bad[i]);
        plumb_error err =
            refused(session, tokens, 4, PLUMB_ERROR_ARGUMENT, "token", found, "0 to 511");
        T_CHECK(err.offset == 2, "offset %" PRId64, err.offset);
    }
    check_goes_on(session, 10, 30, "a bad token");
    plumb_session_destroy(session);
}

static void nothing_to_do(void) {
    set_up();
    plumb_session *session = session_at(NULL, 5);
    refused(session, tiny.tokens, 0, PLUMB_ERROR_ARGUMENT, "tokens", "none", "one");
    refused(session, tiny.tokens, -7, PLUMB_ERROR_ARGUMENT, "tokens", "", "one");
    refused(session, NULL, 3, PLUMB_ERROR_ARGUMENT, "tokens", "", "one");
    plumb_error err;
    T_CHECK(plumb_session_eval_all(session, tiny.tokens, 1, NULL, NULL, &err) ==
                    PLUMB_ERROR_ARGUMENT &&
                !strcmp(err.field, "sink"),
            "no sink: %s", err.field);
    T_CHECK(plumb_session_eval(session, NULL, 3, NULL, NULL) == PLUMB_ERROR_ARGUMENT, "%s",
            "an error is not needed");
    check_goes_on(session, 5, 20, "nothing");
    plumb_session_destroy(session);
}

static void rewind_arguments(void) {
    set_up();
    static const int64_t bad[] = {-1, 31, INT64_MIN, INT64_MAX};
    plumb_session *session = session_at(NULL, 30);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        plumb_error err = {0};
        T_CHECK(plumb_session_rewind(session, bad[i], &err) == PLUMB_ERROR_ARGUMENT, "%" PRId64,
                bad[i]);
        T_CHECK(!strcmp(err.field, "length") && strstr(err.expected, "0 to 30"), "%s, %s",
                err.field, err.expected);
    }
    T_CHECK(plumb_session_rewind(session, 30, NULL) == PLUMB_OK, "to the present");
    check_goes_on(session, 30, 40, "rewinds");
    plumb_session_destroy(session);
}

static void session_options(void) {
    set_up();
    static const struct {
        plumb_session_options options;
        const char *field;
    } cases[] = {{{.context = -1}, "context"},
                 {{.context = 4097}, "context"}, /* the config says 4096 positions */
                 {{.chunk = -1}, "chunk"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_session *session = NULL;
        plumb_error err = {0};
        T_CHECK(plumb_session_create(model, &cases[i].options, &session, &err) ==
                    PLUMB_ERROR_ARGUMENT,
                "case %d", (int)i);
        T_CHECK(!session && !strcmp(err.field, cases[i].field), "case %d: %s", (int)i, err.field);
    }
    plumb_session *session = session_at(NULL, 0);
    T_CHECK(plumb_session_context(session) == 4096 && plumb_session_length(session) == 0,
            "%" PRId64, plumb_session_context(session));
    plumb_session_destroy(session);
    plumb_session_destroy(NULL);
}

/* ---- Cancelling
 * ------------------------------------------------------------------------------------- */

typedef struct progress_log {
    int64_t calls, cancel_at; /* cancels in call cancel_at, counted from 1 */
    int64_t last, total;
    bool rising;
} progress_log;

static int follow(void *user, int64_t done, int64_t total) {
    progress_log *log = user;
    log->calls++;
    log->rising &= done >= log->last && done <= total;
    log->last = done;
    log->total = total;
    return log->calls == log->cancel_at;
}

/* A call of 20 tokens in three chunks, cancelled in every layer of every chunk. */
static void cancel_by_progress(void) {
    set_up();
    enum { LENGTH = 11, TOKENS = 20, CHUNK = 8, LAYERS = 6, CALLS = 3 * LAYERS };
    progress_log log = {.rising = true};
    plumb_session_options options = {.chunk = CHUNK, .progress = follow, .progress_user = &log};
    plumb_session *session = session_at(&options, LENGTH);
    for (int64_t cancel_at = 1; cancel_at <= CALLS; cancel_at++) {
        log = (progress_log){.cancel_at = cancel_at, .rising = true};
        const float *logits = &untouched;
        plumb_error err = {0};
        T_CHECK(plumb_session_eval(session, tiny.tokens + LENGTH, TOKENS, &logits, &err) ==
                    PLUMB_ERROR_CANCELLED,
                "call %" PRId64, cancel_at);
        T_CHECK(log.calls == cancel_at && log.total == TOKENS && log.rising, "call %" PRId64,
                cancel_at);
        T_CHECK(logits == &untouched, "logits of a cancelled call");
        log.cancel_at = 0;
        check_goes_on(session, LENGTH, LENGTH + TOKENS, "cancelled");
        specimen_must(plumb_session_rewind(session, LENGTH, &err), &err, "rewind");
    }
    log = (progress_log){.rising = true};
    plumb_error err;
    specimen_must(plumb_session_eval(session, tiny.tokens + LENGTH, TOKENS, NULL, &err), &err,
                  "eval");
    T_CHECK(log.calls == CALLS && log.last == TOKENS && log.rising, "%" PRId64 " calls, %" PRId64,
            log.calls, log.last);
    plumb_session_destroy(session);
}

typedef struct sink_log {
    int64_t next, cancel_at; /* positions */
    bool in_order;
} sink_log;

static int count_rows(void *user, int64_t position, const float *logits) {
    sink_log *log = user;
    log->in_order &= position == log->next && !memcmp(logits, reference + position * tiny.vocab,
                                                      (size_t)tiny.vocab * sizeof *logits);
    log->next = position + 1;
    return position == log->cancel_at;
}

static void cancel_by_sink(void) {
    set_up();
    enum { LENGTH = 7, END = 40 };
    plumb_session_options options = {.chunk = 9};
    plumb_session *session = session_at(&options, LENGTH);
    for (int64_t at = LENGTH; at < END; at += 4) {
        sink_log log = {LENGTH, at, true};
        plumb_error err;
        T_CHECK(plumb_session_eval_all(session, tiny.tokens + LENGTH, END - LENGTH, count_rows,
                                       &log, &err) == PLUMB_ERROR_CANCELLED,
                "position %" PRId64, at);
        T_CHECK(log.in_order && log.next == at + 1, "rows up to %" PRId64, log.next);
        check_goes_on(session, LENGTH, END, "sink");
        specimen_must(plumb_session_rewind(session, LENGTH, &err), &err, "rewind");
    }
    plumb_session_destroy(session);
}

/* Going back may have to evaluate again; cancelled there, the session stays at its end. */
static void cancel_a_rewind(void) {
    set_up();
    enum { LENGTH = 60 };
    progress_log log = {.rising = true};
    plumb_session_options options = {.chunk = 8, .progress = follow, .progress_user = &log};
    for (int64_t cancel_at = 1; cancel_at <= 31; cancel_at += 6) {
        log = (progress_log){.rising = true};
        plumb_session *session = session_at(&options, LENGTH);
        log = (progress_log){.cancel_at = cancel_at, .rising = true};
        plumb_error err;
        T_CHECK(plumb_session_rewind(session, 45, &err) == PLUMB_ERROR_CANCELLED, "at %" PRId64,
                cancel_at);
        log.cancel_at = 0;
        check_goes_on(session, LENGTH, LENGTH + 20, "a cancelled rewind");
        specimen_must(plumb_session_rewind(session, 45, &err), &err, "rewind");
        check_goes_on(session, 45, 80, "a rewind");
        plumb_session_destroy(session);
    }
}

/* ---- Opening
 * ------------------------------------------------------------------------------------------ */

static void model_info(void) {
    set_up();
    plumb_model_info info;
    plumb_model_get_info(model, &info);
    T_CHECK(info.vocab_size == 512 && info.hidden_size == 96 && info.layers == 6 &&
                info.experts == 8 && info.experts_per_token == 2 && info.max_positions == 4096 &&
                info.bos_id == 0 && info.eos_id == 1,
            "%s", "as tiny's config says");
    T_CHECK(info.threads == 1 && !strcmp(info.path, tiny.folder), "%d, %s", info.threads,
            info.path);
    T_CHECK(info.resident_bytes > 100000 && info.resident_bytes < 4000000, "%" PRId64,
            info.resident_bytes);
    plumb_model_options options = {.threads = 3, .cpu_level = "portable"};
    plumb_model *other = NULL;
    plumb_error err;
    specimen_must(plumb_model_open(tiny.folder, &options, &other, &err), &err, "open");
    plumb_model_get_info(other, &info);
    /* PLUMB_CPU, where it is set, has the last word. */
    T_CHECK(info.threads == 3 && (getenv("PLUMB_CPU") || !strcmp(info.cpu_level, "portable")), "%s",
            info.cpu_level);
    plumb_model_close(other);
    plumb_model_close(NULL);
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) exit(1);
}

static void open_garbage(void) {
    set_up();
    mkdir(BUILD_DIR "/session", 0777);
    mkdir(BUILD_DIR "/session/empty", 0777);
    mkdir(BUILD_DIR "/session/nonsense", 0777);
    mkdir(BUILD_DIR "/session/config-only", 0777);
    write_file(BUILD_DIR "/session/file", "not a folder");
    write_file(BUILD_DIR "/session/nonsense/config.json", "\x01\x02{[");
    write_file(BUILD_DIR "/session/config-only/config.json", "{}");
    static const struct {
        const char *path;
        plumb_model_options options;
        plumb_status status;
        const char *says; /* somewhere in the line */
    } cases[] = {
        {NULL, {0}, PLUMB_ERROR_ARGUMENT, "path"},
        {BUILD_DIR "/session/absent", {0}, PLUMB_ERROR_IO, "absent"},
        {BUILD_DIR "/session/file", {0}, PLUMB_ERROR_FORMAT, "magic"},
        {BUILD_DIR "/session/empty", {0}, PLUMB_ERROR_IO, "config.json"},
        {BUILD_DIR "/session/nonsense", {0}, PLUMB_ERROR_FORMAT, "config.json"},
        {BUILD_DIR "/session/config-only", {0}, PLUMB_ERROR_CONFIG, "config.json"},
        {"", {0}, PLUMB_ERROR_IO, "config.json"},
        {BUILD_DIR "/checkpoints/tiny", {.threads = -1}, PLUMB_ERROR_ARGUMENT, "threads"},
        {BUILD_DIR "/checkpoints/tiny", {.cpu_level = "486"}, PLUMB_ERROR_UNSUPPORTED, "486"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cases[i].options.cpu_level && getenv("PLUMB_CPU")) continue; /* it would win */
        plumb_model *opened = NULL;
        plumb_error err = {0};
        char line[1024];
        plumb_status status = plumb_model_open(cases[i].path, &cases[i].options, &opened, &err);
        plumb_error_line(&err, line, sizeof line);
        T_CHECK(status == cases[i].status && !opened, "case %d: %d, %s", (int)i, (int)status, line);
        T_CHECK(strstr(line, cases[i].says) != NULL, "case %d: %s", (int)i, line);
    }
}

/* The released model with nothing but holes in its files, and a budget that its dense weights do not
 * fit into: refused with the numbers before anything is loaded. */
static void less_memory_than_it_takes(void) {
    plumb_synth_options options = {.variant = PLUMB_SYNTH_RELEASE,
                                   .seed = 1,
                                   .force = true,
                                   .folder = BUILD_DIR "/session/hollow",
                                   .payload = PLUMB_SYNTH_HOLLOW};
    plumb_error err;
    mkdir(BUILD_DIR "/session", 0777);
    specimen_must(plumb__synth_write(&options, &err), &err, "synth");
    plumb_model *opened = NULL;
    const plumb_model_options small = {.streaming = true, .memory_bytes = INT64_C(8600000000)};
    T_CHECK(plumb_model_open(options.folder, &small, &opened, &err) == PLUMB_ERROR_MEMORY, "%s",
            err.found);
    T_CHECK(!strcmp(err.field, "memory budget") && !strcmp(err.found, "8.60 GB"), "%s: %s",
            err.field, err.found);
    T_CHECK(!strcmp(err.expected, "at least 8.75 GB: dense weights 8.52, experts 0.23"), "%s",
            err.expected);
}

/* ---- Sampling
 * --------------------------------------------------------------------------------------------- */

/* Greedy sampling of a session's logits is their largest, and the same call gives the same token.
 */
static void sampling(void) {
    set_up();
    plumb_session *session = session_at(NULL, 0);
    for (int64_t end = 8; end <= 40; end += 8) {
        const float *logits = NULL;
        plumb_error err;
        specimen_must(plumb_session_eval(session, tiny.tokens + end - 8, 8, &logits, &err), &err,
                      "eval");
        int32_t best = 0, greedy = -1, first = -1, second = -2;
        for (int32_t i = 1; i < tiny.vocab; i++)
            if (logits[i] > logits[best]) best = i;
        plumb_sampling options = {.top_p = 1.0f};
        plumb_logprob chosen = {-1, 1.0f}, top[3];
        specimen_must(
            plumb_sample(logits, tiny.vocab, &options, end, &greedy, &chosen, top, 3, &err), &err,
            "sample");
        T_CHECK(greedy == best && chosen.token == best && top[0].token == best, "%d, %d, %d",
                greedy, best, top[0].token);
        T_CHECK(chosen.logprob < 0.0f && top[0].logprob >= top[1].logprob &&
                    top[1].logprob >= top[2].logprob,
                "%g", (double)chosen.logprob);
        options = plumb_sampling_default();
        options.seed = 99;
        specimen_must(plumb_sample(logits, tiny.vocab, &options, end, &first, NULL, NULL, 0, &err),
                      &err, "sample");
        specimen_must(plumb_sample(logits, tiny.vocab, &options, end, &second, NULL, NULL, 0, &err),
                      &err, "sample");
        T_CHECK(first == second && first >= 0 && first < tiny.vocab, "%d, %d", first, second);
    }
    float broken[4] = {1.0f, NAN, 2.0f, 3.0f};
    int32_t token = -1;
    plumb_sampling options = plumb_sampling_default();
    plumb_error err;
    T_CHECK(plumb_sample(broken, 4, &options, 0, &token, NULL, NULL, 0, &err) ==
                    PLUMB_ERROR_VALUE &&
                token == -1,
            "a NaN among the logits");
    plumb_session_destroy(session);
}

/* A session's own tokens may be given back to it after a rewind: the list must not move under the
 * call that reads it. */
static void own_tokens(void) {
    set_up();
    plumb_session *session = session_at(NULL, 40);
    plumb_error err;
    specimen_must(plumb_session_rewind(session, 10, &err), &err, "rewind");
    specimen_must(plumb_session_eval(session, plumb_session_tokens(session) + 10, 30, NULL, &err),
                  &err, "eval");
    /* And once more, appended: the list has to grow. */
    for (int i = 0; i < 4; i++)
        specimen_must(plumb_session_eval(session, plumb_session_tokens(session), 40, NULL, &err),
                      &err, "eval");
    for (int64_t p = 0; p < 200; p++)
        T_CHECK(plumb_session_tokens(session)[p] == tiny.tokens[p % 40], "token %" PRId64, p);
    specimen_must(plumb_session_rewind(session, 40, &err), &err, "rewind");
    check_goes_on(session, 40, tiny.count, "own tokens");
    plumb_session_destroy(session);
}

T_MAIN({"context_overflow", context_overflow}, {"token_out_of_range", token_out_of_range},
       {"nothing_to_do", nothing_to_do}, {"rewind_arguments", rewind_arguments},
       {"session_options", session_options}, {"cancel_by_progress", cancel_by_progress},
       {"cancel_by_sink", cancel_by_sink}, {"cancel_a_rewind", cancel_a_rewind},
       {"model_info", model_info}, {"open_garbage", open_garbage},
       {"less_memory_than_it_takes", less_memory_than_it_takes}, {"sampling", sampling},
       {"own_tokens", own_tokens})
