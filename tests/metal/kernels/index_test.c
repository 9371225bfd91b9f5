/* The search of the index, kernel by kernel and as a whole, against the CPU backend's portable one: the
 * same scores, pools and selections, and the same fault where a score is not finite. */
#include "backend/cpu/select.h"
#include "metal/kernels/harness.h"

#include "t.h"

typedef struct shape {
    int64_t rows, heads, dim, position, ratio, top_k;
    bool build_pool, use_pool;
    int64_t pool_blocks, block_size;
} shape;

/* What a search leaves; all of it is compared, the unused places too. */
typedef struct found {
    int32_t *selected, *selected_count, *pool, *pool_count;
} found;

/* Memory of no bytes cannot be bound. */
static int64_t room(int64_t n) { return n > 0 ? n : 1; }

static int64_t visible_of(const shape *s, int64_t row) {
    return (s->position + row + 1) / s->ratio;
}

/* ---- The search by the kernels ----------------------------------------------------------------- */

static plumb_metal_index index_args(const shape *s, int64_t score_stride, int64_t block_stride) {
    return (plumb_metal_index){
        .rows = (uint32_t)s->rows, .heads = (uint32_t)s->heads, .dim = (uint32_t)s->dim,
        .position = (uint32_t)s->position, .ratio = (uint32_t)s->ratio, .use_pool = s->use_pool,
        .pool_blocks = (uint32_t)s->pool_blocks, .block_size = (uint32_t)s->block_size,
        .score_stride = (uint32_t)score_stride, .block_stride = (uint32_t)block_stride};
}

/* Two arguments: the pool, or something else that the kernel only reads. */
static void bind_pool(harness_call *call, int index, const shape *s, const found *pool,
                      const void *other, int64_t bytes) {
    harness_bind(call, index, pool ? pool->pool : other, pool ? s->rows * s->pool_blocks * 4 : bytes);
    harness_bind(call, index + 1, pool ? pool->pool_count : other, pool ? s->rows * 4 : bytes);
}

static bool score_keys(const shape *s, const plumb_index_args *a, const found *f, float *score,
                       int64_t stride) {
    int64_t row_bytes = plumb__index_row_bytes(s->dim), last = visible_of(s, s->rows - 1);
    plumb_metal_index args = index_args(s, stride, 0);
    harness_call call = harness_begin("index_scores", &args, sizeof args);
    harness_bind(&call, 2, a->query, s->rows * s->heads * row_bytes);
    harness_bind(&call, 3, a->weight, s->rows * s->heads * 4);
    harness_bind(&call, 4, a->keys, last * row_bytes);
    bind_pool(&call, 5, s, s->use_pool ? f : NULL, a->weight, s->rows * s->heads * 4);
    harness_bind(&call, 7, score, s->rows * stride * 4);
    return harness_run(&call, (stride + PLUMB_METAL_INDEX_KEYS - 1) / PLUMB_METAL_INDEX_KEYS, s->rows,
                       PLUMB_METAL_THREADS);
}

static void select_top(const shape *s, const float *value, int64_t stride, bool blocks, int64_t k,
                       const found *f) {
    int32_t *out = blocks ? f->pool : f->selected, *count = blocks ? f->pool_count : f->selected_count;
    plumb_metal_select args = {
        .position = (uint32_t)s->position, .ratio = (uint32_t)s->ratio,
        .block_size = (uint32_t)s->block_size, .pool_blocks = (uint32_t)s->pool_blocks,
        .value_stride = (uint32_t)stride, .k = (uint32_t)k, .use_pool = s->use_pool && !blocks,
        .blocks = blocks};
    harness_call call = harness_begin("select_top", &args, sizeof args);
    harness_bind(&call, 2, value, s->rows * room(stride) * 4);
    bind_pool(&call, 3, s, args.use_pool ? f : NULL, value, s->rows * room(stride) * 4);
    harness_bind(&call, 5, out, s->rows * room(k) * 4);
    harness_bind(&call, 6, count, s->rows * 4);
    harness_threadgroup(&call, 0, 2 * PLUMB_METAL_SELECT * 4);
    harness_run(&call, s->rows, 1, PLUMB_METAL_SELECT);
}

