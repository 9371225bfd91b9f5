/* The AVX2 layout of a quantised activation row, and what its two files share.
 *
 * Values are integers times 2^-9 of at most 18 bits.  Almost all are multiples of 2^-6: those go into
 * a HIGH plane in units of 2^-6 (16 bits with sign), the others, which are then below 64 units of
 * 2^-9, into a LOW plane (8 bits), so that value = 8 * high + low with one of them zero.  A block
 * whose low plane is empty, about 98 of 100, needs half the products.
 *
 * Lanes of a vector are eight weight rows, so that each lane adds its own blocks in the contract's
 * order and nothing is ever summed across lanes.  Inside a block of 32 the order of k is free:
 * it is whatever unpacking the weights gives. */
#ifndef PLUMB_BACKEND_CPU_QUANTIZED_AVX2_H
#define PLUMB_BACKEND_CPU_QUANTIZED_AVX2_H

#include "backend/cpu/kernels/kernels.h"

enum {
    PLUMB_TILE_ROWS = 8,       /* weight rows in a vector */
    PLUMB_TILE_BLOCKS = 8,     /* blocks unpacked at a time */
    PLUMB_BLOCKS_PER_SEGMENT = 32
};

/* One block of 32 activations.  Aligned to 32 bytes. */
typedef struct plumb_block_avx2 {
    int16_t high[32], low[32]; /* order 0 2 1 3 | 4 6 5 7 | ...: against FP8 weights */
    int8_t digit[3][32];       /* even k, then odd k: against FP4 weights.  high = 256 * digit[1] +
                                * digit[0], digit[2] = low */
    int32_t sum;               /* of the 32 values */
    int32_t exponent;
    int32_t has_low;
    int32_t unused[5];
} plumb_block_avx2;

#endif
