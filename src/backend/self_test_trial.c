#include "backend/self_test_trial.h"

#include <string.h>

void *plumb__trial_memory(plumb_trial *t, int64_t count, size_t element_bytes) {
    int64_t bytes = (count * (int64_t)element_bytes + 15) / 16 * 16;
    /* What does not fit lies over the beginning: the trial is void, as its `used` tells. */
    uint8_t *memory = t->used + bytes <= PLUMB_TRIAL_BYTES ? t->memory + t->used : t->memory;
    t->used += bytes;
    return memory;
}

void plumb__trial_result_is(plumb_trial *t, const void *memory, int64_t count,
                            size_t element_bytes) {
    t->result[t->n_results++] = (plumb_trial_result){memory, count, (int)element_bytes};
}

/* ---- Numbers ----------------------------------------------------------------------------------- */

uint64_t plumb__trial_random(plumb_trial *t) {
    uint64_t z = t->state += 0x9E3779B97F4A7C15u; /* SplitMix64 */
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

int64_t plumb__trial_between(plumb_trial *t, int64_t least, int64_t most) {
    return least + (int64_t)(plumb__trial_random(t) % (uint64_t)(most - least + 1));
}

float plumb__trial_number(plumb_trial *t, int low, int high) {
    uint32_t exponent = (uint32_t)(plumb__trial_between(t, low, high) + 127);
    uint64_t word = plumb__trial_random(t);
    return plumb__float_of((uint32_t)(word >> 63) << 31 | exponent << 23 |
                           (uint32_t)(word & 0x7FFFFFu));
}

float *plumb__trial_floats(plumb_trial *t, int64_t n, int low, int high) {
    float *x = plumb__trial_memory(t, n, sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = plumb__trial_number(t, low, high);
    return x;
}

plumb_act *plumb__trial_acts(plumb_trial *t, int64_t n, int low, int high) {
    plumb_act *x = plumb__trial_memory(t, n, sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = plumb__store(plumb__trial_number(t, low, high));
    return x;
}

void plumb__trial_mirror_floats(float *x, int64_t n, float sign) {
    for (int64_t i = 0; i < n / 2; i++) x[n / 2 + i] = sign * x[i];
}

void plumb__trial_mirror_acts(plumb_act *x, int64_t n, float sign) {
    for (int64_t i = 0; i < n / 2; i++) x[n / 2 + i] = plumb__store(sign * plumb__load(x[i]));
}

plumb_act *plumb__trial_mirrored_rows(plumb_trial *t, int64_t rows, int64_t k, int low, int high) {
    plumb_act *x = plumb__trial_acts(t, rows * k, low, high);
    for (int64_t r = 0; r < rows; r++) plumb__trial_mirror_acts(x + r * k, k, 1.0f);
    return x;
}

plumb_quantized *plumb__trial_quantized(plumb_trial *t, const plumb_act *x, int64_t rows,
                                        int64_t k) {
    plumb_quantized *q = plumb__trial_memory(t, t->b->ops->quantized_bytes(t->b, rows, k), 1);
    t->b->ops->quantize(t->b, x, rows, k, q);
    return q;
}

/* ---- Weights ----------------------------------------------------------------------------------- */

/* Row bytes; flipping bit `sign` of each of them negates what it holds. */
static void mirror_codes(uint8_t *row, int64_t bytes, uint8_t sign) {
    for (int64_t i = 0; i < bytes / 2; i++) row[bytes / 2 + i] = row[i] ^ sign;
}

static plumb_matrix quantised_matrix(plumb_trial *t, plumb_matrix_type type, int64_t n, int64_t k) {
    bool fp8 = type == PLUMB_MATRIX_FP8;
    int64_t row_bytes = fp8 ? k : k / 2, blocks = (k + PLUMB_BLOCK - 1) / PLUMB_BLOCK;
    int64_t scale_rows = fp8 ? (n + PLUMB_BLOCK - 1) / PLUMB_BLOCK : n;
    uint8_t *codes = plumb__trial_memory(t, n * row_bytes, 1);
    uint8_t *scales = plumb__trial_memory(t, scale_rows * blocks, 1);
    for (int64_t i = 0; i < n * row_bytes; i++) {
        codes[i] = (uint8_t)plumb__trial_random(t);
        if (fp8 && (codes[i] & 0x7F) == 0x7F) codes[i] ^= 1; /* NaN */
    }
    for (int64_t i = 1; i < n; i += 2)
        mirror_codes(codes + i * row_bytes, row_bytes, fp8 ? 0x80 : 0x88);
    for (int64_t i = 0; i < scale_rows; i++) {
        uint8_t *row = scales + i * blocks;
        for (int64_t b = 0; b < blocks; b++) row[b] = (uint8_t)plumb__trial_between(t, 106, 124);
        if (blocks % 2 == 0) mirror_codes(row, blocks, 0);
    }
    return (plumb_matrix){.type = type, .n = n, .k = k, .codes = codes, .scales = scales};
}

plumb_matrix plumb__trial_matrix(plumb_trial *t, plumb_matrix_type type, int64_t n, int64_t k) {
    if (type == PLUMB_MATRIX_FP8 || type == PLUMB_MATRIX_FP4) return quantised_matrix(t, type, n, k);
    plumb_matrix w = {.type = type, .n = n, .k = k};
    if (type == PLUMB_MATRIX_F32) {
        float *codes = plumb__trial_floats(t, n * k, -4, 3);
        for (int64_t i = 1; i < n; i += 2) plumb__trial_mirror_floats(codes + i * k, k, -1.0f);
        w.codes = codes;
        return w;
    }
    uint16_t *codes = plumb__trial_memory(t, n * k, sizeof *codes);
    for (int64_t i = 0; i < n * k; i++)
        codes[i] = plumb__bf16_encode(plumb__trial_number(t, -4, 3));
    for (int64_t i = 1; i < n; i += 2)
        for (int64_t j = 0; j < k / 2; j++) codes[i * k + k / 2 + j] = codes[i * k + j] ^ 0x8000u;
    w.codes = codes;
    return w;
}
