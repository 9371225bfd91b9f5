/* Elementary functions: one implementation for every backend (docs/arithmetic.md section 9).
 *
 * exp, log, log1p and erf are at most 1 ulp from the true value, which tests/arith/functions_test.c
 * checks over every float of their range.  They use only + - *, fma, integer shifts and fixed
 * polynomials, and select instead of branching, so that a loop over an array vectorises and each
 * lane gives the bits of the scalar call.  No intermediate that matters is ever subnormal: the
 * flush-to-zero modes change nothing.  NaN in gives NaN out.
 *
 * The polynomials are minimax fits whose coefficients were then rounded to float32; the printed
 * nine digits name each float uniquely. */
#ifndef PLUMB_ARITH_FUNCTIONS_H
#define PLUMB_ARITH_FUNCTIONS_H

#include "arith/portable.h"

/* ln 2 in two parts.  The first has 15 bits, so its product with an exponent is exact. */
#define PLUMB_LN2_HIGH 0.693145752f
#define PLUMB_LN2_LOW 1.42860677e-06f
/* Adding and subtracting 1.5 * 2^23 rounds |x| < 2^22 to an integer, which the low bits hold. */
#define PLUMB_ROUND_SHIFT 12582912.0f
#define PLUMB_INFINITY_BITS 0x7F800000u
#define PLUMB_NAN_BITS 0x7FC00000u

/* e^x; +0 below -87, the largest finite float above 88.72. */
PLUMB_FN float plumb__exp(float x) {
    /* x = n ln2 + r with |r| <= ln2 / 2 */
    const float shifted = plumb__fma(x, 1.44269504f, PLUMB_ROUND_SHIFT);
    const float n = shifted - PLUMB_ROUND_SHIFT;
    const float high = plumb__fma(n, -PLUMB_LN2_HIGH, x); /* exact */
    const float low = n * -PLUMB_LN2_LOW;
    const float r = high + low;
    /* e^r = 1 + (high + (low + r^2 p(r))): `low` goes in where it is not rounded away */
    float p = 0.00138403929f;
    p = plumb__fma(p, r, 0.00836934894f);
    p = plumb__fma(p, r, 0.0416680835f);
    p = plumb__fma(p, r, 0.166665152f);
    p = plumb__fma(p, r, 0.49999994f);
    const float e = 1.0f + (high + plumb__fma(r * r, p, low));
    /* Scaling by 2^n is exact on the exponent field: inside the range the result is normal. */
    const uint32_t scale = plumb__bits_of(shifted) << 23;
    float y = plumb__float_of(plumb__bits_of(e) + scale);
    y = x < -87.0f ? 0.0f : y;
    y = x > 88.72f ? 3.40282347e+38f : y;
    return x != x ? x : y;
}

/* (log(1 + f) - f) / f^2 for 1 + f in [sqrt(1/2), sqrt(2)] */
PLUMB_FN float plumb__log_tail(float f) {
    float h = 0.0694971904f;
    h = plumb__fma(h, f, -0.118307345f);
    h = plumb__fma(h, f, 0.118761912f);
    h = plumb__fma(h, f, -0.123745702f);
    h = plumb__fma(h, f, 0.142165661f);
    h = plumb__fma(h, f, -0.166699022f);
    h = plumb__fma(h, f, 0.200023934f);
    h = plumb__fma(h, f, -0.249999762f);
    h = plumb__fma(h, f, 0.333333075f);
    return plumb__fma(h, f, -0.5f);
}

/* What log gives outside the positive normal numbers: zero (and subnormals, which read as zero)
 * -inf, negative numbers NaN, +inf and NaN themselves. */
PLUMB_FN float plumb__log_special(float x, float y) {
    y = x < 1.17549435e-38f ? plumb__float_of(0x80000000u | PLUMB_INFINITY_BITS) : y;
    y = x <= -1.17549435e-38f ? plumb__float_of(PLUMB_NAN_BITS) : y;
    y = x > 3.40282347e+38f ? x : y;
    return x != x ? x : y;
}

/* Natural logarithm. */
PLUMB_FN float plumb__log(float x) {
    /* x = 2^k (1 + f): adding bits(1) - bits(sqrt(1/2)) carries into the exponent field exactly
     * when the significand is at least sqrt(2). */
    const uint32_t bits = plumb__bits_of(x);
    const uint32_t biased = (bits + (0x3F800000u - 0x3F3504F3u)) >> 23;
    const float k = (float)((int)biased - 127);
    const float f = plumb__float_of(bits - ((biased - 127u) << 23)) - 1.0f;
    const float low = plumb__fma(k, PLUMB_LN2_LOW, f * f * plumb__log_tail(f));
    return plumb__log_special(x, plumb__fma(k, PLUMB_LN2_HIGH, f + low));
}

