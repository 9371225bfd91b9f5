/* Quantising a row of activations into the AVX2 layout. */
#include "backend/cpu/kernels/quantized_avx2.h"

int64_t plumb__quantized_row_bytes_avx2(int64_t k) {
    return k / PLUMB_BLOCK * (int64_t)sizeof(plumb_block_avx2);
}

/* Place of element i against FP8 weights: within four, 0 2 1 3. */
static int fp8_place(int i) { return (i & ~3) | (i & 1) << 1 | (i & 2) >> 1; }

/* Place of element i against FP4 weights: even ones first. */
static int fp4_place(int i) { return (i & 1) * 16 + i / 2; }

static void store_value(plumb_block_avx2 *block, int i, int32_t value) {
    bool is_high = (value & 7) == 0;
    int32_t high = is_high ? value / 8 : 0, low = is_high ? 0 : value;
    int32_t digit0 = ((high + 128) & 255) - 128; /* balanced, so that it fits int8 */
    block->high[fp8_place(i)] = (int16_t)high;
    block->low[fp8_place(i)] = (int16_t)low;
    block->digit[0][fp4_place(i)] = (int8_t)digit0;
    block->digit[1][fp4_place(i)] = (int8_t)((high - digit0) / 256);
    block->digit[2][fp4_place(i)] = (int8_t)low;
    block->sum += value;
    block->has_low |= low != 0;
}

bool plumb__quantize_row_avx2(const plumb_act *x, int64_t k, void *row) {
    plumb_block_avx2 *block = row;
    bool finite = true;
    for (int64_t b = 0; b < k / PLUMB_BLOCK; b++, block++) {
        float value[PLUMB_BLOCK];
        int32_t integer[PLUMB_BLOCK];
        for (int i = 0; i < PLUMB_BLOCK; i++) value[i] = plumb__load(x[b * PLUMB_BLOCK + i]);
        int32_t exponent = plumb__q8_exponent(value);
        finite &= (plumb__bits_of(plumb__absolute_max(value, PLUMB_BLOCK)) & 0x7F800000u) !=
                  0x7F800000u;
        for (int i = 0; i < PLUMB_BLOCK; i++)
            integer[i] = plumb__e4m3_times512(
                plumb__e4m3_encode(plumb__divide_power(value[i], exponent)));
        block->exponent = exponent;
        block->sum = 0;
        block->has_low = 0;
        for (int i = 0; i < PLUMB_BLOCK; i++) store_value(block, i, integer[i]);
    }
    return finite;
}
