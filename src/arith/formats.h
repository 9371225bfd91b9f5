/* Number formats (docs/arithmetic.md sections 1 and 2): bf16, e4m3, e2m1, ue8m0.
 *
 * Decoders are exact.  Encoders work on the bits, with integers only, so that no float mode can
 * change them; a subnormal input is first turned into a zero of its sign. */
#ifndef PLUMB_ARITH_FORMATS_H
#define PLUMB_ARITH_FORMATS_H

#include "arith/portable.h"

/* ---- bf16: the upper half of binary32 -------------------------------------------------- */

PLUMB_FN float plumb__bf16_decode(uint16_t b) { return plumb__float_of((uint32_t)b << 16); }

/* Round to nearest, ties to even; NaN stays NaN; subnormals become zero of their sign. */
PLUMB_FN uint16_t plumb__bf16_encode(float x) {
    uint32_t u = plumb__bits_of(x);
    uint32_t magnitude = u & 0x7FFFFFFFu;
    uint32_t rounded = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;
    rounded = magnitude < 0x00800000u ? (u >> 31) << 15 : rounded;
    rounded = magnitude > 0x7F800000u ? ((u >> 16) | 0x40u) : rounded;
    return (uint16_t)rounded;
}

/* ---- ue8m0: powers of two ---------------------------------------------------------------- */

/* 2^exponent for -126 <= exponent <= 127; below that +0, as the flush of section 2 demands. */
PLUMB_FN float plumb__power_of_two(int32_t exponent) {
    return exponent < -126 ? 0.0f : plumb__float_of((uint32_t)(exponent + 127) << 23);
}

/* Smallest power of two >= t (t positive, normal), as its exponent. */
PLUMB_FN int32_t plumb__ceil_log2(float t) {
    uint32_t u = plumb__bits_of(t);
    return (int32_t)(u >> 23) - 127 + ((u & 0x7FFFFFu) != 0);
}

/* ---- e4m3 (fn): s4e3m, bias 7, 0x7F/0xFF NaN, no infinities --------------------------------- */

/* The value times 2^9, always an integer of at most 229,376: what exact block sums add. */
PLUMB_FN int32_t plumb__e4m3_times512(uint8_t code) {
    int32_t exponent = (code >> 3) & 15;
    int32_t normal = exponent != 0; /* no branches: loops over codes must vectorise */
    int32_t magnitude = (8 * normal + (code & 7)) << (exponent - normal);
    int32_t sign = -(code >> 7);
    return (magnitude ^ sign) - sign;
}
PLUMB_FN float plumb__e4m3_decode(uint8_t code) {
    float magnitude = (float)plumb__e4m3_times512(code & 0x7F) * 0.001953125f; /* 2^-9 */
    return plumb__float_of(plumb__bits_of(magnitude) | (uint32_t)(code & 0x80) << 24);
}

/* Clamps to +-448, then rounds to nearest, ties to even, subnormals (steps of 2^-9) included. */
PLUMB_FN uint8_t plumb__e4m3_encode(float x) {
    uint32_t u = plumb__bits_of(x);
    uint32_t sign = (u >> 24) & 0x80u;
    uint32_t magnitude = u & 0x7FFFFFFFu;
    if (magnitude > 0x43E00000u) magnitude = 0x43E00000u; /* 448 */
    uint32_t exponent = magnitude >> 23;
    if (exponent >= 121) { /* >= 2^-6: keep 3 mantissa bits */
        uint32_t rounded = magnitude + 0x7FFFFu + ((magnitude >> 20) & 1u);
        return (uint8_t)(sign | ((rounded >> 20) - (120u << 3)));
    }
    /* Below 2^-6 a code is a multiple of 2^-9: shift the significand there and round. */
    uint32_t shift = 141u - exponent; /* significand * 2^(exponent-150) in units of 2^-9 */
    if (exponent == 0 || shift > 25) return (uint8_t)sign;
    uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u;
    uint32_t whole = significand >> shift;
    uint32_t rest = significand & ((1u << shift) - 1u);
    uint32_t middle = 1u << (shift - 1);
    whole += (rest > middle) || (rest == middle && (whole & 1u));
    return (uint8_t)(sign | whole);
}

/* ---- e2m1: s2e1m, codes 0..7 are 0 .5 1 1.5 2 3 4 6 ------------------------------------------- */

/* Twice the value, an integer of at most 12. */
PLUMB_FN int32_t plumb__e2m1_times2(uint8_t code) {
    int32_t exponent = (code >> 1) & 3;
    int32_t normal = exponent != 0;
    int32_t magnitude = (2 * normal + (code & 1)) << (exponent - normal);
    int32_t sign = -(code >> 3 & 1);
    return (magnitude ^ sign) - sign;
}
PLUMB_FN float plumb__e2m1_decode(uint8_t code) {
    float magnitude = (float)plumb__e2m1_times2(code & 7) * 0.5f;
    return plumb__float_of(plumb__bits_of(magnitude) | (uint32_t)(code & 8) << 28);
}

/* Clamps to +-6, then to the nearest value, ties to the even code; the sign of zero is kept. */
PLUMB_FN uint8_t plumb__e2m1_encode(float x) {
    uint32_t u = plumb__bits_of(x);
    float a = plumb__float_of(u & 0x7FFFFFFFu);
    /* Midpoints between neighbours; a tie goes up exactly where the upper code is even. */
    uint32_t code = (uint32_t)(a > 0.25f) + (uint32_t)(a >= 0.75f) + (uint32_t)(a > 1.25f) +
                    (uint32_t)(a >= 1.75f) + (uint32_t)(a > 2.5f) + (uint32_t)(a >= 3.5f) +
                    (uint32_t)(a > 5.0f);
    return (uint8_t)(code | (u >> 28 & 8u));
}

#endif
