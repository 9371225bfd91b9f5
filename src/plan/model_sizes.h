/* Bytes and work of a model, counted from the tensors that its config asks for (docs/checkpoint.md
 * section 3, docs/model.md section 8).  1 MAC = 2 FLOP. */
#ifndef PLUMB_PLAN_MODEL_SIZES_H
#define PLUMB_PLAN_MODEL_SIZES_H

#include "format/model_config.h"

/* A drive reads blocks, however few bytes of them are wanted. */
enum { PLUMB_DRIVE_BLOCK = 4096 };

typedef struct plumb_model_sizes {
    plumb_model_config config;
    int64_t
        dense_bytes; /* backbone without routed experts and tables, and the head: stay in memory */
    int64_t embed_bytes, engram_bytes;     /* stay on disk */
    int64_t expert_bytes;                  /* of one routed expert */
    int64_t experts_bytes;                 /* of all in the backbone */
    int64_t layer_bytes[PLUMB_MAX_LAYERS]; /* of dense_bytes, in each layer */
    int64_t layer_macs[PLUMB_MAX_LAYERS]; /* per row: the layer's matrices without routed experts */
    int64_t expert_macs;                  /* per row and routed expert */
    int64_t head_macs;
    int64_t row_read_bytes; /* what a token's Engram and embedding rows cost the drive, in blocks */
} plumb_model_sizes;

/* What a config file does not say itself may be left zero in `config`. */
void plumb__model_sizes(const plumb_model_config *config, plumb_model_sizes *sizes);

/* (layer, expert) pairs of the backbone. */
int64_t plumb__model_pairs(const plumb_model_sizes *sizes);
/* Routed experts that one token reads. */
int64_t plumb__model_token_experts(const plumb_model_sizes *sizes);

/* FLOP of attention over keys and of index scores for one row of a layer at `position`. */
double plumb__model_attention_flop(const plumb_model_config *config, int64_t layer,
                                   int64_t position);
/* FLOP of one row in a layer without attention over keys. */
double plumb__model_layer_flop(const plumb_model_sizes *sizes, int64_t layer);
/* FLOP of one decoded token at `position`. */
double plumb__model_token_flop(const plumb_model_sizes *sizes, int64_t position);
/* Cache bytes that a token at `position` reads: rings, chosen rows, index keys. */
int64_t plumb__model_cache_read_bytes(const plumb_model_config *config, int64_t position);

/* Bytes of one sequence of `context` positions: caches, rings and carries, tokens, logits, resume
 * points. */
int64_t plumb__model_session_bytes(const plumb_model_config *config, int64_t context);
/* Working memory of the network for batches of `rows` rows. */
int64_t plumb__model_work_bytes(const plumb_model_config *config, int64_t rows);

#endif
