/* Opening a network: weights, constants, rotary tables, Engram hashes. */
#include "model/network.h"

#include "arith/rotary.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>

/* fl32 of the real number n^-0.5: double has enough bits that rounding twice changes nothing. */
static float inverse_root(int64_t n) { return (float)(1.0 / sqrt((double)n)); }

/* What the kernels need beyond what any valid config promises. */
static plumb_status check_shapes(const plumb_checkpoint *checkpoint, plumb_error *err) {
    const plumb_model_config *c = plumb__checkpoint_config(checkpoint);
    const struct {
        const char *what;
        int64_t value;
    } multiples[] = {
        {"o_lora_rank", c->o_rank},
        {"engram columns * engram_head_dim",
         (c->engram_ngram - 1) * c->engram_heads * c->engram_dim},
        {"index_head_dim", c->index_dim},
        {"head_dim", c->head_dim},
    };
    for (size_t i = 0; i < sizeof multiples / sizeof multiples[0]; i++)
        if (multiples[i].value % PLUMB_BLOCK != 0)
            return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, plumb__checkpoint_path(checkpoint),
                               multiples[i].what, -1,
                               plumb__format("%lld", (long long)multiples[i].value).s,
                               "a multiple of 32");
    return PLUMB_OK;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static plumb_status make_rotary(plumb_network *n, plumb_error *err) {
    const plumb_model_config *c = n->config;
    for (int table = 0; table < 2; table++) {
        n->frequency[table] = calloc((size_t)c->rope_dim / 2, sizeof(float));
        if (!n->frequency[table]) return plumb__fail_memory(err, "rotary table", 0);
    }
    const plumb_rotary_yarn yarn = {.factor = c->yarn.factor, .beta_fast = c->yarn.beta_fast,
                                    .beta_slow = c->yarn.beta_slow,
                                    .original_positions = c->yarn.original_positions};
    plumb_status status =
        plumb__rotary_frequencies(c->rope_theta, NULL, c->rope_dim, n->frequency[0], err);
    if (status == PLUMB_OK)
        status = plumb__rotary_frequencies(c->compress_rope_theta, &yarn, c->rope_dim,
                                           n->frequency[1], err);
    return status;
}

plumb_status plumb__network_open(const plumb_checkpoint *checkpoint, plumb_backend *backend,
                                 plumb_weight_source *source, const int32_t *token_map,
                                 plumb_network *n, plumb_error *err) {
    const plumb_model_config *c = plumb__checkpoint_config(checkpoint);
    *n = (plumb_network){.config = c, .backend = backend, .source = source, .token_map = token_map};
    n->attention_scale = inverse_root(c->head_dim);
    n->index_factor = inverse_root(c->index_dim * c->index_heads);
    n->hidden_factor = inverse_root(c->hidden);
    n->top_k = least(c->index_topk, c->max_positions);
    n->pool_blocks = least(c->candidate_blocks, c->max_positions / c->candidate_block_size + 1);
    plumb_status status = check_shapes(checkpoint, err);
    if (status == PLUMB_OK) status = make_rotary(n, err);
    for (int i = 0; status == PLUMB_OK && i < c->engram_layers; i++)
        status = plumb__engram_hash_init(c, i, token_map[c->engram_pad_id], &n->engram[i], err);
    if (status == PLUMB_OK) status = plumb__weights_load(checkpoint, backend, &n->weights, err);
    if (status != PLUMB_OK) plumb__network_close(n);
    return status;
}

void plumb__network_close(plumb_network *n) {
    if (!n->backend) return;
    plumb__workspace_free(n);
    plumb__weights_free(&n->weights);
    for (int table = 0; table < 2; table++) free(n->frequency[table]);
    *n = (plumb_network){0};
}
