/* Requests that are cancelled while experts are being read, at every place where the engine asks whether to
 * go on, over and over: the session stays where it was, later bits are right, and a model closes with reads
 * in flight.  What leaks shows under AddressSanitizer, what races under ThreadSanitizer. */
#include "engine/engine.h"
#include "equal/specimen.h"

#include <stdlib.h>

#include "stream/expert_cache_parts.h"
#include "stream/faulty_reader.h"
#include "stream/scripted_reader.h"
#include "t.h"

enum { PROMPT = 6, DECODED = 3, END = PROMPT + DECODED, SLOTS = 5 };

static specimen tiny;
static float *reference;

static void set_up(void) {
    if (reference) return;
    tiny = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    reference = specimen_logits(&tiny);
    plumb_model *model = specimen_model(&tiny, 1, NULL);
    plumb_session *session = specimen_session(model, END);
    specimen_advance(&tiny, session, END, reference);
    plumb_session_destroy(session);
    plumb_model_close(model);
}

/* Answers come late and in another order, so that a cancelled request leaves some behind. */
static plumb_reader *wrap(void *user, plumb_reader *inner) {
    static const fault_rule rules[] = {{2, true, FAULT_HOLD, 6}, {3, true, FAULT_DELAY, 100}};
    (void)user;
    return faulty_reader_open(inner, rules, 2);
}

/* NULL where this system has no such reader. */
static plumb_model *open_slow(plumb_reader_kind kind, bool layer_buffers) {
    const plumb_reading reading = {.reader = kind, .wrap = wrap};
    const plumb_model_options options = {.streaming = true, .cache_experts = SLOTS, .threads = 1,
                                         .layer_buffers = layer_buffers};
    plumb_model *model = NULL;
    plumb_error err;
    plumb_status status = plumb__model_open_reading(tiny.folder, &options, &reading, &model, &err);
    if (status == PLUMB_ERROR_UNSUPPORTED && kind == PLUMB_READER_URING) {
        printf("skipped: no io_uring here\n");
        return NULL;
    }
    specimen_must(status, &err, "open");
    return model;
}

/* Cancels when it is asked for the `left`-th time. */
typedef struct patience {
    int64_t left, asked;
} patience;

static int lose_patience(void *user, int64_t done, int64_t total) {
    patience *p = user;
    (void)done, (void)total;
    p->asked++;
    return p->left > 0 && --p->left == 0;
}

static plumb_session *open_session(plumb_model *model, patience *p) {
    const plumb_session_options options = {.progress = lose_patience, .progress_user = p};
    plumb_session *session = NULL;
    plumb_error err;
    specimen_must(plumb_session_create(model, &options, &session, &err), &err, "session");
    return session;
}

static void check_no_pins(plumb_model *model, const char *when) {
    plumb_expert_cache *c = plumb__source_cache(model->source);
    plumb__read_queue_wait_idle(c->queue);
    pthread_mutex_lock(&c->lock);
    T_CHECK(c->table.pinned == 0 && c->held_ahead == 0 && c->table.slots == SLOTS,
            "%s: %" PRId64 " pinned, %" PRId64 " ahead, %" PRId64 " slots", when, c->table.pinned,
            c->held_ahead, c->table.slots);
    pthread_mutex_unlock(&c->lock);
}

/* Each request is cancelled at its first question, its second, and so on, until it gets through. */
static void every_question(plumb_model *model, float *logits) {
    patience p = {0};
    plumb_session *session = open_session(model, &p);
    int64_t cancelled = 0;
    for (int64_t end = PROMPT; end <= END; end++) {
        const float *row;
        int64_t begin = plumb_session_length(session);
        for (int64_t most = 1;; most++) {
            plumb_error err = {0};
            p = (patience){most, 0};
            plumb_status status =
                plumb_session_eval(session, tiny.tokens + begin, end - begin, &row, &err);
            if (status == PLUMB_OK) break;
            cancelled++;
            T_CHECK(status == PLUMB_ERROR_CANCELLED && p.asked == most &&
                        plumb_session_length(session) == begin,
                    "question %" PRId64 ": status %d, %" PRId64 " asked, length %" PRId64, most,
                    (int)status, p.asked, plumb_session_length(session));
            if (most > 1000) break;
        }
        memcpy(logits + (end - 1) * tiny.vocab, row, (size_t)tiny.vocab * sizeof *row);
    }
    int64_t at = specimen_first_difference(&tiny, reference, logits, PROMPT - 1, END);
    T_CHECK(at < 0, "position %" PRId64 " differs", at);
    /* Four requests, at least six layers each. */
    T_CHECK(cancelled >= 24, "%" PRId64 " cancelled", cancelled);
    plumb_session_destroy(session);
    check_no_pins(model, "cancelled");
}

/* The readers of a model: of its experts, and of its Engram rows. */
typedef struct held_readers {
    scripted_reader *script[2];
    int n;
} held_readers;

static plumb_reader *wrap_scripted(void *user, plumb_reader *inner) {
    held_readers *readers = user;
    int depth = inner->depth;
    inner->ops->close(inner);
    return scripted_reader_base(readers->script[readers->n++] = scripted_reader_open(depth));
}

static scripted_reader *expert_reader(const held_readers *readers, plumb_model *model) {
    plumb_reader *reader = plumb__read_queue_reader(plumb__source_cache(model->source)->queue);
    bool is_first = scripted_reader_base(readers->script[0]) == reader;
    return readers->script[is_first ? 0 : 1];
}

