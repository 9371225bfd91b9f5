#include "stream_report.h"

#include "measure.h"

#include <stdio.h>

/* ---- Bounds ---------------------------------------------------------------------------------- */

double bench_decode_bound(const bench_pass *run, const bench_pass *compute, int64_t tokens,
                          int64_t layers, double rate) {
    double seconds = 0;
    for (int64_t t = 0; t < tokens; t++) {
        seconds += compute[t].outside;
        for (int64_t l = 0; l < layers; l++) {
            double read = run[t].layer[l].bytes / rate, after = compute[t].layer[l].after;
            seconds += compute[t].layer[l].before + (read > after ? read : after);
        }
    }
    return seconds;
}

double bench_pass_operations(const bench_pass *pass, int64_t layers) {
    double seconds = pass->outside;
    for (int64_t l = 0; l < layers; l++) seconds += pass->layer[l].before + pass->layer[l].after;
    return seconds;
}

double bench_prefill_bound(const bench_pass *run, const bench_pass *compute, int64_t layers,
                           double rate) {
    double bytes = 0, operations = bench_pass_operations(compute, layers);
    for (int64_t l = 0; l < layers; l++) bytes += run->layer[l].bytes;
    return bytes / rate > operations ? bytes / rate : operations;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

typedef enum figure {
    BYTES, RATE, BEFORE, AFTER, RATIO, SECONDS, WAITED, COMPUTED, OVER_BOUND, OVER_DRIVE, FIGURES
} figure;

static double figure_of(const bench_pair *p, figure what) {
    switch (what) {
    case BYTES: return 1e-9 * p->bytes;
    case RATE: return 1e-9 * p->rate;
    case BEFORE: return 1e-9 * p->before;
    case AFTER: return 1e-9 * p->after;
    case RATIO: return p->rate / (0.5 * (p->before + p->after));
    case SECONDS: return p->seconds;
    case WAITED: return p->waited;
    case COMPUTED: return p->computed;
    case OVER_BOUND: return p->seconds / p->bound;
    case OVER_DRIVE: return p->seconds / p->drive_bound;
    case FIGURES: break;
    }
    return 0;
}

static double share_of(const bench_stream_report *r, figure what, double share) {
    double values[BENCH_MAX_PAIRS];
    for (int64_t i = 0; i < r->pairs; i++) values[i] = figure_of(&r->pair[i], what);
    return bench_quantile(values, r->pairs, share);
}

static void print_csv(const bench_stream_report *r) {
    printf("mode,peer,reader,depth,block_kib,tokens,slots,pair,gb,gbs,peer_before_gbs,peer_after_gbs,"
           "ratio,s,waited_s,computed_s,over_bound,over_drive_bound\n");
    for (int64_t i = 0; i < r->pairs; i++) {
        printf("%s,%s,%s,%d,%lld,%lld,%lld,%lld", r->mode, r->peer, r->reader, r->depth,
               (long long)r->block_bytes / 1024, (long long)r->tokens, (long long)r->slots,
               (long long)i + 1);
        for (int f = 0; f < FIGURES; f++) printf(",%.4f", figure_of(&r->pair[i], (figure)f));
        printf("\n");
    }
}

static void print_row(const bench_stream_report *r, const char *name, double share) {
    static const int digits[FIGURES] = {2, 2, 2, 2, 2, 2, 2, 2, 3, 3};
    printf("%-8s", name);
    for (int f = 0; f < FIGURES; f++) printf(" %8.*f", digits[f], share_of(r, (figure)f, share));
    printf("\n");
}

static void print_table(const bench_stream_report *r) {
    printf("\n%s of %lld tokens, %lld slots: %s; beside it %s, %d reads of %lld KiB at a time\n",
           r->mode, (long long)r->tokens, (long long)r->slots, r->reader, r->peer, r->depth,
           (long long)r->block_bytes / 1024);
    printf("%-8s %8s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "pair", "GB", "GB/s", "before",
           "after", "ratio", "s", "waited", "compute", "/bound", "/drive");
    for (int64_t i = 0; i < r->pairs; i++) {
        bench_stream_report one = *r;
        char name[16];
        one.pair[0] = r->pair[i];
        one.pairs = 1;
        (void)snprintf(name, sizeof name, "%lld", (long long)i + 1);
        print_row(&one, name, 0);
    }
    print_row(r, "least", 0);
    print_row(r, "median", 0.5);
    print_row(r, "most", 1);
    double ratio = share_of(r, RATIO, 0.5), over = share_of(r, OVER_BOUND, 0.5);
    printf("ratio %.2f, wanted 0.90: %s; time / bound %.2f, wanted 1.10: %s (medians of %lld pairs; "
           "compute timed %s)\n",
           ratio, ratio >= 0.9 ? "reached" : "missed", over, over <= 1.1 ? "kept" : "exceeded",
           (long long)r->pairs, r->computed_apart ? "in the run and from memory" : "in the run");
}

void bench_stream_report_print(const bench_stream_report *r, bool csv) {
    if (csv) print_csv(r);
    else print_table(r);
    (void)fflush(stdout);
}
