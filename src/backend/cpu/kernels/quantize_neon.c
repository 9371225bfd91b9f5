/* Quantising a row of activations into the NEON layout. */
#include "backend/cpu/kernels/quantized_neon.h"

int64_t plumb__quantized_row_bytes_neon(int64_t k) {
    int64_t bytes = k * (2 * (int64_t)sizeof(int16_t) + PLUMB_DIGITS);
    bytes += k / PLUMB_BLOCK * 2 * (int64_t)sizeof(int32_t);
    return (bytes + 63) / 64 * 64;
}

plumb_row_neon plumb__row_view_neon(const void *row, int64_t k) {
    int16_t *plane = (int16_t *)(uintptr_t)row;
    int8_t *digit = (int8_t *)(plane + 2 * k);
    int32_t *numbers = (int32_t *)(void *)(digit + PLUMB_DIGITS * k);
    return (plumb_row_neon){.high = plane,
                            .low = plane + k,
                            .digit = {digit, digit + k, digit + 2 * k},
                            .exponent = numbers,
                            .has_low = numbers + k / PLUMB_BLOCK};
}

static void store_value(plumb_row_neon out, int64_t b, int i, int32_t value) {
    bool is_high = (value & 7) == 0;
    int32_t high = is_high ? value / 8 : 0, low = is_high ? 0 : value;
    int32_t digit0 = ((high + 128) & 255) - 128;
    int64_t at = b * PLUMB_BLOCK + i, digit_at = b * PLUMB_BLOCK + (i & 1) * 16 + i / 2;
    out.high[at] = (int16_t)high;
    out.low[at] = (int16_t)low;
    out.digit[0][digit_at] = (int8_t)digit0;
    out.digit[1][digit_at] = (int8_t)((high - digit0) / 256);
    out.digit[2][digit_at] = (int8_t)low;
    out.has_low[b] |= low != 0;
}

bool plumb__quantize_row_neon(const plumb_act *x, int64_t k, void *row) {
    plumb_row_neon out = plumb__row_view_neon(row, k);
    bool finite = true;
    for (int64_t b = 0; b < k / PLUMB_BLOCK; b++) {
        float value[PLUMB_BLOCK];
        for (int i = 0; i < PLUMB_BLOCK; i++) value[i] = plumb__load(x[b * PLUMB_BLOCK + i]);
        int32_t exponent = plumb__q8_exponent(value);
        finite &= (plumb__bits_of(plumb__absolute_max(value, PLUMB_BLOCK)) & 0x7F800000u) !=
                  0x7F800000u;
        out.exponent[b] = exponent;
        out.has_low[b] = 0;
        for (int i = 0; i < PLUMB_BLOCK; i++)
            store_value(out, b, i,
                        plumb__e4m3_times512(
                            plumb__e4m3_encode(plumb__divide_power(value[i], exponent))));
    }
    return finite;
}
