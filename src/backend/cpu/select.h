/* Selection of the k best (docs/arithmetic.md section 7): larger value first, equal values: smaller
 * index first, so the result is a set that no traversal order changes. */
#ifndef PLUMB_BACKEND_CPU_SELECT_H
#define PLUMB_BACKEND_CPU_SELECT_H

#include <stdint.h>

/* Indices of the k best of n finite values, ascending, into `out` [min(k, n)]; returns how many.
 * Linear time in n. */
int64_t plumb__select_top(const float *value, int64_t n, int64_t k, int32_t *out);

#endif
