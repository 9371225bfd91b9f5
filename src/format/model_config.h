/* config.json as a checked struct (spec: model.md section 1).
 *
 * plumb__config_load refuses what the loader must refuse, naming the field, what was found and what
 * was expected; keys that it does not know are only logged.
 * A config that loads is safe to compute with: every later size follows from it. */
#ifndef PLUMB_FORMAT_MODEL_CONFIG_H
#define PLUMB_FORMAT_MODEL_CONFIG_H

#include "plumb.h"

enum {
    PLUMB_MAX_LAYERS = 256,         /* backbone + draft stages */
    PLUMB_HC = 4,                   /* hyper-connection copies: the architecture's constant */
    PLUMB_MAX_ENGRAM_LAYERS = 8,
    PLUMB_MAX_NGRAM = 8,
    PLUMB_MAX_ENGRAM_COLUMNS = 128, /* (max_ngram - 1) * heads */
    PLUMB_MAX_TAPS = 16
};

typedef struct plumb_yarn {
    double factor, beta_fast, beta_slow;
    int64_t original_positions;
} plumb_yarn;

typedef struct plumb_vision_config {
    int64_t layers, hidden, heads, intermediate, patch, downsample, max_tokens, min_pixels;
    double rope_theta;
    double max_wh_ratio; /* 0: none */
} plumb_vision_config;

typedef struct plumb_model_config {
    int64_t bos_id, eos_id, pad_id, image_id;
    int64_t vocab, hidden, layers, draft_stages;
    int64_t heads, head_dim, rope_dim, q_rank, o_rank, o_groups, window;
    int64_t ratio[PLUMB_MAX_LAYERS];      /* 0, 1 or 2 per layer; draft stages last */
    /* Latest source at or before the layer; -1 where the ratio is 0: nothing is read. */
    int64_t kv_source[PLUMB_MAX_LAYERS];
    int64_t index_source[PLUMB_MAX_LAYERS];
    bool is_kv_source[PLUMB_MAX_LAYERS], is_index_source[PLUMB_MAX_LAYERS];
    int64_t index_heads, index_dim, index_topk;
    int64_t candidate_source;             /* layer, or -1 */
    int64_t candidate_blocks, candidate_block_size;
    double rope_theta, compress_rope_theta;
    plumb_yarn yarn;
    int64_t max_positions;
    int64_t inter, experts, experts_per_token;
    float route_scale, swiglu_limit, norm_eps, hc_eps;
    int64_t sinkhorn_iterations;
    int64_t engram_layers;                         /* how many */
    int64_t engram_layer[PLUMB_MAX_ENGRAM_LAYERS]; /* ascending layer ids */
    int64_t engram_rows[PLUMB_MAX_ENGRAM_LAYERS];
    int64_t engram_ngram, engram_heads, engram_dim;
    int64_t engram_vocab, engram_folded_vocab, engram_pad_id;
    int64_t draft_block, draft_noise_id, draft_rank, draft_experts, draft_experts_per_token;
    int64_t draft_taps;                            /* how many */
    int64_t draft_tap[PLUMB_MAX_TAPS];
    plumb_vision_config vision;
} plumb_model_config;

/* Reads and checks the config of a model: a folder, a converted file, or a config.json. */
PLUMB_MUST_CHECK plumb_status plumb__config_load(const char *model, plumb_log_fn log, void *log_user,
                                                 plumb_model_config *config, plumb_error *err);
/* The same from memory; `path` only names the source in errors. */
PLUMB_MUST_CHECK plumb_status plumb__config_parse(const char *json, size_t size, const char *path,
                                                  plumb_log_fn log, void *log_user,
                                                  plumb_model_config *config, plumb_error *err);
/* Index of the Engram that precedes layer, or -1. */
int plumb__config_engram_index(const plumb_model_config *config, int64_t layer);
/* The moduli of the Engram hashes (model.md section 5.3): consecutive primes from engram_vocab on,
 * (engram_layers, engram_ngram - 1, engram_heads) of them. */
void plumb__config_engram_primes(const plumb_model_config *config, int64_t *primes);

#endif
