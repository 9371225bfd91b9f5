/* Vectors for operations on single rows: norms, rotation, hyper-connections, cache rows, router, Engram. */
#include "arith/functions.h"
#include "arith/lanes.h"
#include "backend/self_test_trial.h"

/* A factor w for which w * value lies half way between two bf16 numbers, or one float above: the least
 * change of `value` rounds the product to the other side. */
static float edge_factor(plumb_trial *t, float value) {
    uint32_t place = (uint32_t)plumb__trial_between(t, 0, 127) << 16;
    uint32_t above = (uint32_t)plumb__trial_between(t, 0, 1);
    float target = plumb__float_of(0x3F808000u + place + above);
    float w = target / value;
    for (int step = -8; step <= 8; step++) {
        float candidate = plumb__float_of(plumb__bits_of(w) + (uint32_t)step);
        if (candidate * value == target) return candidate;
    }
    return w;
}

static float reciprocal_root(float squares, int64_t n, float eps) {
    return 1.0f / plumb__sqrt(squares / (float)n + eps);
}

/* A row that has another norm when its squares are simply added one by one. */
static plumb_act *row_with_an_order(plumb_trial *t, int64_t n, float eps, float *wide, float *r) {
    plumb_act *x = plumb__trial_memory(t, n, sizeof *x);
    float in_turn;
    do {
        in_turn = 0.0f;
        for (int64_t i = 0; i < n; i++) {
            x[i] = plumb__store(plumb__trial_number(t, -6, 6));
            wide[i] = plumb__load(x[i]);
            in_turn = plumb__fma(wide[i], wide[i], in_turn);
        }
        *r = reciprocal_root(plumb__lanes_dot(wide, wide, n), n, eps);
    } while (*r == reciprocal_root(in_turn, n, eps));
    return x;
}

static void rms_norm(plumb_trial *t) {
    enum { CALLS = 2, WIDTH = 203 };
    const float eps = 1e-6f;
    for (int call = 0; call < CALLS; call++) {
        float *w = plumb__trial_memory(t, WIDTH, sizeof *w), wide[WIDTH], r;
        plumb_act *x = row_with_an_order(t, WIDTH, eps, wide, &r);
        plumb_act *y = plumb__trial_acts(t, 2 * WIDTH, -6, 6); /* x, then any row */
        for (int i = 0; i < WIDTH; i++) {
            w[i] = edge_factor(t, wide[i] * r);
            y[i] = x[i];
        }
        plumb_act *out = call == 0 ? plumb__trial_memory(t, 2 * WIDTH, sizeof *out) : y;
        t->b->ops->rms_norm(t->b, y, 2, WIDTH, w, eps, out); /* the second time in place */
        plumb__trial_result_is(t, out, 2 * WIDTH, sizeof *out);
    }
}

/* In every other pair both products are the same: their difference is nothing, unless one of them was
 * never rounded. */
static void rotate_rows(plumb_trial *t, bool inverse) {
    enum { ROWS = 3, HEADS = 3, DIM = 48, PAIRS = 13 };
    plumb_act *x = plumb__trial_acts(t, ROWS * HEADS * DIM, -4, 4);
    float *cosine = plumb__trial_floats(t, ROWS * PAIRS, -3, -1);
    float *sine = plumb__trial_floats(t, ROWS * PAIRS, -3, -1);
    for (int i = 0; i < ROWS * PAIRS; i += 2) sine[i] = cosine[i];
    for (int i = 0; i < ROWS * HEADS * DIM; i += 2) x[i + 1] = x[i];
    t->b->ops->rotate(t->b, x, ROWS, HEADS, DIM, PAIRS, cosine, sine, inverse);
    plumb__trial_result_is(t, x, ROWS * HEADS * DIM, sizeof *x);
}

static void rotate(plumb_trial *t) {
    rotate_rows(t, false);
    rotate_rows(t, true);
}

/* ---- Hyper-connections ------------------------------------------------------------------------- */

enum { COPIES = 4, MIX = 24, HIDDEN = 72 };

static void hc_mix(plumb_trial *t) {
    enum { ROWS = 3 };
    plumb_matrix fn = {.type = PLUMB_MATRIX_F32, .n = MIX, .k = COPIES * HIDDEN};
    fn.codes = plumb__trial_floats(t, MIX * COPIES * HIDDEN, -6, -2);
    const plumb_act *h = plumb__trial_acts(t, ROWS * COPIES * HIDDEN, -4, 4);
    const float *base = plumb__trial_floats(t, MIX, -2, 0);
    const float *scale = plumb__trial_floats(t, 3, -1, 0);
    float *mix = plumb__trial_memory(t, ROWS * MIX, sizeof *mix);
    t->b->ops->hc_mix(t->b, h, ROWS, HIDDEN, &fn, base, scale, 1e-6f, 1e-6f, 20, mix,
                      mix + ROWS * COPIES, mix + ROWS * 2 * COPIES);
    plumb__trial_result_is(t, mix, ROWS * MIX, sizeof *mix);
}

