/* Compiles the portable attention kernel once more, with the reading of a cache row replaced. */
#define PLUMB_LEVEL bf16_keys
#include "attention_bf16_keys.h"

static int64_t bf16_row_bytes(int64_t dim) { return 2 * dim; }
static void bf16_unpack(const uint8_t *row, int64_t dim, float *x) {
    for (int64_t i = 0; i < dim; i++)
        x[i] = plumb__bf16_decode((uint16_t)(row[2 * i] | row[2 * i + 1] << 8));
}

#define plumb__window_row_bytes bf16_row_bytes
#define plumb__window_unpack bf16_unpack
#define plumb__compressed_row_bytes bf16_row_bytes
#define plumb__compressed_unpack bf16_unpack
#include "backend/cpu/kernels/attention.c"
