/* How a streaming model shares its memory: dense weights, sessions and working memory first, the rest
 * is for experts.  What no expert needs any more is given back before it is missed elsewhere. */
#ifndef PLUMB_ENGINE_MEMORY_BUDGET_H
#define PLUMB_ENGINE_MEMORY_BUDGET_H

#include "engine/engine.h"

/* Memory that the backend can work with: the machine's, or less where a device says so; 0: not known. */
int64_t plumb__budget_limit(plumb_backend *backend);
/* What of it this machine can spare: an eighth, at least 4 GB and at most half, is for everything else. */
int64_t plumb__budget_default(plumb_backend *backend);

/* Weights that are always in memory, by the checkpoint. */
int64_t plumb__budget_dense_bytes(const plumb_checkpoint *checkpoint);
/* Fewest experts that are worth running with: two tokens' worth of a layer. */
int64_t plumb__budget_least_slots(const plumb_model_config *config);

/* Refuses, with the numbers, a budget that cannot hold the weights and cache_experts, or else
 * plumb__budget_least_slots: before they are loaded by their size in the files, afterwards by what
 * they take. */
PLUMB_MUST_CHECK plumb_status plumb__budget_check_model(const plumb_model *model, plumb_error *err);
/* The same for all sessions that were promised, the newest of `context` positions evaluated by `chunk`
 * rows; of a model in memory too, where a device has a limit of its own. */
PLUMB_MUST_CHECK plumb_status plumb__budget_check_session(plumb_model *model, int64_t context,
                                                          int64_t chunk, plumb_error *err);
/* The largest chunk whose working memory takes at most an eighth of what weights, sessions and one more of
 * `context` positions leave: a larger budget never chooses one that it cannot pay for. */
int64_t plumb__budget_chunk(plumb_model *model, int64_t context);

/* Are so many slots layer buffers, which keep nothing from one token to the next? */
bool plumb__budget_wants_ring(const plumb_model *model, int64_t slots);

/* Gives the experts what `rows` rows leave them now.  Called before every batch, and when the budget changes. */
void plumb__budget_apply(plumb_model *model, int64_t rows);

#endif
