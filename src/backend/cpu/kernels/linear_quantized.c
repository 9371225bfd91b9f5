/* Quantised linear layers: exact blocks of 32 (docs/arithmetic.md section 3).
 *
 * Times 2^9 every e4m3 value is an integer of 18 bits, times 2 every e2m1 value one of 5 bits, so the
 * 32 products of a block can be added exactly.  Activations and e4m3 weights are split into two
 * planes of 9 bits whose products and sums fit int32 (pmaddwd does two at a time); the planes are
 * joined in int64 and rounded once.
 *
 * One weight row is unpacked into scratch and then used for every activation row, so that weights
 * are read and unpacked once however many rows there are. */
#include "arith/lanes.h"
#include "backend/cpu/kernels/kernels.h"

/* The portable layout of a quantised row: values times 2^9 as two planes, value = 512 * high + low
 * with 0 <= low < 512; the row itself when rounding is off. */
typedef struct quantized_row {
    int16_t *high, *low; /* [k] */
    int32_t *exponent;   /* [k / 32] */
    float *value;        /* [k] */
} quantized_row;

int64_t PLUMB_KERNEL(quantized_row_bytes)(int64_t k) {
    int64_t bytes = 4 * k + k / PLUMB_BLOCK * 4;
#ifdef PLUMB_ROUNDING_OFF
    bytes += 4 * k;
#endif
    return (bytes + 63) / 64 * 64;
}

int64_t PLUMB_KERNEL(linear_quantized_scratch)(int64_t k, int64_t rows) {
    (void)rows;
    return 8 * k;
}

static quantized_row view(const void *row, int64_t k) {
    quantized_row v = {.high = (int16_t *)(uintptr_t)row};
    v.low = v.high + k;
    v.exponent = (int32_t *)(void *)(v.low + k);
    v.value = (float *)(void *)(v.exponent + k / PLUMB_BLOCK);
    return v;
}

static bool is_finite(float x) { return (plumb__bits_of(x) & 0x7F800000u) != 0x7F800000u; }

#ifdef PLUMB_ROUNDING_OFF

bool PLUMB_KERNEL(quantize_row)(const plumb_act *x, int64_t k, void *row) {
    quantized_row out = view(row, k);
    bool finite = true;
    for (int64_t i = 0; i < k; i++) {
        out.value[i] = plumb__load(x[i]);
        finite &= is_finite(out.value[i]);
    }
    return finite;
}

/* Row n of an FP8 or FP4 matrix as floats. */
static void unpack_row(const plumb_matrix *w, int64_t n, float *out) {
    const uint8_t *codes = w->codes;
    int64_t blocks = (w->k + PLUMB_BLOCK - 1) / PLUMB_BLOCK;
    for (int64_t i = 0; i < w->k; i++) {
        bool fp8 = w->type == PLUMB_MATRIX_FP8;
        uint8_t byte = codes[fp8 ? n * w->k + i : (n * w->k + i) / 2];
        float value = fp8 ? plumb__e4m3_decode(byte)
                          : plumb__e2m1_decode(i % 2 ? byte >> 4 : byte & 15);
        int64_t scale_row = fp8 ? n / PLUMB_BLOCK : n;
        int32_t exponent = w->scales[scale_row * blocks + i / PLUMB_BLOCK] - 127;
        out[i] = value * plumb__power_of_two(exponent);
    }
}

bool PLUMB_KERNEL(linear_quantized)(const void *const *x, int64_t rows, const plumb_matrix *w,
                                    int64_t begin, int64_t end, plumb_act *y, int64_t y_stride,
                                    void *scratch) {
    float *weight = scratch;
    bool finite = true;
    for (int64_t n = begin; n < end; n++) {
        unpack_row(w, n, weight);
        for (int64_t r = 0; r < rows; r++) {
            float sum = plumb__lanes_dot(view(x[r], w->k).value, weight, w->k);
            finite &= is_finite(sum);
            y[r * y_stride + n] = plumb__store(sum);
        }
    }
    return finite;
}

#else

enum { BLOCKS_PER_SEGMENT = 32 };

bool PLUMB_KERNEL(quantize_row)(const plumb_act *x, int64_t k, void *row) {
    quantized_row out = view(row, k);
    bool finite = true;
    for (int64_t b = 0; b < k / PLUMB_BLOCK; b++) {
        float value[PLUMB_BLOCK];
        for (int i = 0; i < PLUMB_BLOCK; i++) value[i] = plumb__load(x[b * PLUMB_BLOCK + i]);
        finite &= is_finite(plumb__absolute_max(value, PLUMB_BLOCK));
        int32_t exponent = plumb__q8_exponent(value);
        out.exponent[b] = exponent;
        for (int i = 0; i < PLUMB_BLOCK; i++) {
            uint8_t code = plumb__e4m3_encode(plumb__divide_power(value[i], exponent));
            int32_t integer = plumb__e4m3_times512(code);
            out.high[b * PLUMB_BLOCK + i] = (int16_t)(integer >> 9);
            out.low[b * PLUMB_BLOCK + i] = (int16_t)(integer & 511);
        }
    }
    return finite;
}

