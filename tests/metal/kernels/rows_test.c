/* Kernels that treat a row, or an element of one, by itself: bit for bit what the CPU backend's portable
 * kernels give.  Shapes are small and odd, values those of kernels/arena.h; now and then the widths of
 * the released model. */
#include "arith/functions.h"
#include "metal/kernels/harness.h"

#include "t.h"

/* ---- Norm and rotation ------------------------------------------------------------------------- */

static void rms_norm(void) {
    int64_t rows = arena_between(1, 3), width = harness_width(700);
    const float *w = arena_float_block(width, harness_tame());
    const plumb_act *x = arena_act_block(rows * width, harness_finite());
    plumb_act *expected = arena_copy(x, rows * width, sizeof *x);
    plumb_act *got = arena_copy(x, rows * width, sizeof *x);
    harness_cpu->ops->rms_norm(harness_cpu, x, rows, width, w, 1e-20f, expected);
    plumb_metal_rms_norm args = {.width = (uint32_t)width, .eps = 1e-20f};
    harness_call call = harness_begin("rms_norm", &args, sizeof args);
    harness_bind(&call, 2, got, rows * width * 2);
    harness_bind(&call, 3, w, width * 4);
    harness_run(&call, rows, 1, PLUMB_METAL_SIMD);
    T_CHECK(harness_same_acts(expected, got, rows * width), "width %" PRId64, width);
}

static void rotate(void) {
    int64_t rows = arena_between(1, 4), heads = arena_between(1, 5), pairs = arena_between(1, 40);
    int64_t dim = 2 * pairs + arena_between(0, 70), count = rows * heads * dim;
    const float *cosine = arena_float_block(rows * pairs, harness_tame());
    const float *sine = arena_float_block(rows * pairs, harness_tame());
    const plumb_act *x = arena_act_block(count, harness_finite());
    plumb_act *expected = arena_copy(x, count, sizeof *x), *got = arena_copy(x, count, sizeof *x);
    bool inverse = arena_random() % 2;
    harness_cpu->ops->rotate(harness_cpu, expected, rows, heads, dim, pairs, cosine, sine, inverse);
    plumb_metal_rotate args = {.rows = (uint32_t)rows, .heads = (uint32_t)heads,
                               .dim = (uint32_t)dim, .pairs = (uint32_t)pairs, .inverse = inverse};
    harness_call call = harness_begin("rotate", &args, sizeof args);
    harness_bind(&call, 2, got, count * 2);
    harness_bind(&call, 3, cosine, rows * pairs * 4);
    harness_bind(&call, 4, sine, rows * pairs * 4);
    harness_run_flat(&call, rows * heads * pairs);
    T_CHECK(harness_same_acts(expected, got, count), "heads %" PRId64 " dim %" PRId64, heads, dim);
}

/* ---- Hyper-connections ---------------------------------------------------------------------------- */

