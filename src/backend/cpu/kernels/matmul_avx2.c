/* Many activation rows against sixteen weight rows: what prefill does all day.
 *
 * Sixteen rows by eight blocks of weights are unpacked once into scratch as numbers of 16 bits,
 * interleaved so that a lane holds the next two k of its own row, and meet every activation row.
 * Nothing is summed across lanes, so an activation is a broadcast and a block sum is ready when its
 * last product is.  Both formats share the multiplication; what it leaves out (the rest of the
 * activations, small weights) is a few more products of the same kind. */
#include "backend/cpu/kernels/weights_avx2.h"

enum {
    PAIRS = PLUMB_BLOCK / 2, /* of k in a block */
    HALVES = 2,              /* of a panel: eight weight rows each */
    TILE = 4                 /* activation rows that meet a weight while it is in a register */
};

/* One block of a panel, unpacked, pairs in the order PLUMB_ORDER_LANE. */
typedef struct block_panel {
    __m256i weight[PAIRS][HALVES]; /* FP4: 2w; FP8: w * 2^6 from 2^-3 up, else 0 */
    __m256i exponent[HALVES];      /* of the scales, biased by 127, at the exponent's place in a float */
    uint32_t small_pairs;          /* bit p: pair p has a small weight */
    __m256i small[PAIRS][HALVES];  /* those pairs: w * 2^9 of the small weights */
} block_panel;

typedef struct panel {
    block_panel block[PLUMB_CHUNK_BLOCKS];
    int32_t least, most;           /* of the exponents */
} panel;

int64_t plumb__matmul_scratch_avx2(void) { return (int64_t)sizeof(panel); }

/* ---- Unpacking ------------------------------------------------------------------------------- */

/* Dwords of eight rows of 16 bytes: out[j] holds dword j of rows 0..7. */
static inline void transpose_dwords(const uint8_t *rows, int64_t stride, __m256i out[4]) {
    __m256i r[4];
    for (int i = 0; i < 4; i++)
        r[i] = _mm256_inserti128_si256(
            _mm256_castsi128_si256(
                _mm_loadu_si128((const __m128i *)(const void *)(rows + i * stride))),
            _mm_loadu_si128((const __m128i *)(const void *)(rows + (i + 4) * stride)), 1);
    __m256i low01 = _mm256_unpacklo_epi32(r[0], r[1]), high01 = _mm256_unpackhi_epi32(r[0], r[1]);
    __m256i low23 = _mm256_unpacklo_epi32(r[2], r[3]), high23 = _mm256_unpackhi_epi32(r[2], r[3]);
    out[0] = _mm256_unpacklo_epi64(low01, low23);
    out[1] = _mm256_unpackhi_epi64(low01, low23);
    out[2] = _mm256_unpacklo_epi64(high01, high23);
    out[3] = _mm256_unpackhi_epi64(high01, high23);
}

/* Bytes of even and of odd places, sign-extended to 16 bits. */
static inline __m256i even_bytes(__m256i v) {
    return _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8);
}
static inline __m256i odd_bytes(__m256i v) { return _mm256_srai_epi16(v, 8); }

static void unpack_fp4(const uint8_t *codes, int64_t stride, int half, block_panel *out) {
    static const int8_t twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    /* Bytes 01 45 23 67 of a dword's eight k: even places then hold k, k + 2 of each half. */
    static const int8_t swapped[16] = {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15};
    const __m256i table = plumb__table_avx2(twice), nibble = _mm256_set1_epi8(15);
    __m256i packed[4];
    transpose_dwords(codes, stride, packed);
    for (int j = 0; j < 4; j++) {
        __m256i v = _mm256_shuffle_epi8(packed[j], plumb__table_avx2(swapped));
        __m256i even = _mm256_shuffle_epi8(table, _mm256_and_si256(v, nibble));
        __m256i odd = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble));
        out->weight[4 * j][half] = even_bytes(even);
        out->weight[4 * j + 1][half] = even_bytes(odd);
        out->weight[4 * j + 2][half] = odd_bytes(even);
        out->weight[4 * j + 3][half] = odd_bytes(odd);
    }
}

