/* Vectors for copies, quantisation and linear layers. */
#include "backend/self_test_trial.h"

#include <string.h>

/* ---- Copies ----------------------------------------------------------------------------------- */

/* Lengths around pieces of 16 bytes; what lies behind stays. */
static void copy(plumb_trial *t) {
    enum { BYTES = 4200 };
    static const int64_t lengths[] = {4099, 1, 15, 16};
    const plumb_act *from = plumb__trial_acts(t, BYTES, -100, 100);
    for (int i = 0; i < 4; i++) {
        uint8_t *to = plumb__trial_memory(t, BYTES, 1);
        t->b->ops->copy(t->b, (const uint8_t *)from + 16 * i, to, lengths[i]);
        plumb__trial_result_is(t, to, BYTES, 1);
    }
}

/* ---- Quantisation ------------------------------------------------------------------------------ */

/* Every kind of tie of e4m3 in blocks whose scale is 1, plain numbers, and blocks of next to nothing. */
static plumb_act *hostile_rows(plumb_trial *t, int64_t rows, int64_t k) {
    plumb_act *x = plumb__trial_acts(t, rows * k, -6, 3);
    static const float ties[] = {448.0f, 1.0625f, -1.1875f, 0x1p-10f,  0x3p-10f, -0x5p-10f,
                                 17.0f,  19.0f,   0x1p-7f,  -0x1p-12f, 432.0f,   -0.0f};
    enum { TIES = sizeof ties / sizeof ties[0] };
    for (int64_t i = 0; i < PLUMB_BLOCK; i++) x[i] = plumb__store(ties[i % TIES]);
    for (int64_t i = k - PLUMB_BLOCK; i < k; i++)
        x[i] = plumb__store(plumb__trial_number(t, -125, -120)); /* below the least maximum */
#ifndef PLUMB_ROUNDING_OFF
    for (int64_t i = k - PLUMB_BLOCK; i < k; i += 3) x[i] = (plumb_act)(0x8000u * (i % 2) + 3); /* subnormal */
#endif
    return x;
}

/* Each output is one element of the row: quantised and decoded. */
static plumb_matrix identity(plumb_trial *t, int64_t k) {
    uint8_t *codes = plumb__trial_memory(t, k * k, 1);
    uint8_t *scales = plumb__trial_memory(t, k / PLUMB_BLOCK * (k / PLUMB_BLOCK), 1);
    for (int64_t i = 0; i < k; i++) codes[i * k + i] = 0x38; /* 1 */
    memset(scales, 127, (size_t)(k / PLUMB_BLOCK * (k / PLUMB_BLOCK)));
    return (plumb_matrix){
        .type = PLUMB_MATRIX_FP8, .n = k, .k = k, .codes = codes, .scales = scales};
}

/* Layouts of quantised rows differ between backends, so their readers tell what is in them: a linear layer
 * and an expert that let every element through. */
static void quantize(plumb_trial *t) {
    enum { ROWS = 3, K = 160 };
    const plumb_backend_ops *ops = t->b->ops;
    const plumb_quantized *q = plumb__trial_quantized(t, hostile_rows(t, ROWS, K), ROWS, K);
    plumb_matrix w = identity(t, K);
    plumb_act *y = plumb__trial_memory(t, ROWS * K, sizeof *y);
    ops->linear_quantized(t->b, q, ROWS, &w, y);
    plumb__trial_result_is(t, y, ROWS * K, sizeof *y);

    int32_t *slots = plumb__trial_memory(t, ROWS, sizeof *slots);
    for (int32_t i = 0; i < ROWS; i++) slots[i] = i;
    float *weights = plumb__trial_floats(t, ROWS, 0, 0);
    plumb_act *outputs = plumb__trial_memory(t, ROWS * K, sizeof *outputs);
    plumb_expert_group group = {.slots = slots, .count = ROWS};
    group.expert.gate = plumb__trial_matrix(t, PLUMB_MATRIX_FP8, K, K);
    group.expert.down = group.expert.up = w;
    ops->experts(t->b, q, &group, 1, weights, 1, 1000.0f, outputs);
    plumb__trial_result_is(t, outputs, ROWS * K, sizeof *outputs);
}

/* ---- Products ---------------------------------------------------------------------------------- */

/* More than a segment of 1024, and tails of rows and columns. */
static void linear_quantized(plumb_trial *t, plumb_matrix_type type) {
    enum { ROWS = 5, K = 1088, N = 37 };
    plumb_matrix w = plumb__trial_matrix(t, type, N, K);
    const plumb_act *x = plumb__trial_mirrored_rows(t, ROWS, K, -3, 3);
    plumb_act *y = plumb__trial_memory(t, ROWS * N, sizeof *y);
    t->b->ops->linear_quantized(t->b, plumb__trial_quantized(t, x, ROWS, K), ROWS, &w, y);
    plumb__trial_result_is(t, y, ROWS * N, sizeof *y);
}

