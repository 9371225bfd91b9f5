/* A tile of a quantised linear layer: COLUMNS outputs of up to ROWS rows by one threadgroup
 * (docs/arithmetic.md section 3), a segment of 32 blocks at a time.
 *
 * - Block sums: a simdgroup takes every fourth run of columns, four at a time, and its lane b makes D_b of
 *   block b for all rows of the tile.  So a weight is read once, an activation is unpacked once for four
 *   columns, neighbouring lanes read neighbouring blocks, and all sums stay in registers.
 * - Chain: simdgroup r takes row r and its lanes take a column each; they add the blocks in order.
 *
 * Between the two the sums lie in threadgroup memory, [ROWS][COLUMNS][33]: the odd stride gives the lanes
 * of either step banks of their own.
 *
 * Exact sums in float: times 2^9 an e4m3 value is an integer, split into high * 512 + low of nine bits
 * each, and times 2 an e2m1 value is an integer of at most 12.  No sum of 32 products of such parts
 * reaches 2^24 (the two middle ones of FP8 together: 2 * 448 * 511 * 32), so none is rounded, in any
 * order; the parts are then joined by one fma, which rounds once. */
#ifndef PLUMB_BACKEND_METAL_LINEAR_TILE_H
#define PLUMB_BACKEND_METAL_LINEAR_TILE_H

#include "backend/metal/kernels/common.h"

enum {
    TILE_SEGMENT = 32,               /* blocks: one a lane */
    TILE_STRIDE = TILE_SEGMENT + 1,  /* floats of a column's block sums */
    TILE_OWN = PLUMB_METAL_COLUMNS * PLUMB_METAL_SIMD / PLUMB_METAL_THREADS, /* of a simdgroup */
    TILE_TOGETHER = 4,               /* columns that share unpacked activations */
    TILE_PIECE = 8                   /* elements of a block between loads */
};

struct plumb_tile {
    device const uint *x[PLUMB_METAL_ROWS]; /* quantised rows; those past the end repeat the last */
    device const uint *own_x;               /* the row whose chain this simdgroup makes */
    uint rows;
    device const uchar *codes, *scales;     /* of the matrix [n][k] */
    uint n, k, column;                      /* the tile's first */
};

/* The integers of four e4m3 codes, as two planes. */
static inline void plumb_e4m3_planes(uint codes, thread float4 &high, thread float4 &low) {
    int4 value = int4(plumb__e4m3_times512((uchar)codes), plumb__e4m3_times512((uchar)(codes >> 8)),
                      plumb__e4m3_times512((uchar)(codes >> 16)),
                      plumb__e4m3_times512((uchar)(codes >> 24)));
    high = float4(value >> 9);
    low = float4(value & 511);
}

/* The integers of the four e2m1 codes in the lower half. */
static inline float4 plumb_e2m1_quad(uint codes) {
    return float4(int4(plumb__e2m1_times2(codes & 15u), plumb__e2m1_times2(codes >> 4 & 15u),
                       plumb__e2m1_times2(codes >> 8 & 15u), plumb__e2m1_times2(codes >> 12 & 15u)));
}

static inline float plumb_add_products(float4 a, float4 b, float sum) {
    sum = plumb__fma(a.x, b.x, sum);
    sum = plumb__fma(a.y, b.y, sum);
    sum = plumb__fma(a.z, b.z, sum);
    return plumb__fma(a.w, b.w, sum);
}

/* Sums over the products of planes of a block; `middle` is FP8's. */
struct plumb_plane_sums {
    float high, middle, low;
};

/* D_b from the sums of its planes: carries make the halves integers below 2^24 again. */
template <bool fp8> static inline float plumb_join_planes(plumb_plane_sums sum) {
    if (!fp8) return plumb__fma(sum.high, 512.0f, sum.low) * 0.0009765625f; /* 2^-10 */
    int middle = (int)sum.middle;
    float high = sum.high + (float)(middle >> 9);
    float low = sum.low + (float)((middle & 511) << 9);
    return plumb__fma(high, 262144.0f, low) * 3.814697265625e-06f; /* 2^18, 2^-18 */
}

/* D of block `block` for columns c .. c + TOGETHER - 1 of the tile and all rows; sums points to the block's
 * place in the first of the tile's columns. */
