/* Last step of the experts: down of a tile of a group's rows (model.md 4.9). */
#include "backend/metal/kernels/experts.h"

kernel void experts_down(device plumb_metal_control &control [[buffer(0)]],
                         constant plumb_metal_experts &args [[buffer(1)]],
                         device const uint4 *t_rows [[buffer(2)]], /* quantised rows of inter */
                         device const plumb_metal_group *groups [[buffer(3)]],
                         device plumb_act *outputs [[buffer(4)]], /* [][hidden] */
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
    ulong first = (ulong)g.begin + row, row_words = PLUMB_METAL_QUANTIZED_BYTES(args.inter) / 4;
    device const uint *x = (device const uint *)t_rows + first * row_words;
    for (uint r = 0; r < PLUMB_METAL_ROWS; r++)
        t.x[r] = x + (r < t.rows ? r : t.rows - 1) * row_words;
    t.own_x = x + (simdgroup < t.rows ? simdgroup : t.rows - 1) * row_words;
    t.n = args.hidden;
    t.k = args.inter;
    t.column = group.x * PLUMB_METAL_COLUMNS;
    plumb_expert_tile(control, t, g.fp8, g.expert.down_codes, g.expert.down_scales,
                      outputs + (first + simdgroup) * args.hidden, sums, lane, simdgroup);
}
