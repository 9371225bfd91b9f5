/* Every operation of the backend's table, with few and many rows, on 1, 2, 3 and 7 threads and at
 * every kernel level: the same bytes as on one thread with the portable kernels. */
#include "backend/cpu/cpu_backend.h"
#include "kernels/arena.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "t.h"

enum { HIDDEN = 256, INTER = 96, HEADS = 8, DIM = 64, PAIRS = 16, WINDOW = 48, TOP_K = 24 };

/* Each case draws its inputs from the seed of its name, runs one operation and returns the hash of
 * what it wrote. */
typedef uint64_t (*operation)(plumb_backend *b, int64_t rows);

static uint64_t hash_of(const void *bytes, int64_t size) {
    return XXH3_64bits(bytes, (size_t)size);
}

static plumb_matrix quantised_matrix(plumb_matrix_type type, int64_t n, int64_t k) {
    bool fp8 = type == PLUMB_MATRIX_FP8;
    int64_t bytes = fp8 ? n * k : n * k / 2, scales = (fp8 ? (n + 31) / 32 : n) * (k / 32);
    uint8_t *codes = arena_block(bytes, 1), *scale = arena_block(scales, 1);
    for (int64_t i = 0; i < bytes; i++) {
        codes[i] = (uint8_t)arena_random();
        if (fp8 && (codes[i] & 127) == 127) codes[i] = 0x7E;
    }
    for (int64_t i = 0; i < scales; i++) scale[i] = (uint8_t)arena_between(118, 124);
    return (plumb_matrix){.type = type, .n = n, .k = k, .codes = codes, .scales = scale};
}

static plumb_quantized *quantised_rows(plumb_backend *b, int64_t rows, int64_t k) {
    plumb_quantized *q = arena_scratch(b->ops->quantized_bytes(b, rows, k));
    b->ops->quantize(b, arena_act_block(rows * k, ARENA_PLAIN), rows, k, q);
    return q;
}

/* The same product without the backend: one call for all columns. */
static uint64_t hash_of_product(plumb_backend *b, const plumb_quantized *x, int64_t rows,
                                const plumb_matrix *w) {
    const plumb_cpu_kernels *kernels = ((plumb_cpu_backend *)b)->kernels;
    const void **row = arena_block(rows, sizeof *row);
    for (int64_t i = 0; i < rows; i++)
        row[i] = (const char *)x + i * kernels->quantized_row_bytes(w->k);
    plumb_act *y = arena_block(rows * w->n, sizeof *y);
    kernels->linear_quantized(row, rows, w, 0, w->n, y, w->n,
                              arena_scratch(kernels->linear_quantized_scratch(w->k, rows)));
    return hash_of(y, rows * w->n * 2);
}

static uint64_t linear_fp8(plumb_backend *b, int64_t rows) {
    plumb_matrix w = quantised_matrix(PLUMB_MATRIX_FP8, 200, HIDDEN);
    plumb_act *y = arena_block(rows * w.n, sizeof *y);
    plumb_quantized *x = quantised_rows(b, rows, HIDDEN);
    b->ops->linear_quantized(b, x, rows, &w, y);
    uint64_t hash = hash_of(y, rows * w.n * 2);
    T_CHECK(hash_of_product(b, x, rows, &w) == hash, "columns are lost");
    int64_t bytes;
    void *notes = b->ops->prepare(b, &w, &bytes);
    w.prepared = notes;
    b->ops->linear_quantized(b, x, rows, &w, y);
    T_CHECK(hash_of(y, rows * w.n * 2) == hash, "notes change a result");
    b->ops->release(b, notes);
    return hash;
}

static uint64_t linear_fp4(plumb_backend *b, int64_t rows) {
    plumb_matrix w = quantised_matrix(PLUMB_MATRIX_FP4, 333, HIDDEN);
    plumb_act *y = arena_block(rows * w.n, sizeof *y);
    b->ops->linear_quantized(b, quantised_rows(b, rows, HIDDEN), rows, &w, y);
    return hash_of(y, rows * w.n * 2);
}

