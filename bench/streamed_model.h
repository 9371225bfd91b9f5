/* A model whose experts come from its files, run one batch at a time and watched from inside: how
 * long the operations of each layer take, before and after its router, and what is read meanwhile.
 * Experts are chosen evenly, since no cache and no guess should help in a measurement of the drive. */
#ifndef BENCH_STREAMED_MODEL_H
#define BENCH_STREAMED_MODEL_H

#include "model/network.h"
#include "timed_backend.h"

typedef struct bench_streamed {
    plumb_checkpoint *checkpoint;
    int32_t *token_map;
    plumb_backend *backend;
    bench_timed_backend timed;
    plumb_network network;
    plumb_state *state;
    const int32_t *tokens; /* the sequence, borrowed */
} bench_streamed;

/* Times of one layer in one batch, in seconds of operations alone: no waiting, no reads. */
typedef struct bench_layer_pass {
    double before; /* up to the router, which says what must be read */
    double after;  /* experts and what follows them: may go on while experts are read */
    double bytes;  /* read while the layer was at work */
} bench_layer_pass;

/* One batch. */
typedef struct bench_pass {
    double seconds; /* by the clock */
    double outside; /* of operations before the first layer and after the last */
    bench_layer_pass layer[PLUMB_MAX_LAYERS];
} bench_pass;

/* Dense weights and head are read; `level` as in plumb__cpu_backend_create. */
PLUMB_MUST_CHECK plumb_status bench_streamed_open(const char *folder, int threads,
                                                  const char *level, bench_streamed *model,
                                                  plumb_error *err);
void bench_streamed_close(bench_streamed *model);
/* Begins a sequence with weights from `source`, opened on the model's checkpoint; both live on. */
void bench_streamed_begin(bench_streamed *model, plumb_weight_source *source,
                          const int32_t *tokens);
/* The next `rows` tokens, with logits of the last. */
PLUMB_MUST_CHECK plumb_status bench_streamed_run(bench_streamed *model, int64_t rows,
                                                 bench_pass *pass, plumb_error *err);
const plumb_model_config *bench_streamed_config(const bench_streamed *model);
/* The file with the experts of a layer. */
const char *bench_streamed_shard(const bench_streamed *model, int64_t layer);

#endif
