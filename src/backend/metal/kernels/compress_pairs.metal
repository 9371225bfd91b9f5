/* Softmax over the two tokens of a pair, per channel, every product rounded (docs/arithmetic.md
 * section 10, compressor pair).  A thread owns a channel of a latent. */
#include "backend/metal/kernels/common.h"

kernel void compress_pairs(device plumb_metal_control &control [[buffer(0)]],
                           constant plumb_metal_compress_pairs &args [[buffer(1)]],
                           device const float *value [[buffer(2)]],  /* [2 * pairs][dim] */
                           device const float *gate [[buffer(3)]],   /* [2 * pairs][dim] */
                           device plumb_act *latent [[buffer(4)]],   /* [pairs][dim] */
                           uint item [[thread_position_in_grid]]) {
    if (plumb_halted(control)) return;
    uint pair = item / args.dim;
    if (pair >= args.pairs) return;
    ulong first = (ulong)item + (ulong)pair * args.dim, second = first + args.dim;
    float g0 = gate[first], g1 = gate[second];
    float most = g0 > g1 ? g0 : g1;
    float e0 = plumb__exp(g0 - most), e1 = plumb__exp(g1 - most);
    float sum = e0 + e1;
    latent[item] = plumb__store((e0 / sum) * value[first] + (e1 / sum) * value[second]);
}
