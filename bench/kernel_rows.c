#include "kernel_rows.h"

#include <math.h>

enum {
    HIDDEN = 5120, HEADS = 64, HEAD_DIM = 512, ROPE_PAIRS = 32, WINDOW = 128, TOP_K = 512,
    INDEX_HEADS = 32, INDEX_DIM = 128, INDEX_KEYS = 65536, EXPERTS = 384, ROUTED = 6, INTER = 2304,
    POOL_BLOCKS = 2048, POOL_BLOCK = 8, SINKHORN = 20, MOST_TOKENS = 64,
    COEFFICIENTS = 24 /* of hyper-connections */
};

struct bench_rows {
    plumb_backend *backend;
    const plumb_cpu_kernels *kernels;
    void *block[64];
    int blocks;
    bool no_memory;
    plumb_act *x, *y, *h, *kv, *query, *attended, *latent;
    plumb_quantized *xq;
    plumb_matrix hc;
    float *weight;                   /* near 1: norm weights */
    float *four_weights, *four_more; /* [4][hidden] */
    float *cosine, *sine, *value, *gate, *index_weight, *score, *scratch, *logits, *bias,
        *expert_weight, *sink, *hc_base, *pre, *post, *comb;
    uint8_t *ring, *chunk, *compressed, *index_query, *index_keys, *packed, *live;
    int32_t *selected, *selected_count, *found, *found_count, *ids, *pool, *pool_count;
};

static void *take(bench_rows *r, int64_t count, size_t size) {
    void *memory = r->backend->ops->allocate(r->backend, count * (int64_t)size);
    if (memory) r->block[r->blocks++] = memory;
    else r->no_memory = true;
    return memory;
}

static plumb_act *take_activations(bench_rows *r, bench_random *random, int64_t n) {
    plumb_act *x = take(r, n, sizeof *x);
    if (x) bench_draw_activations(random, x, n);
    return x;
}

static float *take_floats(bench_rows *r, bench_random *random, float mean, float deviation,
                          int64_t n) {
    float *x = take(r, n, sizeof *x);
    if (x) bench_draw_floats(random, mean, deviation, x, n);
    return x;
}

typedef void (*pack_row)(const float *x, int64_t dim, uint8_t *row);

static uint8_t *take_packed(bench_rows *r, bench_random *random, int64_t n, int64_t dim,
                            int64_t row_bytes, pack_row pack) {
    uint8_t *rows = take(r, n, (size_t)row_bytes);
    float wide[HEAD_DIM];
    for (int64_t i = 0; rows && i < n; i++) {
        bench_draw_floats(random, 0, 1, wide, dim);
        pack(wide, dim, rows + i * row_bytes);
    }
    return rows;
}

static void take_attention(bench_rows *r, bench_random *random) {
    r->query = take_activations(r, random, MOST_TOKENS * HEADS * HEAD_DIM);
    r->attended = take(r, MOST_TOKENS * HEADS * HEAD_DIM, sizeof *r->attended);
    r->cosine = take(r, MOST_TOKENS * ROPE_PAIRS, sizeof *r->cosine);
    r->sine = take(r, MOST_TOKENS * ROPE_PAIRS, sizeof *r->sine);
    for (int i = 0; !r->no_memory && i < MOST_TOKENS * ROPE_PAIRS; i++) {
        double angle = 4 * (double)bench_draw_gaussian(random);
        r->cosine[i] = (float)cos(angle);
        r->sine[i] = (float)sin(angle);
    }
    r->sink = take_floats(r, random, 0, 1, HEADS);
    r->ring = take_packed(r, random, WINDOW, HEAD_DIM, plumb__window_row_bytes(HEAD_DIM),
                          r->kernels->pack_window);
    r->chunk = take_packed(r, random, MOST_TOKENS, HEAD_DIM, plumb__window_row_bytes(HEAD_DIM),
                           r->kernels->pack_window);
    r->compressed = take_packed(r, random, 4 * TOP_K, HEAD_DIM,
                                plumb__compressed_row_bytes(HEAD_DIM), r->kernels->pack_compressed);
    r->selected = take(r, MOST_TOKENS * TOP_K, sizeof *r->selected);
    r->selected_count = take(r, MOST_TOKENS, sizeof *r->selected_count);
    for (int64_t t = 0; !r->no_memory && t < MOST_TOKENS; t++) {
        r->selected_count[t] = TOP_K;
        for (int32_t i = 0; i < TOP_K; i++)
            r->selected[t * TOP_K + i] = 4 * i + (int32_t)(bench_draw(random) % 4);
    }
}