static uint64_t linear_lanes(plumb_backend *b, int64_t rows) {
    enum { K = 150, N = 301, STRIDE = 160 };
    plumb_matrix w = {
        .type = PLUMB_MATRIX_BF16, .n = N, .k = K, .codes = arena_act_block(N * K, ARENA_PLAIN)};
    const plumb_act *x = arena_act_block(rows * STRIDE, ARENA_PLAIN);
    float *y = arena_block(rows * N, sizeof *y);
    b->ops->linear(b, x, STRIDE, rows, &w, NULL, y, N);
    return hash_of(y, rows * N * 4);
}

static uint64_t norm_and_rotation(plumb_backend *b, int64_t rows) {
    const plumb_act *x = arena_act_block(rows * HEADS * DIM, ARENA_PLAIN);
    plumb_act *y = arena_block(rows * HEADS * DIM, sizeof *y);
    b->ops->rms_norm(b, x, rows, HEADS * DIM, arena_float_block(HEADS * DIM, ARENA_PLAIN), 1e-20f,
                     y);
    b->ops->rotate(b, y, rows, HEADS, DIM, PAIRS, arena_float_block(rows * PAIRS, ARENA_PLAIN),
                   arena_float_block(rows * PAIRS, ARENA_PLAIN), true);
    return hash_of(y, rows * HEADS * DIM * 2);
}

static uint64_t hyper_connections(plumb_backend *b, int64_t rows) {
    plumb_matrix fn = {.type = PLUMB_MATRIX_F32,
                       .n = 24,
                       .k = 4 * HIDDEN,
                       .codes = arena_float_block(24 * 4 * HIDDEN, ARENA_PLAIN)};
    const plumb_act *given = arena_act_block(rows * 4 * HIDDEN, ARENA_PLAIN);
    plumb_act *h = arena_copy(given, rows * 4 * HIDDEN, sizeof *h);
    float *mix = arena_block(rows * 24, sizeof *mix);
    plumb_act *x = arena_block(rows * HIDDEN, sizeof *x);
    b->ops->hc_mix(b, h, rows, HIDDEN, &fn, arena_float_block(24, ARENA_PLAIN),
                   arena_float_block(3, ARENA_PLAIN), 1e-20f, 1e-6f, 20, mix, mix + rows * 4,
                   mix + rows * 8);
    b->ops->hc_collapse(b, h, mix, rows, HIDDEN, x);
    b->ops->hc_update(b, h, x, mix + rows * 4, mix + rows * 8, rows, HIDDEN);
    return hash_of(h, rows * 4 * HIDDEN * 2) ^ hash_of(mix, rows * 24 * 4);
}

static uint64_t cache_rows(plumb_backend *b, int64_t rows) {
    const plumb_act *x = arena_act_block(rows * DIM, ARENA_EDGES);
    uint8_t *window = arena_block(rows * plumb__window_row_bytes(DIM), 1);
    uint8_t *compressed = arena_block(rows * plumb__compressed_row_bytes(DIM), 1);
    uint8_t *index = arena_block(rows * plumb__index_row_bytes(DIM), 1);
    b->ops->pack_window(b, x, rows, DIM, window);
    b->ops->pack_compressed(b, x, rows, DIM, compressed);
    b->ops->pack_index(b, x, rows, DIM, index);
    return hash_of(window, rows * plumb__window_row_bytes(DIM)) ^
           hash_of(compressed, rows * plumb__compressed_row_bytes(DIM)) ^
           hash_of(index, rows * plumb__index_row_bytes(DIM));
}

static uint64_t compressor(plumb_backend *b, int64_t rows) {
    const float *value = arena_float_block(2 * rows * HIDDEN, ARENA_PLAIN);
    const float *gate = arena_float_block(2 * rows * HIDDEN, ARENA_PLAIN);
    plumb_act *latent = arena_block(rows * HIDDEN, sizeof *latent);
    b->ops->compress_pairs(b, value, gate, rows, HIDDEN, latent);
    return hash_of(latent, rows * HIDDEN * 2);
}

static const uint8_t *packed(plumb_backend *b, int64_t rows, int64_t row_bytes,
                             void (*pack)(plumb_backend *, const plumb_act *, int64_t, int64_t,
                                          uint8_t *)) {
    uint8_t *bytes = arena_block(rows * row_bytes, 1);
    pack(b, arena_act_block(rows * DIM, ARENA_PLAIN), rows, DIM, bytes);
    return bytes;
}