/* While held, no expert arrives. */
static void hold_experts(const held_readers *readers, plumb_model *model, bool held) {
    scripted_reader_hold(expert_reader(readers, model), held);
}

/* A backend that counts the experts it computes. */
static const plumb_backend_ops *real_ops;
static int64_t computed;

static void count_experts(plumb_backend *b, const plumb_quantized *x, const plumb_expert_group *groups,
                          int64_t n, const float *weights, int64_t slots_per_row, float limit,
                          plumb_act *outputs) {
    computed += n;
    real_ops->experts(b, x, groups, n, weights, slots_per_row, limit, outputs);
}

/* At the first question, notes how many reads of experts are not answered, and lets them be. */
typedef struct releaser {
    const held_readers *readers;
    plumb_model *model;
    int64_t asked, unfinished;
} releaser;

static int release(void *user, int64_t done, int64_t total) {
    releaser *r = user;
    (void)done, (void)total;
    if (r->asked++ > 0) return 0;
    r->unfinished = scripted_reader_unfinished(expert_reader(r->readers, r->model));
    hold_experts(r->readers, r->model, false);
    return 0;
}

static int stop_and_tell(void *user, int64_t done, int64_t total) {
    (void)done, (void)total;
    *(int64_t *)user = computed;
    return 1;
}

static plumb_model *open_scripted(held_readers *readers) {
    const plumb_reading reading = {.reader = PLUMB_READER_PREAD, .wrap = wrap_scripted,
                                   .wrap_user = readers};
    const plumb_model_options options = {.streaming = true, .cache_experts = SLOTS, .threads = 1};
    plumb_model *model = NULL;
    plumb_error err;
    specimen_must(plumb__model_open_reading(tiny.folder, &options, &reading, &model, &err), &err, "open");
    return model;
}

/* With no expert in memory, and none that comes, the shared one is computed before anyone waits. */
static void shared_expert_first(void) {
    set_up();
    held_readers readers = {0};
    plumb_model *model = open_scripted(&readers);
    plumb_error err;
    real_ops = model->backend->ops;
    plumb_backend_ops ops = *real_ops;
    ops.experts = count_experts;
    model->backend->ops = &ops;
    int64_t before_waiting = -1;
    const plumb_session_options asks = {.progress = stop_and_tell, .progress_user = &before_waiting};
    plumb_session *session = NULL;
    specimen_must(plumb_session_create(model, &asks, &session, &err), &err, "session");
    computed = 0;
    hold_experts(&readers, model, true);
    plumb_status status = plumb_session_eval(session, tiny.tokens, PROMPT, NULL, &err);
    T_CHECK(status == PLUMB_ERROR_CANCELLED && before_waiting == 1, "status %d, %" PRId64 " computed",
            (int)status, before_waiting);
    hold_experts(&readers, model, false);
    plumb_session_destroy(session);
    model->backend->ops = real_ops;
    plumb_model_close(model);
}

/* Who waits for the drive is asked, besides between layers: here nobody gets to the end of the first one before. */
static void asked_before_waiting(void) {
    set_up();
    held_readers readers = {0};
    plumb_model *model = open_scripted(&readers);
    releaser r = {.readers = &readers, .model = model};
    const plumb_session_options options = {.progress = release, .progress_user = &r};
    plumb_session *session = NULL;
    plumb_error err;
    specimen_must(plumb_session_create(model, &options, &session, &err), &err, "session");
    hold_experts(&readers, model, true);
    specimen_must(plumb_session_eval(session, tiny.tokens, PROMPT, NULL, &err), &err, "eval");
    T_CHECK(r.unfinished > 0, "asked %" PRId64 " times, while %" PRId64 " reads were under way", r.asked, r.unfinished);
    plumb_session_destroy(session);
    plumb_model_close(model);
}

static const plumb_reader_kind kinds[] = {PLUMB_READER_PREAD, PLUMB_READER_URING};

static void cancelled_anywhere(void) {
    set_up();
    float *logits = specimen_logits(&tiny);
    for (int k = 0; k < 2; k++)
        for (int buffers = 0; buffers < 2; buffers++) {
            plumb_model *model = open_slow(kinds[k], buffers);
            if (!model) continue;
            for (int round = 0; round < (T_SANITIZED ? 1 : 4); round++) every_question(model, logits);
            plumb_model_close(model);
        }
    free(logits);
}

/* A request is cancelled, and the model closed at once. */
static void closed_with_reads_in_flight(void) {
    set_up();
    for (int k = 0; k < 2; k++)
        for (int64_t round = 1; round <= 24; round++) {
            plumb_model *model = open_slow(kinds[k], round % 2);
            if (!model) break;
            patience p = {round, 0};
            plumb_session *session = open_session(model, &p);
            plumb_error err;
            plumb_status status = plumb_session_eval(session, tiny.tokens, PROMPT, NULL, &err);
            T_CHECK(status == PLUMB_ERROR_CANCELLED || status == PLUMB_OK, "status %d", (int)status);
            T_CHECK(plumb_session_length(session) == (status == PLUMB_OK ? PROMPT : 0), "length");
            plumb_session_destroy(session);
            plumb_model_close(model);
        }
}

T_MAIN({"asked_before_waiting", asked_before_waiting}, {"shared_expert_first", shared_expert_first},
       {"cancelled_anywhere", cancelled_anywhere},
       {"closed_with_reads_in_flight", closed_with_reads_in_flight})
