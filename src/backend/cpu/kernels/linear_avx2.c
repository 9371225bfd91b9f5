/* Linear layers in thirty-two lanes with AVX2 (docs/arithmetic.md section 4): four vectors are the
 * lanes. */
#include "arith/lanes.h"
#include "backend/cpu/kernels/kernels.h"

#include <immintrin.h>

/* Thirty-two consecutive values. */
typedef struct lanes {
    __m256 v[4];
} lanes;

/* Values times 2^-8: e4m3 bits moved into a half float, subnormals included, which the conversion does
 * not flush. */
static inline lanes load_e4m3(const uint8_t *codes) {
    const __m256i keep = _mm256_set1_epi16((short)0xBF80);
    __m256i code = _mm256_loadu_si256((const __m256i *)(const void *)codes);
    __m256i half[2] = {_mm256_unpacklo_epi8(_mm256_setzero_si256(), code),  /* 0..7, 16..23 */
                       _mm256_unpackhi_epi8(_mm256_setzero_si256(), code)}; /* 8..15, 24..31 */
    lanes out;
    for (int i = 0; i < 2; i++) {
        __m256i bits = _mm256_and_si256(_mm256_srai_epi16(half[i], 1), keep);
        out.v[i] = _mm256_cvtph_ps(_mm256_castsi256_si128(bits));
        out.v[i + 2] = _mm256_cvtph_ps(_mm256_extracti128_si256(bits, 1));
    }
    return out;
}

static inline lanes load_fp8(const uint8_t *codes, uint8_t scale_code) {
    /* 256 times the scale, at its largest in two steps; the smallest one, 2^-127, counts as zero. */
    int32_t exponent = (int32_t)scale_code - 127 + 8, first = exponent > 127 ? 127 : exponent;
    const __m256 scale = _mm256_set1_ps(scale_code == 0 ? 0.0f : plumb__power_of_two(first));
    lanes out = load_e4m3(codes);
    for (int i = 0; i < 4; i++) out.v[i] = _mm256_mul_ps(out.v[i], scale);
    if (exponent > 127) {
        const __m256 more = _mm256_set1_ps(plumb__power_of_two(exponent - 127));
        for (int i = 0; i < 4; i++) out.v[i] = _mm256_mul_ps(out.v[i], more);
    }
    return out;
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

static bool store(float value, plumb_act *y, float *y_float, int64_t at) {
    if (y) y[at] = plumb__store(value);
    else y_float[at] = value;
    return (plumb__bits_of(value) & 0x7F800000u) != 0x7F800000u;
}

static inline lanes no_lanes(void) {
    const __m256 zero = _mm256_setzero_ps();
    return (lanes){{zero, zero, zero, zero}};
}

/* ---- One row of activations: weights are widened in registers, two rows side by side --------------- */

/* While two rows are multiplied the next two come in, as one stream. */
static inline void prefetch_next(const plumb_matrix *w, int64_t n, int64_t k, int64_t element) {
    const char *next = (const char *)w->codes + ((n + 2) * w->k + 2 * k) * element;
    for (int64_t i = 0; i < 2 * PLUMB_LANES * element; i += 64)
        _mm_prefetch(next + i, _MM_HINT_T0);
}

static inline void dot_two(const float *x, const plumb_matrix *w, plumb_matrix_type type, int64_t n,
                           int64_t other, float result[2]) {
    lanes a = no_lanes(), b = no_lanes();
    int64_t whole = w->k / PLUMB_LANES * PLUMB_LANES, left = w->k - whole;
    int64_t element = type == PLUMB_MATRIX_FP8 ? 1 : type == PLUMB_MATRIX_BF16 ? 2 : 4;
    for (int64_t k = 0; k < whole; k += PLUMB_LANES) {
        prefetch_next(w, n, k, element);
        add_products(&a, x + k, load_weights(w, type, n, k));
        add_products(&b, x + k, load_weights(w, type, other, k));
    }
    float tail[2][PLUMB_LANES];
    for (int64_t k = 0; k < left; k++) {
        tail[0][k] = one_weight(w, n, whole + k);
        tail[1][k] = one_weight(w, other, whole + k);
    }
    result[0] = finish(a, x + whole, tail[0], left);
    result[1] = finish(b, x + whole, tail[1], left);
}

/* Whether x times a scale, and 256, is x times a power of two exactly, and so may be formed before the
 * product with a code's value instead of after: nothing near the ends of the range. */
static bool may_scale_activations(const float *x, const plumb_matrix *w, int64_t begin,
                                  int64_t end) {
    const __m256i low = _mm256_set1_epi32((127 - 50) << 23), high = _mm256_set1_epi32((127 + 50) << 23);
    const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
    __m256i outside = _mm256_setzero_si256();
    if (w->k % PLUMB_BLOCK != 0) return false;
    for (int64_t k = 0; k < w->k; k += 8) {
        __m256i bits = _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + k)), magnitude);
        __m256i is_zero = _mm256_cmpeq_epi32(bits, _mm256_setzero_si256());
        __m256i small = _mm256_andnot_si256(is_zero, _mm256_cmpgt_epi32(low, bits));
        outside = _mm256_or_si256(outside, _mm256_or_si256(small, _mm256_cmpgt_epi32(bits, high)));
    }
    int64_t blocks = w->k / PLUMB_BLOCK;
    bool usual = _mm256_testz_si256(outside, outside);
    for (int64_t i = begin / PLUMB_BLOCK * blocks; i < ((end - 1) / PLUMB_BLOCK + 1) * blocks; i++)
        usual &= w->scales[i] >= 127 - 50 && w->scales[i] <= 127 + 50;
    return usual;
}