/* The small weights of four codes a lane, times 2^9, as bytes; all others as 0. */
static inline __m256i small_values(__m256i code) {
    static const int8_t upper[16] = {16, 18, 20, 22, 24, 26, 28, 30,
                                     32, 36, 40, 44, 48, 52, 56, 60};
    __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi8(0x7F));
    __m256i is_small = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), magnitude);
    /* The sixteen lower codes are their own values: subnormals and the first binade. */
    __m256i is_upper = _mm256_cmpgt_epi8(magnitude, _mm256_set1_epi8(15));
    __m256i value = _mm256_blendv_epi8(
        magnitude,
        _mm256_shuffle_epi8(plumb__table_avx2(upper),
                            _mm256_and_si256(magnitude, _mm256_set1_epi8(15))), is_upper);
    value = _mm256_and_si256(value, is_small);
    return _mm256_sign_epi8(value, _mm256_or_si256(code, _mm256_set1_epi8(1)));
}

static void unpack_small(__m256i code, int half, int i, block_panel *out) {
    __m256i small = small_values(code), part[2] = {even_bytes(small), odd_bytes(small)};
    for (int j = 0; j < 2; j++) {
        if (_mm256_testz_si256(part[j], part[j])) continue;
        int p = 2 * i + j;
        if (!(out->small_pairs >> p & 1)) out->small[p][1 - half] = _mm256_setzero_si256();
        out->small[p][half] = part[j];
        out->small_pairs |= 1u << p;
    }
}

/* Pairs 2i and 2i + 1: four codes a lane. */
static inline void unpack_fp8_dword(__m256i code, int half, int i, block_panel *out) {
    const __m256i lower = _mm256_set1_epi16(0xFF);
    __m256i power_low, power_high, mantissa = plumb__fp8_mantissa_avx2(code);
    plumb__fp8_power_avx2(code, &power_low, &power_high);
    __m256i even = _mm256_or_si256(_mm256_and_si256(power_low, lower),
                                   _mm256_slli_epi16(power_high, 8));
    __m256i odd = _mm256_or_si256(_mm256_srli_epi16(power_low, 8),
                                  _mm256_andnot_si256(lower, power_high));
    out->weight[2 * i][half] = _mm256_mullo_epi16(_mm256_and_si256(mantissa, lower), even);
    out->weight[2 * i + 1][half] = _mm256_mullo_epi16(_mm256_srli_epi16(mantissa, 8), odd);
    __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi8(0x7F));
    if (_mm256_movemask_epi8(_mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), magnitude)))
        unpack_small(code, half, i, out);
}

static void unpack_fp8(const uint8_t *codes, int64_t stride, int half, block_panel *out) {
    for (int part = 0; part < 2; part++) {
        __m256i dword[4];
        transpose_dwords(codes + 16 * part, stride, dword);
        for (int j = 0; j < 4; j++) unpack_fp8_dword(dword[j], half, 4 * part + j, out);
    }
}

/* Blocks b .. b+count-1 of eight rows, of which `rows` exist, into one half. */
static void unpack_half(const plumb_matrix *w, int64_t n, int64_t rows, int64_t b, int64_t count,
                        int half, panel *out) {
    plumb_padded_chunk padded;
    plumb_chunk s = plumb__find_chunk_avx2(w, n, rows, b, count, &padded);
    bool fp8 = w->type == PLUMB_MATRIX_FP8;
    __m256i scales[2];
    if (!fp8) plumb__scale_bytes_avx2(s, scales);
    for (int64_t i = 0; i < count; i++) {
        if (fp8) {
            unpack_fp8(s.codes + i * PLUMB_BLOCK, s.stride, half, &out->block[i]);
            out->block[i].exponent[half] = _mm256_set1_epi32(s.scales[i] << 23);
        } else {
            unpack_fp4(s.codes + i * (PLUMB_BLOCK / 2), s.stride, half, &out->block[i]);
            out->block[i].exponent[half] = plumb__exponent_field_avx2(scales[i / 4], (int)i % 4);
        }
    }
}

