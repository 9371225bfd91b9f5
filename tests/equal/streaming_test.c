/* Same tokens, same bits, wherever the experts come from: every number of slots, cache and ring, both
 * readers, read ahead or not, a cold start and a warm one, slots that come and go in the middle.
 *
 * The reference holds all experts in memory and is made in one call on one thread. */
#include "engine/engine.h"
#include "equal/specimen.h"

#include <stdlib.h>
#include <unistd.h>

#include "stream/hot_list.h"
#include "t.h"

typedef struct subject {
    specimen specimen;
    float *reference; /* [count][vocab] */
} subject;

static subject subjects[2];
enum { TINY, DEEP40, SUBJECTS };

static const subject *get_subject(int which) {
    static const char *const names[SUBJECTS] = {"tiny", "deep40"};
    subject *s = &subjects[which];
    if (s->reference) return s;
    s->specimen = specimen_open(BUILD_DIR "/checkpoints", names[which]);
    s->reference = specimen_logits(&s->specimen);
    plumb_model *model = specimen_model(&s->specimen, 1, NULL);
    plumb_session *session = specimen_session(model, s->specimen.count);
    specimen_advance(&s->specimen, session, s->specimen.count, s->reference);
    plumb_session_destroy(session);
    plumb_model_close(model);
    printf("%s: XXH3-64 %016" PRIx64 "\n", names[which],
           specimen_hash(&s->specimen, s->reference, s->specimen.count));
    return s;
}

static void check_all(const subject *s, const float *logits, const char *how) {
    int64_t at = specimen_first_difference(&s->specimen, s->reference, logits, 0, s->specimen.count);
    T_CHECK(at < 0, "%s, %s: position %" PRId64 " differs", s->specimen.name, how, at);
    T_CHECK(specimen_hash(&s->specimen, logits, s->specimen.count) ==
                specimen_hash(&s->specimen, s->reference, s->specimen.count),
            "%s, %s: hash", s->specimen.name, how);
}

/* NULL where this system has no such reader. */
static plumb_model *open_streaming(const subject *s, plumb_model_options options,
                                   plumb_reader_kind reader) {
    const plumb_reading reading = {.reader = reader};
    plumb_model *model = NULL;
    plumb_error err;
    options.streaming = true;
    plumb_status status =
        plumb__model_open_reading(s->specimen.folder, &options, &reading, &model, &err);
    if (status == PLUMB_ERROR_UNSUPPORTED && reader == PLUMB_READER_URING) return NULL;
    specimen_must(status, &err, "open");
    return model;
}

/* How many slots a case has, in words: the models differ. */
typedef enum slots { ONE, ONE_LAYER, ONE_TOKEN, HALF, TWO_LAYERS, ALL } slots;
static int64_t count_slots(plumb_model *model, slots how_many) {
    plumb_model_info info;
    plumb_model_get_info(model, &info);
    int64_t all = info.layers * info.experts;
    return how_many == ONE         ? 1
           : how_many == ONE_LAYER ? info.experts_per_token
           : how_many == ONE_TOKEN ? info.experts_per_token * info.layers
           : how_many == HALF      ? all / 2
           : how_many == TWO_LAYERS ? 2 * info.experts
                                : all;
}

static const struct {
    const char *name;
    slots slots;
    bool layer_buffers, no_read_ahead;
    plumb_reader_kind reader;
    int threads;
    int64_t chunk, decode_from; /* positions from here on come one at a time; 0: none */
} cases[] = {
    {"one slot", ONE, false, false, PLUMB_READER_BEST, 1, 200, 500},
    {"one slot, pread", ONE, false, true, PLUMB_READER_PREAD, 2, 520, 0},
    {"one layer's choice", ONE_LAYER, false, false, PLUMB_READER_PREAD, 1, 64, 480},
    {"one layer's choice, 7 threads", ONE_LAYER, false, true, PLUMB_READER_URING, 7, 520, 510},
    {"one token's choice", ONE_TOKEN, false, false, PLUMB_READER_URING, 2, 128, 440},
    {"half", HALF, false, false, PLUMB_READER_PREAD, 2, 520, 400},
    {"half, nothing read ahead", HALF, false, true, PLUMB_READER_URING, 1, 33, 500},
    {"all", ALL, false, false, PLUMB_READER_BEST, 7, 0, 400},
    {"layer buffers", ALL, true, false, PLUMB_READER_URING, 2, 520, 480},
    {"layer buffers, pread", HALF, true, false, PLUMB_READER_PREAD, 7, 100, 500},
    {"layer buffers, a ring of few", ONE_LAYER, true, false, PLUMB_READER_BEST, 1, 260, 490},
};

