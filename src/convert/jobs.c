#include "convert/jobs.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* What the caller's waits are timed by: a clock that nobody sets, where conditions can have one. */
#if defined(__APPLE__)
#define WAIT_CLOCK CLOCK_REALTIME
#else
#define WAIT_CLOCK CLOCK_MONOTONIC
#endif

struct plumb_jobs {
    const plumb_work *work;
    pthread_mutex_t lock;
    pthread_cond_t ended;   /* a thread */
    int64_t next, done;     /* next item; bytes */
    int running;
    bool stopped;           /* by the caller */
    int64_t failed;         /* lowest item with a fault, or items */
    plumb_status status;
    plumb_error fault;
};

int plumb__jobs_threads(int asked) {
    enum { MOST = 8 };
    if (asked > 0) return asked;
    int cores = plumb__machine_cores();
    return cores < MOST / 4 ? 4 * cores : MOST;
}

typedef struct worker {
    plumb_jobs *jobs;
    int number;
    pthread_t thread;
} worker;

static plumb_status cancelled(plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_CANCELLED, NULL, NULL, -1, "a request to stop", NULL);
}

/* Items above one that failed need not be finished; those below may hold an earlier fault. */
plumb_status plumb__jobs_add(plumb_jobs *jobs, int64_t item, int64_t bytes, plumb_error *err) {
    pthread_mutex_lock(&jobs->lock);
    jobs->done += bytes;
    bool stop = jobs->stopped || item > jobs->failed;
    pthread_mutex_unlock(&jobs->lock);
    return stop ? cancelled(err) : PLUMB_OK;
}

/* The next item, or -1. */
static int64_t take(plumb_jobs *jobs) {
    pthread_mutex_lock(&jobs->lock);
    bool more = !jobs->stopped && jobs->failed == jobs->work->items && jobs->next < jobs->work->items;
    int64_t item = more ? jobs->next++ : -1;
    pthread_mutex_unlock(&jobs->lock);
    return item;
}

static void *run_worker(void *arg) {
    worker *w = arg;
    plumb_jobs *jobs = w->jobs;
    for (int64_t item; (item = take(jobs)) >= 0;) {
        plumb_error err = {0};
        plumb_status status = jobs->work->run(jobs->work->user, jobs, w->number, item, &err);
        if (status == PLUMB_OK) continue;
        pthread_mutex_lock(&jobs->lock);
        if (item < jobs->failed && status != PLUMB_ERROR_CANCELLED) {
            jobs->failed = item;
            jobs->status = status;
            jobs->fault = err;
        }
        pthread_mutex_unlock(&jobs->lock);
    }
    pthread_mutex_lock(&jobs->lock);
    jobs->running--;
    pthread_cond_signal(&jobs->ended);
    pthread_mutex_unlock(&jobs->lock);
    return NULL;
}

/* Called with the lock held, which is given up while the caller looks. */
static void report(plumb_jobs *jobs, double began) {
    if (!jobs->work->progress) return;
    const plumb_progress now = {jobs->work->doing, jobs->done, jobs->work->total,
                                plumb__now() - began};
    pthread_mutex_unlock(&jobs->lock);
    bool stop = jobs->work->progress(jobs->work->progress_user, &now) != 0;
    pthread_mutex_lock(&jobs->lock);
    jobs->stopped |= stop;
}

static void watch(plumb_jobs *jobs, double began) {
    enum { TENTH = 100000000, SECOND = 1000000000 };
    pthread_mutex_lock(&jobs->lock);
    while (jobs->running > 0) {
        report(jobs, began);
        struct timespec until;
        (void)clock_gettime(WAIT_CLOCK, &until);
        until.tv_nsec += TENTH;
        until.tv_sec += until.tv_nsec / SECOND;
        until.tv_nsec %= SECOND;
        if (jobs->running > 0) (void)pthread_cond_timedwait(&jobs->ended, &jobs->lock, &until);
    }
    report(jobs, began);
    pthread_mutex_unlock(&jobs->lock);
}

static void init_ended(pthread_cond_t *ended) {
#if defined(__APPLE__)
    pthread_cond_init(ended, NULL);
#else
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, WAIT_CLOCK);
    pthread_cond_init(ended, &attributes);
    pthread_condattr_destroy(&attributes);
#endif
}

plumb_status plumb__jobs_run(const plumb_work *work, plumb_error *err) {
    plumb_jobs jobs = {.work = work, .failed = work->items};
    worker *workers = calloc((size_t)work->jobs, sizeof *workers);
    if (!workers) return plumb__fail_memory(err, "jobs", (size_t)work->jobs * sizeof *workers);
    pthread_mutex_init(&jobs.lock, NULL);
    init_ended(&jobs.ended);
    int started = 0;
    double began = plumb__now();
    for (; started < work->jobs; started++) {
        workers[started] = (worker){.jobs = &jobs, .number = started};
        pthread_mutex_lock(&jobs.lock);
        jobs.running++;
        pthread_mutex_unlock(&jobs.lock);
        if (pthread_create(&workers[started].thread, NULL, run_worker, &workers[started]) != 0) break;
    }
    if (started < work->jobs) {
        pthread_mutex_lock(&jobs.lock);
        jobs.running--; /* of the thread that there is not; the others do its work */
        pthread_mutex_unlock(&jobs.lock);
    }
    watch(&jobs, began);
    for (int i = 0; i < started; i++) (void)pthread_join(workers[i].thread, NULL);
    free(workers);
    pthread_cond_destroy(&jobs.ended);
    pthread_mutex_destroy(&jobs.lock);
    if (started == 0) return plumb__fail_memory(err, "a thread", sizeof *workers);
    if (jobs.status != PLUMB_OK) {
        if (err) *err = jobs.fault;
        return jobs.status;
    }
    return jobs.stopped ? cancelled(err) : PLUMB_OK;
}
