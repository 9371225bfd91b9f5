/* y = W x of quantised activations and e4m3 weights: linear_tile.h. */
#include "backend/metal/kernels/linear_quantized.h"

kernel void linear_fp8(device plumb_metal_control &control [[buffer(0)]],
                       constant plumb_metal_linear_quantized &args [[buffer(1)]],
                       device const uint4 *x [[buffer(2)]],      /* [rows] quantised rows */
                       device const uchar *codes [[buffer(3)]],  /* [n][k] */
                       device const uchar *scales [[buffer(4)]], /* [n / 32][k / 32], rounded up */
                       device plumb_act *y [[buffer(5)]],        /* [rows][n] */
                       threadgroup float *sums [[threadgroup(0)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    if (plumb_halted(control)) return;
    plumb_linear_quantized<true>(control, args, x, codes, scales, y, sums, group, lane, simdgroup);
}
