/* Quantised linear layers with AVX2: exact blocks (docs/arithmetic.md section 3), eight weight rows
 * to a vector.
 *
 * Eight rows by eight blocks of weights are unpacked into scratch, interleaved so that a lane holds
 * the next few k of its row, and then meet every activation row.
 *   FP4: bytes 2w + 12 (0..24) against signed digits of 8 bits: vpmaddubsw.  Four of its sums fit 16
 *        bits; the 12 is taken back by -12 times the sum of the activations.
 *   FP8: w * 2^9 has 18 bits: a high plane (w * 2^9) >> 8 and a low plane (w * 2^9) & 255 against
 *        16-bit activations: vpmaddwd.  The planes are joined in double, exactly, and rounded once. */
#include "backend/cpu/kernels/quantized_avx2.h"

#include <immintrin.h>

enum { FP4_GROUPS = 8, FP8_GROUPS = 16 }; /* vectors of weights per block */

/* A tile of unpacked weights. */
typedef struct weight_tile {
    __m256i exponent[PLUMB_TILE_BLOCKS]; /* biased by 127, of each row */
    union {
        __m256i fp4[PLUMB_TILE_BLOCKS][FP4_GROUPS];
        struct {
            __m256i high[FP8_GROUPS], low[FP8_GROUPS];
        } fp8[PLUMB_TILE_BLOCKS];
    };
} weight_tile;

/* Running sums of one activation row for the eight weight rows. */
typedef struct row_sums {
    __m256 segment, total;
} row_sums;

int64_t plumb__linear_quantized_scratch_avx2(int64_t k, int64_t rows) {
    (void)k;
    return (int64_t)sizeof(weight_tile) + rows * (int64_t)sizeof(row_sums);
}

/* ---- Unpacking -------------------------------------------------------------------------------- */

/* Dwords 0..3 of eight rows of 16 bytes: out[j] holds dword j of rows 0..7. */
static inline void transpose_dwords(const uint8_t *rows, int64_t stride, __m256i out[4]) {
    __m256i r[4];
    for (int i = 0; i < 4; i++)
        r[i] = _mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(rows + i * stride))),
            _mm_loadu_si128((const __m128i *)(rows + (i + 4) * stride)), 1);
    __m256i low01 = _mm256_unpacklo_epi32(r[0], r[1]), high01 = _mm256_unpackhi_epi32(r[0], r[1]);
    __m256i low23 = _mm256_unpacklo_epi32(r[2], r[3]), high23 = _mm256_unpackhi_epi32(r[2], r[3]);
    out[0] = _mm256_unpacklo_epi64(low01, low23);
    out[1] = _mm256_unpackhi_epi64(low01, low23);
    out[2] = _mm256_unpacklo_epi64(high01, high23);
    out[3] = _mm256_unpackhi_epi64(high01, high23);
}

static inline __m256i table16(int8_t a, int8_t b, int8_t c, int8_t d, int8_t e, int8_t f, int8_t g,
                              int8_t h, int8_t i, int8_t j, int8_t k, int8_t l, int8_t m, int8_t n,
                              int8_t o, int8_t p) {
    return _mm256_broadcastsi128_si256(
        _mm_setr_epi8(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p));
}

