/* The network: weights, the working memory of a batch, and the forward pass.
 *
 * There is one forward pass.  Prefill and decode are the same call with many rows or with one, and
 * give the same bits, because every operation treats rows independently and the lists each row
 * attends to do not depend on how positions were grouped (docs/arithmetic.md section 6).
 *
 * Read forward.c first: it is the page "order of a layer" of the specification.  attention.c,
 * indexer.c, experts.c and engram.c hold the parts it names. */
#ifndef PLUMB_MODEL_NETWORK_H
#define PLUMB_MODEL_NETWORK_H

#include "model/engram_hash.h"
#include "model/state.h"
#include "model/weights.h"
#include "stream/weight_source.h"

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
    float *pair_cosine, *pair_sine; /* [1 + rows][pairs]: of pairs of tokens, from the batch's first on */
    /* What a successful batch hands over to the state. */
    uint8_t *pending_ring;     /* [layers][min(rows, window)] packed rows */
    float *pending_carry;      /* [layers][2][head_dim] */
    float *logits;             /* [PLUMB_HEAD_ROWS][vocab] */
    const float *mix_at[PLUMB_MAX_LAYERS]; /* which of pre and pre_next was `pre` at a layer's experts */
    void **blocks;             /* every allocation above, for releasing */
    int64_t n_blocks, block_capacity;
} plumb_workspace;

typedef struct plumb_network plumb_network;

enum { PLUMB_HEAD_ROWS = 8 }; /* rows that go through the head at a time */

struct plumb_network {
    const plumb_model_config *config;
    plumb_backend *backend;
    plumb_weight_source *source;
    const int32_t *token_map;  /* [vocab] folded ids */
    plumb_weights weights;
    plumb_engram_hash engram[PLUMB_MAX_ENGRAM_LAYERS];
    float *frequency[2];       /* [rope_dim/2]: plain, YaRN */
    float attention_scale, index_factor, hidden_factor; /* fl32 constants of docs/arithmetic.md */
    int64_t top_k, pool_blocks; /* the config's, or all there can be if that is less */
    /* The backend finds experts by itself (held.c): the layers whose experts may have been missing, and
     * how many of them there may be before we look. */
    bool holding, missed_lately;
    int64_t first_unsettled, most_unsettled;
    plumb_route_fn routes;     /* sees every row's experts; may be NULL */
    void *routes_user;
    plumb_workspace work;
};

/* Places of the forward pass at which an observer may look at, or replace, the working memory:
 * layer inputs and outputs in work.h and work.pre, sublayer inputs in work.x, outputs in work.out. */
typedef enum plumb_point {
    PLUMB_POINT_LAYER_IN,   /* h before a possible Engram */
    PLUMB_POINT_ENGRAM_OUT, /* h after it */
    PLUMB_POINT_ATTN_IN,    /* x, normalised */
    PLUMB_POINT_ATTN_OUT,   /* out */
    PLUMB_POINT_FFN_IN,     /* x, normalised */
    PLUMB_POINT_FFN_OUT,    /* out */
    PLUMB_POINT_LAYER_OUT   /* h; pre for the next layer */
} plumb_point;

typedef void (*plumb_observer)(void *user, plumb_network *network, plumb_point point,
                               int64_t layer, int64_t rows);

/* One batch of consecutive positions of one sequence. */
typedef struct plumb_batch {
    plumb_state *state;
    const int32_t *tokens;     /* the whole sequence: tokens[state->length + i] is row i */
    int64_t rows;
    int64_t end;               /* length after the last batch of the call: nothing is asked about rows
                                * before it but what `first_logits` and later positions need */
    int64_t cached;            /* the compressed caches hold the positions before it already; rows from there
                                * on append to them */
    int64_t first_logits;      /* rows from here on go through the head; rows: none */
    plumb_logits_sink sink;    /* receives them, in position order */
    void *sink_user;
    int (*progress)(void *user, int64_t layer, int64_t layers); /* nonzero cancels; may be NULL */
    void *progress_user;
    plumb_observer observe;    /* may be NULL */
    void *observe_user;
} plumb_batch;

/* The checkpoint, source and token map are kept and must outlive the network. */
PLUMB_MUST_CHECK plumb_status plumb__network_open(const plumb_checkpoint *checkpoint,
                                                  plumb_backend *backend,
                                                  plumb_weight_source *source,
                                                  const int32_t *token_map, plumb_network *network,
                                                  plumb_error *err);
