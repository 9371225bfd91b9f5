/* Work that the host divides: searches whose scores are too many for its memory, lists of experts that are
 * too long for one command, work memory that grows.  The results are those of the portable kernels. */
#import "backend/metal/metal_host.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/self_test_trial.h"
#include "metal/host/bench.h"

#include <stdlib.h>

#include "t.h"

typedef void (*operation)(plumb_trial *t);

/* Runs it on the portable kernels and on Metal with that little memory for scores. */
static void compare(const char *name, operation run, int64_t score_bytes) {
    fake_metal_options options = fake_metal_defaults();
    plumb_backend *backend[2] = {NULL, bench_open(&options)};
    const char *level;
    plumb_error err;
    if (plumb__cpu_backend_create(1, "portable", &backend[0], &level, &err) != PLUMB_OK) exit(1);
    plumb__metal(backend[1])->score_bytes = score_bytes;
    plumb_trial trial[2];
    for (int i = 0; i < 2; i++) {
        plumb_backend *b = backend[i];
        trial[i] = (plumb_trial){.b = b, .state = 7, .memory = b->ops->allocate(b, PLUMB_TRIAL_BYTES)};
        b->ops->begin(b);
        run(&trial[i]);
        b->ops->end(b);
        b->ops->wait(b);
        T_CHECK(b->ops->check(b) == PLUMB_OK, "%s: a fault", name);
        T_CHECK(trial[i].used <= PLUMB_TRIAL_BYTES, "%s: %" PRId64 " bytes", name, trial[i].used);
    }
    for (int r = 0; r < trial[0].n_results; r++) {
        plumb_trial_result *a = &trial[0].result[r], *b = &trial[1].result[r];
        T_CHECK(!memcmp(a->memory, b->memory, (size_t)(a->count * a->element_bytes)), "%s: %d", name, r);
    }
    for (int i = 0; i < 2; i++) backend[i]->ops->release(backend[i], trial[i].memory);
    backend[0]->ops->close(backend[0]);
    bench_close(backend[1]);
}

/* ---- Searches ----------------------------------------------------------------------------------- */

enum { ROWS = 23, HEADS = 2, DIM = 32, POSITION = 60, TOP_K = 9, BLOCK = 4, POOL = 6 };

static const uint8_t *index_rows(plumb_trial *t, int64_t rows) {
    uint8_t *packed = plumb__trial_memory(t, rows * plumb__index_row_bytes(DIM), 1);
    t->b->ops->pack_index(t->b, plumb__trial_acts(t, rows * DIM, -3, 0), rows, DIM, packed);
    return packed;
}

/* Builds a pool, then searches in it. */
static void searches(plumb_trial *t) {
    plumb_index_args args = {
        .query = index_rows(t, ROWS * HEADS), .weight = plumb__trial_floats(t, ROWS * HEADS, -2, 0),
        .keys = index_rows(t, POSITION + ROWS), .heads = HEADS, .dim = DIM, .position = POSITION,
        .ratio = 1, .top_k = TOP_K, .build_pool = true, .pool_blocks = POOL, .block_size = BLOCK,
        .pool = plumb__trial_memory(t, ROWS * POOL, 4), .pool_count = plumb__trial_memory(t, ROWS, 4)};
    plumb__trial_result_is(t, args.pool, ROWS * POOL, 4);
    plumb__trial_result_is(t, args.pool_count, ROWS, 4);
    for (int i = 0; i < 2; i++) {
        args.selected = plumb__trial_memory(t, ROWS * TOP_K, 4);
        args.selected_count = plumb__trial_memory(t, ROWS, 4);
        t->b->ops->index_select(t->b, &args, ROWS);
        plumb__trial_result_is(t, args.selected, ROWS * TOP_K, 4);
        plumb__trial_result_is(t, args.selected_count, ROWS, 4);
        args.build_pool = false;
        args.use_pool = true;
    }
}

/* All rows at once, some of them, with a short rest, one, and one that is too large. */
static void rows_at_a_time(void) {
    const int64_t row = (POSITION + ROWS) * (int64_t)sizeof(float);
    const int64_t bytes[] = {1 << 20, ROWS * row, ROWS * row - 1, 5 * row, row, 1};
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
        compare("search", searches, bytes[i]);
}

