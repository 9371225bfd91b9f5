/* Same tokens, same bits from converted files: every form of the dense weights, held in memory, in a
 * cache and in layer buffers, with both readers.
 *
 * The reference is computed from the released folder, in memory. */
#include "convert/convert.h"
#include "engine/engine.h"
#include "equal/specimen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t.h"

#define FOLDER BUILD_DIR "/streaming_converted"

/* The converted file in the place of the folder. */
static specimen convert(const specimen *released, int dense) {
    specimen s = *released;
    plumb_error err;
    plumb_convert_result result;
    const plumb_convert_options options = {.dense = (plumb_dense)dense, .force = true, .jobs = 2};
    if (mkdir(FOLDER, 0777) != 0 && errno != EEXIST) exit(1);
    snprintf(s.folder, sizeof s.folder, FOLDER "/%s-%s.gguf", s.name, plumb__dense_name(dense));
    specimen_must(plumb__convert(released->folder, s.folder, &options, &result, &err), &err,
                  "convert");
    return s;
}

static const struct {
    const char *name;
    bool streaming, layer_buffers;
    int64_t slots; /* 0: all */
    plumb_reader_kind reader;
    int threads;
    int64_t chunk;
    bool large; /* for the larger model too, in every form (the others in one) */
} cases[] = {
    {"in memory", false, false, 0, PLUMB_READER_BEST, 2, 520, true},
    {"one slot, pread", true, false, 1, PLUMB_READER_PREAD, 2, 520, false},
    {"one slot, io_uring", true, false, 1, PLUMB_READER_URING, 1, 130, false},
    {"cache, pread", true, false, 19, PLUMB_READER_PREAD, 1, 64, false},
    {"cache, io_uring", true, false, 19, PLUMB_READER_URING, 2, 260, true},
    {"layer buffers, pread", true, true, 0, PLUMB_READER_PREAD, 2, 260, false},
    {"layer buffers, io_uring", true, true, 0, PLUMB_READER_URING, 2, 520, false},
};
enum { DECODED = 5, CASES = sizeof cases / sizeof cases[0] };

/* NULL where this system has no such reader. */
static plumb_model *open_model(const specimen *s, int c) {
    const plumb_reading reading = {.reader = cases[c].reader};
    const plumb_model_options options = {.streaming = cases[c].streaming,
                                         .cache_experts = cases[c].slots,
                                         .layer_buffers = cases[c].layer_buffers,
                                         .threads = cases[c].threads};
    plumb_model *model = NULL;
    plumb_error err;
    plumb_status status = plumb__model_open_reading(s->folder, &options, &reading, &model, &err);
    if (status == PLUMB_ERROR_UNSUPPORTED && cases[c].reader == PLUMB_READER_URING) return NULL;
    specimen_must(status, &err, s->folder);
    return model;
}

static void run_case(const specimen *s, int c, const char *dense, const float *reference) {
    plumb_model *model = open_model(s, c);
    if (!model) {
        printf("skipped: %s: no io_uring here\n", cases[c].name);
        return;
    }
    plumb_session *session = specimen_session(model, cases[c].chunk);
    float *logits = specimen_logits(s);
    specimen_advance(s, session, s->count - DECODED, logits);
    for (int64_t p = s->count - DECODED + 1; p <= s->count; p++)
        specimen_advance(s, session, p, logits);
    int64_t at = specimen_first_difference(s, reference, logits, 0, s->count);
    T_CHECK(at < 0, "%s, %s, %s: position %" PRId64 " differs", s->name, dense, cases[c].name, at);
    plumb_stream_stats stats;
    plumb_model_get_stream_stats(model, &stats);
    T_CHECK(stats.misses > 0 && stats.unpack_seconds > 0, "%s, %s: %" PRId64 " misses, %g s", dense,
            cases[c].name, stats.misses, stats.unpack_seconds);
    T_CHECK(stats.engram_distinct - stats.engram_cached == stats.engram_reads,
            "%s, %s: %" PRId64 " reads for %" PRId64 " rows", dense, cases[c].name,
            stats.engram_reads, stats.engram_distinct - stats.engram_cached);
    free(logits);
    plumb_session_destroy(session);
    plumb_model_close(model);
}

static void every_form(const char *name, bool large) {
    specimen released = specimen_open(BUILD_DIR "/checkpoints", name);
    float *reference = specimen_logits(&released);
    plumb_model *model = specimen_model(&released, 2, NULL);
    plumb_session *session = specimen_session(model, released.count);
    specimen_advance(&released, session, released.count, reference);
    plumb_stream_stats stats;
    plumb_model_get_stream_stats(model, &stats);
    T_CHECK(stats.unpack_seconds == 0, "%g s of unpacking released files", stats.unpack_seconds);
    plumb_session_destroy(session);
    plumb_model_close(model);
    printf("%s: XXH3-64 %016" PRIx64 "\n", name, specimen_hash(&released, reference, released.count));
    for (int dense = 0; dense < PLUMB_DENSE_COUNT; dense++) {
        specimen s = convert(&released, dense);
        for (int c = 0; c < CASES; c++)
            if (!large || cases[c].large || dense == PLUMB_DENSE_F32)
                run_case(&s, c, plumb__dense_name(dense), reference);
        (void)unlink(s.folder);
    }
    free(reference);
    specimen_close(&released);
}

static void every_form_of_tiny(void) { every_form("tiny", false); }
static void every_form_of_deep40(void) { every_form("deep40", true); }

T_MAIN({"every_form_of_tiny", every_form_of_tiny}, {"every_form_of_deep40", every_form_of_deep40})
