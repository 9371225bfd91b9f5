/* Coefficients of the hyper-connections of a row.
 *
 * Eight simdgroups take three of the 24 projection rows each and read h once for all three; the mean of
 * squares comes along, since every simdgroup has the elements at hand.  Then the first simdgroup makes
 * the coefficients: a lane per element of comb, so that the Sinkhorn steps, forty dependent rounds of
 * divisions, are done sixteen at a time.  Each element still sees the portable kernel's operations in
 * the portable order. */
#include "backend/metal/kernels/hc.h"

enum {
    HC_SIMDGROUPS = PLUMB_METAL_SELECT / PLUMB_METAL_SIMD,
    HC_ROWS = HC_MIX / HC_SIMDGROUPS /* projection rows of a simdgroup */
};

/* c + 4 line or column elements, in index order: of lanes first, first + step, ... */
static inline float hc_line_sum(float c, uint first, uint step) {
    float e0 = simd_shuffle(c, (ushort)first), e1 = simd_shuffle(c, (ushort)(first + step));
    float e2 = simd_shuffle(c, (ushort)(first + 2 * step));
    float e3 = simd_shuffle(c, (ushort)(first + 3 * step));
    return ((e0 + e1) + e2) + e3;
}

static inline float hc_line_most(float c, uint first) {
    float most = simd_shuffle(c, (ushort)first);
    for (uint k = 1; k < HC_COPIES; k++) {
        float other = simd_shuffle(c, (ushort)(first + k));
        most = other > most ? other : most;
    }
    return most;
}

/* Element `lane` modulo 16 of comb, [from][to]; the upper half of the lanes repeats the lower. */
static inline float hc_sinkhorn(float c, uint iterations, float eps, uint lane) {
    uint row = lane - lane % HC_COPIES, column = lane % HC_COPIES;
    c = plumb__exp(c - hc_line_most(c, row));
    c = c / hc_line_sum(c, row, 1) + eps;
    c = c / (hc_line_sum(c, column, HC_COPIES) + eps);
    for (uint i = 1; i < iterations; i++) {
        c = c / (hc_line_sum(c, row, 1) + eps);
        c = c / (hc_line_sum(c, column, HC_COPIES) + eps); /* it ends on columns */
    }
    return c;
}

kernel void hc_mix(device plumb_metal_control &control [[buffer(0)]],
                   constant plumb_metal_hc_mix &args [[buffer(1)]],
                   device const plumb_act *h [[buffer(2)]],  /* [rows][4 * hidden] */
                   device const float *fn [[buffer(3)]],     /* [24][4 * hidden] */
                   device const float *base [[buffer(4)]],   /* [24] */
                   device const float *scale [[buffer(5)]],  /* [3]: of pre, post, comb */
                   device float *pre [[buffer(6)]],          /* [rows][4] */
                   device float *post [[buffer(7)]],         /* [rows][4] */
                   device float *comb [[buffer(8)]],         /* [rows][4][4] */
                   threadgroup float *product [[threadgroup(0)]],
                   uint row [[threadgroup_position_in_grid]],
                   uint lane [[thread_index_in_simdgroup]],
                   uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    if (plumb_halted(control)) return;
    uint width = HC_COPIES * args.hidden;
    h += (ulong)row * width;
    fn += (ulong)simdgroup * HC_ROWS * width;
    float sum[HC_ROWS] = {0.0f, 0.0f, 0.0f}, squares = 0.0f;
#pragma unroll(8) /* many elements are on their way at a time: in decode nothing else hides the wait */
    for (uint i = lane; i < width; i += PLUMB_METAL_SIMD) {
        float value = plumb__load(h[i]);
        for (uint r = 0; r < HC_ROWS; r++)
            sum[r] = plumb__fma(value, fn[(ulong)r * width + i], sum[r]);
        squares = plumb__fma(value, value, squares);
    }
    for (uint r = 0; r < HC_ROWS; r++) sum[r] = plumb_join_lanes(sum[r]);
    squares = plumb_join_lanes(squares);
    if (lane == 0)
        for (uint r = 0; r < HC_ROWS; r++) product[simdgroup * HC_ROWS + r] = sum[r];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup != 0) return;

    float r = plumb__rsqrt(squares / (float)width + args.norm_eps);
    if (lane < HC_MIX && !plumb_finite(product[lane])) plumb_fault(control);
    if (lane < HC_COPIES) {
        uint c = HC_COPIES + lane;
        pre[(ulong)row * HC_COPIES + lane] =
            plumb__sigmoid((product[lane] * r) * scale[0] + base[lane]) + args.hc_eps;
        post[(ulong)row * HC_COPIES + lane] =
            2.0f * plumb__sigmoid((product[c] * r) * scale[1] + base[c]);
    }
    uint element = lane % (HC_COPIES * HC_COPIES), c = 2 * HC_COPIES + element;
    float mixed = hc_sinkhorn((product[c] * r) * scale[2] + base[c], args.iterations, args.hc_eps,
                              lane);
    if (lane == element) comb[(ulong)row * (HC_COPIES * HC_COPIES) + element] = mixed;
}
