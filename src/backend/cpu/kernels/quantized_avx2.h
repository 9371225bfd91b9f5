/* Quantised products with AVX2: the layout of an activation row, and the pieces that the
 * single-row and the many-row kernels share.
 *
 * A quantised activation times 2^9 is an integer of at most 18 bits.  Almost all are multiples of 8:
 * those go, divided by 8, into a HIGH plane of 16 bits, the others, which are then below 64, into a
 * LOW plane, so that value = 8 * high + low with one of them zero.  A block whose low plane is
 * empty, about 98 of 100, needs half the products.  Against FP4 weights the high plane is two
 * balanced digits of 8 bits, the low plane one.
 *
 * Inside a block of 32 the order of k is free (docs/arithmetic.md section 3): each array has the
 * order in which unpacking the weights leaves them. */
#ifndef PLUMB_BACKEND_CPU_QUANTIZED_AVX2_H
#define PLUMB_BACKEND_CPU_QUANTIZED_AVX2_H

#include "backend/cpu/kernels/kernels.h"

#include <immintrin.h>

enum {
    PLUMB_LANE_ROWS = 8,            /* weight rows in a vector */
    PLUMB_CHUNK_BLOCKS = 8,         /* blocks taken at a time */
    PLUMB_BLOCKS_PER_SEGMENT = 32
};

/* Orders of the 16-bit planes within a block. */
enum {
    PLUMB_ORDER_ROW,                /* 0-7 16-23 8-15 24-31: unpacking 32 bytes of one row */
    PLUMB_ORDER_LANE,               /* even ones, then odd ones: unpacking dwords of eight rows */
    PLUMB_ORDER_COUNT
};

/* Digits lie in pairs of blocks, 64 bytes a pair: even k of the first block, of the second, then odd
 * k of the first, of the second. */
enum { PLUMB_DIGITS = 3 };

/* A view of a row's arrays; `blocks` is rounded up to a whole chunk, the rest is zero. */
typedef struct plumb_row_avx2 {
    int16_t *high[PLUMB_ORDER_COUNT], *low[PLUMB_ORDER_COUNT]; /* [32 * blocks] */
    int8_t *digit[PLUMB_DIGITS];    /* [32 * blocks]; high = 256 * digit[1] + digit[0], low = digit[2] */
    int32_t *sum;                   /* [blocks] of the 32 values */
    int32_t *exponent;              /* [blocks] */
    int32_t *has_low;               /* [blocks] */
} plumb_row_avx2;

plumb_row_avx2 plumb__row_view_avx2(const void *row, int64_t k);

/* One activation row times weight rows n .. n+rows-1, at most eight and within one 32-row scale
 * tile: lane i of *result is weight row n + i. */
void plumb__matvec_avx2(plumb_row_avx2 x, const plumb_matrix *w, int64_t n, int64_t rows,
                        __m256 *result);

/* The same for sixteen weight rows, of which `rows` exist, and many activation rows:
 * sums[i] = {weight rows 0..7, 8..15} of x[i].  scratch: plumb__matmul_scratch_avx2(). */
enum { PLUMB_PANEL_ROWS = 2 * PLUMB_LANE_ROWS };
typedef struct plumb_panel_sums {
    __m256 segment[2], total[2];
} plumb_panel_sums;
int64_t plumb__matmul_scratch_avx2(void);
void plumb__matmul_avx2(const void *const *x, int64_t n_x, const plumb_matrix *w, int64_t n,
                        int64_t rows, plumb_panel_sums *sums, void *scratch);

/* Keeps a running sum where it is: gcc otherwise regroups a chain of integer additions into a tree that
 * needs more registers than there are. */
#define PLUMB_KEEP_AVX2(sum) __asm__("" : "+x"(sum))

/* P_b: 2^(ea + ew) from exponents biased by 127; +0 below the normal range, infinity above it. */
static inline __m256 plumb__power_avx2(__m256i biased) {
    __m256i e = _mm256_max_epi32(biased, _mm256_setzero_si256());
    e = _mm256_min_epi32(e, _mm256_set1_epi32(255));
    return _mm256_castsi256_ps(_mm256_slli_epi32(e, 23));
}

/* 256 * high + low of eight lanes times 2^-15, rounded once: exact in double. */
static inline __m256d plumb__join_avx2(__m128i high, __m128i low) {
    return _mm256_add_pd(_mm256_mul_pd(_mm256_cvtepi32_pd(high), _mm256_set1_pd(256.0)),
                         _mm256_cvtepi32_pd(low));
}

/* One byte table for both halves of a vector. */
static inline __m256i plumb__table_avx2(const int8_t table[16]) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
}

#endif
