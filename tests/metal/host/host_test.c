/* The Metal host's own work: memory that is found by any pointer, that outlives its release while the GPU
 * uses it, and is back after that; command buffers that fail, queue up, or come from two backends. */
#include "backend/self_test_trial.h"
#include "metal/host/bench.h"

#include <pthread.h>
#include <stdlib.h>

#include "t.h"

enum { OUT_OF_MEMORY = 8, PAGE_FAULT = 3 }; /* MTLCommandBufferError */

static plumb_backend *open_plain(void) {
    fake_metal_options options = fake_metal_defaults();
    return bench_open(&options);
}

static int64_t live_buffers(void) { return fake_metal_count().live_buffers; }

/* ---- Pointers ----------------------------------------------------------------------------------- */

static void interior_pointers(void) {
    plumb_backend *b = open_plain();
    enum { N = 1000, BLOCKS = 9 };
    plumb_act *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) block[i] = bench_counting(b, N);
    plumb_act *out = b->ops->allocate(b, BLOCKS * N * (int64_t)sizeof *out);
    static const int64_t starts[] = {0, 1, 500, 992};
    for (int i = 0; i < BLOCKS; i++)
        for (int s = 0; s < 4; s++) {
            int64_t n = N - starts[s], at = i * N + 3;
            b->ops->copy(b, block[i] + starts[s], out + at, (n - 3) * 2);
            T_CHECK(bench_counts(b, out + at, n - 3, starts[s]), "block %d from %" PRId64, i,
                    starts[s]);
            T_CHECK(b->ops->address(b, block[i] + starts[s]) ==
                        b->ops->address(b, block[i]) + (uint64_t)(2 * starts[s]),
                    "address inside of block %d", i);
        }
    for (int i = 0; i < BLOCKS; i += 2) b->ops->release(b, block[i]);
    for (int i = 1; i < BLOCKS; i += 2) {
        b->ops->copy(b, block[i], out, N * 2);
        T_CHECK(bench_counts(b, out, N, 0), "block %d without its neighbours", i);
    }
    T_CHECK(b->ops->check(b) == PLUMB_OK, "a fault");
    bench_close(b);
}

/* What is not the backend's memory is refused, and nothing is done. */
static void foreign_pointers(void) {
    plumb_backend *b = open_plain();
    enum { N = 64 };
    plumb_act mine[N] = {0};
    plumb_act *x = bench_counting(b, N), *gone = bench_counting(b, N);
    b->ops->release(b, gone);
    const void *foreign[] = {mine, gone, x + N, NULL};
    for (int i = 0; i < 4; i++) {
        T_CHECK(b->ops->address(b, foreign[i]) == 0, "address of %d", i);
        b->ops->copy(b, foreign[i], x, N);
        b->ops->wait(b);
        T_CHECK(b->ops->check(b) == PLUMB_ERROR_ARGUMENT, "pointer %d", i);
        T_CHECK(b->ops->check(b) == PLUMB_OK, "told twice");
    }
    b->ops->release(b, mine);
    T_CHECK(b->ops->check(b) == PLUMB_ERROR_ARGUMENT, "release");
    b->ops->release(b, x + 1);
    T_CHECK(b->ops->check(b) == PLUMB_ERROR_ARGUMENT, "release of an interior pointer");
    b->ops->release(b, NULL);
    T_CHECK(b->ops->check(b) == PLUMB_OK, "release of nothing");
    T_CHECK(bench_counts(b, x, N, 0), "something was written");
    bench_close(b);
}

/* ---- Life of memory ------------------------------------------------------------------------------ */

