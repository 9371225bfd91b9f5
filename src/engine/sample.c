/* Choosing a token from logits (docs/arithmetic.md section 10, tokenizer-and-chat.md section 8).
 *
 * The order, each step in float32 under the contract's float environment:
 *     l = logit + bias                     bias first, so that it means the same at any temperature
 *     temperature 0: the largest l, smallest id among equals; otherwise
 *     p = exp(l / T - max), candidates by p descending, then id
 *     top_k: the first k
 *     top_p: the shortest prefix whose running sum reaches top_p * (sum of what top_k left)
 *     min_p: those with p >= min_p (the best token has p = 1)
 *     the first candidate whose running sum exceeds u * (sum of what is left), u from the seed and
 *     the position
 * Log-probabilities are another matter: of the logits as given, over the whole vocabulary. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "arith/float_env.h"
#include "arith/functions.h"
#include "base/error.h"
#include "engine/candidates.h"
#include "engine/philox.h"

plumb_sampling plumb_sampling_default(void) {
    return (plumb_sampling){.temperature = 1.0f, .top_p = 0.95f};
}

/* ---- Checks -------------------------------------------------------------------------------- */

static plumb_status refuse(plumb_error *err, const char *field, double found,
                           const char *expected) {
    return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, field, -1, plumb__format("%g", found).s,
                       "%s", expected);
}

static plumb_status check_sampling(const plumb_sampling *s, int64_t vocab_size, plumb_error *err) {
    if (!(s->temperature >= 0.0f && s->temperature <= FLT_MAX))
        return refuse(err, "temperature", (double)s->temperature, "a finite number, 0 or more");
    if (s->top_k < 0) return refuse(err, "top_k", s->top_k, "0 or more");
    if (!(s->top_p >= 0.0f && s->top_p <= 1.0f))
        return refuse(err, "top_p", (double)s->top_p, "0 to 1");
    if (!(s->min_p >= 0.0f && s->min_p <= 1.0f))
        return refuse(err, "min_p", (double)s->min_p, "0 to 1");
    if (s->n_bias < 0 || (s->n_bias > 0 && !s->bias))
        return refuse(err, "n_bias", s->n_bias, "the number of entries of bias");
    for (int32_t i = 0; i < s->n_bias; i++) {
        if (s->bias[i].token < 0 || s->bias[i].token >= vocab_size)
            return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "bias", i,
                               plumb__format("token %ld", (long)s->bias[i].token).s,
                               "0 to %lld", (long long)vocab_size - 1);
        if (!(s->bias[i].bias <= FLT_MAX))
            return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "bias", i,
                               plumb__format("%g", (double)s->bias[i].bias).s,
                               "a finite number or -inf");
    }
    return PLUMB_OK;
}

/* An integer that orders floats: larger value, larger key.  Subnormals and -0 count as +0, as they
 * do in comparisons under the contract.  Integers, so that the search for the best vectorises. */
static int32_t order_key(float x) {
    int32_t bits = (int32_t)plumb__bits_of(x);
    int32_t key = bits ^ (bits >> 31 & 0x7FFFFFFF);
    return (bits & 0x7F800000) == 0 ? 0 : key;
}

/* Finds the largest logit; its first position is the greedy choice.  NaN and +inf are errors, and so
 * is a vocabulary of which every token is forbidden (-inf). */
static plumb_status find_best(const float *logits, int64_t vocab_size, int64_t *best,
                              plumb_error *err) {
    const int32_t infinity = (int32_t)PLUMB_INFINITY_BITS, minus_infinity = ~infinity;
    int32_t largest = INT32_MIN, smallest = INT32_MAX;
    for (int64_t i = 0; i < vocab_size; i++) {
        int32_t key = order_key(logits[i]);
        largest = key > largest ? key : largest;
        smallest = key < smallest ? key : smallest;
    }
    bool faulty = largest >= infinity || smallest < minus_infinity;
    for (int64_t i = 0; i < vocab_size; i++) {
        int32_t key = order_key(logits[i]);
        if (faulty && (key >= infinity || key < minus_infinity))
            return plumb__fail(err, PLUMB_ERROR_VALUE, NULL, "logits", i,
                               plumb__format("%f", (double)logits[i]).s, "a number");
        if (!faulty && key == largest) {
            *best = i;
            break;
        }
    }
    if (largest == minus_infinity)
        return plumb__fail(err, PLUMB_ERROR_VALUE, NULL, "logits", -1, "-inf for every token",
                           "one token that may be chosen");
    return PLUMB_OK;
}

