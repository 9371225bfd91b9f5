/* A network that runs ahead of the device, and stops at experts that are missing: what goes wrong in between
 * leaves nothing to the next batch, and what it tells is what the CPU tells.
 *
 * A cache of a few experts more than a token needs: most layers find theirs, some do not. */
#include "engine/engine.h"
#include "metal/equal/metal_model.h"

#include <pthread.h>
#include <stdlib.h>

#include "metal/fake/fake_metal.h"
#include "t.h"

enum { SLOTS = 13, ROWS = 6, END = 16 };

static specimen tiny;
static int32_t other_tokens[END];
static float *reference, *other_reference;

static float *logits_by_cpu(const int32_t *tokens) {
    float *logits = specimen_logits(&tiny);
    plumb_model *model = metal_model_open(&tiny, PLUMB_DEVICE_CPU, (plumb_model_options){.threads = 1});
    plumb_session *session = specimen_session(model, END);
    specimen_feed(session, tokens, END, tiny.vocab, logits);
    plumb_session_destroy(session);
    plumb_model_close(model);
    return logits;
}

static void set_up(void) {
    if (reference) return;
    tiny = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    for (int i = 0; i < END; i++) other_tokens[i] = (int32_t)((tiny.tokens[i] * 7 + 131 * i + 5) % tiny.vocab);
    reference = logits_by_cpu(tiny.tokens);
    other_reference = logits_by_cpu(other_tokens);
}

static plumb_model *open_cache(int64_t slots, plumb_device device) {
    return metal_model_open(&tiny, device, (plumb_model_options){.streaming = true, .cache_experts = slots,
                                                                 .no_read_ahead = true, .threads = 1});
}

static void check_bits(const float *expected, const float *logits, int64_t end, const char *when, int64_t n) {
    int64_t at = specimen_first_difference(&tiny, expected, logits, 0, end);
    T_CHECK(at < 0, "%s %" PRId64 ": position %" PRId64 " differs", when, n, at);
}

typedef struct destination {
    float *logits;
} destination;

static int keep(void *user, int64_t position, const float *row) {
    const destination *d = user;
    memcpy(d->logits + position * tiny.vocab, row, (size_t)tiny.vocab * sizeof *row);
    return 0;
}

static plumb_status advance(plumb_session *session, int64_t end, float *logits, plumb_error *err) {
    int64_t begin = plumb_session_length(session);
    destination d = {logits};
    return plumb_session_eval_all(session, tiny.tokens + begin, end - begin, keep, &d, err);
}

/* ---- Batches that end early ------------------------------------------------------------------------ */

static int lose_patience(void *user, int64_t done, int64_t total) {
    (void)done, (void)total;
    return --*(int64_t *)user == 0;
}

/* Cancelled at every question, while the device may have stopped; then other tokens, as many of them. */
static void cancelled_before_a_miss_is_told(void) {
    set_up();
    metal_delays(1, 0);
    float *logits = specimen_logits(&tiny);
    plumb_model *model = open_cache(SLOTS, PLUMB_DEVICE_METAL);
    int64_t left = 0;
    const plumb_session_options options = {.progress = lose_patience, .progress_user = &left};
    plumb_session *session = NULL;
    plumb_error err;
    specimen_must(plumb_session_create(model, &options, &session, &err), &err, "session");
    plumb_status status = PLUMB_ERROR_CANCELLED;
    for (int64_t most = 1; status == PLUMB_ERROR_CANCELLED; most++) {
        left = most;
        status = plumb_session_eval(session, tiny.tokens, ROWS, NULL, &err);
        T_CHECK(status == PLUMB_OK || status == PLUMB_ERROR_CANCELLED, "status %d", (int)status);
        left = 0;
        specimen_must(plumb_session_rewind(session, 0, &err), &err, "rewind");
        specimen_feed(session, other_tokens, ROWS, tiny.vocab, logits);
        check_bits(other_reference, logits, ROWS, "cancelled at", most);
        specimen_must(plumb_session_rewind(session, 0, &err), &err, "rewind");
        T_CHECK(most < 100, "never done");
        if (most == 100) break;
    }
    plumb_session_destroy(session);
    plumb_model_close(model);
    CHECK_VALIDATION("cancelled");
    free(logits);
}

