/* Weights on their way into AVX2 registers: where eight rows by eight blocks lie, their scales side by
 * side, and FP8 codes as numbers of 16 bits. */
#ifndef PLUMB_BACKEND_CPU_WEIGHTS_AVX2_H
#define PLUMB_BACKEND_CPU_WEIGHTS_AVX2_H

#include "backend/cpu/kernels/quantized_avx2.h"

/* ---- Eight weight rows by eight blocks --------------------------------------------------------- */

/* In the matrix itself or, at its edges, copied beside zeros.  FP8 rows share their scales. */
typedef struct plumb_chunk {
    const uint8_t *codes, *scales;
    int64_t stride, scale_stride;
} plumb_chunk;

typedef struct plumb_padded_chunk {
    uint8_t codes[PLUMB_LANE_ROWS * PLUMB_CHUNK_BLOCKS * PLUMB_BLOCK];
    uint8_t scales[PLUMB_LANE_ROWS * PLUMB_CHUNK_BLOCKS];
} plumb_padded_chunk;

/* Blocks b .. b+count-1 of rows n .. n+rows-1, both at most eight. */
static inline plumb_chunk plumb__find_chunk_avx2(const plumb_matrix *w, int64_t n, int64_t rows,
                                                 int64_t b, int64_t count,
                                                 plumb_padded_chunk *padded) {
    bool fp8 = w->type == PLUMB_MATRIX_FP8;
    int64_t blocks = w->k / PLUMB_BLOCK, size = fp8 ? PLUMB_BLOCK : PLUMB_BLOCK / 2;
    plumb_chunk s = {(const uint8_t *)w->codes + (n * blocks + b) * size,
                     w->scales + (fp8 ? n / PLUMB_BLOCK : n) * blocks + b, blocks * size,
                     fp8 ? 0 : blocks};
    if (rows == PLUMB_LANE_ROWS && count == PLUMB_CHUNK_BLOCKS) return s;
    memset(padded, 0, sizeof *padded);
    memset(padded->scales, 127, sizeof padded->scales); /* of a usual size */
    int64_t stride = PLUMB_CHUNK_BLOCKS * size;
    for (int64_t r = 0; r < rows; r++) {
        memcpy(padded->codes + r * stride, s.codes + r * s.stride, (size_t)(count * size));
        memcpy(padded->scales + r * PLUMB_CHUNK_BLOCKS, s.scales + r * s.scale_stride,
               (size_t)count);
    }
    return (plumb_chunk){padded->codes, padded->scales, stride, fp8 ? 0 : PLUMB_CHUNK_BLOCKS};
}

/* The scale bytes, a row in each byte of a dword: out[i] has blocks 4i .. 4i+3, rows 0..3 in its lower
 * half, 4..7 in its upper. */
static inline void plumb__scale_bytes_avx2(plumb_chunk s, __m256i out[2]) {
    __m256i row[4];
    for (int i = 0; i < 4; i++) {
        const uint8_t *low = s.scales + i * s.scale_stride, *high = low + 4 * s.scale_stride;
        row[i] = _mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_loadl_epi64((const __m128i *)(const void *)low)),
            _mm_loadl_epi64((const __m128i *)(const void *)high), 1);
    }
    __m256i r01 = _mm256_unpacklo_epi8(row[0], row[1]), r23 = _mm256_unpacklo_epi8(row[2], row[3]);
    out[0] = _mm256_unpacklo_epi16(r01, r23);
    out[1] = _mm256_unpackhi_epi16(r01, r23);
}

/* Dword `block` (0..3) of each half, spread: byte r becomes bits 23..30 of the half's lane r. */
static inline __m256i plumb__exponent_field_avx2(__m256i bytes, int block) {
    const __m256i to_bit_16 = _mm256_setr_epi8(
        -1, -1, 0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3, -1,
        -1, -1, 0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3, -1);
    __m256i place = _mm256_add_epi8(to_bit_16, _mm256_set1_epi32(4 * block << 16));
    return _mm256_slli_epi32(_mm256_shuffle_epi8(bytes, place), 7);
}

/* ---- Unpacking FP8: w * 2^6 is the product of two table values --------------------------------
 *
 * A code is s eee e mmm.  Its low four bits give (8 + m) << e0, its high four bits the signed power
 * 4^(eee - 2); the product is w * 2^6 for every weight from 2^-3 up, and 0 for smaller ones, whose
 * eee is below 2. */
static inline __m256i plumb__fp8_mantissa_avx2(__m256i code) {
    static const int8_t mantissa[16] = {8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 26, 28, 30};
    return _mm256_shuffle_epi8(plumb__table_avx2(mantissa),
                               _mm256_and_si256(code, _mm256_set1_epi8(15)));
}
static inline void plumb__fp8_power_avx2(__m256i code, __m256i *low, __m256i *high) {
    static const int8_t power_low[16] = {0, 0, 1, 4, 16, 64, 0, 0, 0, 0, -1, -4, -16, -64, 0, 0};
    static const int8_t power_high[16] = {0, 0, 0, 0, 0, 0, 1, 4, 0, 0, -1, -1, -1, -1, -1, -4};
    __m256i upper = _mm256_and_si256(_mm256_srli_epi16(code, 4), _mm256_set1_epi8(15));
    *low = _mm256_shuffle_epi8(plumb__table_avx2(power_low), upper);
    *high = _mm256_shuffle_epi8(plumb__table_avx2(power_high), upper);
}

#endif
