/* One activation row against eight weight rows: what decoding does all day.
 *
 * Weights are read in the order they have in memory and unpacked in registers.  A vector holds k of
 * ONE weight row here, so a block's products are joined across lanes; eight blocks of eight rows are
 * then transposed, and the contract's chain of blocks runs with one weight row per lane. */
#include "backend/cpu/kernels/quantized_avx2.h"

/* How far ahead of its reads a row is prefetched, in bytes. */
enum { AHEAD = 1024 };

static inline void transpose(__m256 r[8]) {
    __m256 t[8], u[8];
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        u[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
        u[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xEE);
        u[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
        u[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xEE);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}

/* ---- FP4 ------------------------------------------------------------------------------------- */

/* Two blocks of one row (32 bytes of codes): partial sums, four lanes to a block.  Weights are
 * 2w + 12 (0..24), so that vpmaddubsw takes them unsigned; four of its sums fit 16 bits. */
static inline __m256i two_blocks(__m256i codes, const int8_t *digit0, const int8_t *digit1) {
    static const int8_t shifted[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
    const __m256i table = plumb__table_avx2(shifted), nibble = _mm256_set1_epi8(15);
    __m256i even = _mm256_shuffle_epi8(table, _mm256_and_si256(codes, nibble));
    __m256i odd = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble));
    __m256i sum0 = _mm256_add_epi16(
        _mm256_maddubs_epi16(even, _mm256_loadu_si256((const __m256i *)(const void *)digit0)),
        _mm256_maddubs_epi16(odd, _mm256_loadu_si256((const __m256i *)(const void *)(digit0 + 32))));
    __m256i sum1 = _mm256_add_epi16(
        _mm256_maddubs_epi16(even, _mm256_loadu_si256((const __m256i *)(const void *)digit1)),
        _mm256_maddubs_epi16(odd, _mm256_loadu_si256((const __m256i *)(const void *)(digit1 + 32))));
    return _mm256_add_epi32(_mm256_madd_epi16(sum0, _mm256_set1_epi16(8)),
                            _mm256_madd_epi16(sum1, _mm256_set1_epi16(2048)));
}

/* The same against the low plane, in its units. */
static inline __m256i two_blocks_low(__m256i codes, const int8_t *low) {
    static const int8_t shifted[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
    const __m256i table = plumb__table_avx2(shifted), nibble = _mm256_set1_epi8(15);
    __m256i even = _mm256_shuffle_epi8(table, _mm256_and_si256(codes, nibble));
    __m256i odd = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble));
    __m256i sum = _mm256_add_epi16(
        _mm256_maddubs_epi16(even, _mm256_loadu_si256((const __m256i *)(const void *)low)),
        _mm256_maddubs_epi16(odd, _mm256_loadu_si256((const __m256i *)(const void *)(low + 32))));
    return _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
}

/* D_b of eight blocks of one row. */
static inline __m256 row_chunk_fp4(const uint8_t *codes, plumb_row_avx2 x, int64_t b, bool low) {
    __m256i part[4];
    for (int p = 0; p < 4; p++) {
        __m256i packed = _mm256_loadu_si256((const __m256i *)(const void *)(codes + 32 * p));
        int64_t at = (b / 2 + p) * 64;
        part[p] = two_blocks(packed, x.digit[0] + at, x.digit[1] + at);
        if (low) part[p] = _mm256_add_epi32(part[p], two_blocks_low(packed, x.digit[2] + at));
    }
    __m256i sum = _mm256_hadd_epi32(_mm256_hadd_epi32(part[0], part[1]),
                                    _mm256_hadd_epi32(part[2], part[3]));
    sum = _mm256_permutevar8x32_epi32(sum, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    __m256i shift = _mm256_mullo_epi32(
        _mm256_loadu_si256((const __m256i *)(const void *)(x.sum + b)), _mm256_set1_epi32(12));
    sum = _mm256_sub_epi32(sum, shift);
    return _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_set1_ps(0x1p-10f));
}

/* ---- FP8 ------------------------------------------------------------------------------------- */

/* 32 codes of one row against 32 activations.  w * 2^9 = m * 2^(max(e, 1) - 1), the implicit bit in
 * m: the 16-bit halves of (m * 2^8) times the power are the planes w >> 8 and w & 255. */
