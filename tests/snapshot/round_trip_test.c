/* What is saved comes back: tokens, sampling, note, resume points; what follows has the bits of a fresh
 * session.  Equal sessions give equal files, and the file has the size that was promised. */
#include "engine/engine.h"
#include "snapshot/files.h"

#include <stdlib.h>
#include <unistd.h>

#include "t.h"

/* At each length of tiny: restored into a session that holds something else, by another model. */
static void every_length_of_tiny(void) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    plumb_model *model = specimen_model(&s, 1, NULL), *other = specimen_model(&s, 2, "portable");
    plumb_session *source = specimen_session(model, 16), *target = specimen_session(other, 5);
    float *fresh = specimen_logits(&s), *logits = specimen_logits(&s);
    plumb_session *reference = specimen_session(model, 0);
    specimen_advance(&s, reference, s.count, fresh);
    const char *path = snapshot_path("round_trip.tiny"), *again = snapshot_path("round_trip.again");
    for (int64_t length = 0; length < s.count; length++) {
        if (length > 0) specimen_advance(&s, source, length, logits);
        snapshot_save(source, path, NULL);
        snapshot_restore(target, path);
        T_CHECK(plumb_session_length(target) == length, "%" PRId64, length);
        T_CHECK(length == 0 || !memcmp(plumb_session_tokens(target), s.tokens, (size_t)length * 4),
                "tokens of %" PRId64, length);
        snapshot_save(target, again, NULL);
        T_CHECK(files_same(path, again), "the same file at %" PRId64, length);
        int64_t end = length % 8 == 1 ? s.count : length + 1;
        specimen_advance(&s, target, end, logits);
        int64_t first = specimen_first_difference(&s, fresh, logits, length, end);
        T_CHECK(first < 0, "length %" PRId64 ": position %" PRId64 " differs", length, first);
    }
    (void)unlink(path);
    (void)unlink(again);
    free(fresh);
    free(logits);
    plumb_session_destroy(reference);
    plumb_session_destroy(source);
    plumb_session_destroy(target);
    plumb_model_close(model);
    plumb_model_close(other);
    specimen_close(&s);
}

static void extras(void) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    plumb_model *model = specimen_model(&s, 1, NULL);
    plumb_session *session = specimen_session(model, 16);
    float *logits = specimen_logits(&s);
    specimen_advance(&s, session, 21, logits);
    static const char note[] = "[{\"role\":\"user\"}]\0\xff behind a zero";
    const plumb_logit_bias bias[] = {{3, -1.5f}, {7, 2.25f}};
    const plumb_sampling sampling = {.temperature = 0.7f, .top_k = 40, .top_p = 0.9f, .min_p = 0.05f,
                                     .seed = 0x123456789abcdef0u, .bias = bias, .n_bias = 2};
    const char *path = snapshot_path("round_trip.extras");
    snapshot_save(session, path, &(plumb_snapshot_extra){.sampling = &sampling, .note = note,
                                                .note_bytes = sizeof note});
    plumb_snapshot *snapshot = snapshot_open(path);
    const plumb_sampling *read = plumb_snapshot_sampling(snapshot);
    T_CHECK(read && read->temperature == 0.7f && read->top_k == 40 && read->top_p == 0.9f &&
                read->min_p == 0.05f && read->seed == sampling.seed && read->n_bias == 2 &&
                read->bias[0].token == 3 && read->bias[0].bias == -1.5f &&
                read->bias[1].token == 7 && read->bias[1].bias == 2.25f, "sampling");
    int64_t bytes = 0;
    const void *read_note = plumb_snapshot_note(snapshot, &bytes);
    T_CHECK(bytes == sizeof note && read_note && !memcmp(read_note, note, sizeof note), "note");
    T_CHECK(plumb_snapshot_length(snapshot) == 21, "length");
    T_CHECK(!memcmp(plumb_snapshot_tokens(snapshot), s.tokens, 21 * 4), "tokens");
    plumb_snapshot_close(snapshot);

    snapshot_save(session, path, &(plumb_snapshot_extra){.note = "", .note_bytes = 0});
    snapshot = snapshot_open(path);
    T_CHECK(!plumb_snapshot_sampling(snapshot), "no sampling");
    T_CHECK(plumb_snapshot_note(snapshot, &bytes) && bytes == 0, "an empty note");
    plumb_snapshot_close(snapshot);
    snapshot_save(session, path, NULL);
    snapshot = snapshot_open(path);
    T_CHECK(!plumb_snapshot_note(snapshot, NULL), "no note");
    plumb_snapshot_close(snapshot);
    (void)unlink(path);
    free(logits);
    plumb_session_destroy(session);
    plumb_model_close(model);
    specimen_close(&s);
}

