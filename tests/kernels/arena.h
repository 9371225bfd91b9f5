/* Memory and numbers for the tests of kernels.
 *
 * A guarded block lies between two pages that may not be touched, against the one behind it or the
 * one before it by turns, so that a read or write outside ends the program; the rest of its pages
 * holds a pattern that must survive.  Starts are aligned to the element and to nothing more. */
#ifndef PLUMB_TESTS_KERNELS_ARENA_H
#define PLUMB_TESTS_KERNELS_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts the random sequence; everything below that is random follows from it. */
void arena_seed(uint64_t seed);
uint64_t arena_random(void);
int64_t arena_between(int64_t least, int64_t most);
/* A number from a list. */
#define ARENA_PICK(list) ((list)[arena_random() % (sizeof(list) / sizeof((list)[0]))])

/* Zero bytes are allowed.  Contents are the pattern. */
void *arena_block(int64_t count, size_t element_bytes);
/* The same, aligned to 64 where the size allows: scratch memory. */
void *arena_scratch(int64_t bytes);
/* A block with the contents of another. */
void *arena_copy(const void *block, int64_t count, size_t element_bytes);
/* Writing to the block now ends the program: for what a kernel may only read. */
void arena_seal(const void *block);
/* Frees all blocks; false when a pattern was damaged. */
bool arena_free_all(void);

/* Families of float values; each fill draws one family for the whole row or mixes them. */
typedef enum arena_values {
    ARENA_PLAIN,  /* around 1, all signs */
    ARENA_EDGES,  /* zeros of both signs, subnormals, powers, all equal, tiny, large; squares and
                   * sums of them stay finite */
    ARENA_HUGE,   /* up to the largest finite number */
    ARENA_BROKEN, /* plain, with a NaN or an infinity at one place */
    ARENA_FAMILIES
} arena_values;

void arena_floats(float *x, int64_t n, arena_values family);
/* bf16 values of the same families. */
void arena_acts(uint16_t *x, int64_t n, arena_values family);
float *arena_float_block(int64_t n, arena_values family);
uint16_t *arena_act_block(int64_t n, arena_values family);

#endif
