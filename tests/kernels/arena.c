#include "kernels/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_BLOCKS = 1024, PATTERN = 0xA5 };

typedef struct block {
    unsigned char *map, *data; /* map begins with the guard page in front */
    size_t map_bytes, bytes;
} block;

static block blocks[MOST_BLOCKS];
static int n_blocks;
static uint64_t state;

/* ---- Random numbers ------------------------------------------------------------------------- */

void arena_seed(uint64_t seed) {
    state = seed;
}

/* Adds an odd constant, then mixes: every seed has the full period. */
uint64_t arena_random(void) {
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

int64_t arena_between(int64_t least, int64_t most) {
    return least + (int64_t)(arena_random() % (uint64_t)(most - least + 1));
}

/* ---- Guarded memory ----------------------------------------------------------------------------
 */

static void *make_block(size_t bytes, size_t alignment) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t inside = (bytes + page - 1) / page * page;
    if (inside == 0) inside = page;
    if (n_blocks == MOST_BLOCKS) {
        fputs("arena: too many blocks\n", stderr);
        exit(1);
    }
    block *b = &blocks[n_blocks++];
    b->map_bytes = inside + 2 * page;
    b->bytes = bytes;
    b->map = mmap(NULL, b->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->map == MAP_FAILED || mprotect(b->map + page, inside, PROT_READ | PROT_WRITE) != 0) {
        perror("arena");
        exit(1);
    }
    memset(b->map + page, PATTERN, inside);
    bool against_end = arena_random() % 4 != 0;
    b->data = b->map + page + (against_end ? (inside - bytes) / alignment * alignment : 0);
    return b->data;
}

void *arena_block(int64_t count, size_t element_bytes) {
    return make_block((size_t)count * element_bytes, element_bytes);
}

void *arena_scratch(int64_t bytes) {
    return make_block((size_t)bytes, 64);
}

void *arena_copy(const void *source, int64_t count, size_t element_bytes) {
    void *copy = arena_block(count, element_bytes);
    return memcpy(copy, source, (size_t)count * element_bytes);
}

void arena_seal(const void *data) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < n_blocks; i++)
        if (blocks[i].data == data)
            mprotect(blocks[i].map + page, blocks[i].map_bytes - 2 * page, PROT_READ);
}

bool arena_free_all(void) {
    bool intact = true;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < n_blocks; i++) {
        block *b = &blocks[i];
        const unsigned char *end = b->map + b->map_bytes - page;
        for (const unsigned char *p = b->map + page; p < b->data; p++) intact &= *p == PATTERN;
        for (const unsigned char *p = b->data + b->bytes; p < end; p++) intact &= *p == PATTERN;
        munmap(b->map, b->map_bytes);
    }
    n_blocks = 0;
    return intact;
}

/* ---- Values -----------------------------------------------------------------------------------
 */

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Any sign and mantissa, biased exponent within [least, most]. */
static uint32_t with_exponent(int64_t least, int64_t most) {
    return (uint32_t)(arena_random() & 0x807FFFFFu) | (uint32_t)arena_between(least, most) << 23;
}

static uint32_t edge_value(void) {
    static const uint32_t edges[] = {
        0x00000000, 0x80000000,                                                 /* zeros */
        0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00010000, 0x80400000, /* subnormals */
        0x00800000, 0x80800000,                                     /* the smallest normal */
        0x3F800000, 0xBF800000, 0x3F7FFFFF, 0x3F800001,             /* about 1 */
        0x43E00000, 0xC3E00000, 0x43E80000, 0x40C00000, 0x40A00000, /* 448, 464, 6, 5 */
        0x3F808000, 0x3F818000, 0xBF808000,                         /* ties of bf16 */
    };
    return ARENA_PICK(edges);
}

/* Bits of one value; `kind` is drawn once for a row. */
static uint32_t draw(arena_values family, int kind, uint32_t same) {
    if (family == ARENA_HUGE)
        return arena_random() % 4 ? with_exponent(1, 254)
                                  : 0x7F7F0000u | (uint32_t)(arena_random() << 31);
    if (family != ARENA_EDGES) return with_exponent(118, 130);
    switch (kind) {
    case 0: return edge_value();
    case 1: return same;
    case 2: return with_exponent(70, 80);            /* tiny, their squares still normal */
    case 3: return with_exponent(160, 180);          /* large, sums of squares still finite */
    case 4: return (uint32_t)(arena_random() << 31); /* zeros */
    default: return arena_random() % 2 ? edge_value() : with_exponent(100, 150);
    }
}

void arena_floats(float *x, int64_t n, arena_values family) {
    int kind = (int)arena_between(0, 6);
    uint32_t same = arena_random() % 2 ? edge_value() : with_exponent(100, 150);
    for (int64_t i = 0; i < n; i++) x[i] = float_of(draw(family, kind, same));
    static const uint32_t broken[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000};
    if (family == ARENA_BROKEN && n > 0) x[arena_between(0, n - 1)] = float_of(ARENA_PICK(broken));
}

void arena_acts(uint16_t *x, int64_t n, arena_values family) {
    for (int64_t i = 0; i < n; i += 32) {
        float wide[32];
        int64_t part = n - i < 32 ? n - i : 32;
        arena_floats(wide, part, family);
        for (int64_t j = 0; j < part; j++) {
            uint32_t bits;
            memcpy(&bits, &wide[j], sizeof bits);
            x[i + j] = (uint16_t)(bits >> 16);
        }
    }
}

float *arena_float_block(int64_t n, arena_values family) {
    float *x = arena_block(n, sizeof *x);
    arena_floats(x, n, family);
    arena_seal(x);
    return x;
}

uint16_t *arena_act_block(int64_t n, arena_values family) {
    uint16_t *x = arena_block(n, sizeof *x);
    arena_acts(x, n, family);
    arena_seal(x);
    return x;
}
