/* The attention kernel against the CPU backend's portable one, bit for bit: rings that wrap, chunks that
 * begin before, at and after the window's oldest key, any number of selected keys; and by hand where there
 * are no keys. */
#include "metal/kernels/harness.h"

#include "t.h"

typedef enum values {
    ANY,       /* families of arena.h: often one key has all the probability */
    SPREAD,    /* probabilities of all sizes */
    CANCELLING, /* equal probabilities; large values that cancel, and lose what came between them */
    VALUES
} values;

typedef struct shape {
    int64_t rows, heads, dim, window, position;
    int64_t before; /* positions of the chunk before the first row's */
    int64_t stride; /* room for selected keys */
    int64_t latents; /* compressed keys there are; 0: none */
    values values;
} shape;

typedef void (*pack)(plumb_backend *, const plumb_act *, int64_t, int64_t, uint8_t *);

/* `rows` packed keys.  A large value in one key is made up for in the key that comes `apart` later. */
static uint8_t *packed_keys(const shape *s, int64_t rows, int64_t row_bytes, pack pack_rows) {
    enum { APART = 3 };
    plumb_act *x = arena_block(rows * s->dim, sizeof *x);
    for (int64_t i = 0; i < rows; i++)
        arena_acts(x + i * s->dim, s->dim, s->values == ANY ? harness_tame() : ARENA_PLAIN);
    if (s->values == CANCELLING)
        for (int64_t i = 0; i + APART < rows; i += 2 * APART)
            for (int64_t d = 0; d < s->dim; d++) {
                x[i * s->dim + d] = plumb__store(0x1p26f);
                x[(i + APART) * s->dim + d] = plumb__store(-0x1p26f);
            }
    uint8_t *packed = arena_block(rows * row_bytes, 1);
    pack_rows(harness_cpu, x, rows, s->dim, packed);
    arena_seal(packed);
    return packed;
}

/* Ascending positions below s->latents: none, some, or all that there is room for.  Of no latents: what
 * the search of another layer left, and no layer without latents may look at. */
static void select_keys(const shape *s, int32_t *selected, int32_t *count) {
    for (int64_t r = 0; r < s->rows; r++) {
        if (s->latents == 0) {
            count[r] = 1;
            continue;
        }
        int64_t most = s->stride < s->latents ? s->stride : s->latents;
        int64_t wanted = ((const int64_t[]){0, most, arena_between(0, most)})[arena_random() % 3];
        count[r] = 0;
        for (int32_t i = 0; i < s->latents && count[r] < wanted; i++)
            if (arena_random() % 2 || s->latents - i <= wanted - count[r])
                selected[r * s->stride + count[r]++] = i;
    }
}

static void emulate(const shape *s, const plumb_attention_args *a, plumb_act *out) {
    int64_t in_chunk = a->position - a->chunk_position + s->rows;
    int64_t window_bytes = plumb__window_row_bytes(s->dim);
    int64_t ring_bytes = (s->window ? s->window : 1) * window_bytes;
    int64_t width = s->rows * s->heads * s->dim, keys = (s->window + s->stride + 3) / 4 * 4;
    plumb_metal_attention args = {
        .heads = (uint32_t)s->heads, .dim = (uint32_t)s->dim, .window = (uint32_t)s->window,
        .position = (uint32_t)a->position, .chunk_position = (uint32_t)a->chunk_position,
        .selected_stride = (uint32_t)s->stride, .has_compressed = a->compressed != NULL,
        .scale = a->scale};
    harness_call call = harness_begin("attention", &args, sizeof args);
    harness_bind(&call, 2, a->query, width * 2);
    harness_bind(&call, 3, a->ring, ring_bytes);
    harness_bind(&call, 4, a->chunk, in_chunk * window_bytes);
    if (a->compressed)
        harness_bind(&call, 5, a->compressed, s->latents * plumb__compressed_row_bytes(s->dim));
    else harness_bind(&call, 5, a->ring, ring_bytes);
    harness_bind(&call, 6, a->selected, s->rows * s->stride * 4);
    harness_bind(&call, 7, a->selected_count, s->rows * 4);
    harness_bind(&call, 8, a->sink, s->heads * 4);
    harness_bind(&call, 9, out, width * 2);
    harness_threadgroup(&call, 0, keys * 4);
    harness_threadgroup(&call, 1, 32 * 4);
    harness_run(&call, s->heads, s->rows, PLUMB_METAL_THREADS);
}

