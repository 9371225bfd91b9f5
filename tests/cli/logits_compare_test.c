/* Comparing rows of logits: small cases worked out by hand.  compare.py checks larger ones with Python's
 * arithmetic. */
#include "t.h"

#include "cli/logits_compare.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static void equal_rows(void) {
    static const float a[] = {1, 2, 3, -4, 5, 0};
    cli_logits_tally t = {0};
    cli_logits_tally_row(&t, a, a, 6);
    T_CHECK(t.rows == 1 && t.equal_rows == 1 && t.numbers == 6 && t.differing == 0, "rows");
    T_CHECK(t.largest <= 0 && t.divergence <= 0 && t.worst_divergence <= 0, "distances");
    T_CHECK(t.same_best == 1 && t.best == 5 && t.shared_best == 5, "best tokens");
}

/* 0 and -0 are different bits of equal numbers. */
static void signed_zero(void) {
    static const float a[] = {0, 1}, b[] = {-0.0f, 1};
    cli_logits_tally t = {0};
    cli_logits_tally_row(&t, a, b, 2);
    T_CHECK(t.equal_rows == 0 && t.differing == 1 && t.first.row == 0 && t.first.token == 0, "first");
    T_CHECK(t.largest <= 0 && t.divergence <= 0 && t.same_best == 1, "distances");
}

static void first_difference(void) {
    static const float a[] = {1, 2, 3}, b[] = {1, 2.5f, 3.5f}, c[] = {0, 2, 3};
    cli_logits_tally t = {0};
    cli_logits_tally_row(&t, a, a, 3);
    cli_logits_tally_row(&t, a, b, 3);
    cli_logits_tally_row(&t, a, c, 3);
    T_CHECK(t.rows == 3 && t.equal_rows == 1 && t.differing == 3 && t.numbers == 9, "rows");
    T_CHECK(t.first.row == 1 && t.first.token == 1, "%" PRId64 ", %" PRId64, t.first.row,
            t.first.token);
    T_CHECK(t.first.a == 2.0f && t.first.b == 2.5f, "values");
    T_CHECK(t.largest == 1.0, "largest");
}

