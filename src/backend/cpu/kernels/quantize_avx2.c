/* Quantising a row of activations into the AVX2 layout. */
#include "backend/cpu/kernels/quantized_avx2.h"

/* A block's products with FP8 weights of at most 28,672, in units of 2^-6, stay below 2^31 when the
 * magnitudes of its 16-bit values add up to no more than this. */
enum { MOST_SUM = INT32_MAX / 28672 };

int64_t plumb__quantized_row_bytes_avx2(int64_t k) {
    int64_t per_block = PLUMB_BLOCK * (4 + 2 * (PLUMB_ORDER_COUNT + 1) + 2) +
                        (int64_t)sizeof(plumb_block_numbers) + 2 * 4;
    int64_t blocks = plumb__padded_blocks_avx2(k), chunks = blocks / PLUMB_CHUNK_BLOCKS;
    int64_t bytes = blocks * per_block + 2 * chunks * (int64_t)sizeof(plumb_chunk_numbers);
    return (bytes + 63) / 64 * 64;
}

/* ---- One block, eight values to a vector, in plain order ---------------------------------------- */

typedef struct block_floats {
    __m256 v[4];
} block_floats;
typedef struct block_values {
    __m256i v[4];
} block_values;

static inline block_floats load_block(const plumb_act *x) {
    block_floats out;
    for (int i = 0; i < 4; i++)
        out.v[i] = _mm256_castsi256_ps(_mm256_slli_epi32(
            _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(x + 8 * i))), 16));
    return out;
}

static inline __m256i magnitude_bits(__m256 x) {
    return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7FFFFFFF));
}

static inline float absolute_max(block_floats x) {
    __m256i most = magnitude_bits(x.v[0]);
    for (int i = 1; i < 4; i++) most = _mm256_max_epu32(most, magnitude_bits(x.v[i]));
    __m128i four = _mm_max_epu32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4E));
    two = _mm_max_epu32(two, _mm_shuffle_epi32(two, 0xB1));
    return plumb__float_of((uint32_t)_mm_cvtsi128_si32(two));
}

/* plumb__e4m3_encode and _times512 in one: from 2^-6 up, rounding to four significant bits on the
 * float's own bits; below, to a multiple of 2^-9, which is the last place of the constant added. */
static inline __m256i times512(__m256 x) {
    __m256i bits = _mm256_min_epu32(magnitude_bits(x), _mm256_set1_epi32(0x43E00000)); /* 448 */
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 20), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFFF)));
    __m256 normal = _mm256_castsi256_ps(
        _mm256_and_si256(rounded, _mm256_set1_epi32(~0xFFFFF)));
    const __m256 place = _mm256_set1_ps(0x1.8p14f);
    __m256 small = _mm256_sub_ps(_mm256_add_ps(_mm256_castsi256_ps(bits), place), place);
    __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x3C800000), bits); /* 2^-6 */
    __m256 value = _mm256_blendv_ps(normal, small, _mm256_castsi256_ps(is_small));
    __m256i times = _mm256_cvtps_epi32(_mm256_mul_ps(value, _mm256_set1_ps(512.0f)));
    return _mm256_sign_epi32(times, _mm256_castps_si256(x));
}

static inline int32_t add_lanes(block_values b) {
    __m256i v = _mm256_add_epi32(_mm256_add_epi32(b.v[0], b.v[1]), _mm256_add_epi32(b.v[2], b.v[3]));
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}

/* Multiples of 2^shift over 2^shift, the others as 0; *rest receives a bit for each of those. */
static inline block_values split(block_values x, int32_t shift, uint32_t *rest) {
    const __m256i below = _mm256_set1_epi32((1 << shift) - 1);
    const __m128i count = _mm_cvtsi32_si128(shift);
    uint32_t bits = 0;
    for (int i = 0; i < 4; i++) {
        __m256i is_multiple = _mm256_cmpeq_epi32(_mm256_and_si256(x.v[i], below),
                                                 _mm256_setzero_si256());
        bits |= (~(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(is_multiple)) & 255u) << 8 * i;
        x.v[i] = _mm256_and_si256(_mm256_sra_epi32(x.v[i], count), is_multiple);
    }
    *rest = bits;
    return x;
}

/* ---- Storing ------------------------------------------------------------------------------------ */

static inline void store(void *at, __m256i v) { _mm256_storeu_si256((__m256i *)at, v); }

/* Thirty-two numbers of 16 bits: out[0] holds 0..15. */
static inline void narrow(block_values x, __m256i out[2]) {
    for (int i = 0; i < 2; i++)
        out[i] = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.v[2 * i], x.v[2 * i + 1]), 0xD8);
}

static inline void store_row_order(int16_t *at, block_values x) {
    __m256i plain[2];
    narrow(x, plain);
    store(at, _mm256_permute2x128_si256(plain[0], plain[1], 0x20));
    store(at + 16, _mm256_permute2x128_si256(plain[0], plain[1], 0x31));
}

static inline void store_lane_order(int16_t *at, block_values x) {
    __m256i plain[2];
    narrow(x, plain);
    for (int i = 0; i < 2; i++)
        store(at + 16 * i, _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(plain[i], 0xD8), 0xD8));
}

