/* Operators on one row at a time against the published ones (units.safetensors), on every instruction
 * level.  bf16 results must be equal up to the stated number of roundings that fall the other way;
 * float32 results up to a few ulps, since exp, log and sums are the project's own.  The measured
 * figures are printed. */
#include "arith/functions.h"
#include "bits.h"
#include "goldens.h"
#include "levels.h"

#include <stdlib.h>

static void report(const char *level, const char *what, ulp_count c, int64_t different,
                   int64_t worst) {
    printf("  %-8s %-20s %5d compared, %4d differ, at most %d ulps\n", level, what,
           (int)c.compared, (int)c.different, (int)c.worst);
    T_CHECK(c.compared > 0 && c.different <= different && c.worst <= worst, "%s %s: %d, %d ulps",
            level, what, (int)c.different, (int)c.worst);
}

static ulp_count compare_bf16(const uint16_t *got, golden want) {
    ulp_count c = {0};
    ulp_count_bf16(&c, got, want.bf16, want.count);
    return c;
}

static float *widened(golden g) {
    float *x = malloc((size_t)g.count * sizeof *x);
    for (int64_t i = 0; i < g.count; i++) x[i] = plumb__bf16_decode(g.bf16[i]);
    return x;
}

/* ---- Norm and rotation ------------------------------------------------------------------------ */

static void rms_norm_at_level(plumb_backend *b, const char *level) {
    goldens *g = goldens_open("oracle/units.safetensors");
    golden x = goldens_get(g, "rmsnorm.x", "BF16"), y = goldens_get(g, "rmsnorm.y", "BF16");
    float *w = widened(goldens_get(g, "rmsnorm.w", "BF16"));
    uint16_t *got = malloc(y.bytes);
    b->ops->rms_norm(b, x.bf16, x.shape[0], x.shape[1], w, 1e-20f, got);
    report(level, "rmsnorm", compare_bf16(got, y), 0, 0);
    free(w);
    free(got);
    goldens_close(g);
}
static void rms_norm(void) { for_every_level(rms_norm_at_level); }

static void rotate_at_level(plumb_backend *b, const char *level) {
    goldens *g = goldens_open("oracle/units.safetensors");
    golden x = goldens_get(g, "rotary.x", "BF16"), y = goldens_get(g, "rotary.y", "BF16");
    golden cosine = goldens_get(g, "rotary.cos", "F32"), sine = goldens_get(g, "rotary.sin", "F32");
    golden back = goldens_get(g, "rotary.back", "BF16");
    uint16_t *got = malloc(x.bytes);
    memcpy(got, x.bf16, x.bytes);
    b->ops->rotate(b, got, x.shape[0], x.shape[1], x.shape[2], cosine.shape[1], cosine.f32,
                   sine.f32, false);
    report(level, "rotary", compare_bf16(got, y), 0, 0);
    memcpy(got, y.bf16, y.bytes);
    b->ops->rotate(b, got, x.shape[0], x.shape[1], x.shape[2], cosine.shape[1], cosine.f32,
                   sine.f32, true);
    report(level, "rotary inverse", compare_bf16(got, back), 0, 0);
    free(got);
    goldens_close(g);
}
static void rotate(void) { for_every_level(rotate_at_level); }

/* ---- Hyper-connections ------------------------------------------------------------------------ */

