/* Same tokens, same bits: whatever the threads, the chunks, the kernels, the company and the
 * history of a session, the logits of every position are those of one undisturbed evaluation.
 *
 * The reference is made first, in one call on one thread; every other way of getting there is
 * compared with it position by position.  Its hash is printed, so that builds can be compared. */
#include "equal/specimen.h"

#include <fenv.h>
#include <pthread.h>
#include <stdlib.h>

#include "t.h"

typedef struct subject {
    specimen specimen;
    float *reference; /* [count][vocab] */
} subject;

static subject subjects[2];
enum { TINY, DEEP40, SUBJECTS };

/* The subject's reference, evaluated on first use. */
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
    return s;
}

/* Positions [begin, end) of `logits` against the reference; how says how they were made. */
static void check_rows(const subject *s, const float *logits, int64_t begin, int64_t end,
                       const char *how, int64_t value) {
    int64_t at = specimen_first_difference(&s->specimen, s->reference, logits, begin, end);
    T_CHECK(at < 0,
            "%s, %s %" PRId64 ": position %" PRId64 " of %" PRId64 " to %" PRId64 " differs",
            s->specimen.name, how, value, at, begin, end - 1);
}

static void check_all(const subject *s, const float *logits, const char *how, int64_t value) {
    check_rows(s, logits, 0, s->specimen.count, how, value);
    uint64_t hash = specimen_hash(&s->specimen, logits, s->specimen.count);
    uint64_t expected = specimen_hash(&s->specimen, s->reference, s->specimen.count);
    T_CHECK(hash == expected, "%s, %s %" PRId64 ": hash", s->specimen.name, how, value);
}

/* A reference that is all zeros, or the same at every position, would make every check idle. */
static void reference_is_alive(void) {
    for (int i = 0; i < SUBJECTS; i++) {
        const subject *s = get_subject(i);
        int64_t count = s->specimen.count, vocab = s->specimen.vocab, equal = 0, zero = 0;
        for (int64_t p = 1; p < count; p++)
            equal += !memcmp(s->reference + p * vocab, s->reference + (p - 1) * vocab,
                             (size_t)vocab * sizeof(float));
        for (int64_t j = 0; j < count * vocab; j++) zero += s->reference[j] == 0.0f;
        T_CHECK(equal == 0, "%s: %" PRId64 " positions like the one before", s->specimen.name,
                equal);
        T_CHECK(zero < count, "%s: %" PRId64 " zeros", s->specimen.name, zero);
        printf("%s: %" PRId64 " positions, XXH3-64 %016" PRIx64 "\n", s->specimen.name, count,
               specimen_hash(&s->specimen, s->reference, count));
    }
}

/* ---- How the work is split ------------------------------------------------------------------ */

static void run_whole(const subject *s, int threads, const char *level, int64_t chunk,
                      const char *how, int64_t value) {
    plumb_model *model = specimen_model(&s->specimen, threads, level);
    plumb_session *session = specimen_session(model, chunk);
    float *logits = specimen_logits(&s->specimen);
    specimen_advance(&s->specimen, session, s->specimen.count, logits);
    check_all(s, logits, how, value);
    free(logits);
    plumb_session_destroy(session);
    plumb_model_close(model);
}

static void threads(void) {
    static const int counts[] = {1, 2, 7};
    for (int i = 0; i < SUBJECTS; i++)
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++)
            run_whole(get_subject(i), counts[j], NULL, 0, "threads", counts[j]);
}

static void chunks(void) {
    static const int64_t sizes[] = {1, 3, 64, 200, 520};
    for (int i = 0; i < SUBJECTS; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++)
            run_whole(get_subject(i), 1, NULL, sizes[j], "chunk", sizes[j]);
}

