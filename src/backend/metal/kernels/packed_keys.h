/* Packed cache rows as threads read them: one element at a time, decoded in registers.  A code times
 * its scale is exact (src/arith/rounding.h), so where a value is decoded does not matter. */
#ifndef PLUMB_BACKEND_METAL_PACKED_KEYS_H
#define PLUMB_BACKEND_METAL_PACKED_KEYS_H

#include "backend/metal/kernels/common.h"

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
