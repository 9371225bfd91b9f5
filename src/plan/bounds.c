#include "plan/bounds.h"

#include "model/network.h"

#include <math.h>

static double over(double amount, double rate) {
    return rate > 0 ? amount / rate : 0;
}

static plumb_bound bound(plumb_cost cost, double tokens, const plumb_rates *rates) {
    cost.disk_seconds = over(cost.disk_bytes, rates->disk);
    cost.link_seconds = over(cost.link_bytes, rates->link);
    cost.memory_seconds =
        over(cost.memory_bytes, rates->device > 0 ? rates->device : rates->memory);
    cost.compute_seconds = over(cost.flop, rates->compute);
    /* Kernels read while they compute. */
    double kernels = fmax(cost.memory_seconds, cost.compute_seconds);
    return (plumb_bound){.cost = cost,
                         .tokens = tokens,
                         .serial = tokens / (kernels + cost.link_seconds + cost.disk_seconds),
                         .overlapped =
                             tokens / fmax(kernels, fmax(cost.link_seconds, cost.disk_seconds))};
}

plumb_bound plumb__bound_decode(const plumb_model_sizes *sizes, const plumb_rates *rates,
                                plumb_hits hits, int64_t position) {
    double experts = (double)plumb__model_token_experts(sizes) * (double)sizes->expert_bytes;
    plumb_cost cost = {.disk_bytes = (1 - hits.anywhere) * experts + (double)sizes->row_read_bytes,
                       .link_bytes = rates->device > 0 ? (1 - hits.computing) * experts : 0,
                       .memory_bytes =
                           (double)sizes->dense_bytes + experts +
                           (double)plumb__model_cache_read_bytes(&sizes->config, position),
                       .flop = plumb__model_token_flop(sizes, position)};
    return bound(cost, 1, rates);
}

double plumb__experts_touched(const plumb_model_config *c, int64_t rows) {
    double spared = 1 - (double)c->experts_per_token / (double)c->experts;
    return (double)c->experts * (1 - pow(spared, (double)rows));
}

/* Adds what rows `begin` to `end` of the prompt cost as one batch. */
static void add_chunk(const plumb_model_sizes *sizes, const plumb_prompt *prompt, int64_t begin,
                      int64_t end, bool device, plumb_cost *cost) {
    const plumb_model_config *c = &sizes->config;
    plumb_state state = {.config = c, .length = begin};
    plumb_batch batch = {
        .state = &state, .rows = end - begin, .end = prompt->end, .first_logits = end - begin};
    double touched = 0;
    for (int64_t l = 0; l < c->layers; l++) {
        int64_t full = plumb__needed_rows(c, &batch, l).full, rows = batch.rows - full;
        if (rows == 0) continue;
        touched += plumb__experts_touched(c, rows);
        cost->memory_bytes += (double)sizes->layer_bytes[l];
        cost->flop += (double)rows * plumb__model_layer_flop(sizes, l);
        for (int64_t r = full; r < batch.rows; r++)
            cost->flop += plumb__model_attention_flop(c, l, begin + r);
    }
    if (end == prompt->end) {
        cost->memory_bytes += (double)sizes->config.vocab * (double)sizes->config.hidden * 2;
        cost->flop += 2.0 * (double)sizes->head_macs;
    }
    bool first = begin == prompt->begin && !prompt->warm;
    double computing = first ? 0 : (double)prompt->kept_computing;
    double anywhere = first ? 0 : (double)prompt->kept_anywhere;
    double expert = (double)sizes->expert_bytes;
    cost->memory_bytes += touched * expert;
    /* Rows are read once each, so that all of them are at most the tables. */
    double rows = fmin((double)batch.rows * (double)sizes->row_read_bytes,
                       (double)(sizes->engram_bytes + sizes->embed_bytes));
    cost->disk_bytes += fmax(touched - anywhere, 0) * expert + rows;
    if (device) cost->link_bytes += fmax(touched - computing, 0) * expert;
}

plumb_bound plumb__bound_prefill(const plumb_model_sizes *sizes, const plumb_rates *rates,
                                 const plumb_prompt *prompt) {
    plumb_cost cost = {0};
    int64_t last = prompt->begin + prompt->rows;
    for (int64_t begin = prompt->begin; begin < last; begin += prompt->chunk) {
        int64_t end = begin + prompt->chunk < last ? begin + prompt->chunk : last;
        add_chunk(sizes, prompt, begin, end, rates->device > 0, &cost);
    }
    return bound(cost, (double)prompt->rows, rates);
}
