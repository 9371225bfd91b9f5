/* A network of the released geometry with random weights in memory: no files.
 *
 * Forty layers would be 300 GB.  Layers share a few sets of dense weights and a pool of experts in
 * rotation; both are many times the caches, so every weight comes from memory just as if it were
 * the layer's own, and the time of a token is that of the whole model with all its weights
 * resident. */
#ifndef BENCH_RESIDENT_NETWORK_H
#define BENCH_RESIDENT_NETWORK_H

#include "made_weights.h"
#include "model/network.h"

typedef struct bench_network {
    plumb_model_config config;
    plumb_network network;
    plumb_state *state;
    int32_t *tokens;       /* [positions] random ids */
    int64_t positions;
    int64_t weight_bytes;  /* in memory */
} bench_network;

/* Keeps only layers ids[n] (ascending) of a config, sources and Engrams included.  False, with a
 * reason, when one of them would lack its source. */
bool bench_keep_layers(plumb_model_config *config, const int64_t *ids, int64_t n,
                       const char **reason);

/* Weights for `config`, experts from a pool of `experts`, a state with room for `positions`
 * positions whose caches hold random keys. */
PLUMB_MUST_CHECK plumb_status bench_network_create(plumb_backend *backend,
                                                   const plumb_model_config *config,
                                                   int64_t experts, int64_t positions,
                                                   bench_random *random, bench_network **network,
                                                   plumb_error *err);
void bench_network_destroy(bench_network *network);

/* Some dense weights, one block, as what to read for comparison. */
const void *bench_network_sample(const bench_network *network, int64_t *bytes);

#endif
