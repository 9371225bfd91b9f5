/* Linear layers of unquantised operands: thirty-two lanes (docs/arithmetic.md section 4).
 *
 * A simdgroup makes one output; its lanes are the contract's, so that they read neighbouring weights and
 * activations, and the tree joins them. */
#ifndef PLUMB_BACKEND_METAL_LINEAR_H
#define PLUMB_BACKEND_METAL_LINEAR_H

#include "backend/metal/kernels/common.h"

/* Which output a simdgroup makes. */
static inline uint plumb_linear_column(uint3 group, uint simdgroup) {
    return group.x * (PLUMB_METAL_THREADS / PLUMB_METAL_SIMD) + simdgroup;
}

/* Joins the lanes' sums and stores element n of a row. */
static inline void plumb_linear_store(device plumb_metal_control &control,
                                      constant plumb_metal_linear &args, float lane_sum, uint row,
                                      uint n, uint lane, device uchar *y) {
    float sum = plumb_join_lanes(lane_sum);
    if (lane != 0) return;
    ulong at = (ulong)row * args.y_stride + n;
    if (args.to_float) ((device float *)y)[at] = sum;
    else ((device plumb_act *)y)[at] = plumb__store(sum);
    if (!plumb_finite(sum)) plumb_fault(control);
}

#endif