static void kernel_levels(void) {
    specimen_level levels[SPECIMEN_LEVELS];
    specimen_levels(levels);
    for (int l = 0; l < SPECIMEN_LEVELS; l++) {
        if (!levels[l].present) printf("skipped: no %s here\n", levels[l].name);
        for (int i = 0; levels[l].present && i < SUBJECTS; i++)
            run_whole(get_subject(i), 2, levels[l].name, 0, levels[l].name, 0);
    }
}

/* A host program may have set any rounding mode; it must neither matter nor be changed. */
static void rounding_mode_of_the_caller(void) {
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    const subject *s = get_subject(TINY);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        fesetround(modes[i]);
        run_whole(s, 2, NULL, 0, "rounding mode", modes[i]);
        int after = fegetround();
        fesetround(FE_TONEAREST);
        T_CHECK(after == modes[i], "mode %d became %d", modes[i], after);
    }
}

/* ---- Prefill and decode -----------------------------------------------------------------------
 */

/* Prefills `start` positions, evaluates up to `end` one at a time, then the rest at once. */
static void decode_between(const subject *s, plumb_model *model, int64_t start, int64_t end) {
    plumb_session *session = specimen_session(model, s->specimen.count);
    float *logits = specimen_logits(&s->specimen);
    if (start > 0) specimen_advance(&s->specimen, session, start, logits);
    for (int64_t p = start; p < end; p++) specimen_advance(&s->specimen, session, p + 1, logits);
    if (end < s->specimen.count) specimen_advance(&s->specimen, session, s->specimen.count, logits);
    check_all(s, logits, "decode from", start);
    free(logits);
    plumb_session_destroy(session);
}

static void decode(void) {
    static const struct {
        int subject;
        int64_t start, end;
    } cases[] = {{TINY, 0, 96},      {TINY, 1, 9},       {TINY, 7, 96},      {TINY, 8, 30},
                 {TINY, 40, 96},     {TINY, 95, 96},     {DEEP40, 0, 520},   {DEEP40, 1, 34},
                 {DEEP40, 127, 160}, {DEEP40, 200, 243}, {DEEP40, 201, 242}, {DEEP40, 519, 520}};
    plumb_model *models[SUBJECTS];
    for (int i = 0; i < SUBJECTS; i++)
        models[i] = specimen_model(&get_subject(i)->specimen, 1, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        decode_between(get_subject(cases[i].subject), models[cases[i].subject], cases[i].start,
                       cases[i].end);
    for (int i = 0; i < SUBJECTS; i++) plumb_model_close(models[i]);
}

/* plumb_session_eval gives the last row of each call, and only that. */
static void eval_gives_the_last_row(void) {
    static const int64_t steps[] = {1, 5, 64, 65, 2, 1, 130};
    for (int i = 0; i < SUBJECTS; i++) {
        const subject *s = get_subject(i);
        plumb_model *model = specimen_model(&s->specimen, 1, NULL);
        plumb_session *session = specimen_session(model, 64);
        int64_t done = 0;
        for (int step = 0; done < s->specimen.count; step++) {
            int64_t left = s->specimen.count - done,
                    n = steps[step % 7] < left ? steps[step % 7] : left;
            const float *last = NULL;
            plumb_error err;
            specimen_must(plumb_session_eval(session, s->specimen.tokens + done, n,
                                             step % 3 == 1 ? NULL : &last, &err),
                          &err, "eval");
            done += n;
            if (step % 3 == 1) continue; /* logits not asked for */
            T_CHECK(!memcmp(last, s->reference + (done - 1) * s->specimen.vocab,
                            (size_t)s->specimen.vocab * sizeof *last),
                    "%s: eval up to %" PRId64, s->specimen.name, done);
        }
        T_CHECK(!memcmp(plumb_session_tokens(session), s->specimen.tokens,
                        (size_t)s->specimen.count * sizeof(int32_t)),
                "%s: tokens", s->specimen.name);
        plumb_session_destroy(session);
        plumb_model_close(model);
    }
}

/* A call for the last row alone leaves out the rows that cannot reach it; what it leaves behind
 * must do for the tokens that follow. */
static void last_row_of_one_call(void) {
    static const struct {
        int subject;
        int64_t end;
    } cases[] = {{TINY, 20}, {TINY, 61}, {TINY, 90}, {DEEP40, 130}, {DEEP40, 301}, {DEEP40, 500}};
    static const int64_t chunks[] = {7, 64, 200, 520};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const subject *s = get_subject(cases[i].subject);
        const int64_t end = cases[i].end, vocab = s->specimen.vocab;
        plumb_model *model = specimen_model(&s->specimen, 1, NULL);
        for (size_t j = 0; j < sizeof chunks / sizeof chunks[0]; j++) {
            plumb_session *session = specimen_session(model, chunks[j]);
            float *logits = specimen_logits(&s->specimen);
            const float *last = NULL;
            plumb_error err;
            specimen_must(plumb_session_eval(session, s->specimen.tokens, end, &last, &err), &err,
                          "eval");
            memcpy(logits + (end - 1) * vocab, last, (size_t)vocab * sizeof *last);
            specimen_advance(&s->specimen, session, end + 1, logits);
            specimen_advance(&s->specimen, session, end + 6, logits);
            check_rows(s, logits, end - 1, end + 6, "last row, chunk", chunks[j]);
            free(logits);
            plumb_session_destroy(session);
        }
        plumb_model_close(model);
    }
}

