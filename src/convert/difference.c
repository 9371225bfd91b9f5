#include "convert/difference.h"

#include "arith/formats.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

/* An element of a released tensor, as a converted file holds it. */
typedef struct element {
    const plumb_tensor *tensor;
    int64_t number;     /* in row-major order of what the tensor counts: FP4 elements, not bytes */
    int64_t columns;
} element;

/* Which element the byte `at` of unit `unit` of a part belongs to. */
static element element_at(const plumb_stored_tensor *t, const plumb_stored_units *u,
                          const plumb_stored_part *part, int64_t unit, int64_t at) {
    const plumb_tensor *codes = part->codes, *scales = part->scales;
    int64_t width = codes->rank == 1 ? codes->shape[0] : codes->shape[1];
    switch ((plumb_stored_form)t->form) {
    case PLUMB_STORED_MXFP4:
        if (at == 0) return (element){scales, unit, scales->shape[1]};
        return (element){codes, unit * PLUMB_MXFP4_ELEMENTS + at - 1, 2 * width};
    case PLUMB_STORED_ROWS:
        if (at >= u->codes) return (element){scales, unit * u->scales + at - u->codes, u->scales};
        return (element){codes, unit * u->codes + at, width};
    case PLUMB_STORED_F32:
    case PLUMB_STORED_BF16:
        if (u->tiles) return (element){codes, unit * width + at / (u->stored / width), width};
        break;
    case PLUMB_STORED_RELEASED: break;
    }
    return (element){codes, unit, width};
}

/* Exact, subnormals and NaN too: these are not numbers that are computed with. */
static float scale_value(uint8_t code) {
    if (code == 0xFF) return NAN;
    return code == 0 ? plumb__float_of(0x00400000u) : plumb__power_of_two((int32_t)code - 127);
}

static float code_value(uint8_t code) {
    return (code & 0x7F) == 0x7F ? NAN : plumb__e4m3_decode(code);
}

static plumb__text192 describe(const element *e, float value, const uint8_t *bytes, int64_t size) {
    unsigned long long raw = 0;
    for (int64_t i = size; i-- > 0;) raw = raw << 8 | bytes[i];
    return plumb__format("%.9g (0x%0*llX) in row %lld, column %lld", (double)value, (int)(2 * size),
                         raw, (long long)(e->number / e->columns),
                         (long long)(e->number % e->columns));
}

/* The element's value in a unit, whose byte `at` belongs to it. */
static plumb__text192 value_text(const plumb_stored_tensor *t, const plumb_stored_units *u,
                                 const element *e, const uint8_t *unit, int64_t at) {
    if (t->form == PLUMB_STORED_MXFP4 && at > 0) {
        const float scale = scale_value(unit[0]);
        float low = plumb__e2m1_decode(unit[at] & 15) * scale;
        float high = plumb__e2m1_decode(unit[at] >> 4) * scale;
        return plumb__format("%.9g and %.9g (0x%02X) in row %lld, columns %lld and %lld",
                             (double)low, (double)high, unit[at],
                             (long long)(e->number / e->columns),
                             (long long)(e->number % e->columns),
                             (long long)(e->number % e->columns + PLUMB_MXFP4_ELEMENTS / 2));
    }
    bool values = t->form == PLUMB_STORED_F32 || t->form == PLUMB_STORED_BF16;
    int dtype = !values ? e->tensor->dtype
                : t->form == PLUMB_STORED_F32 ? PLUMB_DTYPE_F32 : PLUMB_DTYPE_BF16;
    int64_t size = plumb__dtype_bytes(dtype), begin = at / size * size;
    uint32_t wide;
    uint16_t narrow;
    float value = 0;
    switch (dtype) {
    case PLUMB_DTYPE_F32:
        memcpy(&wide, unit + begin, sizeof wide);
        memcpy(&value, &wide, sizeof value);
        break;
    case PLUMB_DTYPE_BF16:
        memcpy(&narrow, unit + begin, sizeof narrow);
        value = plumb__bf16_decode(narrow);
        break;
    case PLUMB_DTYPE_F8_E4M3:
        value = code_value(unit[begin]);
        if (u->scales > 0) value *= scale_value(unit[u->codes + begin / PLUMB_MXFP4_ELEMENTS]);
        break;
    default: value = scale_value(unit[begin]); break;
    }
    return describe(e, value, unit + begin, size);
}

plumb_status plumb__difference_tell(const plumb_stored_tensor *tensor, int64_t part, int64_t first,
                                    int64_t n, const uint8_t *found, const uint8_t *expected,
                                    const char *path, plumb_error *err) {
    plumb_stored_units u = plumb__stored_tensor_units(tensor);
    int64_t at = 0;
    while (at < n * u.stored - 1 && found[at] == expected[at]) at++;
    int64_t unit = at / u.stored, inside = at % u.stored;
    element e = element_at(tensor, &u, &tensor->part[part], first + unit, inside);
    int64_t offset = tensor->offset + (part * u.count + first + unit) * u.stored + inside;
    return plumb__fail(err, PLUMB_ERROR_VALUE, path, e.tensor->name, offset,
                       value_text(tensor, &u, &e, found + unit * u.stored, inside).s, "%s",
                       value_text(tensor, &u, &e, expected + unit * u.stored, inside).s);
}