/* 16 bytes of each row -> groups of four k: even ones in 0..3, odd ones in 4..7. */
static inline void unpack_fp4(const uint8_t *codes, int64_t stride, __m256i out[FP4_GROUPS]) {
    const __m256i shifted = table16(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i packed[4];
    transpose_dwords(codes, stride, packed);
    for (int j = 0; j < 4; j++) {
        out[j] = _mm256_shuffle_epi8(shifted, _mm256_and_si256(packed[j], nibble));
        out[4 + j] = _mm256_shuffle_epi8(
            shifted, _mm256_and_si256(_mm256_srli_epi16(packed[j], 4), nibble));
    }
}

/* 32 bytes of each row -> pairs of k, two planes.  w * 2^9 = m * 2^(max(e, 1) - 1) with the implicit
 * bit in m: the 16-bit products of m * 2^8 with the power give both planes. */
static inline void unpack_fp8(const uint8_t *codes, int64_t stride, __m256i high[FP8_GROUPS],
                              __m256i low[FP8_GROUPS]) {
    const __m256i power_low = table16(1, 1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0);
    const __m256i power_high = table16(0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64);
    const __m256i implicit = table16(0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8);
    const __m256i upper_byte = _mm256_set1_epi16((short)0xFF00);
    for (int half = 0; half < 2; half++) {
        __m256i dword[4];
        transpose_dwords(codes + 16 * half, stride, dword);
        for (int j = 0; j < 4; j++) {
            __m256i code = dword[j];
            __m256i e = _mm256_and_si256(_mm256_srli_epi16(code, 3), _mm256_set1_epi8(15));
            __m256i m = _mm256_or_si256(_mm256_shuffle_epi8(implicit, e),
                                        _mm256_and_si256(code, _mm256_set1_epi8(7)));
            m = _mm256_sign_epi8(m, _mm256_or_si256(code, _mm256_set1_epi8(1)));
            __m256i p_low = _mm256_shuffle_epi8(power_low, e);
            __m256i p_high = _mm256_shuffle_epi8(power_high, e);
            __m256i m_even = _mm256_slli_epi16(m, 8), m_odd = _mm256_and_si256(m, upper_byte);
            __m256i p_even = _mm256_or_si256(_mm256_andnot_si256(upper_byte, p_low),
                                             _mm256_slli_epi16(p_high, 8));
            __m256i p_odd = _mm256_or_si256(_mm256_srli_epi16(p_low, 8),
                                            _mm256_and_si256(p_high, upper_byte));
            int g = 8 * half + 2 * j;
            high[g] = _mm256_mulhi_epi16(m_even, p_even);
            high[g + 1] = _mm256_mulhi_epi16(m_odd, p_odd);
            low[g] = _mm256_srli_epi16(_mm256_mullo_epi16(m_even, p_even), 8);
            low[g + 1] = _mm256_srli_epi16(_mm256_mullo_epi16(m_odd, p_odd), 8);
        }
    }
}

/* ---- Block sums ------------------------------------------------------------------------------ */

static inline __m256i four_bytes(const int8_t *bytes) {
    int32_t value;
    memcpy(&value, bytes, sizeof value);
    return _mm256_set1_epi32(value);
}

/* Sum over a block of byte weights times one plane of digits, times `unit`. */
static inline __m256i digits_dot(const __m256i w[FP4_GROUPS], const int8_t *digit, short unit) {
    __m256i even = _mm256_maddubs_epi16(w[0], four_bytes(digit));
    __m256i odd = _mm256_maddubs_epi16(w[4], four_bytes(digit + 16));
    for (int g = 1; g < 4; g++) {
        even = _mm256_add_epi16(even, _mm256_maddubs_epi16(w[g], four_bytes(digit + 4 * g)));
        odd = _mm256_add_epi16(odd, _mm256_maddubs_epi16(w[4 + g], four_bytes(digit + 16 + 4 * g)));
    }
    __m256i units = _mm256_set1_epi16(unit);
    return _mm256_add_epi32(_mm256_madd_epi16(even, units), _mm256_madd_epi16(odd, units));
}

/* D_b of eight rows. */
static inline __m256 block_fp4(const __m256i w[FP4_GROUPS], const plumb_block_avx2 *a) {
    __m256i sum = _mm256_add_epi32(digits_dot(w, a->digit[0], 8), digits_dot(w, a->digit[1], 2048));
    if (a->has_low) sum = _mm256_add_epi32(sum, digits_dot(w, a->digit[2], 1));
    sum = _mm256_sub_epi32(sum, _mm256_set1_epi32(12 * a->sum));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_set1_ps(0x1p-10f));
}

