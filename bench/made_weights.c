#include "made_weights.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>

/* A tile's scale leaves its largest weight between 224 and 448, and the largest of 1,024 Gaussian numbers
 * is about 3.3 deviations. */
enum { SAMPLES = 65536, E4M3_DEVIATION = 97, E2M1_DEVIATION = 2 };

uint64_t bench_draw(bench_random *random) { /* splitmix64 */
    uint64_t z = random->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* Twelve uniform numbers have variance one. */
static float sum_of_uniforms(bench_random *random) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += (double)(bench_draw(random) >> 11) * 0x1p-53;
    return (float)sum;
}

bool bench_random_open(bench_random *random) {
    *random = (bench_random){.gaussian = malloc(SAMPLES * sizeof(float)),
                             .e4m3 = malloc(SAMPLES), .e2m1 = malloc(SAMPLES)};
    if (!random->gaussian || !random->e4m3 || !random->e2m1) {
        bench_random_close(random);
        return false;
    }
    for (int i = 0; i < SAMPLES; i++) {
        float x = sum_of_uniforms(random), other = sum_of_uniforms(random);
        random->gaussian[i] = x;
        random->e4m3[i] = plumb__e4m3_encode(x * E4M3_DEVIATION);
        random->e2m1[i] = (uint8_t)(plumb__e2m1_encode(x * E2M1_DEVIATION) |
                                    plumb__e2m1_encode(other * E2M1_DEVIATION) << 4);
    }
    return true;
}

void bench_random_close(bench_random *random) {
    free(random->gaussian);
    free(random->e4m3);
    free(random->e2m1);
    *random = (bench_random){0};
}

float bench_draw_gaussian(bench_random *random) {
    return random->gaussian[bench_draw(random) % SAMPLES];
}

void bench_draw_floats(bench_random *random, float mean, float deviation, float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = mean + deviation * bench_draw_gaussian(random);
}

void bench_draw_activations(bench_random *random, plumb_act *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = plumb__store(bench_draw_gaussian(random));
}

/* ---- Matrices ------------------------------------------------------------------------------ */

static int64_t tiles(int64_t n) { return (n + PLUMB_BLOCK - 1) / PLUMB_BLOCK; }

static int64_t code_bytes(plumb_matrix_type type, int64_t n, int64_t k) {
    switch (type) {
    case PLUMB_MATRIX_F32: return n * k * 4;
    case PLUMB_MATRIX_BF16: return n * k * 2;
    case PLUMB_MATRIX_FP8: return n * k;
    case PLUMB_MATRIX_FP4: return n * k / 2;
    }
    return 0;
}

static int64_t scale_bytes(plumb_matrix_type type, int64_t n, int64_t k) {
    if (type == PLUMB_MATRIX_FP8) return tiles(n) * tiles(k);
    return type == PLUMB_MATRIX_FP4 ? n * tiles(k) : 0;
}

int64_t bench_matrix_bytes(plumb_matrix_type type, int64_t n, int64_t k) {
    return code_bytes(type, n, k) + scale_bytes(type, n, k);
}

int64_t bench_matrix_stride(plumb_matrix_type type, int64_t n, int64_t k) {
    return (bench_matrix_bytes(type, n, k) + PLUMB_ALIGNMENT - 1) / PLUMB_ALIGNMENT *
           PLUMB_ALIGNMENT;
}

/* Four codes from each draw: `bytes` is a multiple of four for every matrix of the model. */
static void draw_codes(bench_random *random, const uint8_t *table, uint8_t *codes, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 4) {
        uint64_t drawn = bench_draw(random);
        for (int64_t j = i; j < i + 4 && j < bytes; j++, drawn >>= 16)
            codes[j] = table[drawn % SAMPLES];
    }
}

/* Neighbouring blocks differ by a power of two, as they do in a checkpoint. */
static void draw_scales(bench_random *random, double scale, uint8_t *scales, int64_t bytes) {
    int exponent = (int)floor(log2(scale));
    for (int64_t i = 0; i < bytes; i++)
        scales[i] = (uint8_t)(127 + exponent + (int)(bench_draw(random) & 1));
}

plumb_matrix bench_make_matrix(bench_random *random, plumb_matrix_type type, int64_t n, int64_t k,
                               void *memory) {
    int64_t bytes = code_bytes(type, n, k);
    uint8_t *scales = (uint8_t *)memory + bytes;
    double deviation = 1 / sqrt((double)k);
    uint16_t *bf16 = memory;
    switch (type) {
    case PLUMB_MATRIX_F32: bench_draw_floats(random, 0, (float)deviation, memory, n * k); break;
    case PLUMB_MATRIX_BF16:
        for (int64_t i = 0; i < n * k; i++)
            bf16[i] = plumb__bf16_encode((float)deviation * bench_draw_gaussian(random));
        break;
    case PLUMB_MATRIX_FP8:
        draw_codes(random, random->e4m3, memory, bytes);
        draw_scales(random, deviation / E4M3_DEVIATION, scales, scale_bytes(type, n, k));
        break;
    case PLUMB_MATRIX_FP4:
        draw_codes(random, random->e2m1, memory, bytes);
        draw_scales(random, deviation / E2M1_DEVIATION, scales, scale_bytes(type, n, k));
        break;
    }
    return (plumb_matrix){.type = type, .n = n, .k = k, .codes = memory,
                          .scales = scale_bytes(type, n, k) ? scales : NULL};
}
