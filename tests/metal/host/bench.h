/* What the tests of the Metal host share: a backend on a fake device that was told how to behave.  In a
 * header, since checks are counted in the file that makes them. */
#ifndef PLUMB_TESTS_METAL_HOST_BENCH_H
#define PLUMB_TESTS_METAL_HOST_BENCH_H

#include "backend/metal/metal_backend.h"

#include "fake_metal.h"

#include <stdlib.h>

#include "t.h"

/* Most autoreleased objects that one round of a loop may leave to its pool, and what is around it. */
enum { BENCH_LITTER = 24 };

/* Opens a backend on such a device; ends the program, saying why, when it refuses. */
static inline plumb_backend *bench_open(const fake_metal_options *options) {
    fake_metal_options littering = *options;
    littering.litters = true; /* where a pool is missing, something is left */
    fake_metal_configure(&littering);
    plumb_backend *b = NULL;
    plumb_error err = {0};
    if (plumb__metal_backend_create(&b, &err) == PLUMB_OK) {
        fake_metal_settle();
        fake_metal_counters c = fake_metal_count();
        T_CHECK(c.autoreleased == 0 && c.most_autoreleased <= BENCH_LITTER,
                "opened: %" PRId64 " autoreleased, %" PRId64 " at a time", c.autoreleased, c.most_autoreleased);
        return b;
    }
    char line[1024];
    plumb_error_line(&err, line, sizeof line);
    fprintf(stderr, "refused: %s\n", line);
    exit(1);
}

/* Checks that nothing is left of any backend and that validation had nothing to say. */
static inline void bench_nothing_left(const char *after) {
    fake_metal_settle();
    fake_metal_counters c = fake_metal_count();
    T_CHECK(c.live_objects == 0 && c.live_buffers == 0 && c.live_bytes == 0 && c.autoreleased == 0,
            "%s: %" PRId64 " objects, %" PRId64 " buffers, %" PRId64 " autoreleased", after,
            c.live_objects, c.live_buffers, c.autoreleased);
    for (int i = 0; i < fake_metal_errors(); i++)
        T_CHECK(false, "%s: %s", after, fake_metal_error(i));
}

static inline void bench_close(plumb_backend *b) {
    b->ops->close(b);
    bench_nothing_left("closed");
}

/* Activations 0, 1, 2, ... in memory of the backend. */
static inline plumb_act *bench_counting(plumb_backend *b, int64_t n) {
    plumb_act *x = b->ops->allocate(b, n * (int64_t)sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = (plumb_act)i;
    return x;
}

/* Waits; whether `n` activations count from `first`. */
static inline bool bench_counts(plumb_backend *b, const plumb_act *x, int64_t n, int64_t first) {
    b->ops->wait(b);
    for (int64_t i = 0; i < n; i++)
        if (x[i] != (plumb_act)(first + i)) return false;
    return true;
}

#endif
