/* Linear layers of unquantised operands, copies, and quantised rows byte for byte.  Quantised products are
 * those of level.c. */
#include "metal/kernels/harness.h"

#include "t.h"

/* ---- Lanes --------------------------------------------------------------------------------------- */

static plumb_matrix matrix(plumb_matrix_type type, int64_t n, int64_t k, arena_values family) {
    plumb_matrix w = {.type = type, .n = n, .k = k};
    if (type == PLUMB_MATRIX_F32) w.codes = arena_float_block(n * k, family);
    if (type == PLUMB_MATRIX_BF16) w.codes = arena_act_block(n * k, family);
    if (type != PLUMB_MATRIX_FP8) return w;
    static const uint8_t unusual[] = {0, 1, 40, 178, 250, 254};
    uint8_t *codes = arena_block(n * k, 1);
    int64_t scales = (n + PLUMB_BLOCK - 1) / PLUMB_BLOCK * ((k + PLUMB_BLOCK - 1) / PLUMB_BLOCK);
    uint8_t *scale = arena_block(scales, 1);
    for (int64_t i = 0; i < n * k; i++) {
        codes[i] = (uint8_t)arena_random();
        if ((codes[i] & 0x7F) == 0x7F) codes[i] ^= 1;
    }
    for (int64_t i = 0; i < scales; i++)
        scale[i] = arena_random() % 8 ? (uint8_t)arena_between(110, 140) : ARENA_PICK(unusual);
    arena_seal(codes);
    arena_seal(scale);
    w.codes = codes;
    w.scales = scale;
    return w;
}

static int64_t code_bytes(const plumb_matrix *w) {
    int64_t each = w->type == PLUMB_MATRIX_F32 ? 4 : w->type == PLUMB_MATRIX_BF16 ? 2 : 1;
    return w->n * w->k * each;
}

/* Strided rows of x and y; what lies between rows of y stays as it was. */
static void linear_of(plumb_matrix_type type, const char *kernel) {
    int64_t k = harness_width(600), n = arena_between(1, 70), rows = arena_between(1, 4);
    int64_t x_stride = k + arena_between(0, 5), y_stride = n + arena_between(0, 3);
    arena_values family = harness_any();
    plumb_matrix w = matrix(type, n, k, family == ARENA_BROKEN ? ARENA_PLAIN : family);
    int64_t x_count = (rows - 1) * x_stride + k, count = rows * y_stride;
    const plumb_act *x = arena_act_block(x_count, family);
    bool to_float = arena_random() % 2;
    HARNESS_OUTPUTS(float, expected, got, count); /* acts in their lower half otherwise */
    harness_cpu->ops->linear(harness_cpu, x, x_stride, rows, &w,
                             to_float ? NULL : (plumb_act *)(void *)expected,
                             to_float ? expected : NULL, y_stride);
    bool fault = harness_cpu_fault();
    plumb_metal_linear args = {(uint32_t)n, (uint32_t)k, (uint32_t)x_stride, (uint32_t)y_stride,
                               to_float};
    harness_call call = harness_begin(kernel, &args, sizeof args);
    harness_bind(&call, 2, x, x_count * 2);
    harness_bind(&call, 3, w.codes, code_bytes(&w));
    if (w.scales)
        harness_bind(&call, 4, w.scales, (n + PLUMB_BLOCK - 1) / PLUMB_BLOCK *
                                             ((k + PLUMB_BLOCK - 1) / PLUMB_BLOCK));
    harness_bind(&call, 5, got, count * 4);
    bool also = harness_run(&call, (n + 3) / 4, rows, PLUMB_METAL_THREADS);
    T_CHECK(fault == also, "%s k %" PRId64 ": flag %d", kernel, k, fault);
    T_CHECK(fault || !memcmp(expected, got, (size_t)count * 4),
            "%s k %" PRId64 " n %" PRId64 " rows %" PRId64, kernel, k, n, rows);
}
static void bf16(void) { linear_of(PLUMB_MATRIX_BF16, "linear_bf16"); }
static void f32(void) { linear_of(PLUMB_MATRIX_F32, "linear_f32"); }
static void decoded(void) { linear_of(PLUMB_MATRIX_FP8, "linear_decoded"); }

/* ---- Quantised rows ------------------------------------------------------------------------------ */

/* A quantised row is a packed window key (docs/arithmetic.md section 5), and padding that is left alone. */
static void quantize(void) {
    int64_t k = PLUMB_BLOCK * arena_between(1, 20), rows = arena_between(1, 9);
    plumb_act *x = arena_scratch(rows * k * 2);
    arena_acts(x, rows * k, harness_any());
    arena_seal(x);
    int64_t row_bytes = PLUMB_METAL_QUANTIZED_BYTES(k);
    uint8_t *expected = arena_scratch(rows * row_bytes), *got = arena_scratch(rows * row_bytes);
    bool finite = true;
    for (int64_t r = 0; r < rows; r++) {
        float *wide = arena_block(k, sizeof *wide);
        for (int64_t i = 0; i < k; i++) wide[i] = plumb__load(x[r * k + i]);
        finite &= plumb__bits_of(plumb__absolute_max(wide, (int)k)) < 0x7F800000u;
        plumb__window_pack(wide, k, expected + r * row_bytes);
    }
    plumb_metal_quantize args = {(uint32_t)rows, (uint32_t)k};
    harness_call call = harness_begin("quantize", &args, sizeof args);
    harness_bind(&call, 2, x, rows * k * 2);
    harness_bind(&call, 3, got, rows * row_bytes);
    bool fault = harness_run_flat(&call, rows * k / PLUMB_BLOCK);
    T_CHECK(fault == !finite, "k %" PRId64 ": flag %d", k, fault);
    T_CHECK(fault || !memcmp(expected, got, (size_t)(rows * row_bytes)), "k %" PRId64, k);
}

/* ---- Copies -------------------------------------------------------------------------------------- */

static void copy(void) {
    int64_t bytes = arena_random() % 2 ? arena_between(1, 70) : arena_between(1, 9000);
    uint8_t *from = arena_block(bytes, 1), *to = arena_block(bytes, 1);
    for (int64_t i = 0; i < bytes; i++) from[i] = (uint8_t)arena_random();
    arena_seal(from);
    plumb_metal_copy args = {(uint32_t)bytes};
    harness_call call = harness_begin("copy", &args, sizeof args);
    harness_bind(&call, 2, from, bytes);
    harness_bind(&call, 3, to, bytes);
    bool fault = harness_run_flat(&call, (bytes + 15) / 16);
    T_CHECK(!fault && !memcmp(from, to, (size_t)bytes), "%" PRId64 " bytes", bytes);
}

/* ---- All of them --------------------------------------------------------------------------------- */

static void repeat(void (*round)(void), int rounds) {
    arena_seed(31);
    for (int i = 0; i < rounds; i++) {
        round();
        T_CHECK(arena_free_all(), "wrote outside");
    }
}
#define REPEATED(name, rounds) \
    static void name##_rounds(void) { repeat(name, rounds); }
REPEATED(bf16, 80)
REPEATED(f32, 80)
REPEATED(decoded, 80)
REPEATED(quantize, 80)
REPEATED(copy, 80)

int main(int argc, char **argv) {
    static const t_test tests[] = {{"bf16", bf16_rounds}, {"f32", f32_rounds},
                                   {"decoded", decoded_rounds}, {"quantize", quantize_rounds},
                                   {"copy", copy_rounds}};
    return harness_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));
}
