/* Whole models with every rounding on.  Here two correct programs differ: a sum that rounds the other
 * way moves an fp8 or fp4 code by a whole step.  The published code was therefore run with its sums
 * in three orders, and the engine is held to the figures by which those runs differ from each other
 * ("Sensitivity of the published arithmetic" of the golden data's documentation), against the
 * float32 run and against the float64 run. */
#include "goldens.h"
#include "run.h"
#include "spread.h"
#include "t.h"

/* Pairs of runs of the published code: part of the test, what was compared, max, median and mean of
 * the difference, share of rows with the same best token, mean KL.  "early" decodes from a prefill
 * of one token over a quarter of tiny's positions: a flipped code disturbs about one window of rows,
 * so one of them weighs four times as much there. */
static const struct pair {
    const char *model, *part, *what;
    double max, median, mean, top1, kl;
} pairs[] = {
    {"deep40", "prefill", "f32 against f64", 1.245, 0.0759, 0.0973, 0.923, 0.0077},
    {"deep40", "prefill", "f32 against f32blk", 1.060, 0.0775, 0.0994, 0.915, 0.0081},
    {"deep40", "prefill", "f64 against f32blk", 1.333, 0.0786, 0.1003, 0.910, 0.0081},
    {"deep40", "decode", "f32 against f64", 1.095, 0.0843, 0.1057, 0.907, 0.0085},
    {"tiny", "prefill", "f32 against f64", 0.162, 0, 0.0024, 0.990, 3.1e-5},
    {"tiny", "prefill", "f32 against f32blk", 0.107, 0, 0.0013, 1, 2.2e-5},
    {"tiny", "prefill", "f64 against f32blk", 0.162, 0, 0.0038, 0.990, 5.3e-5},
    {"tiny", "decode", "f32 against f64", 0.107, 0, 0.0023, 1, 3.8e-5},
    {"tiny", "early", "f64 against f32blk, times 4", 0.162, 0, 4 * 0.0038, 1 - 4 * 0.010, 4 * 5.3e-5},
};

static void print_figures(const char *model, const char *part, const char *what,
                          const oracle_spread *s) {
    printf("  %-6s %-7s %-27s %8.3g %8.2g %8.3g %5.1f %% %8.2g\n", model, part, what, s->max,
           s->median, s->mean, 100 * s->top1, s->kl);
}

/* The largest figure of the part's pairs, and the lowest top-1. */
static oracle_spread band_of(const char *model, const char *part) {
    oracle_spread band = {.top1 = 1};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const struct pair *p = &pairs[i];
        if (strcmp(p->model, model) != 0 || strcmp(p->part, part) != 0) continue;
        oracle_spread s = {.max = p->max, .median = p->median, .mean = p->mean, .top1 = p->top1,
                           .kl = p->kl};
        print_figures(model, part, p->what, &s);
        if (s.max > band.max) band.max = s.max;
        if (s.median > band.median) band.median = s.median;
        if (s.mean > band.mean) band.mean = s.mean;
        if (s.top1 < band.top1) band.top1 = s.top1;
    }
    return band;
}

/* The run's rows from `first` on against every golden of the part. */
static void check_part(const oracle_run *run, goldens *g, const char *model, const char *part,
                       int64_t first) {
    static const char *const modes[] = {"f32", "f64"};
    oracle_spread band = band_of(model, part);
    int64_t vocab = run->config->vocab;
    double median = 1.1 * band.median > 1e-6 ? 1.1 * band.median : 1e-6;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.logits.%s", part, modes[i]);
        if (!goldens_has(g, name)) continue;
        golden want = goldens_get(g, name, "F32");
        oracle_spread s = oracle_compare(oracle_row(run, first), want.f32, want.shape[0], vocab);
        print_figures(model, part, i == 0 ? "plumb against f32" : "plumb against f64", &s);
        T_CHECK(s.max <= 2 * band.max, "%s %s: max %g", model, name, s.max);
        T_CHECK(s.mean <= 2 * band.mean, "%s %s: mean %g", model, name, s.mean);
        T_CHECK(s.median <= median, "%s %s: median %g", model, name, s.median);
        T_CHECK(s.top1 >= band.top1 - 0.02, "%s %s: top-1 %g", model, name, s.top1);
        /* Position 0 attends to itself alone and meets no close decision. */
        if (first > 0) continue;
        s = oracle_compare(oracle_row(run, 0), want.f32, 1, vocab);
        T_CHECK(s.max <= 2e-6, "%s %s: position 0: %g", model, name, s.max);
    }
}

static void run_model(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "oracle/%s.prefill.safetensors", name);
    goldens *prefill = goldens_open(path);
    snprintf(path, sizeof path, "oracle/%s.decode.safetensors", name);
    goldens *decode = goldens_open(path);
    golden ids = goldens_get(prefill, "input_ids", "I32");
    oracle_run run;
    snprintf(path, sizeof path, BUILD_DIR "/checkpoints/%s", name);
    oracle_open(&run, path, ids.i32, ids.count);
    printf("  %-42s %8s %8s %8s %7s %8s\n", name, "max", "median", "mean", "top-1", "KL");

    oracle_eval_to(&run, ids.count);
    check_part(&run, prefill, name, "prefill", 0);
    int64_t start = goldens_get(decode, "start", "I32").i32[0];
    oracle_decode(&run, start, ids.count);
    check_part(&run, decode, name, "decode", start - 1);
    if (goldens_has(decode, "early.logits.f32")) {
        oracle_decode(&run, 1, goldens_get(decode, "early.logits.f32", "F32").shape[0]);
        check_part(&run, decode, name, "early", 0);
    }
    oracle_close(&run);
    goldens_close(prefill);
    goldens_close(decode);
}

static void tiny(void) { run_model("tiny"); }
static void deep40(void) { run_model("deep40"); }

T_MAIN({"tiny", tiny}, {"deep40", deep40})