/* A restored session goes back to the places of the one that was saved, with their bits. */
static void resume_points(void) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    plumb_model *model = specimen_model(&s, 1, NULL);
    plumb_session *source = specimen_session(model, 16), *target = specimen_session(model, 16);
    float *fresh = specimen_logits(&s), *logits = specimen_logits(&s);
    static const int64_t ends[] = {3, 8, 40, 77};
    enum { ENDS = sizeof ends / sizeof ends[0] };
    for (int i = 0; i < ENDS; i++) specimen_advance(&s, source, ends[i], fresh);
    const char *with = snapshot_path("round_trip.with"), *without = snapshot_path("round_trip.without"),
               *again = snapshot_path("round_trip.again");
    snapshot_save(source, with, &(plumb_snapshot_extra){.resume_points = true});
    snapshot_save(source, without, NULL);
    snapshot_restore(target, without);
    T_CHECK(target->n_points == 1 && target->point[0].length == 77, "%d points", target->n_points);
    snapshot_restore(target, with);
    T_CHECK(target->n_points == source->n_points && source->n_points >= 3, "%d points of %d",
            target->n_points, source->n_points);
    for (int i = 0; i < target->n_points && i < source->n_points; i++)
        T_CHECK(target->point[i].length == source->point[i].length, "%" PRId64 " for %" PRId64,
                target->point[i].length, source->point[i].length);
    snapshot_save(target, again, &(plumb_snapshot_extra){.resume_points = true});
    T_CHECK(files_same(with, again), "the same file");
    for (int i = ENDS - 1; i >= 0; i--) {
        plumb_error err;
        specimen_must(plumb_session_rewind(target, ends[i], &err), &err, "rewind");
        specimen_advance(&s, target, ends[i] + 7, logits);
        plumb_session *reference = specimen_session(model, 0);
        specimen_advance(&s, reference, ends[i] + 7, fresh);
        T_CHECK(specimen_first_difference(&s, fresh, logits, ends[i], ends[i] + 7) < 0,
                "from %" PRId64, ends[i]);
        plumb_session_destroy(reference);
    }
    (void)unlink(with);
    (void)unlink(without);
    (void)unlink(again);
    free(fresh);
    free(logits);
    plumb_session_destroy(source);
    plumb_session_destroy(target);
    plumb_model_close(model);
    specimen_close(&s);
}

/* `target` continues what it holds; its rows must be those of a fresh session. */
static void check_continues(const specimen *s, plumb_session *target, int64_t end,
                            const float *fresh, const char *how) {
    float *logits = specimen_logits(s);
    int64_t begin = plumb_session_length(target);
    specimen_advance(s, target, end, logits);
    int64_t at = specimen_first_difference(s, fresh, logits, begin, end);
    T_CHECK(at < 0, "%s: from %" PRId64 ", position %" PRId64 " differs", how, begin, at);
    free(logits);
}

static void go_back(plumb_session *s, int64_t length) {
    plumb_error err;
    specimen_must(plumb_session_rewind(s, length, &err), &err, "rewind");
}

/* Saved just after a step back, whose rings are those of one position more: what follows is right, and so is
 * what follows another step, which must not be taken the short way. */
