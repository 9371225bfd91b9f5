/* Working memory of a batch. */
#ifndef PLUMB_MODEL_WORKSPACE_H
#define PLUMB_MODEL_WORKSPACE_H

#include "backend/backend.h"
#include "format/model_config.h"

/* Buffers for `rows` rows; one set serves all layers. */
typedef struct plumb_workspace {
    int64_t rows;              /* room for so many */
    uint16_t *embedding;       /* [rows][hidden] as stored */
    plumb_act *h;              /* [rows][4][hidden] residual copies */
    plumb_act *x;              /* [rows][hidden] input of a sublayer */
    plumb_act *out;            /* [rows][hidden] output of a sublayer */
    plumb_quantized *xq;       /* x, quantised */
    float *pre, *pre_next;     /* [rows][4] input mix of this sublayer, of the next */
    float *post, *comb;        /* [rows][4], [rows][4][4] */
    plumb_act *q_low;          /* [rows][q_rank] */
    plumb_quantized *q_low_q;
    plumb_act *query;          /* [rows][heads][head_dim] */
    plumb_act *attended;       /* [rows][heads][head_dim] */
    plumb_act *kv;             /* [rows][head_dim] */
    uint8_t *chunk;            /* [rows] packed window keys of this layer */
    plumb_act *group_out;      /* [rows][groups*o_rank] */
    plumb_quantized *group_out_q;
    float *pair_value, *pair_gate; /* [1 + rows][head_dim], row 0 for the carry */
    plumb_act *latent;         /* [1 + rows][head_dim] */
    plumb_act *index_key;      /* [1 + rows][index_dim] */
    plumb_act *index_query;    /* [rows][index_heads][index_dim] */
    uint8_t *index_query_packed;
    plumb_act *index_proj;     /* [rows][index_heads] */
    float *index_weight;       /* [rows][index_heads] */
    int32_t *selected, *selected_count; /* [rows][top_k], [rows]: of the latest index source */
    int32_t *pool, *pool_count;         /* [rows][pool_blocks], [rows] */
    float *router_logits;      /* [rows][experts] */
    int32_t *expert_ids;       /* [layers][rows][k], packed to the rows of the batch */
    float *expert_weights;     /* [rows][k] */
    float *slot_weights;       /* [rows][k + 1]: the shared expert is the last slot, weight 1 */
    int32_t *slots;            /* [rows * k] grouped by expert, then [rows] of the shared one */
    int32_t *slot_end;         /* [experts] where each expert's slots end */
    int32_t *slot_where;       /* [rows][k + 1] row of expert_out that holds the slot's output */
    int32_t *distinct;         /* [experts] ids of the experts in use */
    int32_t *distinct_rows;    /* [experts] rows of each */
    plumb_expert_group *groups; /* [experts] */
    plumb_act *expert_out;     /* [rows * (k + 1)][hidden] */
    int32_t *guessed_ids;      /* [rows][k] of the next layer */
    float *guessed_weights;    /* [rows][k], unused */
    int64_t *engram_rows;      /* [engram layers][rows][columns] */
    uint8_t *engram_codes, *engram_scales;
    plumb_act *engram_in;      /* [stages][rows][columns*engram_dim], one stage for each Engram layer when
                                * the backend may still be reading the one before */
    bool engram_read[PLUMB_MAX_ENGRAM_LAYERS]; /* of this batch: in its stage already */
    plumb_quantized *engram_in_q;
    plumb_act *engram_kv;      /* [rows][5][hidden] */
    uint8_t *live;             /* [rows] */
    float *cosine[2], *sine[2]; /* [rows][pairs]: plain, and with YaRN for compressed layers */
    float *pair_cosine, *pair_sine; /* [1 + rows][pairs]: of pairs of tokens, from the batch's first on; or
                                       * of each step's pair */
    /* What a successful batch hands over to the state. */
    uint8_t *pending_ring;     /* [layers][rows kept] packed rows */
    float *pending_carry;      /* [layers][sequences][2][head_dim] */
    float *logits;             /* [PLUMB_HEAD_ROWS][vocab] */
    const float *mix_at[PLUMB_MAX_LAYERS]; /* which of pre and pre_next was `pre` at a layer's experts */
    void **blocks;             /* every allocation above, for releasing */
    int64_t n_blocks, block_capacity;
} plumb_workspace;

#endif
