/* What every Metal kernel stands on: the arithmetic of src/arith, the control block, and the lanes of a
 * simdgroup as the lanes of docs/arithmetic.md section 4.
 *
 * cmake/metal_source.cmake joins these headers and all kernels into one text, which Metal compiles when
 * the backend starts.  Kernels declare no threadgroup memory of their own and use no reduction of the
 * library where an order matters. */
#ifndef PLUMB_BACKEND_METAL_COMMON_H
#define PLUMB_BACKEND_METAL_COMMON_H

#include <metal_stdlib>

/* a * b + c is two roundings (section 2), which safe maths alone does not promise.  Compilers know one
 * spelling or the other and pass over what they do not know. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunknown-pragmas"
#pragma METAL fp contract(off)
#pragma clang diagnostic pop
#pragma clang fp contract(off)
/* Nor does every kernel need all of src/arith. */
#pragma clang diagnostic ignored "-Wunused-function"

using namespace metal;

#include "arith/functions.h"
#include "arith/lanes.h"
#include "arith/rounding.h"
#include "backend/metal/kernels/arguments.h"

/* Whether an earlier kernel of the queue missed an expert: then this one changes nothing.  The same for
 * all threads of a dispatch, so that a kernel may return before its barriers. */
static inline bool plumb_halted(device plumb_metal_control &control) {
    return atomic_load_explicit(&control.halted, memory_order_relaxed) != 0;
}

/* A value that is not finite was met. */
static inline void plumb_fault(device plumb_metal_control &control) {
    atomic_fetch_or_explicit(&control.fault, (uint)PLUMB_METAL_VALUE_FAULT, memory_order_relaxed);
}

static inline bool plumb_finite(float x) {
    return (plumb__bits_of(x) & PLUMB_INFINITY_BITS) != PLUMB_INFINITY_BITS;
}

/* Section 4's tree over the 32 lanes of a simdgroup, all of which must call it.  An exchange with lane
 * i ^ 16 and so on makes in every lane the sum that lane 0 would have: additions commute, so the upper
 * lanes repeat the bits of the lower ones. */
static inline float plumb_join_lanes(float lane_sum) {
    lane_sum = lane_sum + simd_shuffle_xor(lane_sum, (ushort)16);
    lane_sum = lane_sum + simd_shuffle_xor(lane_sum, (ushort)8);
    lane_sum = lane_sum + simd_shuffle_xor(lane_sum, (ushort)4);
    lane_sum = lane_sum + simd_shuffle_xor(lane_sum, (ushort)2);
    lane_sum = lane_sum + simd_shuffle_xor(lane_sum, (ushort)1);
    return lane_sum;
}

/* Four bytes from any address, the first in the lowest bits: payloads lie where a file puts them, and a
 * packed vector, aligned to its element, is still one load. */
static inline uint plumb_load4(device const uchar *bytes) {
    return as_type<uint>(uchar4(*(device const packed_uchar4 *)bytes));
}

#endif
