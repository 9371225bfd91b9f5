/* Which tensors a config needs (spec: checkpoint.md section 3), as one table of patterns.
 *
 * A name is looked up by taking it apart, the whole set is visited by expanding the patterns; the
 * list of 96,085 names is never built. */
#ifndef PLUMB_FORMAT_TENSOR_TABLE_H
#define PLUMB_FORMAT_TENSOR_TABLE_H

#include "format/model_config.h"
#include "format/tensor.h"

typedef struct plumb_tensor_spec {
    int64_t shape[2]; /* rank 1: shape[1] = 1 */
    int64_t bytes;
    uint8_t rank, dtype, tensor_class; /* plumb_dtype, plumb_tensor_class */
} plumb_tensor_spec;

typedef enum plumb_tensor_lookup {
    PLUMB_TENSOR_UNKNOWN, /* no such tensor in this architecture, or in a model of this shape */
    PLUMB_TENSOR_NEEDED,
    PLUMB_TENSOR_IGNORED  /* of a part that the config switches off (draft_stages or vision.layers
                             is 0), or the draft's copy of the embedding or head */
} plumb_tensor_lookup;

/* `spec` is filled when the answer is PLUMB_TENSOR_NEEDED. */
plumb_tensor_lookup plumb__tensor_table_find(const plumb_model_config *config, const char *name,
                                             plumb_tensor_spec *spec);

/* Steps over `prefix`, a canonical decimal below 10^9 and a dot: of "layers.7.attn_norm.weight" and
 * "layers." it returns "attn_norm.weight" and the 7.  NULL when the name does not begin so. */
const char *plumb__take_number(const char *name, const char *prefix, int64_t *number);

/* Called for each tensor; `name` is valid during the call.  A nonzero return stops the visit. */
typedef int (*plumb_tensor_visitor)(void *user, const char *name, const plumb_tensor_spec *spec);
/* Visits everything the config needs: embedding; layer by layer the dense tensors, then the routed
 * experts; final norm and head; the draft; vision.  Returns what stopped it, or 0. */
int plumb__tensor_table_visit(const plumb_model_config *config, plumb_tensor_visitor visitor,
                              void *user);

#endif