static uint64_t attention(plumb_backend *b, int64_t rows) {
    int32_t *selected = arena_block(rows * TOP_K, sizeof *selected);
    int32_t *count = arena_block(rows, sizeof *count);
    for (int64_t r = 0; r < rows; r++) {
        count[r] = (int32_t)arena_between(0, TOP_K);
        for (int32_t i = 0; i < count[r]; i++) selected[r * TOP_K + i] = 2 * i + (int32_t)(r % 2);
    }
    plumb_act *out = arena_block(rows * HEADS * DIM, sizeof *out);
    plumb_attention_args args = {
        .query = arena_act_block(rows * HEADS * DIM, ARENA_PLAIN),
        .heads = HEADS,
        .dim = DIM,
        .window = WINDOW,
        .position = 31,
        .ring = packed(b, WINDOW, plumb__window_row_bytes(DIM), b->ops->pack_window),
        .chunk = packed(b, rows, plumb__window_row_bytes(DIM), b->ops->pack_window),
        .chunk_position = 31,
        .compressed =
            packed(b, 2 * TOP_K, plumb__compressed_row_bytes(DIM), b->ops->pack_compressed),
        .selected = selected,
        .selected_count = count,
        .selected_stride = TOP_K,
        .sink = arena_float_block(HEADS, ARENA_PLAIN),
        .scale = 0.125f,
        .out = out};
    b->ops->attention(b, &args, rows);
    return hash_of(out, rows * HEADS * DIM * 2);
}

/* Two layers: one that builds the candidate pool, one that is restricted to it. */
static uint64_t index_selection(plumb_backend *b, int64_t rows) {
    enum { POOL = 6, BLOCK = 8, POSITION = 150 };
    int64_t row_bytes = plumb__index_row_bytes(DIM);
    int32_t *selected = arena_block(rows * TOP_K, sizeof *selected);
    int32_t *count = arena_block(rows, sizeof *count),
            *pool_count = arena_block(rows, sizeof *count);
    int32_t *pool = arena_block(rows * POOL, sizeof *pool);
    float *weight = arena_block(rows * HEADS, sizeof *weight);
    b->ops->index_weights(b, arena_act_block(rows * HEADS, ARENA_PLAIN), rows * HEADS, 0.015625f,
                          weight);
    plumb_index_args args = {.query = packed(b, rows * HEADS, row_bytes, b->ops->pack_index),
                             .weight = weight,
                             .keys = packed(b, POSITION + rows, row_bytes, b->ops->pack_index),
                             .heads = HEADS,
                             .dim = DIM,
                             .position = POSITION,
                             .ratio = 1,
                             .top_k = TOP_K,
                             .selected = selected,
                             .selected_count = count,
                             .build_pool = true,
                             .pool_blocks = POOL,
                             .block_size = BLOCK,
                             .pool = pool,
                             .pool_count = pool_count};
    b->ops->index_select(b, &args, rows);
    uint64_t hash = hash_of(selected, rows * TOP_K * 4) ^ hash_of(pool, rows * POOL * 4);
    args.build_pool = false;
    args.use_pool = true;
    args.query = packed(b, rows * HEADS, row_bytes, b->ops->pack_index);
    b->ops->index_select(b, &args, rows);
    return hash * 31 ^ hash_of(selected, rows * TOP_K * 4);
}

static uint64_t router(plumb_backend *b, int64_t rows) {
    enum { EXPERTS = 64, K = 6 };
    const float *logits = arena_float_block(rows * EXPERTS, ARENA_PLAIN);
    int32_t *ids = arena_block(rows * K, sizeof *ids);
    float *weights = arena_block(rows * K, sizeof *weights);
    b->ops->route(b, logits, arena_float_block(EXPERTS, ARENA_PLAIN), rows, EXPERTS, K, 1.5f, ids,
                  weights);
    return hash_of(ids, rows * K * 4) ^ hash_of(weights, rows * K * 4);
}

