/* Judging pairs of runs; see bench_verdict.h. */
#include "cli/bench_verdict.h"

#include <stdlib.h>

enum { MOST_REPEATS = 4096 }; /* of one context that count; nobody measures more */

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double cli_bench_median(double *values, int64_t n) {
    qsort(values, (size_t)n, sizeof *values, by_size);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

const char *cli_bench_outcome_words(cli_bench_outcome outcome) {
    static const char *const words[] = {[CLI_BENCH_SAME] = "same",
                                        [CLI_BENCH_NOISE] = "within noise",
                                        [CLI_BENCH_FASTER] = "A is faster",
                                        [CLI_BENCH_SLOWER] = "A is slower"};
    return words[outcome];
}

cli_bench_verdict cli_bench_judge(double *ratios, int pairs, double threshold) {
    double median = cli_bench_median(ratios, pairs);
    int aside = pairs / 8;
    cli_bench_verdict verdict = {.median = median,
                                 .least = ratios[0],
                                 .most = ratios[pairs - 1],
                                 .pairs = pairs,
                                 .outcome = CLI_BENCH_NOISE};
    double low = 1 - threshold, high = 1 + threshold;
    if (median >= low && median <= high)
        verdict.outcome = CLI_BENCH_SAME;
    else if (median < low && ratios[pairs - 1 - aside] < low)
        verdict.outcome = CLI_BENCH_SLOWER;
    else if (median > high && ratios[aside] > high)
        verdict.outcome = CLI_BENCH_FASTER;
    return verdict;
}

bool cli_bench_run_is_a(int i) {
    return i % 4 == 0 || i % 4 == 3;
}

double cli_bench_speed(const cli_bench_table *run, double context, bool decode) {
    double speeds[MOST_REPEATS];
    int64_t n = 0;
    for (int64_t i = 0; i < run->n_records && n < MOST_REPEATS; i++) {
        const cli_bench_record *record = &run->records[i];
        if (record->value[CLI_BENCH_CTX_TOKENS] != context) continue;
        speeds[n++] =
            decode ? cli_bench_decode_tps(record) : record->value[CLI_BENCH_PREFILL_TPS];
    }
    return n > 0 ? cli_bench_median(speeds, n) : 0;
}

bool cli_bench_next_context(const cli_bench_table *run, double *context) {
    bool found = false;
    double next = 0;
    for (int64_t i = 0; i < run->n_records; i++) {
        double at = run->records[i].value[CLI_BENCH_CTX_TOKENS];
        if (at <= *context || (found && at >= next)) continue;
        found = true;
        next = at;
    }
    if (found) *context = next;
    return found;
}
