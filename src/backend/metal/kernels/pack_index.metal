/* Rows of activations into index keys or queries: dim/2 bytes of e2m1 pairs, then dim/32 ue8m0 scales.
 * A thread owns a block of thirty-two. */
#include "backend/metal/kernels/common.h"

kernel void pack_index(device plumb_metal_control &control [[buffer(0)]],
                       constant plumb_metal_pack &args [[buffer(1)]],
                       device const plumb_act *x [[buffer(2)]], /* [rows][dim] */
                       device uchar *packed [[buffer(3)]],      /* [rows] index rows */
                       uint item [[thread_position_in_grid]]) {
    if (plumb_halted(control)) return;
    uint blocks = args.dim / PLUMB_BLOCK, row = item / blocks, block = item % blocks;
    if (row >= args.rows) return;
    x += (ulong)item * PLUMB_BLOCK;
    packed += row * plumb__index_row_bytes(args.dim);
    float value[PLUMB_BLOCK];
    for (uint i = 0; i < PLUMB_BLOCK; i++) value[i] = plumb__load(x[i]);
    plumb__index_pack_block(value, args.dim, block, packed);
}