static void take_index(bench_rows *r, bench_random *random) {
    int64_t row_bytes = plumb__index_row_bytes(INDEX_DIM);
    r->index_query = take_packed(r, random, INDEX_HEADS, INDEX_DIM, row_bytes,
                                 r->kernels->pack_index);
    r->index_keys = take_packed(r, random, INDEX_KEYS, INDEX_DIM, row_bytes,
                                r->kernels->pack_index);
    r->index_weight = take_floats(r, random, 0, 0.02F, INDEX_HEADS);
    r->score = take(r, INDEX_KEYS, sizeof *r->score);
    r->found = take(r, TOP_K, sizeof *r->found);
    r->found_count = take(r, 1, sizeof *r->found_count);
    r->pool = take(r, POOL_BLOCKS, sizeof *r->pool);
    r->pool_count = take(r, 1, sizeof *r->pool_count);
    int64_t index_scratch = plumb__index_scratch(INDEX_HEADS, INDEX_DIM);
    r->scratch = take(r, index_scratch, sizeof *r->scratch);
}

static void take_hyper_connections(bench_rows *r, bench_random *random) {
    void *fn = take(r, bench_matrix_stride(PLUMB_MATRIX_F32, COEFFICIENTS, 4 * HIDDEN), 1);
    if (fn) r->hc = bench_make_matrix(random, PLUMB_MATRIX_F32, COEFFICIENTS, 4 * HIDDEN, fn);
    r->h = take_activations(r, random, MOST_TOKENS * 4 * HIDDEN);
    r->hc_base = take_floats(r, random, 0, 0.5F, COEFFICIENTS + 3);
    r->pre = take(r, MOST_TOKENS * 4, sizeof *r->pre);
    r->post = take(r, MOST_TOKENS * 4, sizeof *r->post);
    r->comb = take(r, MOST_TOKENS * 16, sizeof *r->comb);
}

void bench_rows_destroy(bench_rows *r) {
    if (!r) return;
    plumb_backend *backend = r->backend;
    for (int i = 0; i < r->blocks; i++) backend->ops->release(backend, r->block[i]);
    backend->ops->release(backend, r);
}

bench_rows *bench_rows_create(plumb_backend *backend, const plumb_cpu_kernels *kernels,
                              bench_random *random) {
    bench_rows *r = backend->ops->allocate(backend, sizeof *r);
    if (!r) return NULL;
    r->backend = backend;
    r->kernels = kernels;
    r->x = take_activations(r, random, MOST_TOKENS * HIDDEN);
    r->y = take(r, MOST_TOKENS * HIDDEN, sizeof *r->y);
    r->xq = take(r, backend->ops->quantized_bytes(backend, MOST_TOKENS, HIDDEN), 1);
    r->kv = take_activations(r, random, MOST_TOKENS * 5 * HIDDEN);
    r->latent = take(r, MOST_TOKENS * HEAD_DIM, sizeof *r->latent);
    r->weight = take_floats(r, random, 1, 0.1F, HIDDEN);
    r->four_weights = take_floats(r, random, 1, 0.1F, 4 * HIDDEN);
    r->four_more = take_floats(r, random, 1, 0.1F, 4 * HIDDEN);
    r->value = take_floats(r, random, 0, 1, 2 * MOST_TOKENS * HEAD_DIM);
    r->gate = take_floats(r, random, 0, 1, 2 * MOST_TOKENS * HEAD_DIM);
    r->logits = take_floats(r, random, 0, 1, MOST_TOKENS * EXPERTS);
    r->bias = take_floats(r, random, 0, 0.1F, EXPERTS);
    r->expert_weight = take(r, MOST_TOKENS * ROUTED, sizeof *r->expert_weight);
    r->ids = take(r, MOST_TOKENS * ROUTED, sizeof *r->ids);
    r->packed = take(r, MOST_TOKENS * plumb__window_row_bytes(HEAD_DIM), 1);
    r->live = take(r, MOST_TOKENS, 1);
    take_attention(r, random);
    take_index(r, random);
    take_hyper_connections(r, random);
    if (r->no_memory) {
        bench_rows_destroy(r);
        return NULL;
    }
    for (int i = 0; i < MOST_TOKENS; i++) r->live[i] = 1;
    /* Coefficients for the operations that only read them. */
    backend->ops->begin(backend);
    backend->ops->hc_mix(backend, r->h, MOST_TOKENS, HIDDEN, &r->hc, r->hc_base,
                         r->hc_base + COEFFICIENTS, 1e-20F, 1e-6F, SINKHORN, r->pre, r->post,
                         r->comb);
    backend->ops->end(backend);
    return r;
}

