/* Quantised linear layers with AVX2: few activation rows go one by one through the kernel that
 * reads weights in place, many share weights unpacked once. */
#include "backend/cpu/kernels/quantized_avx2.h"

enum {
    MANY = 3,  /* rows from which unpacking once pays */
    GROUP = 64 /* rows whose activations stay near while all weights pass by */
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t plumb__linear_quantized_scratch_avx2(int64_t k, int64_t rows) {
    int64_t one = plumb__matvec_scratch_avx2(k);
    int64_t many = plumb__matmul_scratch_avx2() + least(rows, GROUP) * (int64_t)sizeof(plumb_panel_sums);
    return one > many ? one : many;
}

/* Stores eight results, of which `n` exist; returns whether all are finite. */
static bool store(__m256 result, int64_t n, plumb_act *y) {
    float value[PLUMB_LANE_ROWS];
    bool finite = true;
    _mm256_storeu_ps(value, result);
    for (int64_t i = 0; i < n; i++) {
        finite &= (plumb__bits_of(value[i]) & 0x7F800000u) != 0x7F800000u;
        y[i] = plumb__store(value[i]);
    }
    return finite;
}

static bool one_by_one(const void *const *x, int64_t rows, const plumb_matrix *w, int64_t n,
                       int64_t count, bool last, plumb_act *y, int64_t y_stride, void *scratch) {
    bool finite = true;
    for (int64_t r = 0; r < rows; r++) {
        __m256 result;
        plumb_row_avx2 row = plumb__row_view_avx2(x[r], w->k);
        plumb__matvec_avx2(&row, w, n, count, last || r + 1 < rows, scratch, &result);
        finite &= store(result, count, y + r * y_stride);
    }
    return finite;
}

static bool together(const void *const *x, int64_t rows, const plumb_matrix *w, int64_t n,
                     int64_t count, plumb_act *y, int64_t y_stride, void *scratch) {
    plumb_panel_sums *sums =
        (plumb_panel_sums *)(void *)((char *)scratch + plumb__matmul_scratch_avx2());
    int64_t upper = least(count, PLUMB_LANE_ROWS);
    bool finite = true;
    plumb__matmul_avx2(x, rows, w, n, count, sums, scratch);
    for (int64_t r = 0; r < rows; r++) {
        finite &= store(sums[r].total[0], upper, y + r * y_stride);
        finite &= store(sums[r].total[1], count - upper, y + r * y_stride + upper);
    }
    return finite;
}

bool plumb__linear_quantized_avx2(const void *const *x, int64_t rows, const plumb_matrix *w,
                                  int64_t begin, int64_t end, plumb_act *y, int64_t y_stride,
                                  void *scratch) {
    bool finite = true;
    for (int64_t first = 0; first < rows; first += GROUP) {
        int64_t n_rows = least(rows - first, GROUP);
        int64_t step = n_rows < MANY ? PLUMB_LANE_ROWS : PLUMB_PANEL_ROWS;
        for (int64_t n = begin, count; n < end; n += count) {
            /* Up to the next multiple of the step: a step never crosses a 32-row scale tile. */
            count = least(step - n % step, end - n);
            plumb_act *out = y + first * y_stride + n;
            finite &= n_rows < MANY ? one_by_one(x + first, n_rows, w, n, count, n + count == end,
                                                 out, y_stride, scratch)
                                    : together(x + first, n_rows, w, n, count, out, y_stride, scratch);
        }
    }
    return finite;
}
