/* Quantised products with AVX-512: the layout of an activation row, and the pieces that the kernels in
 * place (one or two activation rows) and the panel kernels (many) share.
 *
 * A quantised activation times 2^9 is an integer of at most 18 bits, four of them significant.  Almost
 * all are multiples of 8: those go, divided by 8, into a HIGH plane (at most 28,672), the others, which
 * are then below 64, into a LOW plane, so that value = 8 * high + low with one of them zero.  A block
 * whose low plane is empty, about 98 of 100, needs half the products.  Against FP4 weights the high
 * plane is two balanced digits of 8 bits, the low plane one; against FP8 weights both are 16 bits; where
 * the processor has VDPBF16PS both are also kept as bf16, whose four significant bits lose nothing.
 *
 * Inside a block of 32 the order of k is free (docs/arithmetic.md section 3): each plane has the order
 * in which unpacking the weights leaves them.
 *
 * These sources are compiled for two levels, avx512 and avx512_bf16 (PLUMB_AVX512_BF16), and by the
 * tests a second time against portable C in place of the instructions (tests/kernels/emulated). */
#ifndef PLUMB_BACKEND_CPU_QUANTIZED_AVX512_H
#define PLUMB_BACKEND_CPU_QUANTIZED_AVX512_H

#include "backend/cpu/kernels/kernels.h"

#include <immintrin.h>

enum {
    PLUMB_LANE_ROWS = 16,   /* weight rows in a vector */
    PLUMB_CHUNK_BLOCKS = 4, /* blocks of an activation row that lie together */
    PLUMB_BLOCKS_PER_SEGMENT = 32,
    PLUMB_FEW_ROWS = 2      /* activation rows up to which weights are used in place */
};

/* Four blocks of an activation row; a row is an array of these, the blocks behind its end zero. */
typedef struct plumb_act_chunk {
    /* high = 256 * digit[1] + digit[0], low = digit[2]; of even k of all blocks, then of odd k */
    _Alignas(64) int8_t digit[3][2][PLUMB_CHUNK_BLOCKS * PLUMB_BLOCK / 2];
    /* Pairs k, k+2: 0 2 1 3, 4 6 5 7, ... */
    int16_t high[PLUMB_CHUNK_BLOCKS][PLUMB_BLOCK], low[PLUMB_CHUNK_BLOCKS][PLUMB_BLOCK];
#ifdef PLUMB_AVX512_BF16
    /* The values 2^-6 * high and 2^-9 * low.  Pairs k, k+4: 0 4 1 5 2 6 3 7, 8 12 ... */
    uint16_t bf16_high[PLUMB_CHUNK_BLOCKS][PLUMB_BLOCK], bf16_low[PLUMB_CHUNK_BLOCKS][PLUMB_BLOCK];
#endif
    int32_t power[PLUMB_CHUNK_BLOCKS];     /* exponent of the scale, shifted left by 23 */
    int32_t take_high[PLUMB_CHUNK_BLOCKS]; /* -12 times the sum of high, of low: see the FP4 kernels */
    int32_t take_low[PLUMB_CHUNK_BLOCKS];
    int32_t has_low[PLUMB_CHUNK_BLOCKS];
} plumb_act_chunk;

/* n_x (1 or 2) activation rows times weight rows n .. n+rows-1, at most sixteen and within one 32-row
 * scale tile: lane i of result[j] is weight row n + i times x[j]. */
void PLUMB_KERNEL(matvec)(const void *const *x, int64_t n_x, const plumb_matrix *w, int64_t n,
                          int64_t rows, __m512 *result);

/* The same for a panel of at most 32 weight rows and many activation rows: sums[j].total = {weight rows
 * 0..15, 16..31} of x[j].  scratch: matmul_scratch() bytes. */
enum { PLUMB_PANEL_GROUPS = 2, PLUMB_PANEL_ROWS = PLUMB_PANEL_GROUPS * PLUMB_LANE_ROWS };
typedef struct plumb_panel_sums {
    __m512 segment[PLUMB_PANEL_GROUPS], total[PLUMB_PANEL_GROUPS];
} plumb_panel_sums;
int64_t PLUMB_KERNEL(matmul_scratch)(void);
void PLUMB_KERNEL(matmul)(const void *const *x, int64_t n_x, const plumb_matrix *w, int64_t n,
                          int64_t rows, plumb_panel_sums *sums, void *scratch);

