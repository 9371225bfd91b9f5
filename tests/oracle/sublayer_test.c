/* One sublayer at a time with every rounding on: `tiny`, all 96 positions in one batch.
 *
 * Each sublayer gets the published program's own input, and its output is replaced by the published
 * one once it has been compared, so that no difference is carried on.  What remains is the order of
 * float32 sums, which moves single bf16 roundings and, rarely, one code of a quantiser. */
#include "backend/cpu/cpu_backend.h"
#include "bits.h"
#include "goldens.h"
#include "run.h"
#include "t.h"

#include <math.h>
#include <stdlib.h>

typedef enum place {
    ENGRAM_IN, ENGRAM_OUT, ATTN_IN, ATTN_OUT, FFN_IN, FFN_OUT, HIDDEN, PLACES
} place;

/* What is allowed to differ: a share of the elements, and by how many bf16 ulps. */
static const struct {
    const char *name;
    double share;
    int64_t ulps;
} bounds[PLACES] = {
    [ENGRAM_IN] = {"engram_in", 0, 0},   /* the replaced hidden state itself */
    [ENGRAM_OUT] = {"engram_out", 0.001, 1},
    [ATTN_IN] = {"attn_in", 0.001, 1},   /* collapse and norm of golden copies */
    [ATTN_OUT] = {"attn_out", 0.001, 64}, /* a rounded probability, a code before wo_b */
    [FFN_IN] = {"ffn_in", 0.001, 1},
    [FFN_OUT] = {"ffn_out", 0.001, 64},   /* a code of the experts' inner activation */
    [HIDDEN] = {"hidden", 0.0005, 32},   /* sums that nearly cancel have small ulps */
};

typedef struct watched {
    goldens *g;
    ulp_count place[PLACES];
    ulp_count pre_mix, expert_weights; /* in float32 ulps */
    ulp_count index_score;
    int64_t pre_mix_far;   /* by more than 16 ulps: one of the row's copies was rounded the other way */
    double pre_mix_error;  /* largest difference */
    int64_t expert_rows, experts_off, lists, lists_off, pools_off, engram_ids_off;
} watched;

static golden layer_golden(watched *w, const char *name, int64_t layer, const char *suffix,
                           const char *dtype) {
    char full[96];
    snprintf(full, sizeof full, "prefill.%s.%d%s", name, (int)layer, suffix);
    return goldens_get(w->g, full, dtype);
}

/* Counts the differences, then puts the golden values in place of ours. */
static void compare_and_replace(watched *w, place at, int64_t layer, plumb_act *ours) {
    golden want = layer_golden(w, bounds[at].name, layer, "", "BF16");
    ulp_count_bf16(&w->place[at], ours, want.bf16, want.count);
    memcpy(ours, want.bf16, want.bytes);
}

/* Ours has ascending ids, the golden order of score. */
static void compare_experts(watched *w, const plumb_network *n, int64_t layer, int64_t rows) {
    int64_t k = n->config->experts_per_token;
    golden ids = goldens_get(w->g, "prefill.gate_indices.f32", "U8");
    golden weights = goldens_get(w->g, "prefill.gate_weights.f32", "F32");
    for (int64_t r = 0; r < rows; r++) {
        const uint8_t *want = ids.u8 + (layer * rows + r) * k;
        const int32_t *chosen = plumb__expert_ids(n, rows, layer) + r * k;
        w->expert_rows++;
        w->experts_off += !oracle_same_experts(chosen, want, k);
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j < k; j++)
                if (chosen[i] == want[j])
                    ulp_count_float(&w->expert_weights, n->work.expert_weights + r * k + i,
                                    weights.f32 + (layer * rows + r) * k + j, 1);
    }
}

/* Scores of every visible position, as the top-k saw them (bf16 values; masked ones are -inf). */
static void compare_scores(watched *w, plumb_network *n, const plumb_state *state, int64_t layer,
                           int64_t rows) {
    const plumb_model_config *c = n->config;
    const plumb_cpu_kernels *kernels = ((plumb_cpu_backend *)n->backend)->kernels;
    golden want = layer_golden(w, "index_score", layer, "", "F32");
    plumb_index_args args = {.query = n->work.index_query_packed, .weight = n->work.index_weight,
                             .keys = state->layer[c->kv_source[layer]].index_keys,
                             .heads = c->index_heads, .dim = c->index_dim};
    float score[96];
    float *scratch =
        malloc((size_t)plumb__index_scratch(c->index_heads, c->index_dim) * sizeof *scratch);
    for (int64_t r = 0; r < rows; r++) {
        int64_t visible = (r + 1) / c->ratio[layer];
        kernels->index_scores(&args, r, NULL, visible, score, scratch);
        for (int64_t j = 0; j < visible; j++) {
            float golden_score = want.f32[r * want.shape[1] + j];
            if (isinf(golden_score)) continue;
            ulp_count_add(&w->index_score, bf16_ulps(plumb__bf16_encode(score[j]),
                                                     plumb__bf16_encode(golden_score)));
        }
    }
    free(scratch);
}

