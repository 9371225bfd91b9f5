/* Two rows of logits for the same position, compared: bits, distances, what a reader of the model
 * would notice.  Pure computation; all numbers must be finite.
 *
 * Sums run in row and token order in float64, so the same files give the same report. */
#ifndef PLUMB_CLI_LOGITS_COMPARE_H
#define PLUMB_CLI_LOGITS_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

enum { CLI_BEST_TOKENS = 5 };

/* The first number whose bits differ. */
typedef struct cli_first_difference {
    int64_t row, token;
    float a, b;
} cli_first_difference;

/* What the rows of one pair of files, or of many, have in common.  Start with zeros. */
typedef struct cli_logits_tally {
    int64_t rows, equal_rows;     /* equal: every bit */
    int64_t numbers, differing;   /* differing: in any bit, 0 and -0 do */
    cli_first_difference first;   /* if differing > 0 */
    double largest;               /* |a - b| */
    int64_t same_best;            /* rows whose best token is the same; of equal ones the lower id is better */
    int64_t best, shared_best;    /* the five best (or as many as there are) of all rows; how many of A's
                                   * are among B's */
    double divergence, worst_divergence; /* KL(A||B) in nats: the sum over rows, the largest */
} cli_logits_tally;

/* Counts one row. */
void cli_logits_tally_row(cli_logits_tally *tally, const float *a, const float *b, int64_t vocab);
/* `first` stays the one of `total` if it has one. */
void cli_logits_tally_add(cli_logits_tally *total, const cli_logits_tally *part);

/* KL(A||B) of the two softmax distributions, in nats.  Rounding can make the sum of two nearly equal
 * rows a little less than 0; then it is 0. */
double cli_logits_divergence(const float *a, const float *b, int64_t vocab);

/* The exact median of more numbers than fit into memory, in two passes over them.  Positive floats sort
 * as their bits do: the first pass counts upper halves, which leaves one; the second counts the lower
 * halves behind it.  Of an even number of values the lower middle one is the median. */
typedef struct cli_median {
    int64_t counts[1 << 16];
    int64_t values, before; /* `before`: values below those that are counted now */
    uint32_t upper;
    int pass;               /* 0 or 1 */
} cli_median;

/* So many times the same value, 0 or more, rounded to float32, at most the largest finite one. */
void cli_median_add(cli_median *median, double value, int64_t times);
/* Ends the first pass; the same values must be added again. */
void cli_median_next_pass(cli_median *median);
/* After the second pass; 0 if there were no values. */
double cli_median_value(const cli_median *median);

#endif
