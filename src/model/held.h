/* Experts that the backend finds by itself, and a network that runs ahead of it. */
#ifndef PLUMB_MODEL_HELD_H
#define PLUMB_MODEL_HELD_H

#include "model/network.h"

/* begin and end enclose the layers of a batch.  In between, where n->holding, a layer's experts are asked
 * for by `experts` alone; and when it is due, `settle` waits and learns how far the backend came: *layer
 * stays, or becomes the layer whose experts were missing, which is done then; the next one is to follow. */
void plumb__held_begin(plumb_network *network, const plumb_batch *batch);
void plumb__held_experts(plumb_network *network, const plumb_batch *batch, int64_t layer, int64_t first);
bool plumb__held_is_due(const plumb_network *network, int64_t layer);
PLUMB_MUST_CHECK plumb_status plumb__held_settle(plumb_network *network, const plumb_batch *batch,
                                                 int64_t *layer, plumb_error *err);
/* Layers that are known to be done when `layer` has been asked for: never fewer than before. */
int64_t plumb__held_layers_done(const plumb_network *network, int64_t layer);
void plumb__held_end(plumb_network *network);

#endif
