/* The thread pool: every item once, on the thread that it belongs to, however long a thread waits for
 * work or the caller for a thread.  A wake-up that is lost would end in a wait without end: an alarm ends
 * the program instead. */
#include "base/thread_pool.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "t.h"

enum { MOST_THREADS = 7, MOST_ITEMS = 40, ROUNDS = 40, SECONDS_ALLOWED = 20 /* a pool */ };

static void nap(void) {
    const struct timespec while_others_sleep = {.tv_nsec = 3000000};
    nanosleep(&while_others_sleep, NULL);
}

/* What each thread was given; every thread writes its own element. */
typedef struct account {
    int64_t begin[MOST_THREADS], end[MOST_THREADS];
    int calls[MOST_THREADS];
    int slow; /* the thread that takes long; -1: none */
} account;

static void note(void *arg, int64_t begin, int64_t end, int thread) {
    account *a = arg;
    if (thread == a->slow) nap();
    a->begin[thread] = begin;
    a->end[thread] = end;
    a->calls[thread]++;
}

/* As even as possible, the first ones one longer. */
static void check_split(const account *a, int64_t items, int threads) {
    int64_t at = 0;
    for (int t = 0; t < threads; t++) {
        int64_t share = items / threads + (t < items % threads);
        T_CHECK(a->calls[t] == (share > 0), "thread %d of %d was called %d times", t, threads, a->calls[t]);
        T_CHECK(share == 0 || (a->begin[t] == at && a->end[t] == at + share),
                "%" PRId64 " items, thread %d of %d: [%" PRId64 ", %" PRId64 ")", items, t, threads,
                a->begin[t], a->end[t]);
        at += share;
    }
}

static plumb_pool *make_pool(int threads) {
    plumb_pool *pool = NULL;
    plumb_error err;
    alarm(SECONDS_ALLOWED);
    if (plumb__pool_create(threads, NULL, &pool, &err) != PLUMB_OK) exit(1);
    return pool;
}

static void run_and_check(plumb_pool *pool, int64_t items, int slow) {
    account a = {.slow = slow};
    plumb__pool_run(pool, items, 0, note, &a);
    check_split(&a, items, plumb__pool_threads(pool));
}

static void splits(void) {
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        plumb_pool *pool = make_pool(threads);
        for (int64_t items = 1; items <= MOST_ITEMS; items++) run_and_check(pool, items, -1);
        plumb__pool_destroy(pool);
    }
}

/* No more items than the grain are the caller's; none are nobody's. */
static void grains(void) {
    plumb_pool *pool = make_pool(3);
    account a = {.slow = -1};
    plumb__pool_run(pool, 10, 10, note, &a);
    T_CHECK(a.calls[0] == 1 && a.begin[0] == 0 && a.end[0] == 10 && a.calls[1] + a.calls[2] == 0,
            "10 of 10");
    plumb__pool_run(pool, 0, 0, note, &a);
    T_CHECK(a.calls[0] == 1, "no items");
    plumb__pool_run(pool, 11, 10, note, &a);
    T_CHECK(a.calls[0] == 2 && a.calls[1] == 1 && a.calls[2] == 1, "11 of 10");
    plumb__pool_destroy(pool);
}

/* Workers that have long been asleep, a caller that waits long for one of them, and both in turn with
 * runs that follow at once. */
static void sleepers(void) {
    for (int threads = 2; threads <= MOST_THREADS; threads += 2) {
        plumb_pool *pool = make_pool(threads);
        for (int i = 0; i < ROUNDS; i++) {
            if (i % 2) nap();
            run_and_check(pool, MOST_ITEMS, i % 3 == 0 ? threads - 1 : i % 3 == 1 ? 0 : -1);
        }
        nap(); /* what is destroyed is asleep */
        plumb__pool_destroy(pool);
    }
}

T_MAIN({"splits", splits}, {"grains", grains}, {"sleepers", sleepers})
