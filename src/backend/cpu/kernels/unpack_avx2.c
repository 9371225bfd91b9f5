/* Packed keys into floats with AVX2 (tiles.h): compilers turn the definition's decoders into long
 * chains of shifts, where a table in a register or a half float does the same.  Compiled for AVX-512 too. */
#include "backend/cpu/kernels/tiles.h"

#include <immintrin.h>

/* e4m3 codes moved into the bits of half floats are their values times 2^-8, subnormals included, and
 * the conversion does not flush them. */
static inline __m256i halves_of(__m128i codes) {
    __m256i wide = _mm256_cvtepu8_epi16(codes);
    __m256i magnitude = _mm256_slli_epi16(_mm256_and_si256(wide, _mm256_set1_epi16(0x7F)), 7);
    return _mm256_or_si256(
        magnitude, _mm256_slli_epi16(_mm256_and_si256(wide, _mm256_set1_epi16(0x80)), 8));
}

static inline void store_scaled(float *out, __m128i halves, __m256 scale) {
    __m256 value = _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(256.0f));
    _mm256_storeu_ps(out, _mm256_mul_ps(value, scale));
}

void PLUMB_KERNEL(unpack_window)(const uint8_t *row, int64_t dim, int64_t begin, int64_t end,
                               float *out) {
    for (int64_t b = begin; b < end; b++, out += PLUMB_BLOCK) {
        const uint8_t *codes = row + b * PLUMB_BLOCK;
        __m256 scale = _mm256_set1_ps(plumb__power_of_two((int32_t)row[dim + b] - 127));
        __m256i low = halves_of(_mm_loadu_si128((const __m128i *)(const void *)codes));
        __m256i high = halves_of(_mm_loadu_si128((const __m128i *)(const void *)(codes + 16)));
        store_scaled(out, _mm256_castsi256_si128(low), scale);
        store_scaled(out + 8, _mm256_extracti128_si256(low, 1), scale);
        store_scaled(out + 16, _mm256_castsi256_si128(high), scale);
        store_scaled(out + 24, _mm256_extracti128_si256(high, 1), scale);
    }
}

/* The lower eight of sixteen bytes, each an e2m1 code, times the scale. */
static inline void store_eight(float *out, __m128i codes, __m256 scale) {
    const __m256 magnitudes = _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
    __m256i code = _mm256_cvtepu8_epi32(codes);
    __m256 magnitude = _mm256_permutevar8x32_ps(magnitudes, code); /* by its lowest three bits */
    __m256i sign = _mm256_slli_epi32(_mm256_srli_epi32(code, 3), 31);
    __m256 value = _mm256_or_ps(magnitude, _mm256_castsi256_ps(sign));
    _mm256_storeu_ps(out, _mm256_mul_ps(value, scale));
}

/* Sixteen bytes of e2m1 pairs; the first sixteen elements times one scale, the others times another. */
static inline void store_pairs(float *out, const uint8_t *pairs, __m256 first, __m256 second) {
    const __m128i nibble = _mm_set1_epi8(15);
    __m128i packed = _mm_loadu_si128((const __m128i *)(const void *)pairs);
    __m128i even = _mm_and_si128(packed, nibble);
    __m128i odd = _mm_and_si128(_mm_srli_epi16(packed, 4), nibble);
    __m128i low = _mm_unpacklo_epi8(even, odd), high = _mm_unpackhi_epi8(even, odd);
    store_eight(out, low, first);
    store_eight(out + 8, _mm_srli_si128(low, 8), first);
    store_eight(out + 16, high, second);
    store_eight(out + 24, _mm_srli_si128(high, 8), second);
}

static inline __m256 e4m3_scale(uint8_t code) {
    int half = (code & 0x7F) << 7 | (code & 0x80) << 8;
    __m256 value = _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
    return _mm256_mul_ps(value, _mm256_set1_ps(256.0f));
}

void PLUMB_KERNEL(unpack_compressed)(const uint8_t *row, int64_t dim, int64_t begin, int64_t end,
                                   float *out) {
    for (int64_t b = begin; b < end; b++, out += PLUMB_BLOCK) {
        const uint8_t *scales = row + dim / 2 + 2 * b;
        store_pairs(out, row + b * PLUMB_BLOCK / 2, e4m3_scale(scales[0]), e4m3_scale(scales[1]));
    }
}

void PLUMB_KERNEL(unpack_index)(const uint8_t *row, int64_t dim, float *out) {
    for (int64_t b = 0; b < dim / PLUMB_BLOCK; b++, out += PLUMB_BLOCK) {
        __m256 scale = _mm256_set1_ps(plumb__power_of_two((int32_t)row[dim / 2 + b] - 127));
        store_pairs(out, row + b * PLUMB_BLOCK / 2, scale, scale);
    }
}
