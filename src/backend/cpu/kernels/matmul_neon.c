/* Many activation rows against eight weight rows: what prefill does all day.
 *
 * Eight rows by eight blocks of weights are unpacked once into scratch, interleaved so that a lane
 * holds the next few k of its own row, and meet every activation row, four at a time.  Nothing is
 * summed across lanes: an activation is an operand by element, and a block sum is ready when its last
 * product is. */
#include "backend/cpu/kernels/quantized_neon.h"

enum {
    HALVES = PLUMB_PANEL_HALVES, /* of a panel: four weight rows each */
    CHUNK_BLOCKS = 8,            /* unpacked at a time: what the first-level cache holds */
    FP4_GROUPS = 4,              /* of four even k, and as many of odd ones */
    QUAD = 4                     /* activation rows that share a load of weights */
};

/* One block of a panel, unpacked. */
typedef struct fp4_block {
    int8x16_t even[FP4_GROUPS][HALVES], odd[FP4_GROUPS][HALVES]; /* four k of each of four rows */
    int32x4_t exponent[HALVES];                                  /* biased by 127 */
} fp4_block;

typedef struct fp8_block {
    int16x8_t big[PLUMB_BLOCK], small[PLUMB_BLOCK]; /* one k of eight rows */
    int32x4_t exponent[HALVES];
} fp8_block;

typedef union panel {
    fp4_block fp4[CHUNK_BLOCKS];
    fp8_block fp8[CHUNK_BLOCKS];
} panel;

int64_t plumb__matmul_scratch_neon(void) { return (int64_t)sizeof(panel); }

/* ---- Unpacking ------------------------------------------------------------------------------- */

/* Dwords of four rows of 16 bytes: out[j] holds dword j of rows 0..3. */
static inline void transpose_dwords(const uint8_t *const rows[PLUMB_LANE_ROWS],
                                    uint8x16_t out[FP4_GROUPS]) {
    uint32x4_t r[4], even[2], odd[2];
    for (int i = 0; i < 4; i++) r[i] = vreinterpretq_u32_u8(vld1q_u8(rows[i]));
    for (int i = 0; i < 2; i++) {
        even[i] = vzip1q_u32(r[i], r[i + 2]);
        odd[i] = vzip2q_u32(r[i], r[i + 2]);
    }
    out[0] = vreinterpretq_u8_u32(vzip1q_u32(even[0], even[1]));
    out[1] = vreinterpretq_u8_u32(vzip2q_u32(even[0], even[1]));
    out[2] = vreinterpretq_u8_u32(vzip1q_u32(odd[0], odd[1]));
    out[3] = vreinterpretq_u8_u32(vzip2q_u32(odd[0], odd[1]));
}

static void unpack_fp4(const uint8_t *const rows[PLUMB_PANEL_ROWS], fp4_block *out) {
    for (int h = 0; h < HALVES; h++) {
        uint8x16_t packed[FP4_GROUPS];
        transpose_dwords(rows + h * PLUMB_LANE_ROWS, packed);
        for (int j = 0; j < FP4_GROUPS; j++) {
            plumb_fp4_pair w = plumb__fp4_decode_neon(packed[j]);
            out->even[j][h] = w.even;
            out->odd[j][h] = w.odd;
        }
    }
}

/* Sixteen k of eight rows.  Interleaving vectors i and i + 4 moves a bit of the row's number behind
 * those of k; three times, and vector j holds k = 2j of all rows, then k = 2j + 1. */
static void unpack_fp8_half(const uint8_t *const rows[PLUMB_PANEL_ROWS], int64_t at,
                            fp8_block *out) {
    uint8x16_t v[PLUMB_PANEL_ROWS], mixed[PLUMB_PANEL_ROWS];
    for (int r = 0; r < PLUMB_PANEL_ROWS; r++) v[r] = vld1q_u8(rows[r] + at);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 4; i++) {
            mixed[2 * i] = vzip1q_u8(v[i], v[i + 4]);
            mixed[2 * i + 1] = vzip2q_u8(v[i], v[i + 4]);
        }
        memcpy(v, mixed, sizeof v);
    }
    for (int j = 0; j < PLUMB_PANEL_ROWS; j++) {
        plumb_fp8_planes w = plumb__fp8_decode_neon(v[j]);
        for (int i = 0; i < 2; i++) {
            out->big[at + 2 * j + i] = w.big[i];
            out->small[at + 2 * j + i] = w.small[i];
        }
    }
}

