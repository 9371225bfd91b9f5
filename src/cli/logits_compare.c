/* Comparing logits; see logits_compare.h. */
#include "cli/logits_compare.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- Distances ------------------------------------------------------------------------------ */

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Fills best[n] with the ids of the n largest logits, best first. */
static void best_tokens(const float *logits, int64_t vocab, int64_t *best, int n) {
    int held = 0;
    for (int64_t token = 0; token < vocab; token++) {
        int at = held;
        while (at > 0 && logits[token] > logits[best[at - 1]]) at--;
        if (at == n) continue;
        if (held < n) held++;
        for (int i = held - 1; i > at; i--) best[i] = best[i - 1];
        best[at] = token;
    }
}

static double log_sum_exp(const float *logits, int64_t vocab) {
    double most = logits[0], sum = 0;
    for (int64_t i = 1; i < vocab; i++)
        if (logits[i] > most) most = logits[i];
    for (int64_t i = 0; i < vocab; i++) sum += exp(logits[i] - most);
    return most + log(sum);
}

double cli_logits_divergence(const float *a, const float *b, int64_t vocab) {
    double log_a = log_sum_exp(a, vocab), log_b = log_sum_exp(b, vocab), sum = 0;
    for (int64_t i = 0; i < vocab; i++) {
        double p = a[i] - log_a, q = b[i] - log_b;
        sum += exp(p) * (p - q);
    }
    return sum > 0 ? sum : 0;
}

/* ---- Tallies -------------------------------------------------------------------------------- */

static void count_best(cli_logits_tally *tally, const float *a, const float *b, int64_t vocab) {
    int64_t best_a[CLI_BEST_TOKENS], best_b[CLI_BEST_TOKENS];
    int n = vocab < CLI_BEST_TOKENS ? (int)vocab : CLI_BEST_TOKENS;
    best_tokens(a, vocab, best_a, n);
    best_tokens(b, vocab, best_b, n);
    tally->same_best += best_a[0] == best_b[0];
    tally->best += n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) tally->shared_best += best_a[i] == best_b[j];
}

void cli_logits_tally_row(cli_logits_tally *tally, const float *a, const float *b, int64_t vocab) {
    double largest = 0;
    int64_t differing = 0;
    for (int64_t i = 0; i < vocab; i++) {
        if (bits_of(a[i]) == bits_of(b[i])) continue;
        if (tally->differing == 0 && differing == 0)
            tally->first =
                (cli_first_difference){.row = tally->rows, .token = i, .a = a[i], .b = b[i]};
        differing++;
        double difference = fabs((double)a[i] - (double)b[i]);
        if (difference > largest) largest = difference;
    }
    count_best(tally, a, b, vocab);
    tally->rows++;
    tally->numbers += vocab;
    tally->differing += differing;
    tally->equal_rows += differing == 0;
    if (largest > tally->largest) tally->largest = largest;
    double divergence = largest > 0 ? cli_logits_divergence(a, b, vocab) : 0;
    tally->divergence += divergence;
    if (divergence > tally->worst_divergence) tally->worst_divergence = divergence;
}

void cli_logits_tally_add(cli_logits_tally *total, const cli_logits_tally *part) {
    if (total->differing == 0) total->first = part->first;
    total->rows += part->rows;
    total->equal_rows += part->equal_rows;
    total->numbers += part->numbers;
    total->differing += part->differing;
    if (part->largest > total->largest) total->largest = part->largest;
    total->same_best += part->same_best;
    total->best += part->best;
    total->shared_best += part->shared_best;
    total->divergence += part->divergence;
    if (part->worst_divergence > total->worst_divergence)
        total->worst_divergence = part->worst_divergence;
}

/* ---- Medians -------------------------------------------------------------------------------- */

void cli_median_add(cli_median *median, double value, int64_t times) {
    uint32_t bits = bits_of(value < FLT_MAX ? (float)value : FLT_MAX);
    if (median->pass == 0) {
        median->counts[bits >> 16] += times;
        median->values += times;
    } else if (bits >> 16 == median->upper) {
        median->counts[bits & 0xFFFF] += times;
    }
}

/* The half that holds the value of the median's rank; `before` counts all values below it. */
static uint32_t half_of_median(const cli_median *median, int64_t *before) {
    int64_t rank = (median->values - 1) / 2;
    uint32_t half = 0;
    *before = median->before;
    while (half < 0xFFFF && *before + median->counts[half] <= rank) *before += median->counts[half++];
    return half;
}

void cli_median_next_pass(cli_median *median) {
    int64_t before;
    median->upper = half_of_median(median, &before);
    median->before = before;
    median->pass = 1;
    memset(median->counts, 0, sizeof median->counts);
}

double cli_median_value(const cli_median *median) {
    if (median->values == 0) return 0;
    int64_t before;
    uint32_t bits = median->upper << 16 | half_of_median(median, &before);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