/* ---- Company ----------------------------------------------------------------------------------
 */

/* Other tokens than the prompt's, different for every `salt`. */
static int32_t *other_tokens(const specimen *s, int64_t salt) {
    int32_t *tokens = malloc((size_t)s->count * sizeof *tokens);
    if (!tokens) exit(1);
    for (int64_t i = 0; i < s->count; i++)
        tokens[i] = (int32_t)((s->tokens[(i * 7 + salt) % s->count] + 13 * salt) % s->vocab);
    return tokens;
}

/* Three sessions of one model take turns in uneven steps. */
static void interleaved(void) {
    static const int64_t own[] = {17, 1, 63, 2, 33}, a[] = {5, 27, 1}, b[] = {1, 19};
    for (int i = 0; i < SUBJECTS; i++) {
        const subject *s = get_subject(i);
        int64_t count = s->specimen.count, at[2] = {0};
        plumb_model *model = specimen_model(&s->specimen, 1, NULL);
        plumb_session *session = specimen_session(model, 48);
        plumb_session *others[2] = {specimen_session(model, 7), specimen_session(model, 100)};
        int32_t *tokens[2] = {other_tokens(&s->specimen, 1), other_tokens(&s->specimen, 2)};
        float *logits = specimen_logits(&s->specimen), *unused = specimen_logits(&s->specimen);
        int64_t done = 0;
        for (int step = 0; done < count; step++) {
            int64_t target[2] = {at[0] + a[step % 3], at[1] + b[step % 2]};
            for (int k = 0; k < 2; k++) {
                at[k] = target[k] < count ? target[k] : count;
                if (at[k] > plumb_session_length(others[k]))
                    specimen_feed(others[k], tokens[k], at[k], s->specimen.vocab, unused);
            }
            done = done + own[step % 5] < count ? done + own[step % 5] : count;
            specimen_advance(&s->specimen, session, done, logits);
        }
        check_all(s, logits, "interleaved, sessions", 3);
        for (int k = 0; k < 2; k++) {
            plumb_session_destroy(others[k]);
            free(tokens[k]);
        }
        free(unused);
        free(logits);
        plumb_session_destroy(session);
        plumb_model_close(model);
    }
}