void plumb__network_close(plumb_network *network);

/* Evaluates the batch and, when all went well, moves the state forward by its rows.  On any error the
 * state is as before. */
PLUMB_MUST_CHECK plumb_status plumb__network_forward(plumb_network *network,
                                                     const plumb_batch *batch, plumb_error *err);

/* ---- Parts of the forward pass, one file each ------------------------------------------------- */

/* Working memory for at least `rows` rows (workspace.c). */
PLUMB_MUST_CHECK plumb_status plumb__workspace_reserve(plumb_network *network, int64_t rows,
                                                       plumb_error *err);
void plumb__workspace_free(plumb_network *network);
/* What evaluating `rows` rows takes, the backend's own working memory included. */
int64_t plumb__workspace_bytes(plumb_network *network, int64_t rows);

/* Which rows of a batch a layer works on (needed_rows.c, model.md section 7): decoder layers are
 * asked about a few trailing rows only. */
typedef struct plumb_needed_rows {
    int64_t input; /* first row whose normalised attention input is needed */
    int64_t key;   /* first row whose window key is needed */
    int64_t full;  /* first row that goes through the whole layer; rows: none */
    int64_t compress; /* first row that is compressed: where a pair begins, or row 0 */
} plumb_needed_rows;
plumb_needed_rows plumb__needed_rows(const plumb_model_config *config, const plumb_batch *batch,
                                     int64_t layer);
/* First position, at most `cached`, that any layer needs for the rows from `full` on, and the state after
 * them, when positions before `cached` are in the compressed caches.  From there on nothing reads the
 * rings. */
int64_t plumb__first_needed(const plumb_model_config *config, int64_t cached, int64_t full);

/* work.out = attention of layer over work.x, for the rows needed (attention.c). */
void plumb__attention(plumb_network *network, const plumb_batch *batch, int64_t layer,
                      plumb_needed_rows needed);
/* Compresses rows from `first` on: appends to the layer's caches what they do not hold (indexer.c). */
void plumb__compress(plumb_network *network, const plumb_batch *batch, int64_t layer, int64_t first);
/* Selects the lists of rows from `first` on (indexer.c). */
void plumb__index(plumb_network *network, const plumb_batch *batch, int64_t layer, int64_t first);
/* work.out = mixture of experts of layer over work.x, rows from `first` on (experts.c). */
PLUMB_MUST_CHECK plumb_status plumb__experts(plumb_network *network, const plumb_batch *batch,
                                             int64_t layer, int64_t first, plumb_error *err);
/* The same after the router, with experts from the source (experts.c). */
PLUMB_MUST_CHECK plumb_status plumb__experts_from_source(plumb_network *network,
                                                         const plumb_batch *batch, int64_t layer,
                                                         int64_t first, plumb_error *err);
/* What the router chose for a layer's rows: [rows][k], of those that went through it. */
int32_t *plumb__expert_ids(const plumb_network *network, const plumb_batch *batch, int64_t layer);
/* Tells who listens, and the source when the backend found them by itself, which experts a layer's rows
 * from `first` on use. */
void plumb__experts_tell(plumb_network *network, const plumb_batch *batch, int64_t layer,
                         int64_t first);

/* Steps of the forward pass that a layer which was held up needs again (forward.c): the input mix of this
 * sublayer and of the next change places; what follows a layer's experts, rows from `first` on; faults
 * that operations met since the last look. */
void plumb__swap_mixes(plumb_network *network);
void plumb__layer_output(plumb_network *network, const plumb_batch *batch, int64_t layer,
                         int64_t first);
PLUMB_MUST_CHECK plumb_status plumb__network_check(plumb_network *network, const char *where,
                                                   int64_t layer, plumb_error *err);

/* Asks for the table rows of all Engram layers (engram.c). */
PLUMB_MUST_CHECK plumb_status plumb__engram_begin(plumb_network *network, const plumb_batch *batch,
                                                  plumb_error *err);
/* Batches' worth of gathered rows that there is room for. */
int64_t plumb__engram_stages(const plumb_network *network);
/* Adds the gated n-gram lookup to work.h, rows from `first` on. */
PLUMB_MUST_CHECK plumb_status plumb__engram(plumb_network *network, const plumb_batch *batch,
                                            int64_t layer, int64_t first, plumb_error *err);

#endif
