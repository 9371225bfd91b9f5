/* For tests of the scheduler: the demo model, schedulers, and a loop.
 *
 * The worker can be held at the moment when it wakes the loop.  So a test decides what has happened when it
 * submits or cancels something, on any machine and under any load. */
#ifndef PLUMB_TESTS_SERVER_SCHEDULER_SCENE_H
#define PLUMB_TESTS_SERVER_SCHEDULER_SCENE_H

#include "server/scheduler.h"
#include "t.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define DEMO PROJECT_DIR "/data/demo-model"

#define CHECK(condition) T_CHECK(condition, "is false")

/* ---- The model -------------------------------------------------------------------------------- */

static plumb_model *model;
static plumb_model_info info;
static plumb_text *text;

static inline void must(plumb_status status, const plumb_error *err, const char *what) {
    if (status == PLUMB_OK) return;
    char line[1024];
    plumb_error_line(err, line, sizeof line);
    fprintf(stderr, "%s: %s\n", what, line);
    exit(1);
}

static inline void open_demo(void) {
    const plumb_model_options options = {.device = PLUMB_DEVICE_CPU, .threads = 1};
    plumb_error err;
    if (model) return;
    must(plumb_model_open(DEMO, &options, &model, &err), &err, "model");
    must(plumb_text_open(DEMO, &text, &err), &err, "text");
    plumb_model_get_info(model, &info);
}

static inline void close_demo(void) {
    plumb_text_close(text);
    plumb_model_close(model);
    model = NULL;
    text = NULL;
}

/* ---- The loop --------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread; /* the loop's */
    bool woken, held, holds;
    int let_go; /* how often */
} loop = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static inline void wake(void *user) {
    (void)user;
    pthread_mutex_lock(&loop.lock);
    loop.woken = true;
    pthread_cond_broadcast(&loop.changed);
    bool is_worker = !pthread_equal(pthread_self(), loop.thread);
    int let_go = loop.let_go;
    while (is_worker && loop.holds && let_go == loop.let_go) {
        loop.held = true;
        pthread_cond_broadcast(&loop.changed);
        pthread_cond_wait(&loop.changed, &loop.lock);
    }
    loop.held = false;
    pthread_mutex_unlock(&loop.lock);
}

/* From now on the worker stops when it tells something while nothing waits to be delivered. */
static inline void hold(void) {
    pthread_mutex_lock(&loop.lock);
    loop.holds = true;
    pthread_mutex_unlock(&loop.lock);
}

static inline void wait_until_held(void) {
    pthread_mutex_lock(&loop.lock);
    while (!loop.held) pthread_cond_wait(&loop.changed, &loop.lock);
    pthread_mutex_unlock(&loop.lock);
}

static inline void let_go(void) {
    pthread_mutex_lock(&loop.lock);
    loop.holds = false;
    loop.let_go++;
    pthread_cond_broadcast(&loop.changed);
    pthread_mutex_unlock(&loop.lock);
}

/* The worker goes on until it tells the next thing. */
static inline void step(void) {
    pthread_mutex_lock(&loop.lock);
    loop.let_go++;
    pthread_cond_broadcast(&loop.changed);
    pthread_mutex_unlock(&loop.lock);
}

static inline void turn(plumb_scheduler *s) {
    pthread_mutex_lock(&loop.lock);
    while (!loop.woken) pthread_cond_wait(&loop.changed, &loop.lock);
    loop.woken = false;
    pthread_mutex_unlock(&loop.lock);
    plumb__scheduler_deliver(s);
}

static inline plumb_scheduler_stats stats_of(plumb_scheduler *s) {
    plumb_scheduler_stats stats;
    plumb__scheduler_get_stats(s, &stats);
    return stats;
}

/* What is told nobody: the worker has seen a cancellation. */
static inline void until_idle(plumb_scheduler *s) {
    const struct timespec moment = {.tv_nsec = 1000000};
    while (stats_of(s).busy > 0) (void)nanosleep(&moment, NULL);
}

/* ---- Schedulers ------------------------------------------------------------------------------- */

static char said[4096]; /* the lines of the log */

static inline void note(void *user, plumb_log_level level, const char *line) {
    (void)user;
    (void)level;
    size_t used = strlen(said);
    (void)snprintf(said + used, sizeof said - used, "%s\n", line);
}

static inline void new_id(void *user, const char *prefix, char *id) {
    static int next; /* the worker's alone */
    (void)user;
    (void)snprintf(id, 64, "%s%d", prefix, next++);
}

static inline plumb_scheduler *open_scheduler(plumb_scheduler_options options) {
    plumb_scheduler *s = NULL;
    plumb_error err;
    open_demo();
    said[0] = 0;
    loop.thread = pthread_self();
    loop.woken = loop.held = loop.holds = false;
    if (!options.model) options.model = model;
    options.text = text;
    options.new_id = new_id;
    options.wake = wake;
    options.log = note;
    must(plumb__scheduler_create(&options, &s, &err), &err, "scheduler");
    return s;
}

static inline void close_scheduler(plumb_scheduler *s) {
    let_go();
    plumb__scheduler_destroy(s);
}

#endif
