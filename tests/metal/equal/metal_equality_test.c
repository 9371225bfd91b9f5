/* Same tokens, same bits: the network on the Metal backend, against the CPU.  Experts resident, in a cache,
 * in layer buffers; prompts in chunks and one token at a time; late and early completions; snapshots from
 * one backend to the other; cancellation at every layer. */
#include "metal/equal/metal_model.h"

#include <stdlib.h>
#include <unistd.h>

#include "t.h"

static specimen deep40, tiny;
static float *reference_of_deep40, *reference_of_tiny;

static void print_hash(const char *how, const specimen *s, const float *logits) {
    printf("%s, %s: XXH3-64 %016" PRIx64 "\n", s->name, how, specimen_hash(s, logits, s->count));
    fflush(stdout);
}

static void open_reference(const char *name, specimen *s, float **reference) {
    if (*reference) return;
    *s = specimen_open(BUILD_DIR "/checkpoints", name);
    *reference = metal_reference(s);
    print_hash("CPU", s, *reference);
}

static void open_deep40(void) { open_reference("deep40", &deep40, &reference_of_deep40); }

static void open_tiny(void) { open_reference("tiny", &tiny, &reference_of_tiny); }

typedef struct run_mode {
    const char *name;
    plumb_model_options options;
    int64_t chunk, decode_from; /* positions from here on come one at a time */
    int64_t most_us;            /* of a delay */
} run_mode;

static void check_mode(const specimen *s, const float *reference, const run_mode *m, uint64_t seed) {
    float *logits = specimen_logits(s);
    metal_delays(seed, m->most_us);
    plumb_model *model = metal_model_open(s, PLUMB_DEVICE_METAL, m->options);
    plumb_session *session = specimen_session(model, m->chunk);
    int64_t decode_from = m->decode_from < s->count ? m->decode_from : s->count;
    if (decode_from > 0) specimen_advance(s, session, decode_from, logits);
    for (int64_t p = decode_from; p < s->count; p++) specimen_advance(s, session, p + 1, logits);
    plumb_session_destroy(session);
    plumb_model_close(model);
    print_hash(m->name, s, logits);
    int64_t at = specimen_first_difference(s, reference, logits, 0, s->count);
    T_CHECK(at < 0, "%s, %s: position %" PRId64 " differs", s->name, m->name, at);
    free(logits);
}

/* The 520 positions of deep40: in an emulator about a minute of one core each. */
static void check_deep40(const run_mode *m) {
    open_deep40();
    check_mode(&deep40, reference_of_deep40, m, 1);
}
static void resident(void) { check_deep40(&(run_mode){"resident", {0}, 64, 504, 200}); }
static void cache(void) {
    check_deep40(&(run_mode){"cache of a token's experts", {.streaming = true, .cache_experts = 240}, 256, 504, 50});
}
static void layer_buffers(void) {
    check_deep40(&(run_mode){"layer buffers", {.streaming = true, .layer_buffers = true}, 520, 512, 50});
}

static void modes_of_tiny(void) {
    open_tiny();
    static const run_mode modes[] = {
        {"resident, one call", {0}, 520, 520, 0},
        {"resident, decoding", {0}, 1, 0, 0},
        {"cache of all, by 3", {.streaming = true, .cache_experts = 1 << 20}, 3, 60, 20},
        {"cache of 3 slots", {.streaming = true, .cache_experts = 3}, 16, 70, 0},
        {"cache of 20 slots, decoding", {.streaming = true, .cache_experts = 20}, 8, 8, 20},
        {"layer buffers, decoding", {.streaming = true, .layer_buffers = true}, 8, 8, 20},
        {"layer buffers, no guesses", {.streaming = true, .layer_buffers = true, .no_read_ahead = true}, 32, 80, 0}};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        check_mode(&tiny, reference_of_tiny, &modes[i], i + 2);
}

/* A session that was saved on one device goes on on the other. */
static void snapshots(void) {
    open_deep40();
    metal_delays(11, 0);
    static const int64_t lengths[] = {1, 129};
    char path[] = "/tmp/plumb-metal-snapshot-XXXXXX";
    int fd = mkstemp(path);
    T_CHECK(fd >= 0, "no temporary file");
    if (fd < 0) return;
    close(fd);
    float *logits = specimen_logits(&deep40);
    plumb_model *model[2] = {
        metal_model_open(&deep40, PLUMB_DEVICE_METAL, (plumb_model_options){0}),
        metal_model_open(&deep40, PLUMB_DEVICE_CPU, (plumb_model_options){.threads = 1})};
    plumb_error err;
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof lengths[0]; i++) {
        int64_t length = lengths[i / 2], end = length + 4;
        plumb_session *from = specimen_session(model[i % 2], 64), *to = specimen_session(model[1 - i % 2], 64);
        plumb_snapshot *snapshot = NULL;
        specimen_advance(&deep40, from, length, logits);
        specimen_must(plumb_session_save(from, path, NULL, &err), &err, "save");
        specimen_must(plumb_snapshot_open(path, &snapshot, &err), &err, "open");
        specimen_must(plumb_session_restore(to, snapshot, &err), &err, "restore");
        plumb_snapshot_close(snapshot);
        specimen_advance(&deep40, to, end, logits);
        int64_t at = specimen_first_difference(&deep40, reference_of_deep40, logits, 0, end);
        T_CHECK(at < 0, "saved at %" PRId64 " on the %s: position %" PRId64 " differs", length,
                i % 2 ? "CPU" : "GPU", at);
        plumb_session_destroy(from);
        plumb_session_destroy(to);
    }
    plumb_model_close(model[0]);
    plumb_model_close(model[1]);
    (void)unlink(path);
    CHECK_VALIDATION("snapshots");
    free(logits);
}

