#include "resident_network.h"

#include "arith/rotary.h"
#include "base/error.h"
#include "resident_source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SETS = 3,            /* of dense weights: a layer's neighbours never share its set */
    DIFFERENT_KEYS = 512 /* in the caches */
};

/* ---- Layers ---------------------------------------------------------------------------------- */

/* Latest sources at or before each layer; false with a reason when one is missing. */
static bool find_sources(plumb_model_config *c, const char **reason) {
    int64_t kv = -1, index = -1;
    for (int64_t l = 0; l < c->layers; l++) {
        if (c->is_kv_source[l]) kv = l;
        if (c->is_index_source[l]) index = l;
        bool reads = c->ratio[l] > 0;
        c->kv_source[l] = reads ? kv : -1;
        c->index_source[l] = reads ? index : -1;
        if (!reads) continue;
        if (kv < 0 || c->ratio[kv] != c->ratio[l]) {
            *reason = "a layer reuses the keys of a source that is not kept";
            return false;
        }
    }
    return true;
}

bool bench_keep_layers(plumb_model_config *c, const int64_t *ids, int64_t n, const char **reason) {
    plumb_model_config kept = *c;
    kept.layers = n;
    kept.draft_stages = kept.engram_layers = 0;
    kept.candidate_source = -1;
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] >= c->layers || (i > 0 && ids[i] <= ids[i - 1])) {
            *reason = "layers are ascending numbers below the model's own count";
            return false;
        }
        kept.ratio[i] = c->ratio[ids[i]];
        kept.is_kv_source[i] = c->is_kv_source[ids[i]];
        kept.is_index_source[i] = c->is_index_source[ids[i]];
        if (ids[i] == c->candidate_source) kept.candidate_source = i;
        if (plumb__config_engram_index(c, ids[i]) >= 0) kept.engram_layer[kept.engram_layers++] = i;
    }
    int64_t primes[PLUMB_MAX_ENGRAM_LAYERS * PLUMB_MAX_ENGRAM_COLUMNS];
    int64_t columns = (kept.engram_ngram - 1) * kept.engram_heads;
    plumb__config_engram_primes(&kept, primes);
    for (int64_t i = 0; i < kept.engram_layers; i++) {
        kept.engram_rows[i] = 0;
        for (int64_t j = 0; j < columns; j++) kept.engram_rows[i] += primes[i * columns + j];
    }
    if (!find_sources(&kept, reason)) return false;
    *c = kept;
    return true;
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* Hands out parts of one block; without a block it only counts. */
typedef struct arena {
    uint8_t *memory;
    int64_t used;
    bench_random *random;
    plumb_weights *weights; /* whose blocks the backend's notes become */
} arena;

enum { MOST_BLOCKS = 64 };

/* As the loader has it done; wo_a is no quantised product, but its notes do no harm. */
static void prepare(arena *a, plumb_matrix *w) {
    plumb_backend *backend = a->weights->backend;
    int64_t bytes;
    void *notes = a->weights->n_blocks < MOST_BLOCKS ? backend->ops->prepare(backend, w, &bytes) : NULL;
    if (!notes) return;
    a->weights->blocks[a->weights->n_blocks++] = notes;
    w->prepared = notes;
}

static plumb_matrix take_matrix(arena *a, plumb_matrix_type type, int64_t n, int64_t k) {
    plumb_matrix made = {0};
    if (a->memory) {
        made = bench_make_matrix(a->random, type, n, k, a->memory + a->used);
        if (type == PLUMB_MATRIX_FP8) prepare(a, &made);
    }
    a->used += bench_matrix_stride(type, n, k);
    return made;
}

static float *take_floats(arena *a, float mean, float deviation, int64_t n) {
    float *x = NULL;
    if (a->memory) {
        x = (float *)(void *)(a->memory + a->used);
        bench_draw_floats(a->random, mean, deviation, x, n);
    }
    a->used += bench_matrix_stride(PLUMB_MATRIX_F32, 1, n);
    return x;
}

