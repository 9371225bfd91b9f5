/* Kernels for the emulator's own tests: right ones, and wrong ones that it must catch. */
#include <metal_stdlib>
using namespace metal;

struct sizes {
    uint n;
};

/* ---- right ---------------------------------------------------------------------------------- */

kernel void scale(device const float *x [[buffer(0)]], constant sizes &s [[buffer(1)]],
                  device float *y [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i >= s.n) return;
    y[i] = x[i] * 2.0f + 1.0f;
}

__attribute__((noinline)) static float tree_sum(float x) {
    for (ushort d = 16; d > 0; d /= 2) x += simd_shuffle_down(x, d);
    return x;
}

/* One sum a simdgroup, by the tree of docs/arithmetic.md section 4. */
kernel void lane_sums(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                      uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    const float sum = tree_sum(x[i]);
    if (lane == 0) y[i / 32] = sum;
}

/* Every group reverses its part twice, the second time adding: two barriers, both needed. */
kernel void reverse_twice(device float *x [[buffer(0)]], threadgroup float *t [[threadgroup(0)]],
                          uint i [[thread_position_in_grid]],
                          uint j [[thread_index_in_threadgroup]], uint3 n [[threads_per_threadgroup]]) {
    t[j] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float other = t[n.x - 1 - j];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    t[j] = other * 2.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[i] = t[n.x - 1 - j] + 1.0f;
}