/* Of equal logits the lower id is better, at the first place and at the fifth. */
static void ties(void) {
    static const struct {
        float a[7], b[7];
        int64_t same_best, shared;
    } rows[] = {
        {{5, 5, 4, 3, 2, 1, 0}, {5, 4, 5, 3, 2, 1, 0}, 1, 5},
        {{5, 5, 4, 3, 2, 1, 0}, {4, 5, 5, 3, 2, 1, 0}, 0, 5},
        {{9, 8, 7, 6, 5, 5, 5}, {9, 8, 7, 6, 5, 5, 4}, 1, 5}, /* id 4 stays the fifth */
        {{9, 8, 7, 6, 5, 5, 5}, {9, 8, 7, 6, 4, 5, 5}, 1, 4},
        {{1, 1, 1, 1, 1, 1, 1}, {0, 0, 1, 1, 1, 1, 1}, 0, 3},
        {{7, 6, 5, 4, 3, 2, 1}, {1, 2, 3, 4, 5, 6, 7}, 0, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_logits_tally t = {0};
        cli_logits_tally_row(&t, rows[i].a, rows[i].b, 7);
        T_CHECK(t.same_best == rows[i].same_best, "row %zu", i);
        T_CHECK(t.shared_best == rows[i].shared && t.best == 5, "row %zu: %" PRId64, i,
                t.shared_best);
    }
    static const float few[] = {1, 2, 3}, turned[] = {3, 2, 1};
    cli_logits_tally t = {0};
    cli_logits_tally_row(&t, few, turned, 3);
    T_CHECK(t.best == 3 && t.shared_best == 3 && t.same_best == 0, "few");
}

/* p = (1/2, 1/2), q = (1/4, 3/4): KL(p||q) = ln 2 - ln 3 / 2; the other way 3/4 ln 3 - ln 2. */
static void divergence(void) {
    const float one_three[] = {0, (float)log(3)}, even[] = {7, 7};
    double there = cli_logits_divergence(even, one_three, 2);
    double back = cli_logits_divergence(one_three, even, 2);
    T_CHECK(fabs(there - (log(2) - log(3) / 2)) < 1e-7, "%.17g", there);
    T_CHECK(fabs(back - (0.75 * log(3) - log(2))) < 1e-7, "%.17g", back);
    /* Logits that differ by a constant are the same distribution; large ones do not overflow. */
    static const float low[] = {-500, 0, 250, 3}, high[] = {-5e5f, -499500, -499250, -499497};
    double shifted = cli_logits_divergence(low, high, 4);
    T_CHECK(shifted >= 0 && shifted < 1e-9, "%.17g", shifted);
    static const float far[] = {3e38f, -3e38f}, apart[] = {-3e38f, 3e38f};
    T_CHECK(fabs(cli_logits_divergence(far, apart, 2) / 6e38 - 1) < 1e-6, "far apart");
}

static void sums(void) {
    static const float a[] = {1, 2}, b[] = {1, 3}, c[] = {5, 2};
    cli_logits_tally whole = {0}, first = {0}, second = {0}, total = {0};
    const float *others[] = {a, b, c};
    for (int i = 0; i < 3; i++) cli_logits_tally_row(&whole, a, others[i], 2);
    for (int i = 0; i < 1; i++) cli_logits_tally_row(&first, a, others[i], 2);
    for (int i = 1; i < 3; i++) cli_logits_tally_row(&second, a, others[i], 2);
    cli_logits_tally_add(&total, &first);
    cli_logits_tally_add(&total, &second);
    T_CHECK(total.first.row == 0 && total.first.token == 1 && total.first.b == 3.0f, "first");
    total.first = whole.first; /* rows are counted by file */
    T_CHECK(total.rows == whole.rows && total.equal_rows == 1 && total.numbers == 6 &&
            total.differing == 2 && total.same_best == whole.same_best &&
            total.best == whole.best && total.shared_best == whole.shared_best, "counts");
    T_CHECK(total.largest == 4.0 && total.divergence == whole.divergence &&
            total.worst_divergence == whole.worst_divergence && whole.worst_divergence > 0, "distances");
}

static double median_of(const double *values, int n) {
    cli_median *m = calloc(1, sizeof *m);
    if (m == NULL) return -1;
    for (int i = 0; i < n; i++) cli_median_add(m, values[i], 1);
    cli_median_next_pass(m);
    for (int i = 0; i < n; i++) cli_median_add(m, values[i], 1);
    double median = cli_median_value(m);
    free(m);
    return median;
}

static void medians(void) {
    static const struct {
        int n;
        double values[6], median;
    } rows[] = {
        {0, {0}, 0},
        {1, {3}, 3},
        {2, {4, 1}, 1}, /* the lower one */
        {3, {4, 1, 2}, 2},
        {6, {6, 5, 4, 3, 2, 1}, 3},
        {5, {0, 0, 0, 1, 2}, 0},
        {5, {0, 0, 1e-45, 1, 2}, FLT_TRUE_MIN},
        /* One upper half, told apart by the lower one alone. */
        {3, {1.00000024, 1.0, 1.00000012}, 1.00000012},
        /* Neighbours across a border of upper halves. */
        {3, {1.0078125, 1.00781238, 1.0}, 1.00781238},
        {3, {1e300, 2e300, 1}, FLT_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double found = median_of(rows[i].values, rows[i].n);
        T_CHECK(found == (double)(float)rows[i].median, "row %zu: %.9g", i, found);
    }
    cli_median *m = calloc(1, sizeof *m);
    if (m == NULL) return;
    for (int pass = 0; pass < 2; pass++) {
        cli_median_add(m, 0.25, INT64_C(3) << 40);
        cli_median_add(m, 0, INT64_C(3) << 40);
        cli_median_add(m, 7, 1);
        if (pass == 0) cli_median_next_pass(m);
    }
    T_CHECK(cli_median_value(m) == 0.25, "%.9g", cli_median_value(m));
    free(m);
}

T_MAIN({"equal_rows", equal_rows}, {"signed_zero", signed_zero},
       {"first_difference", first_difference}, {"ties", ties}, {"divergence", divergence},
       {"sums", sums}, {"medians", medians})