static void hc_mix(void) {
    int64_t rows = arena_between(1, 3), hidden = harness_width(200), width = 4 * hidden;
    arena_values family = harness_any();
    const plumb_act *h = arena_act_block(rows * width, family);
    float *fn = arena_block(24 * width, sizeof *fn);
    arena_floats(fn, 24 * width, harness_tame());
    if (arena_random() % 4 == 0) fn[arena_between(0, 24 * width - 1)] = plumb__float_of(0x7F800000u);
    arena_seal(fn);
    const float *base = arena_float_block(24, harness_tame());
    const float *scale = arena_float_block(3, ARENA_PLAIN);
    uint32_t iterations = (uint32_t)arena_between(1, 20);
    plumb_matrix matrix = {.type = PLUMB_MATRIX_F32, .n = 24, .k = width, .codes = fn};
    float *expected = arena_block(rows * 24, 4), *got = arena_copy(expected, rows * 24, 4);
    harness_cpu->ops->hc_mix(harness_cpu, h, rows, hidden, &matrix, base, scale, 1e-20f, 1e-6f,
                             iterations, expected, expected + rows * 4, expected + rows * 8);
    bool fault = harness_cpu_fault();
    plumb_metal_hc_mix args = {.hidden = (uint32_t)hidden, .iterations = iterations,
                               .norm_eps = 1e-20f, .hc_eps = 1e-6f};
    harness_call call = harness_begin("hc_mix", &args, sizeof args);
    harness_bind(&call, 2, h, rows * width * 2);
    harness_bind(&call, 3, fn, 24 * width * 4);
    harness_bind(&call, 4, base, 24 * 4);
    harness_bind(&call, 5, scale, 3 * 4);
    harness_bind(&call, 6, got, rows * 4 * 4);
    harness_bind(&call, 7, got + rows * 4, rows * 4 * 4);
    harness_bind(&call, 8, got + rows * 8, rows * 16 * 4);
    harness_threadgroup(&call, 0, 32 * 4);
    bool also = harness_run(&call, rows, 1, PLUMB_METAL_SELECT);
    T_CHECK(fault == also, "hidden %" PRId64 ": fault %d", hidden, fault);
    T_CHECK(fault || harness_same_floats(expected, got, rows * 24),
            "hidden %" PRId64 " iterations %u", hidden, iterations);
}

static void hc_collapse(void) {
    int64_t rows = arena_between(1, 3), hidden = harness_width(700);
    const plumb_act *h = arena_act_block(rows * 4 * hidden, harness_finite());
    const float *pre = arena_float_block(rows * 4, harness_tame());
    HARNESS_OUTPUTS(plumb_act, expected, got, rows * hidden);
    harness_cpu->ops->hc_collapse(harness_cpu, h, pre, rows, hidden, expected);
    plumb_metal_hc args = {.rows = (uint32_t)rows, .hidden = (uint32_t)hidden};
    harness_call call = harness_begin("hc_collapse", &args, sizeof args);
    harness_bind(&call, 2, h, rows * 4 * hidden * 2);
    harness_bind(&call, 3, pre, rows * 4 * 4);
    harness_bind(&call, 4, got, rows * hidden * 2);
    harness_run_flat(&call, rows * hidden);
    T_CHECK(harness_same_acts(expected, got, rows * hidden), "hidden %" PRId64, hidden);
}

static void hc_update(void) {
    int64_t rows = arena_between(1, 3), hidden = harness_width(700), count = rows * 4 * hidden;
    const plumb_act *h = arena_act_block(count, harness_finite());
    const plumb_act *a = arena_act_block(rows * hidden, harness_finite());
    const float *post = arena_float_block(rows * 4, harness_tame());
    const float *comb = arena_float_block(rows * 16, harness_tame());
    plumb_act *expected = arena_copy(h, count, sizeof *h), *got = arena_copy(h, count, sizeof *h);
    harness_cpu->ops->hc_update(harness_cpu, expected, a, post, comb, rows, hidden);
    plumb_metal_hc args = {.rows = (uint32_t)rows, .hidden = (uint32_t)hidden};
    harness_call call = harness_begin("hc_update", &args, sizeof args);
    harness_bind(&call, 2, got, count * 2);
    harness_bind(&call, 3, a, rows * hidden * 2);
    harness_bind(&call, 4, post, rows * 4 * 4);
    harness_bind(&call, 5, comb, rows * 16 * 4);
    harness_run_flat(&call, rows * hidden);
    T_CHECK(harness_same_acts(expected, got, count), "hidden %" PRId64, hidden);
}

/* ---- Cache rows, compressor ------------------------------------------------------------------------ */

