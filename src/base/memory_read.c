#include "base/memory_read.h"

#include "base/machine.h"

/* One sequential stream does not get all of a memory's speed: prefetching stops at every page, and
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

static uint64_t add_words_plain(const uint64_t *words, int64_t n) {
    return add_words(words, n);
}

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

uint64_t plumb__memory_read(plumb_pool *pool, const void *memory, int64_t bytes) {
    read_job job = {.words = memory};
    plumb__pool_run(pool, bytes / (int64_t)sizeof(uint64_t), 1, read_words, &job);
    uint64_t sum = 0;
    for (int i = 0; i < MOST_THREADS; i++) sum += job.sum[i];
    return sum;
}
