/* What a benchmark of two commands says: ratios of neighbouring runs, and whether they are more than the
 * noise of the machine.  Pure computation.
 *
 * Runs are made in the order A B B A, again and again; runs 2k and 2k + 1 are pair k.  A machine that
 * grows slower or faster as time goes by does so for both sides of a pair, and for A as often first as
 * for B.  Each pair gives a ratio of speeds, A over B.
 *
 * A is slower where the median of the ratios is below 1 - threshold, and so are all ratios but an eighth
 * of them (none of fewer than eight may stand out): one disturbed run is no regression, and does not hide
 * one in a long series.  A is faster by the same rule the other way round. */
#ifndef PLUMB_CLI_BENCH_VERDICT_H
#define PLUMB_CLI_BENCH_VERDICT_H

#include "cli/bench_table.h"

typedef enum cli_bench_outcome {
    CLI_BENCH_SAME,   /* the median is within the threshold */
    CLI_BENCH_NOISE,  /* it is not, but the pairs disagree */
    CLI_BENCH_FASTER, /* A is */
    CLI_BENCH_SLOWER
} cli_bench_outcome;

const char *cli_bench_outcome_words(cli_bench_outcome outcome);

typedef struct cli_bench_verdict {
    double median, least, most;
    int pairs;
    cli_bench_outcome outcome;
} cli_bench_verdict;

/* ratios[pairs], at least one, are sorted on return.  `threshold` is a fraction: 0.03 is 3 %. */
cli_bench_verdict cli_bench_judge(double *ratios, int pairs, double threshold);

/* Whether run `i`, from 0, is one of A. */
bool cli_bench_run_is_a(int i);

/* A run's speed at a context: the median of its repeats; 0 if nothing was measured there. */
double cli_bench_speed(const cli_bench_table *run, double context, bool decode);

/* The next larger context that a run was measured at; false after the last one.  Begin with -1. */
bool cli_bench_next_context(const cli_bench_table *run, double *context);

/* The middle value, or the mean of the two there; values[n], n > 0, are sorted on return. */
double cli_bench_median(double *values, int64_t n);

#endif