/* Going back and on from there. */
static void rewind_and_on(void) {
    open_tiny();
    metal_delays(13, 0);
    float *logits = specimen_logits(&tiny);
    plumb_model *model = metal_model_open(&tiny, PLUMB_DEVICE_METAL, (plumb_model_options){0});
    plumb_session *session = specimen_session(model, 16);
    plumb_error err;
    specimen_advance(&tiny, session, tiny.count, logits);
    for (int64_t back = 1; back < tiny.count; back += 7) {
        specimen_must(plumb_session_rewind(session, tiny.count - back, &err), &err, "rewind");
        memset(logits + (tiny.count - back) * tiny.vocab, 0,
               (size_t)(back * tiny.vocab) * sizeof *logits);
        specimen_advance(&tiny, session, tiny.count, logits);
        int64_t at = specimen_first_difference(&tiny, reference_of_tiny, logits, 0, tiny.count);
        T_CHECK(at < 0, "%" PRId64 " back: position %" PRId64 " differs", back, at);
    }
    plumb_session_destroy(session);
    plumb_model_close(model);
    CHECK_VALIDATION("rewind");
    free(logits);
}

typedef struct patience {
    int64_t left;
} patience;

static int lose_patience(void *user, int64_t done, int64_t total) {
    patience *p = user;
    (void)done, (void)total;
    return p->left-- == 0;
}

static int ignore_row(void *user, int64_t position, const float *row) {
    (void)user, (void)position, (void)row;
    return 0;
}

/* Cancels when it is asked for the `asked`-th time, then evaluates another prompt; returns whether there was
 * something to cancel.  The model is new each time: its experts are missing, so that the device has stopped
 * somewhere when the host gives up. */
static bool cancel_and_go_on(const plumb_model_options *how, int64_t asked, float *logits) {
    enum { OTHER = 20, END = 12 };
    metal_delays((uint64_t)asked, 100);
    plumb_model *model = metal_model_open(&tiny, PLUMB_DEVICE_METAL, *how);
    patience p = {asked};
    plumb_session_options options = {.chunk = 8, .progress = lose_patience, .progress_user = &p};
    plumb_session *session = NULL;
    plumb_error err;
    specimen_must(plumb_session_create(model, &options, &session, &err), &err, "session");
    plumb_status status = plumb_session_eval_all(session, tiny.tokens + OTHER, END, ignore_row, NULL, &err);
    bool cancelled = status == PLUMB_ERROR_CANCELLED;
    T_CHECK(cancelled || status == PLUMB_OK, "asked %" PRId64 " times: status %d", asked, (int)status);
    p.left = INT64_MAX;
    specimen_must(plumb_session_rewind(session, 0, &err), &err, "rewind");
    memset(logits, 0, (size_t)(END * tiny.vocab) * sizeof *logits);
    specimen_advance(&tiny, session, END, logits);
    int64_t at = specimen_first_difference(&tiny, reference_of_tiny, logits, 0, END);
    T_CHECK(at < 0, "cancelled when asked for time %" PRId64 ": position %" PRId64 " differs", asked, at);
    plumb_session_destroy(session);
    plumb_model_close(model);
    return cancelled;
}

/* Cancelled wherever the engine asks, with the queue in whatever state: nothing is lost. */
static void cancellation(void) {
    open_tiny();
    static const plumb_model_options modes[] = {{0},
                                                {.streaming = true, .cache_experts = 16},
                                                {.streaming = true, .layer_buffers = true}};
    float *logits = specimen_logits(&tiny);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        for (int64_t asked = 0; cancel_and_go_on(&modes[i], asked, logits); asked++) {}
    free(logits);
}

T_MAIN({"resident", resident}, {"cache", cache}, {"layer_buffers", layer_buffers},
       {"modes_of_tiny", modes_of_tiny}, {"snapshots", snapshots}, {"rewind_and_on", rewind_and_on},
       {"cancellation", cancellation})
