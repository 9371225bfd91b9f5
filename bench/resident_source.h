/* Where the resident network's experts, Engram rows and embeddings come from: an implementation of
 * stream/weight_source.h without files.  A program that links it has it in place of the library's. */
#ifndef BENCH_RESIDENT_SOURCE_H
#define BENCH_RESIDENT_SOURCE_H

#include "made_weights.h"
#include "stream/weight_source.h"

/* A pool of `experts` experts, handed out in turn whatever is asked for. */
PLUMB_MUST_CHECK plumb_status bench_source_create(plumb_backend *backend,
                                                  const plumb_model_config *config,
                                                  int64_t experts, bench_random *random,
                                                  plumb_weight_source **source, plumb_error *err);
void bench_source_destroy(plumb_weight_source *source);
int64_t bench_source_bytes(const plumb_weight_source *source);

#endif