/* Inputs of a shape; outputs go to `out`. */
static plumb_attention_args draw_inputs(const shape *s, plumb_act *out) {
    int64_t width = s->rows * s->heads * s->dim, window_bytes = plumb__window_row_bytes(s->dim);
    const plumb_backend_ops *ops = harness_cpu->ops;
    plumb_act *query = arena_block(width, sizeof *query);
    arena_acts(query, width, s->values == ANY ? harness_tame() : ARENA_PLAIN);
    float less = s->values == SPREAD ? 0x1p-4f : s->values == CANCELLING ? 0.0f : 1.0f;
    for (int64_t i = 0; i < width; i++) query[i] = plumb__store(plumb__load(query[i]) * less);
    int32_t *selected = arena_block(s->rows * s->stride, 4), *count = arena_block(s->rows, 4);
    select_keys(s, selected, count);
    return (plumb_attention_args){
        .query = query, .heads = s->heads, .dim = s->dim, .window = s->window,
        .position = s->position, .ring = packed_keys(s, s->window, window_bytes, ops->pack_window),
        .chunk = packed_keys(s, s->before + s->rows, window_bytes, ops->pack_window),
        .chunk_position = s->position - s->before,
        .compressed = s->latents ? packed_keys(s, s->latents, plumb__compressed_row_bytes(s->dim),
                                               ops->pack_compressed)
                                 : NULL,
        .selected = selected, .selected_count = count, .selected_stride = s->stride,
        .sink = arena_float_block(s->heads, harness_tame()), .scale = 0.125f, .out = out};
}

static void check_against_cpu(const shape *s, const plumb_attention_args *args) {
    int64_t width = s->rows * s->heads * s->dim;
    plumb_act *got = arena_copy(args->out, width, sizeof *got);
    harness_cpu->ops->attention(harness_cpu, args, s->rows);
    emulate(s, args, got);
    T_CHECK(harness_same_acts(args->out, got, width),
            "rows %" PRId64 " heads %" PRId64 " dim %" PRId64 " window %" PRId64 " position %" PRId64
            " before %" PRId64 " stride %" PRId64 " latents %" PRId64,
            s->rows, s->heads, s->dim, s->window, s->position, s->before, s->stride, s->latents);
    T_CHECK(arena_free_all(), "wrote outside");
}

static void check(const shape *s) {
    plumb_act *out = arena_block(s->rows * s->heads * s->dim, sizeof *out);
    plumb_attention_args args = draw_inputs(s, out);
    check_against_cpu(s, &args);
}

static void random_shapes(void) {
    arena_seed(1);
    for (int round = 0; round < 60; round++) {
        int64_t position = arena_between(0, 250);
        shape s = {.rows = arena_between(1, 3), .heads = arena_between(1, 3),
                   .dim = 32 * arena_between(1, 5), .window = arena_between(1, 150),
                   .position = position, .before = arena_between(0, position < 9 ? position : 9),
                   .stride = arena_between(1, 60),
                   .latents = arena_random() % 4 ? arena_between(1, 100) : 0,
                   .values = (values)arena_between(ANY, CANCELLING)};
        check(&s);
    }
}

/* Where the window begins, against where the ring wraps and where the chunk begins. */
static void edges(void) {
    static const shape cases[] = {
        {.rows = 1, .window = 8, .position = 0},                /* one key */
        {.rows = 2, .window = 8, .position = 6},                /* the window just fills */
        {.rows = 3, .window = 8, .position = 7},                /* full; the oldest leaves */
        {.rows = 1, .window = 8, .position = 16},               /* the oldest in slot 1 */
        {.rows = 2, .window = 8, .position = 14},               /* the ring wraps at its last slot */
        {.rows = 9, .window = 8, .position = 8},                /* last row: the chunk alone */
        {.rows = 8, .window = 8, .position = 0},                /* the first chunk: no ring */
        {.rows = 3, .window = 8, .position = 20, .before = 12}, /* a chunk longer than the window */
        {.rows = 3, .window = 8, .position = 20, .before = 7},  /* begins at the oldest */
        {.rows = 3, .window = 8, .position = 20, .before = 6},  /* one of the ring */
        {.rows = 2, .window = 1, .position = 5},                /* the row itself */
        {.rows = 1, .window = 128, .position = 4000000000},     /* beyond 31 bits */
        {.rows = 1, .window = 7, .position = 4000000000, .before = 3},
    };
    arena_seed(2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int v = ANY; v < VALUES; v++) {
            shape s = cases[i];
            s.heads = 2;
            s.dim = v == CANCELLING ? 96 : 512; /* few threads own elements, or all */
            s.stride = 5;
            s.latents = arena_between(0, 12);
            s.values = (values)v;
            check(&s);
        }
}

