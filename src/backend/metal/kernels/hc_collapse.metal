/* x = bf16(((pre0*h0 + pre1*h1) + pre2*h2) + pre3*h3): a thread owns an element of x. */
#include "backend/metal/kernels/hc.h"

kernel void hc_collapse(device plumb_metal_control &control [[buffer(0)]],
                        constant plumb_metal_hc &args [[buffer(1)]],
                        device const plumb_act *h [[buffer(2)]], /* [rows][4][hidden] */
                        device const float *pre [[buffer(3)]],   /* [rows][4] */
                        device plumb_act *x [[buffer(4)]],       /* [rows][hidden] */
                        uint item [[thread_position_in_grid]]) {
    if (plumb_halted(control)) return;
    uint row = item / args.hidden, i = item % args.hidden;
    if (row >= args.rows) return;
    h += (ulong)row * HC_COPIES * args.hidden + i;
    pre += (ulong)row * HC_COPIES;
    float sum = pre[0] * plumb__load(h[0]);
    for (uint c = 1; c < HC_COPIES; c++)
        sum = sum + pre[c] * plumb__load(h[(ulong)c * args.hidden]);
    x[item] = plumb__store(sum);
}
