#include "measure.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEAST_ROUNDS = 3, MOST_ROUNDS = 1000 };

double bench_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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

/* ---- Reading ------------------------------------------------------------------------------- */

enum { LANES = 16, MOST_THREADS = 256 };

typedef struct read_job {
    const uint64_t *words;
    uint64_t sum[MOST_THREADS];
} read_job;

static void read_words(void *arg, int64_t begin, int64_t end, int thread) {
    read_job *job = arg;
    uint64_t lane[LANES] = {0};
    for (int64_t line = begin; line < end; line++) {
        const uint64_t *words = job->words + line * LANES;
        for (int i = 0; i < LANES; i++) lane[i] += words[i];
    }
    uint64_t sum = 0;
    for (int i = 0; i < LANES; i++) sum += lane[i];
    job->sum[thread % MOST_THREADS] += sum;
}

uint64_t bench_read(plumb_pool *pool, const void *memory, int64_t bytes) {
    read_job job = {.words = memory};
    plumb__pool_run(pool, bytes / (LANES * (int64_t)sizeof(uint64_t)), 1, read_words, &job);
    uint64_t sum = 0;
    for (int i = 0; i < MOST_THREADS; i++) sum += job.sum[i];
    return sum;
}