static inline __m256i pair_dot(const __m256i w[FP8_GROUPS], const int16_t *value) {
    __m256i sum = _mm256_setzero_si256();
    for (int g = 0; g < FP8_GROUPS; g++)
        sum = _mm256_add_epi32(
            sum, _mm256_madd_epi16(w[g], four_bytes((const int8_t *)(value + 2 * g))));
    return sum;
}

/* 256 * high + low of four rows, in double: exact. */
static inline __m256d join(__m128i high, __m128i low) {
    return _mm256_add_pd(_mm256_mul_pd(_mm256_cvtepi32_pd(high), _mm256_set1_pd(256.0)),
                         _mm256_cvtepi32_pd(low));
}

static inline __m256 block_fp8(const __m256i *w_high, const __m256i *w_low,
                               const plumb_block_avx2 *a) {
    __m256i high = pair_dot(w_high, a->high), low = pair_dot(w_low, a->high);
    __m256d first = join(_mm256_castsi256_si128(high), _mm256_castsi256_si128(low));
    __m256d second = join(_mm256_extracti128_si256(high, 1), _mm256_extracti128_si256(low, 1));
    if (a->has_low) {
        const __m256d eight = _mm256_set1_pd(8.0), eighth = _mm256_set1_pd(0.125);
        high = pair_dot(w_high, a->low);
        low = pair_dot(w_low, a->low);
        __m256d f = join(_mm256_castsi256_si128(high), _mm256_castsi256_si128(low));
        __m256d s = join(_mm256_extracti128_si256(high, 1), _mm256_extracti128_si256(low, 1));
        first = _mm256_mul_pd(_mm256_add_pd(_mm256_mul_pd(first, eight), f), eighth);
        second = _mm256_mul_pd(_mm256_add_pd(_mm256_mul_pd(second, eight), s), eighth);
    }
    __m256 d = _mm256_set_m128(_mm256_cvtpd_ps(second), _mm256_cvtpd_ps(first));
    return _mm256_mul_ps(d, _mm256_set1_ps(0x1p-15f));
}

