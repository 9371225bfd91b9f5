/* Sampling against the contract written out plainly: every token weighted, everything sorted, every
 * sum over everything.  Plus Philox's published vectors, cases small enough to do by hand, and the
 * faults. */
#include <math.h>
#include <stdlib.h>

#include "arith/float_env.h"
#include "arith/functions.h"
#include "engine/philox.h"
#include "t.h"

enum { MOST = 4096 };

/* ---- Philox -------------------------------------------------------------------------------- */

static void philox_is_the_published(void) {
    /* known-answer vectors of the Random123 distribution, philox4x32 with 10 rounds */
    static const struct {
        uint32_t counter[4], key[2], words[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t words[4];
        plumb__philox(cases[i].counter, cases[i].key, words);
        T_CHECK(!memcmp(words, cases[i].words, sizeof words), "case %zu: %08x", i, (unsigned)words[0]);
    }
}

static void uniform_uses_seed_and_position(void) {
    T_CHECK(plumb__philox_uniform(0, 0) == (float)(0x6627e8d5u >> 8) * 0x1p-24f, "first word");
    const uint64_t seed = UINT64_C(0x123456789ABCDEF0), position = UINT64_C(0x1122334455667788);
    const uint32_t counter[4] = {0x55667788, 0x11223344, 0, 0}, key[2] = {0x9ABCDEF0, 0x12345678};
    uint32_t words[4];
    plumb__philox(counter, key, words);
    T_CHECK(plumb__philox_uniform(seed, position) == (float)(words[0] >> 8) * 0x1p-24f, "low first");
}

/* ---- The contract, written out ------------------------------------------------------------- */

typedef struct ranked {
    float p;
    int32_t token;
} ranked;

static int by_weight(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->p != y->p) return x->p > y->p ? -1 : 1;
    return x->token - y->token;
}

static float rank_all(const float *l, int n, float temperature, ranked *r) {
    float max = -INFINITY, total = 0;
    for (int i = 0; i < n; i++) max = fmaxf(max, l[i] / temperature);
    for (int i = 0; i < n; i++) r[i] = (ranked){plumb__exp(l[i] / temperature - max), i};
    qsort(r, (size_t)n, sizeof *r, by_weight);
    for (int i = 0; i < n; i++) total += r[i].p;
    return total;
}

static int32_t plain_choice(const float *logits, int n, const plumb_sampling *s, int64_t position) {
    static float l[MOST];
    static ranked r[MOST];
    memcpy(l, logits, (size_t)n * sizeof *l);
    for (int i = 0; i < s->n_bias; i++) l[s->bias[i].token] += s->bias[i].bias;
    if (s->temperature == 0) {
        int best = 0;
        for (int i = 1; i < n; i++)
            if (l[i] > l[best]) best = i;
        return best;
    }
    rank_all(l, n, s->temperature, r);
    int kept = s->top_k > 0 && s->top_k < n ? s->top_k : n;
    if (s->top_p < 1) {
        float total = 0, sum = 0;
        for (int i = 0; i < kept; i++) total += r[i].p;
        int prefix = 0;
        do sum += r[prefix++].p;
        while (prefix < kept && sum < s->top_p * total);
        kept = prefix;
    }
    int likely = 0;
    while (likely < kept && (likely == 0 || r[likely].p >= s->min_p)) likely++;
    float total = 0, sum = 0;
    for (int i = 0; i < likely; i++) total += r[i].p;
    float target = plumb__philox_uniform(s->seed, (uint64_t)position) * total;
    for (int i = 0; i < likely; i++) {
        sum += r[i].p;
        if (sum > target) return r[i].token;
    }
    return -1;
}

/* ---- Generated logits ---------------------------------------------------------------------- */

static uint64_t state = 1;

