/* Every kernel of every level of this machine against the portable one, bit for bit.
 *
 *     kernels_test [SEED|random] [KERNEL...]
 *
 * Shapes are random and hostile, values come from the families of arena.h, starts are misaligned,
 * all memory is guarded on both sides and inputs are read-only.  Where values are not finite the
 * flags must agree; what the outputs then hold means nothing.  The seed is printed; a failing run
 * is repeated by giving it. */
#include "arith/float_env.h"
#include "backend/cpu/kernels/kernels.h"
#include "kernels/arena.h"
#include "kernels/levels.h"
#include "kernels/notes.h"

#include <stdlib.h>
#include <time.h>

#include "t.h"

static const plumb_cpu_kernels *portable = &plumb__cpu_kernels_portable;
static const plumb_cpu_kernels *level; /* the one under test */

/* ---- Comparisons --------------------------------------------------------------------------------
 */

static bool same_bytes(const void *a, const void *b, int64_t bytes) {
    return !memcmp(a, b, (size_t)bytes);
}

/* Equal bits, or both NaN: which NaN a meaningless result is, no level promises. */
static bool same_acts(const plumb_act *a, const plumb_act *b, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (a[i] != b[i] && !((a[i] & 0x7FFF) > 0x7F80 && (b[i] & 0x7FFF) > 0x7F80)) return false;
    return true;
}

static bool same_floats(const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t u = plumb__bits_of(a[i]), v = plumb__bits_of(b[i]);
        if (u != v && !((u & 0x7FFFFFFFu) > 0x7F800000u && (v & 0x7FFFFFFFu) > 0x7F800000u))
            return false;
    }
    return true;
}

/* Two outputs of the same size with the same contents: whatever a kernel should leave alone is
 * compared too. */
#define OUTPUTS(type, a, b, count)                                                                 \
    type *a = arena_block(count, sizeof(type)), *b = arena_copy(a, count, sizeof(type))

static arena_values finite_family(void) {
    return (arena_values)arena_between(ARENA_PLAIN, ARENA_HUGE);
}
static arena_values any_family(void) {
    return (arena_values)arena_between(ARENA_PLAIN, ARENA_BROKEN);
}
static arena_values tame_family(void) {
    return (arena_values)arena_between(ARENA_PLAIN, ARENA_EDGES);
}

/* A multiple of 32: often a small one. */
static int64_t blocked_width(int64_t most) {
    return 32 * (arena_random() % 8 ? arena_between(1, 12) : arena_between(1, most / 32));
}

static int64_t any_width(int64_t most) {
    static const int64_t edges[] = {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 127, 128, 1025};
    return arena_random() % 2 ? ARENA_PICK(edges) : arena_between(1, most);
}

/* ---- Quantised operands
 * ---------------------------------------------------------------------------- */

/* A quantised row in the layout of a level; NULL when an element is not finite. */
static const void *quantized_row(const plumb_cpu_kernels *kernels, const plumb_act *x, int64_t k) {
    void *row = arena_scratch(kernels->quantized_row_bytes(k));
    return kernels->quantize_row(x, k, row) ? row : NULL;
}

/* What the row holds, read through the identity matrix: layouts differ between levels.  Values beyond
 * the largest bf16 set the flag. */
static plumb_act *read_back(const plumb_cpu_kernels *kernels, const void *row, int64_t k,
                            bool *finite) {
    uint8_t *codes = arena_block(k * k, 1), *scales = arena_block(k / 32 * (k / 32), 1);
    memset(codes, 0, (size_t)(k * k));
    for (int64_t i = 0; i < k; i++) codes[i * k + i] = 0x38; /* 1.0 */
    memset(scales, 127, (size_t)(k / 32 * (k / 32)));
    plumb_matrix w = {.type = PLUMB_MATRIX_FP8, .n = k, .k = k, .codes = codes, .scales = scales};
    plumb_act *y = arena_block(k, sizeof *y);
    *finite = kernels->linear_quantized(&row, 1, &w, 0, k, y, k,
                                        arena_scratch(kernels->linear_quantized_scratch(k, 1)));
    return y;
}

