/* Quantised linear layers with NEON: few activation rows go one by one through the kernel that reads
 * weights in place, many share weights unpacked once. */
#include "backend/cpu/kernels/quantized_neon.h"

enum { MANY = 3 }; /* rows from which unpacking once pays */

int64_t plumb__linear_quantized_scratch_neon(int64_t k, int64_t rows) {
    (void)k;
    return plumb__matmul_scratch_neon() + rows * (int64_t)sizeof(plumb_panel_sums);
}

/* Stores four results, of which `n` exist; returns whether all are finite. */
static bool store(float32x4_t result, int64_t n, plumb_act *y) {
    float value[PLUMB_LANE_ROWS];
    bool finite = true;
    vst1q_f32(value, result);
    for (int64_t i = 0; i < n; i++) {
        finite &= (plumb__bits_of(value[i]) & 0x7F800000u) != 0x7F800000u;
        y[i] = plumb__store(value[i]);
    }
    return finite;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

bool plumb__linear_quantized_neon(const void *const *x, int64_t rows, const plumb_matrix *w,
                                  int64_t begin, int64_t end, plumb_act *y, int64_t y_stride,
                                  void *scratch) {
    plumb_panel_sums *sums =
        (plumb_panel_sums *)(void *)((char *)scratch + plumb__matmul_scratch_neon());
    int64_t step = rows >= MANY ? PLUMB_PANEL_ROWS : PLUMB_LANE_ROWS;
    bool finite = true;
    for (int64_t n = begin, count; n < end; n += count) {
        /* Up to the next multiple of the step: a step never crosses a 32-row scale tile. */
        count = least(step - n % step, end - n);
        if (rows >= MANY) plumb__matmul_neon(x, rows, w, n, count, sums, scratch);
        for (int64_t r = 0; r < rows; r++) {
            plumb_act *out = y + r * y_stride + n;
            if (rows < MANY) {
                plumb_row_neon row = plumb__row_view_neon(x[r], w->k);
                finite &= store(plumb__matvec_neon(row, w, n, count), count, out);
                continue;
            }
            int64_t upper = least(count, PLUMB_LANE_ROWS);
            finite &= store(sums[r].total[0], upper, out);
            finite &= store(sums[r].total[1], count - upper, out + upper);
        }
    }
    return finite;
}
