/* Kernels for the tests of race_watch.  Every group has 64 threads; x, y and t have 64 elements a group. */
#include <metal_stdlib>
using namespace metal;

#pragma clang diagnostic ignored "-Wunused-parameter" /* all are called in one way */
#define KERNEL(name)                                                                               \
    kernel void name(device uint *x [[buffer(0)]], device const uint *same [[buffer(1)]],          \
                     device atomic_uint *total [[buffer(2)]], threadgroup uint *t [[threadgroup(0)]], \
                     threadgroup atomic_uint *counter [[threadgroup(1)]],                          \
                     uint i [[thread_position_in_grid]], uint j [[thread_index_in_threadgroup]])
#define THREADGROUP_BARRIER threadgroup_barrier(mem_flags::mem_threadgroup)
#define SIMD_BARRIER simdgroup_barrier(mem_flags::mem_threadgroup)

/* ---- in order ------------------------------------------------------------------------------- */

KERNEL(two_barriers) {
    t[j] = x[i];
    THREADGROUP_BARRIER;
    uint other = t[63 - j];
    THREADGROUP_BARRIER;
    t[63 - j] = other;
    x[i] = t[63 - j];
}

KERNEL(all_read) { /* any number of readers */
    if (j == 40) t[0] = x[i];
    THREADGROUP_BARRIER;
    x[i] = t[0] + same[i];
    THREADGROUP_BARRIER;
    if (j == 7) t[0] = 1;
}

KERNEL(lanes) {
    t[j] = x[i];
    SIMD_BARRIER;
    uint other = t[j ^ 1];
    bool odd = simd_any(other % 2 == 1);
    t[j ^ 1] = odd; /* no lane could vote before it had read */
    SIMD_BARRIER;
    x[i] = t[j ^ 2];
}

KERNEL(through_the_device) {
    x[i] = j;
    threadgroup_barrier(mem_flags::mem_device);
    uint other = same[i ^ 33];
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    x[i] = other;
}

KERNEL(counted) {
    if (j == 3) atomic_store_explicit(counter, 0, memory_order_relaxed);
    THREADGROUP_BARRIER;
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
    atomic_fetch_max_explicit(total, j, memory_order_relaxed);
    THREADGROUP_BARRIER;
    x[i] = atomic_load_explicit(counter, memory_order_relaxed) +
           atomic_load_explicit(total, memory_order_relaxed);
}

/* ---- not in order --------------------------------------------------------------------------- */

KERNEL(read_at_once) {
    t[j] = x[i];
    x[i] = t[63 - j];
}

KERNEL(read_behind_a_vote) {
    t[j] = x[i];
    bool all = simd_all(j < 64);
    x[i] = t[j ^ 1] + all;
}

KERNEL(written_while_read) {
    t[j] = x[i];
    THREADGROUP_BARRIER;
    uint other = t[j ^ 1];
    t[j] = other;
}

KERNEL(written_while_many_read) {
    if (j == 0) t[0] = x[i];
    THREADGROUP_BARRIER;
    x[i] = t[0];
    if (j == 0) t[0] = 1;
}

KERNEL(written_by_a_reader) {
    if (j == 0 || j == 40) x[i] = t[0];
    if (j == 0) t[0] = 1;
}

KERNEL(written_twice) { t[j / 2] = j; }

KERNEL(wrong_flag) {
    t[j] = x[i];
    threadgroup_barrier(mem_flags::mem_device);
    x[i] = t[63 - j];
}

KERNEL(wrong_simd_flag) {
    t[j] = x[i];
    simdgroup_barrier(mem_flags::mem_device);
    x[i] = t[j ^ 1];
}

KERNEL(wrong_device_flag) {
    x[i] = j;
    THREADGROUP_BARRIER;
    if (same[i ^ 1] == 99) x[i] = 0;
}

KERNEL(barrier_of_lanes_only) {
    t[j] = x[i];
    SIMD_BARRIER;
    x[i] = t[63 - j];
}

KERNEL(groups_write) { x[j] = 5; }

KERNEL(groups_read) {
    threadgroup_barrier(mem_flags::mem_device);
    uint next = same[(i + 64) % 128];
    threadgroup_barrier(mem_flags::mem_device);
    x[i] = next;
}

KERNEL(half_a_word) {
    if (j < 32) x[i] = t[j];
    else ((threadgroup ushort *)t)[2 * (j - 32) + 1] = 1;
}

KERNEL(not_cleared_yet) {
    if (j == 3) atomic_store_explicit(counter, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

KERNEL(not_counted_yet) {
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
    x[i] = atomic_load_explicit(counter, memory_order_relaxed);
}
