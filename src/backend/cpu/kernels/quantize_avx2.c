/* Quantising a row of activations into the AVX2 layout. */
#include "backend/cpu/kernels/quantized_avx2.h"

static int64_t padded_blocks(int64_t k) {
    int64_t blocks = k / PLUMB_BLOCK;
    return (blocks + PLUMB_CHUNK_BLOCKS - 1) / PLUMB_CHUNK_BLOCKS * PLUMB_CHUNK_BLOCKS;
}

int64_t plumb__quantized_row_bytes_avx2(int64_t k) {
    int64_t per_block = PLUMB_BLOCK * (2 * 2 * PLUMB_ORDER_COUNT + PLUMB_DIGITS) + 3 * 4;
    return padded_blocks(k) * per_block;
}

plumb_row_avx2 plumb__row_view_avx2(const void *row, int64_t k) {
    int64_t blocks = padded_blocks(k), n = blocks * PLUMB_BLOCK;
    int16_t *plane = (int16_t *)(uintptr_t)row;
    int8_t *digit = (int8_t *)(plane + 4 * n);
    int32_t *numbers = (int32_t *)(void *)(digit + PLUMB_DIGITS * n);
    return (plumb_row_avx2){.high = {plane, plane + n},
                            .low = {plane + 2 * n, plane + 3 * n},
                            .digit = {digit, digit + n, digit + 2 * n},
                            .sum = numbers,
                            .exponent = numbers + blocks,
                            .has_low = numbers + 2 * blocks};
}

/* Where element i of block b lies in the two orders and among the digits. */
static int64_t row_place(int64_t b, int i) {
    static const int swapped[4] = {0, 2, 1, 3}; /* quarters of eight */
    return b * PLUMB_BLOCK + swapped[i / 8] * 8 + i % 8;
}
static int64_t lane_place(int64_t b, int i) { return b * PLUMB_BLOCK + (i & 1) * 16 + i / 2; }
static int64_t digit_place(int64_t b, int i) {
    return b / 2 * 64 + (i & 1) * 32 + (b & 1) * 16 + i / 2;
}

static void store_value(plumb_row_avx2 out, int64_t b, int i, int32_t value) {
    bool is_high = (value & 7) == 0;
    int32_t high = is_high ? value / 8 : 0, low = is_high ? 0 : value;
    int32_t digit0 = ((high + 128) & 255) - 128;
    out.high[PLUMB_ORDER_ROW][row_place(b, i)] = (int16_t)high;
    out.high[PLUMB_ORDER_LANE][lane_place(b, i)] = (int16_t)high;
    out.low[PLUMB_ORDER_ROW][row_place(b, i)] = (int16_t)low;
    out.low[PLUMB_ORDER_LANE][lane_place(b, i)] = (int16_t)low;
    out.digit[0][digit_place(b, i)] = (int8_t)digit0;
    out.digit[1][digit_place(b, i)] = (int8_t)((high - digit0) / 256);
    out.digit[2][digit_place(b, i)] = (int8_t)low;
    out.sum[b] += value;
    out.has_low[b] |= low != 0;
}

bool plumb__quantize_row_avx2(const plumb_act *x, int64_t k, void *row) {
    plumb_row_avx2 out = plumb__row_view_avx2(row, k);
    bool finite = true;
    if (padded_blocks(k) != k / PLUMB_BLOCK)
        memset(row, 0, (size_t)plumb__quantized_row_bytes_avx2(k));
    for (int64_t b = 0; b < k / PLUMB_BLOCK; b++) {
        float value[PLUMB_BLOCK];
        for (int i = 0; i < PLUMB_BLOCK; i++) value[i] = plumb__load(x[b * PLUMB_BLOCK + i]);
        int32_t exponent = plumb__q8_exponent(value);
        finite &= (plumb__bits_of(plumb__absolute_max(value, PLUMB_BLOCK)) & 0x7F800000u) !=
                  0x7F800000u;
        out.exponent[b] = exponent;
        out.sum[b] = 0;
        out.has_low[b] = 0;
        for (int i = 0; i < PLUMB_BLOCK; i++)
            store_value(out, b, i,
                        plumb__e4m3_times512(
                            plumb__e4m3_encode(plumb__divide_power(value[i], exponent))));
    }
    return finite;
}
