/* One run of an operation on one backend: memory, numbers, and what came of it.
 *
 * Numbers follow from the seed alone, so that two backends get the same ones.  Random mantissas would
 * hide most faults, since results are rounded to bf16: hence vectors that mirror each other, whose sums
 * are nothing but what rounding left over. */
#ifndef PLUMB_BACKEND_SELF_TEST_TRIAL_H
#define PLUMB_BACKEND_SELF_TEST_TRIAL_H

#include "backend/backend.h"

enum { PLUMB_TRIAL_BYTES = 1 << 20, PLUMB_TRIAL_RESULTS = 6 };

typedef struct plumb_trial_result {
    const void *memory;
    int64_t count;
    int element_bytes; /* 1, 2 or 4 */
} plumb_trial_result;

typedef struct plumb_trial {
    plumb_backend *b;
    uint64_t state;
    uint8_t *memory; /* PLUMB_TRIAL_BYTES of the backend's */
    int64_t used;
    plumb_trial_result result[PLUMB_TRIAL_RESULTS];
    int n_results;
    plumb_status failure; /* that `check` told a case which asked it; PLUMB_OK: none */
} plumb_trial;

/* Memory of the backend, zeroed, aligned to 16 bytes. */
void *plumb__trial_memory(plumb_trial *t, int64_t count, size_t element_bytes);
/* The elements will be compared when the operations of the trial are done. */
void plumb__trial_result_is(plumb_trial *t, const void *memory, int64_t count, size_t element_bytes);

uint64_t plumb__trial_random(plumb_trial *t);
int64_t plumb__trial_between(plumb_trial *t, int64_t least, int64_t most);
/* Any sign and mantissa, 2^low <= magnitude < 2^(high + 1). */
float plumb__trial_number(plumb_trial *t, int low, int high);
float *plumb__trial_floats(plumb_trial *t, int64_t n, int low, int high);
plumb_act *plumb__trial_acts(plumb_trial *t, int64_t n, int low, int high);

/* The second half of x[n] becomes the first, times `sign`; n is even. */
void plumb__trial_mirror_floats(float *x, int64_t n, float sign);
void plumb__trial_mirror_acts(plumb_act *x, int64_t n, float sign);

/* A weight.  The second half of every other row is the first one's negative; for FP8 and FP4, k is a
 * multiple of 64 then. */
plumb_matrix plumb__trial_matrix(plumb_trial *t, plumb_matrix_type type, int64_t n, int64_t k);
/* Rows whose halves are the same, which such a weight takes to nearly nothing. */
plumb_act *plumb__trial_mirrored_rows(plumb_trial *t, int64_t rows, int64_t k, int low, int high);
plumb_quantized *plumb__trial_quantized(plumb_trial *t, const plumb_act *x, int64_t rows, int64_t k);

/* An operation and the kernels behind it, with vectors for them. */
typedef struct plumb_trial_case {
    const char *operation, *kernels;
    void (*run)(plumb_trial *t);
    /* The operation's own output cannot be compared, only what others make of it: it is at fault when
     * all results differ. */
    bool seen_through_others;
} plumb_trial_case;

/* What self_test_*.c offer; each list ends with an operation of NULL. */
extern const plumb_trial_case plumb__trial_linear_cases[];
extern const plumb_trial_case plumb__trial_rows_cases[];
extern const plumb_trial_case plumb__trial_attention_cases[];
extern const plumb_trial_case plumb__trial_experts_cases[];

#endif
