/* What the tests of the Metal host share: a backend on a fake device that was told how to behave. */
#ifndef PLUMB_TESTS_METAL_HOST_BENCH_H
#define PLUMB_TESTS_METAL_HOST_BENCH_H

#include "backend/metal/metal_backend.h"

#include "fake_metal.h"

/* Opens a backend on such a device; ends the program, saying why, when it refuses. */
plumb_backend *bench_open(const fake_metal_options *options);
/* Closes it, and checks that nothing is left and that validation had nothing to say. */
void bench_close(plumb_backend *b);
/* The same checks, without a backend. */
void bench_nothing_left(const char *after);

/* Activations 0, 1, 2, ... in memory of the backend. */
plumb_act *bench_counting(plumb_backend *b, int64_t n);
/* Waits; whether `n` activations count from `first`. */
bool bench_counts(plumb_backend *b, const plumb_act *x, int64_t n, int64_t first);

#endif
