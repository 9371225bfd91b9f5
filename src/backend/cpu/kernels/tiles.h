/* The inner loops of attention and of the index: packed keys unpacked into a tile that fits the first
 * cache, and weighted sums of its rows.  Its lane products are in kernels.h.
 *
 * The order of every sum is fixed (docs/arithmetic.md sections 4 and 6); how many of them run side by
 * side is free, and all that a level's own variant changes. */
#ifndef PLUMB_BACKEND_CPU_TILES_H
#define PLUMB_BACKEND_CPU_TILES_H

#include "backend/cpu/kernels/kernels.h"

/* Blocks [begin, end) of thirty-two elements of a packed row of `dim`. */
void PLUMB_KERNEL(unpack_window)(const uint8_t *row, int64_t dim, int64_t begin, int64_t end,
                                 float *out);
void PLUMB_KERNEL(unpack_compressed)(const uint8_t *row, int64_t dim, int64_t begin, int64_t end,
                                     float *out);
/* A whole index row. */
void PLUMB_KERNEL(unpack_index)(const uint8_t *row, int64_t dim, float *out);

enum { PLUMB_STRIP = 32 }; /* elements of the rows that are summed at a time: one packed block */

/* For j in order: sum[r][d] = fma(p[r * p_stride + j], value[j][d], sum[r][d]).  value [n][32], sum
 * [rows][32]. */
void PLUMB_KERNEL(add_weighted)(const float *p, int64_t p_stride, int64_t rows, const float *value,
                                int64_t n, float *sum);

#endif