/* Five experts, three to a row and one shared by all; groups of very different sizes. */
static uint64_t mixture(plumb_backend *b, int64_t rows) {
    enum { EXPERTS = 5, K = 3, SLOTS = K + 1 };
    plumb_expert_group groups[EXPERTS + 1];
    int32_t *slots = arena_block(SLOTS * rows, sizeof *slots), n_groups = 0, placed = 0;
    int32_t *where = arena_block(rows * SLOTS, sizeof *where);
    for (int e = 0; e <= EXPERTS; e++) {
        plumb_matrix_type type = e == EXPERTS ? PLUMB_MATRIX_FP8 : PLUMB_MATRIX_FP4;
        plumb_expert expert = {quantised_matrix(type, INTER, HIDDEN),
                               quantised_matrix(type, HIDDEN, INTER),
                               quantised_matrix(type, INTER, HIDDEN)};
        int32_t *list = slots + placed, count = 0;
        for (int32_t r = 0; r < rows; r++)
            for (int32_t place = 0; place < K && e < EXPERTS; place++)
                if ((r % 3 + place) % EXPERTS == e) list[count++] = r * SLOTS + place;
        for (int32_t r = 0; r < rows && e == EXPERTS; r++) list[count++] = r * SLOTS + K;
        if (count > 0) groups[n_groups++] = (plumb_expert_group){expert, list, count, placed};
        for (int32_t i = 0; i < count; i++) where[list[i]] = placed++;
    }
    plumb_act *out = arena_block(rows * HIDDEN, sizeof *out);
    plumb_act *outputs = arena_block(rows * SLOTS * HIDDEN, sizeof *outputs);
    const plumb_quantized *x = quantised_rows(b, rows, HIDDEN);
    const float *weights = arena_float_block(rows * SLOTS, ARENA_PLAIN);
    /* The last groups first, as when they come from memory and the others from a disk. */
    int32_t first = n_groups / 2;
    b->ops->experts(b, x, groups + first, n_groups - first, weights, SLOTS, 10.0f, outputs);
    if (first > 0) b->ops->experts(b, x, groups, first, weights, SLOTS, 10.0f, outputs);
    b->ops->experts_sum(b, outputs, where, rows, SLOTS, HIDDEN, out);
    return hash_of(out, rows * HIDDEN * 2);
}

static uint64_t engram(plumb_backend *b, int64_t rows) {
    const plumb_act *given = arena_act_block(rows * 4 * HIDDEN, ARENA_PLAIN);
    plumb_act *h = arena_copy(given, rows * 4 * HIDDEN, sizeof *h);
    uint8_t *live = arena_block(rows, 1);
    for (int64_t r = 0; r < rows; r++) live[r] = r % 5 != 3;
    b->ops->engram_gate(b, h, arena_act_block(rows * 5 * HIDDEN, ARENA_PLAIN),
                        arena_float_block(4 * HIDDEN, ARENA_PLAIN),
                        arena_float_block(4 * HIDDEN, ARENA_PLAIN), live, rows, HIDDEN, 1e-20f,
                        0.0625f);
    return hash_of(h, rows * 4 * HIDDEN * 2);
}