static uint32_t next_random(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

/* Roughly normal logits; the shape adds ties, -inf or a peak. */
static void make_logits(float *l, int n, int shape) {
    for (int i = 0; i < n; i++) {
        float sum = 0;
        for (int k = 0; k < 4; k++) sum += (float)(next_random() & 0xFFFF) * 0x1p-15f - 1.0f;
        l[i] = sum * 3.0f;
        if (shape == 1) l[i] = (float)(int)l[i];
        if (shape == 2 && next_random() % 3 == 0) l[i] = -INFINITY;
        if (shape == 3) l[i] = 1.0f;
        if (shape == 4) l[i] *= 40.0f;
        /* weights around 2^-24, under one certain token */
        if (shape == 5) l[i] = i == n / 2 ? 16.25f : l[i] * 0.05f;
    }
    if (shape == 2) l[next_random() % (uint32_t)n] = 2.0f;
}

static int32_t sample(const float *l, int64_t n, const plumb_sampling *s, int64_t position) {
    int32_t token = -1;
    plumb_error err = {0};
    plumb_status status = plumb_sample(l, n, s, position, &token, NULL, NULL, 0, &err);
    T_CHECK(status == PLUMB_OK, "%s: %s", err.field, err.found);
    return token;
}

static void choices_are_the_contracts(void) {
    static const plumb_logit_bias bias[] = {{0, 4.0f}, {1, -INFINITY}, {0, 1.5f}, {2, -3.0f}};
    static const plumb_sampling settings[] = {
        {.temperature = 1, .top_p = 0.95f},
        {.temperature = 1, .top_p = 1},
        {.temperature = 0, .top_p = 1},
        {.temperature = 0.3f, .top_p = 0.9f, .seed = 7},
        {.temperature = 2.5f, .top_p = 1, .top_k = 40, .seed = UINT64_MAX},
        {.temperature = 1, .top_p = 1, .top_k = 100000},
        {.temperature = 1, .top_p = 1, .top_k = 1},
        {.temperature = 1, .top_p = 0.5f, .top_k = 3, .min_p = 0.2f},
        {.temperature = 1, .top_p = 1e-6f},
        {.temperature = 1, .top_p = 0},
        {.temperature = 1, .top_p = 1, .min_p = 1},
        {.temperature = 1, .top_p = 1, .min_p = 0.05f},
        {.temperature = 1e30f, .top_p = 1},
        {.temperature = 1e30f, .top_p = 0.3f},
        {.temperature = 1e-20f, .top_p = 1},
        {.temperature = 1, .top_p = 0.95f, .bias = bias, .n_bias = 4},
        {.temperature = 0, .top_p = 1, .bias = bias, .n_bias = 4},
        {.temperature = 0.7f, .top_p = 1, .bias = bias, .n_bias = 2},
    };
    static const int sizes[] = {3, 17, 700, MOST};
    static float l[MOST];
    for (int shape = 0; shape < 6; shape++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            make_logits(l, sizes[k], shape);
            for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
                for (int64_t position = 0; position < 8; position++) {
                    int32_t token = sample(l, sizes[k], &settings[i], position);
                    uint64_t saved;
                    plumb__float_env_enter(&saved);
                    int32_t expected = plain_choice(l, sizes[k], &settings[i], position);
                    plumb__float_env_leave(saved);
                    T_CHECK(token == expected, "shape %d size %d setting %zu position %d: %d, not %d",
                            shape, sizes[k], i, (int)position, token, expected);
                }
        }
}

static void small_cases_by_hand(void) {
    /* weights 1, 1/2, 1/4, 1/8 in another order: total 1.875 */
    static const float l[4] = {-0.693147182f, 0.0f, -2.07944155f, -1.38629436f};
    static const struct {
        plumb_sampling sampling;
        int32_t tokens[4]; /* at positions 0 to 3: u = 0.39905, 0.97224, 0.01945, 0.78737 */
    } cases[] = {
        /* running sums 1, 1.5, 1.75, 1.875; targets 0.748, 1.823, 0.036, 1.476 */
        {{.temperature = 1, .top_p = 1}, {1, 2, 1, 0}},
        /* 0.75 of 1.875 lies in the second token; targets 0.599, 1.458, 0.029, 1.181 */
        {{.temperature = 1, .top_p = 0.75f}, {1, 0, 1, 0}},
        /* the wanted half is reached by the first token, of four as of three */
        {{.temperature = 1, .top_p = 0.5f}, {1, 1, 1, 1}},
        {{.temperature = 1, .top_p = 0.5f, .top_k = 3}, {1, 1, 1, 1}},
        /* 1/4 stays, 1/8 does not; targets 0.698, 1.701, 0.034, 1.378 */
        {{.temperature = 1, .top_p = 1, .min_p = 0.2f}, {1, 3, 1, 0}},
        /* squares: 1, 1/4, 1/16, 1/64; targets 0.530, 1.291, 0.026, 1.046 */
        {{.temperature = 0.5f, .top_p = 1}, {1, 3, 1, 0}},
        /* roots: 1, 0.7071, 0.5, 0.3536; targets 1.022, 2.490, 0.050, 2.016 */
        {{.temperature = 2, .top_p = 1}, {0, 2, 1, 3}},
        {{.temperature = 0, .top_p = 1}, {1, 1, 1, 1}},
    };
    for (int64_t position = 0; position < 4; position++) {
        static const float uniform[4] = {0.3990464f, 0.9722412f, 0.0194494f, 0.7873678f};
        float u = plumb__philox_uniform(0, (uint64_t)position);
        T_CHECK(fabsf(u - uniform[position]) < 1e-5f, "position %d: %.7f", (int)position, (double)u);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            int32_t token = sample(l, 4, &cases[i].sampling, position);
            T_CHECK(token == cases[i].tokens[position], "case %zu position %d: %d", i, (int)position,
                    token);
        }
    }
}

