/* A plan: what a machine with given rates will do with a model, and what would change it. */
#ifndef PLUMB_PLAN_SPEED_PLAN_H
#define PLUMB_PLAN_SPEED_PLAN_H

#include "plan/bounds.h"

typedef enum plumb_plan_mode {
    PLUMB_PLAN_RESIDENT, /* every expert has a slot */
    PLUMB_PLAN_CACHE,    /* slots for the experts of one token and more */
    PLUMB_PLAN_LAYERS /* fewer: the slots are a ring that one layer after the other goes through */
} plumb_plan_mode;

const char *plumb__plan_mode_name(plumb_plan_mode mode);

typedef struct plumb_speed_plan {
    plumb_budget budget;
    plumb_rates rates;
    plumb_plan_mode mode;
    int64_t pairs, slots; /* experts of all layers; slots of both memories */
    plumb_hits hits;
    plumb_bound decode; /* at the end of the context */
    int64_t cold_rows;  /* 2,048, or as many as the context holds */
    plumb_bound cold;   /* a prompt of so many with no expert in memory */
    plumb_bound chunk;  /* one chunk of a longer prompt, all of its experts read */
    plumb_bound kept;   /* the same when slots keep what they can from chunk to chunk */
} plumb_speed_plan;

/* Fails as plumb__budget_split does. */
PLUMB_MUST_CHECK plumb_status plumb__speed_plan_make(const plumb_model_sizes *sizes,
                                                     const plumb_budget_request *request,
                                                     const plumb_rates *rates,
                                                     const plumb_hit_curve *curve,
                                                     plumb_speed_plan *plan, plumb_error *err);

typedef enum plumb_change_kind {
    PLUMB_CHANGE_CACHE,  /* just enough memory for a cache of one token's experts */
    PLUMB_CHANGE_MEMORY, /* more memory */
    PLUMB_CHANGE_DISK,   /* a faster drive */
    PLUMB_CHANGE_CHUNK   /* larger prefill chunks */
} plumb_change_kind;

typedef struct plumb_change {
    plumb_change_kind kind;
    double value; /* bytes, bytes a second, or rows */
    plumb_speed_plan plan;
} plumb_change;

enum { PLUMB_CHANGES = 5 };

/* Changes that would raise a bound by a hundredth or more.  Returns how many. */
int plumb__speed_plan_changes(const plumb_model_sizes *sizes, const plumb_budget_request *request,
                              const plumb_rates *rates, const plumb_hit_curve *curve,
                              const plumb_speed_plan *plan, plumb_change changes[PLUMB_CHANGES]);

#endif