static void release_in_flight(void) {
    plumb_backend *b = open_plain();
    enum { N = 5000 };
    plumb_act *from = bench_counting(b, N), *to = b->ops->allocate(b, N * 2);
    int64_t buffers = live_buffers();
    fake_metal_allow(0);
    b->ops->copy(b, from, to, N * 2);
    b->ops->release(b, from); /* not even submitted */
    T_CHECK(live_buffers() == buffers, "freed before it was read");
    T_CHECK(b->ops->check(b) == PLUMB_OK, "a fault");
    plumb_act *other = b->ops->allocate(b, N * 2); /* must not take its place */
    T_CHECK(other != from && live_buffers() == buffers + 1, "freed while it is read");
    fake_metal_allow(FAKE_METAL_ALL);
    fake_metal_settle();
    T_CHECK(b->ops->check(b) == PLUMB_OK && b->ops->address(b, to) != 0, "a fault");
    T_CHECK(fake_metal_count().autoreleased == 0, "freed, or looked at, without a pool");
    T_CHECK(bench_counts(b, to, N, 0), "another result");
    T_CHECK(live_buffers() == buffers, "not freed afterwards");
    b->ops->release(b, to);
    T_CHECK(live_buffers() == buffers - 1, "kept though nothing is in flight");
    bench_close(b);
}

/* One expert for one row, its weights in memory of their own. */
static void ask_expert(plumb_trial *t, void *weights, plumb_act *out) {
    enum { INTER = 32, HIDDEN = 64 };
    plumb_trial own = {.b = t->b, .state = 3, .memory = weights};
    plumb_expert_group group = {.slots = plumb__trial_memory(t, 1, sizeof(int32_t)), .count = 1};
    group.expert.gate = plumb__trial_matrix(&own, PLUMB_MATRIX_FP8, INTER, HIDDEN);
    group.expert.down = plumb__trial_matrix(&own, PLUMB_MATRIX_FP8, HIDDEN, INTER);
    group.expert.up = plumb__trial_matrix(&own, PLUMB_MATRIX_FP8, INTER, HIDDEN);
    const plumb_act *x = plumb__trial_acts(t, HIDDEN, -2, 2);
    t->b->ops->experts(t->b, plumb__trial_quantized(t, x, 1, HIDDEN), &group, 1,
                       plumb__trial_floats(t, 1, 0, 0), 1, 10.0f, out);
}

/* Experts are reached by addresses: no command buffer keeps their memory for us. */
static void release_of_experts_in_flight(void) {
    plumb_backend *b = open_plain();
    enum { HIDDEN = 64 };
    plumb_act out[3][HIDDEN];
    for (int i = 0; i < 3; i++) {
        plumb_trial t = {.b = b, .state = 5, .memory = b->ops->allocate(b, PLUMB_TRIAL_BYTES)};
        void *weights = b->ops->allocate(b, PLUMB_TRIAL_BYTES);
        plumb_act *y = plumb__trial_memory(&t, HIDDEN, sizeof *y);
        int64_t buffers = live_buffers();
        if (i > 0) fake_metal_allow(0);
        ask_expert(&t, weights, y);
        if (i == 2) b->ops->release(b, weights); /* not even submitted */
        T_CHECK(b->ops->check(b) == PLUMB_OK, "a fault");
        if (i == 1) b->ops->release(b, weights);
        if (i > 0) {
            T_CHECK(live_buffers() >= buffers, "freed while it may be read");
            fake_metal_allow(FAKE_METAL_ALL);
        }
        b->ops->wait(b);
        T_CHECK(b->ops->check(b) == PLUMB_OK, "a fault");
        memcpy(out[i], y, sizeof out[i]);
        if (i == 0) b->ops->release(b, weights);
        b->ops->release(b, t.memory);
    }
    T_CHECK(!memcmp(out[0], out[1], sizeof out[0]) && !memcmp(out[0], out[2], sizeof out[0]), "another result");
    bench_close(b);
}

/* What the GPU needs no more makes room for what is wanted, though nobody has asked how far it is. */
static void freed_for_others(void) {
    plumb_backend *b = open_plain();
    enum { N = 5000 };
    plumb_act *from = bench_counting(b, N), *to = b->ops->allocate(b, N * 2);
    fake_metal_allow(0);
    b->ops->copy(b, from, to, N * 2);
    T_CHECK(b->ops->check(b) == PLUMB_OK, "a fault");
    b->ops->release(b, from);
    fake_metal_allow(FAKE_METAL_ALL);
    fake_metal_settle();
    fake_metal_options options = fake_metal_defaults();
    options.memory_bytes = (uint64_t)fake_metal_count().live_bytes;
    fake_metal_configure(&options);
    void *other = b->ops->allocate(b, N * 2);
    T_CHECK(other != NULL, "no room");
    bench_close(b);
}

