#include "plan/model_sizes.h"

#include "arith/rounding.h"
#include "format/tensor_table.h"
#include "model/network.h"

#include <stdlib.h>
#include <string.h>

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* ---- Tensors ----------------------------------------------------------------------------------
 */

static int add_tensor(void *user, const char *name, const plumb_tensor_spec *spec) {
    plumb_model_sizes *s = user;
    /* A matrix is multiplied by every row; vectors and scales cost next to nothing. */
    int64_t macs = spec->rank == 2 && spec->dtype != PLUMB_DTYPE_F8_E8M0
                       ? spec->shape[0] * spec->shape[1] * (spec->dtype == PLUMB_DTYPE_I8 ? 2 : 1)
                       : 0;
    static const char layers[] = "layers.";
    switch (spec->tensor_class) {
    case PLUMB_CLASS_EMBED: s->embed_bytes += spec->bytes; break;
    case PLUMB_CLASS_ENGRAM_TABLE: s->engram_bytes += spec->bytes; break;
    case PLUMB_CLASS_EXPERT:
        s->experts_bytes += spec->bytes;
        s->expert_macs += macs; /* of all of them, for now */
        break;
    case PLUMB_CLASS_HEAD:
        s->dense_bytes += spec->bytes;
        s->head_macs += macs;
        break;
    case PLUMB_CLASS_DENSE:
        s->dense_bytes += spec->bytes;
        if (strncmp(name, layers, sizeof layers - 1) == 0) {
            long layer = strtol(name + sizeof layers - 1, NULL, 10);
            s->layer_bytes[layer] += spec->bytes;
            s->layer_macs[layer] += macs;
        }
        break;
    default: break; /* draft and vision */
    }
    return 0;
}

static int64_t blocks(int64_t bytes) {
    return (bytes + PLUMB_DRIVE_BLOCK - 1) / PLUMB_DRIVE_BLOCK * PLUMB_DRIVE_BLOCK;
}

void plumb__model_sizes(const plumb_model_config *config, plumb_model_sizes *sizes) {
    *sizes = (plumb_model_sizes){.config = *config};
    (void)plumb__tensor_table_visit(config, add_tensor, sizes);
    int64_t pairs = plumb__model_pairs(sizes);
    sizes->expert_bytes = sizes->experts_bytes / pairs;
    sizes->expert_macs /= pairs;
    /* A row's codes and its scales lie in two places. */
    int64_t columns = (config->engram_ngram - 1) * config->engram_heads;
    int64_t row = blocks(config->engram_dim) + blocks(config->engram_dim / PLUMB_BLOCK);
    sizes->row_read_bytes = config->engram_layers * columns * row + blocks(2 * config->hidden);
}

int64_t plumb__model_pairs(const plumb_model_sizes *sizes) {
    return sizes->config.layers * sizes->config.experts;
}

int64_t plumb__model_token_experts(const plumb_model_sizes *sizes) {
    return sizes->config.layers * sizes->config.experts_per_token;
}

/* ---- Work (docs/model.md section 8) ------------------------------------------------------------
 */

/* Compressed keys that a row at `position` may see in `layer`. */
static int64_t visible(const plumb_model_config *c, int64_t layer, int64_t position) {
    return c->ratio[layer] > 0 ? (position + 1) / c->ratio[layer] : 0;
}

/* Index keys that the layer scores: above the layer that chooses candidates, only those. */
static int64_t scored(const plumb_model_config *c, int64_t layer, int64_t position) {
    if (!c->is_index_source[layer]) return 0;
    int64_t keys = visible(c, layer, position);
    bool among_candidates = c->candidate_source >= 0 && layer > c->candidate_source;
    return among_candidates ? least(keys, c->candidate_blocks * c->candidate_block_size) : keys;
}

double plumb__model_attention_flop(const plumb_model_config *c, int64_t layer, int64_t position) {
    int64_t keys =
        least(c->window, position + 1) + least(c->index_topk, visible(c, layer, position));
    int64_t per_key = 2 * c->heads * c->head_dim; /* a score and a weighted sum */
    int64_t per_score = c->index_heads * (c->index_dim + 1);
    return 2.0 * ((double)keys * (double)per_key +
                  (double)scored(c, layer, position) * (double)per_score);
}

