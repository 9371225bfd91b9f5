#include "timed_backend.h"

#include "made_weights.h"
#include "measure.h"

#include <string.h>

static plumb_backend *inner_of(plumb_backend *b) { return ((bench_timed_backend *)b)->inner; }

/* The record of an operation; w may be NULL.  The last one takes what has no room of its own. */
static bench_op *find_op(bench_timed_backend *t, const char *name, const plumb_matrix *w) {
    int64_t n = w ? w->n : 0, k = w ? w->k : 0;
    plumb_matrix_type type = w ? w->type : PLUMB_MATRIX_BF16;
    for (int i = 0; i < t->ops; i++) {
        bench_op *op = &t->op[i];
        if (op->n == n && op->k == k && op->type == type && !strcmp(op->name, name)) return op;
    }
    if (t->ops == BENCH_MAX_OPS) return &t->op[BENCH_MAX_OPS - 1];
    t->op[t->ops] = (bench_op){.name = name, .type = type, .n = n, .k = k};
    return &t->op[t->ops++];
}

static bench_op *note(plumb_backend *b, const char *name, const plumb_matrix *w, double start,
                      double bytes) {
    bench_timed_backend *t = (bench_timed_backend *)b;
    bench_op *op = find_op(t, name, w);
    double seconds = bench_now() - start;
    op->seconds += seconds;
    t->seconds += seconds;
    op->calls++;
    op->bytes += bytes;
    t->bytes += bytes;
    return op;
}

static void count_work(plumb_backend *b, bench_op *op, bench_work work, double flops) {
    op->flops[work] += flops;
    ((bench_timed_backend *)b)->flops[work] += flops;
}

static double weight_bytes(const plumb_matrix *w) {
    return (double)bench_matrix_bytes(w->type, w->n, w->k);
}

static double weight_flops(const plumb_matrix *w, int64_t rows) {
    return 2 * (double)w->n * (double)w->k * (double)rows;
}

static bench_work quantised_work(const plumb_matrix *w) {
    return w->type == PLUMB_MATRIX_FP4 ? BENCH_WORK_FP4 : BENCH_WORK_FP8;
}

/* ---- Passed on as they are ------------------------------------------------------------------ */

static void timed_close(plumb_backend *b) { (void)b; }

static void *timed_allocate(plumb_backend *b, int64_t bytes) {
    return inner_of(b)->ops->allocate(inner_of(b), bytes);
}

static int64_t timed_working_bytes(plumb_backend *b, int64_t rows, int64_t widest, int64_t places,
                                   int64_t inter) {
    return inner_of(b)->ops->working_bytes(inner_of(b), rows, widest, places, inter);
}

static void timed_release(plumb_backend *b, void *memory) {
    inner_of(b)->ops->release(inner_of(b), memory);
}

static void timed_begin(plumb_backend *b) { inner_of(b)->ops->begin(inner_of(b)); }
static void timed_end(plumb_backend *b) { inner_of(b)->ops->end(inner_of(b)); }
static void *timed_prepare(plumb_backend *b, const plumb_matrix *w, int64_t *bytes) {
    return inner_of(b)->ops->prepare(inner_of(b), w, bytes);
}

static void timed_wait(plumb_backend *b) { inner_of(b)->ops->wait(inner_of(b)); }
static int64_t timed_memory_limit(plumb_backend *b) {
    return inner_of(b)->ops->memory_limit(inner_of(b));
}
static plumb_status timed_check(plumb_backend *b) { return inner_of(b)->ops->check(inner_of(b)); }

static int64_t timed_quantized_bytes(plumb_backend *b, int64_t rows, int64_t k) {
    return inner_of(b)->ops->quantized_bytes(inner_of(b), rows, k);
}

/* ---- Operations on rows: their operands are small and in the caches ------------------------- */

