/* Quantised linear layers: the published products (units.safetensors), and the contract's own order
 * of sums (docs/arithmetic.md section 3) bit for bit on random and edge operands.
 *
 * The published kernel may add the products of a block in another order, and so round to another bf16
 * close to a tie.  No product of the data is that close: equality is asked for. */
#include "bits.h"
#include "goldens.h"
#include "levels.h"

#include <math.h>
#include <stdlib.h>

/* y = W x through the backend; y [rows][n]. */
static plumb_status multiply(plumb_backend *b, const plumb_act *x, int64_t rows,
                             const plumb_matrix *w, plumb_act *y) {
    plumb_quantized *xq = b->ops->allocate(b, b->ops->quantized_bytes(b, rows, w->k));
    b->ops->quantize(b, x, rows, w->k, xq);
    b->ops->linear_quantized(b, xq, rows, w, y);
    b->ops->release(b, xq);
    return b->ops->check(b);
}

/* ---- The published products ------------------------------------------------------------------- */

static void check_golden(plumb_backend *b, const char *level, const char *name,
                         plumb_matrix_type type) {
    goldens *g = goldens_open("oracle/units.safetensors");
    char full[5][64];
    static const char *const parts[5] = {"x", "w", "w_scale", "y", "y_exact"};
    for (int i = 0; i < 5; i++) snprintf(full[i], sizeof full[i], "%s.%s", name, parts[i]);
    golden x = goldens_get(g, full[0], "BF16"), w = goldens_get(g, full[1], "U8");
    golden scale = goldens_get(g, full[2], "U8"), y = goldens_get(g, full[3], "BF16");
    golden exact = goldens_get(g, full[4], "F32");
    plumb_matrix matrix = {.type = type, .n = w.shape[0], .k = x.shape[1], .codes = w.u8,
                           .scales = scale.u8};
    plumb_act *got = malloc(y.bytes);
    T_CHECK(multiply(b, x.bf16, x.shape[0], &matrix, got) == PLUMB_OK, "%s", name);
    ulp_count published = {0}, nearest = {0};
    for (int64_t i = 0; i < y.count; i++) {
        ulp_count_add(&published, bf16_ulps(got[i], y.bf16[i]));
        ulp_count_add(&nearest, bf16_ulps(got[i], plumb__bf16_encode(exact.f32[i])));
    }
    printf("  %s %s: %d products, %d differ from y, %d from bf16(y_exact)\n", level, name,
           (int)y.count, (int)published.different, (int)nearest.different);
    T_CHECK(published.different == 0, "%s: %d", name, (int)published.different);
    T_CHECK(nearest.different == 0, "%s: %d", name, (int)nearest.different);
    free(got);
    goldens_close(g);
}

static void golden_at_level(plumb_backend *b, const char *level) {
    check_golden(b, level, "fp8_gemm", PLUMB_MATRIX_FP8);
    check_golden(b, level, "fp4_gemm", PLUMB_MATRIX_FP4);
}
static void published(void) { for_every_level(golden_at_level); }

/* ---- The contract's order --------------------------------------------------------------------- */

enum { ROWS = 5, COLUMNS = 70, BLOCK = 32, SEGMENT = 32 /* blocks */ };

static uint64_t random_state;
static uint32_t random_bits(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}

/* A family of operands: how codes of the weights, their scales and the activations are drawn. */
typedef struct operands {
    const char *name;
    int64_t k;
    int low_scale, high_scale; /* biased exponents of the weights' blocks */
    int low_exponent, high_exponent; /* of the activations */
    enum { RANDOM, LARGEST, CANCELLING, SPARSE, MIRRORED } kind;
} operands;

static uint8_t draw_code(const operands *o, bool fp8, int64_t i) {
    uint8_t largest = fp8 ? 0x7E : 7, sign = fp8 ? 0x80 : 8;
    uint8_t code = (uint8_t)(random_bits() % (fp8 ? 256 : 16));
    if (fp8 && (code & 0x7F) == 0x7F) code = 0x80; /* never NaN; -0 instead */
    if (o->kind == LARGEST) code = largest;
    if (o->kind == CANCELLING) code = i % 2 ? largest : (uint8_t)(largest | sign);
    if (o->kind == SPARSE && random_bits() % 8) code = (uint8_t)(random_bits() % 2 ? 0 : sign);
    return code;
}

