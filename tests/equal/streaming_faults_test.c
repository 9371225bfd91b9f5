/* A streaming model whose files answer badly, at every read of a run.  What can be repaired (short reads,
 * interruptions, delays, answers in another order) changes no bit.  What cannot (an error of the drive, a
 * file that ends) costs the request, which names file, tensor and offset; the session stays where it was,
 * and the same request made again has the right bits.  No slot is lost on the way.
 *
 * A reader that spoils its answers stands between the files and the engine; the reference holds all
 * experts in memory. */
#include "engine/engine.h"
#include "equal/specimen.h"

#include <errno.h>
#include <stdlib.h>

#include "stream/expert_cache_parts.h"
#include "stream/faulty_reader.h"
#include "t.h"

enum {
    PROMPT = 4,
    END = 6,
    SLOTS = 5,
    COARSER = T_SANITIZED ? 11 : 1 /* not every read where each run takes long */
};

/* ---- Subjects ---------------------------------------------------------------------------------- */

typedef struct subject {
    specimen specimen;
    float *reference; /* [END][vocab] */
} subject;

static const subject *get_subject(const char *name) {
    static subject subjects[2];
    subject *s = &subjects[!strcmp(name, "deep40")];
    if (s->reference) return s;
    s->specimen = specimen_open(BUILD_DIR "/checkpoints", name);
    s->reference = specimen_logits(&s->specimen);
    plumb_model *model = specimen_model(&s->specimen, 1, NULL);
    plumb_session *session = specimen_session(model, END);
    specimen_advance(&s->specimen, session, END, s->reference);
    plumb_session_destroy(session);
    plumb_model_close(model);
    return s;
}

typedef enum payload { ENGRAM_ROWS, EXPERTS } payload;

typedef struct rig {
    const subject *subject;
    plumb_model *model;
    plumb_session *session;
    plumb_reader *faulty[2]; /* by payload, in the order in which the source opens them */
    int n_faulty;
    float *logits;
} rig;

static plumb_reader *wrap(void *user, plumb_reader *inner) {
    rig *r = user;
    return r->faulty[r->n_faulty++] = faulty_reader_open(inner, NULL, 0);
}

/* False where this system has no such reader. */
static bool open_rig(rig *r, const subject *s, plumb_reader_kind reader, bool guess) {
    *r = (rig){.subject = s};
    const plumb_reading reading = {.reader = reader, .wrap = wrap, .wrap_user = r};
    const plumb_model_options options = {.streaming = true, .cache_experts = SLOTS,
                                         .no_read_ahead = !guess, .threads = 1};
    plumb_error err;
    plumb_status status =
        plumb__model_open_reading(s->specimen.folder, &options, &reading, &r->model, &err);
    if (status == PLUMB_ERROR_UNSUPPORTED && reader == PLUMB_READER_URING) {
        printf("skipped: no io_uring here\n");
        return false;
    }
    specimen_must(status, &err, "open");
    r->session = specimen_session(r->model, END);
    r->logits = specimen_logits(&s->specimen);
    return true;
}

/* Nothing is pinned or on its way, and there are as many slots as at first. */
static void check_slots(const rig *r, const char *when) {
    plumb_expert_cache *c = plumb__source_cache(r->model->source);
    plumb__read_queue_wait_idle(c->queue);
    pthread_mutex_lock(&c->lock);
    int64_t usable = 0, used = 0, loading = 0, pinned = 0;
    for (int64_t i = 0; i < c->table.capacity; i++) {
        usable += c->table.slot[i].key != PLUMB_SLOT_RETIRED;
        used += c->table.slot[i].key >= 0;
        pinned += c->table.slot[i].pins != 0;
        loading += i < c->slot_room && c->slot[i] && c->slot[i]->loading;
    }
    T_CHECK(c->table.slots == SLOTS && usable == SLOTS && used == c->table.used,
            "%s: %" PRId64 " slots, %" PRId64 " usable, %" PRId64 " used", when, c->table.slots, usable,
            used);
    T_CHECK(c->table.pinned == 0 && pinned == 0 && c->held_ahead == 0 && loading == 0,
            "%s: %" PRId64 " pinned, %" PRId64 " ahead, %" PRId64 " loading", when, c->table.pinned,
            c->held_ahead, loading);
    pthread_mutex_unlock(&c->lock);
}

static void close_rig(rig *r) {
    check_slots(r, "at the end");
    plumb_session_destroy(r->session);
    plumb_model_close(r->model);
    free(r->logits);
}

/* ---- Runs ---------------------------------------------------------------------------------------- */

typedef struct destination {
    float *logits;
    int64_t vocab;
} destination;

static int keep(void *user, int64_t position, const float *row) {
    const destination *d = user;
    memcpy(d->logits + position * d->vocab, row, (size_t)d->vocab * sizeof *row);
    return 0;
}

