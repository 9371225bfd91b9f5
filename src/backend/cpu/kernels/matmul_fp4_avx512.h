/* FP4 panels with VPDPBUSD: one block of 32 weight rows as bytes, and its products. */
#ifndef PLUMB_BACKEND_CPU_MATMUL_FP4_AVX512_H
#define PLUMB_BACKEND_CPU_MATMUL_FP4_AVX512_H

#include "backend/cpu/kernels/quantized_avx512.h"

enum {
    FP4_CHUNK = 16, /* blocks unpacked at a time: 16 KiB */
    FP4_GROUPS = 8  /* vectors of four k a block: even ones, then odd ones */
};

typedef struct fp4_block {
    __m512i weight[FP4_GROUPS][PLUMB_PANEL_GROUPS]; /* bytes 2w + 12 */
    __m512i exponent[PLUMB_PANEL_GROUPS];
} fp4_block;

/* dword[j]: codes 8j .. 8j+7 of sixteen rows. */
static inline void unpack_fp4(const __m512i dword[4], int group, fp4_block *out) {
    for (int j = 0; j < 4; j++) {
        out->weight[j][group] = plumb__fp4_bytes_avx512(dword[j]);
        out->weight[4 + j][group] = plumb__fp4_bytes_avx512(_mm512_srli_epi16(dword[j], 4));
    }
}

/* sum[row][group] += the block times one digit of block b of n rows. */
PLUMB_INLINE_AVX512 void add_digit(const fp4_block *w, const plumb_act_chunk *const *x, int n,
                                   int64_t b, int digit, __m512i (*sum)[PLUMB_PANEL_GROUPS]) {
    for (int parity = 0; parity < 2; parity++) {
        const __m512i(*weight)[PLUMB_PANEL_GROUPS] = w->weight + 4 * parity;
        PLUMB_ROLLED_AVX512
        for (int g = 0; g < 4; g++) {
            __m512i w0 = weight[g][0], w1 = weight[g][1];
            for (int r = 0; r < n; r++) {
                __m512i values =
                    plumb__dword_avx512(&x[r]->digit[digit][parity][16 * b + 4 * g]);
                PLUMB_DOT_BYTES(sum[r][0], w0, values);
                PLUMB_DOT_BYTES(sum[r][1], w1, values);
            }
        }
    }
}

/* D_b of n activation rows, block b of the chunks x. All sums are far from 2^31: 32 * 24 *
 * 229,376 < 2^28. */
PLUMB_INLINE_AVX512 void fp4_products(const fp4_block *w, const plumb_act_chunk *const *x, int n,
                                int64_t b, bool low, __m512 (*d)[PLUMB_PANEL_GROUPS]) {
    __m512i sum[4][PLUMB_PANEL_GROUPS];
    for (int r = 0; r < n; r++) sum[r][0] = sum[r][1] = _mm512_setzero_si512();
    add_digit(w, x, n, b, 1, sum);
    for (int r = 0; r < n; r++)
        for (int h = 0; h < PLUMB_PANEL_GROUPS; h++) sum[r][h] = _mm512_slli_epi32(sum[r][h], 8);
    add_digit(w, x, n, b, 0, sum);
    if (low) {
        for (int r = 0; r < n; r++)
            for (int h = 0; h < PLUMB_PANEL_GROUPS; h++)
                sum[r][h] = _mm512_slli_epi32(sum[r][h], 3);
        add_digit(w, x, n, b, 2, sum);
    }
    for (int r = 0; r < n; r++) {
        int32_t high = x[r]->take_high[b];
        __m512i take = _mm512_set1_epi32(low ? 8 * high + x[r]->take_low[b] : high);
        for (int h = 0; h < PLUMB_PANEL_GROUPS; h++)
            d[r][h] = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(sum[r][h], take)),
                                    _mm512_set1_ps(low ? 0x1p-10f : 0x1p-7f));
    }
}

#endif