static plumb_act draw_activation(const operands *o) {
    int spread = o->high_exponent - o->low_exponent + 1;
    uint32_t exponent = (uint32_t)(127 + o->low_exponent + (int)(random_bits() % (uint32_t)spread));
    uint32_t bits = random_bits();
    if (o->kind == LARGEST) return (plumb_act)(exponent << 7 | 0x60); /* 448 times a power */
    if (o->kind == CANCELLING) return (plumb_act)(exponent << 7 | (bits & 0x10)); /* two codes */
    if (o->kind == SPARSE && bits % 16 > 2) return (plumb_act)(bits & 0x8000);
    return (plumb_act)((bits & 0x8000) | exponent << 7 | (bits & 0x7F));
}

/* Makes the second half of each of `rows` rows the first half again, its codes with `flip` inverted: all
 * of a product but the rounding errors cancels, which shows every change of order or rounding that the
 * result's own rounding to bf16 would hide. */
static void mirror(void *data, int64_t rows, int64_t row_bytes, uint8_t flip) {
    uint8_t *bytes = data;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < row_bytes / 2; i++)
            bytes[r * row_bytes + row_bytes / 2 + i] = bytes[r * row_bytes + i] ^ flip;
}

/* Section 3 as it is written.  A block's products and their sum are exact in double: at most 41 bits. */
static float contract_product(const uint8_t *codes, const uint8_t *scales, const plumb_matrix *w,
                              int64_t n) {
    bool fp8 = w->type == PLUMB_MATRIX_FP8;
    int64_t blocks = w->k / BLOCK;
    const uint8_t *weight = (const uint8_t *)w->codes + n * w->k / (fp8 ? 1 : 2);
    const uint8_t *weight_scale = w->scales + (fp8 ? n / BLOCK : n) * blocks;
    float total = 0;
    for (int64_t first = 0; first < blocks; first += SEGMENT) {
        float segment = 0;
        for (int64_t b = first; b < blocks && b < first + SEGMENT; b++) {
            double sum = 0;
            for (int64_t i = b * BLOCK; i < (b + 1) * BLOCK; i++) {
                double value = (double)(fp8 ? plumb__e4m3_decode(weight[i])
                                            : plumb__e2m1_decode(weight[i / 2] >> (i % 2 * 4) & 15));
                sum += (double)plumb__e4m3_decode(codes[i]) * value;
            }
            int exponent = (int)scales[b] - 127 + (int)weight_scale[b] - 127;
            float power = exponent < -126 ? 0.0f : ldexpf(1.0f, exponent);
            segment = fmaf((float)sum, power, segment);
        }
        total = first == 0 ? segment : total + segment;
    }
    return total;
}