/* Keeps an accumulator in its register: gcc otherwise copies it around every dot instruction. */
#ifdef __AVX512F__
#define PLUMB_KEEP_AVX512(sum) __asm__("" : "+v"(sum))
#else /* emulated */
#define PLUMB_KEEP_AVX512(sum) ((void)0)
#endif

/* The loops over the rows of a tile must be unrolled, which clang does only where it sees their count, and
 * the loops over the vectors of a block must not, where gcc would run out of registers. */
#define PLUMB_INLINE_AVX512 __attribute__((always_inline)) static inline
#ifdef __clang__
#define PLUMB_ROLLED_AVX512 _Pragma("clang loop unroll(disable)")
#else
#define PLUMB_ROLLED_AVX512 _Pragma("GCC unroll 1")
#endif

/* sum += the products of four bytes (weights unsigned), of two 16-bit numbers, a lane. */
#define PLUMB_DOT_BYTES(sum, weights, values)                                                      \
    do {                                                                                           \
        (sum) = _mm512_dpbusd_epi32(sum, weights, values);                                         \
        PLUMB_KEEP_AVX512(sum);                                                                    \
    } while (0)
#define PLUMB_DOT_WORDS(sum, weights, values)                                                      \
    do {                                                                                           \
        (sum) = _mm512_dpwssd_epi32(sum, weights, values);                                         \
        PLUMB_KEEP_AVX512(sum);                                                                    \
    } while (0)

/* The same four bytes for all rows. */
static inline __m512i plumb__dword_avx512(const void *four_bytes) {
    int32_t value;
    memcpy(&value, four_bytes, sizeof value);
    return _mm512_set1_epi32(value);
}

/* P_b = 2^(ea + ew) from the two exponents shifted left by 23, ew biased by 127.  In 16-bit halves a sum
 * below the normal range is negative and becomes +0, one of 255 is infinity, one beyond saturates to a
 * NaN: the segment is not finite then, as it must be. */
static inline __m512 plumb__power_avx512(__m512i weight, __m512i act) {
    return _mm512_castsi512_ps(
        _mm512_max_epi16(_mm512_adds_epi16(weight, act), _mm512_setzero_si512()));
}

/* The addresses of sixteen rows, of which `rows` exist: the last one stands in for the missing ones. */
static inline void plumb__find_rows_avx512(const uint8_t *first, int64_t stride, int64_t rows,
                                           const uint8_t *row[PLUMB_LANE_ROWS]) {
    for (int64_t i = 0; i < PLUMB_LANE_ROWS; i++)
        row[i] = first + (i < rows ? i : rows - 1) * stride;
}

/* Sixteen rows by the bytes in `mask` of sixteen at row[i] + at, zeros in place of the others, which are
 * not read: lane i of out[j] holds bytes 4j .. 4j+3 of row i. */
static inline void plumb__transpose_avx512(const uint8_t *const row[PLUMB_LANE_ROWS], int64_t at,
                                           __mmask16 mask, __m512i out[4]) {
    __m512i r[4]; /* rows i, i+4, i+8, i+12 */
    for (int i = 0; i < 4; i++) {
        __m512i four = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(mask, row[i] + at));
        four = _mm512_inserti32x4(four, _mm_maskz_loadu_epi8(mask, row[i + 4] + at), 1);
        four = _mm512_inserti32x4(four, _mm_maskz_loadu_epi8(mask, row[i + 8] + at), 2);
        r[i] = _mm512_inserti32x4(four, _mm_maskz_loadu_epi8(mask, row[i + 12] + at), 3);
    }
    __m512i low01 = _mm512_unpacklo_epi32(r[0], r[1]), high01 = _mm512_unpackhi_epi32(r[0], r[1]);
    __m512i low23 = _mm512_unpacklo_epi32(r[2], r[3]), high23 = _mm512_unpackhi_epi32(r[2], r[3]);
    out[0] = _mm512_unpacklo_epi64(low01, low23);
    out[1] = _mm512_unpackhi_epi64(low01, low23);
    out[2] = _mm512_unpacklo_epi64(high01, high23);
    out[3] = _mm512_unpackhi_epi64(high01, high23);
}

