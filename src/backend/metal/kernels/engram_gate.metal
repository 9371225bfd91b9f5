/* Engram gate (docs/arithmetic.md section 10): one simdgroup for a copy of a row.  Its lanes are the
 * contract's for all three sums, which one pass over the copy and its key forms side by side. */
#include "backend/metal/kernels/common.h"

/* sigmoid(copysign(sqrt(max(|dot|, 1e-6)), dot)); a zero counts as positive. */
static inline float engram_gate_of(float dot) {
    float magnitude = dot < 0.0f ? -dot : dot;
    magnitude = magnitude < 1e-6f ? 1e-6f : magnitude;
    float root = plumb__sqrt(magnitude);
    return plumb__sigmoid(dot < 0.0f ? -root : root);
}

static inline float engram_rsqrt_mean(float squares, uint n, float eps) {
    return plumb__rsqrt(plumb_join_lanes(squares) / (float)n + eps);
}

kernel void engram_gate(device plumb_metal_control &control [[buffer(0)]],
                        constant plumb_metal_engram_gate &args [[buffer(1)]],
                        device plumb_act *h [[buffer(2)]],          /* [rows][4][hidden] */
                        device const plumb_act *kv [[buffer(3)]],   /* [rows][5][hidden] */
                        device const float *query_w [[buffer(4)]],  /* [4][hidden] */
                        device const float *key_w [[buffer(5)]],    /* [4][hidden] */
                        device const uchar *live [[buffer(6)]],     /* [rows] */
                        uint2 group [[threadgroup_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
    if (plumb_halted(control)) return;
    uint copy = group.x, row = group.y, hidden = args.hidden;
    if (!live[row]) return;
    h += ((ulong)row * 4 + copy) * hidden;
    device const plumb_act *key = kv + ((ulong)row * 5 + copy) * hidden;
    device const plumb_act *value = kv + ((ulong)row * 5 + 4) * hidden;
    query_w += (ulong)copy * hidden;
    key_w += (ulong)copy * hidden;

    float copy_squares = 0.0f, key_squares = 0.0f, terms = 0.0f;
#pragma unroll(4) /* many elements are on their way at a time: in decode nothing else hides the wait */
    for (uint i = lane; i < hidden; i += PLUMB_METAL_SIMD) {
        float c = plumb__load(h[i]), k = plumb__load(key[i]);
        float qk = query_w[i] * key_w[i];
        copy_squares = plumb__fma(c, c, copy_squares);
        key_squares = plumb__fma(k, k, key_squares);
        terms = terms + (c * qk) * k;
    }
    float rs = engram_rsqrt_mean(copy_squares, hidden, args.eps) *
               engram_rsqrt_mean(key_squares, hidden, args.eps);
    float gate = engram_gate_of((plumb_join_lanes(terms) * rs) * args.factor);
    for (uint i = lane; i < hidden; i += PLUMB_METAL_SIMD) {
        float added = gate * plumb__load(value[i]);
        h[i] = plumb__store(plumb__load(h[i]) + added);
    }
}
