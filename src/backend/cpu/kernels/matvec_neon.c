/* One activation row against four weight rows: what decoding does all day.
 *
 * Weights are read in the order they have in memory and unpacked in registers.  A vector holds k of
 * ONE weight row; pairwise additions of four rows' vectors join a block's products and leave one row
 * to a lane, where the contract's chain of blocks runs. */
#include "backend/cpu/kernels/quantized_neon.h"

/* Sums of four vectors, one to a lane. */
static inline int32x4_t join_rows(const int32x4_t v[PLUMB_LANE_ROWS]) {
    return vpaddq_s32(vpaddq_s32(v[0], v[1]), vpaddq_s32(v[2], v[3]));
}

/* ---- FP4 ------------------------------------------------------------------------------------- */

/* One digit of a block's activations. */
typedef struct digits {
    int8x16_t even, odd;
} digits;

static inline digits load_digits(const int8_t *digit) {
    return (digits){vld1q_s8(digit), vld1q_s8(digit + 16)};
}

static inline int32x4_t add_digits(int32x4_t sum, plumb_fp4_pair w, digits x) {
    return vdotq_s32(vdotq_s32(sum, w.even, x.even), w.odd, x.odd);
}

/* D_b of four rows: 8 * (256 * digit 1 + digit 0) + digit 2 by Horner's rule. */
static inline float32x4_t four_blocks_fp4(const uint8_t *const codes[PLUMB_LANE_ROWS], int64_t b,
                                          plumb_row_neon x) {
    int64_t at = b * PLUMB_BLOCK;
    digits digit1 = load_digits(x.digit[1] + at), digit0 = load_digits(x.digit[0] + at);
    int32x4_t part[PLUMB_LANE_ROWS];
    for (int r = 0; r < PLUMB_LANE_ROWS; r++) {
        plumb_fp4_pair w = plumb__fp4_decode_neon(vld1q_u8(codes[r] + at / 2));
        int32x4_t sum = add_digits(vdupq_n_s32(0), w, digit1);
        part[r] = vshlq_n_s32(add_digits(vshlq_n_s32(sum, 8), w, digit0), 3);
    }
    if (x.has_low[b]) {
        digits digit2 = load_digits(x.digit[2] + at);
        for (int r = 0; r < PLUMB_LANE_ROWS; r++) {
            plumb_fp4_pair w = plumb__fp4_decode_neon(vld1q_u8(codes[r] + at / 2));
            part[r] = add_digits(part[r], w, digit2);
        }
    }
    return plumb__fp4_result_neon(join_rows(part));
}

/* ---- FP8 ------------------------------------------------------------------------------------- */

/* Partial sums of one block of one row against one activation plane. */
static inline plumb_plane_sums block_fp8(const uint8_t *codes, const int16_t *value) {
    plumb_plane_sums sum = {vdupq_n_s32(0), vdupq_n_s32(0)};
    for (int part = 0; part < 2; part++) {
        plumb_fp8_planes w = plumb__fp8_decode_neon(vld1q_u8(codes + 16 * part));
        for (int i = 0; i < 2; i++) {
            int16x8_t a = vld1q_s16(value + 16 * part + 8 * i);
            sum.big = vmlal_s16(sum.big, vget_low_s16(w.big[i]), vget_low_s16(a));
            sum.big = vmlal_high_s16(sum.big, w.big[i], a);
            sum.small = vmlal_s16(sum.small, vget_low_s16(w.small[i]), vget_low_s16(a));
            sum.small = vmlal_high_s16(sum.small, w.small[i], a);
        }
    }
    return sum;
}

/* Ends a row's work.  A compiler that unpacks several rows at once runs out of registers. */
#define KEEP(sum) __asm__ volatile("" : "+w"(sum) : : "memory")

static inline plumb_plane_sums plane_fp8(const uint8_t *const codes[PLUMB_LANE_ROWS], int64_t at,
                                         const int16_t *plane) {
    int32x4_t big[PLUMB_LANE_ROWS], small[PLUMB_LANE_ROWS];
    for (int r = 0; r < PLUMB_LANE_ROWS; r++) {
        plumb_plane_sums sum = block_fp8(codes[r] + at, plane + at);
        KEEP(sum.big);
        KEEP(sum.small);
        big[r] = sum.big;
        small[r] = sum.small;
    }
    return (plumb_plane_sums){join_rows(big), join_rows(small)};
}

static inline float32x4_t four_blocks_fp8(const uint8_t *const codes[PLUMB_LANE_ROWS], int64_t b,
                                          plumb_row_neon x) {
    plumb_plane_sums high = plane_fp8(codes, b * PLUMB_BLOCK, x.high);
    if (!x.has_low[b]) return plumb__fp8_result_neon(high, NULL);
    plumb_plane_sums low = plane_fp8(codes, b * PLUMB_BLOCK, x.low);
    return plumb__fp8_result_neon(high, &low);
}

/* ---- Four rows ------------------------------------------------------------------------------- */

static inline float32x4_t four_rows(plumb_row_neon x, const plumb_matrix *w, int64_t n,
                                    int64_t rows, bool fp8) {
    int64_t blocks = w->k / PLUMB_BLOCK, size = fp8 ? PLUMB_BLOCK : PLUMB_BLOCK / 2;
    const uint8_t *codes[PLUMB_LANE_ROWS], *scales[PLUMB_LANE_ROWS];
    for (int r = 0; r < PLUMB_LANE_ROWS; r++) {
        int64_t row = n + plumb__existing_row(r, rows);
        codes[r] = (const uint8_t *)w->codes + row * blocks * size;
        scales[r] = w->scales + (fp8 ? row / PLUMB_BLOCK : row) * blocks;
    }
    float32x4_t total = vdupq_n_f32(0.0f), segment = total;
    for (int64_t b = 0; b < blocks; b++) {
        float32x4_t d = fp8 ? four_blocks_fp8(codes, b, x) : four_blocks_fp4(codes, b, x);
        const int32_t ew[PLUMB_LANE_ROWS] = {scales[0][b], scales[1][b], scales[2][b],
                                             scales[3][b]};
        int32x4_t biased = vaddq_s32(fp8 ? vdupq_n_s32(ew[0]) : vld1q_s32(ew),
                                     vdupq_n_s32(x.exponent[b]));
        segment = vfmaq_f32(segment, d, plumb__power_neon(biased));
        if ((b + 1) % PLUMB_BLOCKS_PER_SEGMENT == 0 || b + 1 == blocks) {
            total = b < PLUMB_BLOCKS_PER_SEGMENT ? segment : vaddq_f32(total, segment);
            segment = vdupq_n_f32(0.0f);
        }
    }
    return total;
}

float32x4_t plumb__matvec_neon(plumb_row_neon x, const plumb_matrix *w, int64_t n, int64_t rows) {
    return w->type == PLUMB_MATRIX_FP8 ? four_rows(x, w, n, rows, true)
                                       : four_rows(x, w, n, rows, false);
}
