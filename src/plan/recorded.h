/* Recorded routes of a model, replayed at the sizes of cache that a plan and its neighbours have.
 */
#ifndef PLUMB_PLAN_RECORDED_H
#define PLUMB_PLAN_RECORDED_H

#include "plan/budget.h"
#include "plan/hit_rate.h"

enum { PLUMB_RECORDED_SIZES = PLUMB_HIT_POINTS - 1 };

typedef struct plumb_recorded {
    int n; /* sizes, ascending */
    plumb_replay lru[PLUMB_RECORDED_SIZES], age_over_use[PLUMB_RECORDED_SIZES];
    plumb_eviction better; /* of the two, where the plan has its slots */
    plumb_hit_curve curve; /* of the better one */
} plumb_recorded;

/* One token's experts, eighths of all, and the budget's own slots.  Refuses routes of another
 * model, and routes without a decoded token. */
PLUMB_MUST_CHECK plumb_status plumb__recorded_open(const char *path, const plumb_model_sizes *sizes,
                                                   const plumb_budget *budget,
                                                   plumb_recorded *recorded, plumb_error *err);

#endif