#define TIMED_ROWS(op, ...)                                    \
    do {                                                       \
        double start = bench_now();                            \
        inner_of(b)->ops->op(inner_of(b), __VA_ARGS__);        \
        (void)note(b, #op, NULL, start, 0);                    \
    } while (0)

static void timed_copy(plumb_backend *b, const void *from, void *to, int64_t bytes) {
    TIMED_ROWS(copy, from, to, bytes);
}

static void timed_quantize(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t k,
                           plumb_quantized *out) {
    TIMED_ROWS(quantize, x, rows, k, out);
}

static void timed_rms_norm(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t width,
                           const float *w, float eps, plumb_act *y) {
    TIMED_ROWS(rms_norm, x, rows, width, w, eps, y);
}

static void timed_rotate(plumb_backend *b, plumb_act *x, int64_t rows, int64_t heads, int64_t dim,
                         int64_t pairs, const float *cosine, const float *sine, bool inverse) {
    TIMED_ROWS(rotate, x, rows, heads, dim, pairs, cosine, sine, inverse);
}

static void timed_hc_collapse(plumb_backend *b, const plumb_act *h, const float *pre, int64_t rows,
                              int64_t hidden, plumb_act *x) {
    TIMED_ROWS(hc_collapse, h, pre, rows, hidden, x);
}

static void timed_hc_update(plumb_backend *b, plumb_act *h, const plumb_act *a, const float *post,
                            const float *comb, int64_t rows, int64_t hidden) {
    TIMED_ROWS(hc_update, h, a, post, comb, rows, hidden);
}

static void timed_pack_window(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                              uint8_t *packed) {
    TIMED_ROWS(pack_window, x, rows, dim, packed);
}

static void timed_pack_compressed(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                                  uint8_t *packed) {
    TIMED_ROWS(pack_compressed, x, rows, dim, packed);
}

static void timed_pack_index(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                             uint8_t *packed) {
    TIMED_ROWS(pack_index, x, rows, dim, packed);
}

static void timed_compress_pairs(plumb_backend *b, const float *value, const float *gate,
                                 int64_t pairs, int64_t dim, plumb_act *latent) {
    TIMED_ROWS(compress_pairs, value, gate, pairs, dim, latent);
}

static void timed_index_weights(plumb_backend *b, const plumb_act *proj, int64_t count,
                                float factor, float *weight) {
    TIMED_ROWS(index_weights, proj, count, factor, weight);
}

/* k different experts in ascending order for one row, from a hash of its logits. */
static void draw_route(const float *logits, int64_t experts, int64_t k, int32_t *ids) {
    uint64_t state = 0;
    for (int64_t e = 0; e < experts; e++) {
        uint32_t bits;
        memcpy(&bits, &logits[e], sizeof bits);
        state = (state ^ bits) * UINT64_C(0x9E3779B97F4A7C15);
    }
    for (int64_t n = 0; n < k;) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int32_t id = (int32_t)((state >> 33) % (uint64_t)experts);
        int64_t at = n;
        while (at > 0 && ids[at - 1] > id) at--;
        if (at > 0 && ids[at - 1] == id) continue;
        memmove(ids + at + 1, ids + at, (size_t)(n++ - at) * sizeof *ids);
        ids[at] = id;
    }
}

static void timed_route(plumb_backend *b, const float *logits, const float *bias, int64_t rows,
                        int64_t experts, int64_t k, float route_scale, int32_t *ids,
                        float *weights) {
    TIMED_ROWS(route, logits, bias, rows, experts, k, route_scale, ids, weights);
    bench_timed_backend *t = (bench_timed_backend *)b;
    for (int64_t r = 0; t->even_routes && r < rows; r++)
        draw_route(logits + r * experts, experts, k, ids + r * k);
    if (t->seconds_routed < 0) t->seconds_routed = t->seconds;
}

static void timed_engram_gate(plumb_backend *b, plumb_act *h, const plumb_act *kv,
                              const float *query_w, const float *key_w, const uint8_t *live,
                              int64_t rows, int64_t hidden, float eps, float factor) {
    TIMED_ROWS(engram_gate, h, kv, query_w, key_w, live, rows, hidden, eps, factor);
}

/* ---- Operations with weights ---------------------------------------------------------------- */

static void timed_linear_quantized(plumb_backend *b, const plumb_quantized *x, int64_t rows,
                                   const plumb_matrix *w, plumb_act *y) {
    double start = bench_now();
    inner_of(b)->ops->linear_quantized(inner_of(b), x, rows, w, y);
    bench_op *op = note(b, "linear_quantized", w, start, weight_bytes(w));
    count_work(b, op, quantised_work(w), weight_flops(w, rows));
}

static void timed_linear(plumb_backend *b, const plumb_act *x, int64_t x_stride, int64_t rows,
                         const plumb_matrix *w, plumb_act *y, float *y_float, int64_t y_stride) {
    double start = bench_now();
    inner_of(b)->ops->linear(inner_of(b), x, x_stride, rows, w, y, y_float, y_stride);
    bench_work work = w->type == PLUMB_MATRIX_FP8 ? BENCH_WORK_LANES_FP8 : BENCH_WORK_LANES;
    count_work(b, note(b, "linear", w, start, weight_bytes(w)), work, weight_flops(w, rows));
}