/* Unpacks blocks b .. b+count-1 of rows n .. n+rows-1. */
static void unpack(const plumb_matrix *w, int64_t n, int64_t rows, int64_t b, int64_t count,
                   panel *out) {
    bool fp8 = w->type == PLUMB_MATRIX_FP8;
    int64_t blocks = w->k / PLUMB_BLOCK, size = fp8 ? PLUMB_BLOCK : PLUMB_BLOCK / 2;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *codes[PLUMB_PANEL_ROWS];
        int32_t exponent[PLUMB_PANEL_ROWS];
        for (int r = 0; r < PLUMB_PANEL_ROWS; r++) {
            int64_t row = n + plumb__existing_row(r, rows);
            codes[r] = (const uint8_t *)w->codes + (row * blocks + b + i) * size;
            exponent[r] = w->scales[(fp8 ? row / PLUMB_BLOCK : row) * blocks + b + i];
        }
        if (fp8) {
            unpack_fp8_half(codes, 0, &out->fp8[i]);
            unpack_fp8_half(codes, 16, &out->fp8[i]);
        } else unpack_fp4(codes, &out->fp4[i]);
        int32x4_t *to = fp8 ? out->fp8[i].exponent : out->fp4[i].exponent;
        for (int h = 0; h < HALVES; h++) to[h] = vld1q_s32(exponent + h * PLUMB_LANE_ROWS);
    }
}

/* ---- Products -------------------------------------------------------------------------------- */

/* D_b of four activation rows against both halves. */
typedef struct quad_results {
    float32x4_t d[QUAD][HALVES];
} quad_results;

/* The index of an operand by element must be a constant. */
#define ADD_GROUP(sum, w, x, group)                                                   \
    for (int r = 0; r < QUAD; r++)                                                    \
        for (int h = 0; h < HALVES; h++)                                              \
            sum[r][h] = vdotq_laneq_s32(sum[r][h], (w)[group][h], (x)[r], group)

/* sum[row][half] += a block of weights times one digit of each row. */
static inline void add_digit(const fp4_block *w, const plumb_row_neon x[QUAD], int digit, int64_t at,
                             int32x4_t sum[QUAD][HALVES]) {
    int8x16_t even[QUAD], odd[QUAD];
    for (int r = 0; r < QUAD; r++) {
        even[r] = vld1q_s8(x[r].digit[digit] + at);
        odd[r] = vld1q_s8(x[r].digit[digit] + at + 16);
    }
    ADD_GROUP(sum, w->even, even, 0);
    ADD_GROUP(sum, w->even, even, 1);
    ADD_GROUP(sum, w->even, even, 2);
    ADD_GROUP(sum, w->even, even, 3);
    ADD_GROUP(sum, w->odd, odd, 0);
    ADD_GROUP(sum, w->odd, odd, 1);
    ADD_GROUP(sum, w->odd, odd, 2);
    ADD_GROUP(sum, w->odd, odd, 3);
}

static inline void shift(int32x4_t sum[QUAD][HALVES], int bits) {
    for (int r = 0; r < QUAD; r++)
        for (int h = 0; h < HALVES; h++) sum[r][h] = vshlq_s32(sum[r][h], vdupq_n_s32(bits));
}

static bool any_low(const plumb_row_neon x[QUAD], int64_t b) {
    return (x[0].has_low[b] | x[1].has_low[b] | x[2].has_low[b] | x[3].has_low[b]) != 0;
}

static void fp4_products(const fp4_block *w, const plumb_row_neon x[QUAD], int64_t b,
                         quad_results *out) {
    int64_t at = b * PLUMB_BLOCK;
    int32x4_t sum[QUAD][HALVES];
    for (int r = 0; r < QUAD; r++)
        for (int h = 0; h < HALVES; h++) sum[r][h] = vdupq_n_s32(0);
    add_digit(w, x, 1, at, sum);
    shift(sum, 8);
    add_digit(w, x, 0, at, sum);
    shift(sum, 3);
    if (any_low(x, b)) add_digit(w, x, 2, at, sum);
    for (int r = 0; r < QUAD; r++)
        for (int h = 0; h < HALVES; h++) out->d[r][h] = plumb__fp4_result_neon(sum[r][h]);
}

#define ADD_K(sum, big_w, small_w, x, i)                                                        \
    for (int r = 0; r < QUAD; r++) {                                                            \
        sum[r][0].big = vmlal_laneq_s16(sum[r][0].big, vget_low_s16((big_w)[i]), (x)[r], i);    \
        sum[r][1].big = vmlal_high_laneq_s16(sum[r][1].big, (big_w)[i], (x)[r], i);             \
        sum[r][0].small =                                                                       \
            vmlal_laneq_s16(sum[r][0].small, vget_low_s16((small_w)[i]), (x)[r], i);            \
        sum[r][1].small = vmlal_high_laneq_s16(sum[r][1].small, (small_w)[i], (x)[r], i);       \
    }

