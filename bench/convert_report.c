#include "convert_report.h"

#include "measure.h"

#include <stdio.h>

static double ratio_of(const bench_convert_report *r, int64_t pair) {
    return r->ours[pair] / r->peer[pair];
}

static void print_csv(const bench_convert_report *r) {
    printf("name,beside,jobs,bytes,pair,peer_gbs,gbs,ratio\n");
    for (int64_t i = 0; i < r->pairs; i++)
        printf("%s,%s,%lld,%lld,%lld,%.4f,%.4f,%.4f\n", r->name, r->beside, (long long)r->jobs,
               (long long)r->bytes, (long long)i + 1, 1e-9 * r->peer[i], 1e-9 * r->ours[i],
               ratio_of(r, i));
}

static void print_share(const bench_convert_report *r, const char *name, double share) {
    double ours[BENCH_MAX_CONVERT_PAIRS], peer[BENCH_MAX_CONVERT_PAIRS],
        ratio[BENCH_MAX_CONVERT_PAIRS];
    for (int64_t i = 0; i < r->pairs; i++) {
        ours[i] = r->ours[i];
        peer[i] = r->peer[i];
        ratio[i] = ratio_of(r, i);
    }
    printf("%-8s %8.2f %8.2f %8.2f\n", name, 1e-9 * bench_quantile(peer, r->pairs, share),
           1e-9 * bench_quantile(ours, r->pairs, share), bench_quantile(ratio, r->pairs, share));
}

static void print_table(const bench_convert_report *r) {
    char jobs[32] = "jobs by default";
    if (r->jobs > 0) (void)snprintf(jobs, sizeof jobs, "%lld jobs", (long long)r->jobs);
    printf("\n%s, %s, %.2f GB; beside it %s; %s dropped before each\n", r->name, jobs,
           1e-9 * (double)r->bytes, r->beside,
           r->uncached ? "the page cache" : "the files' part of the page cache");
    printf("%-8s %8s %8s %8s\n", "pair", "beside", "GB/s", "ratio");
    for (int64_t i = 0; i < r->pairs; i++)
        printf("%-8lld %8.2f %8.2f %8.2f\n", (long long)i + 1, 1e-9 * r->peer[i],
               1e-9 * r->ours[i], ratio_of(r, i));
    print_share(r, "least", 0);
    print_share(r, "median", 0.5);
    print_share(r, "most", 1);
    double ratio[BENCH_MAX_CONVERT_PAIRS];
    for (int64_t i = 0; i < r->pairs; i++) ratio[i] = ratio_of(r, i);
    double median = bench_quantile(ratio, r->pairs, 0.5);
    printf("ratio %.2f, wanted %.2f: %s (median of %lld pairs)\n", median, r->wanted,
           median >= r->wanted ? "reached" : "missed", (long long)r->pairs);
}

void bench_convert_report_print(const bench_convert_report *r, bool csv) {
    if (csv) print_csv(r);
    else print_table(r);
    (void)fflush(stdout);
}
