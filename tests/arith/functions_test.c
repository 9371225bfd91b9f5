/* exp, log, log1p and erf against double libm, whose own error (2^-29 float ulps) is nothing here.
 *
 * The claim is "at most one ulp from the true value, on every float of the range".  By default a
 * sample with a prime stride is tried; with --all every float of the ranges below.  Outside them
 * the functions only scale (erf x = c x, log1p x = x) or are constant (exp x = 1). */
#include "arith/functions.h"

#include <float.h>
#include <stdbool.h>
#include <stdlib.h>

#include "arith/float_env.h"
#include "goldens.h"
#include "t.h"

enum { BLOCK = 1024 };
static uint32_t stride = 509;

typedef void block_fn(const float *restrict x, float *restrict y);
#define BLOCK_OF(name)                                                          \
    static void block_##name(const float *restrict x, float *restrict y) {      \
        for (int i = 0; i < BLOCK; i++) y[i] = plumb__##name(x[i]);             \
    }
BLOCK_OF(exp)
BLOCK_OF(log)
BLOCK_OF(log1p)
BLOCK_OF(erf)

/* log of any positive normal number at the price of one table look-up: log m + k ln 2, and for
 * log1p of a large number the 1 / x that is left of it. */
static double *log_of_significand;

static double split_log(float x) {
    uint32_t bits = plumb__bits_of(x), significand = bits & 0x7FFFFF;
    int exponent = (int)(bits >> 23) - 127 + (significand >= 0x3504F3);
    return log_of_significand[significand] + (double)exponent * 0x1.62e42fefa39efp-1;
}

static double split_log1p(float x) { return split_log(x) + 1.0 / (double)x; }

static double slow_exp(float x) { return exp((double)x); }
static double slow_log1p(float x) { return log1p((double)x); }
static double slow_erf(float x) { return erf((double)x); }

/* |y - exact| in units of the last place that a float of exact's size has. */
static double error_ulps(float y, double exact) {
    uint64_t bits;
    memcpy(&bits, &exact, sizeof bits);
    bits = ((UINT64_C(2046) + 23) << 52) - (bits & UINT64_C(0x7FF0000000000000)); /* 2^(23 - e) */
    double per_ulp;
    memcpy(&per_ulp, &bits, sizeof per_ulp);
    double error = fabs((double)y - exact);
    return exact == 0.0 ? (y == 0.0f ? 0.0 : DBL_MAX) : error * per_ulp;
}

typedef struct sweep {
    const char *name;
    block_fn *function;
    double (*exact)(float x);
    float first, last; /* of one sign, |first| <= |last| */
} sweep;

/* Tries the floats whose bits are from, from + stride, ...; the same block is computed with and
 * without the flush-to-zero modes. */
static void try_block(const sweep *s, uint64_t from, uint64_t end, double *worst, float *worst_x,
                      bool *same) {
    float x[BLOCK], y[BLOCK], flushed[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        uint64_t bits = from + (uint64_t)i * stride;
        x[i] = plumb__float_of((uint32_t)(bits < end ? bits : end - 1));
    }
    s->function(x, y);
    uint64_t saved;
    plumb__float_env_enter(&saved);
    s->function(x, flushed);
    plumb__float_env_leave(saved);
    *same = *same && !memcmp(y, flushed, sizeof y);
    for (int i = 0; i < BLOCK; i++) {
        double error = error_ulps(y[i], s->exact(x[i]));
        if (!(error <= *worst)) {
            *worst = error;
            *worst_x = x[i];
        }
    }
}

static void run_sweep(const sweep *s) {
    uint64_t end = (uint64_t)plumb__bits_of(s->last) + 1;
    double worst = 0;
    float worst_x = 0;
    bool same = true;
    for (uint64_t b = plumb__bits_of(s->first); b < end; b += (uint64_t)BLOCK * stride)
        try_block(s, b, end, &worst, &worst_x, &same);
    T_CHECK(worst <= 1.0, "%s(%.9g): %.4f ulp", s->name, (double)worst_x, worst);
    T_CHECK(same, "%s from %g: the float modes change bits", s->name, (double)s->first);
    printf("     %-6s %14.7g .. %-14.7g worst %.4f ulp at %.9g\n", s->name, (double)s->first,
           (double)s->last, worst, (double)worst_x);
}

