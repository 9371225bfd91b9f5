/* Quantised products with NEON and its dot products: the layout of an activation row, and the
 * pieces that the single-row and the many-row kernels share.
 *
 * A quantised activation times 2^9 is an integer of at most 18 bits.  Almost all are multiples of 8:
 * those go, divided by 8, into a HIGH plane of 16 bits (at most 28,672), the others, which are then
 * below 64, into a LOW plane, so that value = 8 * high + low with one of them zero.  A block whose
 * low plane is empty, about 98 of 100, needs half the products.
 *
 * Against FP4 weights, twice which are bytes of at most 12, the high plane is two balanced digits of
 * 8 bits, the low plane one.  A block is at most 32 * 12 * 229,376 = 88,080,384: exact in int32.
 *
 * FP8 weights times 2^9 are 256 * big + small with one of them zero (plumb__fp8_decode_neon).  Whatever
 * the code, |big| <= 960 and |small| <= 1,920, so a block of either against the high plane is at most
 * 32 * 1,920 * 28,672 = 1,761,607,680, below 2^31: exact in int32, in any order.  The planes are joined
 * in int64. */
#ifndef PLUMB_BACKEND_CPU_QUANTIZED_NEON_H
#define PLUMB_BACKEND_CPU_QUANTIZED_NEON_H

#include "backend/cpu/kernels/kernels.h"

#include <arm_neon.h>

enum {
    PLUMB_LANE_ROWS = 4,            /* weight rows in a vector */
    PLUMB_BLOCKS_PER_SEGMENT = 32,
    PLUMB_DIGITS = 3
};

/* A view of a row's arrays.  Planes are in the order of k; the digits of a block are its sixteen even
 * k, then its odd ones, which is how FP4 codes unpack. */
typedef struct plumb_row_neon {
    int16_t *high, *low;         /* [k] */
    int8_t *digit[PLUMB_DIGITS]; /* [k]; high = 256 * digit[1] + digit[0], low = digit[2] */
    int32_t *exponent;           /* [k / 32] */
    int32_t *has_low;            /* [k / 32] */
} plumb_row_neon;

plumb_row_neon plumb__row_view_neon(const void *row, int64_t k);

/* One activation row times weight rows n .. n+rows-1, at most four and within one 32-row scale tile:
 * lane i of the result is weight row n + i. */
float32x4_t plumb__matvec_neon(plumb_row_neon x, const plumb_matrix *w, int64_t n, int64_t rows);

/* The same for eight weight rows, of which `rows` exist, and many activation rows:
 * sums[i].total = {weight rows 0..3, 4..7} of x[i].  scratch: plumb__matmul_scratch_neon(). */
enum { PLUMB_PANEL_HALVES = 2, PLUMB_PANEL_ROWS = PLUMB_PANEL_HALVES * PLUMB_LANE_ROWS };
typedef struct plumb_panel_sums {
    float32x4_t segment[PLUMB_PANEL_HALVES], total[PLUMB_PANEL_HALVES];
} plumb_panel_sums;
int64_t plumb__matmul_scratch_neon(void);
void plumb__matmul_neon(const void *const *x, int64_t n_x, const plumb_matrix *w, int64_t n,
                        int64_t rows, plumb_panel_sums *sums, void *scratch);

/* ---- Weights --------------------------------------------------------------------------------- */

/* Sixteen bytes of FP4 codes as twice their values. */
typedef struct plumb_fp4_pair {
    int8x16_t even, odd;
} plumb_fp4_pair;

static inline plumb_fp4_pair plumb__fp4_decode_neon(uint8x16_t codes) {
    static const int8_t twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    const int8x16_t table = vld1q_s8(twice);
    return (plumb_fp4_pair){vqtbl1q_s8(table, vandq_u8(codes, vdupq_n_u8(15))),
                            vqtbl1q_s8(table, vshrq_n_u8(codes, 4))};
}

/* Sixteen FP8 codes times 2^9 as 256 * big + small. */
typedef struct plumb_fp8_planes {
    int16x8_t big[2], small[2];
} plumb_fp8_planes;

/* w * 2^9 = m * 2^p: m the mantissa of at most 15 with its implicit bit, p = max(e, 1) - 1 from 0 to
 * 14.  Fifteen powers are one too many for two bytes of positive ones: both factors are negated, and
 * -2^7 is a byte. */
