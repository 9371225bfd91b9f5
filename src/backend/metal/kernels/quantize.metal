/* Quantises rows of activations; a thread owns a block, which it keeps in registers between the search for
 * its maximum and the encoding. */
#include "backend/metal/kernels/quantized.h"

kernel void quantize(device plumb_metal_control &control [[buffer(0)]],
                     constant plumb_metal_quantize &args [[buffer(1)]],
                     device const ushort4 *x [[buffer(2)]], /* [rows][k / 4] */
                     device uint4 *out [[buffer(3)]],       /* [rows] quantised rows */
                     uint item [[thread_position_in_grid]]) {
    if (plumb_halted(control)) return;
    uint blocks = args.k / PLUMB_BLOCK, row = item / blocks, block = item % blocks;
    if (row >= args.rows) return;
    x += (ulong)item * (PLUMB_BLOCK / 4);
    float value[PLUMB_BLOCK];
    for (uint i = 0; i < PLUMB_BLOCK / 4; i++) {
        float4 quad = plumb_load_quad(x[i]);
        value[4 * i] = quad.x;
        value[4 * i + 1] = quad.y;
        value[4 * i + 2] = quad.z;
        value[4 * i + 3] = quad.w;
    }
    device uchar *bytes = (device uchar *)out + (ulong)row * PLUMB_METAL_QUANTIZED_BYTES(args.k);
    if (!plumb_quantize_block(value, args.k, block, bytes)) plumb_fault(control);
}
