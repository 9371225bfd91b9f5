/* The self test of backends: right ones pass, whatever their instructions; one operation that is wrong in
 * a single bit is named, for every operation of the table; so is arithmetic of another kind. */
#include "backend/self_test.h"

#include "backend/cpu/cpu_backend.h"

#include <fenv.h>
#include <stdlib.h>

#include "t.h"

static plumb_backend *open_backend(const char *level) {
    plumb_backend *b = NULL;
    const char *chosen;
    plumb_error err;
    if (plumb__cpu_backend_create(1, level, &b, &chosen, &err) != PLUMB_OK) exit(1);
    return b;
}

static void close_backend(plumb_backend *b) { b->ops->close(b); }

static void right_ones_pass(void) {
    const plumb_cpu_kernels *levels[PLUMB_MAX_LEVELS];
    int n_levels = plumb__cpu_kernel_levels(levels);
    plumb_backend *portable = open_backend("portable");
    for (int l = 0; l < n_levels; l++) {
        plumb_backend *b = open_backend(levels[l]->level);
        plumb_error err = {0};
        plumb_status status = plumb__backend_self_test(b, portable, &err);
        char line[512] = "";
        if (status != PLUMB_OK) plumb_error_line(&err, line, sizeof line);
        T_CHECK(status == PLUMB_OK, "%s: %s", levels[l]->level, line);
        close_backend(b);
    }
    close_backend(portable);
}

/* ---- One wrong bit ------------------------------------------------------------------------------ */

static const plumb_backend_ops *right;

static void flip(void *bytes, int64_t at) { ((uint8_t *)bytes)[at] ^= 1; }
/* The lowest bit of the last element. */
#define FLIP_LAST(array, count) flip(&(array)[(count)-1], 0)

static void copy(plumb_backend *b, const void *from, void *to, int64_t bytes) {
    right->copy(b, from, to, bytes);
    flip(to, bytes - 1);
}

static void quantize(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t k,
                     plumb_quantized *out) {
    right->quantize(b, x, rows, k, out);
    flip(out, 2); /* 512 times element 1, in the portable layout */
}

static void linear_quantized(plumb_backend *b, const plumb_quantized *x, int64_t rows,
                             const plumb_matrix *w, plumb_act *y) {
    right->linear_quantized(b, x, rows, w, y);
    FLIP_LAST(y, rows * w->n);
}

static void linear(plumb_backend *b, const plumb_act *x, int64_t x_stride, int64_t rows,
                   const plumb_matrix *w, plumb_act *y, float *y_float, int64_t y_stride) {
    right->linear(b, x, x_stride, rows, w, y, y_float, y_stride);
    if (y) FLIP_LAST(y, (rows - 1) * y_stride + w->n);
    else FLIP_LAST(y_float, (rows - 1) * y_stride + w->n);
}

static void rms_norm(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t width,
                     const float *w, float eps, plumb_act *y) {
    right->rms_norm(b, x, rows, width, w, eps, y);
    FLIP_LAST(y, rows * width);
}

static void rotate(plumb_backend *b, plumb_act *x, int64_t rows, int64_t heads, int64_t dim,
                   int64_t pairs, const float *cosine, const float *sine, bool inverse) {
    right->rotate(b, x, rows, heads, dim, pairs, cosine, sine, inverse);
    FLIP_LAST(x, rows * heads * dim);
}

static void hc_mix(plumb_backend *b, const plumb_act *h, int64_t rows, int64_t hidden,
                   const plumb_matrix *fn, const float *base, const float *scale, float norm_eps,
                   float hc_eps, int64_t iterations, float *pre, float *post, float *comb) {
    right->hc_mix(b, h, rows, hidden, fn, base, scale, norm_eps, hc_eps, iterations, pre, post,
                  comb);
    FLIP_LAST(comb, rows * 16);
}

static void hc_collapse(plumb_backend *b, const plumb_act *h, const float *pre, int64_t rows,
                        int64_t hidden, plumb_act *x) {
    right->hc_collapse(b, h, pre, rows, hidden, x);
    FLIP_LAST(x, rows * hidden);
}

static void hc_update(plumb_backend *b, plumb_act *h, const plumb_act *a, const float *post,
                      const float *comb, int64_t rows, int64_t hidden) {
    right->hc_update(b, h, a, post, comb, rows, hidden);
    FLIP_LAST(h, rows * 4 * hidden);
}