static void quantize_row(void) {
    int64_t k = blocked_width(256);
    const plumb_act *x = arena_act_block(k, any_family());
    const void *a = quantized_row(portable, x, k), *b = quantized_row(level, x, k);
    T_CHECK(!a == !b, "k %" PRId64 ": flag %d", k, a != NULL);
    if (!a || !b) return;
    bool finite, also;
    plumb_act *values = read_back(portable, a, k, &finite);
    plumb_act *same_values = read_back(level, b, k, &also);
    T_CHECK(finite == also && (!finite || same_bytes(values, same_values, 2 * k)), "k %" PRId64, k);
}

/* Scales: usual, hostile, or so that sums of exponents leave the range of float32. */
static void fill_scales(uint8_t *scales, int64_t n) {
    static const uint8_t hostile[] = {0, 1, 126, 127, 128, 128, 127, 250};
    int kind = (int)arena_between(0, 2);
    for (int64_t i = 0; i < n; i++)
        scales[i] = kind == 0   ? (uint8_t)arena_between(110, 135)
                    : kind == 1 ? ARENA_PICK(hostile)
                                : (uint8_t)arena_between(0, 140);
}

/* Any codes but NaN, or all the largest, of one sign or of alternating ones. */
static void fill_codes(uint8_t *codes, int64_t n, bool fp8) {
    int kind = (int)arena_between(0, 3);
    for (int64_t i = 0; i < n; i++) {
        uint8_t code = (uint8_t)arena_random();
        if (kind == 1) code = fp8 ? 0x7E : 0x77;
        if (kind == 3 && fp8 && arena_random() % 100) code |= 0x20; /* few small ones: worth notes */
        if (kind == 2) code = fp8 ? (uint8_t)(0x7E | (i & 1) << 7) : 0xF7;
        codes[i] = fp8 && (code & 0x7F) == 0x7F ? 0x7E : code;
    }
}

static plumb_matrix coded_matrix(plumb_matrix_type type, int64_t n, int64_t k) {
    bool fp8 = type == PLUMB_MATRIX_FP8;
    int64_t blocks = (k + PLUMB_BLOCK - 1) / PLUMB_BLOCK;
    int64_t code_bytes = fp8 ? n * k : n * k / 2;
    int64_t scale_bytes = (fp8 ? (n + PLUMB_BLOCK - 1) / PLUMB_BLOCK : n) * blocks;
    uint8_t *codes = arena_block(code_bytes, 1), *scales = arena_block(scale_bytes, 1);
    fill_codes(codes, code_bytes, fp8);
    fill_scales(scales, scale_bytes);
    arena_seal(codes);
    arena_seal(scales);
    return (plumb_matrix){.type = type, .n = n, .k = k, .codes = codes, .scales = scales};
}

static void linear_quantized(void) {
    enum { MOST_ROWS = 140 };
    bool many = arena_random() % 16 == 0;
    int64_t k = blocked_width(many ? 512 : 8192), n = arena_between(1, 70);
    int64_t rows = many ? arena_between(60, MOST_ROWS) : arena_between(1, 9);
    int64_t begin = arena_between(0, n - 1), end = arena_between(begin, n),
            stride = n + arena_between(0, 3);
    plumb_matrix_type type = arena_random() % 2 ? PLUMB_MATRIX_FP8 : PLUMB_MATRIX_FP4;
    plumb_matrix w = coded_matrix(type, n, k);
    const void *x[MOST_ROWS], *also_x[MOST_ROWS];
    for (int64_t r = 0; r < rows; r++) {
        const plumb_act *values = arena_act_block(k, finite_family());
        x[r] = quantized_row(portable, values, k);
        also_x[r] = quantized_row(level, values, k);
        arena_seal(x[r]);
        arena_seal(also_x[r]);
    }
    OUTPUTS(plumb_act, a, b, rows * stride);
    bool finite = portable->linear_quantized(
        x, rows, &w, begin, end, a, stride,
        arena_scratch(portable->linear_quantized_scratch(k, rows)));
    if (arena_random() % 2) w.prepared = prepared_notes(level, &w);
    bool also =
        level->linear_quantized(also_x, rows, &w, begin, end, b, stride,
                                arena_scratch(level->linear_quantized_scratch(k, rows)));
    T_CHECK(finite == also, "%s k %" PRId64 " n %" PRId64 ": flag %d",
            type == PLUMB_MATRIX_FP8 ? "fp8" : "fp4", k, n, finite);
    T_CHECK(!finite || same_bytes(a, b, rows * stride * 2),
            "%s k %" PRId64 " n %" PRId64 " [%" PRId64 ", %" PRId64 ") rows %" PRId64,
            type == PLUMB_MATRIX_FP8 ? "fp8" : "fp4", k, n, begin, end, rows);
}