/* ---- One function per operation ------------------------------------------------------------ */

static void quantize(bench_rows *r, int64_t tokens) {
    r->backend->ops->quantize(r->backend, r->x, tokens, HIDDEN, r->xq);
}

static void rms_norm(bench_rows *r, int64_t tokens) {
    r->backend->ops->rms_norm(r->backend, r->x, tokens, HIDDEN, r->weight, 1e-20F, r->y);
}

static void rotate(bench_rows *r, int64_t tokens) {
    r->backend->ops->rotate(r->backend, r->attended, tokens, HEADS, HEAD_DIM, ROPE_PAIRS, r->cosine,
                            r->sine, false);
}

static void hc_mix(bench_rows *r, int64_t tokens) {
    r->backend->ops->hc_mix(r->backend, r->h, tokens, HIDDEN, &r->hc, r->hc_base,
                            r->hc_base + COEFFICIENTS, 1e-20F, 1e-6F, SINKHORN, r->pre, r->post,
                            r->comb);
}

static void hc_collapse(bench_rows *r, int64_t tokens) {
    r->backend->ops->hc_collapse(r->backend, r->h, r->pre, tokens, HIDDEN, r->y);
}

/* comb mixes with weights that add up to one: h stays bounded however often it is updated. */
static void hc_update(bench_rows *r, int64_t tokens) {
    r->backend->ops->hc_update(r->backend, r->h, r->x, r->post, r->comb, tokens, HIDDEN);
}

static void pack_window(bench_rows *r, int64_t tokens) {
    r->backend->ops->pack_window(r->backend, r->x, tokens, HEAD_DIM, r->packed);
}

static void pack_compressed(bench_rows *r, int64_t tokens) {
    r->backend->ops->pack_compressed(r->backend, r->x, tokens, HEAD_DIM, r->packed);
}

static void pack_index(bench_rows *r, int64_t tokens) {
    r->backend->ops->pack_index(r->backend, r->x, tokens, INDEX_DIM, r->packed);
}

static void compress_pairs(bench_rows *r, int64_t tokens) {
    r->backend->ops->compress_pairs(r->backend, r->value, r->gate, tokens, HEAD_DIM, r->latent);
}

static void attention(bench_rows *r, int64_t tokens) {
    enum { POSITION = 1 << 16 }; /* far enough for a full window */
    plumb_attention_args args = {
        .query = r->query, .heads = HEADS, .dim = HEAD_DIM, .window = WINDOW, .position = POSITION,
        .ring = r->ring, .chunk = r->chunk, .chunk_position = POSITION,
        .compressed = r->compressed, .selected = r->selected,
        .selected_count = r->selected_count, .selected_stride = TOP_K, .sink = r->sink,
        .scale = 0.04419417382415922F, .out = r->attended};
    r->backend->ops->attention(r->backend, &args, tokens);
}

static plumb_index_args index_args(bench_rows *r, int64_t keys, bool pool) {
    return (plumb_index_args){
        .query = r->index_query, .weight = r->index_weight, .keys = r->index_keys,
        .heads = INDEX_HEADS, .dim = INDEX_DIM, .position = keys - 1, .ratio = 1, .top_k = TOP_K,
        .selected = r->found, .selected_count = r->found_count, .build_pool = pool,
        .pool_blocks = POOL_BLOCKS, .block_size = POOL_BLOCK, .pool = r->pool,
        .pool_count = r->pool_count};
}

