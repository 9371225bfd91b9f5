/* FP8 matrices as float32 values, and back.
 *
 * A code times its scale is +-m * 2^e with m < 16: float32 holds it exactly unless it overflows, so
 * all of it is moving exponent bits.  Integers do it, whatever the float mode of the calling thread
 * (a worker flushes subnormals).  A strip is what one scale covers of one row: at most 32 elements.
 * While all products of a scale are normal numbers, they are those of the scale 1 with another
 * exponent: one look-up and one addition.  The few other scales go value by value. */
#include "format/stored_form.h"

#include "arith/formats.h"

#include <math.h>

#define SIGN 0x80u     /* of a code */
#define NAN_CODE 0x7Fu /* all its other bits; as a code, NaN */

enum {
    STRIP = 32, /* elements along a row, and rows, of one scale */
    NAN_SCALE = 255,
    /* From here to there 2^-9 * 2^(scale-127) is normal and 448 * 2^(scale-127) finite. */
    LEAST_NORMAL_SCALE = 10,
    MOST_NORMAL_SCALE = 246
};

/* ---- Any scale: one value -------------------------------------------------------------------- */

/* The bits of code * 2^(scale-127); false when float32 does not hold it. */
static bool exact_product(uint8_t code, uint8_t scale, uint32_t *bits) {
    if (scale == NAN_SCALE || (code & NAN_CODE) == NAN_CODE) return false;
    uint32_t sign = (uint32_t)(code & SIGN) << 24;
    uint32_t integer = (uint32_t)plumb__e4m3_times512(code & NAN_CODE); /* units of 2^(scale-136) */
    if (!integer) {
        *bits = sign;
        return true;
    }
    int32_t top = 17; /* the place of its highest bit: 448 * 512 < 2^18 */
    while (!(integer >> top)) top--;
    int32_t exponent = top + scale - 136 + 127; /* biased */
    if (exponent > 254) return false;
    uint32_t magnitude = exponent > 0
                             ? (uint32_t)exponent << 23 | (integer << (23 - top) & 0x7FFFFFu)
                             : integer << (scale + 13); /* subnormal: units of 2^-149 */
    *bits = sign | magnitude;
    return true;
}

/* The code that exact_product turns into these bits; false when there is none. */
static bool exact_code(uint32_t bits, uint8_t scale, uint8_t *code) {
    int32_t exponent = (int32_t)(bits >> 23 & 255);
    uint32_t significand = (bits & 0x7FFFFFu) | (exponent ? 0x800000u : 0);
    int32_t unit = (exponent ? exponent : 1) - 150;
    /* In double nothing is subnormal.  What is no code may become any: the product tells. */
    float quotient = (float)ldexp((double)significand, unit - (scale - 127));
    *code = (uint8_t)(plumb__e4m3_encode(quotient) | (bits >> 24 & SIGN));
    uint32_t product;
    return exact_product(*code, scale, &product) && product == bits;
}

/* ---- Usual scales: a strip ------------------------------------------------------------------- */

/* Codes and their magnitudes under the scale 1.  Those differ in bits 20-27: the slots. */
typedef struct code_table {
    uint32_t magnitude[128]; /* by code: bits of a float32 */
    uint8_t code[256];       /* by slot */
} code_table;

static uint32_t slot_of(uint32_t magnitude) {
    return magnitude >> 20 & 255;
}

static void make_table(code_table *table) {
    memset(table, 0, sizeof *table);
    for (unsigned code = 1; code < NAN_CODE; code++) {
        table->magnitude[code] = plumb__bits_of(plumb__e4m3_decode((uint8_t)code));
        table->code[slot_of(table->magnitude[code])] = (uint8_t)code;
    }
}

/* Difference of the exponents from those of the scale 1, in its place. */
static uint32_t shift_of(uint8_t scale) {
    return ((uint32_t)scale - 127u) << 23;
}

