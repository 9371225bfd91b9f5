/* What goes where in memory: dense weights, the session, the working memory of a prefill chunk, and
 * slots for experts with all that is left. */
#ifndef PLUMB_PLAN_BUDGET_H
#define PLUMB_PLAN_BUDGET_H

#include "plan/model_sizes.h"

/* All of a machine's, in bytes; device_memory 0: there is no device. */
typedef struct plumb_budget_request {
    int64_t memory, device_memory;
    int64_t context; /* positions; 0: the model's maximum, at most 64K */
    int64_t chunk;   /* rows of a prefill chunk; 0: as many as are useful and cheap */
} plumb_budget_request;

typedef struct plumb_budget {
    int64_t memory, device_memory; /* as asked for */
    int64_t system, device_system; /* left for the operating system and for the driver */
    /* These lie in device memory where there is one, else in memory. */
    int64_t dense, session, work;
    int64_t context, chunk;
    int64_t slot_bytes;
    int64_t slots;        /* in the memory that computes; at most one for each expert */
    int64_t second_slots; /* in memory behind a device: experts that the device has no slot for */
    int64_t unused;       /* what is left when every expert has a slot */
} plumb_budget;

/* What the operating system and other programs keep of `memory` bytes: an eighth, at least 4 GB, at
 * most half. */
int64_t plumb__budget_system_bytes(int64_t memory);

/* PLUMB_ERROR_MEMORY, with all the numbers, when dense weights, session, working memory and two
 * tokens' worth of one layer's experts do not fit. */
PLUMB_MUST_CHECK plumb_status plumb__budget_split(const plumb_model_sizes *sizes,
                                                  const plumb_budget_request *request,
                                                  plumb_budget *budget, plumb_error *err);

#endif
