#include "equal/scarce_memory.h"

static const plumb_backend_ops *plenty; /* operations of a backend that has memory */
static int64_t left = -1;
static bool failed;

static bool is_scarce(void) { return left >= 0 && left-- == 0; }

static void *allocate(plumb_backend *b, int64_t bytes) {
    return is_scarce() ? NULL : plenty->allocate(b, bytes);
}

static void linear(plumb_backend *b, const plumb_act *x, int64_t x_stride, int64_t rows,
                   const plumb_matrix *w, plumb_act *y, float *y_float, int64_t y_stride) {
    if (is_scarce()) failed = true;
    else plenty->linear(b, x, x_stride, rows, w, y, y_float, y_stride);
}

static void linear_quantized(plumb_backend *b, const plumb_quantized *x, int64_t rows,
                             const plumb_matrix *w, plumb_act *y) {
    if (is_scarce()) failed = true;
    else plenty->linear_quantized(b, x, rows, w, y);
}

static plumb_status check(plumb_backend *b) {
    plumb_status status = plenty->check(b);
    if (failed) status = PLUMB_ERROR_MEMORY;
    failed = false;
    return status;
}

void scarce_memory_of(plumb_backend *backend) {
    static plumb_backend_ops scarce;
    plenty = backend->ops;
    scarce = *plenty;
    scarce.allocate = allocate;
    scarce.linear = linear;
    scarce.linear_quantized = linear_quantized;
    scarce.check = check;
    backend->ops = &scarce;
}

void scarce_memory_after(int64_t operations) { left = operations; }