static int32_t least_lane(__m256i v) {
    __m128i four = _mm_min_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    __m128i two = _mm_min_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    return _mm_cvtsi128_si32(_mm_min_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}

static void unpack(const plumb_matrix *w, int64_t n, int64_t rows, int64_t b, int64_t count,
                   panel *out) {
    const __m256i all = _mm256_set1_epi32(255);
    int64_t upper = rows < PLUMB_LANE_ROWS ? rows : PLUMB_LANE_ROWS;
    for (int64_t i = 0; i < count; i++) out->block[i].small_pairs = 0;
    unpack_half(w, n, upper, b, count, 0, out);
    unpack_half(w, n + upper, rows - upper, b, count, 1, out);
    __m256i low = all, high = _mm256_setzero_si256();
    for (int64_t i = 0; i < count; i++)
        for (int h = 0; h < HALVES; h++) {
            __m256i exponent = _mm256_srli_epi32(out->block[i].exponent[h], 23);
            low = _mm256_min_epi32(low, exponent);
            high = _mm256_max_epi32(high, exponent);
        }
    out->least = least_lane(low);
    out->most = 255 - least_lane(_mm256_sub_epi32(all, high));
}

/* ---- Products -------------------------------------------------------------------------------- */

static inline __m256i pair_at(const int16_t *x) {
    int32_t value;
    memcpy(&value, x, sizeof value);
    return _mm256_set1_epi32(value);
}

/* Written out, since gcc otherwise regroups the sums of several pairs into trees that need more
 * registers than there are. */
static inline void add_in_place(__m256i *sum, __m256i term) {
    __asm__("vpaddd %1, %0, %0" : "+x"(*sum) : "x"(term));
}

typedef struct tile_sums {
    __m256i sum[TILE][HALVES];
} tile_sums;

/* Pair p of TILE activation rows. */
static inline void add_pair(const __m256i weight[HALVES], const int16_t *const x[TILE], int p,
                            tile_sums *sums) {
    __m256i w0 = weight[0], w1 = weight[1];
    for (int t = 0; t < TILE; t++) {
        __m256i a = pair_at(x[t] + 2 * p);
        add_in_place(&sums->sum[t][0], _mm256_madd_epi16(w0, a));
        add_in_place(&sums->sum[t][1], _mm256_madd_epi16(w1, a));
    }
}

/* All pairs of a block against TILE activation rows, x[t] in PLUMB_ORDER_LANE: in units of the weights'
 * times the rows' own, below 2^31 by the choice of those (quantize_avx2.c). */
static inline void multiply(const block_panel *w, const int16_t *const x[TILE],
                                               tile_sums *out) {
    tile_sums sums;
    for (int t = 0; t < TILE; t++)
        for (int h = 0; h < HALVES; h++) sums.sum[t][h] = _mm256_setzero_si256();
#pragma GCC unroll 16
    for (int p = 0; p < PAIRS; p++) add_pair(w->weight[p], x, p, &sums);
    *out = sums;
}

/* The same of the pairs that have small weights, below 2^23 in all. */
static inline void multiply_small(const block_panel *w, const int16_t *const x[TILE],
                                  tile_sums *out) {
    tile_sums sums;
    for (int t = 0; t < TILE; t++)
        for (int h = 0; h < HALVES; h++) sums.sum[t][h] = _mm256_setzero_si256();
    for (uint32_t pairs = w->small_pairs; pairs; pairs &= pairs - 1) {
        int p = __builtin_ctz(pairs);
        add_pair(w->small[p], x, p, &sums);
    }
    *out = sums;
}

/* The pair that element k is in: its second one when bit 1 of k is set. */
static inline int pair_of(int k) { return k / 4 * 2 + (k & 1); }

/* Adds products of the panel with the elements `which` of a block, one of a pair at a time. */
static inline void add_elements(const __m256i weight[PAIRS][HALVES], uint32_t which,
                                const int32_t *value, __m256i sum[HALVES]) {
    for (; which; which &= which - 1) {
        int k = __builtin_ctz(which);
        uint32_t one = (uint32_t)(value[k] & 0xFFFF) << 16 * (k >> 1 & 1);
        __m256i a = _mm256_set1_epi32((int32_t)one);
        for (int h = 0; h < HALVES; h++)
            sum[h] = _mm256_add_epi32(sum[h], _mm256_madd_epi16(weight[pair_of(k)][h], a));
    }
}

/* whole += sum * 2^exponent */
static inline void add_scaled(__m256i sum, int32_t exponent, __m256d whole[2]) {
    const __m256d u = _mm256_castsi256_pd(_mm256_set1_epi64x((int64_t)(1023 + exponent) << 52));
    whole[0] = _mm256_fmadd_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(sum)), u, whole[0]);
    whole[1] = _mm256_fmadd_pd(_mm256_cvtepi32_pd(_mm256_extracti128_si256(sum, 1)), u, whole[1]);
}

