/* Quantised products with AVX2: the layout of an activation row, and what the single-row and the
 * many-row kernels share.
 *
 * A quantised activation times 2^9 is an integer of at most 18 bits with four significant ones.
 * Nearly all of a block's 32 values are multiples of a power of two that leaves them 16 bits; the few
 * others, too small for that, are called its REST and are multiplied one by one, in integers, beside
 * the vectors.
 *
 *   array    taken by          what it holds                                      its rest
 *   digit    FP4, one row      value / 8 as two balanced digits of 8 bits         digit_rest
 *   eighth   FP4, many rows    value / 8                                          digit_rest
 *   high     FP8               value / 2^shift; shift is chosen per block so      rest
 *                              that a block's products cannot overflow 32 bits
 *
 * FP8 weights are taken as 16 bits too: w * 2^6, exact from 2^-3 up.  The few smaller ones (one in a
 * thousand of a Gaussian matrix) are SMALL weights, multiplied one by one as well; finding them costs
 * a pass over the matrix, which plumb__prepare_avx2 does once and writes down.
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

/* ---- Activations ----------------------------------------------------------------------------- */

/* Orders of the 16-bit values within a block. */
enum {
    PLUMB_ORDER_ROW,                /* 0-7 16-23 8-15 24-31: unpacking 32 bytes of one row */
    PLUMB_ORDER_LANE,               /* 0 2 1 3, 4 6 5 7, ...: unpacking dwords of eight rows */
    PLUMB_ORDER_COUNT
};

/* The scale exponent of a block plus that of its sums' unit, at an exponent's place in a float: what is
 * added to the weights' exponents.  A sum in units of 2^u times P * 2^u is D * P while both powers are
 * normal numbers, which holds when all exponents of a chunk lie within least .. most. */
typedef struct plumb_chunk_numbers {
    int32_t field[PLUMB_CHUNK_BLOCKS];
    int32_t least, most;            /* of the weights' exponents */
    /* A rest is one element nearly always: here, where the chunk's other numbers are at hand. */
    uint8_t rest_blocks;            /* bit i: block i of the chunk has a rest */
    uint8_t long_rests;             /* bit i: of more than one element */
    uint8_t shift[PLUMB_CHUNK_BLOCKS];
    uint8_t rest_k[PLUMB_CHUNK_BLOCKS];     /* the first element's place in its block */
    int16_t rest_value[PLUMB_CHUNK_BLOCKS]; /* and its value */
} plumb_chunk_numbers;

typedef struct plumb_block_numbers {
    int32_t exponent;               /* of the scale */
    int32_t shift;
    uint32_t rest, digit_rest;      /* bit k: element k is not in high, not in eighth and digits */
    int32_t twelve_sums;            /* 12 times the sum of the values that have digits */
} plumb_block_numbers;

/* A view of a row's arrays; `blocks` is rounded up to a whole chunk, padding is zero.  Digits lie in
 * pairs of blocks, 64 bytes a pair: even k of the first block, of the second, then odd k of the first,
 * of the second. */
typedef struct plumb_row_avx2 {
    int32_t *value;                 /* [32 * blocks] times 2^9, in plain order */
    int16_t *high[PLUMB_ORDER_COUNT]; /* [32 * blocks] value >> shift, 0 for the rest */
    int16_t *eighth;                /* [32 * blocks] value / 8 in PLUMB_ORDER_LANE, 0 if that is none */
    int8_t *digit[2];               /* [32 * blocks] value / 8 = 256 * digit[1] + digit[0] */
    plumb_block_numbers *block;     /* [blocks] */
    plumb_chunk_numbers *fp4, *fp8; /* [blocks / 8] for sums with `eighth`, with `high` */
    uint8_t *raise, *lower;         /* [4 * blocks] four copies of max(exponent, 0), max(-exponent, 0) */
} plumb_row_avx2;

static inline int64_t plumb__padded_blocks_avx2(int64_t k) {
    int64_t blocks = k / PLUMB_BLOCK;
    return (blocks + PLUMB_CHUNK_BLOCKS - 1) / PLUMB_CHUNK_BLOCKS * PLUMB_CHUNK_BLOCKS;
}

