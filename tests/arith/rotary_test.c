/* Rotary tables against the published code's (oracle/units), whose library cosines are not all
 * correctly rounded, and against doubles. */
#include "arith/rotary.h"

#include <math.h>
#include <stdlib.h>

#include "arith/portable.h"
#include "goldens.h"
#include "t.h"

static const plumb_rotary_yarn released = {16, 32, 1, 65536}, small = {16, 32, 1, 256};

static void frequencies(double base, const plumb_rotary_yarn *yarn, int64_t dim, float *freq) {
    plumb_error err = {0};
    plumb_status status = plumb__rotary_frequencies(base, yarn, dim, freq, &err);
    T_CHECK(status == PLUMB_OK, "%s: %s", err.field, err.found);
}

/* Steps between two floats of equal sign. */
static int ulps(float a, float b) {
    return abs((int)plumb__bits_of(a) - (int)plumb__bits_of(b));
}

static void tables_are_the_published(void) {
    /* Where the two differ, it is by one ulp and the oracle's value is the less accurate one (`off`
     * says how often): the library behind it promises one ulp, not correct rounding. */
    static const struct {
        const char *name;
        double base;
        const plumb_rotary_yarn *yarn;
        int64_t dim;
        int off;
    } cases[] = {{"window64", 10000, NULL, 64, 3},
                 {"window16", 10000, NULL, 16, 0},
                 {"compress64", 160000, &released, 64, 6},
                 {"compress16", 160000, &small, 16, 0},
                 {"compress32", 160000, &small, 32, 2}};
    goldens *g = goldens_open("oracle/units.safetensors");
    golden positions = goldens_get(g, "rope.positions", "I32");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char cos_name[64], sin_name[64];
        snprintf(cos_name, sizeof cos_name, "rope.%s.cos", cases[i].name);
        snprintf(sin_name, sizeof sin_name, "rope.%s.sin", cases[i].name);
        golden cosines = goldens_get(g, cos_name, "F32"), sines = goldens_get(g, sin_name, "F32");
        float freq[32];
        frequencies(cases[i].base, cases[i].yarn, cases[i].dim, freq);
        int64_t n = cases[i].dim / 2;
        int off = 0;
        T_CHECK(cosines.count == positions.count * n, "%s", cos_name);
        for (int64_t row = 0; row < positions.count; row++) {
            float found[2][32];
            plumb__rotary_row(freq, n, positions.i32[row], found[0], found[1]);
            for (int64_t k = 0; k < n; k++) {
                double angle = (double)((float)positions.i32[row] * freq[k]);
                const float oracle[2] = {cosines.f32[row * n + k], sines.f32[row * n + k]};
                const double exact[2] = {cos(angle), sin(angle)};
                for (int f = 0; f < 2; f++) {
                    if (oracle[f] == found[f][k]) continue;
                    off++;
                    T_CHECK(ulps(oracle[f], found[f][k]) == 1 &&
                                fabs((double)found[f][k] - exact[f]) <
                                    fabs((double)oracle[f] - exact[f]),
                            "%s position %d frequency %d: %.9g, oracle %.9g", cases[i].name,
                            positions.i32[row], (int)k, (double)found[f][k], (double)oracle[f]);
                }
            }
        }
        T_CHECK(off == cases[i].off, "%s: %d values differ", cases[i].name, off);
    }
    goldens_close(g);
}

static void frequencies_are_the_printed(void) {
    /* model.md section 3.7: real numbers to nine digits */
    static const struct {
        double base;
        const plumb_rotary_yarn *yarn;
        int index;
        double value;
    } cases[] = {
        {160000, &released, 0, 1},
        {160000, &released, 1, 0.687656022},
        {160000, &released, 8, 0.05},
        {160000, &released, 15, 0.00363553858},
        {160000, &released, 16, 0.002265625},
        {160000, &released, 17, 0.00139680129},
        {160000, &released, 20, 0.000296977778},
        {160000, &released, 24, 1.953125e-05},
        {160000, &released, 25, 5.37231267e-06},
        {160000, &released, 31, 5.68052904e-07},
        {10000, NULL, 1, 0.749894209},
        {10000, NULL, 8, 0.1},
        {10000, NULL, 16, 0.01},
        {10000, NULL, 31, 0.000133352143},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float freq[32];
        frequencies(cases[i].base, cases[i].yarn, 64, freq);
        T_CHECK(fabs((double)freq[cases[i].index] / cases[i].value - 1) < 3e-7, "case %zu: %.9g", i,
                (double)freq[cases[i].index]);
    }
}