/* A prompt and two tokens; each request that fails is made again.  Returns how many failed. */
static int run_again_and_again(plumb_session *session, float *logits, int64_t nth) {
    static const int64_t ends[] = {2, 3, 4};
    plumb_error err;
    int failed = 0;
    specimen_must(plumb_session_rewind(session, 0, &err), &err, "rewind");
    memset(logits, 0, (size_t)(END * tiny.vocab) * sizeof *logits);
    for (int i = 0; i < 3; i++) {
        int64_t begin = plumb_session_length(session);
        plumb_status status = advance(session, ends[i], logits, &err);
        if (status == PLUMB_OK) continue;
        failed++;
        T_CHECK((status == PLUMB_ERROR_IO || status == PLUMB_ERROR_MEMORY) && err.found[0] &&
                    plumb_session_length(session) == begin,
                "commit %" PRId64 ": status %d, length %" PRId64, nth, (int)status,
                plumb_session_length(session));
        status = advance(session, ends[i], logits, &err);
        T_CHECK(status == PLUMB_OK, "commit %" PRId64 ": again: %s %s", nth, err.field, err.found);
        if (status != PLUMB_OK) return failed;
    }
    check_bits(reference, logits, ends[2], "failed commit", nth);
    return failed;
}

/* Every command buffer of a run fails once. */
static void every_commit_fails(void) {
    set_up();
    static const int64_t codes[] = {3, 8}; /* a page fault, no memory */
    float *logits = specimen_logits(&tiny);
    plumb_model *model = open_cache(SLOTS, PLUMB_DEVICE_METAL);
    plumb_session *session = specimen_session(model, END);
    int64_t nth = 1;
    for (int failed = 1; failed > 0 && nth < 1000; nth++) {
        fake_metal_options options = fake_metal_defaults();
        options.seed = (uint64_t)nth;
        options.litters = true;
        options.fail_commit = nth;
        options.fail_code = codes[nth % 2];
        options.fail_signals = nth % 4 < 2;
        fake_metal_configure(&options);
        failed = run_again_and_again(session, logits, nth);
        T_CHECK(failed <= 1, "commit %" PRId64 ": %d requests failed", nth, failed);
        CHECK_VALIDATION("commits");
        fake_metal_settle();
        T_CHECK(fake_metal_count().autoreleased == 0, "commit %" PRId64 ": something is left", nth);
    }
    T_CHECK(nth > 18 && nth < 1000, "%" PRId64 " commits", nth); /* three requests of six layers */
    plumb_session_destroy(session);
    plumb_model_close(model);
    free(logits);
}

/* There is memory for so much and no more: an error, or the right bits; with memory, the right bits. */
static void memory_for_so_much(void) {
    set_up();
    float *logits = specimen_logits(&tiny);
    int errors = 0, runs = 0;
    for (int64_t more = 0; runs == 0 && more < 400; more++) {
        metal_delays(3, 0);
        plumb_model *model = open_cache(SLOTS, PLUMB_DEVICE_METAL);
        fake_metal_options options = fake_metal_defaults();
        options.memory_bytes = (uint64_t)(fake_metal_count().live_bytes + more * more * 1000);
        fake_metal_configure(&options);
        plumb_session *session = NULL;
        plumb_error err = {0};
        const plumb_session_options as_usual = {.context = END};
        plumb_status status = plumb_session_create(model, &as_usual, &session, &err);
        if (status == PLUMB_OK) status = advance(session, ROWS, logits, &err);
        if (status == PLUMB_OK) runs++;
        else {
            errors++;
            T_CHECK(status == PLUMB_ERROR_MEMORY && err.found[0], "%" PRId64 ": status %d", more, (int)status);
        }
        if (status == PLUMB_OK) check_bits(reference, logits, ROWS, "little memory", more);
        metal_delays(4, 0);
        if (!session) session = specimen_session(model, END);
        specimen_must(advance(session, ROWS + 2, logits, &err), &err, "with memory");
        check_bits(reference, logits, ROWS + 2, "memory again", more);
        plumb_session_destroy(session);
        plumb_model_close(model);
        CHECK_VALIDATION("memory");
    }
    T_CHECK(errors > 5 && runs > 0, "%d errors, %d runs", errors, runs);
    free(logits);
}

