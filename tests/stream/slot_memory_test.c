/* Memory for slots that is made ahead: never more pieces than the limit but for those taken, each known
 * to the reader as long as it exists, and all of it given back. */
#include "stream/slot_memory.h"
#include "t.h"

#include <pthread.h>
#include <time.h>

enum { BYTES = 3 << 20, AHEAD = 3, MOST = 16 };

/* A reader that only remembers which memory it was given. */
typedef struct ledger {
    plumb_reader base;
    pthread_mutex_t lock;
    void *known[MOST];
    int n, added, faults;
    bool hold;    /* add_memory waits */
    bool waiting; /* it does */
    pthread_cond_t changed;
} ledger;

static void add_memory(plumb_reader *reader, void *memory, int64_t bytes) {
    ledger *l = (ledger *)reader;
    pthread_mutex_lock(&l->lock);
    l->waiting = l->hold;
    pthread_cond_broadcast(&l->changed);
    while (l->hold) pthread_cond_wait(&l->changed, &l->lock);
    l->faults += bytes != BYTES || l->n == MOST;
    if (l->n < MOST) l->known[l->n++] = memory;
    l->added++;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static void remove_memory(plumb_reader *reader, void *memory, int64_t bytes) {
    ledger *l = (ledger *)reader;
    pthread_mutex_lock(&l->lock);
    int at = 0;
    while (at < l->n && l->known[at] != memory) at++;
    l->faults += bytes != BYTES || at == l->n;
    if (at < l->n) l->known[at] = l->known[--l->n];
    pthread_mutex_unlock(&l->lock);
}

static const plumb_reader_ops ledger_ops = {"ledger", NULL, add_memory, remove_memory, NULL};

static int known(ledger *l) {
    pthread_mutex_lock(&l->lock);
    int n = l->n;
    pthread_mutex_unlock(&l->lock);
    return n;
}

/* Waits, for seconds at most, until there are so many pieces and the reader knows them. */
static bool settles_at(ledger *l, plumb_slot_memory *m, int n) {
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0; i < 10000; i++) {
        if (plumb__slot_memory_bytes(m) == n * (int64_t)BYTES && known(l) == n) return true;
        nanosleep(&moment, NULL);
    }
    return false;
}

static void ahead_of_need(void) {
    ledger l = {.base = {.ops = &ledger_ops}, .lock = PTHREAD_MUTEX_INITIALIZER};
    plumb_slot_memory *m = NULL;
    plumb_error err;
    T_CHECK(plumb__slot_memory_open(&l.base, NULL, BYTES, AHEAD, &m, &err) == PLUMB_OK, "%s", err.found);
    plumb__slot_memory_limit(m, 2);
    T_CHECK(settles_at(&l, m, 2), "%d pieces, limit 2", known(&l));
    plumb__slot_memory_limit(m, 10);
    T_CHECK(settles_at(&l, m, AHEAD), "%d pieces ready", known(&l));
    /* What is taken is replaced, up to the limit. */
    void *taken[10];
    for (int i = 0; i < 10; i++) {
        taken[i] = plumb__slot_memory_take(m);
        T_CHECK(taken[i] != NULL, "piece %d", i);
        for (int64_t at = 0; taken[i] && at < BYTES; at += 4096) ((char *)taken[i])[at] = (char)i;
    }
    for (int i = 0; i < 10; i++)
        T_CHECK(((char *)taken[i])[BYTES - 4096] == i, "piece %d is another's too", i);
    plumb__slot_memory_limit(m, 10); /* one may have been made while another was taken */
    T_CHECK(settles_at(&l, m, 10), "%d pieces of 10", known(&l));
    for (int i = 0; i < 4; i++) plumb__slot_memory_give_back(m, taken[i]);
    plumb__slot_memory_limit(m, 6);
    T_CHECK(settles_at(&l, m, 6), "%d pieces, limit 6", known(&l));
    for (int i = 4; i < 10; i++) plumb__slot_memory_give_back(m, taken[i]);
    plumb__slot_memory_close(m);
    T_CHECK(l.n == 0 && l.faults == 0, "%d pieces left, %d faults", l.n, l.faults);
}

/* The limit falls while a piece is being made: it is not kept. */
static void one_too_many(void) {
    ledger l = {.base = {.ops = &ledger_ops}, .lock = PTHREAD_MUTEX_INITIALIZER, .hold = true,
                .changed = PTHREAD_COND_INITIALIZER};
    plumb_slot_memory *m = NULL;
    plumb_error err;
    T_CHECK(plumb__slot_memory_open(&l.base, NULL, BYTES, AHEAD, &m, &err) == PLUMB_OK, "%s", err.found);
    plumb__slot_memory_limit(m, 1);
    pthread_mutex_lock(&l.lock);
    while (!l.waiting) pthread_cond_wait(&l.changed, &l.lock);
    pthread_mutex_unlock(&l.lock);
    plumb__slot_memory_limit(m, 0);
    pthread_mutex_lock(&l.lock);
    l.hold = false;
    pthread_cond_broadcast(&l.changed);
    while (l.added == 0) pthread_cond_wait(&l.changed, &l.lock);
    pthread_mutex_unlock(&l.lock);
    T_CHECK(settles_at(&l, m, 0), "%d pieces, limit 0", known(&l));
    plumb__slot_memory_close(m);
    T_CHECK(l.faults == 0, "%d faults", l.faults);
}

static void made_when_taken(void) {
    ledger l = {.base = {.ops = &ledger_ops}, .lock = PTHREAD_MUTEX_INITIALIZER};
    plumb_slot_memory *m = NULL;
    plumb_error err;
    T_CHECK(plumb__slot_memory_open(&l.base, NULL, BYTES, 0, &m, &err) == PLUMB_OK, "%s", err.found);
    plumb__slot_memory_limit(m, 5);
    T_CHECK(plumb__slot_memory_bytes(m) == 0, "%s", "nothing is made ahead");
    void *piece = plumb__slot_memory_take(m);
    T_CHECK(piece && known(&l) == 1 && plumb__slot_memory_bytes(m) == BYTES, "%d pieces", known(&l));
    plumb__slot_memory_give_back(m, piece);
    plumb__slot_memory_close(m);
    T_CHECK(l.n == 0 && l.faults == 0, "%d pieces left, %d faults", l.n, l.faults);
}

/* More than any machine has: an answer, not an end. */
static void no_memory(void) {
    ledger l = {.base = {.ops = &ledger_ops}, .lock = PTHREAD_MUTEX_INITIALIZER};
    plumb_slot_memory *m = NULL;
    plumb_error err;
    T_CHECK(plumb__slot_memory_open(&l.base, NULL, INT64_C(1) << 60, AHEAD, &m, &err) == PLUMB_OK, "%s",
            err.found);
    plumb__slot_memory_limit(m, 5);
    T_CHECK(plumb__slot_memory_take(m) == NULL, "%s", "an exabyte");
    T_CHECK(known(&l) == 0, "%d pieces", known(&l));
    plumb__slot_memory_close(m);
}

T_MAIN({"ahead_of_need", ahead_of_need}, {"one_too_many", one_too_many}, {"made_when_taken", made_when_taken},
       {"no_memory", no_memory})