static void pack_window(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                        uint8_t *packed) {
    right->pack_window(b, x, rows, dim, packed);
    FLIP_LAST(packed, rows * plumb__window_row_bytes(dim));
}

static void pack_compressed(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                            uint8_t *packed) {
    right->pack_compressed(b, x, rows, dim, packed);
    FLIP_LAST(packed, rows * plumb__compressed_row_bytes(dim));
}

static void pack_index(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                       uint8_t *packed) {
    right->pack_index(b, x, rows, dim, packed);
    FLIP_LAST(packed, rows * plumb__index_row_bytes(dim));
}

static void compress_pairs(plumb_backend *b, const float *value, const float *gate, int64_t pairs,
                           int64_t dim, plumb_act *latent) {
    right->compress_pairs(b, value, gate, pairs, dim, latent);
    FLIP_LAST(latent, pairs * dim);
}

static void attention(plumb_backend *b, const plumb_attention_args *args, int64_t rows) {
    right->attention(b, args, rows);
    FLIP_LAST(args->out, rows * args->heads * args->dim);
}

static void index_weights(plumb_backend *b, const plumb_act *proj, int64_t count, float factor,
                          float *weight) {
    right->index_weights(b, proj, count, factor, weight);
    FLIP_LAST(weight, count);
}

static void index_select(plumb_backend *b, const plumb_index_args *args, int64_t rows) {
    right->index_select(b, args, rows);
    FLIP_LAST(args->selected_count, rows);
}

static void index_pool(plumb_backend *b, const plumb_index_args *args, int64_t rows) {
    right->index_select(b, args, rows);
    if (args->build_pool) FLIP_LAST(args->pool, rows * args->pool_blocks);
}

static void route(plumb_backend *b, const float *logits, const float *bias, int64_t rows,
                  int64_t experts, int64_t k, float route_scale, int32_t *ids, float *weights) {
    right->route(b, logits, bias, rows, experts, k, route_scale, ids, weights);
    FLIP_LAST(weights, rows * k);
}

static void experts(plumb_backend *b, const plumb_quantized *x, const plumb_expert_group *groups,
                    int64_t n_groups, const float *weights, int64_t slots_per_row, float limit,
                    plumb_act *outputs) {
    right->experts(b, x, groups, n_groups, weights, slots_per_row, limit, outputs);
    const plumb_expert_group *last = &groups[n_groups - 1];
    FLIP_LAST(outputs, (last->first + last->count) * last->expert.down.n);
}

static void experts_sum(plumb_backend *b, const plumb_act *outputs, const int32_t *where,
                        int64_t rows, int64_t slots_per_row, int64_t hidden, plumb_act *out) {
    right->experts_sum(b, outputs, where, rows, slots_per_row, hidden, out);
    FLIP_LAST(out, rows * hidden);
}

static void engram_gate(plumb_backend *b, plumb_act *h, const plumb_act *kv, const float *query_w,
                        const float *key_w, const uint8_t *live, int64_t rows, int64_t hidden,
                        float eps, float factor) {
    right->engram_gate(b, h, kv, query_w, key_w, live, rows, hidden, eps, factor);
    FLIP_LAST(h, rows * 4 * hidden);
}

static plumb_status check(plumb_backend *b) {
    (void)right->check(b);
    return PLUMB_OK;
}

/* A table with one operation of ours. */
#define WRONG(member) static void put_##member(plumb_backend_ops *ops) { ops->member = member; }
WRONG(copy) WRONG(quantize) WRONG(linear_quantized) WRONG(linear) WRONG(rms_norm) WRONG(rotate)
WRONG(hc_mix) WRONG(hc_collapse) WRONG(hc_update) WRONG(pack_window) WRONG(pack_compressed)
WRONG(pack_index) WRONG(compress_pairs) WRONG(attention) WRONG(index_weights) WRONG(index_select)
WRONG(route) WRONG(experts) WRONG(experts_sum) WRONG(engram_gate) WRONG(check)
static void put_index_pool(plumb_backend_ops *ops) { ops->index_select = index_pool; }

static const struct {
    const char *operation;
    void (*put)(plumb_backend_ops *ops);
} wrong[] = {
    {"copy", put_copy},
    {"quantize", put_quantize},
    {"linear_quantized", put_linear_quantized},
    {"linear", put_linear},
    {"rms_norm", put_rms_norm},
    {"rotate", put_rotate},
    {"hc_mix", put_hc_mix},
    {"hc_collapse", put_hc_collapse},
    {"hc_update", put_hc_update},
    {"pack_window", put_pack_window},
    {"pack_compressed", put_pack_compressed},
    {"pack_index", put_pack_index},
    {"compress_pairs", put_compress_pairs},
    {"attention", put_attention},
    {"index_weights", put_index_weights},
    {"index_select", put_index_select},
    {"index_select", put_index_pool},
    {"route", put_route},
    {"experts", put_experts},
    {"experts_sum", put_experts_sum},
    {"engram_gate", put_engram_gate},
    {"check", put_check},
};
enum { WRONG_ONES = sizeof wrong / sizeof wrong[0] };