/* Both planes of the weights against one plane of each row. */
static void fp8_planes(const fp8_block *w, const int16_t *const plane[QUAD],
                       plumb_plane_sums out[QUAD][HALVES]) {
    plumb_plane_sums sum[QUAD][HALVES];
    for (int r = 0; r < QUAD; r++)
        for (int h = 0; h < HALVES; h++)
            sum[r][h] = (plumb_plane_sums){vdupq_n_s32(0), vdupq_n_s32(0)};
    for (int k = 0; k < PLUMB_BLOCK; k += 8) {
        const int16x8_t *big = w->big + k, *small = w->small + k;
        int16x8_t x[QUAD];
        for (int r = 0; r < QUAD; r++) x[r] = vld1q_s16(plane[r] + k);
        ADD_K(sum, big, small, x, 0)
        ADD_K(sum, big, small, x, 1)
        ADD_K(sum, big, small, x, 2)
        ADD_K(sum, big, small, x, 3)
        ADD_K(sum, big, small, x, 4)
        ADD_K(sum, big, small, x, 5)
        ADD_K(sum, big, small, x, 6)
        ADD_K(sum, big, small, x, 7)
    }
    for (int r = 0; r < QUAD; r++)
        for (int h = 0; h < HALVES; h++) out[r][h] = sum[r][h];
}

static void fp8_products(const fp8_block *w, const plumb_row_neon x[QUAD], int64_t b,
                         quad_results *out) {
    int64_t at = b * PLUMB_BLOCK;
    bool low = any_low(x, b);
    const int16_t *plane[QUAD];
    plumb_plane_sums sums[QUAD][HALVES], rest[QUAD][HALVES];
    for (int r = 0; r < QUAD; r++) plane[r] = x[r].high + at;
    fp8_planes(w, plane, sums);
    if (low) {
        for (int r = 0; r < QUAD; r++) plane[r] = x[r].low + at;
        fp8_planes(w, plane, rest);
    }
    for (int r = 0; r < QUAD; r++)
        for (int h = 0; h < HALVES; h++)
            out->d[r][h] = plumb__fp8_result_neon(sums[r][h], low ? &rest[r][h] : NULL);
}

/* segment = fma(D_b, P_b, segment) for one row. */
static inline void add_block(const float32x4_t d[HALVES], const int32x4_t weight_exponent[HALVES],
                             int32_t exponent, plumb_panel_sums *sums) {
    int32x4_t ea = vdupq_n_s32(exponent);
    for (int h = 0; h < HALVES; h++) {
        float32x4_t p = plumb__power_neon(vaddq_s32(weight_exponent[h], ea));
        sums->segment[h] = vfmaq_f32(sums->segment[h], d[h], p);
    }
}

/* A segment is complete: add it to the total (the first one IS the total) and start the next. */
static void end_segment(plumb_panel_sums *sums, bool first) {
    for (int h = 0; h < HALVES; h++) {
        sums->total[h] = first ? sums->segment[h] : vaddq_f32(sums->total[h], sums->segment[h]);
        sums->segment[h] = vdupq_n_f32(0.0f);
    }
}

void plumb__matmul_neon(const void *const *x, int64_t n_x, const plumb_matrix *w, int64_t n,
                        int64_t rows, plumb_panel_sums *sums, void *scratch) {
    panel *weights = scratch;
    int64_t blocks = w->k / PLUMB_BLOCK;
    bool fp8 = w->type == PLUMB_MATRIX_FP8;
    memset(sums, 0, (size_t)n_x * sizeof *sums);
    for (int64_t b = 0, count; b < blocks; b += count) {
        count = blocks - b < CHUNK_BLOCKS ? blocks - b : CHUNK_BLOCKS;
        unpack(w, n, rows, b, count, weights);
        bool ends = (b + count) % PLUMB_BLOCKS_PER_SEGMENT == 0 || b + count == blocks;
        for (int64_t i = 0; i < n_x; i += QUAD) {
            int64_t n_rows = n_x - i < QUAD ? n_x - i : QUAD; /* the last one stands in for the rest */
            plumb_row_neon quad[QUAD];
            for (int r = 0; r < QUAD; r++)
                quad[r] = plumb__row_view_neon(x[i + plumb__existing_row(r, n_rows)], w->k);
            for (int64_t j = 0; j < count; j++) {
                quad_results products;
                if (fp8) fp8_products(&weights->fp8[j], quad, b + j, &products);
                else fp4_products(&weights->fp4[j], quad, b + j, &products);
                for (int64_t r = 0; r < n_rows; r++)
                    add_block(products.d[r],
                              fp8 ? weights->fp8[j].exponent : weights->fp4[j].exponent,
                              quad[r].exponent[b + j], &sums[i + r]);
            }
            for (int64_t r = 0; ends && r < n_rows; r++)
                end_segment(&sums[i + r], b < PLUMB_BLOCKS_PER_SEGMENT);
        }
    }
}
