/* One activation row against eight weight rows: what decoding does all day.
 *
 * Weights are read in the order they have in memory and unpacked in registers, so a vector holds k of
 * ONE weight row.  A block's partial sums of eight rows are added and transposed in one tree, which
 * leaves a weight row in each lane, where the contract's chain of blocks runs.  What the vectors leave
 * out (the rest of the activations, small weights) is added one product at a time. */
#include "backend/cpu/kernels/weights_avx2.h"

/* Products of small weights with the 16-bit activations, by block and row: in units of 2^-9 times the
 * block's, below 2^23. */
typedef int32_t small_sums[PLUMB_LANE_ROWS];

int64_t plumb__matvec_scratch_avx2(int64_t k) {
    return k / PLUMB_BLOCK * (int64_t)sizeof(small_sums) +
           PLUMB_LANE_ROWS * k * (int64_t)sizeof(plumb_small_weight);
}

/* ---- Rows side by side -------------------------------------------------------------------------- */

/* While eight rows are multiplied the next eight come in, as one sequential stream: for every 64 bytes
 * of each row, eight lines of it. */
static inline void prefetch_lines(const uint8_t *at) {
    for (int i = 0; i < PLUMB_LANE_ROWS; i++)
        _mm_prefetch((const char *)at + 64 * i, _MM_HINT_T0);
}

/* Dwords two apart of a and of b added up, then neighbours of such sums: a b a b, then a b c d, in each
 * half. */
static inline __m256i add_halves(__m256i a, __m256i b) {
    return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}
static inline __m256i add_pairs(__m256i ab, __m256i cd) {
    return _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
}

/* P_b of a scale that all rows share. */
static inline __m256 shared_power(int32_t biased) {
    int32_t e = biased < 0 ? 0 : biased > 255 ? 255 : biased;
    return _mm256_castsi256_ps(_mm256_set1_epi32(e * (1 << 23)));
}

/* ---- FP4 ------------------------------------------------------------------------------------- */

/* Two blocks of one row (32 bytes of codes): partial sums, four lanes to a block.  Weights are
 * 2w + 12 (0..24), so that vpmaddubsw takes them unsigned; two of its sums of
 * two products fit 16 bits: 4 * 24 * 128. */
static inline __m256i two_blocks(__m256i codes, __m256i digit[2][2]) {
    static const int8_t shifted[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
    const __m256i table = plumb__table_avx2(shifted), nibble = _mm256_set1_epi8(15);
    PLUMB_KEEP_AVX2(codes);
    __m256i even = _mm256_shuffle_epi8(table, _mm256_and_si256(codes, nibble));
    __m256i odd = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble));
    __m256i sum[2];
    for (int d = 0; d < 2; d++)
        sum[d] = _mm256_add_epi16(_mm256_maddubs_epi16(even, digit[d][0]),
                                  _mm256_maddubs_epi16(odd, digit[d][1]));
    return _mm256_add_epi32(_mm256_madd_epi16(sum[0], _mm256_set1_epi16(8)),
                            _mm256_madd_epi16(sum[1], _mm256_set1_epi16(2048)));
}

/* The same two blocks of eight rows: sum[i] has block i of rows 0..7. */
__attribute__((noinline)) static void two_blocks_of_rows(const uint8_t *codes, int64_t stride,
                                      const plumb_row_avx2 *x, int64_t b, __m256i sum[2]) {
    int64_t at = b / 2 * 64;
    __m256i digit[2][2], pair[4];
    for (int d = 0; d < 2; d++)
        for (int odd = 0; odd < 2; odd++)
            digit[d][odd] = plumb__load_avx2(x->digit[d] + at + 32 * odd);
    for (int i = 0; i < 4; i++) {
        __m256i first = two_blocks(plumb__load_avx2(codes + 2 * i * stride), digit);
        __m256i second = two_blocks(plumb__load_avx2(codes + (2 * i + 1) * stride), digit);
        pair[i] = add_halves(first, second);
        PLUMB_KEEP_AVX2(pair[i]);
    }
    __m256i lower = add_pairs(pair[0], pair[1]), upper = add_pairs(pair[2], pair[3]);
    sum[0] = _mm256_permute2x128_si256(lower, upper, 0x20);
    sum[1] = _mm256_permute2x128_si256(lower, upper, 0x31);
}

/* Scales of eight blocks times the activations' own, as exponents; saturation makes a product below
 * the range 0 and one above it 255, the exponents of +0 and infinity. */
static inline void exponent_bytes(plumb_chunk s, const plumb_row_avx2 *x, int64_t b,
                                  __m256i out[2]) {
    plumb__scale_bytes_avx2(s, out);
    for (int i = 0; i < 2; i++) {
        const int8_t *lower = (const int8_t *)x->lower + 4 * b + 16 * i;
        const int8_t *raise = (const int8_t *)x->raise + 4 * b + 16 * i;
        out[i] = _mm256_subs_epu8(out[i], plumb__table_avx2(lower));
        out[i] = _mm256_adds_epu8(out[i], plumb__table_avx2(raise));
    }
}

