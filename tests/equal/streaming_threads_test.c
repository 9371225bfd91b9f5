/* One streaming model used from several threads: each has a session of its own, makes and destroys others,
 * and goes back; meanwhile the cache is resized and the figures are read.  Every thread gets the right bits.
 * Races show under ThreadSanitizer. */
#include "equal/specimen.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "t.h"

enum { THREADS = 3, ROUNDS = T_SANITIZED ? 4 : 12, RESIZES = 4, PROMPT = 6, END = 10 };

typedef struct worker {
    pthread_t thread;
    const specimen *specimen;
    plumb_model *model;
    const float *reference;
    int64_t different; /* position, or -1 */
    int failed;
} worker;

static atomic_int working, resized;

static void work(worker *w, float *logits) {
    const specimen *s = w->specimen;
    const plumb_session_options options = {.context = END};
    plumb_session *session = NULL;
    plumb_error err;
    if (plumb_session_create(w->model, &options, &session, &err) != PLUMB_OK) {
        w->failed++;
        return;
    }
    for (int64_t end = PROMPT; end <= END; end++) specimen_advance(s, session, end, logits);
    int64_t at = specimen_first_difference(s, w->reference, logits, 0, END);
    if (at >= 0) w->different = at;
    w->failed += plumb_session_rewind(session, 3, &err) != PLUMB_OK;
    specimen_advance(s, session, END, logits);
    at = specimen_first_difference(s, w->reference, logits, 0, END);
    if (at >= 0) w->different = at;
    plumb_session_destroy(session);
}

static void *run(void *argument) {
    worker *w = argument;
    float *logits = specimen_logits(w->specimen);
    for (int i = 0; i < ROUNDS || resized < RESIZES; i++) work(w, logits);
    free(logits);
    working--;
    return NULL;
}

static void several_callers(void) {
    static const int64_t sizes[] = {1, 12, 3, 48, 5};
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    float *reference = specimen_logits(&s);
    plumb_model *model = specimen_model(&s, 1, NULL);
    plumb_session *session = specimen_session(model, END);
    specimen_advance(&s, session, END, reference);
    plumb_session_destroy(session);
    plumb_model_close(model);

    const plumb_model_options options = {.streaming = true, .cache_experts = 5, .threads = 2};
    plumb_error err;
    specimen_must(plumb_model_open(s.folder, &options, &model, &err), &err, "open");
    worker workers[THREADS];
    working = THREADS;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.specimen = &s, .model = model, .reference = reference, .different = -1};
        if (pthread_create(&workers[i].thread, NULL, run, &workers[i]) != 0) exit(1);
    }
    while (working > 0) {
        plumb_stream_stats stats;
        plumb_model_info info;
        bool budget = resized % 3 == 2;
        specimen_must(plumb_model_set_cache(model, budget ? 50000000 + resized : 0,
                                            budget ? 0 : sizes[resized % 5], &err),
                      &err, "resize");
        plumb_model_get_stream_stats(model, &stats);
        plumb_model_get_info(model, &info);
        T_CHECK(stats.hits >= 0 && info.resident_bytes > 0, "figures");
        resized++;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        T_CHECK(workers[i].failed == 0 && workers[i].different < 0,
                "thread %d: %d failed, position %" PRId64 " differs", i, workers[i].failed,
                workers[i].different);
    }
    T_CHECK(resized >= RESIZES, "%d resizes", resized);
    plumb_model_close(model);
    free(reference);
    specimen_close(&s);
}

T_MAIN({"several_callers", several_callers})