static inline plumb_fp8_planes plumb__fp8_decode_neon(uint8x16_t code) {
    static const int8_t power_small[16] = {-1, -1, -2, -4, -8, -16, -32, -64, -128};
    static const int8_t power_big[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -2, -4, -8, -16, -32, -64};
    /* By sign and exponent, what to add to the mantissa's three bits to have -m.  Where m is positive
     * they are complemented first, which is their negative less one. */
    static const int8_t implicit[32] = {1, -7, -7, -7, -7, -7, -7, -7, -7, -7, -7,
                                        -7, -7, -7, -7, -7, 0, 8, 8, 8, 8, 8,
                                        8, 8, 8, 8, 8, 8, 8, 8, 8, 8};
    const int8x16x2_t base = {{vld1q_s8(implicit), vld1q_s8(implicit + 16)}};
    uint8x16_t sign_exponent = vshrq_n_u8(code, 3);
    uint8x16_t exponent = vandq_u8(sign_exponent, vdupq_n_u8(15));
    uint8x16_t positive = vcgezq_s8(vreinterpretq_s8_u8(code));
    uint8x16_t bits = veorq_u8(vandq_u8(code, vdupq_n_u8(7)), positive);
    int8x16_t m = vaddq_s8(vqtbl2q_s8(base, sign_exponent), vreinterpretq_s8_u8(bits));
    int8x16_t big = vqtbl1q_s8(vld1q_s8(power_big), exponent);
    int8x16_t small = vqtbl1q_s8(vld1q_s8(power_small), exponent);
    return (plumb_fp8_planes){{vmull_s8(vget_low_s8(m), vget_low_s8(big)), vmull_high_s8(m, big)},
                              {vmull_s8(vget_low_s8(m), vget_low_s8(small)),
                               vmull_high_s8(m, small)}};
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* Block sums of both weight planes against one activation plane; the lanes are weight rows. */
typedef struct plumb_plane_sums {
    int32x4_t big, small;
} plumb_plane_sums;

/* The two joined, in int64: with the units of the planes, D_b before its rounding, below 2^41. */
typedef struct plumb_exact_sums {
    int64x2_t v[2];
} plumb_exact_sums;

static inline plumb_exact_sums plumb__join_planes_neon(plumb_plane_sums sum) {
    int64x2_t low = vshll_n_s32(vget_low_s32(sum.big), 8), high = vshll_high_n_s32(sum.big, 8);
    return (plumb_exact_sums){{vaddw_s32(low, vget_low_s32(sum.small)),
                               vaddw_high_s32(high, sum.small)}};
}

/* D_b of FP8 blocks: value = 8 * high + low, and every int64 of the sums is a double, so that the
 * narrowing to float32 is the one rounding. */
static inline float32x4_t plumb__fp8_result_neon(plumb_plane_sums high,
                                                 const plumb_plane_sums *low) {
    plumb_exact_sums sum = plumb__join_planes_neon(high);
    for (int i = 0; i < 2; i++) sum.v[i] = vshlq_n_s64(sum.v[i], 3);
    if (low) {
        plumb_exact_sums rest = plumb__join_planes_neon(*low);
        for (int i = 0; i < 2; i++) sum.v[i] = vaddq_s64(sum.v[i], rest.v[i]);
    }
    float32x2_t first = vcvt_f32_f64(vcvtq_f64_s64(sum.v[0]));
    float32x4_t d = vcvt_high_f32_f64(first, vcvtq_f64_s64(sum.v[1]));
    return vmulq_n_f32(d, 0x1p-18f);
}

/* D_b of FP4 blocks, from sums in units of 2^-10: the conversion is the one rounding. */
static inline float32x4_t plumb__fp4_result_neon(int32x4_t sum) {
    return vmulq_n_f32(vcvtq_f32_s32(sum), 0x1p-10f);
}

/* P_b: 2^(ea + ew) from exponents biased by 127; +0 below the normal range, infinity above it. */
static inline float32x4_t plumb__power_neon(int32x4_t biased) {
    int32x4_t e = vminq_s32(vmaxq_s32(biased, vdupq_n_s32(0)), vdupq_n_s32(255));
    return vreinterpretq_f32_s32(vshlq_n_s32(e, 23));
}

/* A row that is past the last one is the last one again: read, never used. */
static inline int64_t plumb__existing_row(int64_t row, int64_t rows) {
    return row < rows ? row : rows - 1;
}

#endif
