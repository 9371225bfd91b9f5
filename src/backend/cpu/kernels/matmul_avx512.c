/* Many activation rows against a panel of 32 weight rows: what prefill does all day.
 *
 * A few blocks of the panel are unpacked once into scratch (16 KiB, so that they stay in the
 * first cache), a lane holding the next k of its own row, and meet every activation row, four at
 * a time. Nothing is summed across lanes, so an activation is a broadcast and a block sum is
 * ready when its last product is. */
#include "backend/cpu/kernels/fp8_avx512.h"

#ifdef PLUMB_AVX512_BF16
#include "backend/cpu/kernels/matmul_fp4_avx512_bf16.h"
#else
#include "backend/cpu/kernels/matmul_fp4_avx512.h"
#endif

enum {
    FP8_CHUNK = 4,   /* blocks unpacked at a time: 16 KiB */
    FP8_GROUPS = 16, /* vectors of two k a block */
    TILE = 4,        /* activation rows: each weight that is loaded meets all */
    GROUPS = PLUMB_PANEL_GROUPS
};

typedef struct fp8_block {
    __m512i high[GROUPS][FP8_GROUPS], low[GROUPS][FP8_GROUPS];
    __m512i exponent[GROUPS];
} fp8_block;

typedef union panel {
    fp4_block fp4[FP4_CHUNK];
    fp8_block fp8[FP8_CHUNK];
} panel;

int64_t PLUMB_KERNEL(matmul_scratch)(void) { return (int64_t)sizeof(panel); }

/* ---- Unpacking ------------------------------------------------------------------------------- */

/* Blocks b .. b+count-1 of weight rows n .. n+rows-1 into one group. */
static void unpack_fp4_group(const plumb_matrix *w, int64_t n, int64_t rows, int64_t b,
                             int64_t count, int group, fp4_block *out) {
    int64_t blocks = w->k / PLUMB_BLOCK, block_bytes = PLUMB_BLOCK / 2;
    const uint8_t *codes[PLUMB_LANE_ROWS], *scales[PLUMB_LANE_ROWS];
    plumb__find_rows_avx512((const uint8_t *)w->codes + n * blocks * block_bytes,
                            blocks * block_bytes, rows, codes);
    plumb__find_rows_avx512(w->scales + n * blocks, blocks, rows, scales);
    __m512i packed[4], exponent[16];
    plumb__transpose_avx512(scales, b, (__mmask16)((1u << count) - 1), packed);
    for (int j = 0; j < 4; j++) plumb__exponents_avx512(packed[j], exponent + 4 * j);
    for (int64_t i = 0; i < count; i++) {
        __m512i dword[4];
        plumb__transpose_avx512(codes, (b + i) * block_bytes, 0xFFFF, dword);
        unpack_fp4(dword, group, &out[i]);
        out[i].exponent[group] = exponent[i];
    }
}

static void unpack_fp8_group(const plumb_matrix *w, int64_t n, int64_t rows, int64_t b,
                             int64_t count, int group, fp8_block *out) {
    int64_t blocks = w->k / PLUMB_BLOCK;
    const uint8_t *codes[PLUMB_LANE_ROWS];
    plumb__find_rows_avx512((const uint8_t *)w->codes + n * w->k, w->k, rows, codes);
    for (int64_t i = 0; i < count; i++) {
        for (int g = 0; g < FP8_GROUPS; g += 8) {
            __m512i dword[4];
            plumb__transpose_avx512(codes, (b + i) * PLUMB_BLOCK + 2 * g, 0xFFFF, dword);
            for (int j = 0; j < 4; j++)
                plumb__fp8_dword_avx512(dword[j], &out[i].high[group][g + 2 * j],
                                        &out[i].low[group][g + 2 * j]);
        }
        int32_t scale = w->scales[n / PLUMB_BLOCK * blocks + b + i]; /* shared by the rows */
        out[i].exponent[group] = _mm512_set1_epi32(scale << 23);
    }
}

/* ---- Products of FP8 (those of FP4 are in the headers) --------------------------------------- */

/* Sums of both weight planes of one group with one plane of block b of n activation rows. */
PLUMB_INLINE_AVX512 void fp8_planes(const fp8_block *w, int h, const int16_t *const *x, int n,
                              __m512i *high, __m512i *low) {
    for (int r = 0; r < n; r++) high[r] = low[r] = _mm512_setzero_si512();
    PLUMB_ROLLED_AVX512
    for (int g = 0; g < FP8_GROUPS; g++) {
        __m512i weight_high = w->high[h][g], weight_low = w->low[h][g];
        for (int r = 0; r < n; r++) {
            __m512i values = plumb__dword_avx512(x[r] + 2 * g);
            PLUMB_DOT_WORDS(high[r], weight_high, values);
            PLUMB_DOT_WORDS(low[r], weight_low, values);
        }
    }
    for (int r = 0; r < n; r++) { /* or gcc copies them inside the loop, for what comes after it */
        PLUMB_KEEP_AVX512(high[r]);
        PLUMB_KEEP_AVX512(low[r]);
    }
}