/* ---- Lanes
 * ------------------------------------------------------------------------------------------ */

static plumb_matrix lanes_matrix(int64_t n, int64_t k, arena_values family) {
    plumb_matrix w = {.type = (plumb_matrix_type)arena_between(PLUMB_MATRIX_BF16, PLUMB_MATRIX_FP8),
                      .n = n,
                      .k = k};
    if (w.type == PLUMB_MATRIX_FP8) return coded_matrix(PLUMB_MATRIX_FP8, n, k);
    w.codes = w.type == PLUMB_MATRIX_F32 ? (const void *)arena_float_block(n * k, family)
                                         : (const void *)arena_act_block(n * k, family);
    return w;
}

static void linear(void) {
    bool many = arena_random() % 16 == 0;
    int64_t k = any_width(many ? 600 : 2048), n = arena_between(1, 40);
    int64_t rows = many ? arena_between(60, 140) : arena_between(1, 9);
    int64_t begin = arena_between(0, n - 1), end = arena_between(begin, n);
    int64_t x_stride = k + arena_between(0, 5), y_stride = n + arena_between(0, 3);
    arena_values family = any_family();
    plumb_matrix w = lanes_matrix(n, k, family == ARENA_BROKEN ? ARENA_PLAIN : family);
    const float *x = arena_float_block((rows - 1) * x_stride + k, family);
    void *scratch = arena_scratch(plumb__linear_scratch_bytes(k));
    bool as_float = arena_random() % 2;
    OUTPUTS(plumb_act, a, b, as_float ? 0 : rows * y_stride);
    OUTPUTS(float, fa, fb, as_float ? rows *y_stride : 0);
    bool finite = portable->linear(x, x_stride, rows, &w, begin, end, as_float ? NULL : a,
                                   as_float ? fa : NULL, y_stride, scratch);
    bool also = level->linear(x, x_stride, rows, &w, begin, end, as_float ? NULL : b,
                              as_float ? fb : NULL, y_stride, scratch);
    T_CHECK(finite == also, "type %d k %" PRId64 ": flag %d", (int)w.type, k, finite);
    if (!finite) return;
    T_CHECK(as_float ? same_bytes(fa, fb, rows * y_stride * 4)
                     : same_bytes(a, b, rows * y_stride * 2),
            "type %d k %" PRId64 " n %" PRId64 " [%" PRId64 ", %" PRId64 ") rows %" PRId64,
            (int)w.type, k, n, begin, end, rows);
}

static void widen(void) {
    int64_t n = any_width(4096);
    const plumb_act *x = arena_act_block(n, any_family());
    OUTPUTS(float, a, b, n);
    portable->widen(x, n, a);
    level->widen(x, n, b);
    T_CHECK(same_floats(a, b, n), "n %" PRId64, n);
}

static void mean_square(void) {
    int64_t n = any_width(4096);
    const float *x = arena_float_block(n, finite_family());
    float a = portable->mean_square(x, n), b = level->mean_square(x, n);
    T_CHECK(same_floats(&a, &b, 1), "n %" PRId64, n);
}

