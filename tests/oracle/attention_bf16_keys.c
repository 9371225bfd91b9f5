/* Compiles the portable attention kernel once more, with the reading of a cache row replaced. */
#define PLUMB_LEVEL bf16_keys
#include "attention_bf16_keys.h"

static int64_t bf16_row_bytes(int64_t dim) { return 2 * dim; }
static void bf16_unpack_block(const uint8_t *row, int64_t dim, int64_t b, float *x) {
    (void)dim;
    const uint8_t *block = row + 2 * PLUMB_BLOCK * b;
    for (int64_t i = 0; i < PLUMB_BLOCK; i++)
        x[i] = plumb__bf16_decode((uint16_t)(block[2 * i] | block[2 * i + 1] << 8));
}

#define plumb__window_row_bytes bf16_row_bytes
#define plumb__window_unpack_block bf16_unpack_block
#define plumb__compressed_row_bytes bf16_row_bytes
#define plumb__compressed_unpack_block bf16_unpack_block
#include "backend/cpu/kernels/attention.c"
#include "backend/cpu/kernels/tiles.c"
