/* Quantised linear layers: a threadgroup makes a tile of linear_tile.h. */
#ifndef PLUMB_BACKEND_METAL_LINEAR_QUANTIZED_H
#define PLUMB_BACKEND_METAL_LINEAR_QUANTIZED_H

#include "backend/metal/kernels/linear_tile.h"

template <bool fp8>
static inline void plumb_linear_quantized(device plumb_metal_control &control,
                                          constant plumb_metal_linear_quantized &args,
                                          device const uint4 *x, device const uchar *codes,
                                          device const uchar *scales, device plumb_act *y,
                                          threadgroup float *sums, uint3 group, uint lane,
                                          uint simdgroup) {
    uint row = group.y * PLUMB_METAL_ROWS, left = args.rows - row;
    ulong row_words = PLUMB_METAL_QUANTIZED_BYTES(args.k) / 4;
    device const uint *first = (device const uint *)x + row * row_words;
    plumb_tile t;
    t.rows = left < PLUMB_METAL_ROWS ? left : PLUMB_METAL_ROWS;
    for (uint r = 0; r < PLUMB_METAL_ROWS; r++)
        t.x[r] = first + (r < t.rows ? r : t.rows - 1) * row_words;
    t.own_x = first + (simdgroup < t.rows ? simdgroup : t.rows - 1) * row_words;
    t.codes = codes;
    t.scales = scales;
    t.n = args.n;
    t.k = args.k;
    t.column = group.x * PLUMB_METAL_COLUMNS;
    plumb_linear_tile<fp8>(control, t, y + (ulong)(row + simdgroup) * args.n, sums, lane, simdgroup);
}

#endif
