/* Rounding to BF16, E4M3 and E2M1 works on the bits of the wider format: adding half a step (less
 * one when the kept part is even) and cutting is round to nearest even, and a carry out of the
 * mantissa lands in the exponent where it belongs.  Subnormals of the narrow format have a fixed
 * step, so they are rounded by adding a number whose last bit is that step. */
#include "synth/storage_codes.h"

#include <math.h>
#include <string.h>

static const double e4m3_largest = 448.0, e2m1_largest = 6.0;

static uint64_t double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double smaller(double a, double b) {
    return a < b ? a : b;
}

/* Drops the low `shift` bits, rounding to nearest, ties to even. */
static uint64_t round_off(uint64_t bits, int shift) {
    uint64_t half = UINT64_C(1) << (shift - 1);
    return (bits + (half - 1) + (bits >> shift & 1)) >> shift;
}

uint16_t plumb__bf16_code(double value) {
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return (uint16_t)round_off(bits, 16);
}

/* Code of a magnitude in a format with `mantissa` bits whose smallest normal is 2^min_exponent. */
static uint8_t small_float_code(double magnitude, int mantissa, int min_exponent, double min_normal,
                                double step_adder) {
    if (magnitude < min_normal) {
        /* The adder's last bit weighs one subnormal step: the sum's low bits count the steps. */
        return (uint8_t)(double_bits(magnitude + step_adder) - double_bits(step_adder));
    }
    int64_t code = (int64_t)round_off(double_bits(magnitude), 52 - mantissa);
    return (uint8_t)(code - ((int64_t)(1023 + min_exponent - 1) << mantissa));
}

uint8_t plumb__e4m3_code(double value) {
    double magnitude = smaller(fabs(value), e4m3_largest);
    uint8_t code = small_float_code(magnitude, 3, -6, 0x1p-6, 0x1p43); /* step 2^-9 */
    return (uint8_t)(code | (signbit(value) ? 0x80 : 0));
}

uint8_t plumb__e2m1_code(double value) {
    double magnitude = smaller(fabs(value), e2m1_largest);
    uint8_t code = small_float_code(magnitude, 1, 0, 1.0, 0x1p51); /* step 2^-1 */
    return (uint8_t)(code | (signbit(value) ? 0x8 : 0));
}

/* Smallest e with largest <= limit * 2^e.  An all-zero group gets the scale of 2^-40, so that no
 * exponent leaves the range of a scale byte. */
static int scale_exponent(double largest, double limit) {
    largest = fmax(largest, 0x1p-40);
    int exponent;
    (void)frexp(largest / limit, &exponent);
    exponent -= 1;
    return ldexp(limit, exponent) < largest ? exponent + 1 : exponent;
}

/* 2^exponent for |exponent| < 1023; multiplying by it is exact for the values met here. */
static double power_of_two(int exponent) {
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint8_t scale_byte(int exponent) {
    return (uint8_t)(exponent + 127);
}

static double largest_magnitude(const double *values, int64_t count, double so_far) {
    for (int64_t i = 0; i < count; i++) {
        double magnitude = fabs(values[i]);
        if (magnitude > so_far) so_far = magnitude;
    }
    return so_far;
}

void plumb__fp8_tile_row(const double *values, int64_t rows, int64_t columns, uint8_t *codes,
                         uint8_t *scales) {
    for (int64_t begin = 0; begin < columns; begin += PLUMB_SCALE_GROUP) {
        int64_t width = columns - begin < PLUMB_SCALE_GROUP ? columns - begin : PLUMB_SCALE_GROUP;
        double largest = 0.0;
        for (int64_t r = 0; r < rows; r++)
            largest = largest_magnitude(values + r * columns + begin, width, largest);
        int exponent = scale_exponent(largest, e4m3_largest);
        double inverse = power_of_two(-exponent);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = begin; c < begin + width; c++)
                codes[r * columns + c] = plumb__e4m3_code(values[r * columns + c] * inverse);
        scales[begin / PLUMB_SCALE_GROUP] = scale_byte(exponent);
    }
}

void plumb__fp8_row(const double *values, int64_t columns, uint8_t *codes, uint8_t *scales) {
    /* A tile of one row is a group. */
    plumb__fp8_tile_row(values, 1, columns, codes, scales);
}

void plumb__fp4_row(const double *values, int64_t columns, uint8_t *codes, uint8_t *scales) {
    for (int64_t begin = 0; begin < columns; begin += PLUMB_SCALE_GROUP) {
        const double *group = values + begin;
        double largest = largest_magnitude(group, PLUMB_SCALE_GROUP, 0.0);
        int exponent = scale_exponent(largest, e2m1_largest);
        double inverse = power_of_two(-exponent);
        for (int64_t i = 0; i < PLUMB_SCALE_GROUP; i += 2) {
            uint8_t even = plumb__e2m1_code(group[i] * inverse);
            uint8_t odd = plumb__e2m1_code(group[i + 1] * inverse);
            codes[(begin + i) / 2] = (uint8_t)(even | odd << 4);
        }
        scales[begin / PLUMB_SCALE_GROUP] = scale_byte(exponent);
    }
}