/* Row 0: copies 0 and 1 cancel, then ties of bf16, which go to the even one; others plain. */
static void hc_collapse(plumb_trial *t) {
    enum { ROWS = 3 };
    plumb_act *h = plumb__trial_acts(t, ROWS * COPIES * HIDDEN, -4, 4);
    float *pre = plumb__trial_floats(t, ROWS * COPIES, -2, 0);
    pre[1] = -pre[0];
    pre[2] = 1.0f;
    pre[3] = 0x1p-8f;
    for (int i = 0; i < HIDDEN; i++) {
        h[HIDDEN + i] = h[i];
        if (i % 2) h[2 * HIDDEN + i] = h[3 * HIDDEN + i] = plumb__store(0.0f);
        else h[2 * HIDDEN + i] = plumb__store(1.0f + (float)(i % 8) * 0x1p-7f);
        if (i % 4 == 0) h[3 * HIDDEN + i] = plumb__store(1.0f);
    }
    plumb_act *x = plumb__trial_memory(t, ROWS * HIDDEN, sizeof *x);
    t->b->ops->hc_collapse(t->b, h, pre, ROWS, HIDDEN, x);
    plumb__trial_result_is(t, x, ROWS * HIDDEN, sizeof *x);
}

/* Row 0 cancels in copy 0, row 1 in the mixture of copies. */
static void hc_update(plumb_trial *t) {
    enum { ROWS = 3 };
    plumb_act *h = plumb__trial_acts(t, ROWS * COPIES * HIDDEN, -4, 4);
    plumb_act *a = plumb__trial_acts(t, ROWS * HIDDEN, -4, 4);
    float *post = plumb__trial_floats(t, ROWS * COPIES, -2, 0);
    float *comb = plumb__trial_floats(t, ROWS * COPIES * COPIES, -2, 0);
    for (int j = 1; j < COPIES; j++) comb[j * COPIES] = 0.0f;
    post[0] = -comb[0];
    for (int i = 0; i < HIDDEN; i++) a[i] = h[i];
    plumb_act *second = h + COPIES * HIDDEN;
    for (int i = 0; i < HIDDEN; i++) second[HIDDEN + i] = second[i];
    for (int k = 0; k < COPIES; k++) {
        float *c = comb + COPIES * COPIES;
        c[COPIES + k] = -c[k];
        post[COPIES + k] = c[3 * COPIES + k] = 0.0f;
    }
    t->b->ops->hc_update(t->b, h, a, post, comb, ROWS, HIDDEN);
    plumb__trial_result_is(t, h, ROWS * COPIES * HIDDEN, sizeof *h);
}

/* ---- Cache rows -------------------------------------------------------------------------------- */

typedef void (*pack_op)(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                        uint8_t *packed);

/* The first block of a row holds ties of the format, behind the number that makes its scale 1; the second
 * nothing at all, the third next to nothing. */
static void pack(plumb_trial *t, pack_op op, int64_t row_bytes, const float *ties, int n_ties) {
    enum { ROWS = 5, DIM = 160 };
    plumb_act *x = plumb__trial_acts(t, ROWS * DIM, -4, 4);
    for (int i = 0; i < DIM; i++) {
        if (i < PLUMB_BLOCK) x[i] = plumb__store(ties[i % n_ties]);
        else if (i < 2 * PLUMB_BLOCK) x[i] = plumb__store(i % 2 ? -0.0f : 0.0f);
        else if (i < 3 * PLUMB_BLOCK) x[i] = plumb__store(plumb__trial_number(t, -125, -121));
    }
#ifndef PLUMB_ROUNDING_OFF
    x[2 * PLUMB_BLOCK + 5] = 0x0007; /* subnormals are zeros of their sign */
    x[2 * PLUMB_BLOCK + 6] = 0x8007;
#endif
    uint8_t *packed = plumb__trial_memory(t, ROWS * row_bytes, 1);
    op(t->b, x, ROWS, DIM, packed);
    plumb__trial_result_is(t, packed, ROWS * row_bytes, 1);
}