/* The sixteen bytes of even (odd: 1) k. */
static inline void store_half(int8_t *at, block_values digit, int odd) {
    __m256i plain[2];
    for (int i = 0; i < 4; i++)
        digit.v[i] = _mm256_and_si256(digit.v[i], _mm256_set1_epi32(255));
    narrow(digit, plain); /* a digit a word: even ones are the low words of dwords */
    for (int i = 0; i < 2; i++)
        plain[i] = odd ? _mm256_srli_epi32(plain[i], 16)
                       : _mm256_and_si256(plain[i], _mm256_set1_epi32(255));
    __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(plain[0], plain[1]), 0xD8);
    __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0x08);
    _mm_storeu_si128((__m128i *)(void *)at, _mm256_castsi256_si128(bytes));
}

/* x = 256 * digit 1 + digit 0, both in -128..127. */
static inline void store_digits(plumb_row_avx2 out, int64_t b, block_values x) {
    block_values digit[2];
    for (int i = 0; i < 4; i++) {
        __m256i shifted = _mm256_add_epi32(x.v[i], _mm256_set1_epi32(128));
        digit[0].v[i] = x.v[i]; /* its low byte */
        digit[1].v[i] = _mm256_srai_epi32(shifted, 8);
    }
    int64_t at = b / 2 * 64 + (b & 1) * 16;
    for (int d = 0; d < 2; d++)
        for (int odd = 0; odd < 2; odd++) store_half(out.digit[d] + at + 32 * odd, digit[d], odd);
}

/* The smallest unit, at least 8, in which the magnitudes add up to MOST_SUM or less. */
static int32_t choose_shift(block_values x) {
    block_values magnitude;
    for (int i = 0; i < 4; i++) magnitude.v[i] = _mm256_abs_epi32(x.v[i]);
    int32_t sum = add_lanes(magnitude), shift = 3;
    while (sum >> shift > MOST_SUM) shift++;
    return shift;
}

/* The sums' unit is 2^shift times that of a value times a weight, whose exponent is `unit`. */
static void note_block(plumb_chunk_numbers *chunk, int64_t i, int32_t exponent, int32_t unit,
                       int32_t shift, uint32_t rest, const int32_t *value) {
    int32_t sum = exponent + unit + shift, least = 1 - sum, most = 254 - exponent;
    if (i == 0) *chunk = (plumb_chunk_numbers){.least = least, .most = most};
    chunk->field[i] = sum * (1 << 23);
    chunk->least = least > chunk->least ? least : chunk->least;
    chunk->most = most < chunk->most ? most : chunk->most;
    chunk->shift[i] = (uint8_t)shift;
    if (!rest) return;
    int k = __builtin_ctz(rest);
    chunk->rest_blocks |= (uint8_t)(1 << i);
    chunk->long_rests |= (uint8_t)(((rest & (rest - 1)) != 0) << i);
    chunk->rest_k[i] = (uint8_t)k;
    chunk->rest_value[i] = (int16_t)value[k];
}

static bool quantize_block(const plumb_act *x, plumb_row_avx2 out, int64_t b) {
    block_floats wide = load_block(x);
    float most = absolute_max(wide);
    int32_t exponent = plumb__q8_exponent_of(most);
    const __m256 reciprocal = _mm256_set1_ps(plumb__power_of_two(-exponent));
    block_values value;
    for (int i = 0; i < 4; i++) {
        value.v[i] = times512(_mm256_mul_ps(wide.v[i], reciprocal));
        store(out.value + b * PLUMB_BLOCK + 8 * i, value.v[i]);
    }
    plumb_block_numbers *numbers = &out.block[b];
    numbers->exponent = exponent;
    numbers->shift = choose_shift(value);
    block_values high = split(value, numbers->shift, &numbers->rest);
    store_row_order(out.high[PLUMB_ORDER_ROW] + b * PLUMB_BLOCK, high);
    store_lane_order(out.high[PLUMB_ORDER_LANE] + b * PLUMB_BLOCK, high);
    block_values eighths = split(value, 3, &numbers->digit_rest);
    numbers->twelve_sums = 12 * 8 * add_lanes(eighths);
    store_lane_order(out.eighth + b * PLUMB_BLOCK, eighths);
    store_digits(out, b, eighths);
    int64_t chunk = b / PLUMB_CHUNK_BLOCKS, place = b % PLUMB_CHUNK_BLOCKS;
    const int32_t *values = out.value + b * PLUMB_BLOCK;
    note_block(&out.fp4[chunk], place, exponent, -10, 3, numbers->digit_rest, values);
    note_block(&out.fp8[chunk], place, exponent, -15, numbers->shift, numbers->rest, values);
    memset(out.raise + 4 * b, exponent > 0 ? exponent : 0, 4);
    memset(out.lower + 4 * b, exponent < 0 ? -exponent : 0, 4);
    return (plumb__bits_of(most) & 0x7F800000u) != 0x7F800000u;
}

bool plumb__quantize_row_avx2(const plumb_act *x, int64_t k, void *row) {
    plumb_row_avx2 out = plumb__row_view_avx2(row, k);
    bool finite = true;
    if (plumb__padded_blocks_avx2(k) != k / PLUMB_BLOCK)
        memset(row, 0, (size_t)plumb__quantized_row_bytes_avx2(k));
    for (int64_t b = 0; b < k / PLUMB_BLOCK; b++)
        finite &= quantize_block(x + b * PLUMB_BLOCK, out, b);
    return finite;
}
