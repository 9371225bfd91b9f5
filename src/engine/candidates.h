/* The tokens that a draw can reach, in the contract's order (docs/arithmetic.md section 10).
 *
 * A token has the weight p = exp(logit / T - max): the best token's is 1.  The contract sums the
 * weights of the whole vocabulary one by one, largest first, in float32.  That sum starts at 1, so a
 * weight below 2^-24, less than half its last place, changes nothing and can never be drawn: only
 * the others are kept, usually a few hundred of 129,280, and sorted.  The result is that of the full
 * sort, bit for bit. */
#ifndef PLUMB_ENGINE_CANDIDATES_H
#define PLUMB_ENGINE_CANDIDATES_H

#include "plumb.h"

typedef struct plumb_candidate {
    float weight; /* in [2^-24, 1] */
    int32_t token;
} plumb_candidate;

typedef struct plumb_candidates {
    plumb_candidate *items; /* weight descending, then token ascending; owned */
    int64_t count;          /* at least 1 */
} plumb_candidates;

/* `best` is the largest of logits[vocab_size] and finite, no logit is NaN or +inf, temperature is
 * normal and best / temperature finite.  To be called in the contract's float environment. */
PLUMB_MUST_CHECK plumb_status plumb__candidates_create(const float *logits, int64_t vocab_size,
                                                       float best, float temperature,
                                                       plumb_candidates *candidates,
                                                       plumb_error *err);
void plumb__candidates_destroy(plumb_candidates *candidates);

/* Sum of the weights of the first `count`, one by one. */
float plumb__candidates_sum(const plumb_candidates *candidates, int64_t count);

#endif