static void compare_selection(watched *w, plumb_network *n, const plumb_state *state,
                              int64_t layer, int64_t rows) {
    const plumb_model_config *c = n->config;
    golden lists = layer_golden(w, "topk", layer, ".f32", "I32");
    for (int64_t r = 0; r < rows; r++) {
        w->lists++;
        w->lists_off += !oracle_same_list(n, r, lists.i32 + r * c->index_topk);
    }
    compare_scores(w, n, state, layer, rows);
    if (layer != c->candidate_source) return;
    golden mask = goldens_get(w->g, "prefill.candidates.f32", "U8");
    for (int64_t r = 0; r < rows; r++)
        w->pools_off += !oracle_same_pool(n, r, mask.u8 + r * mask.shape[1], mask.shape[1]);
}

static void compare_engram(watched *w, plumb_network *n, int64_t layer) {
    golden ids = layer_golden(w, "engram_ids", layer, "", "I32");
    const int64_t *rows = n->work.engram_rows +
                          plumb__config_engram_index(n->config, layer) * n->work.rows * ids.shape[1];
    for (int64_t i = 0; i < ids.count; i++) w->engram_ids_off += rows[i] != ids.i32[i];
    compare_and_replace(w, ENGRAM_OUT, layer, n->work.h);
}

static void compare_layer(watched *w, plumb_network *n, int64_t layer) {
    compare_and_replace(w, HIDDEN, layer, n->work.h);
    golden mix = layer_golden(w, "pre_mix", layer, "", "F32");
    ulp_count_float(&w->pre_mix, n->work.pre, mix.f32, mix.count);
    for (int64_t i = 0; i < mix.count; i++) {
        double off = fabs((double)n->work.pre[i] - (double)mix.f32[i]);
        w->pre_mix_far += float_ulps(n->work.pre[i], mix.f32[i]) > 16;
        if (!(off <= w->pre_mix_error)) w->pre_mix_error = off;
    }
    memcpy(n->work.pre, mix.f32, mix.bytes);
}

static void watch(void *user, plumb_network *n, plumb_point point, int64_t layer, int64_t rows) {
    oracle_run *run = user;
    watched *w = run->user;
    switch (point) {
    case PLUMB_POINT_LAYER_IN:
        if (plumb__config_engram_index(n->config, layer) >= 0)
            compare_and_replace(w, ENGRAM_IN, layer, n->work.h);
        break;
    case PLUMB_POINT_ENGRAM_OUT: compare_engram(w, n, layer); break;
    case PLUMB_POINT_ATTN_IN: compare_and_replace(w, ATTN_IN, layer, n->work.x); break;
    case PLUMB_POINT_ATTN_OUT:
        if (n->config->is_index_source[layer]) compare_selection(w, n, run->state, layer, rows);
        compare_and_replace(w, ATTN_OUT, layer, n->work.out);
        break;
    case PLUMB_POINT_FFN_IN: compare_and_replace(w, FFN_IN, layer, n->work.x); break;
    case PLUMB_POINT_FFN_OUT:
        compare_experts(w, n, layer, rows);
        compare_and_replace(w, FFN_OUT, layer, n->work.out);
        break;
    case PLUMB_POINT_LAYER_OUT: compare_layer(w, n, layer); break;
    }
}

/* ---- Caches ------------------------------------------------------------------------------------ */

typedef void (*unpack_fn)(const uint8_t *row, int64_t dim, float *x);

/* The cache's rows, unpacked, against the golden's; counts rows that are not the same bits. */
static void compare_cache(goldens *g, int64_t layer, const char *name, const uint8_t *rows,
                          int64_t row_bytes, unpack_fn unpack, int64_t *compared, int64_t *off) {
    char full[96];
    float x[256];
    snprintf(full, sizeof full, "cache.layers.%d.attn.%s", (int)layer, name);
    golden want = goldens_get(g, full, "BF16");
    int64_t dim = want.shape[1];
    for (int64_t r = 0; r < want.shape[0]; r++) {
        ulp_count c = {0};
        unpack(rows + r * row_bytes, dim, x);
        for (int64_t i = 0; i < dim; i++)
            ulp_count_add(&c, float_ulps(x[i], plumb__bf16_decode(want.bf16[r * dim + i])));
        (*compared)++;
        *off += c.different != 0;
    }
}