static plumb_status advance(rig *r, int64_t end, plumb_error *err) {
    const specimen *s = &r->subject->specimen;
    int64_t begin = plumb_session_length(r->session);
    destination d = {r->logits, s->vocab};
    return plumb_session_eval_all(r->session, s->tokens + begin, end - begin, keep, &d, err);
}

/* The file, a tensor in it that an expert or an Engram table is made of, and a place in that. */
static void check_error(const rig *r, const plumb_error *err, payload what, const char *found,
                        const char *run) {
    const plumb_tensor *t = plumb__checkpoint_find(r->model->checkpoint, "%s", err->field);
    T_CHECK(err->status == PLUMB_ERROR_IO && strstr(err->found, found) && err->expected[0],
            "%s: status %d, found %s, not %s", run, (int)err->status, err->found, found);
    T_CHECK(t && strstr(err->field, what == EXPERTS ? ".experts." : ".engram.embed."), "%s: field %s", run,
            err->field);
    if (!t) return;
    T_CHECK(!strcmp(err->file, plumb__checkpoint_shard_path(r->model->checkpoint, t->shard)),
            "%s: file %s", run, err->file);
    /* An uncached read begins with the page. */
    T_CHECK(err->offset >= t->offset / PLUMB_READ_ALIGNMENT * PLUMB_READ_ALIGNMENT &&
                err->offset < t->offset + t->bytes,
            "%s: %s at %" PRId64, run, err->field, err->offset);
}

/* The prompt in one request, then token by token, each request again after it has failed.  Returns how
 * many failed; with `until_failed` the run ends with the first of them, made good. */
static int run(rig *r, payload what, const char *found, bool until_failed, const char *name) {
    const specimen *s = &r->subject->specimen;
    plumb_error err = {0};
    int failed = 0;
    int64_t end = 0;
    specimen_must(plumb_session_rewind(r->session, 0, &err), &err, "rewind");
    memset(r->logits, 0, (size_t)(END * s->vocab) * sizeof(float));
    while (end < END && !(until_failed && failed)) {
        int64_t begin = end;
        end = begin == 0 ? PROMPT : begin + 1;
        if (advance(r, end, &err) == PLUMB_OK) continue;
        failed++;
        check_error(r, &err, what, found, name);
        T_CHECK(plumb_session_length(r->session) == begin, "%s: length %" PRId64 ", not %" PRId64, name,
                plumb_session_length(r->session), begin);
        plumb_status status = advance(r, end, &err);
        T_CHECK(status == PLUMB_OK, "%s: again: %s, %s", name, err.field, err.found);
        if (status != PLUMB_OK) return failed;
    }
    int64_t at = specimen_first_difference(s, r->subject->reference, r->logits, 0, end);
    T_CHECK(at < 0, "%s: position %" PRId64 " differs", name, at);
    return failed;
}

static int64_t count_reads(rig *r, payload what) {
    faulty_reader_set_rules(r->faulty[what], NULL, 0);
    T_CHECK(run(r, what, "", false, "undisturbed") == 0, "undisturbed");
    return faulty_reader_reads(r->faulty[what]);
}

/* ---- Faults -------------------------------------------------------------------------------------- */

typedef struct fault {
    const char *name, *found; /* found: NULL where the read is simply repeated */
    int n_rules;
    fault_rule rules[4]; /* nth is counted from the read that it is about */
} fault;

/* Repairable ones strike four reads in a row, each in its own way. */
static const fault repaired = {"short, interrupted, held back, late", NULL, 4,
                               {{0, false, FAULT_SHORT, 0},
                                {1, false, FAULT_ERROR, EINTR},
                                {2, false, FAULT_HOLD, 3},
                                {3, false, FAULT_DELAY, 200}}};
static const fault drive = {"EIO", "nput/output error", 1, {{0, false, FAULT_ERROR, EIO}}};
static const fault end_of_file = {"end of file", "end of file", 1, {{0, false, FAULT_ZERO, 0}}};

static void set_fault(rig *r, payload what, const fault *f, int64_t nth) {
    fault_rule rules[4];
    for (int i = 0; i < f->n_rules; i++) {
        rules[i] = f->rules[i];
        rules[i].nth += nth;
    }
    faulty_reader_set_rules(r->faulty[what], rules, f->n_rules);
}

static void check_run(rig *r, payload what, const fault *f, int64_t nth, bool guess, int64_t *failed) {
    char name[160];
    snprintf(name, sizeof name, "%s: %s: %s at read %" PRId64, r->subject->specimen.name,
             what == EXPERTS ? "experts" : "rows", f->name, nth);
    set_fault(r, what, f, nth);
    int failures = run(r, what, f->found ? f->found : "", f->found != NULL, name);
    /* A guess that fails is nobody's fault yet. */
    int least = f->found && !guess ? 1 : 0, most = f->found ? 1 : 0;
    T_CHECK(failures >= least && failures <= most, "%s: %d requests failed", name, failures);
    *failed += failures;
}

