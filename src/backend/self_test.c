/* The self test: runs cases on both backends and compares what they wrote. */
#include "backend/self_test.h"

#include "backend/self_test_trial.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static const plumb_trial_case *const lists[] = {
    plumb__trial_linear_cases,
    plumb__trial_rows_cases,
    plumb__trial_attention_cases,
    plumb__trial_experts_cases,
};
enum { LISTS = sizeof lists / sizeof lists[0] };

/* Runs a case; the trial keeps its memory, which the caller releases. */
static plumb_status run(plumb_trial *t, plumb_backend *b, const plumb_trial_case *c, uint64_t seed,
                        plumb_error *err) {
    *t = (plumb_trial){.b = b, .state = seed};
    t->memory = b->ops->allocate(b, PLUMB_TRIAL_BYTES);
    if (!t->memory) return plumb__fail_memory(err, "self test", PLUMB_TRIAL_BYTES);
    b->ops->begin(b);
    c->run(t);
    b->ops->end(b);
    b->ops->wait(b);
    plumb_status status = b->ops->check(b);
    if (t->failure != PLUMB_OK) status = t->failure;
    if (t->used > PLUMB_TRIAL_BYTES) return plumb__fail_memory(err, c->operation, (size_t)t->used);
    if (status == PLUMB_OK) return PLUMB_OK;
    bool wrong = status == PLUMB_ERROR_VALUE;
    return plumb__fail(err, wrong ? PLUMB_ERROR_UNSUPPORTED : status, NULL,
                       plumb__format("self test of %s: operation %s, kernel %s", b->ops->name,
                                     c->operation, c->kernels)
                           .s,
                       -1, wrong ? "a non-finite value" : plumb_status_name(status), NULL);
}

/* The first element that differs, or -1. */
static int64_t first_difference(const plumb_trial_result *a, const plumb_trial_result *b) {
    const uint8_t *x = a->memory, *y = b->memory;
    int64_t bytes = a->count * a->element_bytes;
    for (int64_t i = 0; i < bytes; i++)
        if (x[i] != y[i]) return i / a->element_bytes;
    return -1;
}

static plumb__text192 element(const plumb_trial_result *r, int64_t i) {
    const uint8_t *at = (const uint8_t *)r->memory + i * r->element_bytes;
    uint32_t bits = 0; /* little-endian, as all machines that we know */
    memcpy(&bits, at, (size_t)r->element_bytes);
    return plumb__format("bits %0*x", 2 * r->element_bytes, bits);
}

static plumb_status compare(const plumb_trial *tested, const plumb_trial *portable,
                            const plumb_trial_case *c, plumb_error *err) {
    int worst = -1;
    int64_t place = -1;
    for (int i = 0; i < tested->n_results; i++) {
        int64_t at = first_difference(&tested->result[i], &portable->result[i]);
        if (at < 0 && c->seen_through_others) return PLUMB_OK;
        if (at < 0 || worst >= 0) continue;
        worst = i;
        place = at;
    }
    if (worst < 0) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL,
                       plumb__format("self test of %s: operation %s, kernel %s, element",
                                     tested->b->ops->name, c->operation, c->kernels)
                           .s,
                       place, element(&tested->result[worst], place).s, "%s",
                       element(&portable->result[worst], place).s);
}

plumb_status plumb__backend_self_test(plumb_backend *tested, plumb_backend *portable,
                                      plumb_error *err) {
    plumb_status status = PLUMB_OK;
    uint64_t seed = 0;
    for (int l = 0; l < LISTS; l++)
        for (const plumb_trial_case *c = lists[l]; c->operation && status == PLUMB_OK; c++) {
            plumb_trial found = {0}, expected = {0};
            status = run(&expected, portable, c, ++seed, err);
            if (status == PLUMB_OK) status = run(&found, tested, c, seed, err);
            if (status == PLUMB_OK) status = compare(&found, &expected, c, err);
            portable->ops->release(portable, expected.memory);
            tested->ops->release(tested, found.memory);
        }
    return status;
}
