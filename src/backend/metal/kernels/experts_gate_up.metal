/* First step of the experts: gate and up of a tile of a group's rows (model.md 4.9). */
#include "backend/metal/kernels/experts.h"

kernel void experts_gate_up(device plumb_metal_control &control [[buffer(0)]],
                            constant plumb_metal_experts &args [[buffer(1)]],
                            device const uint4 *x [[buffer(2)]], /* quantised rows of hidden */
                            device const plumb_metal_group *groups [[buffer(3)]],
                            device const int *slots [[buffer(4)]],
                            device plumb_act *gate [[buffer(5)]], /* [][inter] */
                            device plumb_act *up [[buffer(6)]],   /* [][inter] */
                            threadgroup float *sums [[threadgroup(0)]],
                            uint3 group [[threadgroup_position_in_grid]],
                            uint lane [[thread_index_in_simdgroup]],
                            uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    if (plumb_halted(control)) return;
    device const plumb_metal_group &g = groups[group.z];
    uint row = group.y * PLUMB_METAL_ROWS;
    plumb_tile t;
    t.rows = plumb_group_rows(g, row);
    if (t.rows == 0) return;
    ulong first = (ulong)g.begin + row, row_words = PLUMB_METAL_QUANTIZED_BYTES(args.hidden) / 4;
    slots += first;
    for (uint r = 0; r < PLUMB_METAL_ROWS; r++) {
        uint slot = (uint)slots[r < t.rows ? r : t.rows - 1];
        t.x[r] = (device const uint *)x + slot / args.slots_per_row * row_words;
    }
    uint own_slot = (uint)slots[simdgroup < t.rows ? simdgroup : t.rows - 1];
    t.own_x = (device const uint *)x + own_slot / args.slots_per_row * row_words;
    t.n = args.inter;
    t.k = args.hidden;
    t.column = group.x * PLUMB_METAL_COLUMNS;
    ulong out = (first + simdgroup) * args.inter;
    plumb_expert_tile(control, t, g.fp8, g.expert.gate_codes, g.expert.gate_scales, gate + out, sums,
                      lane, simdgroup);
    plumb_expert_tile(control, t, g.fp8, g.expert.up_codes, g.expert.up_scales, up + out, sums, lane,
                      simdgroup);
}