/* What lies between the rows of the result stays as it was. */
static void lane_products(void) {
    int64_t rows = arena_between(1, 5), columns = arena_between(1, 9), n = blocked_width(4096);
    int64_t stride = columns + arena_between(0, 3);
    const float *x = arena_float_block(rows * n, finite_family());
    const float *y = arena_float_block(columns * n, finite_family());
    OUTPUTS(float, a, b, rows * stride);
    memset(a, 0, (size_t)(rows * stride) * sizeof *a);
    memset(b, 0, (size_t)(rows * stride) * sizeof *b);
    portable->lane_products(x, rows, y, columns, n, a, stride);
    level->lane_products(x, rows, y, columns, n, b, stride);
    T_CHECK(same_floats(a, b, rows * stride), "%" PRId64 " by %" PRId64 " of %" PRId64, rows,
            columns, n);
}

static void rms_norm(void) {
    int64_t width = any_width(4096);
    const float *w = arena_float_block(width, tame_family());
    float *scratch = arena_scratch(width * 4);
    const plumb_act *x = arena_act_block(width, finite_family());
    plumb_act *a = arena_copy(x, width, sizeof *a), *b = arena_copy(x, width, sizeof *b);
    bool in_place = arena_random() % 2;
    portable->rms_norm(in_place ? a : x, width, w, 1e-20f, a, scratch);
    level->rms_norm(in_place ? b : x, width, w, 1e-20f, b, scratch);
    T_CHECK(same_acts(a, b, width), "width %" PRId64, width);
}

static void rotate(void) {
    int64_t heads = arena_between(1, 5), pairs = arena_between(1, 40);
    int64_t dim = 2 * pairs + arena_between(0, 70);
    const float *cosine = arena_float_block(pairs, tame_family());
    const float *sine = arena_float_block(pairs, tame_family());
    const plumb_act *x = arena_act_block(heads * dim, finite_family());
    plumb_act *a = arena_copy(x, heads * dim, sizeof *a),
              *b = arena_copy(x, heads * dim, sizeof *b);
    bool inverse = arena_random() % 2;
    portable->rotate(a, heads, dim, pairs, cosine, sine, inverse);
    level->rotate(b, heads, dim, pairs, cosine, sine, inverse);
    T_CHECK(same_acts(a, b, heads * dim), "heads %" PRId64 " dim %" PRId64 " pairs %" PRId64, heads,
            dim, pairs);
}

/* ---- Hyper-connections
 * -------------------------------------------------------------------------------- */

static void hc_coefficients(void) {
    const float *m = arena_float_block(24, tame_family()),
                *base = arena_float_block(24, tame_family());
    const float *scale = arena_float_block(3, ARENA_PLAIN);
    int64_t iterations = arena_between(1, 20);
    float r = *arena_float_block(1, ARENA_PLAIN);
    OUTPUTS(float, a, b, 24);
    portable->hc_coefficients(m, r, base, scale, 1e-6f, iterations, a, a + 4, a + 8);
    level->hc_coefficients(m, r, base, scale, 1e-6f, iterations, b, b + 4, b + 8);
    T_CHECK(same_floats(a, b, 24), "iterations %" PRId64, iterations);
}

static void hc_collapse(void) {
    int64_t hidden = any_width(2048);
    const plumb_act *h = arena_act_block(4 * hidden, finite_family());
    const float *pre = arena_float_block(4, tame_family());
    OUTPUTS(plumb_act, a, b, hidden);
    portable->hc_collapse(h, pre, hidden, a);
    level->hc_collapse(h, pre, hidden, b);
    T_CHECK(same_acts(a, b, hidden), "hidden %" PRId64, hidden);
}

static void hc_update(void) {
    int64_t hidden = any_width(2048);
    const plumb_act *h = arena_act_block(4 * hidden, finite_family());
    const plumb_act *added = arena_act_block(hidden, finite_family());
    const float *post = arena_float_block(4, tame_family()),
                *comb = arena_float_block(16, tame_family());
    plumb_act *a = arena_copy(h, 4 * hidden, sizeof *a), *b = arena_copy(h, 4 * hidden, sizeof *b);
    portable->hc_update(a, added, post, comb, hidden);
    level->hc_update(b, added, post, comb, hidden);
    T_CHECK(same_acts(a, b, 4 * hidden), "hidden %" PRId64, hidden);
}