static const float e4m3_ties[] = {448.0f,  1.0625f,   -1.1875f,  0x1p-10f, 0x3p-10f,
                                  -0x5p-10f, 17.0f,     19.0f,     0x1p-7f,  -0x1p-12f,
                                  432.0f,  -0x1.1p-6f, 0x1.3p-6f, 0.0f,     -0.0f};
static const float e2m1_ties[] = {6.0f,  0.25f, -0.75f, 1.25f, -1.75f, 2.5f,   -3.5f,   5.0f,
                                  -0.25f, 0.75f, -1.25f, 1.75f, -0.0f,  0.249f, 0.2510f, -5.03125f};

static void pack_window(plumb_trial *t) {
    pack(t, t->b->ops->pack_window, plumb__window_row_bytes(160), e4m3_ties,
         sizeof e4m3_ties / sizeof e4m3_ties[0]);
}

static void pack_compressed(plumb_trial *t) {
    pack(t, t->b->ops->pack_compressed, plumb__compressed_row_bytes(160), e2m1_ties,
         sizeof e2m1_ties / sizeof e2m1_ties[0]);
}

static void pack_index(plumb_trial *t) {
    pack(t, t->b->ops->pack_index, plumb__index_row_bytes(160), e2m1_ties,
         sizeof e2m1_ties / sizeof e2m1_ties[0]);
}

/* The second half of a row is chosen so that its two terms nearly cancel. */
static void compress_pairs(plumb_trial *t) {
    enum { PAIRS = 3, DIM = 100 };
    float *value = plumb__trial_floats(t, 2 * PAIRS * DIM, -3, 3);
    float *gate = plumb__trial_floats(t, 2 * PAIRS * DIM, -3, 2);
    for (int p = 0; p < PAIRS; p++)
        for (int i = DIM / 2; i < DIM; i++) {
            float *g = gate + 2 * p * DIM + i, *v = value + 2 * p * DIM + i;
            v[DIM] = -v[0] * plumb__exp(g[0] - g[DIM]);
        }
    plumb_act *latent = plumb__trial_memory(t, PAIRS * DIM, sizeof *latent);
    t->b->ops->compress_pairs(t->b, value, gate, PAIRS, DIM, latent);
    plumb__trial_result_is(t, latent, PAIRS * DIM, sizeof *latent);
}

/* ---- Router and Engram ------------------------------------------------------------------------- */

/* More experts than lanes; equal scores go to the smaller number. */
static void route(plumb_trial *t) {
    enum { ROWS = 5, EXPERTS = 70, K = 6 };
    float *logits = plumb__trial_floats(t, ROWS * EXPERTS, -4, 5);
    float *bias = plumb__trial_floats(t, EXPERTS, -4, -2);
    for (int e = 0; e < EXPERTS; e++) logits[e] = (float)(e / 4 % 5);
    for (int e = 0; e < EXPERTS; e += 2) bias[e + 1] = bias[e];
    int32_t *ids = plumb__trial_memory(t, ROWS * K, sizeof *ids);
    float *weights = plumb__trial_memory(t, ROWS * K, sizeof *weights);
    t->b->ops->route(t->b, logits, bias, ROWS, EXPERTS, K, 1.7f, ids, weights);
    plumb__trial_result_is(t, ids, ROWS * K, sizeof *ids);
    plumb__trial_result_is(t, weights, ROWS * K, sizeof *weights);
}

/* A value that the gate takes next to a bf16 number: its negative there cancels it to nearly nothing. */
static plumb_act value_for(plumb_trial *t, float gate) {
    float best = 1.0f, least = 1.0f;
    for (int i = 0; i < 8; i++) {
        float value = plumb__load(plumb__store(plumb__trial_number(t, 0, 0)));
        float rest = gate * value - plumb__load(plumb__store(gate * value));
        rest = rest < 0.0f ? -rest : rest;
        if (rest == 0.0f || rest >= least) continue;
        best = value;
        least = rest;
    }
    return plumb__store(best);
}

/* In copy 0 the dot product is nothing, so that its gate is known and h can cancel what is added; in copy 1
 * it is what rounding left, magnified. */