static void after_a_step_back(void) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    plumb_model *model = specimen_model(&s, 1, NULL);
    plumb_session *source = specimen_session(model, 16), *target = specimen_session(model, 16);
    float *fresh = specimen_logits(&s), *ignored = specimen_logits(&s);
    const char *path = snapshot_path("round_trip.stepped"), *again = snapshot_path("round_trip.again");
    specimen_advance(&s, target, s.count, fresh);
    for (int64_t length = 2; length <= 40; length++) {
        go_back(source, 0);
        specimen_advance(&s, source, length, ignored);
        go_back(source, length - 1);
        T_CHECK(source->stepped_back, "length %" PRId64, length);
        snapshot_save(source, path, NULL);
        snapshot_restore(target, path);
        T_CHECK(target->stepped_back && target->n_points == 0, "length %" PRId64, length);
        snapshot_save(target, again, NULL);
        T_CHECK(files_same(path, again), "the same file at %" PRId64, length);
        check_continues(&s, target, length + 9, fresh, "after the step");
        snapshot_restore(target, path);
        go_back(target, length - 2);
        check_continues(&s, target, length + 9, fresh, "after another");
    }
    (void)unlink(path);
    (void)unlink(again);
    free(fresh);
    free(ignored);
    plumb_session_destroy(source);
    plumb_session_destroy(target);
    plumb_model_close(model);
    specimen_close(&s);
}

/* The same prompt after a restart: one token is evaluated. */
static void resend_after_restart(void) {
    static const int64_t lengths[] = {1, 2, 7, 8, 9, 40, 41, 95};
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    plumb_model *model = specimen_model(&s, 1, NULL);
    plumb_session *source = specimen_session(model, 16);
    float *fresh = specimen_logits(&s);
    const char *path = snapshot_path("round_trip.resend");
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        plumb_session *target = specimen_session(model, 16);
        const float *logits = NULL;
        plumb_sync_report report = {0};
        plumb_error err;
        specimen_advance(&s, source, lengths[i], fresh);
        snapshot_save(source, path, NULL);
        snapshot_restore(target, path);
        specimen_must(plumb_session_sync(target, s.tokens, lengths[i], &logits, &report, &err), &err,
                      "sync");
        T_CHECK(report.evaluated == 1 && report.cached == lengths[i] - 1 && report.replayed == 0,
                "%" PRId64 ": %" PRId64 " evaluated, %" PRId64 " replayed", lengths[i],
                report.evaluated, report.replayed);
        T_CHECK(!memcmp(logits, fresh + (lengths[i] - 1) * s.vocab, (size_t)s.vocab * sizeof *logits),
                "logits of %" PRId64, lengths[i]);
        plumb_session_destroy(target);
    }
    (void)unlink(path);
    free(fresh);
    plumb_session_destroy(source);
    plumb_model_close(model);
    specimen_close(&s);
}

/* The model's account of its sessions follows, and is zero when they are gone. */
static void accounts(void) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    plumb_model *model = specimen_model(&s, 1, NULL);
    plumb_session *source = specimen_session(model, 16), *target = specimen_session(model, 16);
    float *logits = specimen_logits(&s);
    specimen_advance(&s, source, 90, logits);
    const char *path = snapshot_path("round_trip.accounts");
    snapshot_save(source, path, NULL);
    int64_t promised = model->promised_bytes;
    snapshot_restore(target, path);
    T_CHECK(model->promised_bytes == promised, "promised");
    T_CHECK(model->session_bytes == source->counted_bytes + target->counted_bytes, "counted");
    T_CHECK(target->counted_bytes >= source->counted_bytes / 2, "%" PRId64 " of %" PRId64,
            target->counted_bytes, source->counted_bytes);
    (void)unlink(path);
    free(logits);
    plumb_session_destroy(source);
    plumb_session_destroy(target);
    T_CHECK(model->session_bytes == 0 && model->promised_bytes == 0, "nothing left");
    plumb_model_close(model);
    specimen_close(&s);
}

T_MAIN({"every_length_of_tiny", every_length_of_tiny}, {"extras", extras},
       {"resume_points", resume_points}, {"after_a_step_back", after_a_step_back},
       {"resend_after_restart", resend_after_restart}, {"accounts", accounts})