/* ---- Cache rows, compressor, attention
 * ------------------------------------------------------------------ */

static void packs(void) {
    int64_t dim = blocked_width(1024);
    const float *x = arena_float_block(dim, finite_family());
    const struct {
        void (*definition)(const float *, int64_t, uint8_t *),
            (*tested)(const float *, int64_t, uint8_t *);
        int64_t bytes;
    } cases[] = {
        {portable->pack_window, level->pack_window, plumb__window_row_bytes(dim)},
        {portable->pack_compressed, level->pack_compressed, plumb__compressed_row_bytes(dim)},
        {portable->pack_index, level->pack_index, plumb__index_row_bytes(dim)},
    };
    for (int i = 0; i < 3; i++) {
        OUTPUTS(uint8_t, a, b, cases[i].bytes);
        cases[i].definition(x, dim, a);
        cases[i].tested(x, dim, b);
        T_CHECK(same_bytes(a, b, cases[i].bytes), "format %d, dim %" PRId64, i, dim);
    }
}

static void compress_pair(void) {
    int64_t dim = any_width(1024);
    const float *value = arena_float_block(2 * dim, tame_family());
    const float *gate = arena_float_block(2 * dim, tame_family());
    OUTPUTS(plumb_act, a, b, dim);
    portable->compress_pair(value, gate, dim, a);
    level->compress_pair(value, gate, dim, b);
    T_CHECK(same_acts(a, b, dim), "dim %" PRId64, dim);
}

/* `rows` packed rows of random values. */
static uint8_t *packed_rows(int64_t rows, int64_t dim, int64_t row_bytes,
                            void (*pack)(const float *, int64_t, uint8_t *)) {
    uint8_t *packed = arena_block(rows * row_bytes, 1);
    float *x = arena_block(dim, sizeof *x);
    for (int64_t r = 0; r < rows; r++) {
        arena_floats(x, dim, tame_family());
        pack(x, dim, packed + r * row_bytes);
    }
    arena_seal(packed);
    return packed;
}

/* Ascending positions below `below`, each taken with a chance; returns how many. */
static int32_t ascending(int32_t *list, int64_t most, int64_t below) {
    int32_t n = 0;
    for (int32_t i = 0; i < below && n < most; i++)
        if (arena_random() % 2) list[n++] = i;
    return n;
}

static void attention(void) {
    int64_t rows = arena_between(1, 3), heads = arena_between(1, 6), dim = 32 * arena_between(1, 4);
    int64_t window = arena_between(1, 150), position = arena_between(0, 250), keys = 100;
    int64_t stride = arena_between(1, 60), row = arena_between(0, rows - 1);
    int64_t begin = arena_between(0, heads - 1), end = arena_between(begin + 1, heads);
    bool compressed = arena_random() % 4 != 0;
    int32_t *selected = arena_block(rows * stride, sizeof *selected);
    int32_t *counts = arena_block(rows, sizeof *counts);
    for (int64_t r = 0; r < rows; r++) counts[r] = ascending(selected + r * stride, stride, keys);
    plumb_attention_args args = {
        .query = arena_act_block(rows * heads * dim, tame_family()),
        .heads = heads,
        .dim = dim,
        .window = window,
        .position = position,
        .ring = packed_rows(window, dim, plumb__window_row_bytes(dim), portable->pack_window),
        .chunk = packed_rows(rows, dim, plumb__window_row_bytes(dim), portable->pack_window),
        .chunk_position = position,
        .compressed = compressed ? packed_rows(keys, dim, plumb__compressed_row_bytes(dim),
                                               portable->pack_compressed)
                                 : NULL,
        .selected = selected,
        .selected_count = counts,
        .selected_stride = stride,
        .sink = arena_float_block(heads, tame_family()),
        .scale = 0.125f};
    OUTPUTS(plumb_act, a, b, rows * heads * dim);
    float *scratch = arena_scratch(4 * plumb__attention_scratch(dim, end - begin, window + stride));
    args.out = a;
    portable->attention(&args, row, begin, end, scratch);
    args.out = b;
    level->attention(&args, row, begin, end, scratch);
    T_CHECK(same_acts(a, b, rows * heads * dim),
            "heads %" PRId64 " to %" PRId64 " dim %" PRId64 " window %" PRId64 " position %" PRId64,
            begin, end, dim, window, position);
}

