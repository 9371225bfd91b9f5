/* How bench/ measures: rounds in which every contender runs once, back to back, and medians over
 * rounds.  A machine that slows down slows all contenders of the round, so a median of per-round
 * ratios is steadier than the ratio of two measurements taken apart. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "plumb.h"

double bench_now(void); /* seconds of a clock that never jumps */

/* Value at `share` (0..1) of the sorted values; sorts them in place.  n >= 1. */
double bench_quantile(double *values, int64_t n, double share);

enum { BENCH_MAX_CONTENDERS = 3 };

typedef struct bench_contender {
    void (*run)(void *arg);
    void *arg;
} bench_contender;

typedef struct bench_result {
    int64_t rounds;
    double seconds[BENCH_MAX_CONTENDERS]; /* median time of a run */
    double speed[BENCH_MAX_CONTENDERS];   /* median of time[i] / time[0]: how much faster 0 is */
    double spread;                        /* (third - first quartile) / median of contender 0 */
} bench_result;

/* One run of each to warm up, then at least three rounds and about `seconds` of them.  The order
 * turns around from round to round. */
void bench_compare(const bench_contender *contenders, int n, double seconds, bench_result *result);

/* True for PLUMB_OK; otherwise *err goes to standard error as one line. */
bool bench_explain(plumb_status status, const plumb_error *err);

#endif
