/* Where the model rounds (docs/arithmetic.md sections 5 and 10): the activation type, the three
 * quantisers and the packed cache rows.
 *
 * Activations are bf16 between operators, so their storage type carries the rounding: storing
 * rounds, loading is exact.  With PLUMB_ROUNDING_OFF (a build for tests only) every rounding is
 * the identity and everything is kept in float32; that build must agree with the published code
 * run the same way, which proves the wiring without any rounding noise. */
#ifndef PLUMB_ARITH_ROUNDING_H
#define PLUMB_ARITH_ROUNDING_H

#include "arith/formats.h"

enum { PLUMB_BLOCK = 32 };           /* elements that share a ue8m0 scale */
enum { PLUMB_COMPRESSED_BLOCK = 16 }; /* elements of a compressed key that share an e4m3 scale */

/* Largest magnitude, compared as integers: the order of floats, with NaN above everything. */
PLUMB_FN float plumb__absolute_max(const PLUMB_THREAD float *x, int n) {
    uint32_t most = 0;
    for (int i = 0; i < n; i++) {
        uint32_t a = plumb__bits_of(x[i]) & 0x7FFFFFFFu;
        most = a > most ? a : most;
    }
    return plumb__float_of(most);
}

/* Exponent of Q8's scale for a block of 32 whose largest magnitude is amax: the smallest power of
 * two >= amax * fl32(1/448). */
PLUMB_FN int32_t plumb__q8_exponent_of(float amax) {
    amax = amax < 1e-4f ? 1e-4f : amax;
    return plumb__ceil_log2(amax * plumb__float_of(0x3B124925u));
}
PLUMB_FN int32_t plumb__q8_exponent(const PLUMB_THREAD float *x) {
    return plumb__q8_exponent_of(plumb__absolute_max(x, PLUMB_BLOCK));
}

/* Exponent of the index quantiser's scale: smallest power of two >= amax * fl32(1/6). */
PLUMB_FN int32_t plumb__q4_index_exponent(const PLUMB_THREAD float *x) {
    float amax = plumb__absolute_max(x, PLUMB_BLOCK);
    float least = 6.0f * plumb__power_of_two(-126);
    amax = amax < least ? least : amax;
    return plumb__ceil_log2(amax * plumb__float_of(0x3E2AAAABu));
}

/* e4m3 scale of a compressed key's block of 16: e4m3(amax / 6), a true division. */
PLUMB_FN uint8_t plumb__q4_compressed_scale(const PLUMB_THREAD float *x) {
    float amax = plumb__absolute_max(x, PLUMB_COMPRESSED_BLOCK);
    float least = 6.0f * plumb__power_of_two(-9);
    amax = amax < least ? least : amax;
    return plumb__e4m3_encode(amax / 6.0f);
}

/* x / 2^exponent for the exponents above, all within +-126: the reciprocal is a float32 and the
 * product exact, or so small beside the block's maximum that it is encoded as zero. */
PLUMB_FN float plumb__divide_power(float x, int32_t exponent) {
    return x * plumb__power_of_two(-exponent);
}

#ifdef PLUMB_ROUNDING_OFF

typedef float plumb_act;
PLUMB_FN float plumb__load(plumb_act a) { return a; }
PLUMB_FN plumb_act plumb__store(float x) { return x; }