static void every_mode(int which) {
    enum { LEAST_DECODED = 20 };
    const subject *s = get_subject(which);
    plumb_model *sizes = specimen_model(&s->specimen, 1, NULL);
    for (size_t j = 0; j < sizeof cases / sizeof cases[0]; j++) {
        plumb_model *model =
            open_streaming(s,
                           (plumb_model_options){.cache_experts = count_slots(sizes, cases[j].slots),
                                                 .layer_buffers = cases[j].layer_buffers,
                                                 .no_read_ahead = cases[j].no_read_ahead,
                                                 .threads = cases[j].threads},
                           cases[j].reader);
        if (!model) {
            printf("skipped: %s: no io_uring here\n", cases[j].name);
            continue;
        }
        plumb_session *session = specimen_session(model, cases[j].chunk);
        float *logits = specimen_logits(&s->specimen);
        int64_t decode = cases[j].decode_from;
        if (decode > s->specimen.count - LEAST_DECODED) decode = s->specimen.count - LEAST_DECODED;
        if (decode > 0) specimen_advance(&s->specimen, session, decode, logits);
        for (int64_t p = plumb_session_length(session) + 1; decode > 0 && p < s->specimen.count; p++)
            specimen_advance(&s->specimen, session, p, logits);
        specimen_advance(&s->specimen, session, s->specimen.count, logits);
        check_all(s, logits, cases[j].name);
        plumb_stream_stats stats;
        plumb_model_get_stream_stats(model, &stats);
        int64_t expected = count_slots(sizes, cases[j].slots), two = count_slots(sizes, TWO_LAYERS);
        if (cases[j].layer_buffers && expected > two) expected = two;
        T_CHECK(stats.expert_slots == expected &&
                    stats.experts_held <= stats.expert_slots,
                "%s: %" PRId64 " slots", cases[j].name, stats.expert_slots);
        T_CHECK(stats.misses > 0 && stats.bytes_read >= stats.misses, "%s: nothing was read",
                cases[j].name);
        free(logits);
        plumb_session_destroy(session);
        plumb_model_close(model);
    }
    plumb_model_close(sizes);
}

static void every_mode_of_tiny(void) { every_mode(TINY); }
static void every_mode_of_deep40(void) { every_mode(DEEP40); }

/* Slots come and go between tokens, from one to all and back. */
static void live_resize(void) {
    const subject *s = get_subject(DEEP40);
    plumb_model *model =
        open_streaming(s, (plumb_model_options){.cache_experts = 40, .threads = 2},
                       PLUMB_READER_BEST);
    static const int64_t sizes[] = {1, 100000, 7, 241, 2, 300};
    plumb_session *session = specimen_session(model, 0);
    float *logits = specimen_logits(&s->specimen);
    plumb_error err;
    for (int64_t p = 0, step = 0; p < s->specimen.count; step++) {
        specimen_must(plumb_model_set_cache(model, 0, sizes[step % 6], &err), &err, "resize");
        p = step % 3 == 0 ? p + 40 : p + 1;
        if (p > s->specimen.count) p = s->specimen.count;
        specimen_advance(&s->specimen, session, p, logits);
    }
    check_all(s, logits, "live resize");
    free(logits);
    plumb_session_destroy(session);
    plumb_model_close(model);
}

/* The second run finds a hot list and fills its slots from it; a third is told not to. */
static void warm_start(void) {
    static const char list[] = BUILD_DIR "/streaming_test.hot";
    const subject *s = get_subject(DEEP40);
    (void)unlink(list);
    for (int run = 0; run < 3; run++) {
        plumb_model *model = open_streaming(
            s,
            (plumb_model_options){.cache_experts = 200, .hot_list = list, .cold = run == 2},
            PLUMB_READER_BEST);
        plumb_stream_stats stats;
        plumb_model_get_stream_stats(model, &stats);
        T_CHECK((stats.experts_held > 0) == (run == 1), "run %d: %" PRId64 " experts held", run,
                stats.experts_held);
        plumb_session *session = specimen_session(model, 0);
        float *logits = specimen_logits(&s->specimen);
        specimen_advance(&s->specimen, session, s->specimen.count, logits);
        check_all(s, logits, run == 1 ? "warm" : "cold");
        free(logits);
        plumb_session_destroy(session);
        plumb_model_close(model);
        T_CHECK(access(list, R_OK) == 0, "run %d: no list", run);
    }
}

