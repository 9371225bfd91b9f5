/* Linear layers in thirty-two lanes with AVX2 (docs/arithmetic.md section 4): four vectors are the
 * lanes.  Weights are widened in registers when one row of activations needs them, once into
 * scratch when several do. */
#include "arith/lanes.h"
#include "backend/cpu/kernels/kernels.h"

#include <immintrin.h>

/* Thirty-two consecutive values. */
typedef struct lanes {
    __m256 v[4];
} lanes;

static inline __m256i sixteen_halves(__m128i bytes) {
    __m256i wide = _mm256_cvtepu8_epi16(bytes);
    __m256i magnitude = _mm256_slli_epi16(_mm256_and_si256(wide, _mm256_set1_epi16(0x7F)), 7);
    __m256i sign = _mm256_slli_epi16(_mm256_and_si256(wide, _mm256_set1_epi16(0x80)), 8);
    return _mm256_or_si256(magnitude, sign);
}

/* e4m3 bits moved into a half float are the value times 2^-8, subnormals included, and the
 * conversion does not flush them. */
static inline __m256 scaled(__m128i halves, __m256 scale) {
    __m256 value = _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(256.0f));
    return _mm256_mul_ps(value, scale);
}

static inline lanes load_fp8(const uint8_t *codes, uint8_t scale_code) {
    __m256 scale = _mm256_set1_ps(plumb__power_of_two((int32_t)scale_code - 127));
    __m256i low = sixteen_halves(_mm_loadu_si128((const __m128i *)(const void *)codes));
    __m256i high = sixteen_halves(_mm_loadu_si128((const __m128i *)(const void *)(codes + 16)));
    return (lanes){{scaled(_mm256_castsi256_si128(low), scale),
                    scaled(_mm256_extracti128_si256(low, 1), scale),
                    scaled(_mm256_castsi256_si128(high), scale),
                    scaled(_mm256_extracti128_si256(high, 1), scale)}};
}

static inline lanes load_bf16(const uint16_t *codes) {
    lanes out;
    for (int i = 0; i < 4; i++)
        out.v[i] = _mm256_castsi256_ps(_mm256_slli_epi32(
            _mm256_cvtepu16_epi32(
                _mm_loadu_si128((const __m128i *)(const void *)(codes + 8 * i))), 16));
    return out;
}

static inline lanes load_float(const float *x) {
    lanes out;
    for (int i = 0; i < 4; i++) out.v[i] = _mm256_loadu_ps(x + 8 * i);
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
    for (int i = 0; i < 4; i++)
        sum->v[i] = _mm256_fmadd_ps(_mm256_loadu_ps(x + 8 * i), weight.v[i], sum->v[i]);
}

/* The tree +16, +8, +4, +2, +1. */
static inline float join(lanes a) {
    __m256 eight = _mm256_add_ps(_mm256_add_ps(a.v[0], a.v[2]), _mm256_add_ps(a.v[1], a.v[3]));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/* The last k mod 32 products go to the first lanes; then the tree. */
static float finish(lanes sum, const float *x, const float *weight, int64_t left) {
    if (left == 0) return join(sum);
    float lane[PLUMB_LANES];
    for (int i = 0; i < 4; i++) _mm256_storeu_ps(lane + 8 * i, sum.v[i]);
    for (int64_t j = 0; j < left; j++) lane[j] = plumb__fma(x[j], weight[j], lane[j]);
    return plumb__lanes_join(lane);
}

static inline float dot_in_place(const float *x, const plumb_matrix *w, plumb_matrix_type type,
                                 int64_t n) {
    lanes sum = {{_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                  _mm256_setzero_ps()}};
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
        for (int i = 0; i < 4; i++) _mm256_storeu_ps(out + k + 8 * i, weight.v[i]);
    }
    for (int64_t k = whole; k < w->k; k++) out[k] = one_weight(w, n, k);
}

/* Two rows of activations against one widened weight row. */
static void dot_pair(const float *x0, const float *x1, const float *weight, int64_t n,
                     float result[2]) {
    lanes a = {{_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                _mm256_setzero_ps()}};
    lanes b = a;
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

bool plumb__linear_avx2(const float *x, int64_t x_stride, int64_t rows, const plumb_matrix *w,
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