/* Products with activations that have no digits, one by one, of block `b` of eight rows. */
__attribute__((noinline)) static __m256i fp4_rest(const uint8_t *codes, int64_t stride,
                                                  const plumb_row_avx2 *x, int64_t b) {
    int32_t sum[PLUMB_LANE_ROWS] = {0};
    for (uint32_t rest = x->block[b].digit_rest; rest; rest &= rest - 1) {
        int k = __builtin_ctz(rest);
        for (int r = 0; r < PLUMB_LANE_ROWS; r++)
            sum[r] += x->value[b * PLUMB_BLOCK + k] *
                      plumb__e2m1_times2(codes[r * stride + k / 2] >> 4 * (k & 1) & 15);
    }
    return plumb__load_avx2(sum);
}

static inline __m256 chunk_fp4(plumb_chunk s, const plumb_row_avx2 *x, int64_t b, int64_t count,
                               const uint8_t *next, __m256 segment) {
    enum { SIZE = PLUMB_BLOCK / 2 };
    const plumb_block_numbers *block = x->block + b;
    __m256i sum[PLUMB_CHUNK_BLOCKS], exponents[2];
    uint32_t rest = 0;
    for (int i = 0; i < PLUMB_CHUNK_BLOCKS; i += 2) {
        if (i % 4 == 0) prefetch_lines(next + PLUMB_LANE_ROWS * SIZE * i);
        two_blocks_of_rows(s.codes + SIZE * i, s.stride, x, b + i, sum + i);
        rest |= block[i].digit_rest | block[i + 1].digit_rest;
    }
    for (int i = 0; rest && i < PLUMB_CHUNK_BLOCKS; i++)
        if (block[i].digit_rest)
            sum[i] = _mm256_add_epi32(sum[i], fp4_rest(s.codes + SIZE * i, s.stride, x, b + i));
    exponent_bytes(s, x, b, exponents);
    for (int i = 0; i < PLUMB_CHUNK_BLOCKS; i++) {
        if (i == count) break;
        /* Takes the 12 of every weight back. */
        __m256i whole = _mm256_sub_epi32(sum[i], _mm256_set1_epi32(block[i].twelve_sums));
        __m256 d = _mm256_mul_ps(_mm256_cvtepi32_ps(whole), _mm256_set1_ps(0x1p-10f));
        __m256i power = plumb__exponent_field_avx2(exponents[i / 4], i % 4);
        segment = _mm256_fmadd_ps(d, _mm256_castsi256_ps(power), segment);
    }
    return segment;
}

/* ---- FP8 ------------------------------------------------------------------------------------- */

/* 32 codes of one row against 32 activations, in units of 2^-6 times the block's. */
static inline __m256i one_block(__m256i code, __m256i x0, __m256i x1) {
    PLUMB_KEEP_AVX2(code);
    __m256i low, high, mantissa = plumb__fp8_mantissa_avx2(code);
    plumb__fp8_power_avx2(code, &low, &high);
    __m256i m0 = _mm256_unpacklo_epi8(mantissa, _mm256_setzero_si256());
    __m256i m1 = _mm256_unpackhi_epi8(mantissa, _mm256_setzero_si256());
    __m256i w0 = _mm256_mullo_epi16(m0, _mm256_unpacklo_epi8(low, high));
    __m256i w1 = _mm256_mullo_epi16(m1, _mm256_unpackhi_epi8(low, high));
    return _mm256_add_epi32(_mm256_madd_epi16(w0, x0), _mm256_madd_epi16(w1, x1));
}

/* Lane r: the sum of row r. */
__attribute__((noinline)) static __m256i block_of_rows(const uint8_t *codes, int64_t stride,
                                                       const int16_t *x) {
    __m256i x0 = plumb__load_avx2(x), x1 = plumb__load_avx2(x + 16), pair[4];
    for (int i = 0; i < 4; i++) {
        __m256i first = one_block(plumb__load_avx2(codes + 2 * i * stride), x0, x1);
        __m256i second = one_block(plumb__load_avx2(codes + (2 * i + 1) * stride), x0, x1);
        pair[i] = add_halves(first, second);
        PLUMB_KEEP_AVX2(pair[i]);
    }
    __m256i lower = add_pairs(pair[0], pair[1]), upper = add_pairs(pair[2], pair[3]);
    return _mm256_add_epi32(_mm256_blend_epi32(lower, upper, 0xF0),
                            _mm256_permute2x128_si256(lower, upper, 0x21));
}

