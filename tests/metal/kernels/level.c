/* The Metal kernels of quantised layers as a level of the CPU's kernels, so that the tests which prove
 * those (kernels/exact_test.c, kernels/edges_test.c) prove these.  Linked into such a test, this function
 * takes the place of the backend's: the levels are Metal's and the portable one. */
#include "metal/kernels/harness.h"

/* A check that failed here is none of the test's own. */
static void stop_when_failed(void) {
    if (t_failures) exit(1);
}

static int64_t quantized_row_bytes(int64_t k) { return PLUMB_METAL_QUANTIZED_BYTES(k); }

static bool quantize_row(const plumb_act *x, int64_t k, void *row) {
    plumb_act *aligned = arena_scratch(k * (int64_t)sizeof *x);
    memcpy(aligned, x, (size_t)k * sizeof *x);
    plumb_metal_quantize args = {.rows = 1, .k = (uint32_t)k};
    harness_call call = harness_begin("quantize", &args, sizeof args);
    harness_bind(&call, 2, aligned, k * (int64_t)sizeof *x);
    harness_bind(&call, 3, row, quantized_row_bytes(k));
    bool fault = harness_run_flat(&call, k / PLUMB_BLOCK);
    stop_when_failed();
    return !fault;
}

static bool linear_quantized(const void *const *x, int64_t rows, const plumb_matrix *w, int64_t begin,
                             int64_t end, plumb_act *y, int64_t y_stride, void *scratch) {
    (void)scratch;
    bool fp8 = w->type == PLUMB_MATRIX_FP8;
    int64_t row_bytes = quantized_row_bytes(w->k), blocks = w->k / PLUMB_BLOCK;
    char *all = arena_scratch(rows * row_bytes);
    for (int64_t r = 0; r < rows; r++) memcpy(all + r * row_bytes, x[r], (size_t)row_bytes);
    plumb_act *whole = arena_block(rows * w->n, sizeof *whole);
    plumb_metal_linear_quantized args = {(uint32_t)rows, (uint32_t)w->n, (uint32_t)w->k};
    harness_call call = harness_begin(fp8 ? "linear_fp8" : "linear_fp4", &args, sizeof args);
    harness_bind(&call, 2, all, rows * row_bytes);
    harness_bind(&call, 3, w->codes, fp8 ? w->n * w->k : w->n * w->k / 2);
    harness_bind(&call, 4, w->scales, (fp8 ? (w->n + PLUMB_BLOCK - 1) / PLUMB_BLOCK : w->n) * blocks);
    harness_bind(&call, 5, whole, rows * w->n * (int64_t)sizeof *whole);
    harness_threadgroup(&call, 0, PLUMB_METAL_BLOCK_BYTES);
    bool fault = harness_run(&call, (w->n + PLUMB_METAL_COLUMNS - 1) / PLUMB_METAL_COLUMNS,
                             (rows + PLUMB_METAL_ROWS - 1) / PLUMB_METAL_ROWS, PLUMB_METAL_THREADS);
    stop_when_failed();
    for (int64_t r = 0; r < rows; r++)
        memcpy(y + r * y_stride + begin, whole + r * w->n + begin, (size_t)(end - begin) * sizeof *y);
    return !fault;
}

int plumb__cpu_kernel_levels(const plumb_cpu_kernels **levels) {
    static plumb_cpu_kernels metal;
    metal = plumb__cpu_kernels_portable;
    metal.level = "metal";
    metal.quantized_row_bytes = quantized_row_bytes;
    metal.quantize_row = quantize_row;
    metal.linear_quantized = linear_quantized;
    levels[0] = &metal;
    levels[1] = &plumb__cpu_kernels_portable;
    return 2;
}