static void linear_fp8(plumb_trial *t) { linear_quantized(t, PLUMB_MATRIX_FP8); }

static void linear_fp4(plumb_trial *t) { linear_quantized(t, PLUMB_MATRIX_FP4); }

/* Halves of 75 elements lie in other lanes than the ones they cancel; where they do not cancel, floats show
 * the last bit.  The first row has numbers that a machine without flushing would multiply to something. */
static void linear(plumb_trial *t, plumb_matrix_type type, int64_t k, bool to_float) {
    enum { ROWS = 3, N = 37 };
    int64_t stride = k + 8;
    plumb_matrix w = plumb__trial_matrix(t, type, N, k);
    plumb_act *x = plumb__trial_acts(t, ROWS * stride, -6, 6);
    for (int64_t r = 0; r < ROWS; r++) plumb__trial_mirror_acts(x + r * stride, k, 1.0f);
#ifndef PLUMB_ROUNDING_OFF
    for (int64_t i = 0; i < k; i++) x[i] = (plumb_act)(i % 4 ? i % 7 : plumb__store(0x1p-100f));
#endif
    void *y = plumb__trial_memory(t, ROWS * N, sizeof(float));
    size_t size = to_float ? sizeof(float) : sizeof(plumb_act);
    t->b->ops->linear(t->b, x, stride, ROWS, &w, to_float ? NULL : y, to_float ? y : NULL, N);
    plumb__trial_result_is(t, y, ROWS * N, size);
}

static void linear_bf16(plumb_trial *t) { linear(t, PLUMB_MATRIX_BF16, 150, false); }

static void linear_f32(plumb_trial *t) { linear(t, PLUMB_MATRIX_F32, 150, true); }

static void linear_decoded(plumb_trial *t) { linear(t, PLUMB_MATRIX_FP8, 128, true); }

static void linear_logits(plumb_trial *t) { linear(t, PLUMB_MATRIX_BF16, 96, true); }

/* Flushing of inputs and of outputs, each where the other does not do its work: subnormal activations under
 * huge weights; and a last addition, of lanes 0 and 1, whose result is subnormal and is stored as it is. */
static void linear_flushed(plumb_trial *t, plumb_matrix_type type) {
    enum { ROWS = 2, N = 2, K = 64 };
    plumb_act *x = plumb__trial_memory(t, ROWS * K, sizeof *x);
#ifndef PLUMB_ROUNDING_OFF
    for (int i = 0; i < K; i++) x[i] = (plumb_act)(i % 5 + 1);
#endif
    x[K] = x[K + 1] = plumb__store(0x1p-63f);
    float weights[N * K] = {[K] = 0x1.8p-63f, [K + 1] = -0x1p-63f};
    for (int i = 0; i < K; i++) weights[i] = 0x1p100f;
    float *wide = plumb__trial_memory(t, N * K, sizeof *wide);
    uint16_t *narrow = plumb__trial_memory(t, N * K, sizeof *narrow);
    for (int i = 0; i < N * K; i++) {
        wide[i] = weights[i];
        narrow[i] = plumb__bf16_encode(weights[i]);
    }
    plumb_matrix w = {.type = type, .n = N, .k = K};
    w.codes = type == PLUMB_MATRIX_F32 ? (const void *)wide : narrow;
    float *y = plumb__trial_memory(t, ROWS * N, sizeof *y);
    t->b->ops->linear(t->b, x, K, ROWS, &w, NULL, y, N);
    plumb__trial_result_is(t, y, ROWS * N, sizeof *y);
}

static void linear_bf16_flushed(plumb_trial *t) { linear_flushed(t, PLUMB_MATRIX_BF16); }

static void linear_f32_flushed(plumb_trial *t) { linear_flushed(t, PLUMB_MATRIX_F32); }

const plumb_trial_case plumb__trial_linear_cases[] = {
    {"copy", "copy", copy, false},
    {"quantize", "quantize", quantize, true},
    {"linear_quantized", "linear_fp8", linear_fp8, false},
    {"linear_quantized", "linear_fp4", linear_fp4, false},
    {"linear", "linear_bf16", linear_bf16, false},
    {"linear", "linear_f32", linear_f32, false},
    {"linear", "linear_decoded", linear_decoded, false},
    {"linear", "linear_bf16", linear_logits, false},
    {"linear", "linear_bf16", linear_bf16_flushed, false},
    {"linear", "linear_f32", linear_f32_flushed, false},
    {0},
};
