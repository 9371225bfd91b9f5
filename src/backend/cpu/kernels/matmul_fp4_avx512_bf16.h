/* FP4 panels with VDPBF16PS: one block of 32 weight rows as bf16, and its products.
 *
 * Both operands are exact, and so is every partial sum in whatever order the instruction takes:
 * the products of the high plane are multiples of 2^-7 whose sum of magnitudes is at most 32 *
 * 12 * 28,672 = 11,010,048 of them, below 2^24; those of the low plane multiples of 2^-10, at
 * most 32 * 12 * 60. So the instruction's own modes do not matter either, and D_b is rounded
 * once, where the two sums meet. */
#ifndef PLUMB_BACKEND_CPU_MATMUL_FP4_AVX512_BF16_H
#define PLUMB_BACKEND_CPU_MATMUL_FP4_AVX512_BF16_H

#include "backend/cpu/kernels/quantized_avx512.h"

enum {
    FP4_CHUNK = 8,  /* blocks unpacked at a time: 16 KiB */
    FP4_GROUPS = 16 /* vectors of pairs k, k+4 a block */
};

typedef struct fp4_block {
    __m512i weight[FP4_GROUPS][PLUMB_PANEL_GROUPS];
    __m512i exponent[PLUMB_PANEL_GROUPS];
} fp4_block;

/* dword[j]: codes 8j .. 8j+7 of sixteen rows. The table has 32 entries, so that the fifth bit of
 * an index, which belongs to the next code, does not matter. */
static inline void unpack_fp4(const __m512i dword[4], int group, fp4_block *out) {
    static const uint16_t values[32] = {
        0,      0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0, /* 0 .5 1 1.5 2 3 4 6 */
        0x8000, 0xBF00, 0xBF80, 0xBFC0, 0xC000, 0xC040, 0xC080, 0xC0C0, /* and negative */
        0,      0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0, /* again */
        0x8000, 0xBF00, 0xBF80, 0xBFC0, 0xC000, 0xC040, 0xC080, 0xC0C0};
    const __m512i table = _mm512_loadu_si512(values);
    for (int j = 0; j < 4; j++) {
        __m512i codes = dword[j];
        for (int i = 0; i < 4; i++) {
            out->weight[4 * j + i][group] = _mm512_permutexvar_epi16(codes, table);
            codes = _mm512_srli_epi16(codes, 4);
        }
    }
}

PLUMB_INLINE_AVX512 void add_products(__m512 *sum, __m512i weights, __m512i values) {
    *sum = _mm512_dpbf16_ps(*sum, (__m512bh)weights, (__m512bh)values);
    PLUMB_KEEP_AVX512(*sum);
}

/* sum[row][group] += the block times one plane of block b of n rows. Two accumulators each: one
 * alone would wait for the instruction. */
PLUMB_INLINE_AVX512 void add_plane(const fp4_block *w, const plumb_act_chunk *const *x, int n,
                                   int64_t b, bool low, __m512 (*sum)[PLUMB_PANEL_GROUPS]) {
    __m512 odd[4][PLUMB_PANEL_GROUPS];
    for (int r = 0; r < n; r++)
        sum[r][0] = sum[r][1] = odd[r][0] = odd[r][1] = _mm512_setzero_ps();
    PLUMB_ROLLED_AVX512
    for (int g = 0; g < FP4_GROUPS; g += 2)
        for (int r = 0; r < n; r++) {
            const uint16_t *plane = low ? x[r]->bf16_low[b] : x[r]->bf16_high[b];
            __m512i first = plumb__dword_avx512(plane + 2 * g);
            __m512i second = plumb__dword_avx512(plane + 2 * g + 2);
            add_products(&sum[r][0], w->weight[g][0], first);
            add_products(&sum[r][1], w->weight[g][1], first);
            add_products(&odd[r][0], w->weight[g + 1][0], second);
            add_products(&odd[r][1], w->weight[g + 1][1], second);
        }
    for (int r = 0; r < n; r++)
        for (int h = 0; h < PLUMB_PANEL_GROUPS; h++)
            sum[r][h] = _mm512_add_ps(sum[r][h], odd[r][h]);
}

/* D_b of n activation rows, block b of the chunks x. */
PLUMB_INLINE_AVX512 void fp4_products(const fp4_block *w, const plumb_act_chunk *const *x, int n,
                                int64_t b, bool low, __m512 (*d)[PLUMB_PANEL_GROUPS]) {
    add_plane(w, x, n, b, false, d);
    if (!low) return;
    __m512 rest[4][PLUMB_PANEL_GROUPS];
    add_plane(w, x, n, b, true, rest);
    for (int r = 0; r < n; r++)
        for (int h = 0; h < PLUMB_PANEL_GROUPS; h++) d[r][h] = _mm512_add_ps(d[r][h], rest[r][h]);
}

#endif
