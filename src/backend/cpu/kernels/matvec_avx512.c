/* One or two activation rows against sixteen weight rows: what decoding does all day.
 *
 * Weights are read where they lie and unpacked in registers. FP4: a vector is four blocks of ONE
 * row, cheap to unpack; the partial sums of sixteen rows are then transposed while they are
 * added, so that the contract's chain of blocks runs with one weight row per lane. FP8, where
 * unpacking makes more vectors than loading: the codes themselves are transposed first, and
 * nothing is summed across lanes. */
#include "backend/cpu/kernels/fp8_avx512.h"

/* How far ahead of its reads a row is prefetched, in bytes. */
enum { AHEAD = 1024 };

/* Sixteen weight rows of a matrix. */
typedef struct weight_rows {
    const uint8_t *codes[PLUMB_LANE_ROWS], *scales[PLUMB_LANE_ROWS];
    int64_t blocks;
} weight_rows;

static weight_rows find_weights(const plumb_matrix *w, int64_t n, int64_t rows) {
    bool fp8 = w->type == PLUMB_MATRIX_FP8;
    weight_rows out = {.blocks = w->k / PLUMB_BLOCK};
    int64_t stride = out.blocks * (fp8 ? PLUMB_BLOCK : PLUMB_BLOCK / 2);
    plumb__find_rows_avx512((const uint8_t *)w->codes + n * stride, stride, rows, out.codes);
    plumb__find_rows_avx512(w->scales + (fp8 ? n / PLUMB_BLOCK : n) * out.blocks,
                            fp8 ? 0 : out.blocks, rows, out.scales);
    return out;
}

/* The contract's sums of one activation row, a weight row per lane. */
typedef struct running_sums {
    __m512 segment, total;
} running_sums;

/* After block b: a complete segment is added to the total; the first one IS the total. */
static inline void end_block(running_sums *sums, int64_t b, int64_t blocks) {
    if ((b + 1) % PLUMB_BLOCKS_PER_SEGMENT != 0 && b + 1 != blocks) return;
    sums->total =
        b < PLUMB_BLOCKS_PER_SEGMENT ? sums->segment : _mm512_add_ps(sums->total, sums->segment);
    sums->segment = _mm512_setzero_ps();
}

/* ---- FP4 ------------------------------------------------------------------------------------- */