/* ---- The draw ------------------------------------------------------------------------------ */

/* How many of the ordered candidates top_k, top_p and min_p leave: at least one. */
static int64_t count_kept(const plumb_candidates *candidates, const plumb_sampling *sampling) {
    int64_t kept = candidates->count;
    if (sampling->top_k > 0 && sampling->top_k < kept) kept = sampling->top_k;
    if (sampling->top_p < 1.0f) {
        const float wanted = sampling->top_p * plumb__candidates_sum(candidates, kept);
        float sum = candidates->items[0].weight;
        int64_t prefix = 1;
        while (prefix < kept && sum < wanted) sum += candidates->items[prefix++].weight;
        kept = prefix;
    }
    while (kept > 1 && candidates->items[kept - 1].weight < sampling->min_p) kept--;
    return kept;
}

static int32_t draw(const plumb_candidates *candidates, int64_t kept, float uniform) {
    const float target = uniform * plumb__candidates_sum(candidates, kept);
    float sum = candidates->items[0].weight;
    int64_t i = 0;
    while (i + 1 < kept && !(sum > target)) sum += candidates->items[++i].weight;
    return candidates->items[i].token;
}

/* A copy of the logits, which the caller frees, with biases added and forbidden tokens at -inf. */
static float *biased_copy(const float *logits, int64_t vocab_size, const plumb_sampling *sampling) {
    float *copy = malloc((size_t)vocab_size * sizeof *copy);
    if (!copy) return NULL;
    memcpy(copy, logits, (size_t)vocab_size * sizeof *copy);
    for (int32_t i = 0; i < sampling->n_bias; i++)
        copy[sampling->bias[i].token] += sampling->bias[i].bias;
    for (int64_t i = 0; sampling->allowed && i < vocab_size; i++)
        if (!(sampling->allowed[i / 32] >> i % 32 & 1)) copy[i] = -INFINITY;
    return copy;
}

static plumb_status choose(const float *logits, int64_t vocab_size, const plumb_sampling *sampling,
                           int64_t position, int32_t *token, plumb_error *err) {
    int64_t best;
    plumb_status status = find_best(logits, vocab_size, &best, err);
    if (status != PLUMB_OK) return status;
    if (sampling->temperature == 0.0f) {
        *token = (int32_t)best;
        return PLUMB_OK;
    }
    if (!(fabsf(logits[best] / sampling->temperature) <= FLT_MAX))
        return plumb__fail(err, PLUMB_ERROR_VALUE, NULL, "logits", best,
                           plumb__format("%g / temperature", (double)logits[best]).s,
                           "a finite quotient");
    plumb_candidates candidates;
    status = plumb__candidates_create(logits, vocab_size, logits[best], sampling->temperature,
                                      &candidates, err);
    if (status != PLUMB_OK) return status;
    *token = draw(&candidates, count_kept(&candidates, sampling),
                  plumb__philox_uniform(sampling->seed, (uint64_t)position));
    plumb__candidates_destroy(&candidates);
    return PLUMB_OK;
}

/* ---- Log-probabilities --------------------------------------------------------------------- */

/* Whether token a comes before b in the list of the best. */
static bool is_better(const float *logits, int32_t a, int32_t b) {
    int32_t key_a = order_key(logits[a]), key_b = order_key(logits[b]);
    return key_a != key_b ? key_a > key_b : a < b;
}

/* Restores the heap property (no parent better than its children) downwards from `place`. */
static void sift_down(plumb_logprob *heap, int64_t size, int64_t place, const float *logits) {
    for (;;) {
        int64_t worst = place;
        for (int64_t child = 2 * place + 1; child <= 2 * place + 2 && child < size; child++)
            if (is_better(logits, heap[worst].token, heap[child].token)) worst = child;
        if (worst == place) return;
        plumb_logprob moved = heap[place];
        heap[place] = heap[worst];
        heap[worst] = moved;
        place = worst;
    }
}