/* Several models at once, two of them of one folder; one is closed while the others go on. */
static void several_models(void) {
    const subject *tiny = get_subject(TINY), *deep40 = get_subject(DEEP40);
    const subject *of[3] = {tiny, deep40, tiny};
    plumb_model *models[3];
    plumb_session *sessions[3];
    float *logits[3];
    for (int m = 0; m < 3; m++) {
        models[m] = specimen_model(&of[m]->specimen, m + 1, NULL);
        sessions[m] = specimen_session(models[m], 20);
        logits[m] = specimen_logits(&of[m]->specimen);
    }
    for (int64_t end = 24; end <= 96; end += 24)
        for (int m = 0; m < 3; m++) specimen_advance(&of[m]->specimen, sessions[m], end, logits[m]);
    for (int m = 0; m < 3; m += 2) {
        check_all(of[m], logits[m], "model", m);
        plumb_session_destroy(sessions[m]);
        plumb_model_close(models[m]);
    }
    specimen_advance(&deep40->specimen, sessions[1], deep40->specimen.count, logits[1]);
    check_all(deep40, logits[1], "model", 1);
    plumb_session_destroy(sessions[1]);
    plumb_model_close(models[1]);
    for (int m = 0; m < 3; m++) free(logits[m]);
}

typedef struct thread_run {
    const subject *subject;
    plumb_model *model;
    int64_t step;
    float *logits;
} thread_run;

static void *evaluate_in_thread(void *arg) {
    thread_run *run = arg;
    const specimen *s = &run->subject->specimen;
    plumb_session *session = specimen_session(run->model, 0);
    for (int64_t end = 0; end < s->count;) {
        end = end + run->step < s->count ? end + run->step : s->count;
        specimen_advance(s, session, end, run->logits);
    }
    plumb_session_destroy(session);
    return NULL;
}

/* Two sessions of one model and one of another, each in a thread of the operating system. */
static void threads_of_the_caller(void) {
    enum { RUNS = 3 };
    const subject *deep40 = get_subject(DEEP40), *tiny = get_subject(TINY);
    plumb_model *models[2] = {specimen_model(&deep40->specimen, 2, NULL),
                              specimen_model(&tiny->specimen, 2, NULL)};
    thread_run runs[RUNS] = {
        {deep40, models[0], 37, NULL}, {deep40, models[0], 64, NULL}, {tiny, models[1], 1, NULL}};
    pthread_t threads_started[RUNS];
    for (int i = 0; i < RUNS; i++) {
        runs[i].logits = specimen_logits(&runs[i].subject->specimen);
        if (pthread_create(&threads_started[i], NULL, evaluate_in_thread, &runs[i])) exit(1);
    }
    for (int i = 0; i < RUNS; i++) {
        pthread_join(threads_started[i], NULL);
        check_all(runs[i].subject, runs[i].logits, "caller's thread", i);
        free(runs[i].logits);
    }
    for (int i = 0; i < 2; i++) plumb_model_close(models[i]);
}

/* ---- Going back
 * ---------------------------------------------------------------------------------- */

static void rewind_to(plumb_session *session, int64_t length) {
    plumb_error err;
    specimen_must(plumb_session_rewind(session, length, &err), &err, "rewind");
    T_CHECK(plumb_session_length(session) == length, "length %" PRId64 " after rewind to %" PRId64,
            plumb_session_length(session), length);
}

/* Goes back to each length, first takes a wrong turn there, returns, and takes the right one. */
static void rewind_through(const subject *s, plumb_session *session, const int64_t *lengths,
                           int64_t n_lengths) {
    const specimen *sp = &s->specimen;
    float *logits = specimen_logits(sp), *unused = specimen_logits(sp);
    int32_t *others = other_tokens(sp, 3);
    for (int64_t i = 0; i < n_lengths; i++) {
        int64_t length = lengths[i], wrong = length + 21, right = length + 43;
        if (wrong > sp->count) wrong = sp->count;
        if (right > sp->count) right = sp->count;
        rewind_to(session, length);
        specimen_feed(session, others, wrong, sp->vocab, unused);
        rewind_to(session, length);
        memset(logits, 0, (size_t)(sp->count * sp->vocab) * sizeof *logits);
        specimen_advance(sp, session, right, logits);
        check_rows(s, logits, length, right, "rewind to", length);
    }
    rewind_to(session, 0);
    specimen_advance(sp, session, sp->count, logits);
    check_all(s, logits, "rewind to", 0);
    free(others);
    free(unused);
    free(logits);
}