/* Equal logits make the running sums whole numbers; where the target is one too, the sum must exceed
 * it, not reach it. */
static void a_running_sum_must_exceed(void) {
    static float l[MOST];
    const plumb_sampling s = {.temperature = 1, .top_p = 1};
    int found = 0;
    for (int64_t position = 0; position < 40000; position++) {
        float target = plumb__philox_uniform(0, (uint64_t)position) * (float)MOST;
        if (target != floorf(target)) continue;
        found++;
        int32_t token = sample(l, MOST, &s, position);
        T_CHECK(token == (int32_t)target, "position %d: %d", (int)position, token);
    }
    T_CHECK(found > 3, "%d targets are whole", found);
}

/* Zeros of either sign and subnormals are equal: the smallest id wins. */
static void zeros_are_equal(void) {
    static const float l[4] = {-1.0f, -0.0f, 0.0f, 1e-40f};
    static const float below[4] = {-1.0f, -1e-40f, -0.0f, 0.0f};
    const plumb_sampling greedy = {.temperature = 0, .top_p = 1};
    T_CHECK(sample(l, 4, &greedy, 0) == 1, "-0 comes first");
    T_CHECK(sample(below, 4, &greedy, 0) == 1, "a subnormal counts as zero");
    plumb_logprob top[4];
    int32_t token;
    T_CHECK(plumb_sample(l, 4, &greedy, 0, &token, NULL, top, 4, NULL) == PLUMB_OK, "top");
    for (int i = 0; i < 4; i++)
        T_CHECK(top[i].token == (i + 1) % 4, "place %d: %d", i, top[i].token);
}

/* ---- Log-probabilities --------------------------------------------------------------------- */

static void logprobs_are_of_the_given_logits(void) {
    static const plumb_logit_bias bias[] = {{3, 50.0f}};
    static float l[MOST];
    static ranked r[MOST];
    static plumb_logprob top[MOST];
    for (int shape = 0; shape < 6; shape++) {
        make_logits(l, 700, shape);
        l[3] = -2.0f;
        plumb_sampling s = {.temperature = 0.2f, .top_p = 1, .bias = bias, .n_bias = 1};
        if (shape == 4) s.temperature = 0;
        int32_t token = -1;
        plumb_logprob chosen = {-1, 0};
        T_CHECK(plumb_sample(l, 700, &s, 5, &token, &chosen, top, 700, NULL) == PLUMB_OK, "%d", shape);
        T_CHECK(token == 3 || shape == 4, "the biased token: %d", token);
        float total = rank_all(l, 700, 1.0f, r), max = l[r[0].token];
        for (int i = 0; i < 700; i++) max = fmaxf(max, l[i]);
        T_CHECK(chosen.token == token &&
                    chosen.logprob == (l[token] - max) - plumb__log(total),
                "shape %d: %.9g", shape, (double)chosen.logprob);
        double sum = 0;
        for (int i = 0; i < 700; i++) {
            int32_t t = top[i].token;
            T_CHECK(top[i].logprob == (l[t] - max) - plumb__log(total), "shape %d place %d", shape, i);
            T_CHECK(i == 0 || l[top[i - 1].token] > l[t] ||
                        (l[top[i - 1].token] == l[t] && top[i - 1].token < t),
                    "shape %d place %d: order", shape, i);
            sum += exp((double)top[i].logprob);
        }
        T_CHECK(fabs(sum - 1) < 1e-4, "shape %d: probabilities add up to %.9g", shape, sum);
        plumb_logprob few[5];
        T_CHECK(plumb_sample(l, 700, &s, 5, &token, NULL, few, 5, NULL) == PLUMB_OK, "%d", shape);
        T_CHECK(!memcmp(few, top, sizeof few), "shape %d: the best five", shape);
    }
}