/* Every `step`-th read of experts, one after the other with the same model. */
static void spoil_experts(const char *model, plumb_reader_kind reader, const fault *f, bool guess,
                          int64_t step) {
    rig r;
    step *= COARSER;
    if (!open_rig(&r, get_subject(model), reader, guess)) return;
    int64_t reads = count_reads(&r, EXPERTS), failed = 0;
    for (int64_t nth = 1; nth <= reads; nth += step) check_run(&r, EXPERTS, f, nth, guess, &failed);
    /* Which reads are guesses depends on who is quicker; the first is none. */
    int64_t least = !f->found ? 0 : guess ? 1 : (reads + step - 1) / step;
    T_CHECK(reads > 40 && failed >= least, "%s: %" PRId64 " of %" PRId64 " reads, every %" PRId64 "th", f->name,
            failed, reads, step);
    close_rig(&r);
}

/* Rows that were read stay in memory, so each run has a model of its own. */
static void spoil_rows(const char *model, plumb_reader_kind reader, const fault *f, int64_t step) {
    rig r;
    int64_t reads = 1, failed = 0;
    step *= COARSER;
    for (int64_t nth = 1; nth <= reads; nth += step) {
        if (!open_rig(&r, get_subject(model), reader, false)) return;
        if (nth == 1) {
            reads = count_reads(&r, ENGRAM_ROWS);
            T_CHECK(reads > 20, "%" PRId64 " reads of rows", reads);
            close_rig(&r);
            if (!open_rig(&r, get_subject(model), reader, false)) return;
        }
        check_run(&r, ENGRAM_ROWS, f, nth, false, &failed);
        close_rig(&r);
    }
}

static const plumb_reader_kind kinds[] = {PLUMB_READER_PREAD, PLUMB_READER_URING};

static void repaired_reads(void) {
    for (int k = 0; k < 2; k++) {
        spoil_experts("tiny", kinds[k], &repaired, true, 1);
        spoil_rows("tiny", kinds[k], &repaired, 4);
    }
    spoil_experts("deep40", PLUMB_READER_BEST, &repaired, true, 101);
}

static void failing_reads(void) {
    for (int k = 0; k < 2; k++) {
        spoil_experts("tiny", kinds[k], &drive, false, 1);
        spoil_rows("tiny", kinds[k], &drive, 1);
    }
    spoil_experts("deep40", PLUMB_READER_BEST, &drive, false, 83);
}

static void ends_of_files(void) {
    for (int k = 0; k < 2; k++) {
        spoil_experts("tiny", kinds[k], &end_of_file, true, 1);
        spoil_rows("tiny", kinds[k], &end_of_file, 3);
    }
}

/* All of it at once and again and again, on several threads: requests that fail are made again until they
 * do not.  How many fail depends on who is quicker, since guesses may fail unnoticed. */
static void everything_at_once(void) {
    static const fault_rule rules[] = {
        {3, true, FAULT_HOLD, 4},      {5, true, FAULT_SHORT, 0},      {7, true, FAULT_ERROR, EINTR},
        {11, true, FAULT_DELAY, 50},   {13, true, FAULT_SHORT, 1},     {211, true, FAULT_ERROR, EIO},
        {307, true, FAULT_ZERO, 0},    {17, true, FAULT_ERROR, EAGAIN},
    };
    for (int k = 0; k < 2; k++) {
        rig r;
        if (!open_rig(&r, get_subject("tiny"), kinds[k], true)) continue;
        for (int i = 0; i < 2; i++)
            faulty_reader_set_rules(r.faulty[i], rules, (int)(sizeof rules / sizeof *rules));
        int64_t failed = 0;
        for (int round = 0; round < (T_SANITIZED ? 10 : 40) || (failed < 2 && round < 10000); round++) {
            plumb_error err = {0};
            specimen_must(plumb_session_rewind(r.session, 0, &err), &err, "rewind");
            for (int64_t end = PROMPT; end <= END;) {
                int64_t begin = plumb_session_length(r.session);
                if (advance(&r, end, &err) == PLUMB_OK) {
                    end++;
                    continue;
                }
                failed++;
                T_CHECK(err.status == PLUMB_ERROR_IO && plumb_session_length(r.session) == begin, "%s",
                        err.found);
                if (failed > 10000) break;
            }
            int64_t at = specimen_first_difference(&r.subject->specimen, r.subject->reference, r.logits, 0,
                                                   END);
            T_CHECK(at < 0, "round %d: position %" PRId64 " differs", round, at);
        }
        T_CHECK(failed > 1 && failed < 10000, "%" PRId64 " failed", failed);
        close_rig(&r);
    }
}

T_MAIN({"repaired_reads", repaired_reads}, {"failing_reads", failing_reads},
       {"ends_of_files", ends_of_files}, {"everything_at_once", everything_at_once})