/* How a session gets to the end of the prompt decides where its resume points lie; whatever they
 * are, the lengths fall on them, between them and before all of them. */
static void rewinds(void) {
    static const int64_t tiny[] = {95, 94, 89, 88, 87, 64, 63, 33, 9, 8, 7, 2, 1, 0};
    static const int64_t deep40[] = {519, 511, 504, 385, 384, 256, 255, 129, 17, 16, 15, 1, 0};
    static const struct {
        int subject;
        int64_t prefill, step; /* of so many at once, then steps of so many */
        const int64_t *lengths;
        size_t n_lengths;
    } cases[] = {{TINY, 1, 1, tiny, sizeof tiny / sizeof tiny[0]},
                 {TINY, 5, 5, tiny, sizeof tiny / sizeof tiny[0]},
                 {TINY, 96, 1, tiny, sizeof tiny / sizeof tiny[0]},
                 {DEEP40, 50, 50, deep40, sizeof deep40 / sizeof deep40[0]},
                 {DEEP40, 300, 1, deep40, sizeof deep40 / sizeof deep40[0]}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const subject *s = get_subject(cases[i].subject);
        plumb_model *model = specimen_model(&s->specimen, 1, NULL);
        plumb_session *session = specimen_session(model, 64);
        float *logits = specimen_logits(&s->specimen);
        int64_t end = cases[i].prefill;
        while (plumb_session_length(session) < s->specimen.count) {
            specimen_advance(&s->specimen, session, end, logits);
            end = end + cases[i].step < s->specimen.count ? end + cases[i].step : s->specimen.count;
        }
        free(logits);
        rewind_through(s, session, cases[i].lengths, (int64_t)cases[i].n_lengths);
        plumb_session_destroy(session);
        plumb_model_close(model);
    }
}

/* Two hundred steps forward by any number and back to anywhere. */
static void random_walk(void) {
    const subject *s = get_subject(TINY);
    const specimen *sp = &s->specimen;
    plumb_model *model = specimen_model(sp, 2, NULL);
    plumb_session *session = specimen_session(model, 16);
    float *logits = specimen_logits(sp);
    uint64_t random = 20;
    for (int i = 0; i < 200; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int64_t length = plumb_session_length(session), draw = (int64_t)(random >> 33);
        if (length == sp->count || draw % 3 == 0) {
            rewind_to(session, draw / 3 % (length + 1));
            continue;
        }
        int64_t end = length + 1 + draw / 3 % (sp->count - length);
        if (draw % 3 == 1) end = length + 1; /* decode often */
        if (draw % 5 == 0) {                 /* nobody wants these logits */
            plumb_error err;
            specimen_must(
                plumb_session_eval(session, sp->tokens + length, end - length, NULL, &err), &err,
                "eval");
            continue;
        }
        specimen_advance(sp, session, end, logits);
        check_rows(s, logits, length, end, "random step", i);
    }
    free(logits);
    plumb_session_destroy(session);
    plumb_model_close(model);
}

T_MAIN({"reference_is_alive", reference_is_alive}, {"threads", threads}, {"chunks", chunks},
       {"kernel_levels", kernel_levels},
       {"rounding_mode_of_the_caller", rounding_mode_of_the_caller}, {"decode", decode},
       {"eval_gives_the_last_row", eval_gives_the_last_row},
       {"last_row_of_one_call", last_row_of_one_call}, {"interleaved", interleaved},
       {"several_models", several_models}, {"threads_of_the_caller", threads_of_the_caller},
       {"rewinds", rewinds}, {"random_walk", random_walk})
