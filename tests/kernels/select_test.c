/* Selection of the k best against sorting: larger values first, equal ones by the smaller index,
 * where -0 and subnormals equal +0. */
#include "backend/cpu/select.h"

#include "kernels/arena.h"

#include <stdlib.h>

#include "t.h"

typedef struct candidate {
    double value; /* exact; subnormals are 0 */
    int32_t index;
} candidate;

static int better_first(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->value != y->value) return x->value > y->value ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static int ascending(const void *a, const void *b) {
    return *(const int32_t *)a < *(const int32_t *)b ? -1 : 1;
}

static bool is_normal(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7F800000u) != 0;
}

static void check(const float *value, int64_t n, int64_t k, const char *what) {
    candidate *sorted = malloc((size_t)(n + 1) * sizeof *sorted);
    int64_t taken = k < n ? k : n;
    int32_t *out = arena_block(taken, sizeof *out);
    int32_t *expected = malloc((size_t)(taken + 1) * sizeof *expected);
    if (!sorted || !expected) exit(1);
    for (int64_t i = 0; i < n; i++)
        sorted[i] = (candidate){is_normal(value[i]) ? (double)value[i] : 0.0, (int32_t)i};
    qsort(sorted, (size_t)n, sizeof *sorted, better_first);
    for (int64_t i = 0; i < taken; i++) expected[i] = sorted[i].index;
    qsort(expected, (size_t)taken, sizeof *expected, ascending);
    int64_t got = plumb__select_top(value, n, k, out);
    T_CHECK(got == taken, "%s, n %" PRId64 ", k %" PRId64 ": %" PRId64 " taken", what, n, k, got);
    T_CHECK(got == taken && !memcmp(out, expected, (size_t)taken * sizeof *out),
            "%s, n %" PRId64 ", k %" PRId64 ": another set", what, n, k);
    free(expected);
    free(sorted);
    T_CHECK(arena_free_all(), "%s wrote outside", what);
}

static void random_values(void) {
    arena_seed(3);
    for (int round = 0; round < 600; round++) {
        int64_t n = arena_between(1, 700);
        const float *value =
            arena_float_block(n, (arena_values)arena_between(ARENA_PLAIN, ARENA_HUGE));
        check(value, n, arena_between(1, n + 3), "random");
    }
}

/* Few distinct values: the k-th place is nearly always a tie. */
static void ties(void) {
    static const float values[] = {0.0f,  -0.0f, 1e-40f,         -1e-40f,        1.0f,
                                   -1.0f, 1.5f,  1.1754944e-38f, -1.1754944e-38f};
    arena_seed(4);
    for (int round = 0; round < 600; round++) {
        int64_t n = arena_between(1, 200), distinct = arena_between(1, 9);
        float *value = arena_block(n, sizeof *value);
        for (int64_t i = 0; i < n; i++) value[i] = values[arena_random() % (uint64_t)distinct];
        check(value, n, arena_between(1, n), "ties");
    }
}

/* By hand: nothing here but the rule itself. */
static void by_hand(void) {
    static const struct {
        float value[5];
        int64_t k;
        int32_t expected[5];
    } cases[] = {
        {{5, 4, 3, 2, 1}, 2, {0, 1}},
        {{1, 2, 3, 4, 5}, 2, {3, 4}},
        {{7, 7, 7, 7, 7}, 3, {0, 1, 2}},
        {{-1, 7, 0, 7, 7}, 2, {1, 3}},
        {{-0.0f, 0.0f, -0.0f, 0.0f, -1}, 3, {0, 1, 2}},
        {{-1e-40f, 1e-40f, 0, -3, -2}, 1, {0}},
        {{-3, -1, -2, -5, -4}, 3, {0, 1, 2}},
        {{3.4e38f, -3.4e38f, 1, -1, 0}, 4, {0, 2, 3, 4}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int32_t out[5];
        int64_t n = plumb__select_top(cases[i].value, 5, cases[i].k, out);
        T_CHECK(n == cases[i].k && !memcmp(out, cases[i].expected, (size_t)n * sizeof *out),
                "case %d", (int)i);
    }
    int32_t out[2];
    float two[2] = {1, 2};
    T_CHECK(plumb__select_top(two, 2, 0, out) == 0, "k 0");
    T_CHECK(plumb__select_top(two, 0, 5, out) == 0, "n 0");
    T_CHECK(plumb__select_top(two, 2, 5, out) == 2 && out[0] == 0 && out[1] == 1, "k above n");
}

T_MAIN({"random_values", random_values}, {"ties", ties}, {"by_hand", by_hand})