static float *take_norm(arena *a, int64_t n) { return take_floats(a, 1, 0.1F, n); }

static plumb_hc_weights take_hyper_connection(arena *a, int64_t hidden) {
    enum { COEFFICIENTS = 24, SCALES = 3 };
    plumb_hc_weights hc = {.fn = take_matrix(a, PLUMB_MATRIX_F32, COEFFICIENTS, PLUMB_HC * hidden)};
    hc.base = take_floats(a, 0, 0.5F, COEFFICIENTS);
    hc.scale = take_floats(a, 0, 0.5F, SCALES);
    return hc;
}

/* Everything that any layer may have, so that a set serves every layer. */
static plumb_layer_weights take_layer(arena *a, const plumb_model_config *c) {
    plumb_layer_weights w = {0};
    int64_t query = c->heads * c->head_dim;
    w.attn_norm = take_norm(a, c->hidden);
    w.ffn_norm = take_norm(a, c->hidden);
    w.hc_attn = take_hyper_connection(a, c->hidden);
    w.hc_ffn = take_hyper_connection(a, c->hidden);
    w.wq_a = take_matrix(a, PLUMB_MATRIX_FP8, c->q_rank, c->hidden);
    w.q_norm = take_norm(a, c->q_rank);
    w.wq_b = take_matrix(a, PLUMB_MATRIX_FP8, query, c->q_rank);
    w.wkv = take_matrix(a, PLUMB_MATRIX_FP8, c->head_dim, c->hidden);
    w.kv_norm = take_norm(a, c->head_dim);
    w.sink = take_floats(a, 0, 1, c->heads);
    w.wo_a = take_matrix(a, PLUMB_MATRIX_FP8, c->o_groups * c->o_rank, query / c->o_groups);
    w.wo_b = take_matrix(a, PLUMB_MATRIX_FP8, c->hidden, c->o_groups * c->o_rank);
    w.router = take_matrix(a, PLUMB_MATRIX_BF16, c->experts, c->hidden);
    w.router_bias = take_floats(a, 0, 0.1F, c->experts);
    w.shared.gate = take_matrix(a, PLUMB_MATRIX_FP8, c->inter, c->hidden);
    w.shared.down = take_matrix(a, PLUMB_MATRIX_FP8, c->hidden, c->inter);
    w.shared.up = take_matrix(a, PLUMB_MATRIX_FP8, c->inter, c->hidden);
    w.compress_kv = take_matrix(a, PLUMB_MATRIX_BF16, c->head_dim, c->hidden);
    w.compress_gate = take_matrix(a, PLUMB_MATRIX_BF16, c->head_dim, c->hidden);
    w.compress_norm = take_norm(a, c->head_dim);
    w.index_key = take_matrix(a, PLUMB_MATRIX_BF16, c->index_dim, c->head_dim);
    w.index_key_norm = take_norm(a, c->index_dim);
    w.index_query = take_matrix(a, PLUMB_MATRIX_FP8, c->index_heads * c->index_dim, c->q_rank);
    w.index_weights = take_matrix(a, PLUMB_MATRIX_BF16, c->index_heads, c->hidden);
    return w;
}

/* The one set of Engram weights: 157 MB, used by few layers. */
static void take_engram(arena *a, const plumb_model_config *c, plumb_layer_weights *w) {
    int64_t columns = (c->engram_ngram - 1) * c->engram_heads;
    w->engram_kv = take_matrix(a, PLUMB_MATRIX_FP8, (PLUMB_HC + 1) * c->hidden,
                               columns * c->engram_dim);
    w->engram_query = take_norm(a, PLUMB_HC * c->hidden);
    w->engram_key = take_norm(a, PLUMB_HC * c->hidden);
}