/* Packed rows are plain floats. */
PLUMB_FN int64_t plumb__window_row_bytes(int64_t dim) { return dim * 4; }
PLUMB_FN int64_t plumb__compressed_row_bytes(int64_t dim) { return dim * 4; }
PLUMB_FN int64_t plumb__index_row_bytes(int64_t dim) { return dim * 4; }
PLUMB_FN void plumb__window_pack(const float *x, int64_t dim, uint8_t *row) {
    memcpy(row, x, (size_t)dim * 4);
}
PLUMB_FN void plumb__window_unpack(const uint8_t *row, int64_t dim, float *x) {
    memcpy(x, row, (size_t)dim * 4);
}
PLUMB_FN void plumb__window_unpack_block(const uint8_t *row, int64_t dim, int64_t b, float *x) {
    (void)dim;
    memcpy(x, row + b * PLUMB_BLOCK * 4, PLUMB_BLOCK * 4);
}
PLUMB_FN void plumb__compressed_pack(const float *x, int64_t dim, uint8_t *row) {
    plumb__window_pack(x, dim, row);
}
PLUMB_FN void plumb__compressed_unpack(const uint8_t *row, int64_t dim, float *x) {
    plumb__window_unpack(row, dim, x);
}
PLUMB_FN void plumb__compressed_unpack_block(const uint8_t *row, int64_t dim, int64_t b, float *x) {
    plumb__window_unpack_block(row, dim, b, x);
}
PLUMB_FN void plumb__index_pack(const float *x, int64_t dim, uint8_t *row) {
    plumb__window_pack(x, dim, row);
}
PLUMB_FN void plumb__index_unpack(const uint8_t *row, int64_t dim, float *x) {
    plumb__window_unpack(row, dim, x);
}

#else

typedef uint16_t plumb_act;
PLUMB_FN float plumb__load(plumb_act a) { return plumb__bf16_decode(a); }
PLUMB_FN plumb_act plumb__store(float x) { return plumb__bf16_encode(x); }

/* Window key: dim e4m3 codes, then dim/32 ue8m0 scales.  Packed and unpacked by blocks, here and below,
 * which a GPU gives to a thread each. */
PLUMB_FN int64_t plumb__window_row_bytes(int64_t dim) { return dim + dim / PLUMB_BLOCK; }
PLUMB_FN void plumb__window_pack_block(const PLUMB_THREAD float *x, int64_t dim, int64_t b,
                                       PLUMB_DEVICE uint8_t *row) {
    int32_t exponent = plumb__q8_exponent(x);
    for (int i = 0; i < PLUMB_BLOCK; i++)
        row[b * PLUMB_BLOCK + i] = plumb__e4m3_encode(plumb__divide_power(x[i], exponent));
    row[dim + b] = (uint8_t)(exponent + 127);
}
PLUMB_FN void plumb__window_pack(const PLUMB_THREAD float *x, int64_t dim, PLUMB_DEVICE uint8_t *row) {
    for (int64_t b = 0; b < dim / PLUMB_BLOCK; b++)
        plumb__window_pack_block(x + b * PLUMB_BLOCK, dim, b, row);
}
/* Elements 32b .. 32b+31.  A code times its scale is exact in bf16, here and below. */
PLUMB_FN void plumb__window_unpack_block(const PLUMB_DEVICE uint8_t *row, int64_t dim, int64_t b,
                                         PLUMB_THREAD float *x) {
    float scale = plumb__power_of_two((int32_t)row[dim + b] - 127);
    for (int i = 0; i < PLUMB_BLOCK; i++)
        x[i] = plumb__e4m3_decode(row[b * PLUMB_BLOCK + i]) * scale;
}
PLUMB_FN void plumb__window_unpack(const PLUMB_DEVICE uint8_t *row, int64_t dim,
                                   PLUMB_THREAD float *x) {
    for (int64_t b = 0; b < dim / PLUMB_BLOCK; b++)
        plumb__window_unpack_block(row, dim, b, x + b * PLUMB_BLOCK);
}

/* Thirty-two e2m1 codes from sixteen bytes. */
PLUMB_FN void plumb__e2m1_unpack(const PLUMB_DEVICE uint8_t *pair, PLUMB_THREAD float *x) {
    uint8_t code[PLUMB_BLOCK];
    for (int i = 0; i < PLUMB_BLOCK / 2; i++) {
        code[2 * i] = pair[i] & 15;
        code[2 * i + 1] = pair[i] >> 4;
    }
    for (int i = 0; i < PLUMB_BLOCK; i++) x[i] = plumb__e2m1_decode(code[i]);
}

