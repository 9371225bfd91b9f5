/* Linear layers in thirty-two lanes with NEON (docs/arithmetic.md section 4): eight vectors are the
 * lanes.  Weights are widened in registers when one row of activations needs them, once into scratch
 * when several do. */
#include "arith/lanes.h"
#include "backend/cpu/kernels/kernels.h"

#include <arm_neon.h>

enum { VECTORS = PLUMB_LANES / 4 };

/* Thirty-two consecutive values. */
typedef struct lanes {
    float32x4_t v[VECTORS];
} lanes;

/* e4m3 bits moved into a half float are the value times 2^-8, subnormals included, and FZ leaves
 * this conversion alone.  Adding bit 14 to itself moves the sign from there to bit 15. */
static inline uint16x8_t eight_halves(uint8x8_t codes) {
    uint16x8_t bits = vshll_n_u8(codes, 7);
    return vaddq_u16(bits, vandq_u16(bits, vdupq_n_u16(0x4000)));
}

static inline float32x4_t scaled(float32x4_t value, float scale) {
    return vmulq_n_f32(vmulq_n_f32(value, 256.0f), scale);
}

static inline lanes load_fp8(const uint8_t *codes, uint8_t scale_code) {
    float scale = plumb__power_of_two((int32_t)scale_code - 127);
    lanes out;
    for (int i = 0; i < VECTORS; i += 2) {
        float16x8_t halves = vreinterpretq_f16_u16(eight_halves(vld1_u8(codes + 4 * i)));
        out.v[i] = scaled(vcvt_f32_f16(vget_low_f16(halves)), scale);
        out.v[i + 1] = scaled(vcvt_high_f32_f16(halves), scale);
    }
    return out;
}

static inline lanes load_bf16(const uint16_t *codes) {
    lanes out;
    for (int i = 0; i < VECTORS; i++)
        out.v[i] = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(codes + 4 * i), 16));
    return out;
}

static inline lanes load_float(const float *x) {
    lanes out;
    for (int i = 0; i < VECTORS; i++) out.v[i] = vld1q_f32(x + 4 * i);
    return out;
}

/* Elements k .. k+31 of row n. */
static inline lanes load_weights(const plumb_matrix *w, plumb_matrix_type type, int64_t n,
                                 int64_t k) {
    if (type == PLUMB_MATRIX_F32) return load_float((const float *)w->codes + n * w->k + k);
    if (type == PLUMB_MATRIX_BF16) return load_bf16((const uint16_t *)w->codes + n * w->k + k);
    int64_t blocks = (w->k + PLUMB_BLOCK - 1) / PLUMB_BLOCK;
    return load_fp8((const uint8_t *)w->codes + n * w->k + k,
                    w->scales[n / PLUMB_BLOCK * blocks + k / PLUMB_BLOCK]);
}

static float one_weight(const plumb_matrix *w, int64_t n, int64_t k) {
    int64_t at = n * w->k + k, blocks = (w->k + PLUMB_BLOCK - 1) / PLUMB_BLOCK;
    if (w->type == PLUMB_MATRIX_F32) return ((const float *)w->codes)[at];
    if (w->type == PLUMB_MATRIX_BF16) return plumb__bf16_decode(((const uint16_t *)w->codes)[at]);
    int32_t exponent = w->scales[n / PLUMB_BLOCK * blocks + k / PLUMB_BLOCK] - 127;
    return plumb__e4m3_decode(((const uint8_t *)w->codes)[at]) * plumb__power_of_two(exponent);
}

static inline void add_products(lanes *sum, const float *x, lanes weight) {
    for (int i = 0; i < VECTORS; i++)
        sum->v[i] = vfmaq_f32(sum->v[i], vld1q_f32(x + 4 * i), weight.v[i]);
}

static inline lanes zeros(void) {
    lanes out;
    for (int i = 0; i < VECTORS; i++) out.v[i] = vdupq_n_f32(0.0f);
    return out;
}

