/* Attention of one head of one row by one threadgroup (docs/arithmetic.md section 6).
 *
 * Keys in the contract's order: window positions, oldest first, then the selected compressed positions.
 * They stay packed and are decoded in registers, twice.
 * - Scores: a simdgroup takes four keys at a time; its lanes are those of the inner products.
 * - Softmax: the maximum in any order; the denominator in 32 lanes over the keys, by each simdgroup for
 *   itself, which saves handing it round.
 * - Values: a thread owns four neighbouring elements of the output and goes through all keys in order;
 *   the threads of a simdgroup read 128 neighbouring codes at a time. */
#include "backend/metal/kernels/packed_keys.h"

enum {
    ATTENTION_SIMDGROUPS = PLUMB_METAL_THREADS / PLUMB_METAL_SIMD,
    ATTENTION_OWNED = 4 /* output elements of a thread: they share every scale */
};

/* The packed keys of a row.  The oldest window keys are in the ring, the others in the chunk. */
struct attention_keys {
    device const uchar *ring, *chunk, *compressed;
    device const int *selected; /* of this row */
    uint dim, window, n_window, n_ring, n_compressed;
    uint slot;     /* of the oldest window key */
    uint in_chunk; /* where window key j lies in the chunk: in_chunk + j, modulo 2^32 */
};

static inline attention_keys attention_list(constant plumb_metal_attention &args, uint row,
                                            device const uchar *ring, device const uchar *chunk,
                                            device const uchar *compressed,
                                            device const int *selected,
                                            device const int *selected_count) {
    attention_keys keys;
    uint position = args.position + row;
    keys.ring = ring;
    keys.chunk = chunk;
    keys.compressed = compressed;
    keys.selected = selected + (ulong)row * args.selected_stride;
    keys.dim = args.dim;
    keys.window = args.window;
    keys.n_window = position < args.window ? position + 1 : args.window;
    uint oldest = position + 1 - keys.n_window;
    keys.n_ring = oldest < args.chunk_position ? args.chunk_position - oldest : 0;
    keys.n_compressed = args.has_compressed ? (uint)selected_count[row] : 0;
    keys.slot = args.window ? oldest % args.window : 0;
    keys.in_chunk = oldest - args.chunk_position;
    return keys;
}

static inline device const uchar *attention_window_key(thread const attention_keys &keys, uint j) {
    ulong row_bytes = (ulong)plumb__window_row_bytes(keys.dim);
    if (j >= keys.n_ring) return keys.chunk + (keys.in_chunk + j) * row_bytes;
    uint slot = keys.slot + j; /* below twice the window: no division */
    return keys.ring + (slot < keys.window ? slot : slot - keys.window) * row_bytes;
}

static inline device const uchar *attention_compressed_key(thread const attention_keys &keys,
                                                           uint j) {
    ulong row_bytes = (ulong)plumb__compressed_row_bytes(keys.dim);
    return keys.compressed + (uint)keys.selected[j] * row_bytes;
}

/* score[j] = (query . key j) * scale for the `count` keys of a kind, as many at a time as come to this
 * simdgroup by turns.  In a last turn that is short the last key stands in for those that are missing. */
template <bool window>
static inline void attention_scores(thread const attention_keys &keys,
                                    device const plumb_act *query, float scale,
                                    threadgroup float *score, uint count, uint simdgroup, uint lane) {
    uint dim = keys.dim;
    for (uint first = simdgroup * KEYS_AT_ONCE; first < count;
         first += ATTENTION_SIMDGROUPS * KEYS_AT_ONCE) {
        device const uchar *key[KEYS_AT_ONCE];
        float sum[KEYS_AT_ONCE];
        for (uint i = 0; i < KEYS_AT_ONCE; i++) {
            uint j = first + i < count ? first + i : count - 1;
            key[i] = window ? attention_window_key(keys, j) : attention_compressed_key(keys, j);
            sum[i] = 0.0f;
        }
        for (uint k = lane; k < dim; k += PLUMB_METAL_SIMD) {
            float q = plumb__load(query[k]);
            for (uint i = 0; i < KEYS_AT_ONCE; i++)
                sum[i] = plumb__fma(q, window ? window_element(key[i], dim, k)
                                              : compressed_element(key[i], dim, k), sum[i]);
        }
        float product = join_keys(sum, lane);
        uint j = first + lane / KEYS_LANES;
        if (lane % KEYS_LANES == 0 && j < count) score[j] = product * scale;
    }
}

/* The largest score; `simd_most` has a place for each simdgroup. */
static inline float attention_most(threadgroup const float *score, uint count,
                                   threadgroup float *simd_most, uint thread_index,
                                   uint simdgroup, uint lane) {
    float most = score[0];
    for (uint j = thread_index; j < count; j += PLUMB_METAL_THREADS)
        most = score[j] > most ? score[j] : most;
    most = simd_max(most);
    if (lane == 0) simd_most[simdgroup] = most;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < ATTENTION_SIMDGROUPS; i++)
        most = simd_most[i] > most ? simd_most[i] : most;
    return most;
}