/* ---- Statistics ---------------------------------------------------------------------------- */

static void draws_have_the_distribution(void) {
    static const float l[8] = {0.5f, -1.0f, 2.0f, 0.0f, 1.5f, -0.5f, 1.0f, -2.0f};
    enum { DRAWS = 40000 };
    for (int run = 0; run < 4; run++) {
        const float temperature = 0.5f + 0.5f * (float)run;
        plumb_sampling s = {.temperature = temperature, .top_p = 1, .seed = 11 + (uint64_t)run};
        double counts[8] = {0}, weights[8], total = 0, chi = 0;
        for (int64_t position = 0; position < DRAWS; position++) counts[sample(l, 8, &s, position)]++;
        for (int i = 0; i < 8; i++) total += weights[i] = exp((double)l[i] / (double)temperature);
        for (int i = 0; i < 8; i++) {
            double expected = DRAWS * weights[i] / total;
            chi += (counts[i] - expected) * (counts[i] - expected) / expected;
        }
        /* seven degrees of freedom: 24.3 is exceeded once in a thousand; the seeds are fixed */
        T_CHECK(chi < 24.3, "temperature %g: chi-square %.2f", (double)temperature, chi);
    }
}

static void same_inputs_same_token(void) {
    static float l[MOST];
    make_logits(l, MOST, 0);
    plumb_sampling s = plumb_sampling_default();
    T_CHECK(s.temperature == 1.0f && s.top_p == 0.95f && s.top_k == 0 && s.min_p == 0 && s.seed == 0 &&
                !s.bias && s.n_bias == 0,
            "defaults");
    int differ = 0;
    for (int64_t position = 0; position < 100; position++) {
        int32_t token = sample(l, MOST, &s, position);
        T_CHECK(token == sample(l, MOST, &s, position), "position %d", (int)position);
        differ += token != sample(l, MOST, &(plumb_sampling){.temperature = 1, .top_p = 0.95f, .seed = 1},
                                  position);
    }
    T_CHECK(differ > 50, "another seed gives other tokens: %d of 100 differ", differ);
}

/* ---- Faults -------------------------------------------------------------------------------- */

