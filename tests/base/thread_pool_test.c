/* The pool in haste and at leisure: runs that follow one another at once, runs after pauses in
 * which the threads fall asleep, and tasks so late that the caller does.  Whatever the timing, each
 * item is done once, by the thread whose range holds it, and the caller sees what was written. */
#include "base/thread_pool.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "t.h"

enum { MOST_ITEMS = 40 };

/* Plain members: that no two threads meet in one is the pool's promise, which ThreadSanitizer
 * checks where the tests are built with it. */
typedef struct work {
    int64_t run;              /* the number of the run, which each item gets */
    int64_t done[MOST_ITEMS]; /* the last run that did it */
    int by[MOST_ITEMS];       /* the thread that did */
    int faults[8];            /* of each thread: an item twice, or `start` did not come first */
    int late, late_us;        /* a thread that takes its time, and how long */
} work;

static atomic_int starts;
static _Thread_local bool started;

static void start(void) {
    started = true;
    atomic_fetch_add(&starts, 1);
}

static void rest(int us) {
    if (us > 0) nanosleep(&(struct timespec){.tv_nsec = 1000L * us}, NULL);
}

static int random_below(uint64_t *state, int n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)n);
}

static void do_items(void *arg, int64_t begin, int64_t end, int thread) {
    work *w = arg;
    if (thread > 0 && !started) w->faults[thread]++;
    if (thread == w->late) rest(w->late_us);
    for (int64_t i = begin; i < end; i++) {
        if (w->done[i] == w->run) w->faults[thread]++;
        w->done[i] = w->run;
        w->by[i] = thread;
    }
}

/* Ranges follow one another; the first items % threads of them have one item more. */
static bool all_done(const work *w, int items, int threads) {
    int at = 0;
    for (int t = 0; t < threads; t++)
        for (int n = items / threads + (t < items % threads); n > 0; n--, at++)
            if (w->done[at] != w->run || w->by[at] != t) return false;
    return at == items;
}

static const struct {
    const char *name;
    int pools, runs; /* of each pool */
    int pause_us;    /* at most, before each run */
    int late_us;     /* at most, of one thread in each run */
} lives[] = {
    {"at once", 1, 2000, 0, 0},        {"after pauses", 1, 150, 1000, 0},
    {"late threads", 1, 100, 0, 1000}, {"both", 1, 100, 500, 500},
    {"short lives", 50, 2, 0, 0},      {"no work", 50, 0, 0, 0},
};

static void live(size_t i, int threads, uint64_t *random) {
    work w = {.late = -1};
    int wrong = 0;
    plumb_pool *pool = NULL;
    plumb_error err;
    atomic_store(&starts, 0);
    if (plumb__pool_create(threads, start, &pool, &err) != PLUMB_OK) exit(1);
    for (int run = 0; run < lives[i].runs; run++) {
        int items = 1 + random_below(random, MOST_ITEMS);
        w.run++;
        w.late = random_below(random, threads);
        w.late_us = random_below(random, lives[i].late_us + 1);
        rest(random_below(random, lives[i].pause_us + 1));
        plumb__pool_run(pool, items, 1, do_items, &w);
        wrong += !all_done(&w, items, threads);
    }
    plumb__pool_destroy(pool);
    for (int t = 0; t < threads; t++) wrong += w.faults[t];
    T_CHECK(wrong == 0, "%s, %d threads: %d faults", lives[i].name, threads, wrong);
    T_CHECK(atomic_load(&starts) == threads - 1, "%s, %d threads: %d started", lives[i].name,
            threads, atomic_load(&starts));
}

static void any_timing(void) {
    static const int counts[] = {2, 3, 7};
    uint64_t random = 1;
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int pool = 0; pool < lives[i].pools; pool++) live(i, counts[c], &random);
}

/* Up to `grain` items stay with the caller; none are no call. */
static void few_items(void) {
    plumb_pool *pool = NULL;
    plumb_error err;
    if (plumb__pool_create(3, start, &pool, &err) != PLUMB_OK) exit(1);
    for (int items = 0; items <= 9; items++) {
        work w = {.run = 1, .late = -1};
        plumb__pool_run(pool, items, 8, do_items, &w);
        T_CHECK(all_done(&w, items, items <= 8 ? 1 : 3), "%d items", items);
        T_CHECK(w.done[items] == 0, "more than %d items", items);
    }
    plumb__pool_destroy(pool);
}

T_MAIN({"any_timing", any_timing}, {"few_items", few_items})