static inline int32_t dot_plane(const int16_t *a, const int16_t *b) {
    int32_t sum = 0;
    for (int i = 0; i < PLUMB_BLOCK; i++) sum += (int32_t)a[i] * (int32_t)b[i];
    return sum;
}

/* One unpacked weight row: FP8 has two planes, FP4 one; exponent per block. */
typedef struct weight_row {
    int16_t *high, *low;
    int32_t *exponent;
} weight_row;

static void unpack_fp8(const plumb_matrix *w, int64_t n, weight_row out) {
    int64_t blocks = w->k / PLUMB_BLOCK;
    const uint8_t *codes = (const uint8_t *)w->codes + n * w->k;
    const uint8_t *scales = w->scales + n / PLUMB_BLOCK * blocks;
    for (int64_t b = 0; b < blocks; b++) out.exponent[b] = (int32_t)scales[b] - 127;
    for (int64_t i = 0; i < w->k; i++) {
        int32_t integer = plumb__e4m3_times512(codes[i]);
        out.high[i] = (int16_t)(integer >> 9);
        out.low[i] = (int16_t)(integer & 511);
    }
}

static void unpack_fp4(const plumb_matrix *w, int64_t n, weight_row out) {
    int64_t blocks = w->k / PLUMB_BLOCK;
    const uint8_t *codes = (const uint8_t *)w->codes + n * w->k / 2;
    const uint8_t *scales = w->scales + n * blocks;
    for (int64_t b = 0; b < blocks; b++) out.exponent[b] = (int32_t)scales[b] - 127;
    for (int64_t i = 0; i < w->k / 2; i++) {
        out.high[2 * i] = (int16_t)plumb__e2m1_times2(codes[i] & 15);
        out.high[2 * i + 1] = (int16_t)plumb__e2m1_times2(codes[i] >> 4);
    }
}

/* D_b: the exact sum over block b of activation times weight, rounded once to float32. */
static inline float block_fp8(const quantized_row *x, weight_row w, int64_t i) {
    int64_t high = dot_plane(x->high + i, w.high + i);
    int64_t middle = (int64_t)dot_plane(x->high + i, w.low + i) + dot_plane(x->low + i, w.high + i);
    int64_t low = dot_plane(x->low + i, w.low + i);
    return (float)(high * 262144 + middle * 512 + low) * 0x1p-18f;
}

static inline float block_fp4(const quantized_row *x, weight_row w, int64_t i) {
    int32_t high = dot_plane(x->high + i, w.high + i);
    int32_t low = dot_plane(x->low + i, w.high + i);
    return (float)(high * 512 + low) * 0x1p-10f;
}

/* ((S_0 + S_1) + ...): segments of 32 blocks, each a chain of fma(D_b, P_b, S).  An exponent
 * sum beyond 127 has no float32 power: the segment becomes non-finite, which the caller reports. */
static inline float row_dot(const quantized_row *x, weight_row w, int64_t k, bool fp8) {
    int64_t blocks = k / PLUMB_BLOCK;
    float total = 0.0f;
    for (int64_t first = 0; first < blocks; first += BLOCKS_PER_SEGMENT) {
        int64_t last = first + BLOCKS_PER_SEGMENT < blocks ? first + BLOCKS_PER_SEGMENT : blocks;
        float segment = 0.0f;
        for (int64_t b = first; b < last; b++) {
            float d = fp8 ? block_fp8(x, w, b * PLUMB_BLOCK) : block_fp4(x, w, b * PLUMB_BLOCK);
            int32_t exponent = x->exponent[b] + w.exponent[b];
            float power = exponent > 127 ? plumb__float_of(0x7F800000u)
                                         : plumb__power_of_two(exponent);
            segment = plumb__fma(d, power, segment);
        }
        total = first == 0 ? segment : total + segment;
    }
    return total;
}

bool PLUMB_KERNEL(linear_quantized)(const void *const *x, int64_t rows, const plumb_matrix *w,
                                    int64_t begin, int64_t end, plumb_act *y, int64_t y_stride,
                                    void *scratch) {
    weight_row row = {.high = scratch};
    row.low = row.high + w->k;
    row.exponent = (int32_t *)(void *)(row.low + w->k);
    bool fp8 = w->type == PLUMB_MATRIX_FP8, finite = true;
    for (int64_t n = begin; n < end; n++) {
        if (fp8) unpack_fp8(w, n, row);
        else unpack_fp4(w, n, row);
        for (int64_t r = 0; r < rows; r++) {
            quantized_row q = view(x[r], w->k);
            float sum = fp8 ? row_dot(&q, row, w->k, true) : row_dot(&q, row, w->k, false);
            finite &= is_finite(sum);
            y[r * y_stride + n] = plumb__store(sum);
        }
    }
    return finite;
}

#endif
