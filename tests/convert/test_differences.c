/* A wrong bit, compared with the source: tensor, row, column and both values, for every kind of
 * element that a converted file holds.  The numbers are worked out here from the formats' definitions
 * in double, which holds all of them. */
#include <math.h>
#include <stdlib.h>

#include "damaged_file.h"
#include "t.h"

#define PLACE "differences"

/* ---- What should be said --------------------------------------------------------------------- */

typedef enum element {
    F32_VALUE, BF16_VALUE, FP8_CODE, FP8_SCALE, FP4_CODES, FP4_SCALE, ROW_CODE, ROW_SCALE,
    ELEMENTS
} element;

static const char *const element_names[ELEMENTS] = {
    "F32 value", "BF16 value", "FP8 code", "FP8 scale", "FP4 codes", "FP4 scale", "row code",
    "row scale"};

typedef struct shown {
    double value[2]; /* two for FP4: elements j and j + 16 */
    unsigned long long raw;
    long long row, column[2];
} shown;

static double e4m3(uint8_t code) {
    int exponent = code >> 3 & 15, mantissa = code & 7;
    if ((code & 127) == 127) return NAN;
    double magnitude = exponent ? ldexp(8 + mantissa, exponent - 10) : ldexp(mantissa, -9);
    return code & 128 ? -magnitude : magnitude;
}

static double e2m1(int code) {
    static const double magnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return code & 8 ? -magnitude[code & 7] : magnitude[code & 7];
}

static double ue8m0(uint8_t code) { return code == 255 ? NAN : ldexp(1, code - 127); }