/* Eight times it, and small products, fit 32 bits. */
enum { ROOM = (1 << 28) - (1 << 23) };

/* D_b over the block's unit when the sums do not fit 32 bits or activations have a rest: exact in
 * double, since below 2^41 in units of 2^-18. */
__attribute__((noinline)) static __m256 fp8_whole_sum(__m256i sum, const int32_t *small,
                                                      const uint8_t *codes, int64_t stride,
                                                      const plumb_row_avx2 *x, int64_t b) {
    const __m256d eight = _mm256_set1_pd(8);
    const __m128i *part = (const __m128i *)(const void *)small;
    __m256d whole[2] = {
        _mm256_fmadd_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(sum)), eight,
                        _mm256_cvtepi32_pd(_mm_loadu_si128(part))),
        _mm256_fmadd_pd(_mm256_cvtepi32_pd(_mm256_extracti128_si256(sum, 1)), eight,
                        _mm256_cvtepi32_pd(_mm_loadu_si128(part + 1)))};
    double unit = 1.0 / (double)(1 << x->block[b].shift);
    for (uint32_t rest = x->block[b].rest; rest; rest &= rest - 1) {
        int k = __builtin_ctz(rest);
        double value[PLUMB_LANE_ROWS], times = unit * x->value[b * PLUMB_BLOCK + k];
        for (int r = 0; r < PLUMB_LANE_ROWS; r++)
            value[r] = plumb__e4m3_times512(codes[r * stride + k]);
        for (int i = 0; i < 2; i++)
            whole[i] = _mm256_fmadd_pd(_mm256_loadu_pd(value + 4 * i), _mm256_set1_pd(times),
                                       whole[i]);
    }
    return plumb__round_avx2(whole);
}

/* A bit for each block with a sum that has no room. */
static uint32_t large_sums(const __m256i *sum, int64_t count) {
    uint32_t bits = 0;
    for (int64_t i = 0; i < count; i++) {
        __m256i large = _mm256_cmpgt_epi32(_mm256_abs_epi32(sum[i]), _mm256_set1_epi32(ROOM));
        bits |= (uint32_t)!_mm256_testz_si256(large, large) << i;
    }
    return bits;
}

/* Powers of eight blocks, over the sums' units, where the rows share their scales; false when one is no
 * normal number. */
static inline bool usual_powers(const uint8_t *scales, const plumb_chunk_numbers *numbers,
                                float power[PLUMB_CHUNK_BLOCKS]) {
    __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)scales));
    __m256i outside =
        _mm256_or_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(numbers->least + 3), e),
                        _mm256_cmpgt_epi32(e, _mm256_set1_epi32(numbers->most)));
    __m256i field = _mm256_sub_epi32(plumb__load_avx2(numbers->field), _mm256_set1_epi32(3 << 23));
    _mm256_storeu_ps(power, _mm256_castsi256_ps(
                                _mm256_add_epi32(_mm256_slli_epi32(e, 23), field)));
    return _mm256_testz_si256(outside, outside);
}

/* segment = fma(D_b, P_b, segment) for scales of any size. */
__attribute__((noinline)) static __m256 unusual_chunk_fp8(plumb_chunk s, const plumb_row_avx2 *x,
                                                          int64_t b, int64_t count,
                                                          const __m256i *sum,
                                                          const small_sums *small, __m256 segment) {
    for (int64_t i = 0; i < count; i++) {
        const plumb_block_numbers *block = &x->block[b + i];
        __m256 d = fp8_whole_sum(sum[i], small[i], s.codes + PLUMB_BLOCK * i, s.stride, x, b + i);
        d = _mm256_mul_ps(d, _mm256_set1_ps(plumb__power_of_two(block->shift - 18)));
        segment = _mm256_fmadd_ps(d, shared_power(s.scales[i] + block->exponent), segment);
    }
    return segment;
}