/* Turns scores into probabilities, rounded to bf16, and returns the denominator, of those that are not
 * rounded yet. */
static inline float attention_softmax(threadgroup float *score, uint count, float sink,
                                      threadgroup float *simd_most, uint thread_index,
                                      uint simdgroup, uint lane) {
    float most = attention_most(score, count, simd_most, thread_index, simdgroup, lane);
    for (uint j = thread_index; j < count; j += PLUMB_METAL_THREADS)
        score[j] = plumb__exp(score[j] - most);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float sum = 0.0f;
    for (uint j = lane; j < count; j += PLUMB_METAL_SIMD) sum = sum + score[j];
    float denominator = plumb_join_lanes(sum) + plumb__exp(sink - most);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = thread_index; j < count; j += PLUMB_METAL_THREADS)
        score[j] = plumb__load(plumb__store(score[j]));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return denominator;
}

/* Elements d .. d + 3 of the sum of values, not yet divided. */
static inline void attention_sum(thread const attention_keys &keys,
                                 threadgroup const float *probability, uint d,
                                 thread float *sum) {
    uint dim = keys.dim;
    for (uint i = 0; i < ATTENTION_OWNED; i++) sum[i] = 0.0f;
#pragma unroll(4) /* several keys are on their way from memory at a time */
    for (uint j = 0; j < keys.n_window; j++) {
        device const uchar *key = attention_window_key(keys, j);
        float p = probability[j], scale = key_power(key[dim + d / PLUMB_BLOCK]);
        uint codes = plumb_load4(key + d);
        for (uint i = 0; i < ATTENTION_OWNED; i++)
            sum[i] = plumb__fma(p, plumb__e4m3_decode((uchar)(codes >> 8 * i)) * scale, sum[i]);
    }
#pragma unroll(4)
    for (uint j = 0; j < keys.n_compressed; j++) {
        device const uchar *key = attention_compressed_key(keys, j);
        float p = probability[keys.n_window + j];
        float scale = plumb__e4m3_decode(key[dim / 2 + d / PLUMB_COMPRESSED_BLOCK]);
        for (uint i = 0; i < ATTENTION_OWNED; i++)
            sum[i] = plumb__fma(p, key_nibble(key, d + i) * scale, sum[i]);
    }
}

kernel void attention(device plumb_metal_control &control [[buffer(0)]],
                      constant plumb_metal_attention &args [[buffer(1)]],
                      device const plumb_act *query [[buffer(2)]],    /* [rows][heads][dim] */
                      device const uchar *ring [[buffer(3)]],         /* [window] window keys */
                      device const uchar *chunk [[buffer(4)]],        /* window keys */
                      device const uchar *compressed [[buffer(5)]],   /* compressed keys */
                      device const int *selected [[buffer(6)]],       /* [rows][selected_stride] */
                      device const int *selected_count [[buffer(7)]], /* [rows] */
                      device const float *sink [[buffer(8)]],         /* [heads] */
                      device plumb_act *out [[buffer(9)]],            /* [rows][heads][dim] */
                      threadgroup float *score [[threadgroup(0)]],
                      threadgroup float *simd_most [[threadgroup(1)]],
                      uint2 group [[threadgroup_position_in_grid]],
                      uint thread_index [[thread_index_in_threadgroup]],
                      uint simdgroup [[simdgroup_index_in_threadgroup]],
                      uint lane [[thread_index_in_simdgroup]]) {
    if (plumb_halted(control)) return;
    uint head = group.x, row = group.y;
    ulong place = ((ulong)row * args.heads + head) * args.dim;
    attention_keys keys = attention_list(args, row, ring, chunk, compressed, selected, selected_count);
    uint count = keys.n_window + keys.n_compressed;
    float denominator = 1.0f; /* with no keys the output is zero */
    if (count > 0) {
        attention_scores<true>(keys, query + place, args.scale, score, keys.n_window, simdgroup, lane);
        attention_scores<false>(keys, query + place, args.scale, score + keys.n_window,
                                keys.n_compressed, simdgroup, lane);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        denominator = attention_softmax(score, count, sink[head], simd_most, thread_index, simdgroup,
                                        lane);
    }
    for (uint d = ATTENTION_OWNED * thread_index; d < args.dim;
         d += ATTENTION_OWNED * PLUMB_METAL_THREADS) {
        float sum[ATTENTION_OWNED];
        attention_sum(keys, score, d, sum);
        for (uint i = 0; i < ATTENTION_OWNED; i++)
            out[place + d + i] = plumb__store(sum[i] / denominator);
    }
}