/* log(1 + x) */
PLUMB_FN float plumb__log1p(float x) {
    /* 1 + x = u + c exactly */
    const float u = 1.0f + x;
    const float z = u - 1.0f;
    const float c = (1.0f - (u - z)) + (x - z);
    /* 1 + x = 2^k (1 + f + d): f is the float nearest to the fraction, d the rest */
    const uint32_t bits = plumb__bits_of(u);
    const uint32_t biased = (bits + (0x3F800000u - 0x3F3504F3u)) >> 23;
    const float k = (float)((int)biased - 127);
    const float g = plumb__float_of(bits - ((biased - 127u) << 23)) - 1.0f;
    const float scaled = c * plumb__float_of((254u - biased) << 23);
    const float correction = x < 1.0e9f ? scaled : 0.0f; /* below half an ulp of 1 + x otherwise */
    const float f = g + correction;
    const float d = (g - f) + correction;
    const float low = plumb__fma(k, PLUMB_LN2_LOW, plumb__fma(f * f, plumb__log_tail(f), d));
    return plumb__log_special(u, plumb__fma(k, PLUMB_LN2_HIGH, f + low));
}

/* Error function. */
PLUMB_FN float plumb__erf(float x) {
    const uint32_t sign = plumb__bits_of(x) & 0x80000000u;
    const float a = plumb__float_of(plumb__bits_of(x) & 0x7FFFFFFFu);
    /* below 0.875: erf a = a + a q(a^2) */
    const float t = a * a;
    float q = 7.86785531e-05f;
    q = plumb__fma(q, t, -0.000802644005f);
    q = plumb__fma(q, t, 0.00519094197f);
    q = plumb__fma(q, t, -0.0268553644f);
    q = plumb__fma(q, t, 0.112836227f);
    q = plumb__fma(q, t, -0.376126289f);
    q = plumb__fma(q, t, 0.128379166f);
    const float small = plumb__fma(a, q, a);
    /* below 1.625: around 1.25, so that all but the leading constant is small */
    const float s = a - 1.25f;
    float m = -0.00541176833f;
    m = plumb__fma(m, s, 0.00388211547f);
    m = plumb__fma(m, s, 0.0212644916f);
    m = plumb__fma(m, s, -0.047207281f);
    m = plumb__fma(m, s, -0.00615744293f);
    m = plumb__fma(m, s, 0.16753681f);
    m = plumb__fma(m, s, -0.295651436f);
    m = plumb__fma(m, s, 0.23652111f);
    m = plumb__fma(m, s, -1.1911947e-08f);
    const float middle = 0.92290014f + m;
    /* from there on: erf b = 1 - e^p(b) with p = log erfc; it rounds to 1 from 3.92 on */
    const float b = a < 4.0f ? a : 4.0f;
    float p = -0.000645501481f;
    p = plumb__fma(p, b, 0.0100737736f);
    p = plumb__fma(p, b, -0.0712534115f);
    p = plumb__fma(p, b, -0.686366856f);
    p = plumb__fma(p, b, -1.08837283f);
    p = plumb__fma(p, b, -0.0132251829f);
    const float large = 1.0f - plumb__exp(p);
    float y = a < 1.625f ? middle : large;
    y = a < 0.875f ? small : y;
    return x != x ? x : plumb__float_of(plumb__bits_of(y) | sign);
}

/* Compositions: every operation rounded, in the order the contract writes them. */

PLUMB_FN float plumb__sigmoid(float x) { return 1.0f / (1.0f + plumb__exp(-x)); }

PLUMB_FN float plumb__silu(float x) { return x * plumb__sigmoid(x); }

PLUMB_FN float plumb__softplus(float x) {
    const float y = plumb__log1p(plumb__exp(x));
    return x > 20.0f ? x : y;
}

PLUMB_FN float plumb__gelu(float x) {
    return (0.5f * x) * (1.0f + plumb__erf(x * 0.707106769f)); /* 1 / sqrt(2) */
}

PLUMB_FN float plumb__rsqrt(float x) { return 1.0f / plumb__sqrt(x); }

#endif