static void zeroed_and_flat(void) {
    plumb_backend *b = open_plain();
    enum { N = 300 };
    plumb_act *x = bench_counting(b, N);
    int64_t buffers = 0, bytes = 0;
    for (int i = 1; i <= 256; i++) {
        plumb_act *y = b->ops->allocate(b, N * 2);
        T_CHECK(y[0] == 0 && y[N - 1] == 0, "not zeroed");
        b->ops->copy(b, x, y, N * 2);
        T_CHECK(b->ops->check(b) == PLUMB_OK, "a fault");
        b->ops->release(b, y);
        if (i % 8 == 0) b->ops->wait(b);
        fake_metal_counters c = fake_metal_count();
        if (i == 8) {
            buffers = c.live_buffers;
            bytes = c.live_bytes;
        }
        T_CHECK(i % 8 != 0 || (c.live_buffers == buffers && c.live_bytes == bytes),
                "%d: %" PRId64 " buffers", i, c.live_buffers);
        T_CHECK(c.autoreleased <= 8, "%d: %" PRId64 " autoreleased", i, c.autoreleased);
    }
    bench_close(b);
}

static void sizes(void) {
    fake_metal_options options = fake_metal_defaults();
    options.max_buffer_bytes = 4 << 20;
    options.working_set_bytes = 77;
    plumb_backend *b = bench_open(&options);
    T_CHECK(b->ops->memory_limit(b) == 77, "limit");
    T_CHECK(b->ops->allocate(b, -1) == NULL, "a negative size");
    T_CHECK(b->ops->allocate(b, (4 << 20) + 1) == NULL, "more than a buffer may be");
    void *nothing = b->ops->allocate(b, 0);
    T_CHECK(nothing != NULL, "no bytes");
    b->ops->release(b, nothing);
    bench_close(b);
}

/* An operation that has no memory of its own is told, and works when there is some. */
static void no_scratch(void) {
    plumb_backend *b = open_plain();
    enum { ROWS = 4, HEADS = 1, DIM = 32, KEYS = 4000, TOP_K = 8 };
    int64_t row = plumb__index_row_bytes(DIM);
    uint8_t *keys = b->ops->allocate(b, KEYS * row), *query = b->ops->allocate(b, ROWS * row);
    float *weight = b->ops->allocate(b, ROWS * 4);
    int32_t *selected = b->ops->allocate(b, ROWS * TOP_K * 4), *count = b->ops->allocate(b, ROWS * 4);
    plumb_index_args args = {.query = query, .weight = weight, .keys = keys, .heads = HEADS,
                             .dim = DIM, .position = KEYS - ROWS, .ratio = 1, .top_k = TOP_K,
                             .selected = selected, .selected_count = count};
    fake_metal_options options = fake_metal_defaults();
    options.memory_bytes = (uint64_t)fake_metal_count().live_bytes + 1000;
    fake_metal_configure(&options);
    b->ops->index_select(b, &args, ROWS);
    T_CHECK(b->ops->check(b) == PLUMB_ERROR_MEMORY, "no memory for scores");
    T_CHECK(count[0] == 0, "something was selected");
    options.memory_bytes = 0;
    fake_metal_configure(&options);
    b->ops->index_select(b, &args, ROWS);
    b->ops->wait(b);
    T_CHECK(b->ops->check(b) == PLUMB_OK && count[ROWS - 1] == TOP_K, "with memory");
    bench_close(b);
}

/* More keys than threadgroup memory holds scores of: a fault, not other numbers. */
static void too_many_keys(void) {
    plumb_backend *b = open_plain();
    enum { DIM = 32 };
    void *memory = b->ops->allocate(b, 65536);
    plumb_attention_args args = {.query = memory, .heads = 1, .dim = DIM, .window = 4,
                                 .ring = memory, .chunk = memory, .selected = memory,
                                 .selected_count = memory, .selected_stride = 9000, .sink = memory,
                                 .scale = 1.0f, .out = memory};
    b->ops->attention(b, &args, 1);
    T_CHECK(b->ops->check(b) == PLUMB_ERROR_UNSUPPORTED, "9004 scores");
    bench_close(b);
}

