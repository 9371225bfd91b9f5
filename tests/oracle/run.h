/* Runs a model over golden inputs through the network itself, so that a test can watch every
 * sublayer and choose how positions are grouped into batches.  Compiled into each test, since the
 * activation type differs between the engine and its build without roundings.
 *
 * What cannot be opened or evaluated ends the program: there is nothing left to test. */
#ifndef PLUMB_TESTS_ORACLE_RUN_H
#define PLUMB_TESTS_ORACLE_RUN_H

#include "engine/engine.h"

typedef struct oracle_run {
    plumb_model *model;
    plumb_network *network;
    const plumb_model_config *config;
    plumb_state *state;
    const int32_t *ids; /* [n_ids] the whole sequence, borrowed */
    int64_t n_ids;
    float *logits;      /* [n_ids][vocab]; row p follows token p */
    plumb_observer observe; /* set by the test; its user pointer is this run */
    void *user;             /* the test's own */
} oracle_run;

/* Opens the checkpoint at `folder` and an empty sequence that will hold ids[n_ids]. */
void oracle_open(oracle_run *run, const char *folder, const int32_t *ids, int64_t n_ids);
/* Evaluates the tokens up to `length` as one batch. */
void oracle_eval_to(oracle_run *run, int64_t length);
/* Prefills `start` tokens, then feeds the rest one at a time up to `length`. */
void oracle_decode(oracle_run *run, int64_t start, int64_t length);
/* Back to the empty sequence. */
void oracle_restart(oracle_run *run);
void oracle_close(oracle_run *run);

/* Logits that follow token `position`. */
static inline const float *oracle_row(const oracle_run *run, int64_t position) {
    return run->logits + position * run->config->vocab;
}

/* Whether the ascending list of compressed positions that `row` of the batch attends to is the
 * golden one (-1: unused). */
bool oracle_same_list(const plumb_network *network, int64_t row, const int32_t *golden);
/* Whether the experts that a row's router chose are the golden ones, as sets of k. */
bool oracle_same_experts(const int32_t *ids, const uint8_t *golden, int64_t k);
/* Whether the row's candidate pool is the golden mask[n] of compressed positions, which holds whole
 * blocks, the newest one too. */
bool oracle_same_pool(const plumb_network *network, int64_t row, const uint8_t *mask, int64_t n);

#endif
