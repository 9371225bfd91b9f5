/* Index scores (docs/arithmetic.md section 10): three roundings to bf16, the heads in order.  A simdgroup
 * takes a key, its lanes are those of the inner products. */
#include "backend/metal/kernels/candidates.h"
#include "backend/metal/kernels/packed_keys.h"

enum {
    INDEX_SIMDGROUPS = PLUMB_METAL_THREADS / PLUMB_METAL_SIMD,
    INDEX_KEPT = 4 /* elements of a key that a lane decodes once for all heads: a whole key of 128 */
};

static inline float index_rounded(float x) { return plumb__load(plumb__store(x)); }

/* dot32 of a head's query and a key, of whose elements lane, lane + 32, ... the first are in `kept`. */
static inline float index_dot(device const uchar *query, device const uchar *key,
                              thread const float *kept, uint dim, uint lane) {
    float sum = 0.0f;
    for (uint b = 0; b < INDEX_KEPT; b++) {
        uint k = b * PLUMB_METAL_SIMD + lane;
        if (k < dim) sum = plumb__fma(index_element(query, dim, k), kept[b], sum);
    }
    for (uint k = INDEX_KEPT * PLUMB_METAL_SIMD + lane; k < dim; k += PLUMB_METAL_SIMD)
        sum = plumb__fma(index_element(query, dim, k), index_element(key, dim, k), sum);
    return plumb_join_lanes(sum);
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
    uint row = group.y, candidate = group.x * INDEX_SIMDGROUPS + simdgroup, dim = args.dim;
    uint count = visible_keys(args.position, row, args.ratio), position = candidate;
    if (args.use_pool) {
        pool += (ulong)row * args.pool_blocks;
        count = pooled_keys(pool, (uint)pool_count[row], args.block_size, count);
    }
    if (candidate >= count) return;
    if (args.use_pool) position = pooled_position(pool, args.block_size, candidate);

    ulong row_bytes = (ulong)plumb__index_row_bytes(dim);
    device const uchar *key = keys + position * row_bytes;
    query += (ulong)row * args.heads * row_bytes;
    weight += (ulong)row * args.heads;
    float kept[INDEX_KEPT];
    for (uint b = 0; b < INDEX_KEPT; b++) {
        uint k = b * PLUMB_METAL_SIMD + lane;
        kept[b] = k < dim ? index_element(key, dim, k) : 0.0f;
    }
    float sum = 0.0f;
    for (uint h = 0; h < args.heads; h++) {
        float t = index_rounded(index_dot(query + h * row_bytes, key, kept, dim, lane));
        t = t > 0.0f ? t : 0.0f;
        sum = sum + index_rounded(t * weight[h]);
    }
    sum = index_rounded(sum);
    if (lane != 0) return;
    if (!plumb_finite(sum)) plumb_fault(control);
    score[(ulong)row * args.score_stride + candidate] = sum;
}
