/* Adds the outputs of a row's experts in ascending place, in float, and rounds once (docs/arithmetic.md
 * section 11).  A thread owns an element; neighbours read neighbouring ones. */
#include "backend/metal/kernels/common.h"

kernel void experts_sum(device plumb_metal_control &control [[buffer(0)]],
                        constant plumb_metal_experts_sum &args [[buffer(1)]],
                        device const plumb_act *outputs [[buffer(2)]], /* [][hidden] */
                        device const int *where [[buffer(3)]],         /* [rows][slots_per_row] */
                        device plumb_act *out [[buffer(4)]],           /* [rows][hidden] */
                        uint item [[thread_position_in_grid]]) {
    if (plumb_halted(control)) return;
    uint row = item / args.hidden, i = item % args.hidden;
    if (row >= args.rows) return;
    where += (ulong)row * args.slots_per_row;
    float sum = 0.0f;
    for (uint slot = 0; slot < args.slots_per_row; slot++)
        sum = sum + plumb__load(outputs[(ulong)where[slot] * args.hidden + i]);
    out[item] = plumb__store(sum);
}
