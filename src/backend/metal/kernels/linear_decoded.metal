/* y = W x with FP8 weights that the published code uses as bf16: decoded to their exact bf16 value, then
 * linear.h.  A step of the lanes is a block of the matrix and has one scale. */
#include "backend/metal/kernels/linear.h"

kernel void linear_decoded(device plumb_metal_control &control [[buffer(0)]],
                           constant plumb_metal_linear &args [[buffer(1)]],
                           device const plumb_act *x [[buffer(2)]], /* [rows][k], strided */
                           device const uchar *codes [[buffer(3)]],  /* [n][k] */
                           device const uchar *scales [[buffer(4)]], /* [n / 32][k / 32], rounded up */
                           device uchar *y [[buffer(5)]], /* plumb_act or float, strided */
                           uint3 group [[threadgroup_position_in_grid]],
                           uint lane [[thread_index_in_simdgroup]],
                           uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    uint n = plumb_linear_column(group, simdgroup);
    if (plumb_halted(control) || n >= args.n) return;
    x += (ulong)group.y * args.x_stride;
    codes += (ulong)n * args.k;
    scales += (ulong)(n / PLUMB_BLOCK) * ((args.k + PLUMB_BLOCK - 1) / PLUMB_BLOCK);
    float sum = 0.0f;
#pragma unroll(4) /* several elements are on their way from memory at a time */
    for (uint i = lane; i < args.k; i += PLUMB_METAL_SIMD) {
        float scale = plumb__power_of_two((int)scales[i / PLUMB_BLOCK] - 127);
        ushort weight = plumb__bf16_encode(plumb__e4m3_decode(codes[i]) * scale);
        sum = plumb__fma(plumb__load(x[i]), plumb__bf16_decode(weight), sum);
    }
    plumb_linear_store(control, args, sum, group.y, n, lane, y);
}
