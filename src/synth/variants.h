/* The configurations of the synthetic variants. */
#ifndef PLUMB_SYNTH_VARIANTS_H
#define PLUMB_SYNTH_VARIANTS_H

#include "format/model_config.h"
#include "synth/json_text.h"
#include "synth/synth.h"

/* The shape of the checkpoint that `options` ask for.  What a config file does not say itself
 * (latest sources per layer, folded vocabulary) is left zero. */
void plumb__variant_shape(const plumb_synth_options *options, plumb_model_config *shape);
/* Layers of the uncut model: the residual's growth is shared among them. */
int64_t plumb__variant_depth(const plumb_synth_options *options);

/* Writes `shape` as config.json, key for key and space for space as the release writes it. */
void plumb__write_config(const plumb_model_config *shape, plumb__json_text *text);

#endif
