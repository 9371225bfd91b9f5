#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(plumb_status status, const plumb_error *err, const char *what) {
    if (status == PLUMB_OK) return;
    char line[1024];
    plumb_error_line(err, line, sizeof line);
    fprintf(stderr, "%s: %s\n", what, line);
    exit(1);
}

void oracle_open(oracle_run *run, const char *folder, const int32_t *ids, int64_t n_ids) {
    plumb_error err;
    *run = (oracle_run){.ids = ids, .n_ids = n_ids};
    must(plumb_model_open(folder, NULL, &run->model, &err), &err, folder);
    run->network = &run->model->network;
    run->config = run->network->config;
    must(plumb__state_create(run->config, run->model->backend, &run->state, &err), &err, folder);
    run->logits = calloc((size_t)(n_ids * run->config->vocab), sizeof *run->logits);
    if (!run->logits) must(PLUMB_ERROR_MEMORY, &err, "logits");
}

static int keep_row(void *user, int64_t position, const float *logits) {
    oracle_run *run = user;
    int64_t vocab = run->config->vocab;
    memcpy(run->logits + position * vocab, logits, (size_t)vocab * sizeof *logits);
    return 0;
}

void oracle_eval_to(oracle_run *run, int64_t length) {
    plumb_error err;
    plumb_batch batch = {.state = run->state, .tokens = run->ids,
                         .rows = length - run->state->length, .end = length,
                         .first_logits = 0, .sink = keep_row,
                         .sink_user = run, .observe = run->observe, .observe_user = run};
    must(plumb__network_forward(run->network, &batch, &err), &err, "forward");
}

void oracle_decode(oracle_run *run, int64_t start, int64_t length) {
    oracle_restart(run);
    oracle_eval_to(run, start);
    while (run->state->length < length) oracle_eval_to(run, run->state->length + 1);
}

void oracle_restart(oracle_run *run) { plumb__state_clear(run->state); }

void oracle_close(oracle_run *run) {
    plumb__state_destroy(run->state);
    plumb_model_close(run->model);
    free(run->logits);
}

bool oracle_same_list(const plumb_network *network, int64_t row, const int32_t *golden) {
    int64_t top_k = network->config->index_topk, count = network->work.selected_count[row];
    const int32_t *selected = network->work.selected + row * top_k;
    for (int64_t i = 0; i < top_k; i++)
        if (golden[i] != (i < count ? selected[i] : -1)) return false;
    return true;
}

bool oracle_same_experts(const int32_t *ids, const uint8_t *golden, int64_t k) {
    int64_t found = 0;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < k; j++) found += ids[i] == golden[j];
    return found == k; /* both lists are without repetition */
}

bool oracle_same_pool(const plumb_network *network, int64_t row, const uint8_t *mask, int64_t n) {
    const plumb_model_config *c = network->config;
    const int32_t *pool = network->work.pool + row * c->candidate_blocks;
    int64_t count = network->work.pool_count[row], next = 0;
    for (int64_t j = 0; j < n; j++) {
        while (next < count && (pool[next] + 1) * c->candidate_block_size <= j) next++;
        bool in = next < count && pool[next] * c->candidate_block_size <= j;
        if (in != (mask[j] != 0)) return false;
    }
    return true;
}