static void build_pool(const shape *s, const float *score, int64_t stride, const found *f) {
    int64_t blocks = (visible_of(s, s->rows - 1) + s->block_size - 1) / s->block_size;
    float *block_score = arena_block(s->rows * blocks, 4);
    plumb_metal_index args = index_args(s, stride, blocks);
    harness_call call = harness_begin("index_blocks", &args, sizeof args);
    harness_bind(&call, 2, score, s->rows * stride * 4);
    harness_bind(&call, 3, block_score, s->rows * blocks * 4);
    harness_run_flat(&call, s->rows * blocks);
    select_top(s, block_score, blocks, true, s->pool_blocks, f);
}

/* Returns the fault.  Rows are strided by the keys of the last one, or of the fullest pool. */
static bool search(const shape *s, const plumb_index_args *a, const found *f) {
    int64_t stride = visible_of(s, s->rows - 1), pooled = s->pool_blocks * s->block_size;
    if (s->use_pool && pooled < stride) stride = pooled;
    float *score = arena_block(s->rows * room(stride), 4);
    bool fault = stride > 0 && score_keys(s, a, f, score, stride);
    if (s->build_pool && stride > 0) build_pool(s, score, stride, f);
    else if (s->build_pool) memset(f->pool_count, 0, (size_t)s->rows * 4);
    select_top(s, score, stride, false, s->top_k, f);
    return fault;
}

/* ---- Inputs ---------------------------------------------------------------------------------------- */

static uint8_t *packed_rows(int64_t rows, int64_t dim, arena_values family) {
    plumb_act *x = arena_block(rows * dim, sizeof *x);
    for (int64_t i = 0; i < rows; i++) arena_acts(x + i * dim, dim, family);
    uint8_t *packed = arena_block(rows * plumb__index_row_bytes(dim), 1);
    harness_cpu->ops->pack_index(harness_cpu, x, rows, dim, packed);
    arena_seal(packed);
    return packed;
}

static found empty_found(const shape *s) {
    return (found){arena_block(s->rows * room(s->top_k), 4), arena_block(s->rows, 4),
                   arena_block(s->rows * s->pool_blocks, 4), arena_block(s->rows, 4)};
}

static found copy_of(const shape *s, const found *f) {
    return (found){arena_copy(f->selected, s->rows * room(s->top_k), 4),
                   arena_copy(f->selected_count, s->rows, 4),
                   arena_copy(f->pool, s->rows * s->pool_blocks, 4),
                   arena_copy(f->pool_count, s->rows, 4)};
}

/* A pool as a search leaves it: ascending blocks, the newest among them. */
static void fill_pool(const shape *s, const found *f) {
    for (int64_t r = 0; r < s->rows; r++) {
        int64_t blocks = (visible_of(s, r) + s->block_size - 1) / s->block_size;
        int64_t n = blocks < s->pool_blocks ? blocks : s->pool_blocks, taken = 0;
        for (int64_t b = 0; b < blocks && taken < n; b++)
            if (b == blocks - 1 || (taken < n - 1 && (arena_random() % 2 || blocks - 1 - b <= n - 1 - taken)))
                f->pool[r * s->pool_blocks + taken++] = (int32_t)b;
        f->pool_count[r] = (int32_t)taken;
    }
}

static bool same_found(const shape *s, const found *a, const found *b) {
    return !memcmp(a->selected, b->selected, (size_t)(s->rows * s->top_k) * 4) &&
           !memcmp(a->selected_count, b->selected_count, (size_t)s->rows * 4) &&
           !memcmp(a->pool, b->pool, (size_t)(s->rows * s->pool_blocks) * 4) &&
           !memcmp(a->pool_count, b->pool_count, (size_t)s->rows * 4);
}

