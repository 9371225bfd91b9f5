/* A model does not grow, in memory or streaming: decoding, prompts, sessions made and destroyed, going back,
 * and many short requests, through few slots, take no more memory in the end than after the first few.
 *
 * Memory is the resident set, where /proc tells it.  Growth of up to 1 MiB for 100 operations is let pass:
 * tests share the machine's allocator with the engine, and caches of a session grow with its length. */
#include "equal/specimen.h"

#include <stdlib.h>
#include <unistd.h>

#include "t.h"

enum { WARM_UP = 8, MIB = 1 << 20 };

/* Bytes, or 0 where it cannot be told. */
static int64_t resident_bytes(void) {
    long long size = 0, resident = 0;
    if (T_SANITIZED) return 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%lld %lld", &size, &resident) != 2) resident = 0;
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

typedef struct subject {
    specimen specimen;
    plumb_model *model;
    plumb_session *session; /* for operations that go on with one */
} subject;

static plumb_session *open_session(const subject *s) { return specimen_session(s->model, 64); }

static void eval(plumb_session *session, const int32_t *tokens, int64_t n) {
    const float *logits;
    plumb_error err;
    specimen_must(plumb_session_eval(session, tokens, n, &logits, &err), &err, "eval");
}

static void rewind_to(plumb_session *session, int64_t length) {
    plumb_error err;
    specimen_must(plumb_session_rewind(session, length, &err), &err, "rewind");
}

static void decode(subject *s, int64_t i) {
    eval(s->session, s->specimen.tokens + i % s->specimen.count, 1);
}

static void prefill(subject *s, int64_t i) {
    rewind_to(s->session, 0);
    eval(s->session, s->specimen.tokens + i % 6, 90);
}

static void create_and_destroy(subject *s, int64_t i) {
    plumb_session *session = open_session(s);
    eval(session, s->specimen.tokens + i % 50, 40);
    plumb_session_destroy(session);
}

static void short_request(subject *s, int64_t i) {
    rewind_to(s->session, i % 2);
    int64_t length = plumb_session_length(s->session);
    eval(s->session, s->specimen.tokens + (i * 7) % 90, 2 - length);
}

/* Two conversations in turn, with a common beginning. */
static void sync_to(subject *s, int64_t i) {
    const float *logits;
    plumb_error err;
    int32_t tokens[60];
    for (int n = 0; n < 60; n++) tokens[n] = s->specimen.tokens[n < 40 ? n : n + (int)(i % 3)];
    specimen_must(plumb_session_sync(s->session, tokens, 50 + i % 10, &logits, NULL, &err), &err, "sync");
}

static void resize(subject *s, int64_t i) {
    plumb_error err;
    specimen_must(plumb_model_set_cache(s->model, 0, 1 + i * 5 % 16, &err), &err, "resize");
    short_request(s, i);
}

static const struct {
    const char *name;
    void (*operation)(subject *s, int64_t i);
    int64_t count;
    bool streaming;
} cases[] = {
    {"decode steps", decode, 256, false}, {"prefills", prefill, 64, false},
    {"sessions", create_and_destroy, 64, false}, {"syncs", sync_to, 500, false},
    {"short requests", short_request, 10000, false},
    {"streamed decode steps", decode, 256, true}, {"streamed prefills", prefill, 64, true},
    {"streamed sessions", create_and_destroy, 32, true},
    {"streamed short requests", short_request, 2000, true}, {"resizes", resize, 200, true},
};

static void nothing_grows(void) {
    if (resident_bytes() == 0)
        printf("skipped: growth is not measured here (no /proc, or a sanitizer that keeps memory)\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        subject s = {.specimen = specimen_open(BUILD_DIR "/checkpoints", "tiny")};
        const plumb_model_options options = {.streaming = cases[i].streaming, .cache_experts = 4,
                                             .threads = 1};
        plumb_error err;
        specimen_must(plumb_model_open(s.specimen.folder, &options, &s.model, &err), &err, "open");
        s.session = open_session(&s);
        int64_t before = 0, count = T_SANITIZED ? WARM_UP + 8 : cases[i].count;
        for (int64_t n = 0; n < count; n++) {
            if (n == WARM_UP) before = resident_bytes();
            cases[i].operation(&s, n);
        }
        int64_t grown = resident_bytes() - before, most = MIB * (count + 99) / 100;
        T_CHECK(grown <= most, "%" PRId64 " %s: %" PRId64 " bytes more", count, cases[i].name, grown);
        plumb_stream_stats stats;
        plumb_model_get_stream_stats(s.model, &stats);
        if (cases[i].streaming)
            T_CHECK(stats.experts_held <= stats.expert_slots && stats.misses > 4, "%s: %" PRId64 " misses",
                    cases[i].name, stats.misses);
        printf("%" PRId64 " %s: %" PRId64 " KiB more after the first %d\n", count, cases[i].name,
               grown / 1024, (int)WARM_UP);
        plumb_session_destroy(s.session);
        plumb_model_close(s.model);
        specimen_close(&s.specimen);
    }
}

T_MAIN({"nothing_grows", nothing_grows})
