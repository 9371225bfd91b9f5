#include "engine/model_digest.h"

#include "base/error.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    RANGE = 4096,           /* bytes read at a place */
    PLACES = 3,             /* of a tensor: first, middle, last */
    TABLE_PLACES = 16,      /* of an Engram table, far larger */
    EXPERT_STEP = 37        /* layer l shows its expert 37 * l, modulo how many there are */
};

typedef struct sampling {
    const plumb_checkpoint *checkpoint;
    XXH3_state_t hash;
} sampling;

static void add(sampling *s, const void *bytes, size_t size) {
    (void)XXH3_128bits_update(&s->hash, bytes, size);
}

/* ---- The config -------------------------------------------------------------------------------- */

/* Whatever a result depends on.  Not the largest position, nor drafts and vision. */
static void add_config(sampling *s, const plumb_model_config *c) {
    const int64_t whole[] = {
        c->image_id, c->vocab, c->hidden, c->layers, c->heads, c->head_dim, c->rope_dim, c->q_rank,
        c->o_rank, c->o_groups, c->window, c->index_heads, c->index_dim, c->index_topk,
        c->candidate_source, c->candidate_blocks, c->candidate_block_size, c->yarn.original_positions,
        c->inter, c->experts, c->experts_per_token, c->sinkhorn_iterations, c->engram_layers,
        c->engram_ngram, c->engram_heads, c->engram_dim, c->engram_vocab, c->engram_folded_vocab,
        c->engram_pad_id};
    const double real[] = {c->rope_theta, c->compress_rope_theta, c->yarn.factor,
                           c->yarn.beta_fast, c->yarn.beta_slow, (double)c->route_scale,
                           (double)c->swiglu_limit, (double)c->norm_eps, (double)c->hc_eps};
    add(s, whole, sizeof whole);
    add(s, real, sizeof real);
    for (int64_t l = 0; l < c->layers; l++) {
        const int64_t layer[] = {c->ratio[l], c->kv_source[l], c->index_source[l],
                                 c->is_kv_source[l], c->is_index_source[l]};
        add(s, layer, sizeof layer);
    }
    for (int64_t i = 0; i < c->engram_layers; i++) {
        const int64_t table[] = {c->engram_layer[i], c->engram_rows[i]};
        add(s, table, sizeof table);
    }
}

/* ---- Tensors ----------------------------------------------------------------------------------- */

/* So many ranges at equal distances, the first at the beginning and the last at the end. */
static plumb_status add_payload(sampling *s, const plumb_tensor *t, int places, plumb_error *err) {
    uint8_t bytes[RANGE];
    int64_t size = t->bytes < RANGE ? t->bytes : RANGE, last = t->bytes - size;
    if (last == 0) places = 1;
    for (int i = 0; i < places; i++) {
        int64_t begin = i == 0 ? 0 : last / (places - 1) * i;
        if (i == places - 1) begin = last;
        plumb_status status = plumb__checkpoint_read(s->checkpoint, t, begin, size, bytes, err);
        if (status != PLUMB_OK) return status;
        add(s, bytes, (size_t)size);
    }
    return PLUMB_OK;
}

static plumb_status add_tensor(sampling *s, const plumb_tensor *t, plumb_error *err) {
    if (t->tensor_class > PLUMB_CLASS_ENGRAM_TABLE) return PLUMB_OK; /* drafts and vision */
    const char *dtype = plumb__dtype_name(t->dtype);
    add(s, t->name, strlen(t->name) + 1);
    add(s, dtype, strlen(dtype) + 1);
    add(s, t->shape, sizeof t->shape);
    if (t->tensor_class == PLUMB_CLASS_EXPERT) return PLUMB_OK; /* add_experts */
    return add_payload(s, t, t->tensor_class == PLUMB_CLASS_ENGRAM_TABLE ? TABLE_PLACES : PLACES, err);
}

static plumb_status add_experts(sampling *s, const plumb_model_config *c, plumb_error *err) {
    plumb_status status = PLUMB_OK;
    for (int64_t l = 0; l < c->layers; l++) {
        plumb_expert_layout expert;
        status = plumb__expert_layout_find(s->checkpoint, l, l * EXPERT_STEP % c->experts, 1,
                                           &expert, err);
        for (int i = 0; i < PLUMB_EXPERT_PAYLOADS && status == PLUMB_OK; i++)
            status = add_payload(s, expert.tensor[i], PLACES, err);
        if (status != PLUMB_OK) break;
    }
    return status;
}

/* ---- The digest -------------------------------------------------------------------------------- */

static plumb_status compute(const plumb_model *model, uint8_t digest[PLUMB_MODEL_DIGEST_BYTES],
                            plumb_error *err) {
    sampling s = {.checkpoint = model->checkpoint};
    const plumb_model_config *c = plumb__checkpoint_config(s.checkpoint);
    (void)XXH3_128bits_reset(&s.hash);
    add_config(&s, c);
    add(&s, model->token_map, (size_t)c->vocab * sizeof *model->token_map);
    plumb_status status = PLUMB_OK;
    for (int64_t i = 0; i < plumb__checkpoint_count(s.checkpoint) && status == PLUMB_OK; i++)
        status = add_tensor(&s, plumb__checkpoint_tensor(s.checkpoint, i), err);
    if (status == PLUMB_OK) status = add_experts(&s, c, err);
    if (status != PLUMB_OK) return status;
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&s.hash));
    memcpy(digest, canonical.digest, PLUMB_MODEL_DIGEST_BYTES);
    return PLUMB_OK;
}

plumb_status plumb__model_digest(plumb_model *model, uint8_t digest[PLUMB_MODEL_DIGEST_BYTES],
                                 plumb_error *err) {
    plumb_status status = PLUMB_OK;
    pthread_mutex_lock(&model->digest_lock);
    if (!model->has_digest) status = compute(model, model->digest, err);
    if (status == PLUMB_OK) {
        model->has_digest = true;
        memcpy(digest, model->digest, PLUMB_MODEL_DIGEST_BYTES);
    }
    pthread_mutex_unlock(&model->digest_lock);
    return status;
}
