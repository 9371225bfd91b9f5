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

static const struct {
    const char *name;
    plumb_model_options options;
    int64_t chunk, decode_from; /* positions from here on come one at a time */
    int64_t most_us;            /* of a delay */
} cases[] = {
    {"resident, whole", {0}, 520, 520, 0},
    {"resident, by 64, then decoding", {0}, 64, 490, 200},
    {"cache of all, by 3, then decoding", {.streaming = true, .cache_experts = 1 << 20}, 3, 60, 0},
    {"cache of a token's experts", {.streaming = true, .cache_experts = 240}, 256, 500, 50},
    {"cache of 3 slots", {.streaming = true, .cache_experts = 3}, 520, 516, 0},
    {"layer buffers", {.streaming = true, .layer_buffers = true}, 128, 500, 50},
    {"layer buffers, no guesses", {.streaming = true, .layer_buffers = true, .no_read_ahead = true}, 200, 515, 0},
};

static void every_mode(void) {
    open_deep40();
    float *logits = specimen_logits(&deep40);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        metal_delays(i + 1, cases[i].most_us);
        memset(logits, 0, (size_t)(deep40.count * deep40.vocab) * sizeof *logits);
        plumb_model *model = metal_model_open(&deep40, PLUMB_DEVICE_METAL, cases[i].options);
        plumb_session *session = specimen_session(model, cases[i].chunk);
        if (cases[i].decode_from > 0) specimen_advance(&deep40, session, cases[i].decode_from, logits);
        for (int64_t p = cases[i].decode_from; p < deep40.count; p++)
            specimen_advance(&deep40, session, p + 1, logits);
        plumb_session_destroy(session);
        plumb_model_close(model);
        print_hash(cases[i].name, &deep40, logits);
        int64_t at = specimen_first_difference(&deep40, reference_of_deep40, logits, 0, deep40.count);
        T_CHECK(at < 0, "%s: position %" PRId64 " differs", cases[i].name, at);
        T_CHECK(specimen_hash(&deep40, logits, deep40.count) ==
                    specimen_hash(&deep40, reference_of_deep40, deep40.count),
                "%s: hash", cases[i].name);
        CHECK_VALIDATION(cases[i].name);
    }
    free(logits);
}

/* A session that was saved on one device goes on on the other. */
static void snapshots(void) {
    open_deep40();
    metal_delays(11, 0);
    static const int64_t lengths[] = {1, 127, 128, 129, 300};
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

/* Cancelled wherever the engine asks, with the queue in whatever state: nothing is lost. */
static void cancellation(void) {
    open_tiny();
    static const plumb_model_options modes[] = {
        {0}, {.streaming = true, .cache_experts = 5}, {.streaming = true, .layer_buffers = true}};
    float *logits = specimen_logits(&tiny);
    for (size_t mode = 0; mode < sizeof modes / sizeof modes[0]; mode++) {
        metal_delays(17 + mode, 100);
        plumb_model *model = metal_model_open(&tiny, PLUMB_DEVICE_METAL, modes[mode]);
        patience p = {0};
        plumb_session_options options = {.chunk = 8, .progress = lose_patience, .progress_user = &p};
        plumb_session *session = NULL;
        plumb_error err;
        specimen_must(plumb_session_create(model, &options, &session, &err), &err, "session");
        bool cancelled = true;
        for (int64_t asked = 0; cancelled; asked++) {
            p.left = asked;
            plumb_status status = plumb_session_eval_all(session, tiny.tokens, 12, ignore_row, NULL, &err);
            cancelled = status == PLUMB_ERROR_CANCELLED;
            T_CHECK(cancelled || status == PLUMB_OK, "asked %" PRId64 " times: status %d", asked, (int)status);
            specimen_must(plumb_session_rewind(session, 0, &err), &err, "rewind");
        }
        p.left = INT64_MAX;
        specimen_advance(&tiny, session, 20, logits);
        int64_t at = specimen_first_difference(&tiny, reference_of_tiny, logits, 0, 20);
        T_CHECK(at < 0, "mode %zu: position %" PRId64 " differs", mode, at);
        plumb_session_destroy(session);
        plumb_model_close(model);
        CHECK_VALIDATION("cancellation");
    }
    free(logits);
}

T_MAIN({"every_mode", every_mode}, {"snapshots", snapshots}, {"rewind_and_on", rewind_and_on},
       {"cancellation", cancellation})
