#include "model/numpy_integers.h"

#include <stdbool.h>

__extension__ typedef unsigned __int128 uint128;

/* ---- SeedSequence: spreads a seed over a pool of four words, and the pool over any length ----- */

enum { POOL = 4 };

/* Mixes `value` with a constant that changes at every use. */
static uint32_t hash_word(uint32_t value, uint32_t *constant, uint32_t multiplier) {
    value ^= *constant;
    *constant *= multiplier;
    value *= *constant;
    return value ^ value >> 16;
}

static uint32_t mix_words(uint32_t x, uint32_t y) {
    uint32_t mixed = 0xCA01F9DDu * x - 0x4973F715u * y;
    return mixed ^ mixed >> 16;
}

static void seed_pool(uint32_t seed, uint32_t pool[POOL]) {
    const uint32_t multiplier = 0x931E8875u;
    uint32_t constant = 0x43B0D7E5u;
    for (int i = 0; i < POOL; i++) pool[i] = hash_word(i == 0 ? seed : 0, &constant, multiplier);
    for (int from = 0; from < POOL; from++)
        for (int to = 0; to < POOL; to++)
            if (from != to)
                pool[to] = mix_words(pool[to], hash_word(pool[from], &constant, multiplier));
}

/* The first four 64-bit words of the sequence, each from two words of the pool, low half first. */
static void seed_words(const uint32_t pool[POOL], uint64_t words[POOL]) {
    uint32_t constant = 0x8B51F9DDu;
    for (int i = 0; i < POOL; i++) {
        uint64_t low = hash_word(pool[2 * i % POOL], &constant, 0x58F38DEDu);
        uint64_t high = hash_word(pool[(2 * i + 1) % POOL], &constant, 0x58F38DEDu);
        words[i] = high << 32 | low;
    }
}

/* ---- PCG64 --------------------------------------------------------------------------------- */

typedef struct pcg64 {
    uint128 state, increment;
    bool has_half; /* the high half of the last output waits for the next 32-bit draw */
    uint32_t half;
} pcg64;

static void pcg64_step(pcg64 *g) {
    const uint128 multiplier = (uint128)0x2360ED051FC65DA4u << 64 | 0x4385DF649FCCF645u;
    g->state = g->state * multiplier + g->increment;
}

static pcg64 pcg64_seeded(uint32_t seed) {
    uint32_t pool[POOL];
    uint64_t words[POOL];
    seed_pool(seed, pool);
    seed_words(pool, words);
    pcg64 g = {.increment = ((uint128)words[2] << 64 | words[3]) << 1 | 1};
    pcg64_step(&g);
    g.state += (uint128)words[0] << 64 | words[1];
    pcg64_step(&g);
    return g;
}

static uint64_t next_64(pcg64 *g) {
    pcg64_step(g);
    uint64_t folded = (uint64_t)(g->state >> 64) ^ (uint64_t)g->state;
    unsigned turn = (unsigned)(g->state >> 122);
    return folded >> turn | folded << (-turn & 63);
}

static uint32_t next_32(pcg64 *g) {
    if (g->has_half) {
        g->has_half = false;
        return g->half;
    }
    uint64_t word = next_64(g);
    g->has_half = true;
    g->half = (uint32_t)(word >> 32);
    return (uint32_t)word;
}

/* ---- Bounded integers: the high half of word * bound, redrawn where that would be biased ----- */

static uint64_t bounded_64(pcg64 *g, uint64_t bound) {
    const uint64_t threshold = (0 - bound) % bound; /* 2^64 mod bound */
    uint128 product;
    do product = (uint128)next_64(g) * bound;
    while ((uint64_t)product < threshold);
    return (uint64_t)(product >> 64);
}

static uint64_t bounded_32(pcg64 *g, uint64_t bound) {
    const uint32_t threshold = (uint32_t)((UINT64_C(1) << 32) % bound);
    uint64_t product;
    do product = next_32(g) * bound;
    while ((uint32_t)product < threshold);
    return product >> 32;
}

void plumb__numpy_integers(uint32_t seed, int64_t bound, int64_t count, int64_t *draws) {
    pcg64 g = pcg64_seeded(seed);
    for (int64_t i = 0; i < count; i++) {
        uint64_t n = (uint64_t)bound;
        if (n == 1) draws[i] = 0; /* nothing is drawn */
        else if (n <= UINT64_C(1) << 32) draws[i] = (int64_t)bounded_32(&g, n);
        else draws[i] = (int64_t)bounded_64(&g, n);
    }
}