static void faults_are_named(void) {
    static const plumb_logit_bias ends[] = {{0, 0}, {8, 1}}, negative[] = {{-1, 1}},
                                  not_a_number[] = {{0, NAN}}, infinite[] = {{1, INFINITY}};
    static const plumb_logit_bias all[] = {{0, -INFINITY}, {1, -INFINITY}, {2, -INFINITY},
                                           {3, -INFINITY}, {4, -INFINITY}, {5, -INFINITY},
                                           {6, -INFINITY}, {7, -INFINITY}};
    static const struct {
        plumb_sampling sampling;
        int place; /* where `logit` is put, or -1 */
        float logit;
        plumb_status status;
        const char *field;
        int64_t offset;
    } cases[] = {
        {{.temperature = 1, .top_p = 1}, 5, NAN, PLUMB_ERROR_VALUE, "logits", 5},
        {{.temperature = 1, .top_p = 1}, 6, -NAN, PLUMB_ERROR_VALUE, "logits", 6},
        {{.temperature = 0, .top_p = 1}, 0, NAN, PLUMB_ERROR_VALUE, "logits", 0},
        {{.temperature = 0, .top_p = 1}, 7, INFINITY, PLUMB_ERROR_VALUE, "logits", 7},
        {{.temperature = 1, .top_p = 1}, 3, INFINITY, PLUMB_ERROR_VALUE, "logits", 3},
        {{.temperature = 1e-37f, .top_p = 1}, 3, 100, PLUMB_ERROR_VALUE, "logits", 3},
        {{.temperature = 1, .top_p = 1, .bias = all, .n_bias = 8}, -1, 0, PLUMB_ERROR_VALUE, "logits", -1},
        {{.temperature = NAN, .top_p = 1}, -1, 0, PLUMB_ERROR_ARGUMENT, "temperature", -1},
        {{.temperature = -1, .top_p = 1}, -1, 0, PLUMB_ERROR_ARGUMENT, "temperature", -1},
        {{.temperature = INFINITY, .top_p = 1}, -1, 0, PLUMB_ERROR_ARGUMENT, "temperature", -1},
        {{.temperature = 1, .top_p = 1.5f}, -1, 0, PLUMB_ERROR_ARGUMENT, "top_p", -1},
        {{.temperature = 1, .top_p = NAN}, -1, 0, PLUMB_ERROR_ARGUMENT, "top_p", -1},
        {{.temperature = 1, .top_p = 1, .top_k = -1}, -1, 0, PLUMB_ERROR_ARGUMENT, "top_k", -1},
        {{.temperature = 1, .top_p = 1, .min_p = -0.1f}, -1, 0, PLUMB_ERROR_ARGUMENT, "min_p", -1},
        {{.temperature = 1, .top_p = 1, .n_bias = 1}, -1, 0, PLUMB_ERROR_ARGUMENT, "n_bias", -1},
        {{.temperature = 1, .top_p = 1, .bias = ends, .n_bias = 2}, -1, 0, PLUMB_ERROR_ARGUMENT, "bias", 1},
        {{.temperature = 1, .top_p = 1, .bias = negative, .n_bias = 1}, -1, 0, PLUMB_ERROR_ARGUMENT, "bias", 0},
        {{.temperature = 1, .top_p = 1, .bias = not_a_number, .n_bias = 1}, -1, 0, PLUMB_ERROR_ARGUMENT, "bias", 0},
        {{.temperature = 1, .top_p = 1, .bias = infinite, .n_bias = 1}, -1, 0, PLUMB_ERROR_ARGUMENT, "bias", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float l[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        if (cases[i].place >= 0) l[cases[i].place] = cases[i].logit;
        plumb_error err = {0};
        int32_t token = -77;
        plumb_status status = plumb_sample(l, 8, &cases[i].sampling, 0, &token, NULL, NULL, 0, &err);
        T_CHECK(status == cases[i].status && !strcmp(err.field, cases[i].field) &&
                    err.offset == cases[i].offset && token == -77,
                "case %zu: %s, %s %" PRId64, i, plumb_status_name(status), err.field, err.offset);
    }
    static const float l[2] = {1, 2};
    plumb_sampling s = plumb_sampling_default();
    int32_t token;
    plumb_logprob top[3];
    const plumb_status refused[] = {
        plumb_sample(NULL, 2, &s, 0, &token, NULL, NULL, 0, NULL),
        plumb_sample(l, 2, NULL, 0, &token, NULL, NULL, 0, NULL),
        plumb_sample(l, 2, &s, 0, NULL, NULL, NULL, 0, NULL),
        plumb_sample(l, 0, &s, 0, &token, NULL, NULL, 0, NULL),
        plumb_sample(l, 2, &s, -1, &token, NULL, NULL, 0, NULL),
        plumb_sample(l, 2, &s, 0, &token, NULL, top, 3, NULL),
        plumb_sample(l, 2, &s, 0, &token, NULL, top, -1, NULL),
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        T_CHECK(refused[i] == PLUMB_ERROR_ARGUMENT, "call %zu", i);
}

T_MAIN({"philox_is_the_published", philox_is_the_published},
       {"uniform_uses_seed_and_position", uniform_uses_seed_and_position},
       {"choices_are_the_contracts", choices_are_the_contracts},
       {"small_cases_by_hand", small_cases_by_hand},
       {"a_running_sum_must_exceed", a_running_sum_must_exceed},
       {"zeros_are_equal", zeros_are_equal},
       {"logprobs_are_of_the_given_logits", logprobs_are_of_the_given_logits},
       {"draws_have_the_distribution", draws_have_the_distribution},
       {"same_inputs_same_token", same_inputs_same_token},
       {"faults_are_named", faults_are_named})
