#include "arith/rotary.h"

#include "arith/double_double.h"
#include "arith/functions.h"
#include "base/error.h"

/* Rounds |x| < 2^51 to an integer. */
static double nearest_integer(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

/* ---- base^(2i/dim) ------------------------------------------------------------------------- */

/* 2^n for -1022 <= n <= 1023 */
static double power_of_two(int n) {
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* e^x for |x| < 100, relative error below 2^-95. */
static plumb_dd dd_exp(plumb_dd x) {
    /* ln 2: 42 bits, whose product with n is exact, and the rest */
    const plumb_dd ln2_rest = {0x1.ef35793c7673p-41, 0x1.f97b57a079a19p-103};
    double n = nearest_integer(x.high * 0x1.71547652b82fep+0);
    plumb_dd r = plumb__dd_add(x, (plumb_dd){-n * 0x1.62e42fefa2p-1, 0.0});
    r = plumb__dd_add(r, plumb__dd_scale(ln2_rest, -n));
    plumb_dd e = {1.0, 0.0};
    for (int k = 24; k >= 1; k--) { /* e = 1 + r/k e; r^25/25! < 2^-120 */
        e = plumb__dd_divide(plumb__dd_mul(e, r), (plumb_dd){k, 0.0});
        e = plumb__dd_add((plumb_dd){1.0, 0.0}, e);
    }
    return plumb__dd_scale(e, power_of_two((int)n));
}

/* ln x for 1 < x <= 1e30.  Each Newton step (of third order) triples the correct bits. */
static plumb_dd dd_log(double x) {
    plumb_dd y = {(double)plumb__log((float)x), 0.0};
    for (int step = 0; step < 2; step++) {
        plumb_dd e = dd_exp(y);
        plumb_dd difference = plumb__dd_add((plumb_dd){x, 0.0}, plumb__dd_scale(e, -1.0));
        plumb_dd sum = plumb__dd_add((plumb_dd){x, 0.0}, e);
        y = plumb__dd_add(y, plumb__dd_scale(plumb__dd_divide(difference, sum), 2.0));
    }
    return y;
}

/* Correctly rounded.  A power that is a float or the midpoint of two, as 10000^(1/4) = 10 is, comes
 * out of the logarithm with an error in the last bits of `low`: those are first rounded away. */
static float frequency_divisor(plumb_dd log_base, int64_t index, int64_t dim) {
    plumb_dd exponent =
        plumb__dd_divide((plumb_dd){(double)(2 * index), 0.0}, (plumb_dd){(double)dim, 0.0});
    plumb_dd power = dd_exp(plumb__dd_mul(log_base, exponent));
    if (power.low < power.high * 0x1p-86 && power.low > power.high * -0x1p-86) power.low = 0.0;
    return plumb__dd_to_float(power);
}

/* ---- YaRN ---------------------------------------------------------------------------------- */

/* The (real) index of the frequency that turns `rotations` times in the original context.  Its
 * libm logarithms decide no bit: only floor or ceil of the corner is used, away from integers. */
static plumb_status yarn_corner(double base, const plumb_rotary_yarn *yarn, int64_t dim,
                                double rotations, const char *field, double *corner,
                                plumb_error *err) {
    const double two_pi = 6.283185307179586;
    double turns = (double)yarn->original_positions / (rotations * two_pi);
    double found = (double)dim * log(turns) / (2.0 * log(base));
    if (!(fabs(found) < 1e9))
        return plumb__fail(err, PLUMB_ERROR_CONFIG, NULL, field, -1,
                           plumb__format("a YaRN corner at %g", found).s, "a finite corner");
    if (fabs(found - nearest_integer(found)) < 1e-9)
        return plumb__fail(err, PLUMB_ERROR_CONFIG, NULL, field, -1,
                           plumb__format("a YaRN corner at %.12f", found).s,
                           "a corner at least 1e-9 from an integer");
    *corner = found;
    return PLUMB_OK;
}

static plumb_status yarn_blend(double base, const plumb_rotary_yarn *yarn, int64_t dim, float *freq,
                               plumb_error *err) {
    double low, high;
    plumb_status status =
        yarn_corner(base, yarn, dim, yarn->beta_fast, "rope_scaling.beta_fast", &low, err);
    if (status == PLUMB_OK)
        status =
            yarn_corner(base, yarn, dim, yarn->beta_slow, "rope_scaling.beta_slow", &high, err);
    if (status != PLUMB_OK) return status;

    low = floor(low) > 0.0 ? floor(low) : 0.0;
    high = ceil(high) < (double)(dim - 1) ? ceil(high) : (double)(dim - 1);
    const float first = (float)low;
    const float width = high > low ? (float)(high - low) : 0.001f;
    const float factor = (float)yarn->factor;
    for (int64_t i = 0; i < dim / 2; i++) {
        float ramp = ((float)i - first) / width;
        ramp = ramp < 0.0f ? 0.0f : ramp > 1.0f ? 1.0f : ramp;
        const float smooth = 1.0f - ramp;
        freq[i] = freq[i] / factor * (1.0f - smooth) + freq[i] * smooth;
    }
    return PLUMB_OK;
}

plumb_status plumb__rotary_frequencies(double base, const plumb_rotary_yarn *yarn, int64_t dim,
                                       float *freq, plumb_error *err) {
    if (!(base > 1.0 && base <= 1e30))
        return plumb__fail(err, PLUMB_ERROR_CONFIG, NULL, "rope_theta", -1,
                           plumb__format("%g", base).s, "above 1, at most 1e30");
    if (dim <= 0 || dim % 2 != 0)
        return plumb__fail(err, PLUMB_ERROR_CONFIG, NULL, "qk_rope_head_dim", -1,
                           plumb__format("%lld", (long long)dim).s, "even and positive");
    plumb_dd log_base = dd_log(base);
    for (int64_t i = 0; i < dim / 2; i++) freq[i] = 1.0f / frequency_divisor(log_base, i, dim);
    return yarn ? yarn_blend(base, yarn, dim, freq, err) : PLUMB_OK;
}

/* ---- cos and sin --------------------------------------------------------------------------- */

/* The angle minus the nearest multiple of pi/2; the multiple modulo 4 goes to *quadrant.  pi/2 is
 * split into 33 + 33 + 53 bits, so the first two products with a multiple below 2^20 are exact, as
 * is the first difference: the result has an absolute error below 2^-98. */
static plumb_dd reduce_angle(double angle, unsigned *quadrant) {
    double multiple = nearest_integer(angle * 0x1.45f306dc9c883p-1);
    *quadrant = (unsigned)(int64_t)multiple & 3u;
    double rest = angle - multiple * 0x1.921fb544p+0;
    plumb_dd r = plumb__dd_sum(rest, -multiple * 0x1.0b4611a6p-34);
    return plumb__dd_fast_sum(r.high, r.low - multiple * 0x1.3198a2e037073p-69);
}

/* Taylor series for |r| <= pi/4 (+ a little), z = r^2: the leading terms in two doubles, the tail,
 * which is below 2^-11 of the sum, in one.  The relative error stays below 2^-63, and no cosine or
 * sine of a float below 2^20 comes closer than 2^-54 to the middle between two floats (found by
 * trying them all), so the rounding that follows is the correct one. */
static plumb_dd dd_sin(plumb_dd r, plumb_dd z) {
    double tail = -0x1.2f49b46814157p-57; /* -1/19! */
    tail = tail * z.high + 0x1.952c77030ad4ap-49;
    tail = tail * z.high - 0x1.ae7f3e733b81fp-41;
    tail = tail * z.high + 0x1.6124613a86d09p-33;
    tail = tail * z.high - 0x1.ae64567f544e4p-26;
    tail = tail * z.high + 0x1.71de3a556c734p-19;
    tail = tail * z.high - 0x1.a01a01a01a01ap-13;
    plumb_dd s = plumb__dd_scale(z, tail);
    s = plumb__dd_add((plumb_dd){0x1.1111111111111p-7, 0x1.1111111111111p-63}, s);
    s = plumb__dd_mul(s, z);
    s = plumb__dd_add((plumb_dd){-0x1.5555555555555p-3, -0x1.5555555555555p-57}, s);
    s = plumb__dd_mul(s, z);
    return plumb__dd_add(r, plumb__dd_mul(s, r));
}

static plumb_dd dd_cos(plumb_dd z) {
    double tail = -0x1.6827863b97d97p-53; /* -1/18! */
    tail = tail * z.high + 0x1.ae7f3e733b81fp-45;
    tail = tail * z.high - 0x1.93974a8c07c9dp-37;
    tail = tail * z.high + 0x1.1eed8eff8d898p-29;
    tail = tail * z.high - 0x1.27e4fb7789f5cp-22;
    tail = tail * z.high + 0x1.a01a01a01a01ap-16;
    tail = tail * z.high - 0x1.6c16c16c16c17p-10;
    plumb_dd c = plumb__dd_scale(z, tail);
    c = plumb__dd_add((plumb_dd){0x1.5555555555555p-5, 0x1.5555555555555p-59}, c);
    c = plumb__dd_mul(c, z);
    c = plumb__dd_add((plumb_dd){-0.5, 0.0}, c);
    c = plumb__dd_mul(c, z);
    return plumb__dd_add((plumb_dd){1.0, 0.0}, c);
}

void plumb__rotary_row(const float *freq, int64_t n, int64_t position, float *cosines,
                       float *sines) {
    for (int64_t i = 0; i < n; i++) {
        const float angle = (float)position * freq[i];
        unsigned quadrant;
        plumb_dd r = reduce_angle((double)angle, &quadrant);
        plumb_dd z = plumb__dd_mul(r, r);
        float c = plumb__dd_to_float(dd_cos(z));
        float s = plumb__dd_to_float(dd_sin(r, z));
        /* each quarter turn takes (cos, sin) to (-sin, cos) */
        float turned_cos = quadrant & 1 ? s : c, turned_sin = quadrant & 1 ? c : s;
        cosines[i] = quadrant == 1 || quadrant == 2 ? -turned_cos : turned_cos;
        sines[i] = quadrant >= 2 ? -turned_sin : turned_sin;
    }
}