/* Two rows of one scale tile: the activations are scaled once for both. */
static inline void dot_two_scaled(const float *x, const plumb_matrix *w, int64_t n, float result[2]) {
    lanes a = no_lanes(), b = no_lanes();
    int64_t blocks = w->k / PLUMB_BLOCK;
    const uint8_t *codes = (const uint8_t *)w->codes + n * w->k;
    const uint8_t *scales = w->scales + n / PLUMB_BLOCK * blocks;
    for (int64_t i = 0; i < blocks; i++) {
        const __m256 scale = _mm256_castsi256_ps(_mm256_set1_epi32((scales[i] + 8) << 23));
        prefetch_next(w, n, PLUMB_BLOCK * i, 1);
        lanes first = load_e4m3(codes + PLUMB_BLOCK * i);
        lanes second = load_e4m3(codes + w->k + PLUMB_BLOCK * i);
        for (int v = 0; v < 4; v++) {
            __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + PLUMB_BLOCK * i + 8 * v), scale);
            a.v[v] = _mm256_fmadd_ps(scaled, first.v[v], a.v[v]);
            b.v[v] = _mm256_fmadd_ps(scaled, second.v[v], b.v[v]);
        }
    }
    result[0] = join(a);
    result[1] = join(b);
}

static bool one_row(const float *x, const plumb_matrix *w, int64_t begin, int64_t end, plumb_act *y,
                    float *y_float) {
    bool finite = true;
    bool scaled = begin < end && w->type == PLUMB_MATRIX_FP8 && may_scale_activations(x, w, begin, end);
    for (int64_t n = begin; n < end; n += 2) {
        int64_t other = n + 1 < end ? n + 1 : n; /* an odd last row is its own partner */
        float sum[2];
        if (scaled && other % PLUMB_BLOCK > n % PLUMB_BLOCK) dot_two_scaled(x, w, n, sum);
        else if (w->type == PLUMB_MATRIX_FP8) dot_two(x, w, PLUMB_MATRIX_FP8, n, other, sum);
        else if (w->type == PLUMB_MATRIX_BF16) dot_two(x, w, PLUMB_MATRIX_BF16, n, other, sum);
        else dot_two(x, w, PLUMB_MATRIX_F32, n, other, sum);
        finite &= store(sum[0], y, y_float, n);
        if (other != n) finite &= store(sum[1], y, y_float, other);
    }
    return finite;
}

/* ---- Many rows: a chunk of four weight rows is widened once, and eight lanes are run at a time ------
 *
 * A product of one activation row and one weight row has four vectors of lanes, too many to hold for
 * twelve such products.  Lanes are independent: for each vector in turn twelve sums stay in registers
 * while a chunk of k passes by, and rest in scratch in between. */
enum {
    TILE_WEIGHTS = 4,
    TILE_ROWS = 3,
    CHUNK = 512, /* elements of k */
    GROUP = PLUMB_LINEAR_GROUP
};

typedef struct linear_scratch {
    float weight[TILE_WEIGHTS][CHUNK];
    lanes sum[GROUP][TILE_WEIGHTS];
} linear_scratch;

_Static_assert(sizeof(linear_scratch) <= PLUMB_LINEAR_TILE_BYTES, "scratch is too small");