/* Lane j of out: the sum of the four lanes of 128 bits at this place of row j. */
static inline __m512i join_four_rows(const __m512i row[4]) {
    __m512i a = _mm512_add_epi32(_mm512_unpacklo_epi32(row[0], row[1]),
                                 _mm512_unpackhi_epi32(row[0], row[1]));
    __m512i b = _mm512_add_epi32(_mm512_unpacklo_epi32(row[2], row[3]),
                                 _mm512_unpackhi_epi32(row[2], row[3]));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/* four[i], quarter j: rows 4i .. 4i+3 of block j.  To block[j]: rows 0 .. 15. */
static inline void transpose_quarters(const __m512i four[4], __m512i block[4]) {
    __m512i a = _mm512_shuffle_i32x4(four[0], four[1], 0x44);
    __m512i b = _mm512_shuffle_i32x4(four[2], four[3], 0x44);
    __m512i c = _mm512_shuffle_i32x4(four[0], four[1], 0xEE);
    __m512i d = _mm512_shuffle_i32x4(four[2], four[3], 0xEE);
    block[0] = _mm512_shuffle_i32x4(a, b, 0x88);
    block[1] = _mm512_shuffle_i32x4(a, b, 0xDD);
    block[2] = _mm512_shuffle_i32x4(c, d, 0x88);
    block[3] = _mm512_shuffle_i32x4(c, d, 0xDD);
}

/* Four blocks of one row against the digits of the activations, highest first. At most 24 *
 * 229,376 * 8 products a lane: far from 2^31, as is their sum over a block. */
PLUMB_INLINE_AVX512 __m512i quad_row(__m512i codes, const plumb_act_chunk *x, bool low) {
    __m512i even = plumb__fp4_bytes_avx512(codes);
    __m512i odd = plumb__fp4_bytes_avx512(_mm512_srli_epi16(codes, 4));
    __m512i sum = _mm512_setzero_si512();
    PLUMB_DOT_BYTES(sum, even, _mm512_loadu_si512(x->digit[1][0]));
    PLUMB_DOT_BYTES(sum, odd, _mm512_loadu_si512(x->digit[1][1]));
    sum = _mm512_slli_epi32(sum, 8);
    PLUMB_DOT_BYTES(sum, even, _mm512_loadu_si512(x->digit[0][0]));
    PLUMB_DOT_BYTES(sum, odd, _mm512_loadu_si512(x->digit[0][1]));
    if (!low) return sum;
    sum = _mm512_slli_epi32(sum, 3);
    PLUMB_DOT_BYTES(sum, even, _mm512_loadu_si512(x->digit[2][0]));
    PLUMB_DOT_BYTES(sum, odd, _mm512_loadu_si512(x->digit[2][1]));
    return sum;
}

/* D_b of four blocks. */
PLUMB_INLINE_AVX512 void quad_blocks(const weight_rows *w, int64_t at, __mmask64 mask,
                               const plumb_act_chunk *x, bool low, __m512 d[4]) {
    __m512i four[4], block[4];
    for (int i = 0; i < 4; i++) {
        __m512i row[4];
        for (int j = 0; j < 4; j++) {
            const uint8_t *codes = w->codes[4 * i + j] + at;
            _mm_prefetch((const char *)codes + AHEAD, _MM_HINT_T0);
            row[j] = quad_row(_mm512_maskz_loadu_epi8(mask, codes), x, low);
        }
        four[i] = join_four_rows(row);
    }
    transpose_quarters(four, block);
    const __m512 unit = _mm512_set1_ps(low ? 0x1p-10f : 0x1p-7f);
    for (int i = 0; i < 4; i++) {
        int32_t take = low ? 8 * x->take_high[i] + x->take_low[i] : x->take_high[i];
        block[i] = _mm512_add_epi32(block[i], _mm512_set1_epi32(take));
        d[i] = _mm512_mul_ps(_mm512_cvtepi32_ps(block[i]), unit);
    }
}

static inline bool any_low(const plumb_act_chunk *x) {
    return (x->has_low[0] | x->has_low[1] | x->has_low[2] | x->has_low[3]) != 0;
}

/* Blocks b .. b+count-1 of a quad. */
static inline void add_quad(const weight_rows *w, int64_t b, int64_t count, __m512i scales,
                            const plumb_act_chunk *x, running_sums *sums) {
    const int64_t block_bytes = PLUMB_BLOCK / 2;
    __mmask64 mask = ~(__mmask64)0 >> (64 - count * block_bytes);
    __m512 d[4];
    __m512i exponent[4];
    if (any_low(x)) quad_blocks(w, b * block_bytes, mask, x, true, d);
    else quad_blocks(w, b * block_bytes, mask, x, false, d);
    plumb__exponents_avx512(scales, exponent);
    for (int i = 0; i < 4; i++) {
        if (i == count) return;
        __m512 p = plumb__power_avx512(exponent[i], _mm512_set1_epi32(x->power[i]));
        sums->segment = _mm512_fmadd_ps(d[i], p, sums->segment);
        end_block(sums, b + i, w->blocks);
    }
}

static void fp4_rows(const weight_rows *w, const void *const *x, int64_t n_x, running_sums *sums) {
    enum { SCALES = 16 }; /* of a row, taken at a time */
    for (int64_t b = 0; b < w->blocks; b += SCALES) {
        int64_t count = w->blocks - b < SCALES ? w->blocks - b : SCALES;
        __m512i scales[4];
        plumb__transpose_avx512(w->scales, b, (__mmask16)((1u << count) - 1), scales);
        for (int64_t q = 0; 4 * q < count; q++)
            for (int64_t r = 0; r < n_x; r++) {
                const plumb_act_chunk *row = x[r];
                int64_t left = count - 4 * q;
                add_quad(w, b + 4 * q, left < 4 ? left : 4, scales[q], &row[b / 4 + q], &sums[r]);
            }
    }
}

/* ---- FP8 ------------------------------------------------------------------------------------- */

/* Sums of both weight planes with one plane of the activations. */
typedef struct plane_sums {
    __m512i high, low;
} plane_sums;

PLUMB_INLINE_AVX512 void add_pair(plane_sums *sum, __m512i high, __m512i low, const int16_t *x) {
    __m512i values = plumb__dword_avx512(x);
    PLUMB_DOT_WORDS(sum->high, high, values);
    PLUMB_DOT_WORDS(sum->low, low, values);
}

/* D_b of n_x activation rows for the block whose codes lie at row + at, block i of the chunks x. */
PLUMB_INLINE_AVX512 void fp8_block(const weight_rows *w, int64_t at,
                                   const plumb_act_chunk *const *x, int64_t i, int n_x, bool low, __m512 *d) {
    plane_sums main[PLUMB_FEW_ROWS], rest[PLUMB_FEW_ROWS];
    for (int r = 0; r < PLUMB_FEW_ROWS; r++)
        main[r] = rest[r] = (plane_sums){_mm512_setzero_si512(), _mm512_setzero_si512()};
    for (int half = 0; half < 2; half++) {
        __m512i dword[4];
        plumb__transpose_avx512(w->codes, at + 16 * half, 0xFFFF, dword);
        for (int j = 0; j < 4; j++) {
            __m512i high[2], low_plane[2];
            plumb__fp8_dword_avx512(dword[j], high, low_plane);
            for (int pair = 0; pair < 2; pair++)
                for (int r = 0; r < n_x; r++) {
                    int k = 16 * half + 4 * j + 2 * pair;
                    add_pair(&main[r], high[pair], low_plane[pair], &x[r]->high[i][k]);
                    if (low) add_pair(&rest[r], high[pair], low_plane[pair], &x[r]->low[i][k]);
                }
        }
    }
    for (int r = 0; r < n_x; r++)
        d[r] = low ? plumb__fp8_block_low_avx512(main[r].high, main[r].low, rest[r].high,
                                                 rest[r].low)
                   : plumb__fp8_block_avx512(main[r].high, main[r].low);
}

PLUMB_INLINE_AVX512 void fp8_rows(const weight_rows *w, const void *const *x, int n_x,
                            running_sums *sums) {
    for (int64_t b = 0; b < w->blocks; b++) {
        const plumb_act_chunk *chunk[PLUMB_FEW_ROWS];
        int64_t i = b % PLUMB_CHUNK_BLOCKS, at = b * PLUMB_BLOCK;
        int32_t low = 0;
        __m512 d[PLUMB_FEW_ROWS];
        for (int r = 0; r < n_x; r++) {
            chunk[r] = (const plumb_act_chunk *)x[r] + b / PLUMB_CHUNK_BLOCKS;
            low |= chunk[r]->has_low[i];
        }
        for (int r = 0; b % 2 == 0 && r < PLUMB_LANE_ROWS; r++) /* a line is two blocks */
            _mm_prefetch((const char *)w->codes[r] + at + AHEAD, _MM_HINT_T0);
        if (low) fp8_block(w, at, chunk, i, n_x, true, d);
        else fp8_block(w, at, chunk, i, n_x, false, d);
        __m512i exponent = _mm512_set1_epi32(w->scales[0][b] << 23); /* shared by the rows */
        for (int r = 0; r < n_x; r++) {
            __m512 p = plumb__power_avx512(exponent, _mm512_set1_epi32(chunk[r]->power[i]));
            sums[r].segment = _mm512_fmadd_ps(d[r], p, sums[r].segment);
            end_block(&sums[r], b, w->blocks);
        }
    }
}

void PLUMB_KERNEL(matvec)(const void *const *x, int64_t n_x, const plumb_matrix *w, int64_t n,
                          int64_t rows, __m512 *result) {
    weight_rows weights = find_weights(w, n, rows);
    running_sums sums[PLUMB_FEW_ROWS];
    for (int r = 0; r < PLUMB_FEW_ROWS; r++)
        sums[r] = (running_sums){_mm512_setzero_ps(), _mm512_setzero_ps()};
    if (w->type == PLUMB_MATRIX_FP4) fp4_rows(&weights, x, n_x, sums);
    else if (n_x == 1) fp8_rows(&weights, x, 1, sums);
    else fp8_rows(&weights, x, 2, sums);
    for (int64_t r = 0; r < n_x; r++) result[r] = sums[r].total;
}