static void coefficients_at_level(plumb_backend *b, const char *level) {
    goldens *g = goldens_open("oracle/units.safetensors");
    golden m = goldens_get(g, "hc.mixes", "F32"); /* already times the norm */
    golden base = goldens_get(g, "hc.base", "F32"), scale = goldens_get(g, "hc.scale", "F32");
    golden want[3] = {goldens_get(g, "hc.pre", "F32"), goldens_get(g, "hc.post", "F32"),
                      goldens_get(g, "hc.comb", "F32")};
    ulp_count count[3] = {{0}, {0}, {0}};
    double column_error = 0;
    for (int64_t r = 0; r < m.shape[0]; r++) {
        float pre[4], post[4], comb[16];
        kernels_of(b)->hc_coefficients(m.f32 + r * 24, 1.0f, base.f32, scale.f32, 1e-6f, 20, pre,
                                       post, comb);
        ulp_count_float(&count[0], pre, want[0].f32 + r * 4, 4);
        for (int k = 0; k < 4; k++) {
            /* A sigmoid below the smallest normal number is zero, and post is twice a sigmoid. */
            float golden_post = want[1].f32[r * 4 + k];
            if (golden_post < 0x1p-125f) T_CHECK(post[k] == 0.0f, "%s row %d", level, (int)r);
            else ulp_count_float(&count[1], post + k, &golden_post, 1);
        }
        ulp_count_float(&count[2], comb, want[2].f32 + r * 16, 16);
        for (int k = 0; k < 4; k++) {
            double off = (double)comb[k] + (double)comb[4 + k] + (double)comb[8 + k] +
                         (double)comb[12 + k] - 1;
            if (off < 0) off = -off;
            if (!(off <= column_error)) column_error = off;
        }
    }
    report(level, "hc.pre", count[0], count[0].compared, 4);
    report(level, "hc.post", count[1], count[1].compared, 4);
    report(level, "hc.comb", count[2], count[2].compared, 16);
    T_CHECK(column_error < 2e-6, "%s: Sinkhorn ends on columns: %g", level, column_error);
    goldens_close(g);
}
static void hc_coefficients(void) { for_every_level(coefficients_at_level); }

/* ---- Compressor ------------------------------------------------------------------------------- */

static void compressor_at_level(plumb_backend *b, const char *level) {
    goldens *g = goldens_open("oracle/units.safetensors");
    golden value = goldens_get(g, "compressor.kv", "F32");
    golden gate = goldens_get(g, "compressor.score", "F32");
    golden pooled = goldens_get(g, "compressor.pooled", "BF16");
    golden y = goldens_get(g, "compressor.y", "BF16");
    float *w = widened(goldens_get(g, "compressor.w", "BF16"));
    uint16_t *got = malloc(pooled.bytes);
    b->ops->compress_pairs(b, value.f32, gate.f32, value.shape[0], value.shape[2], got);
    report(level, "compressor.pooled", compare_bf16(got, pooled), 0, 0);
    b->ops->rms_norm(b, pooled.bf16, pooled.shape[0], pooled.shape[1], w, 1e-20f, got);
    report(level, "compressor.y", compare_bf16(got, y), 0, 0);
    free(w);
    free(got);
    goldens_close(g);
}
static void compressor(void) { for_every_level(compressor_at_level); }

/* ---- Router and gated activation --------------------------------------------------------------- */

/* The golden has experts in order of score, ours ascending. */
static void route_at_level(plumb_backend *b, const char *level) {
    goldens *g = goldens_open("oracle/units.safetensors");
    golden logits = goldens_get(g, "gate.logits", "F32"), bias = goldens_get(g, "gate.bias", "F32");
    golden scores = goldens_get(g, "gate.scores", "F32");
    golden indices = goldens_get(g, "gate.indices", "I32");
    golden weights = goldens_get(g, "gate.weights", "F32");
    int64_t rows = logits.shape[0], k = indices.shape[1];
    int32_t *ids = malloc((size_t)(rows * k) * sizeof *ids);
    float *got = malloc((size_t)(rows * k) * sizeof *got);
    b->ops->route(b, logits.f32, bias.f32, rows, logits.shape[1], k, 1.5f, ids, got);
    ulp_count weight_count = {0}, score_count = {0};
    for (int64_t i = 0; i < rows * k; i++) {
        const int32_t *want = indices.i32 + i / k * k;
        int64_t place = 0;
        while (place < k && want[place] != ids[i]) place++;
        T_CHECK(place < k, "%s row %d: expert %d", level, (int)(i / k), (int)ids[i]);
        T_CHECK(i % k == 0 || ids[i - 1] < ids[i], "%s row %d: not ascending", level, (int)(i / k));
        if (place < k)
            ulp_count_float(&weight_count, got + i, weights.f32 + i / k * k + place, 1);
    }
    for (int64_t i = 0; i < logits.count; i++) {
        float score = plumb__sqrt(plumb__softplus(logits.f32[i]));
        /* Below the smallest normal number a score is zero. */
        bool vanishes = score == 0.0f && scores.f32[i] < 1e-18f;
        if (!vanishes) ulp_count_float(&score_count, &score, scores.f32 + i, 1);
    }
    report(level, "gate.weights", weight_count, weight_count.compared, 4);
    report(level, "gate.scores", score_count, score_count.compared, 2);
    free(ids);
    free(got);
    goldens_close(g);
}
static void route(void) { for_every_level(route_at_level); }

