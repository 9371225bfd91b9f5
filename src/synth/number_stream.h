/* The random numbers of synthetic checkpoints.
 *
 * A stream belongs to a (seed, name) pair and is addressed by element index, so any part of any
 * tensor can be generated alone, in any order, on any machine, with the same result.  Words come
 * from an integer hash; the numbers made of them use only exactly rounded double operations. */
#ifndef PLUMB_SYNTH_NUMBER_STREAM_H
#define PLUMB_SYNTH_NUMBER_STREAM_H

#include <stdint.h>

typedef struct plumb__number_stream {
    uint64_t key;
} plumb__number_stream;

/* The stream of `name` under `seed`: FNV-1a of the name, mixed with the seed. */
plumb__number_stream plumb__number_stream_of(uint64_t seed, const char *name);
/* The stream named by a concatenation, so that callers need no buffer. */
plumb__number_stream plumb__number_stream_of_parts(uint64_t seed, const char *name,
                                                   int64_t name_size, const char *suffix);

/* 64 uniform bits for element `index`: one step of SplitMix64 from the key. */
static inline uint64_t plumb__stream_word(plumb__number_stream stream, int64_t index) {
    uint64_t z = stream.key + ((uint64_t)index + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Nearly normal with variance 1: the sum of four uniform 16-bit numbers, centred and scaled. */
static inline double plumb__stream_normal(plumb__number_stream stream, int64_t index) {
    uint64_t w = plumb__stream_word(stream, index);
    int64_t sum = (int64_t)((w & 0xFFFF) + (w >> 16 & 0xFFFF) + (w >> 32 & 0xFFFF) + (w >> 48));
    return (double)(sum - 2 * 0xFFFF) / 37837.22723;
}

/* An integer in [0, bound), bound at most 2^32. */
static inline int64_t plumb__stream_below(plumb__number_stream stream, int64_t index,
                                          int64_t bound) {
    return (int64_t)((plumb__stream_word(stream, index) >> 32) % (uint64_t)bound);
}

/* n^(-1/2) of a positive integer, correctly rounded: the scale of a matrix with fan-in n.  A libm
 * pow may be one last bit off, and one bit here can move a weight to the neighbouring code. */
double plumb__inverse_sqrt(int64_t n);

#endif