PLUMB_INLINE_AVX512 void fp8_products(const fp8_block *w, const plumb_act_chunk *const *x, int n,
                                int64_t b, bool low, __m512 (*d)[GROUPS]) {
    const int16_t *high_plane[TILE], *low_plane[TILE];
    for (int r = 0; r < n; r++) {
        high_plane[r] = x[r]->high[b];
        low_plane[r] = x[r]->low[b];
    }
    for (int h = 0; h < GROUPS; h++) {
        __m512i main[2][TILE], rest[2][TILE];
        fp8_planes(w, h, high_plane, n, main[0], main[1]);
        if (low) fp8_planes(w, h, low_plane, n, rest[0], rest[1]);
        for (int r = 0; r < n; r++)
            d[r][h] = low ? plumb__fp8_block_low_avx512(main[0][r], main[1][r], rest[0][r],
                                                        rest[1][r])
                          : plumb__fp8_block_avx512(main[0][r], main[1][r]);
    }
}

/* ---- The chain of blocks --------------------------------------------------------------------- */

/* Blocks b .. b+count-1, unpacked, against n activation rows. */
PLUMB_INLINE_AVX512 void tile(const panel *weights, bool fp8, const void *const *x, int n,
                              int64_t b, int64_t count, plumb_panel_sums *sums) {
    for (int64_t i = 0; i < count; i++) {
        const plumb_act_chunk *chunk[TILE];
        int64_t in_chunk = (b + i) % PLUMB_CHUNK_BLOCKS;
        int32_t low = 0;
        __m512 d[TILE][GROUPS];
        for (int r = 0; r < n; r++) {
            chunk[r] = (const plumb_act_chunk *)x[r] + (b + i) / PLUMB_CHUNK_BLOCKS;
            low |= chunk[r]->has_low[in_chunk];
        }
        if (fp8 && low) fp8_products(&weights->fp8[i], chunk, n, in_chunk, true, d);
        else if (fp8) fp8_products(&weights->fp8[i], chunk, n, in_chunk, false, d);
        else if (low) fp4_products(&weights->fp4[i], chunk, n, in_chunk, true, d);
        else fp4_products(&weights->fp4[i], chunk, n, in_chunk, false, d);
        const __m512i *exponent = fp8 ? weights->fp8[i].exponent : weights->fp4[i].exponent;
        for (int r = 0; r < n; r++) {
            __m512i power = _mm512_set1_epi32(chunk[r]->power[in_chunk]);
            for (int h = 0; h < GROUPS; h++)
                sums[r].segment[h] = _mm512_fmadd_ps(
                    d[r][h], plumb__power_avx512(exponent[h], power), sums[r].segment[h]);
        }
    }
}

/* A segment is complete: add it to the total (the first one IS the total) and start the next. */
static void end_segments(plumb_panel_sums *sums, int64_t n, bool first) {
    for (int64_t r = 0; r < n; r++)
        for (int h = 0; h < GROUPS; h++) {
            sums[r].total[h] = first ? sums[r].segment[h]
                                     : _mm512_add_ps(sums[r].total[h], sums[r].segment[h]);
            sums[r].segment[h] = _mm512_setzero_ps();
        }
}

PLUMB_INLINE_AVX512 void all_rows(const panel *weights, bool fp8, const void *const *x, int64_t n_x,
                            int64_t b, int64_t count, plumb_panel_sums *sums) {
    for (int64_t r = 0; r < n_x; r += TILE) switch (n_x - r) {
        case 1: tile(weights, fp8, x + r, 1, b, count, sums + r); break;
        case 2: tile(weights, fp8, x + r, 2, b, count, sums + r); break;
        case 3: tile(weights, fp8, x + r, 3, b, count, sums + r); break;
        default: tile(weights, fp8, x + r, TILE, b, count, sums + r);
        }
}

void PLUMB_KERNEL(matmul)(const void *const *x, int64_t n_x, const plumb_matrix *w, int64_t n,
                          int64_t rows, plumb_panel_sums *sums, void *scratch) {
    panel *weights = scratch;
    bool fp8 = w->type == PLUMB_MATRIX_FP8;
    int64_t blocks = w->k / PLUMB_BLOCK, step = fp8 ? FP8_CHUNK : FP4_CHUNK;
    memset(sums, 0, (size_t)n_x * sizeof *sums);
    for (int64_t b = 0, count; b < blocks; b += count) {
        count = blocks - b < step ? blocks - b : step;
        for (int group = 0; group < GROUPS; group++) {
            int64_t left = rows - group * PLUMB_LANE_ROWS, first = n + group * PLUMB_LANE_ROWS;
            if (left <= 0) first = n, left = rows; /* an empty group repeats the other */
            if (left > PLUMB_LANE_ROWS) left = PLUMB_LANE_ROWS;
            if (fp8) unpack_fp8_group(w, first, left, b, count, group, weights->fp8);
            else unpack_fp4_group(w, first, left, b, count, group, weights->fp4);
        }
        if (fp8) all_rows(weights, true, x, n_x, b, count, sums);
        else all_rows(weights, false, x, n_x, b, count, sums);
        if ((b + count) % PLUMB_BLOCKS_PER_SEGMENT == 0 || b + count == blocks)
            end_segments(sums, n_x, b < PLUMB_BLOCKS_PER_SEGMENT);
    }
}