/* Draws operands, multiplies and compares every product; returns how many are not zero. */
static int64_t check_operands(plumb_backend *b, const char *level, const operands *o, bool fp8) {
    int64_t blocks = o->k / BLOCK, scale_rows = fp8 ? (COLUMNS + BLOCK - 1) / BLOCK : COLUMNS;
    int64_t row_bytes = o->k / (fp8 ? 1 : 2), off = 0, nonzero = 0;
    uint8_t *codes = malloc((size_t)(COLUMNS * row_bytes));
    uint8_t *scales = malloc((size_t)(scale_rows * blocks)), *packed = malloc((size_t)(2 * o->k));
    plumb_act *x = malloc((size_t)(ROWS * o->k) * sizeof *x), y[ROWS * COLUMNS];
    float *wide = malloc((size_t)o->k * sizeof *wide);
    random_state = (uint64_t)o->k + (fp8 ? 1 : 0);
    for (int64_t i = 0; i < COLUMNS * row_bytes; i++) {
        codes[i] = draw_code(o, fp8, fp8 ? i : 2 * i);
        if (!fp8) codes[i] = (uint8_t)(codes[i] | draw_code(o, fp8, 2 * i + 1) << 4);
    }
    uint32_t scale_spread = (uint32_t)(o->high_scale - o->low_scale + 1);
    for (int64_t i = 0; i < scale_rows * blocks; i++)
        scales[i] = (uint8_t)(o->low_scale + (int)(random_bits() % scale_spread));
    for (int64_t i = 0; i < ROWS * o->k; i++) x[i] = draw_activation(o);
    if (o->kind == MIRRORED) {
        mirror(codes, COLUMNS, row_bytes, fp8 ? 0x80 : 0x88);
        mirror(scales, scale_rows, blocks, 0);
        mirror(x, ROWS, o->k * (int64_t)sizeof *x, 0);
    }
    plumb_matrix w = {.type = fp8 ? PLUMB_MATRIX_FP8 : PLUMB_MATRIX_FP4, .n = COLUMNS, .k = o->k,
                      .codes = codes, .scales = scales};
    T_CHECK(multiply(b, x, ROWS, &w, y) == PLUMB_OK, "%s", o->name);
    for (int64_t r = 0; r < ROWS; r++) {
        for (int64_t i = 0; i < o->k; i++) wide[i] = plumb__bf16_decode(x[r * o->k + i]);
        plumb__window_pack(wide, o->k, packed);
        for (int64_t n = 0; n < COLUMNS; n++) {
            float want = contract_product(packed, packed + o->k, &w, n);
            off += y[r * COLUMNS + n] != plumb__bf16_encode(want);
            nonzero += (y[r * COLUMNS + n] & 0x7FFF) != 0;
        }
    }
    T_CHECK(off == 0, "%s %s k=%d, %s: %d products differ", level, fp8 ? "fp8" : "fp4", (int)o->k,
            o->name, (int)off);
    free(codes);
    free(scales);
    free(packed);
    free(x);
    free(wide);
    return nonzero;
}

static void contract_at_level(plumb_backend *b, const char *level) {
    static const operands cases[] = {
        {"one block", 32, 110, 130, -4, 3, RANDOM},
        {"short segment", 96, 110, 130, -4, 3, RANDOM},
        {"one segment", 1024, 110, 130, -4, 3, RANDOM},
        {"a block more", 1056, 110, 130, -4, 3, RANDOM},
        {"several segments", 3200, 100, 140, -8, 8, RANDOM},
        {"largest codes", 2304, 120, 120, 0, 0, LARGEST},
        {"cancelling", 1280, 118, 122, 0, 0, CANCELLING},
        {"mirrored segment", 1024, 110, 130, -8, 8, MIRRORED},
        {"mirrored across segments", 3200, 110, 130, -8, 8, MIRRORED},
        {"mostly zero", 1280, 118, 122, -20, 8, SPARSE},
        {"large powers", 256, 127, 150, 60, 63, RANDOM},
        {"powers that vanish", 256, 0, 10, -10, -8, RANDOM},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int fp8 = 0; fp8 < 2; fp8++) {
            int64_t nonzero = check_operands(b, level, &cases[i], fp8);
            bool vanish = cases[i].high_scale < 100;
            T_CHECK(vanish ? nonzero == 0 : nonzero > ROWS * COLUMNS / 2, "%s: %d", cases[i].name,
                    (int)nonzero);
        }
}
static void contract(void) { for_every_level(contract_at_level); }

/* A power beyond float32, a sum that overflows and an activation that is not finite are errors. */
static void errors_at_level(plumb_backend *b, const char *level) {
    static const struct {
        const char *name;
        plumb_act x;
        uint8_t scale;
    } cases[] = {
        {"power of 2^128", 0x7F00, 134}, /* 2^127 has scale 2^119 */
        {"overflowing sum", 0x7F00, 127},
        {"infinite activation", 0x7F80, 100},
        {"NaN activation", 0x7FC0, 100},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        uint8_t codes[BLOCK], scale = cases[c].scale;
        plumb_act x[BLOCK], y;
        memset(codes, 0x7E, sizeof codes);
        for (int i = 0; i < BLOCK; i++) x[i] = cases[c].x;
        plumb_matrix w = {.type = PLUMB_MATRIX_FP8, .n = 1, .k = BLOCK, .codes = codes,
                          .scales = &scale};
        T_CHECK(multiply(b, x, 1, &w, &y) == PLUMB_ERROR_VALUE, "%s: %s", level, cases[c].name);
    }
}
static void errors(void) { for_every_level(errors_at_level); }

T_MAIN({"published", published}, {"contract", contract}, {"errors", errors})
