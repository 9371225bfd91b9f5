/* The operations on rows, whose weights are small or none: time per token. */
#ifndef BENCH_KERNEL_ROWS_H
#define BENCH_KERNEL_ROWS_H

#include "backend/cpu/kernels/kernels.h"
#include "made_weights.h"

typedef struct bench_rows bench_rows; /* operands of the released shapes, for all operations */

/* NULL: no memory. */
bench_rows *bench_rows_create(plumb_backend *backend, const plumb_cpu_kernels *kernels,
                              bench_random *random);
void bench_rows_destroy(bench_rows *rows);

typedef struct bench_row_case {
    const char *name, *shape;
    int64_t tokens;
    double operations; /* multiply-adds of a call times two; 0 where counting them says nothing */
    void (*run)(bench_rows *rows, int64_t tokens);
} bench_row_case;
extern const bench_row_case bench_row_cases[];
extern const int bench_row_case_count;

#endif