/* Of a block's rest, the elements that meet a small weight. */
static uint32_t meeting_small(uint32_t rest, uint32_t small_pairs) {
    uint32_t met = 0;
    for (; rest; rest &= rest - 1) {
        int k = __builtin_ctz(rest);
        if (small_pairs >> pair_of(k) & 1) met |= 1u << k;
    }
    return met;
}

/* The products of a chunk with TILE activation rows. */
typedef struct chunk_sums {
    tile_sums block[PLUMB_CHUNK_BLOCKS];
    tile_sums small[PLUMB_CHUNK_BLOCKS]; /* of small weights, in units of 2^-3 of the others' */
    uint32_t with_small;                 /* bit j: block j has such weights */
} chunk_sums;

/* What the vectors left out of one block is added in the sums' own unit, 2^shift times that of a
 * value times a weight. */
typedef struct block_sums {
    const __m256i *sum, *small; /* [HALVES]; small is NULL where there is none */
    int32_t shift;
} block_sums;

/* The lower bits of the sums join numbers in a unit smaller by 2^shift, below 2^30 in all.  The upper
 * ones have 24 bits: where the joined numbers do too, both are exact floats, and one fma rounds their
 * sum once.  Returns false, d being without meaning, where they do not. */
static inline bool join_lower(const __m256i sum[HALVES], const __m256i more[HALVES], int32_t shift,
                              __m256 d[HALVES]) {
    enum { LOWER = 255, MOST = (1 << 24) - 1 };
    const __m128i count = _mm_cvtsi32_si128(shift);
    const __m256 unit = _mm256_set1_ps(plumb__power_of_two(-shift));
    __m256i large = _mm256_setzero_si256();
    for (int h = 0; h < HALVES; h++) {
        __m256i lower = _mm256_and_si256(sum[h], _mm256_set1_epi32(LOWER));
        __m256i upper = _mm256_sub_epi32(sum[h], lower);
        __m256i joined = _mm256_add_epi32(more[h], _mm256_sll_epi32(lower, count));
        large = _mm256_or_si256(large, _mm256_cmpgt_epi32(_mm256_abs_epi32(joined),
                                                          _mm256_set1_epi32(MOST)));
        d[h] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(joined), unit, _mm256_cvtepi32_ps(upper));
    }
    return _mm256_testz_si256(large, large);
}

/* D_b where a rest of one element is left out. */
static inline bool add_rest(const block_panel *w, block_sums sums, int k, int32_t value,
                            __m256 d[HALVES]) {
    uint32_t place = (uint32_t)(value & 0xFFFF) << 16 * (k >> 1 & 1);
    const __m256i one = _mm256_set1_epi32((int32_t)place);
    const __m128i count = _mm_cvtsi32_si128(sums.shift);
    int pair = pair_of(k);
    __m256i more[HALVES];
    for (int h = 0; h < HALVES; h++) {
        more[h] = _mm256_madd_epi16(w->weight[pair][h], one);
        if (!sums.small) continue;
        more[h] = _mm256_add_epi32(_mm256_slli_epi32(more[h], 3),
                                   _mm256_sll_epi32(sums.small[h], count));
        if (w->small_pairs >> pair & 1)
            more[h] = _mm256_add_epi32(more[h], _mm256_madd_epi16(w->small[pair][h], one));
    }
    return join_lower(sums.sum, more, sums.shift + (sums.small ? 3 : 0), d);
}

static inline void add_scaled_halves(const __m256i sum[HALVES], int32_t exponent,
                                     __m256d whole[HALVES][2]) {
    for (int h = 0; h < HALVES; h++) add_scaled(sum[h], exponent, whole[h]);
}

