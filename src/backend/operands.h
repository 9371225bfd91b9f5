/* What the operations of backend.h take: matrices, experts, and the arguments of the larger ones. */
#ifndef PLUMB_BACKEND_OPERANDS_H
#define PLUMB_BACKEND_OPERANDS_H

#include "arith/rounding.h"
#include "plumb.h"

typedef enum plumb_matrix_type {
    PLUMB_MATRIX_BF16,
    PLUMB_MATRIX_F32,
    PLUMB_MATRIX_FP8, /* e4m3, one ue8m0 scale per 32 x 32 tile: scales [ceil(n/32)][ceil(k/32)] */
    PLUMB_MATRIX_FP4  /* e2m1 pairs, one ue8m0 scale per 32 of a row: scales [n][k/32] */
} plumb_matrix_type;

/* A weight [n][k] as it is stored; y = W x. */
typedef struct plumb_matrix {
    plumb_matrix_type type;
    int64_t n, k;
    const void *codes;
    const uint8_t *scales;
    const void *prepared; /* the backend's notes (`prepare`) about exactly these n, k and codes, or
                           * NULL; results do not depend on them */
} plumb_matrix;

typedef struct plumb_expert {
    plumb_matrix gate, down, up; /* w1 [inter][hidden], w2 [hidden][inter], w3 [inter][hidden] */
} plumb_expert;

/* Rows that go through one expert.  A slot is row * slots_per_row + place; outputs are added in
 * ascending place, whatever order they are made in.  The slots of a call's groups are parts of one list,
 * as their outputs are: slots - first is the same for all. */
typedef struct plumb_expert_group {
    plumb_expert expert;
    const int32_t *slots; /* [count] */
    int64_t count;
    int64_t first;        /* row of `outputs` for slots[0]; the others follow it */
} plumb_expert_group;

/* Activations quantised to e4m3 by blocks of 32, in the backend's own layout. */
typedef struct plumb_quantized plumb_quantized;

/* Where the payloads of an expert are, as the backend's own operations name memory (`address`): codes and
 * scales of w1, w2, w3; all 0 when the expert is not in memory. */
typedef struct plumb_expert_addresses {
    uint64_t payload[6];
} plumb_expert_addresses;

/* The experts of a layer, from route to sum. */
typedef struct plumb_held_experts {
    int64_t layer, experts, k;
    const plumb_expert_addresses *table; /* [experts] */
    const plumb_expert *shared;
    const plumb_quantized *x;   /* [rows][hidden] */
    const int32_t *ids;         /* [rows][k] as `route` leaves them */
    const float *weights;       /* [rows][k] */
    float limit;
    int32_t *slots, *where;     /* work: [rows * (k + 1)] each */
    float *slot_weights;        /* work: [rows * (k + 1)] */
    plumb_act *outputs;         /* work: [rows * (k + 1)][hidden] */
    plumb_act *out;             /* [rows][hidden] */
} plumb_held_experts;

typedef struct plumb_attention_args {
    const plumb_act *query;     /* [rows][heads][dim] */
    int64_t heads, dim, window;
    int64_t position;           /* of row 0 */
    const uint8_t *ring;        /* [window] packed keys; slot = position mod window */
    const uint8_t *chunk;       /* packed keys from position chunk_position <= position on */
    int64_t chunk_position;
    const uint8_t *compressed;  /* packed keys, or NULL */
    const int32_t *selected;    /* [rows][selected_stride] ascending compressed positions */
    const int32_t *selected_count; /* [rows] */
    int64_t selected_stride;
    const float *sink;          /* [heads] */
    float scale;                /* fl32(dim^-0.5) */
    plumb_act *out;             /* [rows][heads][dim] */
} plumb_attention_args;

typedef struct plumb_index_args {
    const uint8_t *query;       /* [rows][heads] packed index rows */
    const float *weight;        /* [rows][heads] */
    const uint8_t *keys;        /* packed index rows */
    int64_t heads, dim;
    int64_t position, ratio;    /* row i sees (position + i + 1) / ratio keys */
    int64_t top_k;
    int32_t *selected;          /* [rows][top_k] ascending */
    int32_t *selected_count;    /* [rows] */
    /* Candidate pool: built when build_pool, restricting when use_pool, otherwise ignored. */
    bool build_pool, use_pool;
    int64_t pool_blocks, block_size;
    int32_t *pool;              /* [rows][pool_blocks] ascending block numbers */
    int32_t *pool_count;        /* [rows] */
} plumb_index_args;

#endif
