/* What all objects of the fake share: one lock and one condition, the options, the counters, random
 * numbers. Messages that may deallocate an object are never sent under the lock. */
#ifndef PLUMB_TESTS_METAL_FAKE_STATE_H
#define PLUMB_TESTS_METAL_FAKE_STATE_H

#include <pthread.h>

#include "fake_metal.h"

typedef struct fake_state {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a status, an event's value, a queue's list, `steps` */
    fake_metal_options options;
    fake_metal_counters counters;
    uint64_t random;
    uint64_t clock;         /* orders commits of command buffers and of residency sets */
    int64_t unfinished;     /* command buffers that were committed and hold on to something */
    int64_t steps;          /* that queues may take, or FAKE_METAL_ALL */
} fake_state;

/* Locks the one state; unlock with fake_unlock. */
fake_state *fake_lock(void);
void fake_unlock(void);
/* Waits for `changed`, at most until `deadline_ns` of fake_clock_ns; false when that has passed.
 * The lock is held before and after. */
bool fake_wait(int64_t deadline_ns);
void fake_changed(void);
int64_t fake_clock_ns(void);

/* Moves the clock on that orders commits, and gives its time; lock held. */
uint64_t fake_clock_tick(void);
uint64_t fake_random(void);
/* Before a step of a queue: waits as long as the options ask for, and until it is allowed. */
void fake_delay(void);

/* Records what validation objects to. */
void fake_object_to(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
