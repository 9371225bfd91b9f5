/* Vectors for attention and the search of keys. */
#include "backend/self_test_trial.h"

/* ---- Attention --------------------------------------------------------------------------------- */

enum { HEADS = 3, DIM = 96, WINDOW = 40, STRIDE = 22 };

typedef void (*pack_op)(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                        uint8_t *packed);

/* Keys of very different sizes, of elements that a scale changes only by their exponent.  Those of the
 * second half are the negatives of the first: those that a row may have without the other are small.  Or
 * else the second half of each key is the negative of its first: a `turning` key. */
static const uint8_t *packed_keys(plumb_trial *t, pack_op op, int64_t rows, int64_t row_bytes,
                                  int low, int high, bool turning) {
    plumb_act *x = plumb__trial_memory(t, rows * DIM, sizeof *x);
    for (int64_t r = 0; r < rows; r++) {
        int64_t place = r % (rows < 2 ? 1 : rows / 2);
        bool may_be_alone = place < 3 || place >= rows / 2 - 4;
        int size = may_be_alone ? low : (int)plumb__trial_between(t, low, high);
        for (int64_t i = 0; i < DIM; i++) {
            uint32_t bits = plumb__bits_of(plumb__trial_number(t, size - 2, size));
            x[r * DIM + i] = plumb__store(plumb__float_of(bits & 0xFFF00000u));
        }
        if (turning) plumb__trial_mirror_acts(x + r * DIM, DIM, -1.0f);
    }
    if (!turning) plumb__trial_mirror_acts(x, rows / 2 * 2 * DIM, -1.0f);
    uint8_t *packed = plumb__trial_memory(t, rows * row_bytes, 1);
    op(t->b, x, rows, DIM, packed);
    return packed;
}

/* Head 0 gives all keys the same score, so that its output is what rounding left of a sum of nothing; the
 * others give each another one.  With turning keys head 1 is as sensitive: its scores are what rounding
 * left, magnified. */
static plumb_act *make_queries(plumb_trial *t, int64_t rows, bool turning) {
    plumb_act *query = plumb__trial_acts(t, rows * HEADS * DIM, -17, -13);
    for (int64_t r = 0; r < rows; r++) {
        plumb_act *head = query + r * HEADS * DIM;
        for (int64_t i = 0; i < DIM; i++) {
            head[i] = plumb__store(0.0f);
            if (turning) head[DIM + i] = plumb__store(plumb__trial_number(t, -4, 10));
        }
        if (turning) plumb__trial_mirror_acts(head + DIM, DIM, 1.0f);
    }
    return query;
}

/* Selected keys of [2 * STRIDE], ascending, another number for each row. */
static void select_keys(plumb_trial *t, plumb_attention_args *args, int64_t rows) {
    int32_t *selected = plumb__trial_memory(t, rows * STRIDE, sizeof *selected);
    int32_t *count = plumb__trial_memory(t, rows, sizeof *count);
    for (int64_t r = 0; r < rows; r++) {
        count[r] = (int32_t)(STRIDE - r % 3);
        for (int32_t i = 0; i < count[r]; i++) selected[r * STRIDE + i] = 2 * i + (int32_t)(r % 2);
    }
    args->selected = selected;
    args->selected_count = count;
    args->selected_stride = STRIDE;
    args->compressed = packed_keys(t, t->b->ops->pack_compressed, 2 * STRIDE,
                                   plumb__compressed_row_bytes(DIM), -5, 5, false);
}

static void attend(plumb_trial *t, int64_t rows, int64_t position, bool compressed) {
    const plumb_backend_ops *ops = t->b->ops;
    int64_t row_bytes = plumb__window_row_bytes(DIM);
    bool turning = !compressed;
    plumb_act *out = plumb__trial_memory(t, rows * HEADS * DIM, sizeof *out);
    plumb_attention_args args = {
        .query = make_queries(t, rows, turning), .heads = HEADS, .dim = DIM, .window = WINDOW,
        .position = position,
        .ring = packed_keys(t, ops->pack_window, WINDOW, row_bytes, -20, 12, turning),
        .chunk = packed_keys(t, ops->pack_window, rows, row_bytes, -20, 12, turning),
        .chunk_position = position, .sink = plumb__trial_floats(t, HEADS, -2, 0),
        .scale = 0.10206207f, .out = out};
    if (compressed) select_keys(t, &args, rows);
    ops->attention(t->b, &args, rows);
    plumb__trial_result_is(t, out, rows * HEADS * DIM, sizeof *out);
}

/* A full window that wraps around its ring; one that is not full; the beginning of a context. */
static void attention(plumb_trial *t) {
    attend(t, 3, 2 * WINDOW, true);
    attend(t, 2, 21, false);
    attend(t, 2, 0, false);
}

/* ---- Search ------------------------------------------------------------------------------------ */

enum { INDEX_HEADS = 5, INDEX_DIM = 64, TOP_K = 23, POOL = 5, BLOCK = 8 };