static inline __m256 chunk_fp8(plumb_chunk s, const plumb_row_avx2 *x, int64_t b, int64_t count,
                               const uint8_t *next, const small_sums *small, __m256 segment) {
    const plumb_chunk_numbers *numbers = x->fp8 + b / PLUMB_CHUNK_BLOCKS;
    __m256i sum[PLUMB_CHUNK_BLOCKS], most = _mm256_setzero_si256();
    __m256 d[PLUMB_CHUNK_BLOCKS];
    float power[PLUMB_CHUNK_BLOCKS];
    uint32_t whole = numbers->rest_blocks;
    for (int i = 0; i < PLUMB_CHUNK_BLOCKS; i++) {
        if (i % 2 == 0) prefetch_lines(next + PLUMB_LANE_ROWS * PLUMB_BLOCK * i);
        sum[i] = block_of_rows(s.codes + PLUMB_BLOCK * i, s.stride,
                               x->high[PLUMB_ORDER_ROW] + (b + i) * PLUMB_BLOCK);
        most = _mm256_max_epu32(most, _mm256_abs_epi32(sum[i]));
        if (i == count - 1) break;
    }
    most = _mm256_cmpgt_epi32(most, _mm256_set1_epi32(ROOM));
    if (!_mm256_testz_si256(most, most)) whole |= large_sums(sum, count);
    if (!usual_powers(s.scales, numbers, power))
        return unusual_chunk_fp8(s, x, b, count, sum, small, segment);
    for (int i = 0; i < PLUMB_CHUNK_BLOCKS; i++) {
        d[i] = _mm256_cvtepi32_ps(
            _mm256_add_epi32(_mm256_slli_epi32(sum[i], 3), plumb__load_avx2(small[i])));
        if (i == count - 1) break;
    }
    for (; whole; whole &= whole - 1) {
        int i = __builtin_ctz(whole);
        d[i] = fp8_whole_sum(sum[i], small[i], s.codes + PLUMB_BLOCK * i, s.stride, x, b + i);
    }
    for (int i = 0; i < PLUMB_CHUNK_BLOCKS; i++) {
        segment = _mm256_fmadd_ps(d[i], _mm256_set1_ps(power[i]), segment);
        if (i == count - 1) break;
    }
    return segment;
}

static void add_small(const plumb_row_avx2 *x, int64_t blocks, const plumb_small_weight *weight,
                      int64_t n, small_sums *small) {
    memset(small, 0, (size_t)blocks * sizeof *small);
    for (int64_t i = 0; i < n; i++) {
        uint32_t k = weight[i].k;
        if (x->block[k / PLUMB_BLOCK].rest >> k % PLUMB_BLOCK & 1) continue;
        small[k / PLUMB_BLOCK][weight[i].row] +=
            weight[i].value * (x->value[k] >> x->block[k / PLUMB_BLOCK].shift);
    }
}

/* ---- All blocks ------------------------------------------------------------------------------ */

static inline __m256 eight_rows(const plumb_row_avx2 *x, const plumb_matrix *w, int64_t n,
                                int64_t rows, bool last, const small_sums *small, bool fp8) {
    int64_t blocks = w->k / PLUMB_BLOCK, size = fp8 ? PLUMB_BLOCK : PLUMB_BLOCK / 2;
    __m256 total = _mm256_setzero_ps(), segment = _mm256_setzero_ps();
    plumb_padded_chunk padded;
    for (int64_t b = 0; b < blocks; b += PLUMB_CHUNK_BLOCKS) {
        int64_t count = blocks - b < PLUMB_CHUNK_BLOCKS ? blocks - b : PLUMB_CHUNK_BLOCKS;
        plumb_chunk s = plumb__find_chunk_avx2(w, n, rows, b, count, &padded);
        /* The last rows fetch themselves, which costs nothing. */
        const uint8_t *next = (const uint8_t *)w->codes + (last ? n : n + rows) * blocks * size +
                              PLUMB_LANE_ROWS * b * size;
        segment = fp8 ? chunk_fp8(s, x, b, count, next, small + b, segment)
                      : chunk_fp4(s, x, b, count, next, segment);
        if ((b + count) % PLUMB_BLOCKS_PER_SEGMENT == 0 || b + count == blocks) {
            total = b < PLUMB_BLOCKS_PER_SEGMENT ? segment : _mm256_add_ps(total, segment);
            segment = _mm256_setzero_ps();
        }
    }
    return total;
}

/* Noted beforehand for a whole panel of eight rows, else found now, behind the sums in scratch. */
static void sum_small(const plumb_row_avx2 *x, const plumb_matrix *w, int64_t n, int64_t rows,
                      small_sums *small) {
    int64_t blocks = w->k / PLUMB_BLOCK, panel = n / PLUMB_LANE_ROWS;
    bool whole = n % PLUMB_LANE_ROWS == 0 && (rows == PLUMB_LANE_ROWS || n + rows == w->n);
    if (w->prepared && whole) {
        plumb_small_weights known = plumb__small_weights_avx2(w);
        add_small(x, blocks, known.entry + known.first[panel],
                  known.first[panel + 1] - known.first[panel], small);
    } else {
        plumb_small_weight *found = (plumb_small_weight *)(void *)(small + blocks);
        add_small(x, blocks, found, plumb__find_small_avx2(w, n, rows, found), small);
    }
}

void plumb__matvec_avx2(const plumb_row_avx2 *x, const plumb_matrix *w, int64_t n, int64_t rows,
                        bool last, void *scratch, __m256 *result) {
    if (w->type == PLUMB_MATRIX_FP4) {
        *result = eight_rows(x, w, n, rows, last, NULL, false);
        return;
    }
    sum_small(x, w, n, rows, scratch);
    *result = eight_rows(x, w, n, rows, last, scratch, true);
}
