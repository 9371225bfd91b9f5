/* What each block of visible keys is worth to the candidate pool: its best score.  The newest block is
 * always in: its worth is infinite.  A thread owns a block of a row. */
#include "backend/metal/kernels/candidates.h"

kernel void index_blocks(device plumb_metal_control &control [[buffer(0)]],
                         constant plumb_metal_index &args [[buffer(1)]],
                         device const float *score [[buffer(2)]], /* [rows][score_stride] */
                         device float *block_score [[buffer(3)]], /* [rows][block_stride] */
                         uint item [[thread_position_in_grid]]) {
    if (plumb_halted(control)) return;
    uint row = item / args.block_stride, block = item % args.block_stride;
    if (row >= args.rows) return;
    uint visible = visible_keys(args.position, row, args.ratio);
    uint blocks = blocks_of(visible, args.block_size);
    if (block >= blocks) return;
    score += (ulong)row * args.score_stride;
    uint first = block * args.block_size;
    uint end = visible - first < args.block_size ? visible : first + args.block_size;
    float most = score[first];
    for (uint j = first + 1; j < end; j++) most = score[j] > most ? score[j] : most;
    block_score[item] = block == blocks - 1 ? plumb__float_of(PLUMB_INFINITY_BITS) : most;
}
