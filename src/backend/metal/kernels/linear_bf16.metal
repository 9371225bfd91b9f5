/* y = W x with bf16 weights: linear.h. */
#include "backend/metal/kernels/linear.h"

kernel void linear_bf16(device plumb_metal_control &control [[buffer(0)]],
                        constant plumb_metal_linear &args [[buffer(1)]],
                        device const plumb_act *x [[buffer(2)]], /* [rows][k], strided */
                        device const ushort *codes [[buffer(3)]], /* [n][k] */
                        device uchar *y [[buffer(5)]], /* plumb_act or float, strided */
                        uint3 group [[threadgroup_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]],
                        uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    uint n = plumb_linear_column(group, simdgroup);
    if (plumb_halted(control) || n >= args.n) return;
    x += (ulong)group.y * args.x_stride;
    codes += (ulong)n * args.k;
    float sum = 0.0f;
#pragma unroll(4) /* several elements are on their way from memory at a time */
    for (uint i = lane; i < args.k; i += PLUMB_METAL_SIMD)
        sum = plumb__fma(plumb__load(x[i]), plumb__bf16_decode(codes[i]), sum);
    plumb_linear_store(control, args, sum, group.y, n, lane, y);
}