/* The tree +16, +8, +4, +2, +1. */
static inline float join(lanes a) {
    for (int half = VECTORS / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) a.v[i] = vaddq_f32(a.v[i], a.v[i + half]);
    float32x2_t two = vadd_f32(vget_low_f32(a.v[0]), vget_high_f32(a.v[0]));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/* The last k mod 32 products go to the first lanes; then the tree. */
static float finish(lanes sum, const float *x, const float *weight, int64_t left) {
    if (left == 0) return join(sum);
    float lane[PLUMB_LANES];
    for (int i = 0; i < VECTORS; i++) vst1q_f32(lane + 4 * i, sum.v[i]);
    for (int64_t j = 0; j < left; j++) lane[j] = plumb__fma(x[j], weight[j], lane[j]);
    return plumb__lanes_join(lane);
}

static inline float dot_in_place(const float *x, const plumb_matrix *w, plumb_matrix_type type,
                                 int64_t n) {
    lanes sum = zeros();
    int64_t whole = w->k / PLUMB_LANES * PLUMB_LANES;
    for (int64_t k = 0; k < whole; k += PLUMB_LANES)
        add_products(&sum, x + k, load_weights(w, type, n, k));
    float tail[PLUMB_LANES];
    for (int64_t k = whole; k < w->k; k++) tail[k - whole] = one_weight(w, n, k);
    return finish(sum, x + whole, tail, w->k - whole);
}

static inline void widen_row(const plumb_matrix *w, plumb_matrix_type type, int64_t n, float *out) {
    int64_t whole = w->k / PLUMB_LANES * PLUMB_LANES;
    for (int64_t k = 0; k < whole; k += PLUMB_LANES) {
        lanes weight = load_weights(w, type, n, k);
        for (int i = 0; i < VECTORS; i++) vst1q_f32(out + k + 4 * i, weight.v[i]);
    }
    for (int64_t k = whole; k < w->k; k++) out[k] = one_weight(w, n, k);
}

/* Two rows of activations against one widened weight row: sixteen sums, half of the registers. */
static void dot_pair(const float *x0, const float *x1, const float *weight, int64_t n,
                     float result[2]) {
    lanes a = zeros(), b = a;
    int64_t whole = n / PLUMB_LANES * PLUMB_LANES;
    for (int64_t k = 0; k < whole; k += PLUMB_LANES) {
        lanes w = load_float(weight + k);
        add_products(&a, x0 + k, w);
        add_products(&b, x1 + k, w);
    }
    result[0] = finish(a, x0 + whole, weight + whole, n - whole);
    result[1] = finish(b, x1 + whole, weight + whole, n - whole);
}

static bool store(float value, plumb_act *y, float *y_float, int64_t at) {
    if (y) y[at] = plumb__store(value);
    else y_float[at] = value;
    return (plumb__bits_of(value) & 0x7F800000u) != 0x7F800000u;
}

bool plumb__linear_neon(const float *x, int64_t x_stride, int64_t rows, const plumb_matrix *w,
                        int64_t begin, int64_t end, plumb_act *y, float *y_float, int64_t y_stride,
                        void *scratch) {
    bool finite = true;
    for (int64_t n = begin; n < end; n++) {
        if (rows == 1) {
            float sum = w->type == PLUMB_MATRIX_FP8    ? dot_in_place(x, w, PLUMB_MATRIX_FP8, n)
                        : w->type == PLUMB_MATRIX_BF16 ? dot_in_place(x, w, PLUMB_MATRIX_BF16, n)
                                                       : dot_in_place(x, w, PLUMB_MATRIX_F32, n);
            finite &= store(sum, y, y_float, n);
            continue;
        }
        const float *weight = scratch;
        if (w->type == PLUMB_MATRIX_F32) weight = (const float *)w->codes + n * w->k;
        else if (w->type == PLUMB_MATRIX_BF16) widen_row(w, PLUMB_MATRIX_BF16, n, scratch);
        else widen_row(w, PLUMB_MATRIX_FP8, n, scratch);
        for (int64_t r = 0; r < rows; r += 2) {
            int64_t other = r + 1 < rows ? r + 1 : r; /* an odd last row is its own partner */
            float sum[2];
            dot_pair(x + r * x_stride, x + other * x_stride, weight, w->k, sum);
            finite &= store(sum[0], y, y_float, r * y_stride + n);
            if (other != r) finite &= store(sum[1], y, y_float, other * y_stride + n);
        }
    }
    return finite;
}
