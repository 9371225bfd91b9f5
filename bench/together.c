/* What do several answers cost when they are written together?
 *
 * N sessions of one model step as one batch (plumb_sessions_step), beside the same steps one session after
 * the other, in rounds (measure.h).  Answers that share their steps share each read of the weights: where
 * reading decides, N of them take little longer than one. */
#include "measure.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64, CONTEXT = 1024 };

typedef struct together {
    const char *model_path;
    double seconds;
    bench_list threads, answers;
    int64_t start;
    plumb_model *model;
    int64_t vocab, n;
    plumb_session *batch[MOST], *single[MOST];
    bool failed;
} together;

static void note(together *t, plumb_status status, const plumb_error *err) {
    if (!bench_explain(status, err)) t->failed = true;
}

/* Back to the start when the context is full, so that all rounds see positions alike. */
static void make_room(together *t, plumb_session **sessions) {
    plumb_error err = {0};
    for (int64_t i = 0; i < t->n && !t->failed; i++)
        if (plumb_session_length(sessions[i]) >= CONTEXT - 1)
            note(t, plumb_session_rewind(sessions[i], t->start, &err), &err);
}

static int32_t token_of(const together *t, const plumb_session *session, int64_t i) {
    return (int32_t)((plumb_session_length(session) * 31 + i * 17) % t->vocab);
}

static void step_together(void *user) {
    together *t = user;
    if (t->failed) return;
    make_room(t, t->batch);
    int32_t tokens[MOST];
    const float *logits[MOST];
    plumb_error err = {0};
    for (int64_t i = 0; i < t->n; i++) tokens[i] = token_of(t, t->batch[i], i);
    note(t, plumb_sessions_step(t->batch, tokens, t->n, logits, &err), &err);
}

static void step_one_by_one(void *user) {
    together *t = user;
    if (t->failed) return;
    make_room(t, t->single);
    for (int64_t i = 0; i < t->n && !t->failed; i++) {
        const float *logits;
        plumb_error err = {0};
        int32_t token = token_of(t, t->single[i], i);
        note(t, plumb_session_eval(t->single[i], &token, 1, &logits, &err), &err);
    }
}

static bool open_sessions(together *t, plumb_session **sessions) {
    const plumb_session_options options = {.context = CONTEXT};
    for (int64_t i = 0; i < t->n; i++) {
        plumb_error err = {0};
        int32_t prompt[CONTEXT];
        for (int64_t p = 0; p < t->start; p++) prompt[p] = (int32_t)((p * 7 + i) % t->vocab);
        if (!bench_explain(plumb_session_create(t->model, &options, &sessions[i], &err), &err) ||
            !bench_explain(plumb_session_eval(sessions[i], prompt, t->start, NULL, &err), &err))
            return false;
    }
    return true;
}

static void measure(together *t, int64_t threads) {
    if (open_sessions(t, t->batch) && open_sessions(t, t->single)) {
        const bench_contender sides[] = {{step_together, t}, {step_one_by_one, t}};
        bench_result r;
        bench_compare(sides, 2, t->seconds, &r);
        if (!t->failed)
            printf("%7lld %8lld %12.1f %12.1f %8.2f %7.0f%% %7lld\n", (long long)threads, (long long)t->n,
                   (double)t->n / r.seconds[0], (double)t->n / r.seconds[1], r.speed[1], 100 * r.spread,
                   (long long)r.rounds);
    }
    for (int64_t i = 0; i < t->n; i++) {
        plumb_session_destroy(t->batch[i]);
        plumb_session_destroy(t->single[i]);
        t->batch[i] = t->single[i] = NULL;
    }
}

static bool measure_threads(together *t, int64_t threads) {
    const plumb_model_options options = {.threads = (int)threads};
    plumb_error err = {0};
    if (!bench_explain(plumb_model_open(t->model_path, &options, &t->model, &err), &err)) return false;
    plumb_model_info info;
    plumb_model_get_info(t->model, &info);
    t->vocab = info.vocab_size;
    for (int64_t i = 0; i < t->answers.count && !t->failed; i++) {
        t->n = t->answers.value[i];
        measure(t, threads);
    }
    plumb_model_close(t->model);
    return !t->failed;
}

int main(int argc, char **argv) {
    together t = {.model_path = DEMO_MODEL, .seconds = 3, .threads = {{1, 2}, 2}, .answers = {{1, 2, 4, 8, 16}, 5},
                  .start = 256};
    const bench_option options[] = {
        {"model", BENCH_TEXT, &t.model_path, "folder or converted file (default: the demo model)"},
        {"threads", BENCH_LIST, &t.threads, "threads that compute"},
        {"answers", BENCH_LIST, &t.answers, "sessions that step together, at most 64"},
        {"start", BENCH_COUNT, &t.start, "tokens before them"},
        {"seconds", BENCH_SECONDS, &t.seconds, "time for a line"},
    };
    int status;
    if (!bench_options_parse(argc, argv, options, sizeof options / sizeof *options, &status)) return status;
    if (!bench_threads_valid(&t.threads)) return 2;
    for (int64_t i = 0; i < t.answers.count; i++)
        if (t.answers.value[i] < 1 || t.answers.value[i] > MOST) {
            fprintf(stderr, "--answers: found %lld, expected 1 to %d\n", (long long)t.answers.value[i], MOST);
            return 2;
        }
    if (t.start < 1 || t.start > CONTEXT / 2) {
        fprintf(stderr, "--start: found %lld, expected 1 to %d\n", (long long)t.start, CONTEXT / 2);
        return 2;
    }
    printf("threads  answers   together/s      alone/s    ratio  spread  rounds\n");
    for (int64_t i = 0; i < t.threads.count; i++)
        if (!measure_threads(&t, t.threads.value[i])) return 1;
    return 0;
}
