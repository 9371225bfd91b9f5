#include "measure.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_ROUNDS = 3, MOST_ROUNDS = 1000 };

double bench_now(void) { return plumb__now(); }

static int ascending(const void *a, const void *b) {
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

double bench_quantile(double *values, int64_t n, double share) {
    qsort(values, (size_t)n, sizeof *values, ascending);
    double place = share * (double)(n - 1);
    int64_t below = (int64_t)place, above = below + 1 < n ? below + 1 : below;
    return values[below] + (place - (double)below) * (values[above] - values[below]);
}

void bench_compare(const bench_contender *contenders, int n, double seconds,
                   bench_result *result) {
    static const double half = 0.5;
    double times[BENCH_MAX_CONTENDERS][MOST_ROUNDS], ratios[MOST_ROUNDS];
    for (int i = 0; i < n; i++) contenders[i].run(contenders[i].arg);
    int64_t rounds = 0;
    double start = bench_now();
    while (rounds < MOST_ROUNDS && (rounds < LEAST_ROUNDS || bench_now() - start < seconds)) {
        for (int i = 0; i < n; i++) {
            int which = rounds % 2 ? n - 1 - i : i;
            double began = bench_now();
            contenders[which].run(contenders[which].arg);
            times[which][rounds] = bench_now() - began;
        }
        rounds++;
    }
    *result = (bench_result){.rounds = rounds};
    for (int i = n - 1; i >= 0; i--) { /* 0 last: sorting loses which round a time belongs to */
        for (int64_t r = 0; r < rounds; r++) ratios[r] = times[i][r] / times[0][r];
        result->speed[i] = bench_quantile(ratios, rounds, half);
        result->seconds[i] = bench_quantile(times[i], rounds, half);
    }
    result->spread = (bench_quantile(times[0], rounds, 0.75) - bench_quantile(times[0], rounds, 0.25)) /
                     result->seconds[0];
}

bool bench_explain(plumb_status status, const plumb_error *err) {
    char text[1024];
    if (status == PLUMB_OK) return true;
    plumb_error_line(err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return false;
}