/* The small models' shape, the released one, and a dim with more elements than threads own at once. */
static void model_shapes(void) {
    static const shape cases[] = {
        {.rows = 3, .heads = 4, .dim = 96, .window = 8, .position = 60, .stride = 8, .latents = 30},
        {.rows = 1, .heads = 2, .dim = 512, .window = 128, .position = 1100, .stride = 512, .latents = 550},
        {.rows = 1, .heads = 1, .dim = 512, .window = 128, .position = 300, .before = 90, .stride = 512, .latents = 150},
        {.rows = 1, .heads = 1, .dim = 576, .window = 16, .position = 30, .stride = 3, .latents = 9},
    };
    arena_seed(3);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int v = ANY; v < VALUES; v++) {
            shape s = cases[i];
            s.values = (values)v;
            check(&s);
        }
}

/* Every bit of a denominator, which bf16 hides: for each head the sink at which the first output has just
 * changed to another number, so that a denominator one bit smaller gives the one before. */
static void denominators(void) {
    enum { HEADS = 24, DIM = 32, STEPS = 40 };
    const shape s = {.rows = 1, .heads = HEADS, .dim = DIM, .window = 128, .position = 300,
                     .stride = 64, .latents = 200, .values = SPREAD};
    arena_seed(5);
    plumb_act *out = arena_block(HEADS * DIM, sizeof *out), first[HEADS];
    float low[HEADS], high[HEADS], *sink = arena_block(HEADS, sizeof *sink);
    plumb_attention_args args = draw_inputs(&s, out);
    args.sink = sink;
    for (int h = 0; h < HEADS; h++) low[h] = sink[h] = 0.0f;
    harness_cpu->ops->attention(harness_cpu, &args, 1);
    for (int h = 0; h < HEADS; h++) first[h] = out[h * DIM];
    for (int h = 0; h < HEADS; h++) high[h] = 40.0f;
    for (int step = 0; step < STEPS; step++) {
        for (int h = 0; h < HEADS; h++) sink[h] = 0.5f * (low[h] + high[h]);
        harness_cpu->ops->attention(harness_cpu, &args, 1);
        for (int h = 0; h < HEADS; h++) *(out[h * DIM] == first[h] ? &low[h] : &high[h]) = sink[h];
    }
    memcpy(sink, high, sizeof high);
    check_against_cpu(&s, &args);
}

/* No window and nothing selected: the output is zero, whatever it was. */
static void no_keys(void) {
    enum { HEADS = 2, DIM = 64 };
    arena_seed(4);
    const shape s = {.rows = 1, .heads = HEADS, .dim = DIM, .position = 3, .stride = 4};
    int32_t count = 0, selected[4] = {0};
    uint8_t nothing[DIM + DIM / PLUMB_BLOCK] = {0};
    plumb_act *out = arena_block(HEADS * DIM, sizeof *out);
    plumb_attention_args args = {
        .query = arena_act_block(HEADS * DIM, ARENA_PLAIN), .heads = HEADS, .dim = DIM,
        .position = 3, .ring = nothing, .chunk = nothing, .chunk_position = 3,
        .selected = selected, .selected_count = &count, .selected_stride = 4,
        .sink = arena_float_block(HEADS, ARENA_PLAIN), .scale = 0.125f};
    emulate(&s, &args, out);
    int64_t differ = 0;
    for (int i = 0; i < HEADS * DIM; i++) differ += out[i] != 0;
    T_CHECK(differ == 0, "%" PRId64 " are not zero", differ);
    T_CHECK(arena_free_all(), "wrote outside");
}

int main(int argc, char **argv) {
    static const t_test tests[] = {{"random_shapes", random_shapes}, {"edges", edges},
                                   {"model_shapes", model_shapes}, {"denominators", denominators},
                                   {"no_keys", no_keys}};
    return harness_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));
}