static const struct {
    const char *name;
    operation run;
} operations[] = {
    {"linear_fp8", linear_fp8},
    {"linear_fp4", linear_fp4},
    {"linear_lanes", linear_lanes},
    {"norm_and_rotation", norm_and_rotation},
    {"hyper_connections", hyper_connections},
    {"cache_rows", cache_rows},
    {"compressor", compressor},
    {"attention", attention},
    {"index_selection", index_selection},
    {"router", router},
    {"mixture", mixture},
    {"engram", engram},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static uint64_t run(plumb_backend *b, int i, int64_t rows) {
    arena_seed((uint64_t)i);
    b->ops->begin(b);
    uint64_t hash = operations[i].run(b, rows);
    b->ops->end(b);
    T_CHECK(b->ops->check(b) == PLUMB_OK, "%s: a fault", operations[i].name);
    T_CHECK(arena_free_all(), "%s wrote outside", operations[i].name);
    return hash;
}

static plumb_backend *make_backend(int threads, const char *level) {
    plumb_backend *b = NULL;
    plumb_error err;
    const char *chosen = NULL;
    if (plumb__cpu_backend_create(threads, level, &b, &chosen, &err) != PLUMB_OK) exit(1);
    T_CHECK(!strcmp(chosen, level), "%s chosen instead of %s", chosen, level);
    return b;
}

static void threads_and_levels(void) {
    static const int64_t rows[] = {1, 2, 5, 150};
    static const int counts[] = {1, 2, 3, 7};
    enum { SIZES = sizeof rows / sizeof rows[0] };
    uint64_t expected[OPERATIONS][SIZES];
    plumb_backend *definition = make_backend(1, "portable");
    for (int i = 0; i < OPERATIONS; i++)
        for (int s = 0; s < SIZES; s++) expected[i][s] = run(definition, i, rows[s]);
    definition->ops->close(definition);
    const plumb_cpu_kernels *levels[PLUMB_MAX_LEVELS];
    int n_levels = plumb__cpu_kernel_levels(levels);
    for (int l = 0; l < n_levels; l++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            plumb_backend *b = make_backend(counts[c], levels[l]->level);
            for (int i = 0; i < OPERATIONS; i++)
                for (int s = 0; s < SIZES; s++)
                    T_CHECK(run(b, i, rows[s]) == expected[i][s],
                            "%s, %d threads, %" PRId64 " rows: %s", levels[l]->level, counts[c],
                            rows[s], operations[i].name);
            b->ops->close(b);
        }
}

/* A fault is raised by any operation that meets a NaN, reported once, on any thread. */
static void faults(void) {
    static const int counts[] = {1, 3};
    for (int c = 0; c < 2; c++) {
        plumb_backend *b = make_backend(counts[c], "portable");
        const int64_t rows = 64, k = 512;
        plumb_act *x = arena_block(rows * k, sizeof *x);
        plumb_quantized *q = arena_scratch(b->ops->quantized_bytes(b, rows, k));
        for (int64_t bad = 0; bad < rows; bad += 21) {
            arena_acts(x, rows * k, ARENA_PLAIN);
            x[bad * k + 77] = 0x7FC0;
            b->ops->begin(b);
            b->ops->quantize(b, x, rows, k, q);
            b->ops->end(b);
            T_CHECK(b->ops->check(b) == PLUMB_ERROR_VALUE, "row %" PRId64, bad);
            T_CHECK(b->ops->check(b) == PLUMB_OK, "reported twice");
        }
        b->ops->close(b);
        arena_free_all();
    }
}

/* The same for hyper-connections, whose products are their own. */
static void fault_in_a_mix(void) {
    static const int counts[] = {1, 3};
    for (int c = 0; c < 2; c++) {
        plumb_backend *b = make_backend(counts[c], "portable");
        for (int64_t rows = 1; rows <= 5; rows += 4) {
            plumb_matrix fn = {.type = PLUMB_MATRIX_F32,
                               .n = 24,
                               .k = 4 * HIDDEN,
                               .codes = arena_float_block(24 * 4 * HIDDEN, ARENA_PLAIN)};
            plumb_act *h = arena_block(rows * 4 * HIDDEN, sizeof *h);
            arena_acts(h, rows * 4 * HIDDEN, ARENA_PLAIN);
            h[rows * 4 * HIDDEN - 5] = 0x7F80;
            float *mix = arena_block(rows * 24, sizeof *mix);
            b->ops->begin(b);
            b->ops->hc_mix(b, h, rows, HIDDEN, &fn, arena_float_block(24, ARENA_PLAIN),
                           arena_float_block(3, ARENA_PLAIN), 1e-20f, 1e-6f, 20, mix,
                           mix + rows * 4, mix + rows * 8);
            b->ops->end(b);
            T_CHECK(b->ops->check(b) == PLUMB_ERROR_VALUE, "rows %" PRId64, rows);
            T_CHECK(b->ops->check(b) == PLUMB_OK, "reported twice");
            arena_free_all();
        }
        b->ops->close(b);
    }
}

static void unknown_level(void) {
    plumb_backend *b = NULL;
    plumb_error err;
    const char *chosen = NULL;
    T_CHECK(plumb__cpu_backend_create(1, "mmx", &b, &chosen, &err) == PLUMB_ERROR_UNSUPPORTED,
            "level mmx");
    T_CHECK(!strcmp(err.found, "mmx") && strstr(err.expected, "portable"), "%s, %s", err.found,
            err.expected);
}

T_MAIN({"threads_and_levels", threads_and_levels}, {"faults", faults},
       {"fault_in_a_mix", fault_in_a_mix},
       {"unknown_level", unknown_level})
