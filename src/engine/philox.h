/* Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011): random words as a function of a key and a
 * counter.  There is no state to keep: word = f(seed, position), so a rewound or restored session,
 * or another machine, draws the same numbers. */
#ifndef PLUMB_ENGINE_PHILOX_H
#define PLUMB_ENGINE_PHILOX_H

#include <stdint.h>

/* Encrypts `counter` under `key` in ten rounds. */
void plumb__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]);

/* The uniform number in [0, 1) that picks the token after `position` tokens: the upper 24 bits of
 * the first word, with key = seed and counter = position, low words first. */
float plumb__philox_uniform(uint64_t seed, uint64_t position);

#endif