/* ---- What is told ---------------------------------------------------------------------------------- */

enum { MOST_ROUTES = 4096 };

typedef struct routes {
    struct {
        int64_t position, layer;
        int32_t ids[8];
    } seen[MOST_ROUTES];
    int n;
} routes;

static void note_route(void *user, int64_t position, int64_t layer, const int32_t *ids, int64_t n) {
    routes *r = user;
    if (r->n == MOST_ROUTES || n > 8) exit(1);
    r->seen[r->n].position = position;
    r->seen[r->n].layer = layer;
    memcpy(r->seen[r->n++].ids, ids, (size_t)n * sizeof *ids);
}

typedef struct told {
    routes routes;
    plumb_stream_stats stats;
    uint32_t uses[6 * 8];
} told;

/* A prompt, tokens one by one, and the same text again. */
static void listen(plumb_device device, int64_t slots, told *all) {
    memset(all, 0, sizeof *all);
    plumb_model *model = metal_model_open(
        &tiny, device, (plumb_model_options){.streaming = true, .cache_experts = slots, .no_read_ahead = true,
                                             .threads = 1, .routes = note_route, .routes_user = &all->routes});
    float *logits = specimen_logits(&tiny);
    for (int round = 0; round < 2; round++) {
        plumb_session *session = specimen_session(model, END);
        plumb_error err;
        specimen_must(plumb_session_eval(session, tiny.tokens, ROWS, NULL, &err), &err, "prompt");
        for (int64_t end = ROWS + 1; end <= END; end++) specimen_advance(&tiny, session, end, logits);
        plumb_session_destroy(session);
    }
    plumb_model_get_stream_stats(model, &all->stats);
    plumb__expert_cache_uses(plumb__source_cache(model->source), all->uses);
    plumb_model_close(model);
    free(logits);
}

/* Every layer once and in order, with the CPU's experts; hits, misses and uses are the CPU's. */
static void told_as_by_the_cpu(void) {
    set_up();
    static const int64_t slots[] = {SLOTS, 20, 48, 5};
    told *cpu = malloc(sizeof *cpu), *gpu = malloc(sizeof *gpu);
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        metal_delays(i + 1, 20);
        listen(PLUMB_DEVICE_CPU, slots[i], cpu);
        listen(PLUMB_DEVICE_METAL, slots[i], gpu);
        T_CHECK(cpu->routes.n > 100 && !memcmp(&cpu->routes, &gpu->routes, sizeof cpu->routes),
                "%" PRId64 " slots: %d routes, the CPU %d", slots[i], gpu->routes.n, cpu->routes.n);
        T_CHECK(cpu->stats.hits == gpu->stats.hits && cpu->stats.misses == gpu->stats.misses,
                "%" PRId64 " slots: %" PRId64 " hits, %" PRId64 " misses, the CPU %" PRId64 ", %" PRId64, slots[i],
                gpu->stats.hits, gpu->stats.misses, cpu->stats.hits, cpu->stats.misses);
        T_CHECK(!memcmp(cpu->uses, gpu->uses, sizeof cpu->uses), "%" PRId64 " slots: uses", slots[i]);
        CHECK_VALIDATION("told");
    }
    free(cpu);
    free(gpu);
}

/* ---- Slots that come and go ------------------------------------------------------------------------- */