static void take_all(arena *a, const plumb_model_config *c, plumb_weights *weights) {
    plumb_layer_weights set[SETS], engram = {0};
    for (int i = 0; i < SETS; i++) set[i] = take_layer(a, c);
    if (c->engram_layers > 0) take_engram(a, c, &engram);
    weights->head = take_matrix(a, PLUMB_MATRIX_BF16, c->vocab, c->hidden);
    weights->norm = take_norm(a, c->hidden);
    for (int64_t l = 0; a->memory && l < c->layers; l++) {
        plumb_layer_weights *w = &weights->layer[l];
        *w = set[l % SETS];
        w->engram_kv = engram.engram_kv;
        w->engram_query = engram.engram_query;
        w->engram_key = engram.engram_key;
    }
}

static plumb_status make_weights(bench_network *b, bench_random *random, plumb_error *err) {
    plumb_weights *weights = &b->network.weights;
    plumb_backend *backend = b->network.backend;
    arena a = {.random = random, .weights = weights};
    take_all(&a, &b->config, weights);
    weights->backend = backend;
    weights->bytes = a.used;
    weights->layer = calloc((size_t)b->config.layers, sizeof *weights->layer);
    weights->blocks = calloc(MOST_BLOCKS, sizeof *weights->blocks);
    a.memory = backend->ops->allocate(backend, a.used);
    a.used = 0;
    if (weights->blocks) weights->blocks[weights->n_blocks++] = a.memory;
    if (!weights->layer || !weights->blocks || !a.memory)
        return plumb__fail_memory(err, "weights", (size_t)weights->bytes);
    take_all(&a, &b->config, weights);
    return PLUMB_OK;
}

/* ---- State ----------------------------------------------------------------------------------- */

/* Rows of a cache, drawn from the different ones at `from`. */
static void fill_cache(bench_random *random, uint8_t *cache, int64_t rows, int64_t row_bytes,
                       const uint8_t *from) {
    for (int64_t i = 0; i < rows; i++) {
        int64_t drawn = (int64_t)(bench_draw(random) % DIFFERENT_KEYS);
        memcpy(cache + i * row_bytes, from + drawn * row_bytes, (size_t)row_bytes);
    }
}

static plumb_status make_state(bench_network *b, bench_random *random, plumb_error *err) {
    const plumb_model_config *c = &b->config;
    plumb_backend *backend = b->network.backend;
    const plumb_backend_ops *ops = backend->ops;
    plumb_status status = plumb__state_create(c, backend, &b->state, err);
    if (status == PLUMB_OK) status = plumb__state_reserve(b->state, b->positions, err);
    if (status != PLUMB_OK) return status;
    int64_t window_bytes = plumb__window_row_bytes(c->head_dim);
    int64_t compressed_bytes = plumb__compressed_row_bytes(c->head_dim);
    int64_t index_bytes = plumb__index_row_bytes(c->index_dim);
    plumb_act *x = malloc((size_t)(DIFFERENT_KEYS * c->head_dim) * sizeof *x);
    uint8_t *rows = malloc((size_t)(DIFFERENT_KEYS * (window_bytes + compressed_bytes + index_bytes)));
    if (!x || !rows) {
        free(x);
        free(rows);
        return plumb__fail_memory(err, "cache rows", 0);
    }
    uint8_t *compressed = rows + DIFFERENT_KEYS * window_bytes;
    uint8_t *index = compressed + DIFFERENT_KEYS * compressed_bytes;
    bench_draw_activations(random, x, DIFFERENT_KEYS * c->head_dim);
    ops->pack_window(backend, x, DIFFERENT_KEYS, c->head_dim, rows);
    ops->pack_compressed(backend, x, DIFFERENT_KEYS, c->head_dim, compressed);
    ops->pack_index(backend, x, DIFFERENT_KEYS, c->index_dim, index);
    for (int64_t l = 0; l < c->layers; l++) {
        plumb_layer_state *layer = &b->state->layer[l];
        fill_cache(random, layer->ring, c->window, window_bytes, rows);
        if (!c->is_kv_source[l]) continue;
        int64_t keys = b->state->capacity / c->ratio[l];
        fill_cache(random, layer->compressed, keys, compressed_bytes, compressed);
        fill_cache(random, layer->index_keys, keys, index_bytes, index);
    }
    free(x);
    free(rows);
    return PLUMB_OK;
}

