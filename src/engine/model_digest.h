/* Which model is it?  A digest of what decides its results: numbers of the config, the table of Engram
 * ids, every tensor's name, type and shape, and a sample of the released bytes; half a terabyte is not
 * read to open a file.  Equal for a folder and what was converted from it; docs/snapshots.md says what
 * the sample sees and what it cannot. */
#ifndef PLUMB_ENGINE_MODEL_DIGEST_H
#define PLUMB_ENGINE_MODEL_DIGEST_H

#include "engine/engine.h"

/* Computed when it is first asked for, then remembered.  Thread-safe; does not wait for evaluations. */
PLUMB_MUST_CHECK plumb_status plumb__model_digest(plumb_model *model,
                                                  uint8_t digest[PLUMB_MODEL_DIGEST_BYTES],
                                                  plumb_error *err);

#endif
