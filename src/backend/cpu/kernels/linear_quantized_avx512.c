/* Quantised linear layers with AVX-512: one or two activation rows go through the kernel that uses
 * weights in place, more share weights unpacked once. */
#include "backend/cpu/kernels/quantized_avx512.h"

int64_t PLUMB_KERNEL(linear_quantized_scratch)(int64_t k, int64_t rows) {
    (void)k;
    return PLUMB_KERNEL(matmul_scratch)() + rows * (int64_t)sizeof(plumb_panel_sums);
}

/* Stores sixteen results, of which `n` exist; returns whether all are finite. */
static bool store(__m512 result, int64_t n, plumb_act *y) {
    float value[PLUMB_LANE_ROWS];
    bool finite = true;
    _mm512_storeu_ps(value, result);
    for (int64_t i = 0; i < n; i++) {
        finite &= (plumb__bits_of(value[i]) & 0x7F800000u) != 0x7F800000u;
        y[i] = plumb__store(value[i]);
    }
    return finite;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static bool few_rows(const void *const *x, int64_t rows, const plumb_matrix *w, int64_t n,
                     int64_t count, plumb_act *y, int64_t y_stride) {
    __m512 result[PLUMB_FEW_ROWS];
    bool finite = true;
    PLUMB_KERNEL(matvec)(x, rows, w, n, count, result);
    for (int64_t r = 0; r < rows; r++) finite &= store(result[r], count, y + r * y_stride + n);
    return finite;
}

static bool many_rows(const void *const *x, int64_t rows, const plumb_matrix *w, int64_t n,
                      int64_t count, plumb_act *y, int64_t y_stride, void *scratch) {
    plumb_panel_sums *sums =
        (plumb_panel_sums *)(void *)((char *)scratch + PLUMB_KERNEL(matmul_scratch)());
    int64_t upper = least(count, PLUMB_LANE_ROWS);
    bool finite = true;
    PLUMB_KERNEL(matmul)(x, rows, w, n, count, sums, scratch);
    for (int64_t r = 0; r < rows; r++) {
        plumb_act *out = y + r * y_stride + n;
        finite &= store(sums[r].total[0], upper, out);
        finite &= store(sums[r].total[1], count - upper, out + upper);
    }
    return finite;
}

bool PLUMB_KERNEL(linear_quantized)(const void *const *x, int64_t rows, const plumb_matrix *w,
                                    int64_t begin, int64_t end, plumb_act *y, int64_t y_stride,
                                    void *scratch) {
    bool few = rows <= PLUMB_FEW_ROWS, finite = true;
    int64_t step = few ? PLUMB_LANE_ROWS : PLUMB_PANEL_ROWS;
    for (int64_t n = begin, count; n < end; n += count) {
        /* Up to the next multiple of the step: a step never crosses a 32-row scale tile. */
        count = least(step - n % step, end - n);
        finite &= few ? few_rows(x, rows, w, n, count, y, y_stride)
                      : many_rows(x, rows, w, n, count, y, y_stride, scratch);
    }
    return finite;
}