static inline void one_block(__m256i code, const int16_t *value, __m256i *high, __m256i *low) {
    static const int8_t power_low[16] = {1, 1, 2, 4, 8, 16, 32, 64, -128}; /* 2^(e-1), low byte */
    static const int8_t power_high[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64};
    static const int8_t implicit[16] = {0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8};
    const __m256i zero = _mm256_setzero_si256();
    __m256i e = _mm256_and_si256(_mm256_srli_epi16(code, 3), _mm256_set1_epi8(15));
    __m256i m = _mm256_or_si256(_mm256_shuffle_epi8(plumb__table_avx2(implicit), e),
                                _mm256_and_si256(code, _mm256_set1_epi8(7)));
    m = _mm256_sign_epi8(m, _mm256_or_si256(code, _mm256_set1_epi8(1)));
    __m256i p_low = _mm256_shuffle_epi8(plumb__table_avx2(power_low), e);
    __m256i p_high = _mm256_shuffle_epi8(plumb__table_avx2(power_high), e);
    __m256i p0 = _mm256_unpacklo_epi8(p_low, p_high), p1 = _mm256_unpackhi_epi8(p_low, p_high);
    __m256i m0 = _mm256_unpacklo_epi8(zero, m), m1 = _mm256_unpackhi_epi8(zero, m);
    __m256i a0 = _mm256_loadu_si256((const __m256i *)(const void *)value);
    __m256i a1 = _mm256_loadu_si256((const __m256i *)(const void *)(value + 16));
    *high = _mm256_add_epi32(_mm256_madd_epi16(_mm256_mulhi_epi16(m0, p0), a0),
                             _mm256_madd_epi16(_mm256_mulhi_epi16(m1, p1), a1));
    *low = _mm256_add_epi32(
        _mm256_madd_epi16(_mm256_srli_epi16(_mm256_mullo_epi16(m0, p0), 8), a0),
        _mm256_madd_epi16(_mm256_srli_epi16(_mm256_mullo_epi16(m1, p1), 8), a1));
}

/* Sums of eight vectors, one to a lane. */
static inline __m256i join_eight(const __m256i v[8]) {
    __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31));
}

static inline void plane_sums(const uint8_t *codes, const int16_t *value, __m256d sum[2]) {
    __m256i high[8], low[8];
    for (int i = 0; i < 8; i++)
        one_block(_mm256_loadu_si256((const __m256i *)(const void *)(codes + 32 * i)),
                  value + 32 * i, &high[i], &low[i]);
    __m256i h = join_eight(high), l = join_eight(low);
    sum[0] = plumb__join_avx2(_mm256_castsi256_si128(h), _mm256_castsi256_si128(l));
    sum[1] = plumb__join_avx2(_mm256_extracti128_si256(h, 1), _mm256_extracti128_si256(l, 1));
}

static inline __m256 row_chunk_fp8(const uint8_t *codes, plumb_row_avx2 x, int64_t b, bool low) {
    __m256d sum[2];
    plane_sums(codes, x.high[PLUMB_ORDER_ROW] + b * PLUMB_BLOCK, sum);
    if (low) { /* value = 8 * high + low; the eighth keeps one scale for both */
        __m256d rest[2];
        plane_sums(codes, x.low[PLUMB_ORDER_ROW] + b * PLUMB_BLOCK, rest);
        for (int i = 0; i < 2; i++)
            sum[i] = _mm256_add_pd(sum[i], _mm256_mul_pd(rest[i], _mm256_set1_pd(0.125)));
    }
    __m256 d = _mm256_set_m128(_mm256_cvtpd_ps(sum[1]), _mm256_cvtpd_ps(sum[0]));
    return _mm256_mul_ps(d, _mm256_set1_ps(0x1p-15f));
}

/* ---- Eight rows ------------------------------------------------------------------------------ */

/* Eight rows by eight blocks, in the matrix itself or, at its edges, copied beside zeros. */
typedef struct chunk_source {
    const uint8_t *codes, *scales;
    int64_t stride, scale_stride;
} chunk_source;

typedef struct padded_chunk {
    uint8_t codes[PLUMB_LANE_ROWS * PLUMB_CHUNK_BLOCKS * PLUMB_BLOCK];
    uint8_t scales[PLUMB_LANE_ROWS * PLUMB_CHUNK_BLOCKS];
} padded_chunk;

