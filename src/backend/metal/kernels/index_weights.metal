/* weight = bf16(proj * factor), kept as float.  A thread owns a head of a row. */
#include "backend/metal/kernels/common.h"

kernel void index_weights(device plumb_metal_control &control [[buffer(0)]],
                          constant plumb_metal_index_weights &args [[buffer(1)]],
                          device const plumb_act *proj [[buffer(2)]], /* [count] */
                          device float *weight [[buffer(3)]],         /* [count] */
                          uint item [[thread_position_in_grid]]) {
    if (plumb_halted(control) || item >= args.count) return;
    weight[item] = plumb__load(plumb__store(plumb__load(proj[item]) * args.factor));
}