template <bool fp8>
static inline void plumb_block_sums(thread const plumb_tile &t, uint block, uint c,
                                    threadgroup float *sums) {
    uint piece_bytes = fp8 ? TILE_PIECE : TILE_PIECE / 2;
    device const uchar *weights[TILE_TOGETHER];
#pragma unroll
    for (uint i = 0; i < TILE_TOGETHER; i++) {
        uint n = t.column + c + i;
        ulong row_bytes = fp8 ? t.k : t.k / 2;
        weights[i] = t.codes + (n < t.n ? n : t.n - 1) * row_bytes + block * (4 * piece_bytes);
    }
    plumb_plane_sums sum[TILE_TOGETHER][PLUMB_METAL_ROWS] = {};
    for (uint piece = 0; piece < PLUMB_BLOCK / TILE_PIECE; piece++) {
        uint codes[TILE_TOGETHER][2]; /* of four elements each */
#pragma unroll
        for (uint i = 0; i < TILE_TOGETHER; i++) {
            device const uchar *from = weights[i] + piece * piece_bytes;
            codes[i][0] = plumb_load4(from);
            codes[i][1] = fp8 ? plumb_load4(from + 4) : codes[i][0] >> 16;
        }
#pragma unroll
        for (uint quad = 0; quad < 2; quad++) {
            float4 x_high[PLUMB_METAL_ROWS], x_low[PLUMB_METAL_ROWS];
#pragma unroll
            for (uint r = 0; r < PLUMB_METAL_ROWS; r++)
                if (r < t.rows)
                    plumb_e4m3_planes(t.x[r][block * (PLUMB_BLOCK / 4) + 2 * piece + quad], x_high[r],
                                      x_low[r]);
#pragma unroll
            for (uint i = 0; i < TILE_TOGETHER; i++) {
                float4 high, low;
                if (fp8) plumb_e4m3_planes(codes[i][quad], high, low);
                else high = plumb_e2m1_quad(codes[i][quad]);
#pragma unroll
                for (uint r = 0; r < PLUMB_METAL_ROWS; r++) {
                    if (r >= t.rows) continue;
                    thread plumb_plane_sums &s = sum[i][r];
                    s.high = plumb_add_products(high, x_high[r], s.high);
                    if (fp8) {
                        s.middle = plumb_add_products(high, x_low[r], s.middle);
                        s.middle = plumb_add_products(low, x_high[r], s.middle);
                    }
                    s.low = plumb_add_products(fp8 ? low : high, x_low[r], s.low);
                }
            }
        }
    }
#pragma unroll
    for (uint i = 0; i < TILE_TOGETHER; i++)
#pragma unroll
        for (uint r = 0; r < PLUMB_METAL_ROWS; r++)
            if (r < t.rows)
                sums[(r * PLUMB_METAL_COLUMNS + c + i) * TILE_STRIDE] = plumb_join_planes<fp8>(sum[i][r]);
}

/* S_g of the lane's column for the simdgroup's row: blocks first .. first + count - 1; sums points to that
 * column's.  All lanes must call it. */
template <bool fp8>
static inline float plumb_segment_chain(thread const plumb_tile &t, uint first, uint count, uint lane,
                                        threadgroup const float *sums) {
    uint blocks = t.k / PLUMB_BLOCK, n = t.column + lane;
    device const uchar *x_scales = (device const uchar *)t.own_x + t.k + first;
    /* A tile's columns share FP8's scales; in FP4 each has its own. */
    device const uchar *scales = t.scales + first + (fp8 ? (ulong)(t.column / PLUMB_BLOCK) * blocks
                                                         : (ulong)(n < t.n ? n : t.n - 1) * blocks);
    int own = 0; /* of block `lane`: what all columns have in common */
    if (lane < count) own = (int)x_scales[lane] + (fp8 ? (int)scales[lane] : 0);
    float segment = 0.0f;
    for (uint b = 0; b < count; b++) {
        int exponent = simd_broadcast(own, (ushort)b) + (fp8 ? 0 : (int)scales[b]) - 2 * 127;
        /* There is no float for a larger power: the sum becomes non-finite, which is a fault. */
        float power = exponent > 127 ? plumb__float_of(PLUMB_INFINITY_BITS)
                                     : plumb__power_of_two(exponent);
        segment = plumb__fma(sums[b], power, segment);
    }
    return segment;
}

/* The whole tile.  y: the output row of this simdgroup.  Threads of the group call it together. */
template <bool fp8>
static inline void plumb_linear_tile(device plumb_metal_control &control, thread const plumb_tile &t,
                                     device plumb_act *y, threadgroup float *sums, uint lane,
                                     uint simdgroup) {
    uint blocks = t.k / PLUMB_BLOCK, n = t.column + lane;
    threadgroup const float *own = sums + (simdgroup * PLUMB_METAL_COLUMNS + lane) * TILE_STRIDE;
    float total = 0.0f;
    for (uint first = 0; first < blocks; first += TILE_SEGMENT) {
        uint count = blocks - first < TILE_SEGMENT ? blocks - first : TILE_SEGMENT;
        for (uint c = simdgroup * TILE_OWN; lane < count && c < (simdgroup + 1) * TILE_OWN;
             c += TILE_TOGETHER)
            plumb_block_sums<fp8>(t, first + lane, c, sums + lane);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (simdgroup < t.rows) {
            float segment = plumb_segment_chain<fp8>(t, first, count, lane, own);
            total = first == 0 ? segment : total + segment;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup); /* before the next segment's sums */
    }
    if (simdgroup >= t.rows || n >= t.n) return;
    y[n] = plumb__store(total);
    if (!plumb_finite(total)) plumb_fault(control);
}

#endif
