/* FP8 weights with AVX-512: codes to 16-bit planes, and sums of plane products to D_b. */
#ifndef PLUMB_BACKEND_CPU_FP8_AVX512_H
#define PLUMB_BACKEND_CPU_FP8_AVX512_H

#include "backend/cpu/kernels/quantized_avx512.h"

/* Two FP8 codes a lane (the low byte of a half) as 16-bit planes: w * 2^9 = 256 * high + low
 * with |high| <= 896 and 0 <= low < 256. w * 2^9 = m * p, where p = +-2^(max(e, 1) - 1) and m
 * has the implicit bit: the halves of (256 * m) * p are high and 256 * low. `index` holds sign
 * and e in its low five bits, `fraction` three bits from bit 8 on; what else they hold does not
 * matter. */
static inline void plumb__fp8_planes_avx512(__m512i index, __m512i fraction, __m512i *high,
                                            __m512i *low) {
    static const int16_t powers[32] = {
        1,     1,     2,     4,     8,     16,    32,    64,     /* positive, e = 0 .. 15 */
        128,   256,   512,   1024,  2048,  4096,  8192,  16384,  /* */
        -1,    -1,    -2,    -4,    -8,    -16,   -32,   -64,    /* negative */
        -128,  -256,  -512,  -1024, -2048, -4096, -8192, -16384};
    static const int16_t implicit[32] = {
        0,    2048, 2048, 2048, 2048, 2048, 2048, 2048, /* 8 << 8 but for e = 0 */
        2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, /* */
        0,    2048, 2048, 2048, 2048, 2048, 2048, 2048, /* again */
        2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048};
    __m512i p = _mm512_permutexvar_epi16(index, _mm512_loadu_si512(powers));
    __m512i m = _mm512_permutexvar_epi16(index, _mm512_loadu_si512(implicit));
    m = _mm512_or_si512(m, _mm512_and_si512(fraction, _mm512_set1_epi16(0x700)));
    *high = _mm512_mulhi_epi16(m, p);
    *low = _mm512_srli_epi16(_mm512_mullo_epi16(m, p), 8);
}

/* The planes of four FP8 codes a lane: of codes 0 and 2, of codes 1 and 3. */
static inline void plumb__fp8_dword_avx512(__m512i codes, __m512i high[2], __m512i low[2]) {
    plumb__fp8_planes_avx512(_mm512_srli_epi16(codes, 3), _mm512_slli_epi16(codes, 8), &high[0],
                             &low[0]);
    plumb__fp8_planes_avx512(_mm512_srli_epi16(codes, 11), codes, &high[1], &low[1]);
}

/* high * 2^shift + low, rounded once to float32, where 0 <= low < 2^shift, shift is at most 11
 * and |high| < 2^30. All of `high` but its lowest 8 bits is one float, of at most 22 significant
 * bits; what remains is another, of at most 19: the fma adds them and rounds. `rest` is the
 * whole modulo 2^32. */
static inline __m512 plumb__join_avx512(__m512i high, __m512i rest, int shift) {
    __m512i top = _mm512_and_si512(high, _mm512_set1_epi32(~255));
    rest = _mm512_and_si512(rest, _mm512_set1_epi32((256 << shift) - 1));
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(top), _mm512_set1_ps((float)(1 << shift)),
                           _mm512_cvtepi32_ps(rest));
}

/* D_b against FP8 weights from the sums of 32 products of the two weight planes with the high
 * plane of the activations: |high| <= 32 * 896 * 28,672 < 2^30, |low| <= 32 * 255 * 28,672 <
 * 2^28. */
static inline __m512 plumb__fp8_block_avx512(__m512i high, __m512i low) {
    __m512i rest = _mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
    high = _mm512_add_epi32(high, _mm512_srai_epi32(low, 8));
    return _mm512_mul_ps(plumb__join_avx512(high, rest, 8), _mm512_set1_ps(0x1p-15f));
}

/* The same where the low plane is not empty: |high_l| <= 32 * 896 * 60, |low_l| <= 32 * 255 *
 * 60. In units of 2^-18 the sum is 8 * (256 * high + low) + 256 * high_l + low_l; what of it is
 * not 2048 * (high + low / 256) is below 2^29, and its upper bits join `high`. */
static inline __m512 plumb__fp8_block_low_avx512(__m512i high, __m512i low, __m512i high_l,
                                                 __m512i low_l) {
    high = _mm512_add_epi32(high, _mm512_srai_epi32(low, 8));
    low = _mm512_slli_epi32(_mm512_and_si512(low, _mm512_set1_epi32(255)), 3);
    low = _mm512_add_epi32(low, _mm512_add_epi32(_mm512_slli_epi32(high_l, 8), low_l));
    __m512i rest = _mm512_add_epi32(_mm512_slli_epi32(high, 11), low);
    high = _mm512_add_epi32(high, _mm512_srai_epi32(low, 11));
    return _mm512_mul_ps(plumb__join_avx512(high, rest, 11), _mm512_set1_ps(0x1p-18f));
}

#endif