double plumb__model_layer_flop(const plumb_model_sizes *s, int64_t layer) {
    return 2.0 * (double)(s->layer_macs[layer] + s->config.experts_per_token * s->expert_macs);
}

double plumb__model_token_flop(const plumb_model_sizes *s, int64_t position) {
    double flop = 2.0 * (double)s->head_macs;
    for (int64_t l = 0; l < s->config.layers; l++)
        flop +=
            plumb__model_layer_flop(s, l) + plumb__model_attention_flop(&s->config, l, position);
    return flop;
}

int64_t plumb__model_cache_read_bytes(const plumb_model_config *c, int64_t position) {
    int64_t bytes = 0;
    for (int64_t l = 0; l < c->layers; l++)
        bytes += least(c->window, position + 1) * plumb__window_row_bytes(c->head_dim) +
                 least(c->index_topk, visible(c, l, position)) *
                     plumb__compressed_row_bytes(c->head_dim) +
                 scored(c, l, position) * plumb__index_row_bytes(c->index_dim);
    return bytes;
}

/* ---- Memory beside the weights ------------------------------------------------------------------
 */

int64_t plumb__model_session_bytes(const plumb_model_config *c, int64_t context) {
    enum { COPIES = 2 + 16 }; /* in use, for undoing, and resume points (engine/session.c) */
    int64_t fixed = 0, caches = 0;
    for (int64_t l = 0; l < c->layers; l++) {
        fixed += c->window * plumb__window_row_bytes(c->head_dim);
        if (!c->is_kv_source[l]) continue;
        if (c->ratio[l] > 1) fixed += 2 * c->head_dim * (int64_t)sizeof(float);
        caches += context / c->ratio[l] *
                  (plumb__compressed_row_bytes(c->head_dim) + plumb__index_row_bytes(c->index_dim));
    }
    int64_t tokens = context * (int64_t)sizeof(int32_t);
    return COPIES * fixed + caches + tokens + c->vocab * (int64_t)sizeof(float);
}

int64_t plumb__model_work_bytes(const plumb_model_config *c, int64_t rows) {
    /* Bytes of a value: an activation, and one quantised in the widest layout of a backend, digits
     * and scales. */
    const int64_t act = sizeof(plumb_act), f32 = sizeof(float), i32 = sizeof(int32_t);
    const int64_t quantized = 14;
    int64_t slots = c->experts_per_token + 1, columns = (c->engram_ngram - 1) * c->engram_heads;
    int64_t engram = columns * c->engram_dim, grouped = c->o_groups * c->o_rank;
    int64_t stream =
        (PLUMB_HC + 3) * c->hidden * act + c->hidden * quantized + PLUMB_HC * (3 + PLUMB_HC) * f32;
    int64_t attention = (c->q_rank + grouped) * (act + quantized) +
                        2 * c->heads * c->head_dim * act + c->head_dim * (3 * act + 2 * f32) +
                        3 * c->rope_dim * f32;
    int64_t index = c->index_heads * (c->index_dim * (act + 1) + act + f32) +
                    (c->index_topk + c->candidate_blocks + 2) * i32;
    int64_t routed = c->experts * f32 + slots * 4 * f32;
    /* Inputs, inner values and outputs of each expert that a row goes through. */
    int64_t experts =
        slots * (c->inter * (2 * act + quantized) + c->hidden * act + 4 * (int64_t)sizeof(void *));
    int64_t tables = columns * (int64_t)sizeof(int64_t) + engram * (2 + act + quantized) +
                     (PLUMB_HC + 1) * c->hidden * act;
    int64_t pending = c->layers * (least(rows, c->window) * plumb__window_row_bytes(c->head_dim) +
                                   2 * c->head_dim * f32);
    return rows * (stream + attention + index + routed + experts + tables) + pending +
           PLUMB_HEAD_ROWS * c->vocab * f32;
}
