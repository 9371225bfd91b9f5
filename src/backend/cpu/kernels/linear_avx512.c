/* Linear layers in thirty-two lanes with AVX-512 (docs/arithmetic.md section 4): two vectors are
 * the lanes. One inner product is a chain that waits for every fma, so several are computed at
 * once: of one activation row with four weight rows, which are widened in registers, or of up to
 * eight activation rows with one weight row, widened into scratch. */
#include "backend/cpu/kernels/quantized_avx512.h"

#include "arith/lanes.h"

enum { WEIGHT_ROWS = 4, ACT_ROWS = 8 };

/* Thirty-two consecutive values. */
typedef struct lanes {
    __m512 v[2];
} lanes;

/* Those of 32 values that `mask` has, zeros in place of the others, which are not read. */
static inline lanes load_floats(const float *x, uint32_t mask) {
    return (lanes){{_mm512_maskz_loadu_ps((__mmask16)mask, x),
                    _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), x + 16)}};
}

static inline lanes load_bf16(const uint16_t *codes, uint32_t mask) {
    lanes out;
    for (int i = 0; i < 2; i++) {
        __m256i half = _mm256_maskz_loadu_epi16((__mmask16)(mask >> 16 * i), codes + 16 * i);
        out.v[i] = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
    }
    return out;
}

/* e4m3 bits moved into a half float are the value times 2^-8, subnormals included, and the
 * conversion does not flush them. */
static inline lanes load_fp8(const uint8_t *codes, uint8_t scale_code, uint32_t mask) {
    const __m512i magnitude = _mm512_set1_epi16(0x3F80), sign = _mm512_set1_epi16(INT16_MIN);
    const __m512 unit = _mm512_set1_ps(256.0f);
    const __m512 scale = _mm512_set1_ps(plumb__power_of_two((int32_t)scale_code - 127));
    __m512i wide = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(mask, codes));
    __m512i half = _mm512_or_si512(_mm512_and_si512(_mm512_slli_epi16(wide, 7), magnitude),
                                   _mm512_and_si512(_mm512_slli_epi16(wide, 8), sign));
    __m512 low = _mm512_cvtph_ps(_mm512_castsi512_si256(half));
    __m512 high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(half, 1));
    return (lanes){{_mm512_mul_ps(_mm512_mul_ps(low, unit), scale),
                    _mm512_mul_ps(_mm512_mul_ps(high, unit), scale)}};
}

/* Those of elements k .. k+31 of row n that `mask` has. */
static inline lanes load_weights(const plumb_matrix *w, plumb_matrix_type type, int64_t n,
                                 int64_t k, uint32_t mask) {
    int64_t at = n * w->k + k, blocks = (w->k + PLUMB_BLOCK - 1) / PLUMB_BLOCK;
    if (type == PLUMB_MATRIX_F32) return load_floats((const float *)w->codes + at, mask);
    if (type == PLUMB_MATRIX_BF16) return load_bf16((const uint16_t *)w->codes + at, mask);
    return load_fp8((const uint8_t *)w->codes + at,
                    w->scales[n / PLUMB_BLOCK * blocks + k / PLUMB_BLOCK], mask);
}

static inline void add_products(lanes *sum, lanes x, lanes weight) {
    for (int i = 0; i < 2; i++) sum->v[i] = _mm512_fmadd_ps(x.v[i], weight.v[i], sum->v[i]);
}

/* The last k mod 32 products go to the first lanes; the others stay as they are. */
static inline void add_last_products(lanes *sum, lanes x, lanes weight, uint32_t mask) {
    for (int i = 0; i < 2; i++)
        sum->v[i] = _mm512_mask3_fmadd_ps(x.v[i], weight.v[i], sum->v[i],
                                          (__mmask16)(mask >> 16 * i));
}

/* The tree +16, +8, +4, +2, +1. */
static inline float join(lanes a) {
    __m512 sixteen = _mm512_add_ps(a.v[0], a.v[1]);
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(sixteen),
                                 _mm256_castpd_ps(_mm512_extractf64x4_pd(
                                     _mm512_castps_pd(sixteen), 1)));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

enum { ALL = -1 };

/* One activation row with weight rows n .. n+count-1. */
PLUMB_INLINE_AVX512 void dot_weights(const float *x, const plumb_matrix *w, plumb_matrix_type type,
                                     int64_t n, int count, float *result) {
    lanes sum[WEIGHT_ROWS];
    int64_t whole = w->k / PLUMB_LANES * PLUMB_LANES;
    for (int i = 0; i < count; i++) sum[i] = (lanes){{_mm512_setzero_ps(), _mm512_setzero_ps()}};
    for (int64_t k = 0; k < whole; k += PLUMB_LANES) {
        lanes a = load_floats(x + k, (uint32_t)ALL);
        for (int i = 0; i < count; i++)
            add_products(&sum[i], a, load_weights(w, type, n + i, k, (uint32_t)ALL));
    }
    uint32_t rest = (1u << (w->k - whole)) - 1;
    if (rest) {
        lanes a = load_floats(x + whole, rest);
        for (int i = 0; i < count; i++)
            add_last_products(&sum[i], a, load_weights(w, type, n + i, whole, rest), rest);
    }
    for (int i = 0; i < count; i++) result[i] = join(sum[i]);
}

