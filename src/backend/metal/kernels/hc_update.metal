/* h[k] = bf16(post[k]*a + (((comb[0][k]*h[0] + comb[1][k]*h[1]) + comb[2][k]*h[2]) + comb[3][k]*h[3])),
 * in place: a thread owns one element of all four copies. */
#include "backend/metal/kernels/hc.h"

kernel void hc_update(device plumb_metal_control &control [[buffer(0)]],
                      constant plumb_metal_hc &args [[buffer(1)]],
                      device plumb_act *h [[buffer(2)]],        /* [rows][4][hidden] */
                      device const plumb_act *a [[buffer(3)]],  /* [rows][hidden] */
                      device const float *post [[buffer(4)]],   /* [rows][4] */
                      device const float *comb [[buffer(5)]],   /* [rows][4][4]: from, to */
                      uint item [[thread_position_in_grid]]) {
    if (plumb_halted(control)) return;
    uint row = item / args.hidden, i = item % args.hidden;
    if (row >= args.rows) return;
    h += (ulong)row * HC_COPIES * args.hidden + i;
    post += (ulong)row * HC_COPIES;
    comb += (ulong)row * (HC_COPIES * HC_COPIES);
    float copy[HC_COPIES], added = plumb__load(a[item]);
    for (uint j = 0; j < HC_COPIES; j++) copy[j] = plumb__load(h[(ulong)j * args.hidden]);
    for (uint k = 0; k < HC_COPIES; k++) {
        float mixed = comb[k] * copy[0];
        for (uint j = 1; j < HC_COPIES; j++) mixed = mixed + comb[j * HC_COPIES + k] * copy[j];
        h[(ulong)k * args.hidden] = plumb__store(post[k] * added + mixed);
    }
}