/* The cache grows and shrinks between batches, below a layer too. */
static void sizes_between_batches(void) {
    set_up();
    metal_delays(5, 0);
    static const int64_t slots[] = {48, 12, 13, 3, 20, 1, 48, 2, 14, 12};
    float *logits = specimen_logits(&tiny);
    plumb_model *model = open_cache(SLOTS, PLUMB_DEVICE_METAL);
    plumb_error err;
    for (int round = 0; round < 2; round++) {
        plumb_session *session = specimen_session(model, END);
        specimen_advance(&tiny, session, ROWS, logits);
        for (int i = 0; ROWS + i < END; i++) {
            specimen_must(plumb_model_set_cache(model, 0, slots[i], &err), &err, "set_cache");
            plumb_stream_stats stats; /* at once: nothing is held between batches */
            plumb_model_get_stream_stats(model, &stats);
            T_CHECK(stats.expert_slots == slots[i], "%" PRId64 " slots, not %" PRId64, stats.expert_slots, slots[i]);
            specimen_advance(&tiny, session, ROWS + 1 + i, logits);
            T_CHECK(fake_metal_count().live_buffers < 1000, "buffers");
        }
        plumb_session_destroy(session);
        check_bits(reference, logits, END, "round", round);
    }
    plumb_model_close(model);
    CHECK_VALIDATION("sizes");
    free(logits);
}

/* Chunks of a prompt of which upper layers get a few rows only, or none: layers that stop half way, with
 * experts missing before and after them. */
static void layers_left_out(void) {
    set_up();
    metal_delays(8, 0);
    enum { LONG = 40 };
    float *logits = specimen_logits(&tiny), *expected = metal_reference(&tiny);
    for (int64_t chunk = 9; chunk <= 13; chunk += 2) {
        plumb_model *model = open_cache(48, PLUMB_DEVICE_METAL);
        plumb_session *session = specimen_session(model, chunk);
        const float *row = NULL;
        plumb_error err;
        specimen_must(plumb_session_eval(session, tiny.tokens, LONG, &row, &err), &err, "prompt");
        memcpy(logits + (LONG - 1) * tiny.vocab, row, (size_t)tiny.vocab * sizeof *row);
        specimen_advance(&tiny, session, LONG + 2, logits);
        int64_t at = specimen_first_difference(&tiny, expected, logits, LONG - 1, LONG + 2);
        T_CHECK(at < 0, "chunks of %" PRId64 ": position %" PRId64 " differs", chunk, at);
        plumb_session_destroy(session);
        plumb_model_close(model);
        CHECK_VALIDATION("left out");
    }
    free(logits);
    free(expected);
}

/* ---- Threads ---------------------------------------------------------------------------------------- */

typedef struct part {
    plumb_model *model;
    const int32_t *tokens;
    float *logits;
} part;

static void *take_part(void *arg) {
    const part *p = arg;
    for (int round = 0; round < 2; round++) {
        plumb_session *session = specimen_session(p->model, 4);
        for (int64_t end = 4; end <= END; end += 3) specimen_feed(session, p->tokens, end, tiny.vocab, p->logits);
        plumb_session_destroy(session);
    }
    return NULL;
}

/* Two models, two sessions of each, four threads; caches change their size meanwhile. */
static void threads(void) {
    set_up();
    metal_delays(6, 20);
    enum { THREADS = 4 };
    plumb_model *model[2] = {open_cache(SLOTS, PLUMB_DEVICE_METAL),
                             metal_model_open(&tiny, PLUMB_DEVICE_METAL, (plumb_model_options){0})};
    pthread_t thread[THREADS];
    part parts[THREADS];
    for (int t = 0; t < THREADS; t++) {
        parts[t] = (part){model[t % 2], t < 2 ? tiny.tokens : other_tokens, specimen_logits(&tiny)};
        if (pthread_create(&thread[t], NULL, take_part, &parts[t]) != 0) exit(1);
    }
    for (int t = 0; t < THREADS; t++) {
        (void)pthread_join(thread[t], NULL);
        check_bits(t < 2 ? reference : other_reference, parts[t].logits, END, "thread", t);
        free(parts[t].logits);
    }
    plumb_model_close(model[0]);
    plumb_model_close(model[1]);
    CHECK_VALIDATION("threads");
}

T_MAIN({"cancelled_before_a_miss_is_told", cancelled_before_a_miss_is_told},
       {"every_commit_fails", every_commit_fails}, {"memory_for_so_much", memory_for_so_much},
       {"told_as_by_the_cpu", told_as_by_the_cpu}, {"sizes_between_batches", sizes_between_batches},
       {"layers_left_out", layers_left_out}, {"threads", threads})
