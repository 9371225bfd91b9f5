/* Index scores (docs/arithmetic.md section 10): three roundings to bf16, the heads in order.  A simdgroup
 * takes four keys, its lanes are those of the inner products; then a quarter of them has each key. */
#include "backend/metal/kernels/candidates.h"
#include "backend/metal/kernels/packed_keys.h"

enum {
    INDEX_KEPT = 4 /* elements of a key that a lane decodes once for all heads: its part of 128 */
};

/* Four keys, and of each the elements lane, lane + 32, ... that are kept. */
struct index_keys {
    device const uchar *key[KEYS_AT_ONCE];
    float kept[KEYS_AT_ONCE][INDEX_KEPT];
};

static inline float index_rounded(float x) { return plumb__load(plumb__store(x)); }

static inline void index_keep(thread index_keys &keys, uint dim, uint lane) {
    for (uint b = 0; b < INDEX_KEPT; b++) {
        uint k = b * PLUMB_METAL_SIMD + lane;
        for (uint i = 0; i < KEYS_AT_ONCE; i++)
            keys.kept[i][b] = k < dim ? index_element(keys.key[i], dim, k) : 0.0f;
    }
}

/* dot32 of a head's query and the key of this lane's quarter. */
static inline float index_dot(device const uchar *query, thread const index_keys &keys, uint dim,
                              uint lane) {
    float sum[KEYS_AT_ONCE] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (uint b = 0; b < INDEX_KEPT; b++) {
        uint k = b * PLUMB_METAL_SIMD + lane;
        if (k >= dim) break;
        float q = index_element(query, dim, k);
        for (uint i = 0; i < KEYS_AT_ONCE; i++) sum[i] = plumb__fma(q, keys.kept[i][b], sum[i]);
    }
    for (uint k = INDEX_KEPT * PLUMB_METAL_SIMD + lane; k < dim; k += PLUMB_METAL_SIMD) {
        float q = index_element(query, dim, k);
        for (uint i = 0; i < KEYS_AT_ONCE; i++)
            sum[i] = plumb__fma(q, index_element(keys.key[i], dim, k), sum[i]);
    }
    return join_keys(sum, lane);
}

kernel void index_scores(device plumb_metal_control &control [[buffer(0)]],
                         constant plumb_metal_index &args [[buffer(1)]],
                         device const uchar *query [[buffer(2)]],    /* [rows][heads] index rows */
                         device const float *weight [[buffer(3)]],   /* [rows][heads] */
                         device const uchar *keys [[buffer(4)]],     /* index rows */
                         device const int *pool [[buffer(5)]],       /* [rows][pool_blocks] */
                         device const int *pool_count [[buffer(6)]], /* [rows] */
                         device float *score [[buffer(7)]],          /* [rows][score_stride] */
                         uint2 group [[threadgroup_position_in_grid]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]]) {
    if (plumb_halted(control)) return;
    uint row = group.y, dim = args.dim;
    uint first = group.x * PLUMB_METAL_INDEX_KEYS + simdgroup * KEYS_AT_ONCE;
    uint count = visible_keys(args.position, row, args.ratio);
    pool += (ulong)row * args.pool_blocks;
    if (args.use_pool) count = pooled_keys(pool, (uint)pool_count[row], args.block_size, count);
    if (first >= count) return;

    ulong row_bytes = (ulong)plumb__index_row_bytes(dim);
    query += (ulong)row * args.heads * row_bytes;
    weight += (ulong)row * args.heads;
    index_keys four; /* where fewer are left the last stands in for them */
    for (uint i = 0; i < KEYS_AT_ONCE; i++) {
        uint j = first + i < count ? first + i : count - 1;
        four.key[i] = keys + (args.use_pool ? pooled_position(pool, args.block_size, j) : j) * row_bytes;
    }
    index_keep(four, dim, lane);
    float sum = 0.0f;
    for (uint h = 0; h < args.heads; h++) {
        float t = index_rounded(index_dot(query + h * row_bytes, four, dim, lane));
        t = t > 0.0f ? t : 0.0f;
        sum = sum + index_rounded(t * weight[h]);
    }
    sum = index_rounded(sum);
    uint candidate = first + lane / KEYS_LANES;
    if (lane % KEYS_LANES != 0 || candidate >= count) return;
    if (!plumb_finite(sum)) plumb_fault(control);
    score[(ulong)row * args.score_stride + candidate] = sum;
}