static double binary32(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool is_named(const plumb_gguf_tensor *t, const char *part) {
    return strstr(t->name, part) != NULL;
}

static element element_at(const plumb_gguf_tensor *t, int64_t at) {
    int64_t inside = at - t->offset, dim = t->shape[0] / 33 * 32;
    switch (t->type) {
    case PLUMB_GGML_F32: return F32_VALUE;
    case PLUMB_GGML_BF16: return BF16_VALUE;
    case PLUMB_GGML_MXFP4: return inside % 17 ? FP4_CODES : FP4_SCALE;
    default: break;
    }
    if (is_named(t, "engram_embd")) return inside % t->shape[0] < dim ? ROW_CODE : ROW_SCALE;
    return is_named(t, "plumb.") ? FP8_SCALE : FP8_CODE;
}

/* Of a file whose bytes are these: the element that byte `at` belongs to. */
static shown work_out(const plumb_gguf_tensor *t, const uint8_t *bytes, int64_t at) {
    int64_t inside = at - t->offset, width = t->shape[0], block = inside / 17, n = inside;
    const uint8_t *here = bytes + at, *payload = bytes + t->offset;
    shown s = {{0, 0}, *here, 0, {0, 0}};
    switch (element_at(t, at)) {
    case F32_VALUE:
        n = inside / 4;
        s.raw = payload[4 * n] | (unsigned)payload[4 * n + 1] << 8 |
                (unsigned)payload[4 * n + 2] << 16 | (unsigned)payload[4 * n + 3] << 24;
        s.value[0] = binary32((uint32_t)s.raw);
        break;
    case BF16_VALUE:
        n = inside / 2;
        s.raw = payload[2 * n] | (unsigned)payload[2 * n + 1] << 8;
        s.value[0] = binary32((uint32_t)s.raw << 16);
        break;
    case FP8_CODE: s.value[0] = e4m3(*here); break;
    case FP8_SCALE: s.value[0] = ue8m0(*here); break;
    case FP4_CODES:
        n = block % (t->shape[1] * width / 32) * 32 + inside % 17 - 1;
        s.value[0] = e2m1(*here & 15) * ue8m0(payload[17 * block]);
        s.value[1] = e2m1(*here >> 4) * ue8m0(payload[17 * block]);
        s.column[1] = n % width + 16;
        break;
    case FP4_SCALE:
        width /= 32;
        n = block % (t->shape[1] * width);
        s.value[0] = ue8m0(*here);
        break;
    case ROW_CODE:
        s.value[0] = e4m3(*here) * ue8m0(payload[inside / width * width + width / 33 * 32 +
                                                 inside % width / 32]);
        break;
    case ROW_SCALE: s.value[0] = ue8m0(*here); break;
    case ELEMENTS: break;
    }
    s.row = n / width;
    s.column[0] = n % width - (element_at(t, at) == ROW_SCALE ? width / 33 * 32 : 0);
    return s;
}

static const char *expected_ending(element e) {
    return e == FP8_SCALE || e == FP4_SCALE || e == ROW_SCALE ? ".scale" : "";
}

/* ---- What is said ---------------------------------------------------------------------------- */

static bool take_text(const char *text, element e, shown *s) {
    *s = (shown){{0, 0}, 0, 0, {0, 0}};
    if (e == FP4_CODES)
        return sscanf(text, "%lf and %lf (0x%llX) in row %lld, columns %lld and %lld", &s->value[0],
                      &s->value[1], &s->raw, &s->row, &s->column[0], &s->column[1]) == 6;
    return sscanf(text, "%lf (0x%llX) in row %lld, column %lld", &s->value[0], &s->raw, &s->row,
                  &s->column[0]) == 4;
}

/* Nine digits are told; what is beyond float32 is told as infinite. */
static bool same_value(double told, double exact) {
    if (isnan(exact) || isnan(told)) return isnan(exact) && isnan(told);
    if (isinf(told)) return told * exact > 0 && fabs(exact) >= 0x1p128;
    return fabs(told - exact) <= 1e-8 * fabs(exact) && !signbit(told) == !signbit(exact);
}

static bool says(const char *text, element e, const shown *expected) {
    shown told;
    return take_text(text, e, &told) && told.raw == expected->raw && told.row == expected->row &&
           told.column[0] == expected->column[0] && told.column[1] == expected->column[1] &&
           same_value(told.value[0], expected->value[0]) &&
           same_value(told.value[1], expected->value[1]);
}

/* The released tensor: its ending, and of experts its number. */
static bool names_released(const plumb_gguf_tensor *t, int64_t at, const char *field) {
    const char *ending = expected_ending(element_at(t, at)), *number = strstr(field, ".experts.");
    size_t length = strlen(field), tail = strlen(ending);
    if (!damaged_file_names(t, field) || length < tail || strcmp(field + length - tail, ending) != 0)
        return false;
    if (tail == 0 && strstr(field, ".scale")) return false;
    if (t->type != PLUMB_GGML_MXFP4) return true;
    return number && atoll(number + 9) == (at - t->offset) / (t->bytes / t->shape[2]);
}

static void check_flip(damaged_file *d, int64_t at, int bit) {
    const plumb_gguf_tensor *t = damaged_file_tensor(d, at);
    element e = element_at(t, at);
    plumb_error err = {0};
    char line[1024] = "clean";
    damaged_file_flip(d, at, bit);
    plumb_status status = converted_audit(d->made.path, d->made.source, 1, false, &err);
    damaged_file_restore_byte(d, at);
    shown expected = work_out(t, d->bytes, at);
    d->bytes[at] ^= (uint8_t)(1 << bit);
    shown found = work_out(t, d->bytes, at);
    d->bytes[at] ^= (uint8_t)(1 << bit);
    if (status != PLUMB_OK) plumb_error_line(&err, line, sizeof line);
    T_CHECK(status == PLUMB_ERROR_VALUE && err.offset == at && names_released(t, at, err.field) &&
                says(err.found, e, &found) && says(err.expected, e, &expected),
            "%s of %s, byte %lld, bit %d: %s", element_names[e], t->name, (long long)at, bit, line);
}

/* ---- Flips ----------------------------------------------------------------------------------- */

/* A byte of such an element, or -1 when this flavour has none. */
static int64_t draw(const damaged_file *d, element wanted, uint64_t *random) {
    for (int i = 0; i < 400000; i++) {
        const plumb_gguf_tensor *t =
            &d->gguf.tensor[converted_random(random) % (uint64_t)d->gguf.tensors];
        int64_t at = t->offset + (int64_t)(converted_random(random) % (uint64_t)t->bytes);
        if (element_at(t, at) == wanted) return at;
    }
    return -1;
}

static void flips(flavour f, int absent) {
    enum { EACH = 10 };
    damaged_file d = damaged_file_open(PLACE, f);
    uint64_t random = 0xD1B54A32D192ED03u + (uint64_t)f;
    for (element e = 0; e < ELEMENTS; e++) {
        for (int i = 0; i < EACH; i++) {
            int64_t at = draw(&d, e, &random);
            T_CHECK((at < 0) == (absent >> e & 1), "%s", element_names[e]);
            if (at >= 0) check_flip(&d, at, (int)(converted_random(&random) % 8));
        }
    }
    damaged_file_close(&d);
}

static void f32(void) { flips(FLAVOUR_F32, 1 << FP8_CODE); }
static void bf16(void) { flips(FLAVOUR_BF16, 1 << FP8_CODE); }
static void fp8(void) { flips(FLAVOUR_FP8, 0); }

/* The first byte of such an element that is one bit from NaN, and the bit; -1 when there is none. */
static int64_t find_almost_nan(const damaged_file *d, element wanted, int *bit) {
    int nan = wanted == FP8_CODE || wanted == ROW_CODE ? 0x7F : 0xFF;
    for (int64_t i = 0; i < d->gguf.tensors; i++) {
        const plumb_gguf_tensor *t = &d->gguf.tensor[i];
        for (int64_t at = t->offset; at < t->offset + t->bytes; at++)
            for (*bit = 0; *bit < 8; (*bit)++)
                if (((d->bytes[at] ^ 1 << *bit) & nan) == nan && element_at(t, at) == wanted) return at;
    }
    return -1;
}

/* Codes that are no numbers are told as such. */
static void not_a_number(void) {
    static const element coded[] = {FP8_CODE, FP8_SCALE, FP4_SCALE, ROW_CODE, ROW_SCALE};
    damaged_file d = damaged_file_open(PLACE, FLAVOUR_FP8);
    int met = 0;
    for (size_t i = 0; i < sizeof coded / sizeof coded[0]; i++) {
        int bit;
        int64_t at = find_almost_nan(&d, coded[i], &bit);
        if (at >= 0) check_flip(&d, at, bit);
        met += at >= 0;
    }
    T_CHECK(met >= 2, "%d kinds of element can become NaN", met);
    damaged_file_close(&d);
}

T_MAIN({"f32", f32}, {"bf16", bf16}, {"fp8", fp8}, {"not_a_number", not_a_number})
