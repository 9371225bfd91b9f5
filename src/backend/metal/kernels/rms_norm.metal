/* RMSNorm of a row by one simdgroup, whose lanes are the contract's: lane j squares elements j, j+32,
 * ... in order (docs/arithmetic.md section 4).  In place: a lane writes only what it alone has read. */
#include "backend/metal/kernels/common.h"

kernel void rms_norm(device plumb_metal_control &control [[buffer(0)]],
                     constant plumb_metal_rms_norm &args [[buffer(1)]],
                     device plumb_act *x [[buffer(2)]],   /* [rows][width] */
                     device const float *w [[buffer(3)]], /* [width] */
                     uint row [[threadgroup_position_in_grid]],
                     uint lane [[thread_index_in_simdgroup]]) {
    if (plumb_halted(control)) return;
    x += (ulong)row * args.width;
    float squares = 0.0f;
#pragma unroll(8) /* many elements are on their way at a time: in decode nothing else hides the wait */
    for (uint i = lane; i < args.width; i += PLUMB_METAL_SIMD) {
        float value = plumb__load(x[i]);
        squares = plumb__fma(value, value, squares);
    }
    float mean = plumb_join_lanes(squares) / (float)args.width;
    float r = plumb__rsqrt(mean + args.eps);
    for (uint i = lane; i < args.width; i += PLUMB_METAL_SIMD)
        x[i] = plumb__store(w[i] * (plumb__load(x[i]) * r));
}