/* ---- Commands ------------------------------------------------------------------------------------ */

/* A command buffer that fails is told, once, and never waited for in vain; what was in flight is freed. */
static void failing_commands(void) {
    static const struct {
        int64_t code;
        bool signals;
        plumb_status status;
    } failures[] = {{OUT_OF_MEMORY, false, PLUMB_ERROR_MEMORY},
                    {OUT_OF_MEMORY, true, PLUMB_ERROR_MEMORY},
                    {PAGE_FAULT, false, PLUMB_ERROR_IO},
                    {PAGE_FAULT, true, PLUMB_ERROR_IO}};
    plumb_backend *b = open_plain();
    enum { N = 100, COMMANDS = 4 };
    plumb_act *x = bench_counting(b, N), *y = b->ops->allocate(b, N * 2);
    int64_t buffers = live_buffers();
    for (int f = 0; f < 4; f++)
        for (int64_t at = 1; at <= COMMANDS; at++) {
            fake_metal_options options = fake_metal_defaults();
            options.fail_commit = at;
            options.fail_code = failures[f].code;
            options.fail_signals = failures[f].signals;
            fake_metal_configure(&options);
            plumb_status told = PLUMB_OK;
            for (int i = 0; i < COMMANDS; i++) {
                plumb_act *z = b->ops->allocate(b, N * 2);
                b->ops->copy(b, x, z, N * 2);
                plumb_status status = b->ops->check(b);
                told = status != PLUMB_OK ? status : told;
                b->ops->release(b, z);
            }
            b->ops->wait(b);
            plumb_status status = b->ops->check(b);
            T_CHECK((told == PLUMB_OK ? status : told) == failures[f].status, "%s",
                    plumb_status_name(status));
            T_CHECK(b->ops->check(b) == PLUMB_OK, "told twice");
            T_CHECK(live_buffers() == buffers, "%" PRId64 " buffers more", live_buffers() - buffers);
            b->ops->copy(b, x, y, N * 2);
            T_CHECK(bench_counts(b, y, N, 0) && b->ops->check(b) == PLUMB_OK, "works no more");
        }
    bench_close(b);
}

/* `check` waits for nothing, until no more command buffers can be in flight. */
static void many_in_flight(void) {
    fake_metal_options options = fake_metal_defaults();
    plumb_backend *b = bench_open(&options);
    enum { N = 40, COMMANDS = 300 };
    plumb_act *x = bench_counting(b, N), *y = b->ops->allocate(b, (N + COMMANDS) * 2);
    int64_t waits = fake_metal_count().waits;
    fake_metal_allow(0);
    for (int i = 0; i < 60; i++) {
        b->ops->copy(b, x, y + i, N * 2);
        T_CHECK(b->ops->check(b) == PLUMB_OK, "a fault");
    }
    T_CHECK(fake_metal_count().waits == waits, "waited");
    fake_metal_allow(FAKE_METAL_ALL);
    for (int i = 60; i < COMMANDS; i++) {
        b->ops->copy(b, x, y + i, N * 2);
        T_CHECK(b->ops->check(b) == PLUMB_OK, "a fault");
        T_CHECK(fake_metal_count().live_command_buffers <= 65, "too many in flight");
    }
    T_CHECK(bench_counts(b, y + COMMANDS - 1, N, 0), "the last one");
    for (int i = 0; i < COMMANDS - 1; i++) T_CHECK(y[i] == 0, "one out of turn");
    /* Command buffers in flight were autoreleased, too. */
    T_CHECK(fake_metal_count().most_autoreleased <= 64 + BENCH_LITTER, "%" PRId64 " autoreleased at a time",
            fake_metal_count().most_autoreleased);
    bench_close(b);
}