static void yarn_takes_the_published_steps(void) {
    /* The published expression in numpy float32, for factors that are no power of two, a dimension
     * that is none, and a first corner below 0. */
    static const struct {
        double base;
        plumb_rotary_yarn yarn;
        int dim;
        uint32_t bits[16];
    } cases[] = {
        {500000, {3, 100, 1, 9000}, 32,
         {0x3F800000, 0x3EE177BC, 0x3E4693B0, 0x3DAEE4AD, 0x3D08EB5C, 0x3C530813, 0x3B9F4F8A, 0x3AE9D9B2,
          0x3A24C490, 0x3959ACBC, 0x38BFB6A0, 0x3828D92D, 0x3794B5D8, 0x3702F960, 0x3666B4DF, 0x35CB30DF}},
        {20000, {3, 128, 0.05, 8192}, 32,
         {0x3F800000, 0x3F09DB21, 0x3E94788A, 0x3E1FE730, 0x3DA403CD, 0x3D27CFCF, 0x3CAB3891, 0x3C2E2904,
          0x3BB08976, 0x3B323F43, 0x3AB32C89, 0x3A332FCE, 0x39B2239F, 0x392FDE2B, 0x38AC30CA, 0x3826E77E}},
        {50000, {3.3, 8, 2, 2000}, 24,
         {0x3F800000, 0x3ECFD224, 0x3E28B582, 0x3D88F541, 0x3CDE5D76, 0x3BEB37C5, 0x3AB1A0B9, 0x3A1032C5,
          0x396A1ED3, 0x38BE0F1C, 0x381A4A3A, 0x377A8157}},
        {10000, {40, 32, 1, 100}, 16,
         {0x3F800000, 0x3E5A939D, 0x3D0F5C28, 0x3A4F3E38, 0x3983126E, 0x38A5CB60, 0x37D1B718, 0x3704A2B3}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float freq[16];
        frequencies(cases[i].base, &cases[i].yarn, cases[i].dim, freq);
        for (int k = 0; k < cases[i].dim / 2; k++)
            T_CHECK(plumb__bits_of(freq[k]) == cases[i].bits[k], "case %zu frequency %d: 0x%08X", i, k,
                    (unsigned)plumb__bits_of(freq[k]));
    }
}

static void powers_and_midpoints_are_exact(void) {
    /* base^(2 index / dim) is a float, or lies exactly between two: ties to even */
    static const struct {
        double base;
        int dim, index;
        float power;
    } cases[] = {
        {10000, 64, 8, 10},
        {10000, 64, 16, 100},
        {10000, 64, 24, 1000},
        {160000, 64, 8, 20},
        {160000, 64, 16, 400},
        {160000, 16, 6, 8000},
        {281475010265089.0, 4, 1, 16777216.0f},  /* (2^24 + 1)^2 */
        {281475077373961.0, 4, 1, 16777220.0f},  /* (2^24 + 3)^2 */
        {281475010265090.0, 4, 1, 16777218.0f},  /* a little above, and below, the midpoint */
        {281475010265088.0, 4, 1, 16777216.0f},
        {9007199254740992.0, 106, 20, 1048576.0f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float freq[64];
        frequencies(cases[i].base, NULL, cases[i].dim, freq);
        T_CHECK(freq[cases[i].index] == 1.0f / cases[i].power, "case %zu: 1/%.9g", i,
                1.0 / (double)freq[cases[i].index]);
    }
}

static void rows_are_rounded_doubles(void) {
    /* A double cosine errs by 2^-53; only one value in 2^28 is that close to a float boundary. */
    static const int64_t first[] = {0, 100000, 1048576 - 512};
    float freq[32], cosines[32], sines[32];
    for (int table = 0; table < 2; table++) {
        frequencies(table ? 160000 : 10000, table ? &released : NULL, 64, freq);
        for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
            for (int64_t p = first[i]; p < first[i] + 512; p++) {
                plumb__rotary_row(freq, 32, p, cosines, sines);
                for (int k = 0; k < 32; k++) {
                    double angle = (double)((float)p * freq[k]);
                    T_CHECK(cosines[k] == (float)cos(angle) && sines[k] == (float)sin(angle),
                            "position %" PRId64 " frequency %d: %.9g %.9g", p, k,
                            (double)cosines[k], (double)sines[k]);
                }
            }
    }
}

static void hardest_angles_are_rounded_correctly(void) {
    /* The angles below 2^20 whose cosine or sine lies closest to the middle of two floats, and the
     * closest above 2^14, where the reduction is put to the test; expected bits from MPFR. */
    static const uint32_t cases[][3] = {
        {0x3A544395, 0x3F7FFFFB, 0x3A544393},
        {0x3C107FE6, 0x3F7FFD74, 0x3C107F6B},
        {0x3DCF5597, 0x3F7EB072, 0x3DCEFAF9},
        {0x3EF3830F, 0x3F63966A, 0x3EEA6F45},
        {0x424790CE, 0x3F6E4C01, 0xBEBB16D3},
        {0x4371ADE3, 0xBF79A393, 0x3E62DA56},
        {0x45A8ABB3, 0x3F7A935F, 0x3E51ADE2},
        {0x46199998, 0xBF70090B, 0xBEB1FA5D},
        {0x46F85A22, 0xBF4232B9, 0x3F26CD73},
        {0x47A0E238, 0x3F7E19DD, 0xBDF8FCA4},
        {0x4967CB9B, 0x3F6B42DB, 0x3EC9DF85},
        {0x497FFFF0, 0x3F49BD23, 0xBF1D9959},
        {0x00000000, 0x3F800000, 0x00000000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float angle = plumb__float_of(cases[i][0]), c, s;
        plumb__rotary_row(&angle, 1, 1, &c, &s);
        T_CHECK(plumb__bits_of(c) == cases[i][1] && plumb__bits_of(s) == cases[i][2],
                "angle 0x%08X: 0x%08X 0x%08X", (unsigned)cases[i][0], (unsigned)plumb__bits_of(c),
                (unsigned)plumb__bits_of(s));
    }
}

static void bad_parameters_are_refused(void) {
    static const struct {
        double base, original;
        int64_t dim;
        double beta_fast, beta_slow;
        const char *field;
    } cases[] = {
        {1, 65536, 64, 32, 1, "rope_theta"},
        {-10000, 65536, 64, 32, 1, "rope_theta"},
        {1e31, 65536, 64, 32, 1, "rope_theta"},
        {10000, 65536, 63, 32, 1, "qk_rope_head_dim"},
        {10000, 65536, 0, 32, 1, "qk_rope_head_dim"},
        {10000, 0, 64, 32, 1, "rope_scaling.beta_fast"},
        {10000, 65536, 64, 0, 1, "rope_scaling.beta_fast"},
        {10000, 65536, 64, 32, -1, "rope_scaling.beta_slow"},
        /* original / (2 pi beta) = 100 = base^(1/2): the corner is dim / 4 = 16 */
        {10000, 65536, 64, 65536 / (100 * 6.283185307179586), 1, "rope_scaling.beta_fast"},
        {10000, 65536, 64, 32, 65536 / (100 * 6.283185307179586), "rope_scaling.beta_slow"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_error err = {0};
        float freq[32];
        plumb_rotary_yarn yarn = {16, cases[i].beta_fast, cases[i].beta_slow,
                                  (int64_t)cases[i].original};
        plumb_status status =
            plumb__rotary_frequencies(cases[i].base, &yarn, cases[i].dim, freq, &err);
        T_CHECK(status == PLUMB_ERROR_CONFIG && !strcmp(err.field, cases[i].field), "case %zu: %s %s",
                i, plumb_status_name(status), err.field);
    }
}

T_MAIN({"tables_are_the_published", tables_are_the_published},
       {"frequencies_are_the_printed", frequencies_are_the_printed},
       {"yarn_takes_the_published_steps", yarn_takes_the_published_steps},
       {"powers_and_midpoints_are_exact", powers_and_midpoints_are_exact},
       {"rows_are_rounded_doubles", rows_are_rounded_doubles},
       {"hardest_angles_are_rounded_correctly", hardest_angles_are_rounded_correctly},
       {"bad_parameters_are_refused", bad_parameters_are_refused})