static void check(const shape *s, arena_values weights) {
    int64_t last = visible_of(s, s->rows - 1);
    found expected = empty_found(s);
    if (s->use_pool) fill_pool(s, &expected);
    found got = copy_of(s, &expected);
    plumb_index_args args = {
        .query = packed_rows(s->rows * s->heads, s->dim, harness_tame()),
        .weight = arena_float_block(s->rows * s->heads, weights),
        .keys = packed_rows(last, s->dim, harness_tame()), .heads = s->heads, .dim = s->dim,
        .position = s->position, .ratio = s->ratio, .top_k = s->top_k,
        .selected = expected.selected, .selected_count = expected.selected_count,
        .build_pool = s->build_pool, .use_pool = s->use_pool, .pool_blocks = s->pool_blocks,
        .block_size = s->block_size, .pool = expected.pool, .pool_count = expected.pool_count};
    harness_cpu->ops->index_select(harness_cpu, &args, s->rows);
    bool fault = harness_cpu_fault(), also = search(s, &args, &got);
    T_CHECK(fault == also, "fault %d", fault);
    T_CHECK(fault || same_found(s, &expected, &got),
            "rows %" PRId64 " heads %" PRId64 " dim %" PRId64 " position %" PRId64 " ratio %" PRId64
            " top_k %" PRId64 " pool %d %d of %" PRId64 " by %" PRId64,
            s->rows, s->heads, s->dim, s->position, s->ratio, s->top_k, s->build_pool, s->use_pool,
            s->pool_blocks, s->block_size);
    T_CHECK(arena_free_all(), "wrote outside");
}

/* ---- Cases --------------------------------------------------------------------------------------- */

static void random_searches(void) {
    arena_seed(11);
    for (int round = 0; round < 80; round++) {
        int pool = (int)arena_between(0, 2);
        shape s = {.rows = arena_between(1, 3), .heads = arena_between(1, 5),
                   .dim = 32 * arena_between(1, 6), .position = arena_between(0, 150),
                   .ratio = arena_between(1, 2), .top_k = arena_between(1, 60),
                   .build_pool = pool == 1, .use_pool = pool == 2,
                   .pool_blocks = arena_between(1, 12), .block_size = arena_between(1, 9)};
        check(&s, harness_any());
    }
}

/* Numbers of keys around k and around blocks, for every use of a pool. */
static void edges(void) {
    static const int64_t positions[] = {0, 1, 6, 7, 8, 14, 15, 16, 17, 31, 47};
    arena_seed(12);
    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++)
        for (int pool = 0; pool < 3; pool++)
            for (int64_t ratio = 1; ratio <= 2; ratio++) {
                shape s = {.rows = 2, .heads = 2, .dim = 64, .position = positions[i], .ratio = ratio,
                           .top_k = 8, .build_pool = pool == 1, .use_pool = pool == 2,
                           .pool_blocks = 5, .block_size = 4};
                check(&s, ARENA_PLAIN);
            }
}

/* The released shape, and a selection from more keys than threads. */
static void model_shapes(void) {
    static const shape cases[] = {
        {.rows = 1, .heads = 32, .dim = 128, .position = 99, .ratio = 2, .top_k = 512, .pool_blocks = 2048, .block_size = 8},
        {.rows = 2, .heads = 2, .dim = 128, .position = 1200, .ratio = 2, .top_k = 512, .pool_blocks = 2048, .block_size = 8},
        {.rows = 1, .heads = 1, .dim = 32, .position = 900, .ratio = 1, .top_k = 100, .build_pool = true, .pool_blocks = 64, .block_size = 8},
        {.rows = 1, .heads = 1, .dim = 32, .position = 900, .ratio = 1, .top_k = 100, .use_pool = true, .pool_blocks = 64, .block_size = 8},
    };
    arena_seed(13);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check(&cases[i], ARENA_PLAIN);
}