/* D_b with all that is left out, of any size: below 2^41 in units of 2^-18, exact in double. */
__attribute__((noinline)) static void add_all(const block_panel *w, block_sums sums,
                                              uint32_t rest, const int32_t *value,
                                              __m256 d[HALVES]) {
    const __m256i zero = _mm256_setzero_si256();
    __m256i of_rest[HALVES] = {zero, zero};
    __m256d whole[HALVES][2] = {{_mm256_setzero_pd(), _mm256_setzero_pd()},
                                {_mm256_setzero_pd(), _mm256_setzero_pd()}};
    add_scaled_halves(sums.sum, 0, whole);
    add_elements(w->weight, rest, value, of_rest);
    add_scaled_halves(of_rest, -sums.shift, whole);
    if (sums.small) {
        __m256i of_both[HALVES] = {zero, zero};
        add_elements(w->small, meeting_small(rest, w->small_pairs), value, of_both);
        add_scaled_halves(sums.small, -3, whole);
        add_scaled_halves(of_both, -3 - sums.shift, whole);
    }
    for (int h = 0; h < HALVES; h++) d[h] = plumb__round_avx2(whole[h]);
}

static inline block_sums sums_of_block(const chunk_sums *sums, int64_t j, int t,
                                       const plumb_chunk_numbers *numbers) {
    return (block_sums){sums->block[j].sum[t],
                        sums->with_small >> j & 1 ? sums->small[j].sum[t] : NULL,
                        numbers->shift[j]};
}

/* D_b of `count` blocks, in the units of their sums. */
static inline void block_results(const panel *weights, const chunk_sums *sums, int t,
                                 const plumb_row_avx2 *x, int64_t b, int64_t count, bool fp8,
                                 const plumb_chunk_numbers *numbers,
                                 __m256 d[PLUMB_CHUNK_BLOCKS][HALVES]) {
    for (int64_t j = 0; j < count; j++) {
        if (fp8 && sums->with_small >> j & 1)
            (void)join_lower(sums->block[j].sum[t], sums->small[j].sum[t], 3, d[j]); /* always fits */
        else
            for (int h = 0; h < HALVES; h++) d[j][h] = _mm256_cvtepi32_ps(sums->block[j].sum[t][h]);
    }
    for (uint32_t left = numbers->rest_blocks; left; left &= left - 1) {
        int j = __builtin_ctz(left);
        block_sums one = sums_of_block(sums, j, t, numbers);
        if (!(numbers->long_rests >> j & 1) &&
            add_rest(&weights->block[j], one, numbers->rest_k[j], numbers->rest_value[j], d[j]))
            continue;
        add_all(&weights->block[j], one, fp8 ? x->block[b + j].rest : x->block[b + j].digit_rest,
                x->value + (b + j) * PLUMB_BLOCK, d[j]);
    }
}

/* segment = fma(D_b, P_b, segment) over the blocks, for scales of any size. */
static void add_unusual(const panel *weights, const chunk_sums *sums, int t,
                        const plumb_row_avx2 *x, int64_t b, int64_t count, bool fp8,
                        const plumb_chunk_numbers *numbers, __m256 segment[HALVES]) {
    __m256 d[PLUMB_CHUNK_BLOCKS][HALVES];
    block_results(weights, sums, t, x, b, count, fp8, numbers, d);
    for (int64_t j = 0; j < count; j++) {
        const __m256 unit =
            _mm256_set1_ps(plumb__power_of_two(numbers->shift[j] - (fp8 ? 15 : 10)));
        for (int h = 0; h < HALVES; h++) {
            __m256i biased =
                _mm256_add_epi32(_mm256_srli_epi32(weights->block[j].exponent[h], 23),
                                 _mm256_set1_epi32(x->block[b + j].exponent));
            segment[h] = _mm256_fmadd_ps(_mm256_mul_ps(d[j][h], unit), plumb__power_avx2(biased),
                                         segment[h]);
        }
    }
}

