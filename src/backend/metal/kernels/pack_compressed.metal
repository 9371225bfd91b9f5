/* Rows of activations into compressed keys: dim/2 bytes of e2m1 pairs, then dim/16 e4m3 scales.  A
 * thread owns a block of sixteen. */
#include "backend/metal/kernels/common.h"

kernel void pack_compressed(device plumb_metal_control &control [[buffer(0)]],
                            constant plumb_metal_pack &args [[buffer(1)]],
                            device const plumb_act *x [[buffer(2)]], /* [rows][dim] */
                            device uchar *packed [[buffer(3)]],      /* [rows] compressed keys */
                            uint item [[thread_position_in_grid]]) {
    if (plumb_halted(control)) return;
    uint blocks = args.dim / PLUMB_COMPRESSED_BLOCK, row = item / blocks, block = item % blocks;
    if (row >= args.rows) return;
    x += (ulong)item * PLUMB_COMPRESSED_BLOCK;
    packed += row * plumb__compressed_row_bytes(args.dim);
    float value[PLUMB_COMPRESSED_BLOCK];
    for (uint i = 0; i < PLUMB_COMPRESSED_BLOCK; i++) value[i] = plumb__load(x[i]);
    plumb__compressed_pack_block(value, args.dim, block, packed);
}