static void one_ulp(void) {
    static const sweep sweeps[] = {
        {"exp", block_exp, slow_exp, 0x1p-26f, 88.72f},
        {"exp", block_exp, slow_exp, -0x1p-26f, -87.0f},
        {"log", block_log, split_log, 0x1p-126f, FLT_MAX},
        {"log1p", block_log1p, slow_log1p, 0x1p-26f, 0x1p26f},
        {"log1p", block_log1p, split_log1p, 0x1p26f, FLT_MAX},
        {"log1p", block_log1p, slow_log1p, -0x1p-26f, -0x1.fffffep-1f},
        {"erf", block_erf, slow_erf, 0x1p-20f, 4.5f},
    };
    log_of_significand = malloc(sizeof(double) << 23);
    T_CHECK(log_of_significand != NULL, "no memory");
    if (!log_of_significand) return;
    for (uint32_t m = 0; m < 1u << 23; m++)
        log_of_significand[m] =
            log((double)plumb__float_of(m | (m >= 0x3504F3 ? 126u : 127u) << 23));
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) run_sweep(&sweeps[i]);
    free(log_of_significand);
}

/* What lies outside the sweeps: always a sample. */
static void one_ulp_where_nothing_happens(void) {
    static const sweep sweeps[] = {
        {"exp", block_exp, slow_exp, 0x1p-126f, 0x1p-26f},
        {"exp", block_exp, slow_exp, -0x1p-126f, -0x1p-26f},
        {"log1p", block_log1p, slow_log1p, 0x1p-126f, 0x1p-26f},
        {"log1p", block_log1p, slow_log1p, -0x1p-126f, -0x1p-26f},
        {"erf", block_erf, slow_erf, 0x1p-126f, 0x1p-20f},
        {"erf", block_erf, slow_erf, -0x1p-126f, -4.5f},
        {"erf", block_erf, slow_erf, 4.5f, FLT_MAX},
    };
    uint32_t wanted = stride;
    stride = 10007;
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) run_sweep(&sweeps[i]);
    stride = wanted;
}

static void special_values(void) {
    static const struct {
        const char *name;
        float (*function)(float);
        float x, y;
    } cases[] = {
        {"exp", plumb__exp, 0.0f, 1.0f},
        {"exp", plumb__exp, -0.0f, 1.0f},
        {"exp", plumb__exp, -87.00001f, 0.0f},
        {"exp", plumb__exp, -INFINITY, 0.0f},
        {"exp", plumb__exp, 88.7200089f, FLT_MAX},
        {"exp", plumb__exp, INFINITY, FLT_MAX},
        {"exp", plumb__exp, NAN, NAN},
        {"log", plumb__log, 1.0f, 0.0f},
        {"log", plumb__log, 0.0f, -INFINITY},
        {"log", plumb__log, -0.0f, -INFINITY},
        {"log", plumb__log, 0x1p-127f, -INFINITY}, /* a subnormal reads as zero */
        {"log", plumb__log, -1.0f, NAN},
        {"log", plumb__log, -INFINITY, NAN},
        {"log", plumb__log, INFINITY, INFINITY},
        {"log", plumb__log, NAN, NAN},
        {"log1p", plumb__log1p, 0.0f, 0.0f},
        {"log1p", plumb__log1p, -1.0f, -INFINITY},
        {"log1p", plumb__log1p, -1.5f, NAN},
        {"log1p", plumb__log1p, -INFINITY, NAN},
        {"log1p", plumb__log1p, INFINITY, INFINITY},
        {"log1p", plumb__log1p, NAN, NAN},
        {"erf", plumb__erf, 0.0f, 0.0f},
        {"erf", plumb__erf, -0.0f, -0.0f},
        {"erf", plumb__erf, INFINITY, 1.0f},
        {"erf", plumb__erf, -INFINITY, -1.0f},
        {"erf", plumb__erf, NAN, NAN},
        {"sigmoid", plumb__sigmoid, 0.0f, 0.5f},
        {"sigmoid", plumb__sigmoid, 100.0f, 1.0f},
        {"sigmoid", plumb__sigmoid, -100.0f, 0.0f},
        {"sigmoid", plumb__sigmoid, NAN, NAN},
        {"silu", plumb__silu, 0.0f, 0.0f},
        {"silu", plumb__silu, 30.0f, 30.0f},
        {"silu", plumb__silu, -100.0f, -0.0f},
        {"softplus", plumb__softplus, 20.0000019f, 20.0000019f},
        {"softplus", plumb__softplus, 20.0f, 20.0f}, /* log(1 + e^20) = 20 + 2e-9 */
        {"softplus", plumb__softplus, 0.0f, 0.693147182f},
        {"softplus", plumb__softplus, -88.0f, 0.0f},
        {"softplus", plumb__softplus, NAN, NAN},
        {"gelu", plumb__gelu, 0.0f, 0.0f},
        {"gelu", plumb__gelu, 10.0f, 10.0f},
        {"gelu", plumb__gelu, -10.0f, -0.0f},
        {"rsqrt", plumb__rsqrt, 4.0f, 0.5f},
        {"rsqrt", plumb__rsqrt, 0.01f, 10.0f},
    };
    uint64_t saved;
    plumb__float_env_enter(&saved);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float y = cases[i].function(cases[i].x);
        bool both_nan = isnan(y) && isnan(cases[i].y);
        T_CHECK(both_nan || plumb__bits_of(y) == plumb__bits_of(cases[i].y),
                "%s(%.9g) = %.9g, not %.9g", cases[i].name, (double)cases[i].x, (double)y,
                (double)cases[i].y);
    }
    plumb__float_env_leave(saved);
}

