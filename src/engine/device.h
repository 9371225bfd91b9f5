/* Which backend computes. */
#ifndef PLUMB_ENGINE_DEVICE_H
#define PLUMB_ENGINE_DEVICE_H

#include "engine/engine.h"

/* Opens the backend that the options ask for: model->backend and what the model says of it.  BEST is Metal
 * where this build has it and the device passes its self test, else the CPU; why it is not Metal is said
 * to the log. */
PLUMB_MUST_CHECK plumb_status plumb__device_open(plumb_model *model,
                                                 const plumb_model_options *options,
                                                 plumb_error *err);

#endif