static void check_caches(const oracle_run *run, goldens *g) {
    const plumb_model_config *c = run->config;
    int64_t window[2] = {0}, compressed[2] = {0}, index[2] = {0}; /* compared, different */
    for (int64_t l = 0; l < c->layers; l++) {
        const plumb_layer_state *cache = &run->state->layer[l];
        compare_cache(g, l, "window_kv_cache", cache->ring, plumb__window_row_bytes(c->head_dim),
                      plumb__window_unpack, &window[0], &window[1]);
        if (!c->is_kv_source[l]) continue;
        compare_cache(g, l, "compress_kv_cache", cache->compressed,
                      plumb__compressed_row_bytes(c->head_dim), plumb__compressed_unpack,
                      &compressed[0], &compressed[1]);
        compare_cache(g, l, "indexer.k_cache", cache->index_keys,
                      plumb__index_row_bytes(c->index_dim), plumb__index_unpack, &index[0],
                      &index[1]);
    }
    printf("  cache rows that differ: window %d of %d, compressed %d of %d, index keys %d of %d\n",
           (int)window[1], (int)window[0], (int)compressed[1], (int)compressed[0], (int)index[1],
           (int)index[0]);
    T_CHECK(window[0] == c->layers * c->window && window[1] <= 1, "%d", (int)window[1]);
    T_CHECK(compressed[0] == 48 + 96 && compressed[1] <= 2, "%d", (int)compressed[1]);
    T_CHECK(index[0] == 48 + 96 && index[1] <= 2, "%d", (int)index[1]);
}

static void sublayers(void) {
    watched w = {.g = goldens_open("oracle/tiny.prefill.safetensors")};
    golden ids = goldens_get(w.g, "input_ids", "I32");
    oracle_run run;
    oracle_open(&run, BUILD_DIR "/checkpoints/tiny", ids.i32, ids.count);
    run.observe = watch;
    run.user = &w;
    oracle_eval_to(&run, ids.count);

    for (int at = 0; at < PLACES; at++) {
        const ulp_count *c = &w.place[at];
        printf("  %-10s %6d elements, %3d differ, by at most %d bf16 ulps\n", bounds[at].name,
               (int)c->compared, (int)c->different, (int)c->worst);
        T_CHECK(c->compared > 0 && (double)c->different <= bounds[at].share * (double)c->compared &&
                    c->worst <= bounds[at].ulps,
                "%s", bounds[at].name);
    }
    printf("  pre_mix: %d of %d differ, %d by more than 16 ulps, at most by %.1e\n",
           (int)w.pre_mix.different, (int)w.pre_mix.compared, (int)w.pre_mix_far, w.pre_mix_error);
    printf("  routing weights: %d of %d differ, at most %d ulps\n", (int)w.expert_weights.different,
           (int)w.expert_weights.compared, (int)w.expert_weights.worst);
    printf("  index scores: %d of %d differ, at most %d bf16 ulps\n",
           (int)w.index_score.different, (int)w.index_score.compared, (int)w.index_score.worst);
    T_CHECK(w.pre_mix_far * 50 <= w.pre_mix.compared, "%d", (int)w.pre_mix_far);
    T_CHECK(w.pre_mix_error <= 1e-4, "%g", w.pre_mix_error);
    T_CHECK(w.expert_rows == ids.count * run.config->layers && w.experts_off == 0, "%d rows",
            (int)w.experts_off);
    T_CHECK(w.expert_weights.worst <= 16, "%d", (int)w.expert_weights.worst);
    T_CHECK(w.lists == 3 * ids.count && w.lists_off == 0, "%d lists", (int)w.lists_off);
    T_CHECK(w.pools_off == 0, "%d pools", (int)w.pools_off);
    T_CHECK(w.engram_ids_off == 0, "%d table rows", (int)w.engram_ids_off);
    T_CHECK(w.index_score.compared > 0 && w.index_score.worst <= 1 &&
                w.index_score.different * 1000 <= w.index_score.compared,
            "%d scores", (int)w.index_score.different);
    check_caches(&run, w.g);
    oracle_close(&run);
    goldens_close(w.g);
}

T_MAIN({"sublayers", sublayers})
