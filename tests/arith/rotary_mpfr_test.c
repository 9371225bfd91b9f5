/* Rotary tables against MPFR, which rounds correctly by construction: every position below 4096,
 * random angles up to 2^20, and powers of many bases. */
#include <mpfr.h>

#include "arith/rotary.h"

#include "arith/portable.h"
#include "t.h"

enum { WORK_BITS = 160 };

static float nearest(mpfr_t x) { return mpfr_get_flt(x, MPFR_RNDN); }

static void check_row(const float *freq, int n, int64_t position) {
    float cosines[64], sines[64];
    plumb__rotary_row(freq, n, position, cosines, sines);
    mpfr_t angle, value;
    mpfr_init2(angle, 24);
    mpfr_init2(value, WORK_BITS);
    for (int k = 0; k < n; k++) {
        mpfr_set_flt(angle, (float)position * freq[k], MPFR_RNDN);
        mpfr_cos(value, angle, MPFR_RNDN);
        T_CHECK(cosines[k] == nearest(value), "cos: position %" PRId64 " frequency %.9g", position,
                (double)freq[k]);
        mpfr_sin(value, angle, MPFR_RNDN);
        T_CHECK(sines[k] == nearest(value), "sin: position %" PRId64 " frequency %.9g", position,
                (double)freq[k]);
    }
    mpfr_clears(angle, value, (mpfr_ptr)0);
}

static void rows_of_the_released_tables(void) {
    static const plumb_rotary_yarn yarn = {16, 32, 1, 65536};
    for (int table = 0; table < 2; table++) {
        float freq[32];
        plumb_status status =
            plumb__rotary_frequencies(table ? 160000 : 10000, table ? &yarn : NULL, 64, freq, NULL);
        T_CHECK(status == PLUMB_OK, "table %d", table);
        for (int64_t p = 0; p < 4096; p++) check_row(freq, 32, p);
        for (int64_t p = 4096; p < 1 << 20; p += 6007) check_row(freq, 32, p);
    }
}

static void random_angles(void) {
    uint64_t state = 20260910;
    for (int i = 0; i < 4000; i++) {
        float angles[32];
        for (int k = 0; k < 32; k++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            uint32_t word = (uint32_t)(state >> 32);
            /* exponents -30..19, any significand */
            angles[k] = plumb__float_of((97 + (word >> 23) % 50) << 23 | (word & 0x7FFFFF));
        }
        check_row(angles, 32, 1);
    }
}

static void powers_of_many_bases(void) {
    static const double bases[] = {10000, 160000, 500000, 1000000, 1.0000001, 2,  3,
                                   12345.678, 1e6 + 0.5, 9999999, 1e30, 1.5};
    static const int dims[] = {2, 8, 16, 24, 32, 64, 80, 96, 128};
    mpfr_t base, exponent, power;
    mpfr_init2(base, 53);
    mpfr_init2(exponent, 300);
    mpfr_init2(power, 300);
    for (size_t b = 0; b < sizeof bases / sizeof bases[0]; b++)
        for (size_t d = 0; d < sizeof dims / sizeof dims[0]; d++) {
            float freq[64];
            plumb_status status =
                plumb__rotary_frequencies(bases[b], NULL, dims[d], freq, NULL);
            T_CHECK(status == PLUMB_OK, "base %g", bases[b]);
            for (int i = 0; i < dims[d] / 2; i++) {
                mpfr_set_d(base, bases[b], MPFR_RNDN);
                mpfr_set_ui(exponent, (unsigned)(2 * i), MPFR_RNDN);
                mpfr_div_ui(exponent, exponent, (unsigned)dims[d], MPFR_RNDN);
                mpfr_pow(power, base, exponent, MPFR_RNDN);
                T_CHECK(freq[i] == 1.0f / nearest(power), "base %g dim %d frequency %d", bases[b],
                        dims[d], i);
            }
        }
    mpfr_clears(base, exponent, power, (mpfr_ptr)0);
    mpfr_free_cache();
}

T_MAIN({"rows_of_the_released_tables", rows_of_the_released_tables},
       {"random_angles", random_angles},
       {"powers_of_many_bases", powers_of_many_bases})