/* The n best tokens, best first: a heap of the best seen so far whose root is the worst of them. */
static void find_top(const float *logits, int64_t vocab_size, plumb_logprob *top, int64_t n) {
    for (int64_t i = 0; i < n; i++) top[i].token = (int32_t)i;
    for (int64_t i = n / 2; i-- > 0;) sift_down(top, n, i, logits);
    for (int64_t i = n; i < vocab_size; i++) {
        if (!is_better(logits, (int32_t)i, top[0].token)) continue;
        top[0].token = (int32_t)i;
        sift_down(top, n, 0, logits);
    }
    for (int64_t size = n; size-- > 1;) {
        plumb_logprob worst = top[0];
        top[0] = top[size];
        top[size] = worst;
        sift_down(top, size, 0, logits);
    }
}

static plumb_status report(const float *logits, int64_t vocab_size, int32_t token,
                           plumb_logprob *chosen, plumb_logprob *top, int32_t n_top,
                           plumb_error *err) {
    int64_t best;
    plumb_candidates candidates;
    plumb_status status = find_best(logits, vocab_size, &best, err);
    if (status == PLUMB_OK)
        status =
            plumb__candidates_create(logits, vocab_size, logits[best], 1.0f, &candidates, err);
    if (status != PLUMB_OK) return status;
    const float log_total = plumb__log(plumb__candidates_sum(&candidates, candidates.count));
    plumb__candidates_destroy(&candidates);
    if (chosen) *chosen = (plumb_logprob){token, (logits[token] - logits[best]) - log_total};
    if (n_top > 0) find_top(logits, vocab_size, top, n_top);
    for (int32_t i = 0; i < n_top; i++)
        top[i].logprob = (logits[top[i].token] - logits[best]) - log_total;
    return PLUMB_OK;
}

/* ---- plumb_sample -------------------------------------------------------------------------- */

/* Not inlined: its arithmetic must stay between entering and leaving the float environment. */
static __attribute__((noinline)) plumb_status
sample_in_contract(const float *logits, int64_t vocab_size, const plumb_sampling *sampling,
                   int64_t position, int32_t *token, plumb_logprob *chosen, plumb_logprob *top,
                   int32_t n_top, plumb_error *err) {
    plumb_status status = check_sampling(sampling, vocab_size, err);
    if (status != PLUMB_OK) return status;
    float *biased = NULL;
    if (sampling->n_bias > 0 || sampling->allowed) {
        biased = biased_copy(logits, vocab_size, sampling);
        if (!biased)
            return plumb__fail_memory(err, "biased logits", (size_t)vocab_size * sizeof *biased);
    }
    int32_t picked = 0;
    status = choose(biased ? biased : logits, vocab_size, sampling, position, &picked, err);
    free(biased);
    if (status == PLUMB_OK && (chosen || n_top > 0))
        status = report(logits, vocab_size, picked, chosen, top, n_top, err);
    if (status == PLUMB_OK) *token = picked;
    return status;
}

plumb_status plumb_sample(const float *logits, int64_t vocab_size, const plumb_sampling *sampling,
                          int64_t position, int32_t *token, plumb_logprob *chosen,
                          plumb_logprob *top, int32_t n_top, plumb_error *err) {
    if (!logits || !sampling || !token)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "plumb_sample", -1, "NULL",
                           "logits, sampling and token");
    if (vocab_size < 1 || vocab_size > INT32_MAX)
        return refuse(err, "vocab_size", (double)vocab_size, "1 to 2^31 - 1");
    if (position < 0) return refuse(err, "position", (double)position, "0 or more");
    if (!top) n_top = 0;
    if (n_top < 0 || n_top > vocab_size)
        return refuse(err, "n_top", n_top, "0 to the size of the vocabulary");
    uint64_t saved;
    plumb__float_env_enter(&saved);
    plumb_status status = sample_in_contract(logits, vocab_size, sampling, position, token, chosen,
                                             top, n_top, err);
    plumb__float_env_leave(saved);
    return status;
}
