/* Linear layers of unquantised operands: thirty-two lanes (docs/arithmetic.md section 4).
 *
 * Weights may be bf16, float32, or FP8 that the published code uses as bf16 (the grouped output
 * projection): those are decoded to their exact bf16 value. */
#include "arith/lanes.h"
#include "backend/cpu/kernels/kernels.h"

/* Row n of the weight as floats: scratch, or the matrix itself when it is float32 already. */
static const float *weight_row(const plumb_matrix *w, int64_t n, float *scratch) {
    if (w->type == PLUMB_MATRIX_F32) return (const float *)w->codes + n * w->k;
    if (w->type == PLUMB_MATRIX_BF16) {
        const uint16_t *row = (const uint16_t *)w->codes + n * w->k;
        for (int64_t i = 0; i < w->k; i++) scratch[i] = plumb__bf16_decode(row[i]);
        return scratch;
    }
    const uint8_t *codes = (const uint8_t *)w->codes + n * w->k;
    int64_t blocks = (w->k + PLUMB_BLOCK - 1) / PLUMB_BLOCK;
    const uint8_t *scales = w->scales + n / PLUMB_BLOCK * blocks;
    for (int64_t i = 0; i < w->k; i++) {
        float scale = plumb__power_of_two((int32_t)scales[i / PLUMB_BLOCK] - 127);
        scratch[i] = plumb__bf16_decode(plumb__bf16_encode(plumb__e4m3_decode(codes[i]) * scale));
    }
    return scratch;
}

bool PLUMB_KERNEL(linear)(const float *x, int64_t x_stride, int64_t rows, const plumb_matrix *w,
                          int64_t begin, int64_t end, plumb_act *y, float *y_float,
                          int64_t y_stride, void *scratch) {
    bool finite = true;
    for (int64_t n = begin; n < end; n++) {
        const float *weight = weight_row(w, n, scratch);
        for (int64_t r = 0; r < rows; r++) {
            float sum = plumb__lanes_dot(x + r * x_stride, weight, w->k);
            finite &= (plumb__bits_of(sum) & 0x7F800000u) != 0x7F800000u;
            if (y) y[r * y_stride + n] = plumb__store(sum);
            else y_float[r * y_stride + n] = sum;
        }
    }
    return finite;
}