/* The same where the sums' units can go into the exponents: the chain runs without a branch. */
static inline void add_usual(const panel *weights, const chunk_sums *sums, int t,
                             const plumb_row_avx2 *x, int64_t b, int64_t count, bool fp8,
                             const plumb_chunk_numbers *numbers, __m256 segment[HALVES]) {
    __m256 d[PLUMB_CHUNK_BLOCKS][HALVES];
    block_results(weights, sums, t, x, b, count, fp8, numbers, d);
    __m256 s0 = segment[0], s1 = segment[1];
    for (int64_t j = 0; j < count; j++) {
        const __m256i *exponent = weights->block[j].exponent;
        const __m256i field = _mm256_set1_epi32(numbers->field[j]);
        s0 = _mm256_fmadd_ps(d[j][0], _mm256_castsi256_ps(_mm256_add_epi32(exponent[0], field)), s0);
        s1 = _mm256_fmadd_ps(d[j][1], _mm256_castsi256_ps(_mm256_add_epi32(exponent[1], field)), s1);
    }
    segment[0] = s0;
    segment[1] = s1;
}

/* A segment is complete: add it to the total (the first one IS the total) and start the next. */
static void end_segment(plumb_panel_sums *sums, bool first) {
    for (int h = 0; h < HALVES; h++) {
        sums->total[h] =
            first ? sums->segment[h] : _mm256_add_ps(sums->total[h], sums->segment[h]);
        sums->segment[h] = _mm256_setzero_ps();
    }
}

/* Blocks b .. b+count-1, unpacked in `weights`, against n_x <= TILE activation rows. */
static inline void multiply_chunk(const panel *weights, const void *const *x, int64_t n_x,
                                  int64_t k, int64_t b, int64_t count, bool fp8,
                                  plumb_panel_sums *sums) {
    plumb_row_avx2 row[TILE];
    chunk_sums products;
    products.with_small = 0;
    for (int64_t t = 0; t < TILE; t++) /* missing rows repeat the last; their sums are not used */
        row[t] = plumb__row_view_avx2(x[t < n_x ? t : n_x - 1], k);
    for (int64_t j = 0; j < count; j++) {
        const block_panel *w = &weights->block[j];
        const int16_t *high[TILE];
        for (int t = 0; t < TILE; t++)
            high[t] = (fp8 ? row[t].high[PLUMB_ORDER_LANE] : row[t].eighth) + (b + j) * PLUMB_BLOCK;
        multiply(w, high, &products.block[j]);
        if (!fp8 || !w->small_pairs) continue;
        multiply_small(w, high, &products.small[j]);
        products.with_small |= 1u << j;
    }
    for (int t = 0; t < n_x; t++) {
        const plumb_chunk_numbers *numbers =
            (fp8 ? row[t].fp8 : row[t].fp4) + b / PLUMB_CHUNK_BLOCKS;
        bool usual = weights->least >= numbers->least && weights->most <= numbers->most;
        if (usual)
            add_usual(weights, &products, t, &row[t], b, count, fp8, numbers, sums[t].segment);
        else add_unusual(weights, &products, t, &row[t], b, count, fp8, numbers, sums[t].segment);
    }
}

void plumb__matmul_avx2(const void *const *x, int64_t n_x, const plumb_matrix *w, int64_t n,
                        int64_t rows, plumb_panel_sums *sums, void *scratch) {
    panel *weights = scratch;
    int64_t blocks = w->k / PLUMB_BLOCK;
    memset(sums, 0, (size_t)n_x * sizeof *sums);
    for (int64_t b = 0, count; b < blocks; b += count) {
        count = blocks - b < PLUMB_CHUNK_BLOCKS ? blocks - b : PLUMB_CHUNK_BLOCKS;
        unpack(w, n, rows, b, count, weights);
        for (int64_t i = 0; i < n_x; i += TILE) {
            int64_t n_rows = n_x - i < TILE ? n_x - i : TILE;
            if (w->type == PLUMB_MATRIX_FP8)
                multiply_chunk(weights, x + i, n_rows, w->k, b, count, true, sums + i);
            else multiply_chunk(weights, x + i, n_rows, w->k, b, count, false, sums + i);
        }
        if ((b + count) % PLUMB_BLOCKS_PER_SEGMENT == 0 || b + count == blocks)
            for (int64_t i = 0; i < n_x; i++) end_segment(&sums[i], b < PLUMB_BLOCKS_PER_SEGMENT);
    }
}