static void index_scores(void) {
    int64_t rows = arena_between(1, 3), heads = arena_between(1, 8), dim = 32 * arena_between(1, 4);
    int64_t keys = arena_between(1, 120), row_bytes = plumb__index_row_bytes(dim);
    int64_t row = arena_between(0, rows - 1);
    plumb_index_args args = {.query =
                                 packed_rows(rows * heads, dim, row_bytes, portable->pack_index),
                             .weight = arena_float_block(rows * heads, any_family()),
                             .keys = packed_rows(keys, dim, row_bytes, portable->pack_index),
                             .heads = heads,
                             .dim = dim};
    int32_t *list = arena_block(keys, sizeof *list);
    bool listed = arena_random() % 2;
    int64_t count = listed ? ascending(list, keys, keys) : keys;
    float *scratch = arena_scratch(4 * plumb__index_scratch(heads, dim));
    OUTPUTS(float, a, b, count);
    bool finite = portable->index_scores(&args, row, listed ? list : NULL, count, a, scratch);
    bool also = level->index_scores(&args, row, listed ? list : NULL, count, b, scratch);
    T_CHECK(finite == also, "flag %d", finite);
    T_CHECK(!finite || same_bytes(a, b, 4 * count),
            "heads %" PRId64 " dim %" PRId64 " keys %" PRId64, heads, dim, count);
}

/* ---- Router, experts, Engram
 * --------------------------------------------------------------------------- */

static void route(void) {
    int64_t experts = arena_between(1, 384), k = arena_between(1, experts < 8 ? experts : 8);
    const float *logits = arena_float_block(experts, any_family());
    const float *bias = arena_float_block(experts, tame_family());
    float *scratch = arena_scratch(2 * experts * 4);
    OUTPUTS(int32_t, ia, ib, k);
    OUTPUTS(float, wa, wb, k);
    bool finite = portable->route(logits, bias, experts, k, 1.5f, ia, wa, scratch);
    bool also = level->route(logits, bias, experts, k, 1.5f, ib, wb, scratch);
    T_CHECK(finite == also, "experts %" PRId64 ": flag %d", experts, finite);
    if (finite)
        T_CHECK(same_bytes(ia, ib, 4 * k) && same_floats(wa, wb, k),
                "experts %" PRId64 " k %" PRId64, experts, k);
}

static void swiglu(void) {
    int64_t n = any_width(2048);
    const plumb_act *gate = arena_act_block(n, finite_family()),
                    *up = arena_act_block(n, finite_family());
    float weight = *arena_float_block(1, tame_family()), limit = arena_random() % 2 ? 10.0f : 1.5f;
    plumb_act *a = arena_copy(gate, n, sizeof *a), *b = arena_copy(gate, n, sizeof *b);
    bool in_place = arena_random() % 2;
    portable->swiglu(in_place ? a : gate, up, weight, limit, n, a);
    level->swiglu(in_place ? b : gate, up, weight, limit, n, b);
    T_CHECK(same_acts(a, b, n), "n %" PRId64, n);
}

static void moe_sum(void) {
    int64_t slots = arena_between(1, 9), hidden = any_width(2048);
    const plumb_act *y[9];
    for (int64_t i = 0; i < slots; i++) y[i] = arena_act_block(hidden, finite_family());
    OUTPUTS(plumb_act, a, b, hidden);
    portable->moe_sum(y, slots, hidden, a);
    level->moe_sum(y, slots, hidden, b);
    T_CHECK(same_acts(a, b, hidden), "slots %" PRId64 " hidden %" PRId64, slots, hidden);
}