static void compositions_round_each_step(void) {
    const float root_half = (float)sqrt(0.5);
    uint64_t saved;
    plumb__float_env_enter(&saved);
    for (int i = -4000; i <= 4000; i++) {
        const float x = (float)i * 0.00737f;
        const float denominator = 1.0f + plumb__exp(-x), e = plumb__exp(x);
        const float half = 0.5f * x, one_erf = 1.0f + plumb__erf(x * root_half);
        const float root = plumb__sqrt(e);
        T_CHECK(plumb__sigmoid(x) == 1.0f / denominator, "sigmoid(%.9g)", (double)x);
        T_CHECK(plumb__silu(x) == x * (1.0f / denominator), "silu(%.9g)", (double)x);
        T_CHECK(plumb__softplus(x) == (x > 20.0f ? x : plumb__log1p(e)), "softplus(%.9g)", (double)x);
        T_CHECK(plumb__gelu(x) == half * one_erf, "gelu(%.9g)", (double)x);
        T_CHECK(plumb__rsqrt(e) == 1.0f / root, "rsqrt(%.9g)", (double)e);
    }
    plumb__float_env_leave(saved);
}

static void router_scores_are_the_published(void) {
    goldens *g = goldens_open("oracle/units.safetensors");
    golden logits = goldens_get(g, "gate.logits", "F32"), scores = goldens_get(g, "gate.scores", "F32");
    for (int64_t i = 0; i < logits.count; i++) {
        float found = plumb__sqrt(plumb__softplus(logits.f32[i]));
        /* our exp ends at -87, so what is left of the published score there becomes 0 */
        float allowed = 2.4e-7f * scores.f32[i] + (logits.f32[i] < -87.0f ? 1e-18f : 0.0f);
        T_CHECK(fabsf(found - scores.f32[i]) <= allowed,
                "%" PRId64 ": %.9g, not %.9g", i, (double)found, (double)scores.f32[i]);
    }
    goldens_close(g);
}

int main(int argc, char **argv) {
    static const t_test tests[] = {
        {"one_ulp", one_ulp},
        {"one_ulp_where_nothing_happens", one_ulp_where_nothing_happens},
        {"special_values", special_values},
        {"compositions_round_each_step", compositions_round_each_step},
        {"router_scores_are_the_published", router_scores_are_the_published},
    };
    if (argc > 1 && !strcmp(argv[1], "--all")) {
        stride = 1;
        argc--;
        argv++;
    }
    return t_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));
}
