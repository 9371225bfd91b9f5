/* Packed cache rows as threads read them: one element at a time, decoded in registers.  A code times
 * its scale is exact (src/arith/rounding.h), so where a value is decoded does not matter.
 *
 * A simdgroup takes KEYS_AT_ONCE keys: what it decodes of a query serves them all, and their sums do not
 * wait for each other. */
#ifndef PLUMB_BACKEND_METAL_PACKED_KEYS_H
#define PLUMB_BACKEND_METAL_PACKED_KEYS_H

#include "backend/metal/kernels/common.h"

enum {
    KEYS_AT_ONCE = 4,
    KEYS_LANES = PLUMB_METAL_SIMD / KEYS_AT_ONCE /* lanes that end up with the same key */
};

/* The tree of plumb_join_lanes over four sums at once; lanes 8i to 8i + 7 receive sum i.  In the first two
 * steps a lane keeps half of the sums and hands its share of the others to the lane that keeps those:
 * the same additions, and six exchanges in place of twenty. */
static inline float join_keys(thread const float *sum, uint lane) {
    bool upper = lane & 16, right = lane & 8;
    float kept0 = upper ? sum[2] : sum[0], kept1 = upper ? sum[3] : sum[1];
    float given0 = upper ? sum[0] : sum[2], given1 = upper ? sum[1] : sum[3];
    kept0 = kept0 + simd_shuffle_xor(given0, (ushort)16);
    kept1 = kept1 + simd_shuffle_xor(given1, (ushort)16);
    float kept = right ? kept1 : kept0, given = right ? kept0 : kept1;
    kept = kept + simd_shuffle_xor(given, (ushort)8);
    kept = kept + simd_shuffle_xor(kept, (ushort)4);
    kept = kept + simd_shuffle_xor(kept, (ushort)2);
    kept = kept + simd_shuffle_xor(kept, (ushort)1);
    return kept;
}

/* Rows may be of an odd number of bytes (33 of dim 32): nothing here is read in wider pieces. */
static inline float key_power(uchar scale) { return plumb__power_of_two((int)scale - 127); }

static inline float key_nibble(device const uchar *row, uint k) {
    uchar pair = row[k / 2];
    return plumb__e2m1_decode(k % 2 ? pair >> 4 : pair & 15);
}

/* Element k of a window key: dim e4m3 codes, then dim/32 ue8m0 scales. */
static inline float window_element(device const uchar *row, uint dim, uint k) {
    return plumb__e4m3_decode(row[k]) * key_power(row[dim + k / PLUMB_BLOCK]);
}

/* Of a compressed key: dim/2 bytes of e2m1 pairs, then dim/16 e4m3 scales. */
static inline float compressed_element(device const uchar *row, uint dim, uint k) {
    return key_nibble(row, k) * plumb__e4m3_decode(row[dim / 2 + k / PLUMB_COMPRESSED_BLOCK]);
}

/* Of an index key or query: dim/2 bytes of e2m1 pairs, then dim/32 ue8m0 scales. */
static inline float index_element(device const uchar *row, uint dim, uint k) {
    return key_nibble(row, k) * key_power(row[dim / 2 + k / PLUMB_BLOCK]);
}

#endif