/* P_b: 2^(ea + ew); +0 below the normal range, infinity above it. */
static inline __m256 power(__m256i biased_weight, int32_t activation) {
    __m256i e = _mm256_add_epi32(biased_weight, _mm256_set1_epi32(activation));
    e = _mm256_min_epi32(_mm256_max_epi32(e, _mm256_setzero_si256()), _mm256_set1_epi32(255));
    return _mm256_castsi256_ps(_mm256_slli_epi32(e, 23));
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* Bytes of one block's codes in a row. */
static int64_t block_bytes(const plumb_matrix *w) {
    return w->type == PLUMB_MATRIX_FP8 ? PLUMB_BLOCK : PLUMB_BLOCK / 2;
}

/* Exponents of `count` blocks from `block` on, for the tile's rows. */
static void load_exponents(const plumb_matrix *w, int64_t n, int64_t rows, int64_t block,
                           int64_t count, __m256i *out) {
    int64_t blocks = w->k / PLUMB_BLOCK;
    for (int64_t b = 0; b < count; b++) {
        if (w->type == PLUMB_MATRIX_FP8) { /* rows of a tile share their scale: see tile_rows */
            out[b] = _mm256_set1_epi32(w->scales[n / PLUMB_BLOCK * blocks + block + b]);
            continue;
        }
        int32_t e[PLUMB_TILE_ROWS] = {0};
        for (int64_t r = 0; r < rows; r++) e[r] = w->scales[(n + r) * blocks + block + b];
        out[b] = _mm256_loadu_si256((const __m256i *)e);
    }
}

/* Unpacks rows n .. n+rows-1, blocks block .. block+count-1.  A tile with fewer than eight rows is
 * first copied beside zeros, so that nothing outside the matrix is read. */
static void load_tile(const plumb_matrix *w, int64_t n, int64_t rows, int64_t block, int64_t count,
                      weight_tile *tile) {
    int64_t size = block_bytes(w), stride = w->k / PLUMB_BLOCK * size;
    const uint8_t *codes = (const uint8_t *)w->codes + n * stride + block * size;
    uint8_t padded[PLUMB_TILE_ROWS * PLUMB_TILE_BLOCKS * PLUMB_BLOCK];
    if (rows < PLUMB_TILE_ROWS) {
        memset(padded, 0, sizeof padded);
        for (int64_t r = 0; r < rows; r++)
            memcpy(padded + r * count * size, codes + r * stride, (size_t)(count * size));
        codes = padded;
        stride = count * size;
    }
    load_exponents(w, n, rows, block, count, tile->exponent);
    for (int64_t b = 0; b < count; b++) {
        if (w->type == PLUMB_MATRIX_FP8)
            unpack_fp8(codes + b * size, stride, tile->fp8[b].high, tile->fp8[b].low);
        else unpack_fp4(codes + b * size, stride, tile->fp4[b]);
    }
}

static inline void multiply_tile(const weight_tile *tile, bool fp8, const plumb_block_avx2 *a,
                                 int64_t count, row_sums *sums) {
    for (int64_t b = 0; b < count; b++) {
        __m256 d = fp8 ? block_fp8(tile->fp8[b].high, tile->fp8[b].low, a + b)
                       : block_fp4(tile->fp4[b], a + b);
        sums->segment =
            _mm256_fmadd_ps(d, power(tile->exponent[b], a[b].exponent), sums->segment);
    }
}

/* Rows from n on that one tile can hold: eight, within the range and within one 32-row scale tile. */
static int64_t tile_rows(int64_t n, int64_t end) {
    int64_t left = PLUMB_BLOCK - n % PLUMB_BLOCK;
    int64_t rows = end - n < PLUMB_TILE_ROWS ? end - n : PLUMB_TILE_ROWS;
    return rows < left ? rows : left;
}

/* Stores a tile's results; returns whether all are finite. */
static bool store_tile(const row_sums *sums, int64_t rows, plumb_act *y) {
    float value[PLUMB_TILE_ROWS];
    bool finite = true;
    _mm256_storeu_ps(value, sums->total);
    for (int64_t i = 0; i < rows; i++) {
        finite &= (plumb__bits_of(value[i]) & 0x7F800000u) != 0x7F800000u;
        y[i] = plumb__store(value[i]);
    }
    return finite;
}

bool plumb__linear_quantized_avx2(const void *const *x, int64_t rows, const plumb_matrix *w,
                                  int64_t begin, int64_t end, plumb_act *y, int64_t y_stride,
                                  void *scratch) {
    weight_tile *tile = scratch;
    row_sums *sums = (row_sums *)(void *)(tile + 1);
    int64_t blocks = w->k / PLUMB_BLOCK;
    bool fp8 = w->type == PLUMB_MATRIX_FP8, finite = true;
    for (int64_t n = begin, n_rows; n < end; n += n_rows) {
        n_rows = tile_rows(n, end);
        for (int64_t r = 0; r < rows; r++)
            sums[r] = (row_sums){_mm256_setzero_ps(), _mm256_setzero_ps()};
        for (int64_t b = 0, count; b < blocks; b += count) {
            count = blocks - b < PLUMB_TILE_BLOCKS ? blocks - b : PLUMB_TILE_BLOCKS;
            load_tile(w, n, n_rows, b, count, tile);
            bool ends = (b + count) % PLUMB_BLOCKS_PER_SEGMENT == 0 || b + count == blocks;
            bool first = b < PLUMB_BLOCKS_PER_SEGMENT;
            for (int64_t r = 0; r < rows; r++) {
                const plumb_block_avx2 *a = (const plumb_block_avx2 *)x[r] + b;
                if (fp8) multiply_tile(tile, true, a, count, &sums[r]);
                else multiply_tile(tile, false, a, count, &sums[r]);
                if (!ends) continue;
                sums[r].total = first ? sums[r].segment
                                      : _mm256_add_ps(sums[r].total, sums[r].segment);
                sums[r].segment = _mm256_setzero_ps();
            }
        }
        for (int64_t r = 0; r < rows; r++)
            finite &= store_tile(&sums[r], n_rows, y + r * y_stride + n);
    }
    return finite;
}
