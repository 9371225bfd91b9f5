/* The weights that are always in memory, bound by name (checkpoint.md section 3).
 *
 * Matrices keep their released formats; small vectors are widened to float32, which is exact. */
#ifndef PLUMB_MODEL_WEIGHTS_H
#define PLUMB_MODEL_WEIGHTS_H

#include "backend/backend.h"
#include "format/checkpoint.h"

typedef struct plumb_hc_weights {
    plumb_matrix fn; /* [24][4*hidden] float32: 4 pre, 4 post, 16 comb */
    float *base;     /* [24] */
    float *scale;    /* [3] */
} plumb_hc_weights;

typedef struct plumb_layer_weights {
    float *attn_norm, *ffn_norm;                 /* [hidden] */
    plumb_hc_weights hc_attn, hc_ffn;
    plumb_matrix wq_a;                           /* [q_rank][hidden] */
    float *q_norm;                               /* [q_rank] */
    plumb_matrix wq_b;                           /* [heads*head_dim][q_rank] */
    plumb_matrix wkv;                            /* [head_dim][hidden] */
    float *kv_norm;                              /* [head_dim] */
    float *sink;                                 /* [heads] */
    plumb_matrix wo_a;                           /* [groups*o_rank][heads*head_dim/groups] */
    plumb_matrix wo_b;                           /* [hidden][groups*o_rank] */
    plumb_matrix router;                         /* [experts][hidden] */
    float *router_bias;                          /* [experts] */
    plumb_expert shared;
    /* kv sources */
    plumb_matrix compress_kv, compress_gate;     /* [head_dim][hidden]; gate only at ratio 2 */
    float *compress_norm;                        /* [head_dim] */
    plumb_matrix index_key;                      /* [index_dim][head_dim] */
    float *index_key_norm;                       /* [index_dim] */
    /* index sources */
    plumb_matrix index_query;                    /* [index_heads*index_dim][q_rank] */
    plumb_matrix index_weights;                  /* [index_heads][hidden] */
    /* Engram layers */
    plumb_matrix engram_kv;                      /* [5*hidden][columns*engram_dim] */
    float *engram_query, *engram_key;            /* [4][hidden] */
} plumb_layer_weights;

typedef struct plumb_weights {
    plumb_layer_weights *layer; /* [layers] */
    float *norm;                /* [hidden] */
    plumb_matrix head;          /* [vocab][hidden] */
    int64_t bytes;              /* of all payloads held */
    /* For releasing. */
    plumb_backend *backend;
    void **blocks;
    int64_t n_blocks, block_capacity;
} plumb_weights;

/* Reads and checks every dense tensor.  A NaN anywhere is an error. */
PLUMB_MUST_CHECK plumb_status plumb__weights_load(const plumb_checkpoint *checkpoint,
                                                  plumb_backend *backend, plumb_weights *weights,
                                                  plumb_error *err);
void plumb__weights_free(plumb_weights *weights);

#endif
