/* Rotary embedding in place: adjacent pairs (a, b) of the last 2*pairs components of a head become
 * (a cos - b sin, a sin + b cos), every product rounded.  A thread owns a pair. */
#include "backend/metal/kernels/common.h"

kernel void rotate(device plumb_metal_control &control [[buffer(0)]],
                   constant plumb_metal_rotate &args [[buffer(1)]],
                   device plumb_act *x [[buffer(2)]],          /* [rows][heads][dim] */
                   device const float *cosine [[buffer(3)]],   /* [rows][pairs] */
                   device const float *sine [[buffer(4)]],     /* [rows][pairs] */
                   uint item [[thread_position_in_grid]]) {
    if (plumb_halted(control)) return;
    uint vector = item / args.pairs, pair = item % args.pairs;
    if (vector >= args.rows * args.heads) return;
    ulong angle = (ulong)(vector / args.heads) * args.pairs + pair;
    float c = cosine[angle], s = args.inverse ? -sine[angle] : sine[angle];
    device plumb_act *place = x + ((ulong)vector + 1) * args.dim - 2 * (args.pairs - pair);
    float a = plumb__load(place[0]), b = plumb__load(place[1]);
    place[0] = plumb__store(a * c - b * s);
    place[1] = plumb__store(a * s + b * c);
}
