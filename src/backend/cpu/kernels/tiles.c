/* Tiles of keys, one block and one sum at a time: the definition (tiles.h). */
#include "backend/cpu/kernels/tiles.h"

#include "arith/lanes.h"

void PLUMB_KERNEL(unpack_window)(const uint8_t *row, int64_t dim, int64_t begin, int64_t end,
                                 float *out) {
    for (int64_t b = begin; b < end; b++)
        plumb__window_unpack_block(row, dim, b, out + (b - begin) * PLUMB_BLOCK);
}

void PLUMB_KERNEL(unpack_compressed)(const uint8_t *row, int64_t dim, int64_t begin, int64_t end,
                                     float *out) {
    for (int64_t b = begin; b < end; b++)
        plumb__compressed_unpack_block(row, dim, b, out + (b - begin) * PLUMB_BLOCK);
}

void PLUMB_KERNEL(unpack_index)(const uint8_t *row, int64_t dim, float *out) {
    plumb__index_unpack(row, dim, out);
}

void PLUMB_KERNEL(lane_products)(const float *x, int64_t rows, const float *y, int64_t columns,
                                 int64_t n, float *out, int64_t out_stride) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            out[r * out_stride + c] = plumb__lanes_dot(x + r * n, y + c * n, n);
}

void PLUMB_KERNEL(add_weighted)(const float *p, int64_t p_stride, int64_t rows, const float *value,
                                int64_t n, float *sum) {
    for (int64_t r = 0; r < rows; r++) {
        float strip[PLUMB_STRIP];
        for (int i = 0; i < PLUMB_STRIP; i++) strip[i] = sum[r * PLUMB_STRIP + i];
        for (int64_t j = 0; j < n; j++)
            for (int i = 0; i < PLUMB_STRIP; i++)
                strip[i] = plumb__fma(p[r * p_stride + j], value[j * PLUMB_STRIP + i], strip[i]);
        for (int i = 0; i < PLUMB_STRIP; i++) sum[r * PLUMB_STRIP + i] = strip[i];
    }
}
