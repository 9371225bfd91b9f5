/* Sorts a layer's slots by expert, so that each expert's weights are read once for all its rows, and halts
 * the queue when an expert is not in memory.  What it writes is what group_slots and group_shared of
 * model/experts.c write.
 *
 * A thread owns an expert and looks through all choices for its own, twice: to count them and to list them.
 * That keeps rows in order without atomics; all threads read the same choice at a time, and even the
 * largest chunk has few choices beside what its experts compute. */
#include "backend/metal/kernels/common.h"

/* The row's slots: the chosen experts in places 0 .. k-1, the shared one in place k. */
static inline void plumb_list_slot(device int *slots, device int *where, uint slot, uint at) {
    slots[at] = (int)slot;
    where[slot] = (int)at;
}

kernel void group_experts(device plumb_metal_control &control [[buffer(0)]],
                          constant plumb_metal_group_experts &args [[buffer(1)]],
                          device const int *ids [[buffer(2)]],       /* [rows][k] */
                          device const float *weights [[buffer(3)]], /* [rows][k] */
                          device const plumb_metal_expert *table [[buffer(4)]],  /* [experts] */
                          device const plumb_metal_expert *shared [[buffer(5)]], /* one */
                          device plumb_metal_group *groups [[buffer(6)]],
                          device int *slots [[buffer(7)]],
                          device int *where [[buffer(8)]],
                          device float *slot_weights [[buffer(9)]],
                          threadgroup uint *counts [[threadgroup(0)]], /* [experts] */
                          uint thread_index [[thread_index_in_threadgroup]]) {
    if (plumb_halted(control)) return;
    uint choices = args.rows * args.k, used = 0;
    for (uint e = thread_index; e < args.experts; e += PLUMB_METAL_SELECT) {
        uint count = 0;
#pragma unroll(8) /* so many are on their way from memory at a time */
        for (uint i = 0; i < choices; i++) count += (uint)ids[i] == e;
        counts[e] = count;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint e = 0; e < args.experts; e++) used += counts[e] != 0;

    for (uint e = thread_index; e < args.experts; e += PLUMB_METAL_SELECT) {
        uint begin = 0, group = 0;
        for (uint before = 0; before < e; before++) {
            begin += counts[before];
            group += counts[before] != 0;
        }
        if (counts[e] == 0) continue;
        groups[group].expert = table[e];
        groups[group].begin = (int)begin;
        groups[group].count = (int)counts[e];
        groups[group].fp8 = 0;
        groups[group].unused = 0;
        if (table[e].gate_codes == nullptr)
            atomic_store_explicit(&control.halted, args.layer + 1, memory_order_relaxed);
        for (uint i = 0, at = begin; at < begin + counts[e]; i++)
            if ((uint)ids[i] == e) plumb_list_slot(slots, where, i + i / args.k, at++);
    }
    for (uint i = thread_index; i < choices; i += PLUMB_METAL_SELECT)
        slot_weights[i + i / args.k] = weights[i];
    for (uint row = thread_index; row < args.rows; row += PLUMB_METAL_SELECT) {
        uint slot = row * (args.k + 1) + args.k;
        plumb_list_slot(slots, where, slot, choices + row);
        slot_weights[slot] = 1.0f;
    }
    for (uint g = used + thread_index; g < args.n_groups; g += PLUMB_METAL_SELECT) {
        bool is_shared = g == args.n_groups - 1;
        groups[g].expert = *shared; /* of no meaning where there are no rows */
        groups[g].begin = (int)choices;
        groups[g].count = is_shared ? (int)args.rows : 0;
        groups[g].fp8 = args.shared_fp8;
        groups[g].unused = 0;
    }
}