/* Compressed key: dim/2 bytes of e2m1 pairs, then dim/16 e4m3 scales. */
PLUMB_FN int64_t plumb__compressed_row_bytes(int64_t dim) {
    return dim / 2 + dim / PLUMB_COMPRESSED_BLOCK;
}
PLUMB_FN void plumb__compressed_pack_block(const PLUMB_THREAD float *x, int64_t dim, int64_t b,
                                           PLUMB_DEVICE uint8_t *row) {
    uint8_t code = plumb__q4_compressed_scale(x);
    float scale = plumb__e4m3_decode(code);
    for (int i = 0; i < PLUMB_COMPRESSED_BLOCK; i += 2) {
        uint32_t low = plumb__e2m1_encode(x[i] / scale), high = plumb__e2m1_encode(x[i + 1] / scale);
        row[(b * PLUMB_COMPRESSED_BLOCK + i) / 2] = (uint8_t)(low | high << 4);
    }
    row[dim / 2 + b] = code;
}
PLUMB_FN void plumb__compressed_pack(const PLUMB_THREAD float *x, int64_t dim,
                                     PLUMB_DEVICE uint8_t *row) {
    for (int64_t b = 0; b < dim / PLUMB_COMPRESSED_BLOCK; b++)
        plumb__compressed_pack_block(x + b * PLUMB_COMPRESSED_BLOCK, dim, b, row);
}
/* Elements 32b .. 32b+31: two blocks of sixteen. */
PLUMB_FN void plumb__compressed_unpack_block(const PLUMB_DEVICE uint8_t *row, int64_t dim, int64_t b,
                                             PLUMB_THREAD float *x) {
    float code[PLUMB_BLOCK];
    plumb__e2m1_unpack(row + b * PLUMB_BLOCK / 2, code);
    for (int part = 0; part < 2; part++) {
        float scale = plumb__e4m3_decode(row[dim / 2 + 2 * b + part]);
        for (int i = 0; i < PLUMB_COMPRESSED_BLOCK; i++)
            x[part * PLUMB_COMPRESSED_BLOCK + i] = code[part * PLUMB_COMPRESSED_BLOCK + i] * scale;
    }
}
PLUMB_FN void plumb__compressed_unpack(const PLUMB_DEVICE uint8_t *row, int64_t dim,
                                       PLUMB_THREAD float *x) {
    for (int64_t b = 0; b < dim / PLUMB_BLOCK; b++)
        plumb__compressed_unpack_block(row, dim, b, x + b * PLUMB_BLOCK);
}

/* Index key or query: dim/2 bytes of e2m1 pairs, then dim/32 ue8m0 scales. */
PLUMB_FN int64_t plumb__index_row_bytes(int64_t dim) { return dim / 2 + dim / PLUMB_BLOCK; }
PLUMB_FN void plumb__index_pack_block(const PLUMB_THREAD float *x, int64_t dim, int64_t b,
                                      PLUMB_DEVICE uint8_t *row) {
    int32_t exponent = plumb__q4_index_exponent(x);
    for (int i = 0; i < PLUMB_BLOCK; i += 2) {
        uint32_t low = plumb__e2m1_encode(plumb__divide_power(x[i], exponent));
        uint32_t high = plumb__e2m1_encode(plumb__divide_power(x[i + 1], exponent));
        row[(b * PLUMB_BLOCK + i) / 2] = (uint8_t)(low | high << 4);
    }
    row[dim / 2 + b] = (uint8_t)(exponent + 127);
}
PLUMB_FN void plumb__index_pack(const PLUMB_THREAD float *x, int64_t dim, PLUMB_DEVICE uint8_t *row) {
    for (int64_t b = 0; b < dim / PLUMB_BLOCK; b++)
        plumb__index_pack_block(x + b * PLUMB_BLOCK, dim, b, row);
}
PLUMB_FN void plumb__index_unpack(const PLUMB_DEVICE uint8_t *row, int64_t dim,
                                  PLUMB_THREAD float *x) {
    for (int64_t b = 0; b < dim / PLUMB_BLOCK; b++) {
        float code[PLUMB_BLOCK], scale = plumb__power_of_two((int32_t)row[dim / 2 + b] - 127);
        plumb__e2m1_unpack(row + b * PLUMB_BLOCK / 2, code);
        for (int i = 0; i < PLUMB_BLOCK; i++) x[b * PLUMB_BLOCK + i] = code[i] * scale;
    }
}

#endif

#endif