/* Rows that chose each expert of tiny, by key. */
enum { TINY_LAYERS = 6, TINY_EXPERTS = 8, TINY_KEYS = TINY_LAYERS * TINY_EXPERTS };

static void count_route(void *user, int64_t position, int64_t layer, const int32_t *ids, int64_t n) {
    uint32_t *chosen = user;
    (void)position;
    for (int64_t i = 0; i < n; i++) chosen[layer * TINY_EXPERTS + ids[i]]++;
}

/* The list has what this run used, and half of what it said before. */
static void uses_fade(void) {
    static const char list[] = BUILD_DIR "/streaming_test_fade.hot";
    static const int64_t rows[] = {40, 40, 7, 1};
    const subject *s = get_subject(TINY);
    uint32_t expected[TINY_KEYS] = {0};
    (void)unlink(list);
    for (size_t run = 0; run < sizeof rows / sizeof rows[0]; run++) {
        uint32_t chosen[TINY_KEYS] = {0}, listed[TINY_KEYS];
        plumb_model *model =
            open_streaming(s,
                           (plumb_model_options){.cache_experts = 20, .hot_list = list, .threads = 1,
                                                 .routes = count_route, .routes_user = chosen},
                           PLUMB_READER_PREAD);
        plumb_session *session = specimen_session(model, 16);
        float *logits = specimen_logits(&s->specimen);
        specimen_advance(&s->specimen, session, rows[run], logits);
        free(logits);
        plumb_session_destroy(session);
        plumb_model_close(model);
        int differ = 0, used = 0;
        plumb_error err = {0};
        plumb_checkpoint *checkpoint = NULL;
        specimen_must(plumb__checkpoint_open(s->specimen.folder, NULL, NULL, &checkpoint, &err), &err,
                      "checkpoint");
        const plumb_model_config *config = plumb__checkpoint_config(checkpoint);
        T_CHECK(config->layers == TINY_LAYERS && config->experts == TINY_EXPERTS, "another shape");
        specimen_must(plumb__hot_list_read(list, config, listed, &err), &err, "list");
        plumb__checkpoint_close(checkpoint);
        for (int i = 0; i < TINY_KEYS; i++) {
            expected[i] = chosen[i] + expected[i] / 2;
            differ += listed[i] != expected[i];
            used += chosen[i] > 0;
        }
        T_CHECK(differ == 0 && used > 5, "run %zu: %d of %d differ, %d used", run, differ, TINY_KEYS,
                used);
    }
}

static int64_t little_memory(void) { return 0; }

/* When the system runs short of memory the cache shrinks to what a layer needs, and no bit changes. */
static void memory_pressure(void) {
    const subject *s = get_subject(DEEP40);
    plumb_model *model =
        open_streaming(s, (plumb_model_options){.memory_bytes = INT64_C(2000000000)},
                       PLUMB_READER_BEST);
    plumb_session *session = specimen_session(model, 0);
    float *logits = specimen_logits(&s->specimen);
    plumb_stream_stats before, after;
    specimen_advance(&s->specimen, session, s->specimen.count / 2, logits);
    plumb_model_get_stream_stats(model, &before);
    model->available_memory = little_memory;
    specimen_advance(&s->specimen, session, s->specimen.count, logits);
    plumb_model_get_stream_stats(model, &after);
    plumb_model_info info;
    plumb_model_get_info(model, &info);
    T_CHECK(before.experts_held > 2 * info.experts_per_token &&
                after.expert_slots == 2 * info.experts_per_token,
            "%" PRId64 " held, then %" PRId64 " slots", before.experts_held, after.expert_slots);
    check_all(s, logits, "memory pressure");
    free(logits);
    plumb_session_destroy(session);
    plumb_model_close(model);
}

T_MAIN({"every_mode_of_tiny", every_mode_of_tiny}, {"every_mode_of_deep40", every_mode_of_deep40},
       {"live_resize", live_resize}, {"warm_start", warm_start}, {"uses_fade", uses_fade},
       {"memory_pressure", memory_pressure})
