/* Many activation rows against sixteen weight rows: what prefill does all day.
 *
 * Sixteen rows by eight blocks of weights are unpacked once into scratch, interleaved so that a lane
 * holds the next few k of its own row, and meet every activation row.  Nothing is summed across
 * lanes, so an activation is a broadcast and a block sum is ready when its last product is. */
#include "backend/cpu/kernels/quantized_avx2.h"

enum {
    FP4_GROUPS = 8,  /* vectors of four k a block */
    FP8_GROUPS = 16, /* vectors of two k a block */
    HALVES = 2       /* of a panel: eight weight rows each */
};

/* One block of a panel, unpacked.  Even k come first, then odd ones. */
typedef struct fp4_block {
    __m256i weight[FP4_GROUPS][HALVES]; /* bytes 2w + 12 */
    __m256i exponent[HALVES];           /* biased by 127 */
} fp4_block;

typedef struct fp8_block {
    __m256i high[FP8_GROUPS][HALVES], low[FP8_GROUPS][HALVES];
    __m256i exponent[HALVES];
} fp8_block;

typedef union panel {
    fp4_block fp4[PLUMB_CHUNK_BLOCKS];
    fp8_block fp8[PLUMB_CHUNK_BLOCKS];
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

static void unpack_fp4(const uint8_t *codes, int64_t stride, int half, fp4_block *out) {
    static const int8_t shifted[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
    const __m256i table = plumb__table_avx2(shifted), nibble = _mm256_set1_epi8(15);
    __m256i packed[4];
    transpose_dwords(codes, stride, packed);
    for (int j = 0; j < 4; j++) {
        out->weight[j][half] = _mm256_shuffle_epi8(table, _mm256_and_si256(packed[j], nibble));
        out->weight[4 + j][half] = _mm256_shuffle_epi8(
            table, _mm256_and_si256(_mm256_srli_epi16(packed[j], 4), nibble));
    }
}

/* Four codes a lane: the planes (w * 2^9) >> 8 and (w * 2^9) & 255 of the even and the odd ones, as
 * in matvec_avx2.c. */
static inline void unpack_fp8_dword(__m256i code, int half, int j, fp8_block *out) {
    static const int8_t power_low[16] = {1, 1, 2, 4, 8, 16, 32, 64, -128};
    static const int8_t power_high[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64};
    static const int8_t implicit[16] = {0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8};
    const __m256i upper = _mm256_set1_epi16((short)0xFF00);
    __m256i e = _mm256_and_si256(_mm256_srli_epi16(code, 3), _mm256_set1_epi8(15));
    __m256i m = _mm256_or_si256(_mm256_shuffle_epi8(plumb__table_avx2(implicit), e),
                                _mm256_and_si256(code, _mm256_set1_epi8(7)));
    m = _mm256_sign_epi8(m, _mm256_or_si256(code, _mm256_set1_epi8(1)));
    __m256i p_low = _mm256_shuffle_epi8(plumb__table_avx2(power_low), e);
    __m256i p_high = _mm256_shuffle_epi8(plumb__table_avx2(power_high), e);
    __m256i m_even = _mm256_slli_epi16(m, 8), m_odd = _mm256_and_si256(m, upper);
    __m256i p_even =
        _mm256_or_si256(_mm256_andnot_si256(upper, p_low), _mm256_slli_epi16(p_high, 8));
    __m256i p_odd = _mm256_or_si256(_mm256_srli_epi16(p_low, 8), _mm256_and_si256(p_high, upper));
    out->high[j][half] = _mm256_mulhi_epi16(m_even, p_even);
    out->high[8 + j][half] = _mm256_mulhi_epi16(m_odd, p_odd);
    out->low[j][half] = _mm256_srli_epi16(_mm256_mullo_epi16(m_even, p_even), 8);
    out->low[8 + j][half] = _mm256_srli_epi16(_mm256_mullo_epi16(m_odd, p_odd), 8);
}

static void unpack_fp8(const uint8_t *codes, int64_t stride, int half, fp8_block *out) {
    for (int part = 0; part < 2; part++) {
        __m256i dword[4];
        transpose_dwords(codes + 16 * part, stride, dword);
        for (int j = 0; j < 4; j++) unpack_fp8_dword(dword[j], half, 4 * part + j, out);
    }
}

/* Scale exponents of one block for eight rows, of which `rows` exist. */
static __m256i exponents(const plumb_matrix *w, int64_t n, int64_t rows, int64_t b) {
    int64_t blocks = w->k / PLUMB_BLOCK;
    int32_t e[PLUMB_LANE_ROWS] = {0};
    for (int64_t r = 0; r < rows; r++) {
        int64_t row = w->type == PLUMB_MATRIX_FP8 ? (n + r) / PLUMB_BLOCK : n + r;
        e[r] = w->scales[row * blocks + b];
    }
    return _mm256_loadu_si256((const __m256i *)(const void *)e);
}

/* Unpacks blocks b .. b+count-1 of rows n .. n+rows-1 into one half.  Fewer than eight rows are
 * copied beside zeros first, so that nothing outside the matrix is read. */
static void unpack_half(const plumb_matrix *w, int64_t n, int64_t rows, int64_t b, int64_t count,
                        int half, panel *out) {
    bool fp8 = w->type == PLUMB_MATRIX_FP8;
    int64_t size = fp8 ? PLUMB_BLOCK : PLUMB_BLOCK / 2, stride = w->k / PLUMB_BLOCK * size;
    uint8_t padded[PLUMB_LANE_ROWS * PLUMB_CHUNK_BLOCKS * PLUMB_BLOCK];
    const uint8_t *codes = padded;
    if (rows == PLUMB_LANE_ROWS) codes = (const uint8_t *)w->codes + n * stride + b * size;
    else {
        memset(padded, 0, sizeof padded);
        for (int64_t r = 0; r < rows; r++)
            memcpy(padded + r * count * size,
                   (const uint8_t *)w->codes + (n + r) * stride + b * size,
                   (size_t)(count * size));
        stride = count * size;
    }
    for (int64_t i = 0; i < count; i++) {
        __m256i e = exponents(w, n, rows, b + i);
        if (fp8) {
            unpack_fp8(codes + i * size, stride, half, &out->fp8[i]);
            out->fp8[i].exponent[half] = e;
        } else {
            unpack_fp4(codes + i * size, stride, half, &out->fp4[i]);
            out->fp4[i].exponent[half] = e;
        }
    }
}

/* ---- Products -------------------------------------------------------------------------------- */

static inline __m256i dword(const void *four_bytes) {
    int32_t value;
    memcpy(&value, four_bytes, sizeof value);
    return _mm256_set1_epi32(value);
}

/* Two activation rows at a time: each weight that is loaded meets both. */
enum { PAIR = 2 };

/* One block of two activation rows against both halves, in units of the high plane (FP4: of 2^-10).
 * sum [row][half]. */
typedef struct pair_sums {
    __m256 d[PAIR][HALVES];
} pair_sums;

#define ADD(sum, term)                        \
    do {                                      \
        sum = _mm256_add_epi32(sum, (term));  \
        PLUMB_KEEP_AVX2(sum);                 \
    } while (0)
#define ADD16(sum, term)                      \
    do {                                      \
        sum = _mm256_add_epi16(sum, (term));  \
        PLUMB_KEEP_AVX2(sum);                 \
    } while (0)

/* sum[row][half] += unit * (a block of byte weights times one plane of digits of each row).  Four
 * products of a plane fit 16 bits. */
static inline void add_digits(const fp4_block *w, const int8_t *x0, const int8_t *x1, short unit,
                              __m256i sum[PAIR][HALVES]) {
    const __m256i units = _mm256_set1_epi16(unit);
    for (int parity = 0; parity < 2; parity++) {
        __m256i s00 = _mm256_setzero_si256(), s01 = s00, s10 = s00, s11 = s00;
        for (int g = 0; g < 4; g++) {
            __m256i w0 = w->weight[4 * parity + g][0], w1 = w->weight[4 * parity + g][1];
            __m256i a0 = dword(x0 + 32 * parity + 4 * g), a1 = dword(x1 + 32 * parity + 4 * g);
            ADD16(s00, _mm256_maddubs_epi16(w0, a0));
            ADD16(s01, _mm256_maddubs_epi16(w1, a0));
            ADD16(s10, _mm256_maddubs_epi16(w0, a1));
            ADD16(s11, _mm256_maddubs_epi16(w1, a1));
        }
        sum[0][0] = _mm256_add_epi32(sum[0][0], _mm256_madd_epi16(s00, units));
        sum[0][1] = _mm256_add_epi32(sum[0][1], _mm256_madd_epi16(s01, units));
        sum[1][0] = _mm256_add_epi32(sum[1][0], _mm256_madd_epi16(s10, units));
        sum[1][1] = _mm256_add_epi32(sum[1][1], _mm256_madd_epi16(s11, units));
    }
}

/* D_b of two rows.  Not inlined, like fp8_planes: a compiler that sees several blocks at once runs out
 * of registers. */
__attribute__((noinline)) static void fp4_products(const fp4_block *w, const plumb_row_avx2 x[PAIR],
                                                   int64_t b, pair_sums *out) {
    int64_t at = b / 2 * 64 + b % 2 * 16;
    __m256i sum[PAIR][HALVES];
    for (int r = 0; r < PAIR; r++)
        sum[r][0] = sum[r][1] = _mm256_set1_epi32(-12 * x[r].sum[b]); /* takes the 12 back */
    add_digits(w, x[0].digit[0] + at, x[1].digit[0] + at, 8, sum);
    add_digits(w, x[0].digit[1] + at, x[1].digit[1] + at, 2048, sum);
    if (x[0].has_low[b] | x[1].has_low[b])
        add_digits(w, x[0].digit[2] + at, x[1].digit[2] + at, 1, sum);
    for (int r = 0; r < PAIR; r++)
        for (int h = 0; h < HALVES; h++)
            out->d[r][h] =
                _mm256_mul_ps(_mm256_cvtepi32_ps(sum[r][h]), _mm256_set1_ps(0x1p-10f));
}

/* Both planes of the weights against one plane of each row: [row][half] in double, two vectors. */
typedef struct plane_sums {
    __m256d d[PAIR][HALVES][2];
} plane_sums;

static inline void join(__m256i high, __m256i low, __m256d sum[2]) {
    sum[0] = plumb__join_avx2(_mm256_castsi256_si128(high), _mm256_castsi256_si128(low));
    sum[1] = plumb__join_avx2(_mm256_extracti128_si256(high, 1), _mm256_extracti128_si256(low, 1));
}

__attribute__((noinline)) static void fp8_planes(const fp8_block *w, const int16_t *x0,
                                                 const int16_t *x1, plane_sums *out) {
    for (int h = 0; h < HALVES; h++) {
        __m256i high0 = _mm256_setzero_si256(), high1 = high0, low0 = high0, low1 = high0;
        for (int g = 0; g < FP8_GROUPS; g++) {
            __m256i a0 = dword(x0 + 2 * g), a1 = dword(x1 + 2 * g);
            __m256i high = w->high[g][h], low = w->low[g][h];
            ADD(high0, _mm256_madd_epi16(high, a0));
            ADD(high1, _mm256_madd_epi16(high, a1));
            ADD(low0, _mm256_madd_epi16(low, a0));
            ADD(low1, _mm256_madd_epi16(low, a1));
        }
        join(high0, low0, out->d[0][h]);
        join(high1, low1, out->d[1][h]);
    }
}

static void fp8_products(const fp8_block *w, const plumb_row_avx2 x[PAIR], int64_t b,
                         pair_sums *out) {
    int64_t at = b * PLUMB_BLOCK;
    bool low = x[0].has_low[b] | x[1].has_low[b];
    plane_sums sums, rest;
    fp8_planes(w, x[0].high[PLUMB_ORDER_LANE] + at, x[1].high[PLUMB_ORDER_LANE] + at, &sums);
    if (low) fp8_planes(w, x[0].low[PLUMB_ORDER_LANE] + at, x[1].low[PLUMB_ORDER_LANE] + at, &rest);
    for (int r = 0; r < PAIR; r++)
        for (int h = 0; h < HALVES; h++) {
            __m256d first = sums.d[r][h][0], second = sums.d[r][h][1];
            if (low) { /* value = 8 * high + low; the eighth keeps one scale for both */
                const __m256d eighth = _mm256_set1_pd(0.125);
                first = _mm256_add_pd(first, _mm256_mul_pd(rest.d[r][h][0], eighth));
                second = _mm256_add_pd(second, _mm256_mul_pd(rest.d[r][h][1], eighth));
            }
            __m256 d = _mm256_set_m128(_mm256_cvtpd_ps(second), _mm256_cvtpd_ps(first));
            out->d[r][h] = _mm256_mul_ps(d, _mm256_set1_ps(0x1p-15f));
        }
}

/* segment = fma(D_b, P_b, segment) for one row. */
static inline void add_block(const __m256 d[HALVES], const __m256i weight_exponent[HALVES],
                             int32_t exponent, plumb_panel_sums *sums) {
    __m256i ea = _mm256_set1_epi32(exponent);
    for (int h = 0; h < HALVES; h++) {
        __m256 p = plumb__power_avx2(_mm256_add_epi32(weight_exponent[h], ea));
        sums->segment[h] = _mm256_fmadd_ps(d[h], p, sums->segment[h]);
    }
}

/* A segment is complete: add it to the total (the first one IS the total) and start the next. */
static void end_segment(plumb_panel_sums *sums, bool first) {
    for (int h = 0; h < HALVES; h++) {
        sums->total[h] =
            first ? sums->segment[h] : _mm256_add_ps(sums->total[h], sums->segment[h]);
        sums->segment[h] = _mm256_setzero_ps();
    }
}

void plumb__matmul_avx2(const void *const *x, int64_t n_x, const plumb_matrix *w, int64_t n,
                        int64_t rows, plumb_panel_sums *sums, void *scratch) {
    panel *weights = scratch;
    int64_t blocks = w->k / PLUMB_BLOCK;
    int64_t upper = rows < PLUMB_LANE_ROWS ? rows : PLUMB_LANE_ROWS;
    bool fp8 = w->type == PLUMB_MATRIX_FP8;
    memset(sums, 0, (size_t)n_x * sizeof *sums);
    for (int64_t b = 0, count; b < blocks; b += count) {
        count = blocks - b < PLUMB_CHUNK_BLOCKS ? blocks - b : PLUMB_CHUNK_BLOCKS;
        unpack_half(w, n, upper, b, count, 0, weights);
        unpack_half(w, n + upper, rows - upper, b, count, 1, weights);
        bool ends = (b + count) % PLUMB_BLOCKS_PER_SEGMENT == 0 || b + count == blocks;
        for (int64_t i = 0; i < n_x; i += PAIR) {
            /* An odd last row is its own partner; only its first result is used. */
            int64_t n_rows = n_x - i < PAIR ? n_x - i : PAIR;
            plumb_row_avx2 pair[PAIR] = {plumb__row_view_avx2(x[i], w->k),
                                         plumb__row_view_avx2(x[i + n_rows - 1], w->k)};
            for (int64_t j = 0; j < count; j++) {
                pair_sums products;
                if (fp8) fp8_products(&weights->fp8[j], pair, b + j, &products);
                else fp4_products(&weights->fp4[j], pair, b + j, &products);
                for (int64_t r = 0; r < n_rows; r++)
                    add_block(products.d[r],
                              fp8 ? weights->fp8[j].exponent : weights->fp4[j].exponent,
                              pair[r].exponent[b + j], &sums[i + r]);
            }
            for (int64_t r = 0; ends && r < n_rows; r++)
                end_segment(&sums[i + r], b < PLUMB_BLOCKS_PER_SEGMENT);
        }
    }
}