static inline plumb_row_avx2 plumb__row_view_avx2(const void *row, int64_t k) {
    int64_t blocks = plumb__padded_blocks_avx2(k), n = blocks * PLUMB_BLOCK;
    int32_t *value = (int32_t *)(uintptr_t)row;
    int16_t *high = (int16_t *)(void *)(value + n);
    int8_t *digit = (int8_t *)(void *)(high + (PLUMB_ORDER_COUNT + 1) * n);
    plumb_block_numbers *block = (plumb_block_numbers *)(void *)(digit + 2 * n);
    plumb_chunk_numbers *chunk = (plumb_chunk_numbers *)(void *)(block + blocks);
    int64_t chunks = blocks / PLUMB_CHUNK_BLOCKS;
    uint8_t *copies = (uint8_t *)(chunk + 2 * chunks);
    return (plumb_row_avx2){.value = value, .high = {high, high + n}, .eighth = high + 2 * n,
                            .digit = {digit, digit + n}, .block = block, .fp4 = chunk,
                            .fp8 = chunk + chunks, .raise = copies, .lower = copies + 4 * blocks};
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* The small weights of an FP8 matrix, by panels of eight rows: entries first[p] .. first[p + 1] - 1
 * belong to rows 8p .. 8p+7. */
typedef struct plumb_small_weight {
    uint32_t k;
    int16_t row;                    /* 0..7 */
    int16_t value;                  /* times 2^9, below 64 in magnitude */
} plumb_small_weight;

/* What plumb__prepare_avx2 leaves in a matrix's `prepared`. */
typedef struct plumb_small_weights {
    const int64_t *first;           /* [panels + 1] */
    const plumb_small_weight *entry;
} plumb_small_weights;

plumb_small_weights plumb__small_weights_avx2(const plumb_matrix *w);
/* Small weights of rows n .. n+rows-1; at most rows * k entries.  Returns how many. */
int64_t plumb__find_small_avx2(const plumb_matrix *w, int64_t n, int64_t rows,
                               plumb_small_weight *entry);

/* ---- Products -------------------------------------------------------------------------------- */

/* One activation row times weight rows n .. n+rows-1, at most eight and within one 32-row scale
 * tile: lane i of *result is weight row n + i.  last: the caller does not go on with the rows behind
 * them.  scratch: plumb__matvec_scratch_avx2(k). */
int64_t plumb__matvec_scratch_avx2(int64_t k);
void plumb__matvec_avx2(const plumb_row_avx2 *x, const plumb_matrix *w, int64_t n, int64_t rows,
                        bool last, void *scratch, __m256 *result);

/* The same for sixteen weight rows, of which `rows` exist, and many activation rows:
 * sums[i] = {weight rows 0..7, 8..15} of x[i].  scratch: plumb__matmul_scratch_avx2(). */
enum { PLUMB_PANEL_ROWS = 2 * PLUMB_LANE_ROWS };
typedef struct plumb_panel_sums {
    __m256 segment[2], total[2];
} plumb_panel_sums;
int64_t plumb__matmul_scratch_avx2(void);
void plumb__matmul_avx2(const void *const *x, int64_t n_x, const plumb_matrix *w, int64_t n,
                        int64_t rows, plumb_panel_sums *sums, void *scratch);

/* Keeps a value in a register from here on: gcc otherwise loads codes once per use, by way of the stack,
 * and puts off the sums of a tree until registers run out. */
#define PLUMB_KEEP_AVX2(value) __asm__("" : "+x"(value))

/* P_b: 2^(ea + ew) from exponents biased by 127; +0 below the normal range, infinity above it. */
static inline __m256 plumb__power_avx2(__m256i biased) {
    __m256i e = _mm256_max_epi32(biased, _mm256_setzero_si256());
    e = _mm256_min_epi32(e, _mm256_set1_epi32(255));
    return _mm256_castsi256_ps(_mm256_slli_epi32(e, 23));
}

/* Four doubles, rounded once, in each half. */
static inline __m256 plumb__round_avx2(const __m256d sum[2]) {
    return _mm256_set_m128(_mm256_cvtpd_ps(sum[1]), _mm256_cvtpd_ps(sum[0]));
}

static inline __m256i plumb__load_avx2(const void *at) {
    return _mm256_loadu_si256((const __m256i *)at);
}

/* One byte table for both halves of a vector. */
static inline __m256i plumb__table_avx2(const int8_t table[16]) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
}

#endif
