/* Quantising a row of activations into the AVX-512 layout. */
#include "backend/cpu/kernels/quantized_avx512.h"

static int64_t chunks(int64_t k) {
    int64_t blocks = k / PLUMB_BLOCK;
    return (blocks + PLUMB_CHUNK_BLOCKS - 1) / PLUMB_CHUNK_BLOCKS;
}

int64_t PLUMB_KERNEL(quantized_row_bytes)(int64_t k) {
    return chunks(k) * (int64_t)sizeof(plumb_act_chunk);
}

/* e4m3(x * 2^-exponent) * 2^9 of sixteen values, as integers. The steps of e4m3 are an eighth of
 * the power of two below the value, and of 16 * 2^-9 where that is larger: adding and
 * subtracting 2^23 steps rounds to one of them, ties to the even one. */
static inline __m512i quantise(const float *x, int32_t exponent) {
    const __m512i sign_bit = _mm512_set1_epi32(INT32_MIN), binade = _mm512_set1_epi32(0x7F800000);
    __m512 scaled =
        _mm512_mul_ps(_mm512_loadu_ps(x), _mm512_set1_ps(plumb__power_of_two(9 - exponent)));
    __m512i bits = _mm512_castps_si512(scaled), sign = _mm512_and_si512(bits, sign_bit);
    __m512 magnitude = _mm512_castsi512_ps(_mm512_andnot_si512(sign_bit, bits));
    magnitude = _mm512_min_ps(magnitude, _mm512_set1_ps(448.0f * 512.0f));
    __m512i power = _mm512_and_si512(_mm512_castps_si512(magnitude), binade);
    power = _mm512_max_epi32(power, _mm512_set1_epi32((127 + 3) << 23));
    __m512 steps = _mm512_castsi512_ps(_mm512_add_epi32(power, _mm512_set1_epi32(20 << 23)));
    magnitude = _mm512_sub_ps(_mm512_add_ps(magnitude, steps), steps);
    return _mm512_cvtps_epi32(
        _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(magnitude), sign)));
}

/* Thirty-two values of a block, in order: 2 vectors of 32 bits to one of 16. */
static inline __m512i narrow(const __m512i value[2]) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(value[0])),
                              _mm512_cvtepi32_epi16(value[1]), 1);
}

/* The low bytes of words that are even k, of those that are odd k. */
static inline void store_digits(__m512i words, int8_t *even, int8_t *odd) {
    _mm_storeu_si128((__m128i *)(void *)even, _mm512_cvtepi32_epi8(words));
    _mm_storeu_si128((__m128i *)(void *)odd, _mm512_cvtepi32_epi8(_mm512_srli_epi32(words, 16)));
}

static void store_words(__m512i words, const int16_t order[PLUMB_BLOCK], void *plane) {
    _mm512_storeu_si512(plane, _mm512_permutexvar_epi16(_mm512_loadu_si512(order), words));
}

#ifdef PLUMB_AVX512_BF16
/* integers * unit as bf16: the upper halves of floats whose lower halves are zero. */
static void store_bf16(const __m512i value[2], float unit, uint16_t *plane) {
    static const int16_t pairs_of_4[PLUMB_BLOCK] = {0,  4,  1,  5,  2,  6,  3,  7,  8,  12, 9,
                                                    13, 10, 14, 11, 15, 16, 20, 17, 21, 18, 22,
                                                    19, 23, 24, 28, 25, 29, 26, 30, 27, 31};
    __m512i half[2];
    for (int h = 0; h < 2; h++) {
        __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(value[h]), _mm512_set1_ps(unit));
        half[h] = _mm512_srli_epi32(_mm512_castps_si512(x), 16);
    }
    store_words(narrow(half), pairs_of_4, plane);
}
#endif

static void store_block(const __m512i value[2], plumb_act_chunk *out, int b) {
    static const int16_t pairs_of_2[PLUMB_BLOCK] = {0,  2,  1,  3,  4,  6,  5,  7,  8,  10, 9,
                                                    11, 12, 14, 13, 15, 16, 18, 17, 19, 20, 22,
                                                    21, 23, 24, 26, 25, 27, 28, 30, 29, 31};
    __m512i high[2], low[2];
    unsigned any_low = 0;
    for (int h = 0; h < 2; h++) {
        __mmask16 is_low = _mm512_test_epi32_mask(value[h], _mm512_set1_epi32(7));
        low[h] = _mm512_maskz_mov_epi32(is_low, value[h]);
        high[h] = _mm512_srai_epi32(_mm512_sub_epi32(value[h], low[h]), 3);
        any_low |= is_low;
    }
    __m512i high_words = narrow(high), low_words = narrow(low);
    const int at = b * PLUMB_BLOCK / 2;
    /* A digit is what is left when the upper one is rounded to nearest: -128 .. 127. */
    __m512i upper = _mm512_srai_epi16(_mm512_add_epi16(high_words, _mm512_set1_epi16(128)), 8);
    store_digits(high_words, &out->digit[0][0][at], &out->digit[0][1][at]);
    store_digits(upper, &out->digit[1][0][at], &out->digit[1][1][at]);
    store_digits(low_words, &out->digit[2][0][at], &out->digit[2][1][at]);
    store_words(high_words, pairs_of_2, out->high[b]);
    store_words(low_words, pairs_of_2, out->low[b]);
#ifdef PLUMB_AVX512_BF16
    store_bf16(high, 0x1p-6f, out->bf16_high[b]);
    store_bf16(low, 0x1p-9f, out->bf16_low[b]);
#endif
    out->take_high[b] = -12 * _mm512_reduce_add_epi32(_mm512_add_epi32(high[0], high[1]));
    out->take_low[b] = -12 * _mm512_reduce_add_epi32(_mm512_add_epi32(low[0], low[1]));
    out->has_low[b] = any_low != 0;
}

bool PLUMB_KERNEL(quantize_row)(const plumb_act *x, int64_t k, void *row) {
    plumb_act_chunk *out = row;
    int64_t blocks = k / PLUMB_BLOCK;
    bool finite = true;
    if (blocks % PLUMB_CHUNK_BLOCKS) memset(&out[blocks / PLUMB_CHUNK_BLOCKS], 0, sizeof *out);
    for (int64_t b = 0; b < blocks; b++) {
        float x_block[PLUMB_BLOCK];
        for (int i = 0; i < PLUMB_BLOCK; i++) x_block[i] = plumb__load(x[b * PLUMB_BLOCK + i]);
        finite &= (plumb__bits_of(plumb__absolute_max(x_block, PLUMB_BLOCK)) & 0x7F800000u) !=
                  0x7F800000u;
        int32_t exponent = plumb__q8_exponent(x_block);
        const __m512i value[2] = {quantise(x_block, exponent), quantise(x_block + 16, exponent)};
        plumb_act_chunk *chunk = &out[b / PLUMB_CHUNK_BLOCKS];
        chunk->power[b % PLUMB_CHUNK_BLOCKS] = exponent * (1 << 23);
        store_block(value, chunk, (int)(b % PLUMB_CHUNK_BLOCKS));
    }
    return finite;
}