static void index_weights(plumb_trial *t) {
    enum { COUNT = 300 };
    const plumb_act *proj = plumb__trial_acts(t, COUNT, -4, 4);
    float *weight = plumb__trial_memory(t, COUNT, sizeof *weight);
    t->b->ops->index_weights(t->b, proj, COUNT, 0.0559017f, weight);
    plumb__trial_result_is(t, weight, COUNT, sizeof *weight);
}

/* What the keys of a search are like. */
typedef enum likeness {
    PLAIN,
    OF_FEW_VALUES, /* so that many score the same */
    ALL_THE_SAME   /* and score below zero: the first ones win, unless a score is wrong in any bit */
} likeness;

static const uint8_t *packed_index_rows(plumb_trial *t, int64_t rows, likeness like) {
    static const float values[] = {0.0f, 1.0f, -1.0f, 0.5f};
    plumb_act *x = plumb__trial_acts(t, rows * INDEX_DIM, -3, 0);
    for (int64_t i = 0; i < rows * INDEX_DIM; i++) {
        if (like == OF_FEW_VALUES) x[i] = plumb__store(values[plumb__trial_random(t) % 4]);
        if (like == ALL_THE_SAME) x[i] = plumb__store(1.0f);
    }
    uint8_t *packed = plumb__trial_memory(t, rows * plumb__index_row_bytes(INDEX_DIM), 1);
    t->b->ops->pack_index(t->b, x, rows, INDEX_DIM, packed);
    return packed;
}

static plumb_index_args index_args(plumb_trial *t, int64_t rows, int64_t position, int64_t ratio,
                                   likeness like) {
    float *weight = plumb__trial_floats(t, rows * INDEX_HEADS, -3, 0);
    for (int64_t i = 0; i < rows * INDEX_HEADS; i++) {
        weight[i] = plumb__bf16_decode(plumb__bf16_encode(weight[i]));
        if (like == ALL_THE_SAME) weight[i] = -1.0f;
    }
    return (plumb_index_args){.query = packed_index_rows(t, rows * INDEX_HEADS, like),
                              .weight = weight,
                              .keys = packed_index_rows(t, (position + rows) / ratio, like),
                              .heads = INDEX_HEADS, .dim = INDEX_DIM, .position = position,
                              .ratio = ratio, .top_k = TOP_K};
}

/* args without its outputs -> results. */
static void search(plumb_trial *t, plumb_index_args args, int64_t rows) {
    args.selected = plumb__trial_memory(t, rows * TOP_K, sizeof *args.selected);
    args.selected_count = plumb__trial_memory(t, rows, sizeof *args.selected_count);
    t->b->ops->index_select(t->b, &args, rows);
    plumb__trial_result_is(t, args.selected, rows * TOP_K, sizeof *args.selected);
    plumb__trial_result_is(t, args.selected_count, rows, sizeof *args.selected_count);
}

/* All keys; of a beginning, which has fewer keys than are wanted, or none at all. */
static void index_select(plumb_trial *t) {
    search(t, index_args(t, 3, 200, 2, PLAIN), 3);
    search(t, index_args(t, 5, 0, 4, OF_FEW_VALUES), 5);
    search(t, index_args(t, 2, 99, 2, ALL_THE_SAME), 2);
}

/* A layer that builds the candidate pool -> results: the pool. */
static plumb_index_args pool(plumb_trial *t, likeness like) {
    enum { ROWS = 3, POSITION = 149 };
    plumb_index_args args = index_args(t, ROWS, POSITION, 2, like);
    args.build_pool = true;
    args.pool_blocks = POOL;
    args.block_size = BLOCK;
    args.pool = plumb__trial_memory(t, ROWS * POOL, sizeof *args.pool);
    args.pool_count = plumb__trial_memory(t, ROWS, sizeof *args.pool_count);
    args.selected = plumb__trial_memory(t, ROWS * TOP_K, sizeof *args.selected);
    args.selected_count = plumb__trial_memory(t, ROWS, sizeof *args.selected_count);
    t->b->ops->index_select(t->b, &args, ROWS);
    plumb__trial_result_is(t, args.pool, ROWS * POOL, sizeof *args.pool);
    plumb__trial_result_is(t, args.pool_count, ROWS, sizeof *args.pool_count);
    args.build_pool = false;
    args.use_pool = true;
    return args;
}

/* Pools, and a layer that is restricted to one. */
static void index_pool(plumb_trial *t) {
    (void)pool(t, ALL_THE_SAME);
    plumb_index_args args = pool(t, OF_FEW_VALUES);
    args.query = packed_index_rows(t, 3 * INDEX_HEADS, OF_FEW_VALUES);
    search(t, args, 3);
}

const plumb_trial_case plumb__trial_attention_cases[] = {
    {"attention", "attention", attention, false},
    {"index_weights", "index_weights", index_weights, false},
    {"index_select", "index_scores or select_top", index_select, false},
    {"index_select", "index_blocks or select_top", index_pool, false},
    {0},
};
