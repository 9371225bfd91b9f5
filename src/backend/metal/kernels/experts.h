/* Experts: the rows of a group that a threadgroup or a thread works on.  Grids are as large as the largest
 * group may be; what is past a group's end does nothing. */
#ifndef PLUMB_BACKEND_METAL_EXPERTS_H
#define PLUMB_BACKEND_METAL_EXPERTS_H

#include "backend/metal/kernels/linear_tile.h"

/* Rows of the tile that begins at row `row` of a group; 0: none. */
static inline uint plumb_group_rows(device const plumb_metal_group &g, uint row) {
    uint count = (uint)g.count;
    if (row >= count) return 0;
    return count - row < PLUMB_METAL_ROWS ? count - row : PLUMB_METAL_ROWS;
}

/* The same tile of another matrix. */
static inline void plumb_expert_tile(device plumb_metal_control &control, thread plumb_tile &t,
                                     uint fp8, plumb_metal_address codes, plumb_metal_address scales,
                                     device plumb_act *y, threadgroup float *sums, uint lane,
                                     uint simdgroup) {
    t.codes = codes;
    t.scales = scales;
    if (fp8) plumb_linear_tile<true>(control, t, y, sums, lane, simdgroup);
    else plumb_linear_tile<false>(control, t, y, sums, lane, simdgroup);
}

#endif
