/* Attention, and the search for the keys it selects. */
#import "backend/metal/metal_ops.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Bindings must hold memory even where a kernel has nothing to read: then some that it only reads. */
static const void *or_else(const void *memory, const void *other) { return memory ? memory : other; }

void plumb__metal_attention(plumb_backend *b, const plumb_attention_args *a, int64_t rows) {
    plumb_metal_attention arguments = {.heads = (uint32_t)a->heads, .dim = (uint32_t)a->dim,
                                       .window = (uint32_t)a->window,
                                       .position = (uint32_t)a->position,
                                       .chunk_position = (uint32_t)a->chunk_position,
                                       .selected_stride = (uint32_t)a->selected_stride,
                                       .has_compressed = a->compressed != NULL,
                                       .scale = a->scale};
    int64_t keys = (a->window + a->selected_stride + 3) / 4 * 4;
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = KERNEL_ATTENTION,
        PLUMB_METAL_GIVE(arguments),
        .memory = {a->query, a->ring, a->chunk, or_else(a->compressed, a->ring),
                   or_else(a->selected, a->ring), or_else(a->selected_count, a->ring), a->sink,
                   a->out},
        .groups = {a->heads, rows, 1},
        .threadgroup_bytes = {keys * (int64_t)sizeof(float), 32 * (int64_t)sizeof(float)}});
}

void plumb__metal_index_weights(plumb_backend *b, const plumb_act *proj, int64_t count,
                                float factor, float *weight) {
    plumb_metal_index_weights arguments = {.count = (uint32_t)count, .factor = factor};
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = KERNEL_INDEX_WEIGHTS,
        PLUMB_METAL_GIVE(arguments),
        .memory = {proj, weight},
        .groups = {plumb__metal_flat(count), 1, 1}});
}

/* ---- Index search ------------------------------------------------------------------------------ */

/* Some rows of a search, whose scores are in memory at once. */
typedef struct search {
    plumb_metal_backend *m;
    const plumb_index_args *a;
    int64_t first, rows;
    int64_t score_stride, block_stride; /* candidates and blocks of the last row, at least 1 */
    float *score, *block_score;         /* [rows] of them */
} search;

/* Most candidates that a row of [0, end) has. */
static int64_t candidates(const plumb_index_args *a, int64_t end) {
    int64_t visible = (a->position + end) / a->ratio;
    return a->use_pool ? least(visible, a->pool_blocks * a->block_size) : visible;
}

/* What a search is restricted to, or NULL. */
static const int32_t *pool_of(const search *s) {
    return s->a->use_pool ? s->a->pool + s->first * s->a->pool_blocks : NULL;
}

static const int32_t *pool_count_of(const search *s) {
    return s->a->use_pool ? s->a->pool_count + s->first : NULL;
}

static plumb_metal_index index_arguments(const search *s) {
    const plumb_index_args *a = s->a;
    return (plumb_metal_index){.rows = (uint32_t)s->rows,
                               .heads = (uint32_t)a->heads,
                               .dim = (uint32_t)a->dim,
                               .position = (uint32_t)(a->position + s->first),
                               .ratio = (uint32_t)a->ratio,
                               .use_pool = a->use_pool,
                               .pool_blocks = (uint32_t)a->pool_blocks,
                               .block_size = (uint32_t)a->block_size,
                               .score_stride = (uint32_t)s->score_stride,
                               .block_stride = (uint32_t)s->block_stride};
}

static void score_keys(const search *s) {
    const plumb_index_args *a = s->a;
    plumb_metal_index arguments = index_arguments(s);
    const uint8_t *query = a->query + s->first * a->heads * plumb__index_row_bytes(a->dim);
    const float *weight = a->weight + s->first * a->heads;
    int64_t tiles = (s->score_stride + PLUMB_METAL_INDEX_KEYS - 1) / PLUMB_METAL_INDEX_KEYS;
    plumb__metal_dispatch(s->m, &(plumb_metal_call){
        .kernel = KERNEL_INDEX_SCORES,
        PLUMB_METAL_GIVE(arguments),
        .memory = {query, weight, or_else(a->keys, query), or_else(pool_of(s), weight),
                   or_else(pool_count_of(s), weight), s->score},
        .groups = {tiles, s->rows, 1}});
}

static void score_blocks(const search *s) {
    plumb_metal_index arguments = index_arguments(s);
    plumb__metal_dispatch(s->m, &(plumb_metal_call){
        .kernel = KERNEL_INDEX_BLOCKS,
        PLUMB_METAL_GIVE(arguments),
        .memory = {s->score, s->block_score},
        .groups = {plumb__metal_flat(s->rows * s->block_stride), 1, 1}});
}

/* The best keys, or the best blocks. */
static void select_top(const search *s, bool blocks) {
    const plumb_index_args *a = s->a;
    int64_t k = blocks ? a->pool_blocks : a->top_k;
    int32_t *out = blocks ? a->pool : a->selected;
    int32_t *out_count = blocks ? a->pool_count : a->selected_count;
    const float *value = blocks ? s->block_score : s->score;
    plumb_metal_select arguments = {.position = (uint32_t)(a->position + s->first),
                                    .ratio = (uint32_t)a->ratio,
                                    .block_size = (uint32_t)a->block_size,
                                    .pool_blocks = (uint32_t)a->pool_blocks,
                                    .value_stride = (uint32_t)(blocks ? s->block_stride
                                                                      : s->score_stride),
                                    .k = (uint32_t)k,
                                    .use_pool = !blocks && a->use_pool,
                                    .blocks = blocks};
    plumb__metal_dispatch(s->m, &(plumb_metal_call){
        .kernel = KERNEL_SELECT_TOP,
        PLUMB_METAL_GIVE(arguments),
        .memory = {value, or_else(pool_of(s), value), or_else(pool_count_of(s), value),
                   out + s->first * k, out_count + s->first},
        .groups = {s->rows, 1, 1},
        .threadgroup_bytes = {2 * PLUMB_METAL_SELECT * (int64_t)sizeof(uint32_t)}});
}

void plumb__metal_index_select(plumb_backend *b, const plumb_index_args *a, int64_t rows) {
    plumb_metal_backend *m = plumb__metal(b);
    const int64_t size = (int64_t)sizeof(float);
    int64_t most = candidates(a, rows);
    search s = {.m = m, .a = a, .score_stride = most > 0 ? most : 1, .block_stride = 1};
    if (a->build_pool) s.block_stride = (s.score_stride + a->block_size - 1) / a->block_size;
    int64_t at_once = m->score_bytes / (s.score_stride * size);
    at_once = at_once < 1 ? 1 : least(at_once, rows);
    s.score = plumb__metal_work_memory(m, WORK_SCORES, at_once * s.score_stride * size);
    s.block_score = plumb__metal_work_memory(m, WORK_BLOCK_SCORES, at_once * s.block_stride * size);
    if (!s.score || !s.block_score) return;
    for (; s.first < rows; s.first += at_once) {
        s.rows = least(at_once, rows - s.first);
        score_keys(&s);
        if (a->build_pool) {
            score_blocks(&s);
            select_top(&s, true);
        }
        select_top(&s, false);
    }
}