static void packs(void) {
    typedef void (*pack)(plumb_backend *, const plumb_act *, int64_t, int64_t, uint8_t *);
    int64_t rows = arena_between(1, 4), dim = 32 * arena_between(1, 17);
    const struct {
        const char *name;
        pack definition;
        int64_t row_bytes, block;
    } cases[] = {
        {"pack_window", harness_cpu->ops->pack_window, plumb__window_row_bytes(dim), 32},
        {"pack_compressed", harness_cpu->ops->pack_compressed, plumb__compressed_row_bytes(dim), 16},
        {"pack_index", harness_cpu->ops->pack_index, plumb__index_row_bytes(dim), 32},
    };
    const plumb_act *x = arena_act_block(rows * dim, harness_finite());
    for (int i = 0; i < 3; i++) {
        HARNESS_OUTPUTS(uint8_t, expected, got, rows * cases[i].row_bytes);
        cases[i].definition(harness_cpu, x, rows, dim, expected);
        plumb_metal_pack args = {.rows = (uint32_t)rows, .dim = (uint32_t)dim};
        harness_call call = harness_begin(cases[i].name, &args, sizeof args);
        harness_bind(&call, 2, x, rows * dim * 2);
        harness_bind(&call, 3, got, rows * cases[i].row_bytes);
        harness_run_flat(&call, rows * dim / cases[i].block);
        T_CHECK(!memcmp(expected, got, (size_t)(rows * cases[i].row_bytes)), "%s, dim %" PRId64,
                cases[i].name, dim);
    }
}

/* Values w1 and -w0 for weights w0 and w1: the sum shows every bit of both, where bf16 would hide them. */
static void balance(float *value, const float *gate, int64_t dim) {
    for (int64_t d = 0; d < dim; d++) {
        float g0 = gate[d], g1 = gate[dim + d], most = g0 > g1 ? g0 : g1;
        float e0 = plumb__exp(g0 - most), e1 = plumb__exp(g1 - most);
        value[d] = e1 / (e0 + e1);
        value[dim + d] = -(e0 / (e0 + e1));
    }
}

static void compress_pairs(void) {
    int64_t pairs = arena_between(1, 4), dim = harness_width(600);
    const float *gate = arena_float_block(2 * pairs * dim, harness_tame());
    float *value = arena_block(2 * pairs * dim, sizeof *value);
    arena_floats(value, 2 * pairs * dim, harness_tame());
    if (arena_random() % 2)
        for (int64_t p = 0; p < pairs; p++) balance(value + 2 * p * dim, gate + 2 * p * dim, dim);
    arena_seal(value);
    HARNESS_OUTPUTS(plumb_act, expected, got, pairs * dim);
    harness_cpu->ops->compress_pairs(harness_cpu, value, gate, pairs, dim, expected);
    plumb_metal_compress_pairs args = {.pairs = (uint32_t)pairs, .dim = (uint32_t)dim};
    harness_call call = harness_begin("compress_pairs", &args, sizeof args);
    harness_bind(&call, 2, value, 2 * pairs * dim * 4);
    harness_bind(&call, 3, gate, 2 * pairs * dim * 4);
    harness_bind(&call, 4, got, pairs * dim * 2);
    harness_run_flat(&call, pairs * dim);
    T_CHECK(harness_same_acts(expected, got, pairs * dim), "dim %" PRId64, dim);
}

/* ---- Engram ------------------------------------------------------------------------------------------ */

static void check_engram_gate(int64_t rows, int64_t hidden, const plumb_act *h, const plumb_act *kv,
                              const float *query_w, const float *key_w, float factor) {
    int64_t count = rows * 4 * hidden;
    uint8_t *live = arena_block(rows, 1);
    for (int64_t i = 0; i < rows; i++) live[i] = arena_random() % 4 != 0;
    plumb_act *expected = arena_copy(h, count, sizeof *h), *got = arena_copy(h, count, sizeof *h);
    harness_cpu->ops->engram_gate(harness_cpu, expected, kv, query_w, key_w, live, rows, hidden,
                                  1e-20f, factor);
    plumb_metal_engram_gate args = {.hidden = (uint32_t)hidden, .eps = 1e-20f, .factor = factor};
    harness_call call = harness_begin("engram_gate", &args, sizeof args);
    harness_bind(&call, 2, got, count * 2);
    harness_bind(&call, 3, kv, rows * 5 * hidden * 2);
    harness_bind(&call, 4, query_w, 4 * hidden * 4);
    harness_bind(&call, 5, key_w, 4 * hidden * 4);
    harness_bind(&call, 6, live, rows);
    harness_run(&call, 4, rows, PLUMB_METAL_SIMD);
    T_CHECK(harness_same_acts(expected, got, count), "hidden %" PRId64, hidden);
}

