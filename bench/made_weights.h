/* Random weights and activations in the released formats, made in memory.
 *
 * Values are Gaussian with a standard deviation of about k^-0.5, as a trained matrix has, so that
 * products stay near one and kernels see the codes and scales that they see in a checkpoint: some
 * take another path for rare values. */
#ifndef BENCH_MADE_WEIGHTS_H
#define BENCH_MADE_WEIGHTS_H

#include "backend/backend.h"

/* Draws in a fixed order: same calls, same numbers. */
typedef struct bench_random {
    uint64_t state;
    float *gaussian;       /* [65536], standard deviation 1 */
    uint8_t *e4m3, *e2m1;  /* [65536] codes of it times 64; pairs of codes of it times 2 */
} bench_random;

bool bench_random_open(bench_random *random); /* false: no memory */
void bench_random_close(bench_random *random);
uint64_t bench_draw(bench_random *random); /* 64 uniform bits */
float bench_draw_gaussian(bench_random *random);
void bench_draw_floats(bench_random *random, float mean, float deviation, float *x, int64_t n);
void bench_draw_activations(bench_random *random, plumb_act *x, int64_t n);

/* Bytes of a matrix as it is stored, codes and scales. */
int64_t bench_matrix_bytes(plumb_matrix_type type, int64_t n, int64_t k);
/* The same, up to where the next matrix may begin. */
int64_t bench_matrix_stride(plumb_matrix_type type, int64_t n, int64_t k);
/* Fills `memory` (bench_matrix_stride bytes, aligned to 64) and describes it. */
plumb_matrix bench_make_matrix(bench_random *random, plumb_matrix_type type, int64_t n, int64_t k,
                               void *memory);

#endif
