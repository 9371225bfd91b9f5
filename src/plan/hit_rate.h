/* How often a decoded token finds an expert in memory, by how many experts are: the published curve
 * of this model, or one that recorded routes give. */
#ifndef PLUMB_PLAN_HIT_RATE_H
#define PLUMB_PLAN_HIT_RATE_H

#include "stream/route_replay.h"

enum { PLUMB_HIT_POINTS = 16 };

typedef struct plumb_hit_point {
    double share; /* slots / experts of all layers */
    double rate;  /* 0..1 */
} plumb_hit_point;

typedef struct plumb_hit_curve {
    plumb_hit_point point[PLUMB_HIT_POINTS]; /* ascending share */
    int n;
    bool recorded;
} plumb_hit_curve;

/* An LRU cache fed token by token with mixed texts (docs/plan.md). */
plumb_hit_curve plumb__hit_curve_published(void);
/* From replays of one way of giving way, ascending in slots; at most PLUMB_HIT_POINTS - 1. */
plumb_hit_curve plumb__hit_curve_recorded(const plumb_replay *replays, int n, int64_t pairs);

/* With `slots` of `pairs`: straight lines between the points, from none at no slots; the last
 * point's behind it.  The curve bends downwards, so the lines lie below it. */
double plumb__hit_rate(const plumb_hit_curve *curve, int64_t slots, int64_t pairs);

#endif
