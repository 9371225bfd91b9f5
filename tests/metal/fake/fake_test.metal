/* Kernels for the test of the fake Metal, with the bindings of arguments.h: a control block, arguments,
 * then buffers. */
#include <metal_stdlib>
using namespace metal;

struct control_block {
    uint halted, fault;
};
struct sum_arguments {
    uint count, addend;
};

/* to[i] = from[i] + addend. */
kernel void add(device control_block &control [[buffer(0)]], constant sum_arguments &args [[buffer(1)]],
                device const uint *from [[buffer(2)]], device uint *to [[buffer(3)]],
                uint i [[thread_position_in_grid]]) {
    if (control.halted == 0 && i < args.count) to[i] = from[i] + args.addend;
}

/* The same by fours: 16 bytes at a time. */
kernel void add_wide(device control_block &control [[buffer(0)]], constant sum_arguments &args [[buffer(1)]],
                     device const uint4 *from [[buffer(2)]], device uint4 *to [[buffer(3)]],
                     uint i [[thread_position_in_grid]]) {
    if (control.halted == 0 && i < args.count / 4) to[i] = from[i] + args.addend;
}

/* Turns a threadgroup's values around, through its memory. */
kernel void reverse(device control_block &control [[buffer(0)]], constant sum_arguments &args [[buffer(1)]],
                    device const uint *from [[buffer(2)]], device uint *to [[buffer(3)]],
                    threadgroup uint *shared [[threadgroup(0)]], uint i [[thread_position_in_threadgroup]],
                    uint group [[threadgroup_position_in_grid]], uint threads [[threads_per_threadgroup]]) {
    if (control.halted != 0) return;
    shared[i] = from[group * threads + i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    to[group * threads + i] = shared[threads - 1 - i] + args.addend;
}

struct expert {
    device const uchar *payload[6];
};
struct group_arguments {
    uint rows, k, experts, n_groups, layer;
};

/* to[i] is the first byte of expert i, found by its address; a kernel of this name has its table looked
 * at before it runs. */
kernel void group_experts(device control_block &control [[buffer(0)]], constant group_arguments &args [[buffer(1)]],
                          device const uint *ids [[buffer(2)]], device uint *to [[buffer(3)]],
                          device const expert *table [[buffer(4)]], device const expert *shared [[buffer(5)]],
                          uint i [[thread_position_in_grid]]) {
    if (control.halted != 0 || i >= args.experts) return;
    device const uchar *payload = table[ids[i]].payload[0];
    to[i] = payload ? *payload : *shared->payload[0];
}
