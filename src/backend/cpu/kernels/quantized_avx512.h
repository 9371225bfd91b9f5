/* Quantised products with AVX-512: the layout of an activation row, and the pieces that the kernels
 * in place (one or two activation rows) and the panel kernels (many) share.
 *
 * A quantised activation times 2^9 is an integer of at most 18 bits, four of them significant.
 * Almost all are multiples of 8: those go, divided by 8, into a HIGH plane (at most 28,672), the
 * others, which are then below 64, into a LOW plane, so that value = 8 * high + low with one of
 * them zero. A block whose low plane is empty, about 98 of 100, needs half the products. Against
 * FP4 weights the high plane is two balanced digits of 8 bits, the low plane one; against FP8
 * weights both are 16 bits; where the processor has VDPBF16PS both are also kept as bf16, whose
 * four significant bits lose nothing.
 *
 * Inside a block of 32 the order of k is free (docs/arithmetic.md section 3): each plane has the
 * order in which unpacking the weights leaves them.
 *
 * These sources are compiled for two levels, avx512 and avx512_bf16 (PLUMB_AVX512_BF16), and by
 * the tests a second time against portable C in place of the instructions
 * (tests/kernels/emulated). */
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
    int32_t power[PLUMB_CHUNK_BLOCKS]; /* exponent of the scale, shifted left by 23 */
    /* -12 times the sum of high, of low: what bytes 2w + 12 add too much */
    int32_t take_high[PLUMB_CHUNK_BLOCKS];
    int32_t take_low[PLUMB_CHUNK_BLOCKS];
    int32_t has_low[PLUMB_CHUNK_BLOCKS];
} plumb_act_chunk;

/* n_x (1 or 2) activation rows times weight rows n .. n+rows-1, at most sixteen and within one
 * 32-row scale tile: lane i of result[j] is weight row n + i times x[j]. */
void PLUMB_KERNEL(matvec)(const void *const *x, int64_t n_x, const plumb_matrix *w, int64_t n,
                          int64_t rows, __m512 *result);

/* The same for a panel of at most 32 weight rows and many activation rows: sums[j].total =
 * {weight rows 0..15, 16..31} of x[j]. scratch: matmul_scratch() bytes. */
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

/* The loops over the rows of a tile must be unrolled, which clang does only where it sees their
 * count, and the loops over the vectors of a block must not, where gcc would run out of
 * registers. */
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

/* P_b = 2^(ea + ew) from the two exponents shifted left by 23, ew biased by 127. In 16-bit
 * halves a sum below the normal range is negative and becomes +0, one of 255 is infinity, one
 * beyond saturates to a NaN: the segment is not finite then, as it must be. */
static inline __m512 plumb__power_avx512(__m512i weight, __m512i act) {
    return _mm512_castsi512_ps(
        _mm512_max_epi16(_mm512_adds_epi16(weight, act), _mm512_setzero_si512()));
}

/* The addresses of sixteen rows, of which `rows` exist: the last one stands in for the missing
 * ones. */
static inline void plumb__find_rows_avx512(const uint8_t *first, int64_t stride, int64_t rows,
                                           const uint8_t *row[PLUMB_LANE_ROWS]) {
    for (int64_t i = 0; i < PLUMB_LANE_ROWS; i++)
        row[i] = first + (i < rows ? i : rows - 1) * stride;
}

/* Sixteen rows by the bytes in `mask` of sixteen at row[i] + at, zeros in place of the others,
 * which are not read: lane i of out[j] holds bytes 4j .. 4j+3 of row i. */
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

/* FP4 codes (the low four bits) as bytes 2w + 12, from 0 to 24: VPDPBUSD takes them unsigned,
 * and 12 times the sum of the activations is taken back. */
static inline __m512i plumb__fp4_bytes_avx512(__m512i codes) {
    static const int8_t shifted[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
    return plumb__look_up_avx512(shifted, codes);
}

#endif