/* n values of n codes; whether no code is NaN. */
static bool widen_strip(const code_table *table, const uint8_t *codes, uint8_t scale, int64_t n,
                        uint8_t *values) {
    const uint32_t shift = shift_of(scale);
    uint32_t nan = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t code = codes[i], magnitude = table->magnitude[code & NAN_CODE];
        uint32_t bits = (magnitude ? magnitude + shift : 0) | (code & SIGN) << 24;
        memcpy(values + 4 * i, &bits, sizeof bits);
        nan |= (code & NAN_CODE) + 1;
    }
    return nan <= NAN_CODE;
}

/* n codes of n values; whether every value is its code's product. */
static bool narrow_strip(const code_table *table, const uint8_t *values, uint8_t scale, int64_t n,
                         uint8_t *codes) {
    const uint32_t shift = shift_of(scale);
    uint32_t wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, values + 4 * i, sizeof bits);
        uint32_t magnitude = bits & 0x7FFFFFFFu, unscaled = magnitude - shift;
        /* A slot without a code gives code 0, whose own magnitude has the slot of 2. */
        uint32_t code = table->code[slot_of(unscaled)];
        wrong |= magnitude ? unscaled ^ table->magnitude[code] : 0;
        codes[i] = (uint8_t)((magnitude ? code : 0) | (bits >> 24 & SIGN));
    }
    return !wrong;
}

static bool usual(uint8_t scale) {
    return scale >= LEAST_NORMAL_SCALE && scale <= MOST_NORMAL_SCALE;
}

/* ---- Matrices -------------------------------------------------------------------------------- */

/* n <= 32 values; the index of the first that does not fit, or -1. */
static int64_t widen(const code_table *table, const uint8_t *codes, uint8_t scale, int64_t n,
                     uint8_t *values) {
    if (usual(scale) && widen_strip(table, codes, scale, n, values)) return -1;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        if (!exact_product(codes[i], scale, &bits)) return i;
        memcpy(values + 4 * i, &bits, sizeof bits);
    }
    return -1;
}

static int64_t narrow(const code_table *table, const uint8_t *values, uint8_t scale, int64_t n,
                      uint8_t *codes) {
    if (usual(scale) && narrow_strip(table, values, scale, n, codes)) return -1;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, values + 4 * i, sizeof bits);
        if (!exact_code(bits, scale, &codes[i])) return i;
    }
    return -1;
}

int64_t plumb__fp8_widen(const uint8_t *codes, const uint8_t *scales, int64_t row, int64_t rows,
                         int64_t columns, float *values) {
    code_table table;
    make_table(&table);
    const int64_t tiles = (columns + STRIP - 1) / STRIP;
    for (int64_t i = 0; i < rows; i++) {
        const uint8_t *scale = scales + (row + i) / STRIP * tiles;
        for (int64_t begin = 0; begin < columns; begin += STRIP) {
            int64_t place = i * columns + begin, left = columns - begin;
            int64_t unfit = widen(&table, codes + place, scale[begin / STRIP],
                                  left < STRIP ? left : STRIP, (uint8_t *)(values + place));
            if (unfit >= 0) return place + unfit;
        }
    }
    return -1;
}

int64_t plumb__fp8_narrow(const float *values, const uint8_t *scales, int64_t row, int64_t rows,
                          int64_t columns, uint8_t *codes) {
    code_table table;
    make_table(&table);
    const int64_t tiles = (columns + STRIP - 1) / STRIP;
    const uint8_t *bytes = (const uint8_t *)values; /* unaligned, perhaps */
    for (int64_t i = 0; i < rows; i++) {
        const uint8_t *scale = scales + (row + i) / STRIP * tiles;
        for (int64_t begin = 0; begin < columns; begin += STRIP) {
            int64_t place = i * columns + begin, left = columns - begin;
            int64_t unfit = narrow(&table, bytes + place * 4, scale[begin / STRIP],
                                   left < STRIP ? left : STRIP, codes + place);
            if (unfit >= 0) return place + unfit;
        }
    }
    return -1;
}