static void engram_gate(void) {
    int64_t rows = arena_between(1, 3), hidden = harness_width(300);
    check_engram_gate(rows, hidden, arena_act_block(rows * 4 * hidden, harness_finite()),
                      arena_act_block(rows * 5 * hidden, harness_tame()),
                      arena_float_block(4 * hidden, harness_tame()),
                      arena_float_block(4 * hidden, harness_tame()), 0.0139754248f /* 5120^-0.5 */);
}

/* Every bit of a gate: terms of one sign, so that the gate is far from a half and follows its argument;
 * values so small that adding them to odd elements of h moves no sum, and those elements set to what
 * takes away the upper half of what is added. */
static void engram_gate_bits(void) {
    enum { HIDDEN = 160 };
    plumb_act *h = arena_block(4 * HIDDEN, sizeof *h), *kv = arena_block(5 * HIDDEN, sizeof *kv);
    float *query_w = arena_block(4 * HIDDEN, sizeof *query_w);
    const float *key_w = arena_float_block(4 * HIDDEN, ARENA_PLAIN);
    const float factor = 0.1f;
    arena_floats(query_w, 4 * HIDDEN, ARENA_PLAIN);
    arena_acts(h, 4 * HIDDEN, ARENA_PLAIN);
    arena_acts(kv, 5 * HIDDEN, ARENA_PLAIN);
    for (int i = 4 * HIDDEN; i < 5 * HIDDEN; i++) kv[i] = plumb__store(plumb__load(kv[i]) * 0x1p-50f);
    for (int i = 0; i < 4 * HIDDEN; i++)
        if (plumb__load(h[i]) * query_w[i] * key_w[i] * plumb__load(kv[i]) > 0) query_w[i] = -query_w[i];
    for (int i = 1; i < 4 * HIDDEN; i += 2) h[i] = 0;
    plumb_act *first = arena_copy(h, 4 * HIDDEN, sizeof *h);
    uint8_t live = 1;
    harness_cpu->ops->engram_gate(harness_cpu, first, kv, query_w, key_w, &live, 1, HIDDEN, 1e-20f,
                                  factor);
    for (int i = 1; i < 4 * HIDDEN; i += 2) h[i] = first[i] ^ 0x8000;
    check_engram_gate(1, HIDDEN, h, kv, query_w, key_w, factor);
}

/* ---- All of them -------------------------------------------------------------------------------------- */

static void repeat(void (*round)(void), int rounds) {
    arena_seed(21);
    for (int i = 0; i < rounds; i++) {
        round();
        T_CHECK(arena_free_all(), "wrote outside");
    }
}

#define REPEATED(name, rounds) \
    static void name##_rounds(void) { repeat(name, rounds); }
REPEATED(rms_norm, 60)
REPEATED(rotate, 60)
REPEATED(hc_mix, 40)
REPEATED(hc_collapse, 40)
REPEATED(hc_update, 40)
REPEATED(packs, 60)
REPEATED(compress_pairs, 60)
REPEATED(engram_gate, 60)
REPEATED(engram_gate_bits, 20)

int main(int argc, char **argv) {
    static const t_test tests[] = {
        {"rms_norm", rms_norm_rounds},       {"rotate", rotate_rounds},
        {"hc_mix", hc_mix_rounds},           {"hc_collapse", hc_collapse_rounds},
        {"hc_update", hc_update_rounds},     {"packs", packs_rounds},
        {"compress_pairs", compress_pairs_rounds}, {"engram_gate", engram_gate_rounds},
        {"engram_gate_bits", engram_gate_bits_rounds}};
    return harness_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));
}
