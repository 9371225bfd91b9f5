/* What the host hands to each Metal kernel.  C, Objective-C and MSL include this file.
 *
 * Conventions of every kernel:
 * - buffer(0) is the control block, buffer(1) the kernel's struct of this file (`setBytes`), buffers from 2
 *   on are listed beside the struct in binding order, shapes as in backend/backend.h;
 * - what a dispatch writes is bound to one argument of it: Metal lets a compiler take arguments for memory
 *   apart.  What all of them only read may be bound twice, and is where a kernel has nothing to read;
 * - threadgroup memory is always an argument, threadgroup(0) and so on: the host states its size;
 * - a kernel whose queue was halted by a missing expert does nothing (plumb_metal_control);
 * - "flat" kernels have one thread per item, PLUMB_METAL_FLAT threads a group, and drop what is past the
 *   end; others state their grid of threadgroups and the threads of one. */
#ifndef PLUMB_BACKEND_METAL_ARGUMENTS_H
#define PLUMB_BACKEND_METAL_ARGUMENTS_H

#ifdef __METAL_VERSION__
#include <metal_stdlib>
typedef metal::atomic_uint plumb_metal_word;
typedef device const uchar *plumb_metal_address;
#else
#include <stdint.h>
typedef uint32_t plumb_metal_word;
typedef uint64_t plumb_metal_address; /* MTLBuffer.gpuAddress plus an offset */
#endif

enum {
    PLUMB_METAL_FLAT = 256,   /* threads of a group of a flat kernel */
    PLUMB_METAL_SIMD = 32,    /* threads of a simdgroup: the lanes of docs/arithmetic.md section 4 */
    PLUMB_METAL_THREADS = 128, /* of a group of linear, attention and index kernels */
    PLUMB_METAL_COLUMNS = 32, /* outputs of one group of a quantised linear layer */
    PLUMB_METAL_ROWS = 4,     /* rows of one group of a quantised linear layer */
    PLUMB_METAL_INDEX_KEYS = 16, /* keys of one group of index_scores */
    PLUMB_METAL_SELECT = 256, /* threads of select_top, hc_mix and group_experts */
    PLUMB_METAL_VALUE_FAULT = 1 /* a bit of plumb_metal_control.fault */
};

typedef struct plumb_metal_control {
    plumb_metal_word halted; /* 0, or 1 + the layer that needed an expert that is not in memory */
    plumb_metal_word fault;  /* PLUMB_METAL_VALUE_FAULT: a kernel met a non-finite value */
} plumb_metal_control;

/* A quantised row (plumb_quantized): k codes e4m3, k / 32 scales ue8m0 (exponent + 127), padding to a
 * multiple of 16 bytes, to which rows are aligned. */
#define PLUMB_METAL_QUANTIZED_BYTES(k) (((k) + (k) / 32 + 15) / 16 * 16)

/* copy, flat over 16-byte pieces (the last may be shorter).  2 from, 3 to: bytes. */
typedef struct plumb_metal_copy {
    uint32_t bytes;
} plumb_metal_copy;

/* quantize, flat over blocks.  2 x [rows][k], 3 out: quantised rows. */
typedef struct plumb_metal_quantize {
    uint32_t rows, k;
} plumb_metal_quantize;

/* linear_fp8, linear_fp4: grid (ceil(n / COLUMNS), ceil(rows / ROWS)), THREADS threads.
 * 2 x: quantised rows, 3 codes, 4 scales, 5 y [rows][n].
 * threadgroup(0): BLOCK_BYTES, the block sums: floats [ROWS][COLUMNS][33]. */
typedef struct plumb_metal_linear_quantized {
    uint32_t rows, n, k;
} plumb_metal_linear_quantized;
#define PLUMB_METAL_BLOCK_BYTES (PLUMB_METAL_ROWS * PLUMB_METAL_COLUMNS * 33 * 4)

/* linear_bf16, linear_f32, linear_decoded (an FP8 matrix as bf16): grid (ceil(n / 4), rows), THREADS
 * threads: a simdgroup per output.  2 x, 3 codes, 4 scales (the codes again where there are none), 5 y:
 * floats or plumb_act, as to_float tells.  Strides in elements. */
typedef struct plumb_metal_linear {
    uint32_t n, k, x_stride, y_stride, to_float;
} plumb_metal_linear;

/* rms_norm: grid (rows), SIMD threads.  2 x, which becomes its norm, 3 w. */
typedef struct plumb_metal_rms_norm {
    uint32_t width;
    float eps;
} plumb_metal_rms_norm;

/* rotate, flat over rows * heads * pairs.  2 x, 3 cosine, 4 sine. */
typedef struct plumb_metal_rotate {
    uint32_t rows, heads, dim, pairs, inverse;
} plumb_metal_rotate;

/* hc_mix: grid (rows), SELECT threads.  2 h, 3 fn, 4 base, 5 scale, 6 pre, 7 post, 8 comb.
 * threadgroup(0): 32 floats, the 24 products and the mean square. */
typedef struct plumb_metal_hc_mix {
    uint32_t hidden, iterations;
    float norm_eps, hc_eps;
} plumb_metal_hc_mix;

/* hc_collapse, flat over rows * hidden.  2 h, 3 pre, 4 x.
 * hc_update, flat over rows * hidden.  2 h, 3 a, 4 post, 5 comb. */
typedef struct plumb_metal_hc {
    uint32_t rows, hidden;
} plumb_metal_hc;

/* pack_window, pack_index: flat over blocks of 32; pack_compressed: over blocks of 16.  2 x, 3 packed. */
typedef struct plumb_metal_pack {
    uint32_t rows, dim;
} plumb_metal_pack;

