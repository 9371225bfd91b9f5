#include "spread.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int64_t oracle_best(const float *row, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

/* log(sum(exp(row))) */
static double log_sum(const float *row, int64_t n) {
    double most = (double)row[oracle_best(row, n)], sum = 0;
    for (int64_t i = 0; i < n; i++) sum += exp((double)row[i] - most);
    return most + log(sum);
}

static double row_kl(const float *got, const float *want, int64_t n) {
    double got_sum = log_sum(got, n), want_sum = log_sum(want, n), kl = 0;
    for (int64_t i = 0; i < n; i++) {
        double p = (double)want[i] - want_sum;
        kl += exp(p) * (p - ((double)got[i] - got_sum));
    }
    return kl;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

oracle_spread oracle_compare(const float *got, const float *want, int64_t rows, int64_t vocab) {
    oracle_spread s = {0};
    int64_t count = rows * vocab;
    double *off = malloc((size_t)count * sizeof *off);
    if (!off) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    for (int64_t i = 0; i < count; i++) {
        off[i] = fabs((double)got[i] - (double)want[i]);
        s.mean += off[i] / (double)count;
        s.rms += off[i] * off[i] / (double)count;
    }
    s.rms = sqrt(s.rms);
    qsort(off, (size_t)count, sizeof *off, ascending);
    s.max = off[count - 1];
    s.median = (off[(count - 1) / 2] + off[count / 2]) / 2;
    free(off);
    for (int64_t r = 0; r < rows; r++) {
        const float *g = got + r * vocab, *w = want + r * vocab;
        s.top1 += (oracle_best(g, vocab) == oracle_best(w, vocab) ? 1.0 : 0.0) / (double)rows;
        s.kl += row_kl(g, w, vocab) / (double)rows;
    }
    return s;
}