static void swiglu_at_level(plumb_backend *b, const char *level) {
    goldens *g = goldens_open("oracle/units.safetensors");
    golden gate = goldens_get(g, "swiglu.gate", "BF16"), up = goldens_get(g, "swiglu.up", "BF16");
    golden weight = goldens_get(g, "swiglu.weight", "F32");
    golden y = goldens_get(g, "swiglu.y", "BF16");
    int64_t width = gate.shape[1];
    uint16_t *got = malloc(y.bytes);
    for (int64_t r = 0; r < gate.shape[0]; r++)
        kernels_of(b)->swiglu(gate.bf16 + r * width, up.bf16 + r * width, weight.f32[r], 1.5f,
                              width, got + r * width);
    report(level, "swiglu", compare_bf16(got, y), 0, 0);
    free(got);
    goldens_close(g);
}
static void swiglu(void) { for_every_level(swiglu_at_level); }

/* ---- Orders that the published figures cannot show --------------------------------------------- */

/* Sums of 1, 2^24 and -2^24: each order has its own result, since 2^24 + 1 rounds to 2^24. */
static void orders_at_level(plumb_backend *b, const char *level) {
    const plumb_cpu_kernels *kernels = kernels_of(b);
    const plumb_act one = plumb__bf16_encode(1), zero = 0;
    const plumb_act large = plumb__bf16_encode(0x1p24f), opposite = plumb__bf16_encode(-0x1p24f);
    const float ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    plumb_act out;

    /* ((1 + large) - large) + 1; from the other end it would be 2 */
    const plumb_act terms[4] = {one, large, opposite, one};
    const plumb_act *slots[4] = {&terms[0], &terms[1], &terms[2], &terms[3]};
    kernels->moe_sum(slots, 4, 1, &out);
    T_CHECK(plumb__bf16_decode(out) == 1.0f, "%s: sum of experts: %a", level,
            (double)plumb__bf16_decode(out));
    kernels->hc_collapse(terms, ones, 1, &out);
    T_CHECK(plumb__bf16_decode(out) == 1.0f, "%s: collapse: %a", level,
            (double)plumb__bf16_decode(out));

    /* large + (((1 - large) + 1) + 0); with the sublayer's output first it would be 1 */
    plumb_act copies[4] = {one, opposite, one, zero};
    kernels->hc_update(copies, &large, ones, ones, 1);
    for (int k = 0; k < 4; k++)
        T_CHECK(plumb__bf16_decode(copies[k]) == 2.0f, "%s: update: %a", level,
                (double)plumb__bf16_decode(copies[k]));
}
static void orders(void) { for_every_level(orders_at_level); }

T_MAIN({"orders", orders}, {"rms_norm", rms_norm}, {"rotate", rotate}, {"hc_coefficients", hc_coefficients},
       {"compressor", compressor}, {"route", route}, {"swiglu", swiglu})