static void engram_gate(void) {
    int64_t hidden = any_width(2048);
    const plumb_act *h = arena_act_block(4 * hidden, finite_family());
    const plumb_act *kv = arena_act_block(5 * hidden, tame_family());
    const float *query_w = arena_float_block(4 * hidden, tame_family());
    const float *key_w = arena_float_block(4 * hidden, tame_family());
    plumb_act *a = arena_copy(h, 4 * hidden, sizeof *a), *b = arena_copy(h, 4 * hidden, sizeof *b);
    float *scratch = arena_scratch(3 * hidden * 4);
    portable->engram_gate(a, kv, query_w, key_w, hidden, 1e-20f, 0.0139754248f, scratch);
    level->engram_gate(b, kv, query_w, key_w, hidden, 1e-20f, 0.0139754248f, scratch);
    T_CHECK(same_acts(a, b, 4 * hidden), "hidden %" PRId64, hidden);
}

/* ---- All of them
 * ------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    void (*run)(void);
    int rounds;
} kernels[] = {
    {"quantize_row", quantize_row, 600},
    {"linear_quantized", linear_quantized, 300},
    {"linear", linear, 400},
    {"widen", widen, 200},
    {"mean_square", mean_square, 300},
    {"lane_products", lane_products, 300},
    {"rms_norm", rms_norm, 300},
    {"rotate", rotate, 400},
    {"hc_coefficients", hc_coefficients, 400},
    {"hc_collapse", hc_collapse, 300},
    {"hc_update", hc_update, 300},
    {"packs", packs, 400},
    {"compress_pair", compress_pair, 300},
    {"attention", attention, 300},
    {"index_scores", index_scores, 300},
    {"route", route, 400},
    {"swiglu", swiglu, 300},
    {"moe_sum", moe_sum, 300},
    {"engram_gate", engram_gate, 200},
};

/* Runs one kernel's rounds; returns whether all were equal and stayed inside their memory. */
static bool run_kernel(int i) {
    int before = t_failures;
    bool intact = true;
    for (int round = 0; round < kernels[i].rounds; round++) {
        kernels[i].run();
        intact &= arena_free_all();
    }
    T_CHECK(intact, "%s %s wrote outside its memory", level->level, kernels[i].name);
    bool ok = t_failures == before;
    printf("%s %s %s (%d rounds)\n", ok ? "ok  " : "FAIL", level->level, kernels[i].name,
           kernels[i].rounds);
    return ok;
}

static bool wanted(int argc, char **argv, const char *name) {
    for (int a = 2; a < argc; a++)
        if (!strcmp(argv[a], name)) return true;
    return argc <= 2;
}

int main(int argc, char **argv) {
    uint64_t seed = argc < 2                     ? 1
                    : !strcmp(argv[1], "random") ? (uint64_t)time(NULL)
                                                 : strtoull(argv[1], NULL, 10);
    const plumb_cpu_kernels *levels[PLUMB_MAX_LEVELS];
    int n_levels = plumb__cpu_kernel_levels(levels), passed = 0, failed = 0;
    printf("seed %" PRIu64 "\n", seed);
    for (int l = 0; l < KNOWN_LEVELS; l++)
        if (!find_level(known_levels[l])) printf("skipped: no %s here\n", known_levels[l]);
    arena_seed(seed);
    uint64_t modes;
    plumb__float_env_enter(&modes);
    for (int l = 0; l < n_levels; l++) {
        level = levels[l]; /* the portable one too: for the guards around its memory */
        for (int i = 0; i < (int)(sizeof kernels / sizeof kernels[0]); i++) {
            if (!wanted(argc, argv, kernels[i].name)) continue;
            if (run_kernel(i))
                passed++;
            else
                failed++;
        }
    }
    plumb__float_env_leave(modes);
    printf("%d passed, %d failed\n", passed, failed);
    return failed || passed == 0;
}