static chunk_source find_chunk(const plumb_matrix *w, int64_t n, int64_t rows, int64_t b,
                               int64_t count, padded_chunk *padded) {
    bool fp8 = w->type == PLUMB_MATRIX_FP8;
    int64_t blocks = w->k / PLUMB_BLOCK, size = fp8 ? PLUMB_BLOCK : PLUMB_BLOCK / 2;
    chunk_source s = {(const uint8_t *)w->codes + (n * blocks + b) * size,
                      w->scales + (fp8 ? n / PLUMB_BLOCK : n) * blocks + b, blocks * size,
                      fp8 ? 0 : blocks};
    if (rows == PLUMB_LANE_ROWS && count == PLUMB_CHUNK_BLOCKS) return s;
    memset(padded, 0, sizeof *padded);
    int64_t stride = PLUMB_CHUNK_BLOCKS * size;
    for (int64_t r = 0; r < rows; r++) {
        memcpy(padded->codes + r * stride, s.codes + r * s.stride, (size_t)(count * size));
        memcpy(padded->scales + r * PLUMB_CHUNK_BLOCKS, s.scales + r * s.scale_stride,
               (size_t)count);
    }
    return (chunk_source){padded->codes, padded->scales, stride,
                          fp8 ? 0 : PLUMB_CHUNK_BLOCKS};
}

static inline bool any_low(plumb_row_avx2 x, int64_t b) {
    __m256i flags = _mm256_loadu_si256((const __m256i *)(const void *)(x.has_low + b));
    return !_mm256_testz_si256(flags, flags);
}

static inline void chunk_products(chunk_source s, bool fp8, plumb_row_avx2 x, int64_t b,
                                  __m256 d[8], __m256 p[8]) {
    bool low = any_low(x, b);
    __m256i ea = _mm256_loadu_si256((const __m256i *)(const void *)(x.exponent + b));
    for (int r = 0; r < PLUMB_LANE_ROWS; r++) {
        const uint8_t *codes = s.codes + r * s.stride;
        for (int i = 0; i < (fp8 ? 4 : 2); i++)
            _mm_prefetch((const char *)codes + AHEAD + 64 * i, _MM_HINT_T0);
        d[r] = fp8 ? row_chunk_fp8(codes, x, b, low) : row_chunk_fp4(codes, x, b, low);
        if (fp8 && r > 0) continue; /* the rows share their scales */
        __m256i ew = _mm256_cvtepu8_epi32(
            _mm_loadl_epi64((const __m128i *)(const void *)(s.scales + r * s.scale_stride)));
        p[r] = plumb__power_avx2(_mm256_add_epi32(ew, ea));
    }
    transpose(d);
    if (!fp8) transpose(p);
    else {
        __m256 shared = p[0];
        for (int i = 0; i < 8; i++)
            p[i] = _mm256_permutevar8x32_ps(shared, _mm256_set1_epi32(i));
    }
}

static inline __m256 eight_rows(plumb_row_avx2 x, const plumb_matrix *w, int64_t n, int64_t rows,
                                bool fp8) {
    int64_t blocks = w->k / PLUMB_BLOCK;
    __m256 total = _mm256_setzero_ps(), segment = _mm256_setzero_ps();
    padded_chunk padded;
    for (int64_t b = 0; b < blocks; b += PLUMB_CHUNK_BLOCKS) {
        int64_t count = blocks - b < PLUMB_CHUNK_BLOCKS ? blocks - b : PLUMB_CHUNK_BLOCKS;
        __m256 d[8], p[8];
        chunk_products(find_chunk(w, n, rows, b, count, &padded), fp8, x, b, d, p);
        for (int64_t i = 0; i < count; i++) segment = _mm256_fmadd_ps(d[i], p[i], segment);
        if ((b + count) % PLUMB_BLOCKS_PER_SEGMENT == 0 || b + count == blocks) {
            total = b < PLUMB_BLOCKS_PER_SEGMENT ? segment : _mm256_add_ps(total, segment);
            segment = _mm256_setzero_ps();
        }
    }
    return total;
}

void plumb__matvec_avx2(plumb_row_avx2 x, const plumb_matrix *w, int64_t n, int64_t rows,
                        __m256 *result) {
    *result = w->type == PLUMB_MATRIX_FP8 ? eight_rows(x, w, n, rows, true)
                                          : eight_rows(x, w, n, rows, false);
}