/* ---- Network --------------------------------------------------------------------------------- */

static float inverse_root(int64_t n) { return (float)(1.0 / sqrt((double)n)); }

static plumb_status make_tables(bench_network *b, bench_random *random, plumb_error *err) {
    const plumb_model_config *c = &b->config;
    plumb_network *n = &b->network;
    int32_t *map = calloc((size_t)c->vocab, sizeof *map);
    n->token_map = map;
    b->tokens = calloc((size_t)b->positions, sizeof *b->tokens);
    for (int table = 0; table < 2; table++)
        n->frequency[table] = calloc((size_t)c->rope_dim / 2, sizeof(float));
    if (!map || !b->tokens || !n->frequency[0] || !n->frequency[1])
        return plumb__fail_memory(err, "tables", 0);
    for (int64_t i = 0; i < c->vocab; i++) map[i] = (int32_t)(i % c->engram_folded_vocab);
    for (int64_t i = 0; i < b->positions; i++)
        b->tokens[i] = (int32_t)(bench_draw(random) % (uint64_t)c->vocab);
    const plumb_rotary_yarn yarn = {.factor = c->yarn.factor, .beta_fast = c->yarn.beta_fast,
                                    .beta_slow = c->yarn.beta_slow,
                                    .original_positions = c->yarn.original_positions};
    plumb_status status =
        plumb__rotary_frequencies(c->rope_theta, NULL, c->rope_dim, n->frequency[0], err);
    if (status == PLUMB_OK)
        status = plumb__rotary_frequencies(c->compress_rope_theta, &yarn, c->rope_dim,
                                           n->frequency[1], err);
    for (int i = 0; status == PLUMB_OK && i < c->engram_layers; i++)
        status = plumb__engram_hash_init(c, i, map[c->engram_pad_id], &n->engram[i], err);
    return status;
}

plumb_status bench_network_create(plumb_backend *backend, const plumb_model_config *config,
                                  int64_t experts, int64_t positions, bench_random *random,
                                  bench_network **out, plumb_error *err) {
    bench_network *b = calloc(1, sizeof *b);
    if (!b) return plumb__fail_memory(err, "network", sizeof *b);
    b->config = *config;
    b->positions = positions;
    b->network = (plumb_network){.config = &b->config, .backend = backend,
                                 .attention_scale = inverse_root(config->head_dim),
                                 .index_factor = inverse_root(config->index_dim * config->index_heads),
                                 .hidden_factor = inverse_root(config->hidden)};
    plumb_status status = make_tables(b, random, err);
    if (status == PLUMB_OK) status = make_weights(b, random, err);
    if (status == PLUMB_OK)
        status = bench_source_create(backend, &b->config, experts, random, &b->network.source, err);
    if (status == PLUMB_OK) status = make_state(b, random, err);
    if (status != PLUMB_OK) {
        bench_network_destroy(b);
        return status;
    }
    b->weight_bytes = b->network.weights.bytes + bench_source_bytes(b->network.source);
    *out = b;
    return PLUMB_OK;
}

void bench_network_destroy(bench_network *b) {
    if (!b) return;
    plumb_network *n = &b->network;
    plumb__state_destroy(b->state);
    bench_source_destroy(n->source);
    plumb__workspace_free(n);
    for (int64_t i = 0; i < n->weights.n_blocks; i++)
        if (n->weights.blocks[i]) n->backend->ops->release(n->backend, n->weights.blocks[i]);
    free(n->weights.blocks);
    free(n->weights.layer);
    for (int table = 0; table < 2; table++) free(n->frequency[table]);
    free((void *)(uintptr_t)n->token_map);
    free(b->tokens);
    free(b);
}

const void *bench_network_sample(const bench_network *b, int64_t *bytes) {
    *bytes = b->network.weights.bytes;
    return b->network.weights.blocks[0];
}