/* The error's field names the operation. */
static bool names(const plumb_error *err, const char *operation) {
    char words[96];
    (void)snprintf(words, sizeof words, "self test of cpu: operation %s, kernel ", operation);
    return !strncmp(err->field, words, strlen(words));
}

/* The self test of a backend with another table. */
static plumb_status test_with(const plumb_backend_ops *ops, plumb_error *err) {
    plumb_backend *b = open_backend("portable"), *portable = open_backend("portable");
    right = portable->ops;
    b->ops = ops;
    plumb_status status = plumb__backend_self_test(b, portable, err);
    close_backend(b);
    close_backend(portable);
    return status;
}

static plumb_backend_ops right_ops(void) {
    plumb_backend *b = open_backend("portable");
    plumb_backend_ops ops = *b->ops;
    close_backend(b);
    return ops;
}

static void one_wrong_bit(void) {
    for (int i = 0; i < WRONG_ONES; i++) {
        plumb_backend_ops ops = right_ops();
        wrong[i].put(&ops);
        plumb_error err = {0};
        plumb_status status = test_with(&ops, &err);
        T_CHECK(status == PLUMB_ERROR_UNSUPPORTED && names(&err, wrong[i].operation),
                "%s: %s, %s", wrong[i].operation, plumb_status_name(status), err.field);
        T_CHECK(!strncmp(err.found, "bits ", 5) && !strncmp(err.expected, "bits ", 5) &&
                    strcmp(err.found, err.expected) != 0 && err.offset >= 0,
                "%s: found %s, expected %s", wrong[i].operation, err.found, err.expected);
    }
}

/* The place is that of the first element that differs. */
static void place_of_the_difference(void) {
    plumb_backend_ops ops = right_ops();
    ops.copy = copy;
    plumb_error err = {0};
    (void)test_with(&ops, &err);
    char line[512];
    plumb_error_line(&err, line, sizeof line);
    T_CHECK(err.offset == 4098, "%s", line);
}

/* ---- Other arithmetic ---------------------------------------------------------------------------- */

static fenv_t before;

static void round_up(plumb_backend *b) {
    right->begin(b);
    (void)fegetenv(&before);
    (void)fesetround(FE_UPWARD);
}

static void round_back(plumb_backend *b) {
    (void)fesetround(FE_TONEAREST);
    right->end(b);
}

static void nothing(plumb_backend *b) { (void)b; }

static void other_arithmetic(void) {
    plumb_backend_ops ops = right_ops();
    ops.begin = ops.end = nothing; /* subnormals count */
    plumb_error err = {0};
    T_CHECK(test_with(&ops, &err) == PLUMB_ERROR_UNSUPPORTED, "subnormals");
    T_CHECK(names(&err, "linear"), "%s", err.field);
    ops.begin = round_up;
    ops.end = round_back;
    T_CHECK(test_with(&ops, &err) == PLUMB_ERROR_UNSUPPORTED, "rounding upwards");
}

/* ---- No memory, broken devices -------------------------------------------------------------------- */

static void *no_memory(plumb_backend *b, int64_t bytes) {
    (void)b, (void)bytes;
    return NULL;
}

static plumb_status broken(plumb_backend *b) {
    (void)b;
    return PLUMB_ERROR_IO;
}

static void tests_that_cannot_run(void) {
    plumb_backend_ops ops = right_ops();
    ops.allocate = no_memory;
    plumb_error err = {0};
    T_CHECK(test_with(&ops, &err) == PLUMB_ERROR_MEMORY, "no memory");
    ops = right_ops();
    ops.check = broken;
    T_CHECK(test_with(&ops, &err) == PLUMB_ERROR_IO, "a broken device");
}

T_MAIN({"right_ones_pass", right_ones_pass}, {"one_wrong_bit", one_wrong_bit},
       {"place_of_the_difference", place_of_the_difference}, {"other_arithmetic", other_arithmetic},
       {"tests_that_cannot_run", tests_that_cannot_run})
