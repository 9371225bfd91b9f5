/* Second step of the experts: bf16(weight * (silu(gate) * up)), quantised for `down` (model.md 4.9).  A
 * thread owns a block. */
#include "backend/metal/kernels/quantized.h"

static inline float plumb_activated(float u, float v, float weight, float limit) {
    u = u > limit ? limit : u; /* the gate is clamped from above only */
    v = v > limit ? limit : v;
    v = v < -limit ? -limit : v;
    return plumb__load(plumb__store(weight * (plumb__silu(u) * v)));
}

kernel void experts_activate(device plumb_metal_control &control [[buffer(0)]],
                             constant plumb_metal_experts &args [[buffer(1)]],
                             device const ushort4 *gate [[buffer(2)]], /* [][inter / 4] */
                             device const ushort4 *up [[buffer(3)]],   /* [][inter / 4] */
                             device const plumb_metal_group *groups [[buffer(4)]],
                             device const int *slots [[buffer(5)]],
                             device const float *slot_weights [[buffer(6)]],
                             device uint4 *t [[buffer(7)]], /* quantised rows of inter */
                             uint3 group [[threadgroup_position_in_grid]],
                             uint lane [[thread_index_in_simdgroup]]) {
    if (plumb_halted(control)) return;
    device const plumb_metal_group &g = groups[group.z];
    uint block = group.x * PLUMB_METAL_SIMD + lane;
    if (group.y >= (uint)g.count || block >= args.inter / PLUMB_BLOCK) return;
    ulong place = (ulong)g.begin + group.y, at = (place * args.inter + block * PLUMB_BLOCK) / 4;
    float weight = slot_weights[slots[place]], value[PLUMB_BLOCK];
    for (uint i = 0; i < PLUMB_BLOCK / 4; i++) {
        float4 u = plumb_load_quad(gate[at + i]), v = plumb_load_quad(up[at + i]);
        value[4 * i] = plumb_activated(u.x, v.x, weight, args.limit);
        value[4 * i + 1] = plumb_activated(u.y, v.y, weight, args.limit);
        value[4 * i + 2] = plumb_activated(u.z, v.z, weight, args.limit);
        value[4 * i + 3] = plumb_activated(u.w, v.w, weight, args.limit);
    }
    device uchar *row = (device uchar *)t + place * PLUMB_METAL_QUANTIZED_BYTES(args.inter);
    if (!plumb_quantize_block(value, args.inter, block, row)) plumb_fault(control);
}