static void timed_hc_mix(plumb_backend *b, const plumb_act *h, int64_t rows, int64_t hidden,
                         const plumb_matrix *fn, const float *base, const float *scale,
                         float norm_eps, float hc_eps, int64_t iterations, float *pre, float *post,
                         float *comb) {
    double start = bench_now();
    inner_of(b)->ops->hc_mix(inner_of(b), h, rows, hidden, fn, base, scale, norm_eps, hc_eps,
                             iterations, pre, post, comb);
    bench_op *op = note(b, "hc_mix", fn, start, weight_bytes(fn));
    count_work(b, op, BENCH_WORK_LANES, weight_flops(fn, rows));
}

static void timed_experts(plumb_backend *b, const plumb_quantized *x,
                          const plumb_expert_group *groups, int64_t n_groups, const float *weights,
                          int64_t slots_per_row, float limit, plumb_act *outputs) {
    double start = bench_now(), bytes = 0;
    inner_of(b)->ops->experts(inner_of(b), x, groups, n_groups, weights, slots_per_row, limit,
                              outputs);
    for (int64_t g = 0; g < n_groups; g++) {
        const plumb_expert *e = &groups[g].expert;
        bytes += weight_bytes(&e->gate) + weight_bytes(&e->up) + weight_bytes(&e->down);
    }
    bench_op *op = note(b, "experts", NULL, start, bytes);
    for (int64_t g = 0; g < n_groups; g++) {
        const plumb_expert *e = &groups[g].expert;
        count_work(b, op, quantised_work(&e->gate), 3 * weight_flops(&e->gate, groups[g].count));
    }
}

static void timed_experts_sum(plumb_backend *b, const plumb_act *outputs, const int32_t *where,
                              int64_t rows, int64_t slots_per_row, int64_t hidden, plumb_act *out) {
    double start = bench_now();
    inner_of(b)->ops->experts_sum(inner_of(b), outputs, where, rows, slots_per_row, hidden, out);
    (void)note(b, "experts_sum", NULL, start, 0);
}

/* ---- Operations with caches ------------------------------------------------------------------ */

static void timed_attention(plumb_backend *b, const plumb_attention_args *args, int64_t rows) {
    double start = bench_now();
    inner_of(b)->ops->attention(inner_of(b), args, rows);
    int64_t bytes = args->window * plumb__window_row_bytes(args->dim);
    for (int64_t r = 0; args->compressed && r < rows; r++)
        bytes += args->selected_count[r] * plumb__compressed_row_bytes(args->dim);
    (void)note(b, "attention", NULL, start, (double)bytes);
}

/* Every visible key, or those of the pool where one restricts the search. */
static void timed_index_select(plumb_backend *b, const plumb_index_args *args, int64_t rows) {
    double start = bench_now();
    inner_of(b)->ops->index_select(inner_of(b), args, rows);
    int64_t keys = 0;
    for (int64_t r = 0; r < rows; r++)
        keys += args->use_pool ? args->pool_count[r] * args->block_size
                               : (args->position + r + 1) / args->ratio;
    (void)note(b, "index_select", NULL, start,
               (double)(keys * plumb__index_row_bytes(args->dim)));
}

static const plumb_backend_ops timed_ops = {
    .name = "timed",
    .close = timed_close,
    .allocate = timed_allocate,
    .working_bytes = timed_working_bytes,
    .release = timed_release,
    .begin = timed_begin,
    .end = timed_end,
    .prepare = timed_prepare,
    .wait = timed_wait,
    .check = timed_check,
    .memory_limit = timed_memory_limit,
    .copy = timed_copy,
    .quantized_bytes = timed_quantized_bytes,
    .quantize = timed_quantize,
    .linear_quantized = timed_linear_quantized,
    .linear = timed_linear,
    .rms_norm = timed_rms_norm,
    .rotate = timed_rotate,
    .hc_mix = timed_hc_mix,
    .hc_collapse = timed_hc_collapse,
    .hc_update = timed_hc_update,
    .pack_window = timed_pack_window,
    .pack_compressed = timed_pack_compressed,
    .pack_index = timed_pack_index,
    .compress_pairs = timed_compress_pairs,
    .attention = timed_attention,
    .index_weights = timed_index_weights,
    .index_select = timed_index_select,
    .route = timed_route,
    .experts = timed_experts,
    .experts_sum = timed_experts_sum,
    .engram_gate = timed_engram_gate,
};

void bench_timed_backend_init(bench_timed_backend *t, plumb_backend *inner) {
    *t = (bench_timed_backend){.base.ops = &timed_ops, .inner = inner, .seconds_routed = -1};
}

void bench_timed_backend_clear(bench_timed_backend *t) {
    t->ops = 0;
    t->seconds = t->bytes = 0;
    t->seconds_routed = -1;
    memset(t->flops, 0, sizeof t->flops);
}