/* A histogram in threadgroup memory, joined in device memory; the largest value and a locked count. */
kernel void count_values(device const uint *x [[buffer(0)]], device atomic_uint *counts [[buffer(1)]],
                         threadgroup atomic_uint *own [[threadgroup(0)]],
                         uint i [[thread_position_in_grid]],
                         uint j [[thread_index_in_threadgroup]]) {
    if (j < 8) atomic_store_explicit(&own[j], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&own[x[i] % 8], 1, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (j < 8)
        atomic_fetch_add_explicit(&counts[j], atomic_load_explicit(&own[j], memory_order_relaxed),
                                  memory_order_relaxed);
    atomic_fetch_max_explicit(&counts[8], x[i], memory_order_relaxed);
    atomic_fetch_or_explicit(&counts[9], 1u << (x[i] % 32), memory_order_relaxed);
    uint seen = atomic_load_explicit(&counts[10], memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&counts[10], &seen, seen + 3, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

/* What every simd function gives, one row of 32 results each. */
kernel void simd_functions(device const uint *x [[buffer(0)]], device uint *y [[buffer(1)]],
                           uint lane [[thread_index_in_simdgroup]]) {
    const uint v = x[lane];
    y[lane] = simd_shuffle(v, ushort(31 - lane));
    y[32 + lane] = simd_shuffle_down(v, 3);
    y[64 + lane] = simd_shuffle_up(v, 5);
    y[96 + lane] = simd_shuffle_xor(v, 9);
    y[128 + lane] = simd_broadcast(v, 7);
    y[160 + lane] = uint(ulong(simd_ballot(v % 3 == 0)));
    y[192 + lane] = uint(simd_any(v == 40)) + 2 * uint(simd_all(v < 1000)) + 4 * uint(simd_all(v == 40));
    y[224 + lane] = simd_max(v);
    y[256 + lane] = simd_min(v);
    const float4 f = simd_shuffle_xor(float4(float(v), 1.0f, 2.0f, float(lane)), 1);
    y[288 + lane] = uint(f.x) * 100 + uint(f.w);
}

/* Positions and sizes in three dimensions; every thread writes its own record. */
kernel void positions(device uint *y [[buffer(0)]], uint3 grid [[thread_position_in_grid]],
                      uint3 in_group [[thread_position_in_threadgroup]],
                      ushort index [[thread_index_in_threadgroup]],
                      uint3 group [[threadgroup_position_in_grid]],
                      uint3 threads [[threads_per_threadgroup]],
                      uint2 groups [[threadgroups_per_grid]], uint3 all [[threads_per_grid]],
                      uint simd [[simdgroup_index_in_threadgroup]],
                      uint simds [[simdgroups_per_threadgroup]]) {
    device uint *r = y + 8 * ((grid.z * all.y + grid.y) * all.x + grid.x);
    r[0] = in_group.x + 100 * in_group.y + 10000 * in_group.z;
    r[1] = index;
    r[2] = group.x + 100 * group.y + 10000 * group.z;
    r[3] = threads.x + 100 * threads.y + 10000 * threads.z;
    r[4] = groups.x + 100 * groups.y;
    r[5] = simd;
    r[6] = simds;
    r[7] = 1;
}

/* When each thread came: at first, behind a barrier, behind a simd operation. */
kernel void arrivals(device uint *x [[buffer(0)]], device atomic_uint *clock [[buffer(1)]],
                     uint i [[thread_position_in_grid]], uint3 all [[threads_per_grid]]) {
    x[i] = atomic_fetch_add_explicit(clock, 1, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_device);
    x[all.x + i] = atomic_fetch_add_explicit(clock, 1, memory_order_relaxed);
    simdgroup_barrier(mem_flags::mem_device);
    x[2 * all.x + i] = atomic_fetch_add_explicit(clock, 1, memory_order_relaxed);
}

/* The operations of docs/arithmetic.md section 2, as bits. */
kernel void arithmetic(device const uint *x [[buffer(0)]], device uint *y [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
    const float a = as_type<float>(x[i]);
    y[6 * i] = as_type<uint>(a + a);
    y[6 * i + 1] = as_type<uint>(a * 0.5f);
    y[6 * i + 2] = as_type<uint>(metal::fma(a, a, -1.0f));
    y[6 * i + 3] = as_type<uint>(metal::precise::sqrt(a));
    y[6 * i + 4] = as_type<uint>(1.0f / a);
    y[6 * i + 5] = as_type<uint>(a * a - (2.0f * a - 1.0f));
}

/* ---- wrong ---------------------------------------------------------------------------------- */

/* No barrier between writing and reading. */
kernel void missing_barrier(device float *x [[buffer(0)]], threadgroup float *t [[threadgroup(0)]],
                            uint j [[thread_index_in_threadgroup]],
                            uint3 n [[threads_per_threadgroup]]) {
    t[j] = x[j];
    x[j] = t[n.x - 1 - j];
}

/* No barrier between reading and writing again. */
kernel void missing_second_barrier(device float *x [[buffer(0)]], threadgroup float *t [[threadgroup(0)]],
                                   uint j [[thread_index_in_threadgroup]],
                                   uint3 n [[threads_per_threadgroup]]) {
    t[j] = x[j];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float other = t[n.x - 1 - j];
    t[j] = other * 2.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[j] = t[j];
}

kernel void skipped_barrier(device float *x [[buffer(0)]], uint j [[thread_index_in_threadgroup]]) {
    if (j != 5) threadgroup_barrier(mem_flags::mem_threadgroup);
    x[j] = 1.0f;
}

kernel void two_barriers(device float *x [[buffer(0)]], uint j [[thread_index_in_threadgroup]]) {
    if (j < 32) threadgroup_barrier(mem_flags::mem_threadgroup);
    else threadgroup_barrier(mem_flags::mem_threadgroup);
    x[j] = 1.0f;
}

kernel void barrier_in_loop(device float *x [[buffer(0)]], uint j [[thread_index_in_threadgroup]]) {
    for (uint i = 0; i < 2 + j / 63; i++) threadgroup_barrier(mem_flags::mem_threadgroup);
    x[j] = 1.0f;
}

kernel void diverged_simd(device float *x [[buffer(0)]], uint j [[thread_index_in_threadgroup]]) {
    float v = x[j];
    if (j % 32 < 20) v += simd_shuffle_down(v, 1);
    x[j] = v;
}

/* The same function at two places is two operations. */
kernel void diverged_calls(device float *x [[buffer(0)]], uint j [[thread_index_in_threadgroup]]) {
    if (j % 2) x[j] = tree_sum(x[j]);
    else x[j] = tree_sum(x[j] + 1.0f);
}

/* And two operations of a function are two, wherever it was called. */
__attribute__((noinline)) static float neighbour(float x, bool above) {
    if (above) return simd_shuffle_down(x, 1);
    return simd_shuffle_up(x, 1);
}

kernel void diverged_helper(device float *x [[buffer(0)]], uint j [[thread_index_in_threadgroup]]) {
    x[j] = neighbour(x[j], j % 4 == 0);
}

kernel void lane_outside(device float *x [[buffer(0)]], uint j [[thread_index_in_threadgroup]]) {
    x[j] = simd_shuffle(x[j], ushort(j + 1));
}

kernel void uneven_distance(device float *x [[buffer(0)]], uint j [[thread_index_in_threadgroup]]) {
    x[j] = simd_shuffle_down(x[j], ushort(j / 16 + 1));
}

/* at: the element of threadgroup memory that thread 3 writes (s.n = 0) or reads. */
kernel void threadgroup_access(device float *x [[buffer(0)]], constant int &at [[buffer(1)]],
                               constant sizes &s [[buffer(2)]], threadgroup float *t [[threadgroup(0)]],
                               uint j [[thread_index_in_threadgroup]]) {
    if (j != 3) return;
    if (s.n == 0) t[at] = 1.0f;
    else x[0] = t[at];
}

kernel void device_access(device float *x [[buffer(0)]], constant int &at [[buffer(1)]],
                          constant sizes &s [[buffer(2)]], uint j [[thread_index_in_threadgroup]]) {
    if (j != 3) return;
    if (s.n == 0) x[at] = 1.0f;
    else x[0] = x[at];
}

static inline uint deep(uint n, thread uint *use) {
    uint large[64];
    for (uint i = 0; i < 64; i++) large[i] = use[i] + n;
    return n == 0 ? large[5] : deep(n - 1, large) + large[n % 64];
}

kernel void endless(device uint *x [[buffer(0)]]) {
    uint first[64];
    for (uint i = 0; i < 64; i++) first[i] = x[0];
    x[0] = deep(1000000, first);
}

/* x[0] says what to do, x[1] with which number. */
kernel void undefined(device int *x [[buffer(0)]]) {
    int part[4] = {x[0], x[1], 2, 3};
    switch (x[0]) {
    case 0: x[2] = 7 / x[1]; break;
    case 1: x[2] = 7 << x[1]; break;
    case 2: x[2] = int(as_type<float>(x[1])); break;
    default: x[2] = part[x[1]];
    }
}