/* Operations of one command buffer and of several see what those before them wrote. */
static void in_turn(void) {
    fake_metal_options options = fake_metal_defaults();
    options.delay_us_max = 2000;
    plumb_backend *b = bench_open(&options);
    enum { N = 200, STEPS = 50 };
    plumb_act *x = bench_counting(b, N + STEPS), *y = b->ops->allocate(b, (N + STEPS) * 2);
    for (int i = 0; i < STEPS; i++) { /* each step drops the first one */
        b->ops->copy(b, x + 1, y, (N + STEPS - 1) * 2);
        b->ops->copy(b, y, x, (N + STEPS - 1) * 2);
        if (i % 5 == 0) T_CHECK(b->ops->check(b) == PLUMB_OK, "a fault");
    }
    T_CHECK(bench_counts(b, x, N, STEPS), "out of turn");
    bench_close(b);
}

static void two_backends(void) {
    plumb_backend *a = open_plain(), *b = open_plain();
    enum { N = 100 };
    plumb_act *x = bench_counting(a, N), *y = bench_counting(b, N);
    T_CHECK(a->ops->address(a, y) == 0 && b->ops->address(b, x) == 0, "memory of the other");
    plumb_act *of_a = a->ops->allocate(a, N * 2), *of_b = b->ops->allocate(b, N * 2);
    for (int i = 0; i < 20; i++) {
        a->ops->copy(a, x + i, of_a, 2);
        b->ops->copy(b, y + 2 * i, of_b, 2);
        T_CHECK(a->ops->check(a) == PLUMB_OK && b->ops->check(b) == PLUMB_OK, "a fault");
    }
    a->ops->copy(a, y, of_a, 2);
    a->ops->wait(a);
    b->ops->wait(b);
    T_CHECK(a->ops->check(a) == PLUMB_ERROR_ARGUMENT && b->ops->check(b) == PLUMB_OK,
            "a fault of the other");
    T_CHECK(of_a[0] == 19 && of_b[0] == 38, "results");
    a->ops->close(a);
    b->ops->copy(b, y, of_b, N * 2);
    T_CHECK(bench_counts(b, of_b, N, 0), "after the other was closed");
    bench_close(b);
}

/* ---- Threads ------------------------------------------------------------------------------------- */

static void *churn(void *arg) {
    plumb_backend *b = arg;
    void *memory[8] = {0};
    for (int i = 0; i < 400; i++) {
        void **place = &memory[i * 5 % 8];
        b->ops->release(b, *place);
        *place = b->ops->allocate(b, 64 + i);
        if (*place) memset(*place, i, 64);
    }
    for (int i = 0; i < 8; i++) b->ops->release(b, memory[i]);
    return NULL;
}

/* Others allocate and release while operations are issued. */
static void threads(void) {
    plumb_backend *b = open_plain();
    enum { N = 64, THREADS = 3 };
    plumb_act *x = bench_counting(b, N), *y = b->ops->allocate(b, N * 2);
    b->ops->wait(b);
    int64_t buffers = live_buffers();
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&thread[t], NULL, churn, b) != 0) exit(1);
    for (int i = 0; i < 200; i++) {
        b->ops->copy(b, x, y, N * 2);
        T_CHECK(b->ops->check(b) == PLUMB_OK, "a fault");
    }
    for (int t = 0; t < THREADS; t++) (void)pthread_join(thread[t], NULL);
    T_CHECK(bench_counts(b, y, N, 0), "a result");
    T_CHECK(live_buffers() == buffers, "%" PRId64 " buffers more", live_buffers() - buffers);
    bench_close(b);
}

T_MAIN({"interior_pointers", interior_pointers}, {"foreign_pointers", foreign_pointers},
       {"release_in_flight", release_in_flight},
       {"release_of_experts_in_flight", release_of_experts_in_flight}, {"freed_for_others", freed_for_others},
       {"zeroed_and_flat", zeroed_and_flat},
       {"sizes", sizes}, {"no_scratch", no_scratch}, {"too_many_keys", too_many_keys},
       {"failing_commands", failing_commands}, {"many_in_flight", many_in_flight},
       {"in_turn", in_turn}, {"two_backends", two_backends}, {"threads", threads})
