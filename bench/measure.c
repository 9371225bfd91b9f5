#include "measure.h"

#include "base/machine.h"

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

/* ---- Reading -------------------------------------------------------------------------------
 * One sequential stream does not get all of a memory's speed: prefetching stops at every page, and
 * a few streams at once hide that.  Loads are as wide as the machine has them. */

enum { STREAMS = 8, PARTS = 4, PART_WORDS = 4, MOST_THREADS = 256 };

/* Four words that are added at once, at any address of a word. */
typedef uint64_t words4 __attribute__((vector_size(PART_WORDS * 8), aligned(8), may_alias));

typedef struct read_job {
    const uint64_t *words;
    uint64_t sum[MOST_THREADS];
} read_job;

static inline __attribute__((always_inline)) uint64_t add_words(const uint64_t *words, int64_t n) {
    enum { STEP = PARTS * PART_WORDS };
    words4 part[PARTS] = {{0}};
    int64_t each = n / STREAMS / STEP * STEP;
    for (int64_t at = 0; at < each; at += STEP)
        for (int64_t stream = 0; stream < STREAMS; stream++) {
            const uint64_t *from = words + stream * each + at;
            for (int i = 0; i < PARTS; i++) part[i] += *(const words4 *)(from + i * PART_WORDS);
        }
    uint64_t sum = 0;
    for (int i = 0; i < PARTS; i++)
        for (int j = 0; j < PART_WORDS; j++) sum += part[i][j];
    for (int64_t at = STREAMS * each; at < n; at++) sum += words[at];
    return sum;
}

static uint64_t add_words_plain(const uint64_t *words, int64_t n) { return add_words(words, n); }

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint64_t add_words_avx2(const uint64_t *words, int64_t n) {
    return add_words(words, n);
}
#endif

static void read_words(void *arg, int64_t begin, int64_t end, int thread) {
    read_job *job = arg;
    uint64_t (*add)(const uint64_t *, int64_t) = add_words_plain;
#if defined(__x86_64__)
    if (plumb__machine_has_avx2_fma()) add = add_words_avx2;
#endif
    job->sum[thread % MOST_THREADS] += add(job->words + begin, end - begin);
}

uint64_t bench_read(plumb_pool *pool, const void *memory, int64_t bytes) {
    read_job job = {.words = memory};
    plumb__pool_run(pool, bytes / (int64_t)sizeof(uint64_t), 1, read_words, &job);
    uint64_t sum = 0;
    for (int i = 0; i < MOST_THREADS; i++) sum += job.sum[i];
    return sum;
}
