/* numpy.random.default_rng(seed).integers(0, bound, count): the generator that the published code
 * draws its Engram multipliers from, so that a checkpoint of any vocabulary can be hashed.
 *
 * It is a SeedSequence over one 32-bit word, PCG64 (XSL-RR), and Lemire's bounded integers.  All
 * state is integers of 32, 64 and 128 bits. */
#ifndef PLUMB_MODEL_NUMPY_INTEGERS_H
#define PLUMB_MODEL_NUMPY_INTEGERS_H

#include <stdint.h>

/* Fills draws[count] with integers in [0, bound); 1 <= bound <= 2^63 - 1. */
void plumb__numpy_integers(uint32_t seed, int64_t bound, int64_t count, int64_t *draws);

#endif