static void index_scores(bench_rows *r, int64_t keys) {
    plumb_index_args args = index_args(r, keys, false);
    (void)r->kernels->index_scores(&args, 0, NULL, keys, r->score, r->scratch);
}

static void index_select(bench_rows *r, int64_t keys) {
    plumb_index_args args = index_args(r, keys, true);
    r->backend->ops->index_select(r->backend, &args, 1);
}

static void index_scores_4096(bench_rows *r, int64_t tokens) {
    (void)tokens;
    index_scores(r, 4096);
}

static void index_scores_65536(bench_rows *r, int64_t tokens) {
    (void)tokens;
    index_scores(r, INDEX_KEYS);
}

static void index_select_4096(bench_rows *r, int64_t tokens) {
    (void)tokens;
    index_select(r, 4096);
}

static void index_select_65536(bench_rows *r, int64_t tokens) {
    (void)tokens;
    index_select(r, INDEX_KEYS);
}

static void route(bench_rows *r, int64_t tokens) {
    r->backend->ops->route(r->backend, r->logits, r->bias, tokens, EXPERTS, ROUTED, 1.5F, r->ids,
                           r->expert_weight);
}

static void swiglu(bench_rows *r, int64_t tokens) {
    for (int64_t t = 0; t < tokens; t++)
        r->kernels->swiglu(r->x + t * HIDDEN, r->x + t * HIDDEN + INTER, 0.25F, 10, INTER,
                           r->y + t * HIDDEN);
}

static void engram_gate(bench_rows *r, int64_t tokens) {
    r->backend->ops->engram_gate(r->backend, r->h, r->kv, r->four_weights, r->four_more, r->live,
                                 tokens, HIDDEN, 1e-20F, 0.013975424859373686F);
}

#define ATTENTION_FLOPS (4.0 * HEADS * HEAD_DIM * (WINDOW + TOP_K))
#define INDEX_FLOPS (2.0 * INDEX_HEADS * INDEX_DIM)

const bench_row_case bench_row_cases[] = {
    {"quantize", "5120", 1, 0, quantize},
    {"quantize", "5120", 64, 0, quantize},
    {"rms_norm", "5120", 1, 0, rms_norm},
    {"rms_norm", "5120", 64, 0, rms_norm},
    {"rotate", "64x512, 64 of 512", 1, 0, rotate},
    {"rotate", "64x512, 64 of 512", 64, 0, rotate},
    {"hc_mix", "24x20480", 1, 2.0 * COEFFICIENTS * 4 * HIDDEN, hc_mix},
    {"hc_mix", "24x20480", 64, 64 * 2.0 * COEFFICIENTS * 4 * HIDDEN, hc_mix},
    {"hc_collapse", "4x5120", 1, 0, hc_collapse},
    {"hc_collapse", "4x5120", 64, 0, hc_collapse},
    {"hc_update", "4x5120", 1, 0, hc_update},
    {"hc_update", "4x5120", 64, 0, hc_update},
    {"pack_window", "512", 1, 0, pack_window},
    {"pack_compressed", "512", 1, 0, pack_compressed},
    {"pack_index", "128", 1, 0, pack_index},
    {"compress_pairs", "2x512", 1, 0, compress_pairs},
    {"attention", "640 keys, 64x512", 1, ATTENTION_FLOPS, attention},
    {"attention", "640 keys, 64x512", 64, 64 * ATTENTION_FLOPS, attention},
    {"index_scores", "4096 keys, 32x128", 1, 4096 * INDEX_FLOPS, index_scores_4096},
    {"index_scores", "65536 keys, 32x128", 1, 65536 * INDEX_FLOPS, index_scores_65536},
    {"index_select", "4096 keys, 32x128", 1, 4096 * INDEX_FLOPS, index_select_4096},
    {"index_select", "65536 keys, 32x128", 1, 65536 * INDEX_FLOPS, index_select_65536},
    {"route", "6 of 384", 1, 0, route},
    {"route", "6 of 384", 64, 0, route},
    {"swiglu", "2304", 1, 0, swiglu},
    {"engram_gate", "4x5120", 1, 0, engram_gate},
    {"engram_gate", "4x5120", 64, 0, engram_gate},
};
const int bench_row_case_count = sizeof bench_row_cases / sizeof bench_row_cases[0];