/* `count` activation rows with one weight row of floats. */
PLUMB_INLINE_AVX512 void dot_acts(const float *x, int64_t x_stride, int count, const float *weight,
                                  int64_t k_end, float *result) {
    lanes sum[ACT_ROWS];
    int64_t whole = k_end / PLUMB_LANES * PLUMB_LANES;
    for (int i = 0; i < count; i++) sum[i] = (lanes){{_mm512_setzero_ps(), _mm512_setzero_ps()}};
    for (int64_t k = 0; k < whole; k += PLUMB_LANES) {
        lanes b = load_floats(weight + k, (uint32_t)ALL);
        for (int i = 0; i < count; i++)
            add_products(&sum[i], load_floats(x + i * x_stride + k, (uint32_t)ALL), b);
    }
    uint32_t rest = (1u << (k_end - whole)) - 1;
    if (rest) {
        lanes b = load_floats(weight + whole, rest);
        for (int i = 0; i < count; i++)
            add_last_products(&sum[i], load_floats(x + i * x_stride + whole, rest), b, rest);
    }
    for (int i = 0; i < count; i++) result[i] = join(sum[i]);
}

static inline void widen_row(const plumb_matrix *w, plumb_matrix_type type, int64_t n, float *out) {
    int64_t k = 0;
    for (; k + PLUMB_LANES <= w->k; k += PLUMB_LANES) {
        lanes weight = load_weights(w, type, n, k, (uint32_t)ALL);
        for (int i = 0; i < 2; i++) _mm512_storeu_ps(out + k + 16 * i, weight.v[i]);
    }
    if (k == w->k) return;
    lanes weight = load_weights(w, type, n, k, (1u << (w->k - k)) - 1);
    float last[PLUMB_LANES];
    for (int i = 0; i < 2; i++) _mm512_storeu_ps(last + 16 * i, weight.v[i]);
    memcpy(out + k, last, (size_t)(w->k - k) * sizeof *out);
}

/* Weight row n as floats: scratch, or the matrix itself where it is float32. */
static const float *weight_row(const plumb_matrix *w, int64_t n, float *scratch) {
    if (w->type == PLUMB_MATRIX_F32) return (const float *)w->codes + n * w->k;
    if (w->type == PLUMB_MATRIX_BF16) widen_row(w, PLUMB_MATRIX_BF16, n, scratch);
    else widen_row(w, PLUMB_MATRIX_FP8, n, scratch);
    return scratch;
}

/* Where results go: exactly one of y and y_float. */
typedef struct output {
    plumb_act *y;
    float *y_float;
    bool finite;
} output;

static void store(output *out, int64_t at, float value) {
    if (out->y) out->y[at] = plumb__store(value);
    else out->y_float[at] = value;
    out->finite &= (plumb__bits_of(value) & 0x7F800000u) != 0x7F800000u;
}

static inline void one_act(const float *x, const plumb_matrix *w, plumb_matrix_type type,
                           int64_t begin, int64_t end, output *out) {
    float sum[WEIGHT_ROWS];
    int64_t n = begin;
    for (; n + WEIGHT_ROWS <= end; n += WEIGHT_ROWS) {
        dot_weights(x, w, type, n, WEIGHT_ROWS, sum);
        for (int i = 0; i < WEIGHT_ROWS; i++) store(out, n + i, sum[i]);
    }
    for (; n < end; n++) {
        dot_weights(x, w, type, n, 1, sum);
        store(out, n, sum[0]);
    }
}

/* Eight rows at a time, then four, two, one. */
static void many_acts(const float *x, int64_t x_stride, int64_t rows, const float *weight,
                      int64_t k, int64_t at, int64_t y_stride, output *out) {
    for (int64_t r = 0, count; r < rows; r += count) {
        const float *first = x + r * x_stride;
        float sum[ACT_ROWS];
        int64_t left = rows - r;
        count = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        if (count == 8) dot_acts(first, x_stride, 8, weight, k, sum);
        else if (count == 4) dot_acts(first, x_stride, 4, weight, k, sum);
        else if (count == 2) dot_acts(first, x_stride, 2, weight, k, sum);
        else dot_acts(first, x_stride, 1, weight, k, sum);
        for (int64_t i = 0; i < count; i++) store(out, (r + i) * y_stride + at, sum[i]);
    }
}

bool PLUMB_KERNEL(linear)(const float *x, int64_t x_stride, int64_t rows, const plumb_matrix *w,
                          int64_t begin, int64_t end, plumb_act *y, float *y_float,
                          int64_t y_stride, void *scratch) {
    output out = {y, y_float, true};
    if (rows > 1)
        for (int64_t n = begin; n < end; n++)
            many_acts(x, x_stride, rows, weight_row(w, n, scratch), w->k, n, y_stride, &out);
    else if (w->type == PLUMB_MATRIX_FP8) one_act(x, w, PLUMB_MATRIX_FP8, begin, end, &out);
    else if (w->type == PLUMB_MATRIX_BF16) one_act(x, w, PLUMB_MATRIX_BF16, begin, end, &out);
    else one_act(x, w, PLUMB_MATRIX_F32, begin, end, &out);
    return out.finite;
}