static void engram_gate(plumb_trial *t) {
    enum { ROWS = 4, WIDTH = 134 };
    plumb_act *h = plumb__trial_acts(t, ROWS * COPIES * WIDTH, -4, 4);
    plumb_act *kv = plumb__trial_acts(t, ROWS * (COPIES + 1) * WIDTH, -4, 4);
    float *query_w = plumb__trial_floats(t, COPIES * WIDTH, -2, 2);
    float *key_w = plumb__trial_floats(t, COPIES * WIDTH, -2, 2);
    const float gate = plumb__sigmoid(plumb__sqrt(1e-6f));
    for (int i = 0; i < WIDTH; i++) {
        query_w[i] = 0.0f;
        query_w[WIDTH + i] = query_w[WIDTH + i % (WIDTH / 2)] * (i < WIDTH / 2 ? 0x1p20f : 1.0f);
        key_w[WIDTH + i] = key_w[WIDTH + i % (WIDTH / 2)];
    }
    for (int r = 0; r < ROWS; r++) {
        plumb_act *copies = h + r * COPIES * WIDTH, *keys = kv + r * (COPIES + 1) * WIDTH;
        plumb_act *value = keys + COPIES * WIDTH;
        plumb__trial_mirror_acts(copies + WIDTH, WIDTH, 1.0f);
        plumb__trial_mirror_acts(keys + WIDTH, WIDTH, -1.0f);
        for (int i = 0; i < WIDTH; i++) {
            value[i] = value_for(t, gate);
            copies[i] = plumb__store(-gate * plumb__load(value[i]));
        }
    }
    uint8_t *live = plumb__trial_memory(t, ROWS, 1);
    for (int r = 0; r < ROWS; r++) live[r] = r != 1;
    t->b->ops->engram_gate(t->b, h, kv, query_w, key_w, live, ROWS, WIDTH, 1e-20f, 0.0857493f);
    plumb__trial_result_is(t, h, ROWS * COPIES * WIDTH, sizeof *h);
}

/* ---- Faults ------------------------------------------------------------------------------------ */

/* One number that is none, at the end of each operation's input, is told and told once. */
static void check(plumb_trial *t) {
    enum { ROWS = 3, WIDTH = 96, FAULTS = 4 };
    const plumb_backend_ops *ops = t->b->ops;
    int32_t *told = plumb__trial_memory(t, FAULTS + 1, sizeof *told);
    plumb_act *x = plumb__trial_acts(t, ROWS * COPIES * WIDTH, -2, 2);
    float *logits = plumb__trial_floats(t, ROWS * WIDTH, -2, 2);
    float *y = plumb__trial_memory(t, ROWS * WIDTH, sizeof *y);
    int32_t *ids = plumb__trial_memory(t, ROWS, sizeof *ids);
    plumb_matrix w = plumb__trial_matrix(t, PLUMB_MATRIX_BF16, MIX, WIDTH);
    plumb_matrix fn = plumb__trial_matrix(t, PLUMB_MATRIX_F32, MIX, COPIES * WIDTH);
    const float *base = plumb__trial_floats(t, MIX, 0, 0);
    x[ROWS * WIDTH - 1] = plumb__store(plumb__float_of(0x7FC00000u));
    x[ROWS * COPIES * WIDTH - 1] = plumb__store(plumb__float_of(0x7F800000u));
    logits[ROWS * WIDTH - 1] = plumb__float_of(0x7F800000u);
    for (int i = 0; i <= FAULTS; i++) {
        if (i == 0) (void)plumb__trial_quantized(t, x, ROWS, WIDTH);
        if (i == 1) ops->linear(t->b, x, WIDTH, ROWS, &w, NULL, y, MIX);
        if (i == 2) ops->hc_mix(t->b, x, ROWS, WIDTH, &fn, base, base, 1e-6f, 1e-6f, 2, y,
                                y + ROWS * COPIES, y + ROWS * 2 * COPIES);
        if (i == 3) ops->route(t->b, logits, logits, ROWS, WIDTH, 1, 1.0f, ids, y);
        ops->wait(t->b);
        plumb_status status = ops->check(t->b);
        if (status != PLUMB_ERROR_VALUE && status != PLUMB_OK) t->failure = status;
        told[i] = status == PLUMB_ERROR_VALUE;
    }
    plumb__trial_result_is(t, told, FAULTS + 1, sizeof *told);
}

const plumb_trial_case plumb__trial_rows_cases[] = {
    {"rms_norm", "rms_norm", rms_norm, false},
    {"rotate", "rotate", rotate, false},
    {"hc_mix", "hc_mix", hc_mix, false},
    {"hc_collapse", "hc_collapse", hc_collapse, false},
    {"hc_update", "hc_update", hc_update, false},
    {"pack_window", "pack_window", pack_window, false},
    {"pack_compressed", "pack_compressed", pack_compressed, false},
    {"pack_index", "pack_index", pack_index, false},
    {"compress_pairs", "compress_pairs", compress_pairs, false},
    {"route", "route", route, false},
    {"engram_gate", "engram_gate", engram_gate, false},
    {"check", "quantize, linear_bf16, hc_mix or route", check, false},
    {0},
};