/* compress_pairs, flat over pairs * dim.  2 value, 3 gate, 4 latent. */
typedef struct plumb_metal_compress_pairs {
    uint32_t pairs, dim;
} plumb_metal_compress_pairs;

/* attention: grid (heads, rows), THREADS threads.  2 query, 3 ring, 4 chunk, 5 compressed (the ring again
 * where there is none), 6 selected, 7 selected_count, 8 sink, 9 out.
 * threadgroup(0): keys floats, the scores; threadgroup(1): 32 floats.  keys = window + selected_stride,
 * rounded up to a multiple of 4. */
typedef struct plumb_metal_attention {
    uint32_t heads, dim, window, position, chunk_position, selected_stride, has_compressed;
    float scale;
} plumb_metal_attention;

/* index_weights, flat over count.  2 proj, 3 weight. */
typedef struct plumb_metal_index_weights {
    uint32_t count;
    float factor;
} plumb_metal_index_weights;

/* The keys that row i of a search may choose from, in order: its (position + i + 1) / ratio visible ones,
 * or with use_pool those of them in the row's blocks.  Only the newest block can be short, and it comes
 * last, so candidate j lies in block pool[j / block_size].
 *
 * index_scores: grid (ceil(score_stride / INDEX_KEYS), rows), THREADS threads.
 *   2 query, 3 weight, 4 keys, 5 pool, 6 pool_count (with use_pool, otherwise the weights again),
 *   7 score [rows][score_stride].
 * index_blocks, flat over rows * block_stride: the best score of each block; the newest is always in.
 *   2 score, 3 block_score [rows][block_stride].
 * select_top: grid (rows), SELECT threads.  2 value [rows][value_stride], 3 pool, 4 pool_count (with
 *   use_pool, otherwise the values again), 5 out [rows][k] ascending, 6 out_count [rows].
 *   threadgroup(0): 2 * SELECT words. */
typedef struct plumb_metal_index {
    uint32_t rows, heads, dim, position, ratio, use_pool, pool_blocks, block_size, score_stride;
    uint32_t block_stride;
} plumb_metal_index;
typedef struct plumb_metal_select {
    uint32_t position, ratio, block_size, pool_blocks, value_stride, k;
    uint32_t use_pool; /* values are of the candidates in the pool; out receives positions */
    uint32_t blocks;   /* values are of blocks */
} plumb_metal_select;

/* route: grid (rows), SIMD threads.  2 logits, 3 bias, 4 ids, 5 weights.
 * threadgroup(0): 2 * experts floats, rounded up to a multiple of 4. */
typedef struct plumb_metal_route {
    uint32_t experts, k;
    float route_scale;
} plumb_metal_route;

/* Where an expert's payloads are: codes and scales of w1, w2, w3; all 0 when it is not in memory. */
typedef struct plumb_metal_expert {
    plumb_metal_address gate_codes, gate_scales, down_codes, down_scales, up_codes, up_scales;
} plumb_metal_expert;

/* Rows that go through one expert: slots[begin ..] of them; outputs from row `begin` on. */
typedef struct plumb_metal_group {
    plumb_metal_expert expert;
    int32_t begin, count;
    uint32_t fp8; /* whether its matrices are FP8, as the shared expert's are, or FP4 */
    uint32_t unused;
} plumb_metal_group;

/* group_experts: grid (1), SELECT threads.  Sorts a layer's slots by expert, as group_slots of
 * model/experts.c does, and halts the queue when one is not in memory.
 *   2 ids [rows][k], 3 weights [rows][k], 4 table [experts], 5 shared: one plumb_metal_expert,
 *   6 groups [n_groups], unused ones with count 0, the shared expert last, 7 slots [rows * (k + 1)],
 *   8 where [rows][k + 1], 9 slot_weights [rows][k + 1].
 *   threadgroup(0): experts words, rounded up to a multiple of 4.  n_groups = min(experts, rows * k) + 1. */
typedef struct plumb_metal_group_experts {
    uint32_t rows, k, experts, n_groups, layer;
    uint32_t shared_fp8; /* `fp8` of the shared expert's group */
} plumb_metal_group_experts;

/* The three steps of the experts of a list of groups; row i of group g is row g.begin + i of gate, up, t
 * and outputs.  Grids count groups in z, and in y rows (activate) or tiles of ROWS rows of the largest
 * group; what is past a group's end is dropped.
 * experts_gate_up: x ceil(inter / COLUMNS), THREADS threads, threadgroup memory as linear_quantized.
 *   2 x: quantised rows, 3 groups, 4 slots, 5 gate [][inter], 6 up [][inter].
 * experts_activate: x ceil(inter / 32 / SIMD), SIMD threads: a thread per block.
 *   2 gate, 3 up, 4 groups, 5 slots, 6 slot_weights, 7 t: quantised rows of inter.
 * experts_down: x ceil(hidden / COLUMNS), THREADS threads, threadgroup memory as linear_quantized.
 *   2 t, 3 groups, 4 outputs [][hidden]. */
typedef struct plumb_metal_experts {
    uint32_t hidden, inter, slots_per_row;
    float limit;
} plumb_metal_experts;

/* experts_sum, flat over rows * hidden.  2 outputs, 3 where, 4 out. */
typedef struct plumb_metal_experts_sum {
    uint32_t rows, slots_per_row, hidden;
} plumb_metal_experts_sum;

/* engram_gate: grid (4 copies, rows), SIMD threads.  2 h, 3 kv, 4 query_w, 5 key_w, 6 live. */
typedef struct plumb_metal_engram_gate {
    uint32_t hidden;
    float eps, factor;
} plumb_metal_engram_gate;

#endif
