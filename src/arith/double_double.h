/* Numbers as the unevaluated sum of two doubles, about 104 bits: enough to round the rotary tables
 * correctly without a libm.  Only + - * / of doubles, so every IEEE machine gives the same bits.
 * Host code; no value here comes near the subnormals, which the float modes would flush. */
#ifndef PLUMB_ARITH_DOUBLE_DOUBLE_H
#define PLUMB_ARITH_DOUBLE_DOUBLE_H

#include <stdint.h>
#include <string.h>

typedef struct plumb_dd {
    double high, low; /* |low| <= ulp(high) / 2 */
} plumb_dd;

/* a + b exactly, for |a| >= |b| or a = 0. */
static inline plumb_dd plumb__dd_fast_sum(double a, double b) {
    double high = a + b;
    return (plumb_dd){high, b - (high - a)};
}

/* a + b exactly. */
static inline plumb_dd plumb__dd_sum(double a, double b) {
    double high = a + b;
    double b_part = high - a;
    return (plumb_dd){high, (a - (high - b_part)) + (b - b_part)};
}

/* a * b exactly, by halves of 26 bits; |a|, |b| < 2^995. */
static inline plumb_dd plumb__dd_product(double a, double b) {
    double a_wide = a * 134217729.0, b_wide = b * 134217729.0; /* 2^27 + 1 */
    double a_high = a_wide - (a_wide - a), b_high = b_wide - (b_wide - b);
    double a_low = a - a_high, b_low = b - b_high;
    double high = a * b;
    double low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low;
    return (plumb_dd){high, low};
}

static inline plumb_dd plumb__dd_add(plumb_dd a, plumb_dd b) {
    plumb_dd high = plumb__dd_sum(a.high, b.high);
    plumb_dd low = plumb__dd_sum(a.low, b.low);
    plumb_dd part = plumb__dd_fast_sum(high.high, high.low + low.high);
    return plumb__dd_fast_sum(part.high, part.low + low.low);
}

static inline plumb_dd plumb__dd_mul(plumb_dd a, plumb_dd b) {
    plumb_dd product = plumb__dd_product(a.high, b.high);
    return plumb__dd_fast_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

static inline plumb_dd plumb__dd_scale(plumb_dd a, double b) {
    plumb_dd product = plumb__dd_product(a.high, b);
    return plumb__dd_fast_sum(product.high, product.low + a.low * b);
}

static inline plumb_dd plumb__dd_divide(plumb_dd a, plumb_dd b) {
    double first = a.high / b.high;
    plumb_dd rest = plumb__dd_add(a, plumb__dd_scale(b, -first));
    double second = rest.high / b.high;
    rest = plumb__dd_add(rest, plumb__dd_scale(b, -second));
    plumb_dd sum = plumb__dd_fast_sum(first, second);
    return plumb__dd_fast_sum(sum.high, sum.low + rest.high / b.high);
}

/* The nearest float, ties to even.  Converting `high` alone would round twice: where it lies
 * between two doubles, it is first rounded to the odd one, which no float boundary is. */
static inline float plumb__dd_to_float(plumb_dd a) {
    uint64_t bits;
    memcpy(&bits, &a.high, sizeof bits);
    if (a.low != 0.0) {
        if ((a.low > 0.0) != (a.high > 0.0)) bits--;
        bits |= 1;
    }
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return (float)odd;
}

#endif