/* ---- Experts ------------------------------------------------------------------------------------ */

enum { INTER = 32, HIDDEN = 64 };

/* One group for each row but the first, which has none; as many experts as groups. */
static void experts(plumb_trial *t, int64_t n_groups) {
    plumb_expert_group *groups = calloc((size_t)n_groups, sizeof *groups);
    int32_t *slots = plumb__trial_memory(t, n_groups + 2, sizeof *slots);
    int64_t rows = n_groups + 2, placed = 0;
    for (int64_t g = 0; g < n_groups; g++) {
        plumb_expert e = {plumb__trial_matrix(t, PLUMB_MATRIX_FP4, INTER, HIDDEN),
                          plumb__trial_matrix(t, PLUMB_MATRIX_FP4, HIDDEN, INTER),
                          plumb__trial_matrix(t, PLUMB_MATRIX_FP4, INTER, HIDDEN)};
        int64_t count = g == n_groups - 1 ? 2 : 1;
        groups[g] = (plumb_expert_group){e, slots + placed, count, placed};
        for (int64_t i = 0; i < count; i++, placed++) slots[placed] = (int32_t)(placed + 1);
    }
    plumb_act *x = plumb__trial_acts(t, rows * HIDDEN, -2, 2);
    plumb_act *outputs = plumb__trial_memory(t, placed * HIDDEN, sizeof *outputs);
    t->b->ops->experts(t->b, plumb__trial_quantized(t, x, rows, HIDDEN), groups, n_groups,
                       plumb__trial_floats(t, rows, -1, 0), 1, 10.0f, outputs);
    plumb__trial_result_is(t, outputs, placed * HIDDEN, sizeof *outputs);
    free(groups);
}

static void one_list(plumb_trial *t) { experts(t, 32); }
static void two_lists(plumb_trial *t) { experts(t, 33); }
static void three_lists(plumb_trial *t) { experts(t, 70); }

static void lists_of_experts(void) {
    compare("32 groups", one_list, 1 << 20);
    compare("33 groups", two_lists, 1 << 20);
    compare("70 groups", three_lists, 1 << 20);
}

/* Small ones first, so that the second call needs more work memory while the first may be in flight. */
static void growing(plumb_trial *t) {
    experts(t, 3);
    experts(t, 40);
    experts(t, 5);
}

static void growing_memory(void) { compare("growing", growing, 1 << 20); }

/* Groups that are not parts of one list of slots cannot be told to the kernels. */
static void scattered_slots(void) {
    fake_metal_options options = fake_metal_defaults();
    plumb_backend *b = bench_open(&options);
    plumb_trial t = {.b = b, .memory = b->ops->allocate(b, PLUMB_TRIAL_BYTES)};
    plumb_matrix gate = plumb__trial_matrix(&t, PLUMB_MATRIX_FP4, INTER, HIDDEN);
    plumb_matrix down = plumb__trial_matrix(&t, PLUMB_MATRIX_FP4, HIDDEN, INTER);
    int32_t *slots = plumb__trial_memory(&t, 8, sizeof *slots);
    plumb_expert_group groups[] = {{{gate, down, gate}, slots, 1, 0},
                                   {{gate, down, gate}, slots + 4, 1, 1}};
    plumb_act *outputs = plumb__trial_memory(&t, 2 * HIDDEN, sizeof *outputs);
    const plumb_quantized *x =
        plumb__trial_quantized(&t, plumb__trial_acts(&t, 8 * HIDDEN, 0, 0), 8, HIDDEN);
    b->ops->experts(b, x, groups, 2, plumb__trial_floats(&t, 8, 0, 0), 1, 1.0f, outputs);
    T_CHECK(b->ops->check(b) == PLUMB_ERROR_ARGUMENT, "scattered slots");
    groups[1].slots = slots + 1;
    b->ops->experts(b, x, groups, 2, plumb__trial_floats(&t, 8, 0, 0), 1, 1.0f, outputs);
    T_CHECK(b->ops->check(b) == PLUMB_OK, "slots of one list");
    b->ops->release(b, t.memory);
    bench_close(b);
}

T_MAIN({"rows_at_a_time", rows_at_a_time}, {"lists_of_experts", lists_of_experts},
       {"growing_memory", growing_memory}, {"scattered_slots", scattered_slots})
