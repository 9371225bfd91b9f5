#include "engine/candidates.h"

#include <stdlib.h>

#include "arith/functions.h"
#include "base/error.h"
#include "base/machine.h"

#define SMALLEST_WEIGHT 0x1p-24f

/* Weighs the vocabulary by blocks, which vectorises, and keeps what counts.  One body for two
 * instruction levels: without a vector fma, 129,280 exponentials cost several milliseconds. */
static inline __attribute__((always_inline)) int64_t
collect_body(const float *logits, int64_t vocab_size, float best, float temperature,
             plumb_candidate *items) {
    enum { BLOCK = 256 };
    float weights[BLOCK];
    const float max = best / temperature;
    int64_t count = 0;
    for (int64_t first = 0; first < vocab_size; first += BLOCK) {
        const int64_t size = vocab_size - first < BLOCK ? vocab_size - first : BLOCK;
        for (int64_t i = 0; i < size; i++)
            weights[i] = plumb__exp(logits[first + i] / temperature - max);
        for (int64_t i = 0; i < size; i++)
            if (weights[i] >= SMALLEST_WEIGHT)
                items[count++] = (plumb_candidate){weights[i], (int32_t)(first + i)};
    }
    return count;
}

static int64_t collect_portable(const float *logits, int64_t vocab_size, float best,
                                float temperature, plumb_candidate *items) {
    return collect_body(logits, vocab_size, best, temperature, items);
}

#if defined(__x86_64__)
static __attribute__((target("avx2,fma"))) int64_t
collect_avx2(const float *logits, int64_t vocab_size, float best, float temperature,
             plumb_candidate *items) {
    return collect_body(logits, vocab_size, best, temperature, items);
}
#else
#define collect_avx2 collect_portable
#endif

/* Weights lie in [2^-24, 1], where a smaller weight has smaller bits: 28 bits tell them apart, three
 * digits of 10.  Inverted, so that ascending keys are descending weights. */
enum { DIGIT_BITS = 10, DIGITS = 3, DIGIT_VALUES = 1 << DIGIT_BITS };

static uint32_t digit_of(plumb_candidate candidate, int digit) {
    uint32_t key = 0x3F800000u - plumb__bits_of(candidate.weight);
    return key >> (digit * DIGIT_BITS) & (DIGIT_VALUES - 1);
}

/* One pass of a radix sort; it keeps the order of equal digits, hence of equal weights. */
static void sort_by_digit(const plumb_candidate *from, plumb_candidate *to, int64_t count,
                          int digit) {
    int64_t start[DIGIT_VALUES] = {0};
    for (int64_t i = 0; i < count; i++) start[digit_of(from[i], digit)]++;
    int64_t sum = 0;
    for (int v = 0; v < DIGIT_VALUES; v++) {
        int64_t size = start[v];
        start[v] = sum;
        sum += size;
    }
    for (int64_t i = 0; i < count; i++) to[start[digit_of(from[i], digit)]++] = from[i];
}

plumb_status plumb__candidates_create(const float *logits, int64_t vocab_size, float best,
                                      float temperature, plumb_candidates *candidates,
                                      plumb_error *err) {
    const size_t bytes = (size_t)vocab_size * sizeof(plumb_candidate);
    plumb_candidate *items = malloc(bytes), *other = malloc(bytes);
    if (!items || !other) {
        free(items);
        free(other);
        return plumb__fail_memory(err, "candidates of a draw", 2 * bytes);
    }
    int64_t count = plumb__machine_has_avx2_fma()
                        ? collect_avx2(logits, vocab_size, best, temperature, items)
                        : collect_portable(logits, vocab_size, best, temperature, items);
    for (int digit = 0; digit < DIGITS; digit++) {
        sort_by_digit(items, other, count, digit);
        plumb_candidate *sorted = other;
        other = items;
        items = sorted;
    }
    free(other);
    *candidates = (plumb_candidates){items, count};
    return PLUMB_OK;
}

void plumb__candidates_destroy(plumb_candidates *candidates) { free(candidates->items); }

float plumb__candidates_sum(const plumb_candidates *candidates, int64_t count) {
    float sum = 0.0f;
    for (int64_t i = 0; i < count; i++) sum += candidates->items[i].weight;
    return sum;
}