static inline void widen_chunk(const plumb_matrix *w, plumb_matrix_type type, int64_t n,
                               int64_t count, int64_t k, int64_t size,
                               float weight[TILE_WEIGHTS][CHUNK]) {
    for (int64_t r = 0; r < TILE_WEIGHTS; r++) {
        int64_t row = n + (r < count ? r : count - 1); /* missing rows repeat the last */
        for (int64_t i = 0; i < size; i += PLUMB_LANES) {
            lanes wide = load_weights(w, type, row, k + i);
            for (int v = 0; v < 4; v++) _mm256_storeu_ps(&weight[r][i + 8 * v], wide.v[v]);
        }
    }
}

/* Twelve products, eight lanes of them, over a chunk. */
static inline void run_lanes(const float *const x[TILE_ROWS],
                             float weight[TILE_WEIGHTS][CHUNK], int64_t size, int v,
                             lanes *const sum[TILE_ROWS]) {
    __m256 acc[TILE_ROWS][TILE_WEIGHTS];
    for (int t = 0; t < TILE_ROWS; t++)
        for (int r = 0; r < TILE_WEIGHTS; r++) acc[t][r] = sum[t][r].v[v];
    for (int64_t k = 8 * v; k < size; k += PLUMB_LANES) {
        __m256 a[TILE_ROWS];
        for (int t = 0; t < TILE_ROWS; t++) a[t] = _mm256_loadu_ps(x[t] + k);
        for (int r = 0; r < TILE_WEIGHTS; r++) {
            __m256 one = _mm256_loadu_ps(&weight[r][k]);
            for (int t = 0; t < TILE_ROWS; t++) acc[t][r] = _mm256_fmadd_ps(a[t], one, acc[t][r]);
        }
    }
    for (int t = 0; t < TILE_ROWS; t++)
        for (int r = 0; r < TILE_WEIGHTS; r++) sum[t][r].v[v] = acc[t][r];
}

/* `rows` <= GROUP activation rows against `count` <= TILE_WEIGHTS weight rows. */
static void multiply_tile(const float *x, int64_t x_stride, int64_t rows, const plumb_matrix *w,
                          int64_t n, int64_t count, linear_scratch *s) {
    int64_t whole = w->k / PLUMB_LANES * PLUMB_LANES;
    for (int64_t i = 0; i < rows; i++)
        for (int r = 0; r < TILE_WEIGHTS; r++) s->sum[i][r] = no_lanes();
    for (int64_t k = 0; k < whole; k += CHUNK) {
        int64_t size = whole - k < CHUNK ? whole - k : CHUNK;
        if (w->type == PLUMB_MATRIX_FP8)
            widen_chunk(w, PLUMB_MATRIX_FP8, n, count, k, size, s->weight);
        else if (w->type == PLUMB_MATRIX_BF16)
            widen_chunk(w, PLUMB_MATRIX_BF16, n, count, k, size, s->weight);
        else widen_chunk(w, PLUMB_MATRIX_F32, n, count, k, size, s->weight);
        for (int64_t i = 0; i < rows; i += TILE_ROWS) {
            lanes unused[TILE_WEIGHTS] = {0};
            const float *row[TILE_ROWS];
            lanes *sum[TILE_ROWS];
            for (int t = 0; t < TILE_ROWS; t++) {
                row[t] = x + (i + t < rows ? i + t : i) * x_stride + k;
                sum[t] = i + t < rows ? s->sum[i + t] : unused;
            }
            for (int v = 0; v < 4; v++) run_lanes(row, s->weight, size, v, sum);
        }
    }
}

bool plumb__linear_avx2(const float *x, int64_t x_stride, int64_t rows, const plumb_matrix *w,
                        int64_t begin, int64_t end, plumb_act *y, float *y_float, int64_t y_stride,
                        void *scratch) {
    if (rows == 1) return one_row(x, w, begin, end, y, y_float);
    linear_scratch *s = scratch;
    int64_t whole = w->k / PLUMB_LANES * PLUMB_LANES, left = w->k - whole;
    bool finite = true;
    for (int64_t first = 0; first < rows; first += GROUP) {
        int64_t group = rows - first < GROUP ? rows - first : GROUP;
        for (int64_t n = begin; n < end; n += TILE_WEIGHTS) {
            int64_t count = end - n < TILE_WEIGHTS ? end - n : TILE_WEIGHTS;
            multiply_tile(x + first * x_stride, x_stride, group, w, n, count, s);
            for (int64_t r = 0; r < count; r++) {
                float tail[PLUMB_LANES];
                for (int64_t k = 0; k < left; k++) tail[k] = one_weight(w, n + r, whole + k);
                for (int64_t i = 0; i < group; i++) {
                    float sum = finish(s->sum[i][r], x + (first + i) * x_stride + whole, tail, left);
                    finite &= store(sum, y, y_float, (first + i) * y_stride + n + r);
                }
            }
        }
    }
    return finite;
}