/* Each score by itself: selections show few of their bits. */
static void scores(void) {
    arena_seed(14);
    for (int round = 0; round < 60; round++) {
        shape s = {.rows = arena_between(1, 2), .heads = arena_between(1, 6),
                   .dim = 32 * arena_between(1, 6), .position = arena_between(0, 60), .ratio = 1,
                   .pool_blocks = 1, .block_size = 1};
        int64_t stride = visible_of(&s, s.rows - 1) + arena_between(0, 5);
        found none = empty_found(&s);
        plumb_index_args args = {.query = packed_rows(s.rows * s.heads, s.dim, harness_tame()),
                                 .weight = arena_float_block(s.rows * s.heads, harness_tame()),
                                 .keys = packed_rows(visible_of(&s, s.rows - 1), s.dim, harness_tame()),
                                 .heads = s.heads, .dim = s.dim};
        HARNESS_OUTPUTS(float, expected, got, s.rows * stride);
        float *scratch = arena_scratch(4 * plumb__index_scratch(s.heads, s.dim));
        bool finite = true;
        for (int64_t r = 0; r < s.rows; r++)
            finite &= plumb__cpu_kernels_portable.index_scores(&args, r, NULL, visible_of(&s, r),
                                                               expected + r * stride, scratch);
        bool fault = score_keys(&s, &args, &none, got, stride);
        T_CHECK(fault == !finite, "fault %d", fault);
        T_CHECK(fault || !memcmp(expected, got, (size_t)(s.rows * stride) * 4),
                "heads %" PRId64 " dim %" PRId64, s.heads, s.dim);
        T_CHECK(arena_free_all(), "wrote outside");
    }
}

/* Few distinct values, zeros of both signs, subnormals: the k-th place is nearly always a tie. */
static void select_values(void) {
    static const float ties[] = {0.0f,  -0.0f, 1e-40f,         -1e-40f,        1.0f,
                                 -1.0f, 1.5f,  1.1754944e-38f, -1.1754944e-38f};
    arena_seed(15);
    for (int round = 0; round < 150; round++) {
        int64_t n = arena_random() % 4 ? arena_between(1, 700) : arena_between(1, 40);
        int64_t k = arena_between(0, n + 2);
        float *value = arena_block(n, 4);
        if (round % 2) arena_floats(value, n, harness_finite());
        else
            for (int64_t i = 0, distinct = arena_between(1, 9); i < n; i++)
                value[i] = ties[arena_random() % (uint64_t)distinct];
        arena_seal(value);
        shape s = {.rows = 1, .position = n - 1, .ratio = 1, .top_k = k, .pool_blocks = 1, .block_size = 1};
        found expected = empty_found(&s), got = copy_of(&s, &expected);
        *expected.selected_count = (int32_t)plumb__select_top(value, n, k, expected.selected);
        select_top(&s, value, n, false, k, &got);
        T_CHECK(same_found(&s, &expected, &got), "n %" PRId64 " k %" PRId64, n, k);
        T_CHECK(arena_free_all(), "wrote outside");
    }
}

static void weights(void) {
    arena_seed(16);
    for (int round = 0; round < 40; round++) {
        int64_t count = arena_between(1, 600);
        const plumb_act *proj = arena_act_block(count, harness_finite());
        HARNESS_OUTPUTS(float, expected, got, count);
        harness_cpu->ops->index_weights(harness_cpu, proj, count, 0.0117f, expected);
        plumb_metal_index_weights args = {.count = (uint32_t)count, .factor = 0.0117f};
        harness_call call = harness_begin("index_weights", &args, sizeof args);
        harness_bind(&call, 2, proj, count * 2);
        harness_bind(&call, 3, got, count * 4);
        harness_run_flat(&call, count);
        T_CHECK(harness_same_floats(expected, got, count), "count %" PRId64, count);
        T_CHECK(arena_free_all(), "wrote outside");
    }
}

int main(int argc, char **argv) {
    static const t_test tests[] = {
        {"random_searches", random_searches}, {"edges", edges}, {"model_shapes", model_shapes},
        {"scores", scores}, {"select_values", select_values}, {"weights", weights}};
    return harness_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));
}
