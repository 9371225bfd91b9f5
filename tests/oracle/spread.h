/* How far two sets of logits lie apart, in the figures of the golden data's own report. */
#ifndef PLUMB_TESTS_ORACLE_SPREAD_H
#define PLUMB_TESTS_ORACLE_SPREAD_H

#include <stdint.h>

typedef struct oracle_spread {
    double max, median, mean; /* of |difference|, over all elements */
    double rms;               /* of the difference */
    double top1;              /* share of rows with the same best token */
    double kl;                /* mean over rows of KL(want || got), natural logarithm */
} oracle_spread;

/* got, want: [rows][vocab]. */
oracle_spread oracle_compare(const float *got, const float *want, int64_t rows, int64_t vocab);

/* Index of the largest element, the first of equal ones. */
int64_t oracle_best(const float *row, int64_t n);

#endif