/* Four scales a lane, one to a byte, as exponents shifted left by 23. */
static inline void plumb__exponents_avx512(__m512i scales, __m512i out[4]) {
    const __m512i exponent = _mm512_set1_epi32(0x7F800000);
    out[0] = _mm512_and_si512(_mm512_slli_epi32(scales, 23), exponent);
    out[1] = _mm512_and_si512(_mm512_slli_epi32(scales, 15), exponent);
    out[2] = _mm512_and_si512(_mm512_slli_epi32(scales, 7), exponent);
    out[3] = _mm512_and_si512(_mm512_srli_epi32(scales, 1), exponent);
}

/* Sixteen entries by the low four bits of every byte. */
static inline __m512i plumb__look_up_avx512(const int8_t table[16], __m512i codes) {
    const __m512i entries =
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)table));
    return _mm512_shuffle_epi8(entries, _mm512_and_si512(codes, _mm512_set1_epi8(15)));
}

/* FP4 codes (the low four bits) as bytes 2w + 12, from 0 to 24: VPDPBUSD takes them unsigned, and 12
 * times the sum of the activations is taken back. */
static inline __m512i plumb__fp4_bytes_avx512(__m512i codes) {
    static const int8_t shifted[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
    return plumb__look_up_avx512(shifted, codes);
}

/* Two FP8 codes a lane (the low byte of a half) as 16-bit planes: w * 2^9 = 256 * high + low with
 * |high| <= 896 and 0 <= low < 256.  w * 2^9 = m * p, where p = +-2^(max(e, 1) - 1) and m has the implicit
 * bit: the halves of (256 * m) * p are high and 256 * low.  `index` holds sign and e in its low five
 * bits, `fraction` three bits from bit 8 on; what else they hold does not matter. */
static inline void plumb__fp8_planes_avx512(__m512i index, __m512i fraction, __m512i *high,
                                            __m512i *low) {
    static const int16_t powers[32] = {
        1,     1,     2,     4,     8,     16,    32,    64,     /* positive, e = 0 .. 15 */
        128,   256,   512,   1024,  2048,  4096,  8192,  16384,  /* */
        -1,    -1,    -2,    -4,    -8,    -16,   -32,   -64,    /* negative */
        -128,  -256,  -512,  -1024, -2048, -4096, -8192, -16384};
    static const int16_t implicit[32] = {
        0, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048,
        0, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048};
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

/* high * 2^shift + low, rounded once to float32, where 0 <= low < 2^shift, shift is at most 11 and
 * |high| < 2^30.  All of `high` but its lowest 8 bits is one float, of at most 22 significant bits; what
 * remains is another, of at most 19: the fma adds them and rounds.  `rest` is the whole modulo 2^32. */
static inline __m512 plumb__join_avx512(__m512i high, __m512i rest, int shift) {
    __m512i top = _mm512_and_si512(high, _mm512_set1_epi32(~255));
    rest = _mm512_and_si512(rest, _mm512_set1_epi32((256 << shift) - 1));
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(top), _mm512_set1_ps((float)(1 << shift)),
                           _mm512_cvtepi32_ps(rest));
}

/* D_b against FP8 weights from the sums of 32 products of the two weight planes with the high plane of
 * the activations: |high| <= 32 * 896 * 28,672 < 2^30, |low| <= 32 * 255 * 28,672 < 2^28. */
static inline __m512 plumb__fp8_block_avx512(__m512i high, __m512i low) {
    __m512i rest = _mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
    high = _mm512_add_epi32(high, _mm512_srai_epi32(low, 8));
    return _mm512_mul_ps(plumb__join_avx512(high, rest, 8), _mm512_set1_ps(0x1p-15f));
}

/* The same where the low plane is not empty: |high_l| <= 32 * 896 * 60, |low_l| <= 32 * 255 * 60.  In
 * units of 2^-18 the sum is 8 * (256 * high + low) + 256 * high_l + low_l; what of it is not 2048 *
 * (high + low / 256) is below 2^29, and its upper bits join `high`. */
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
