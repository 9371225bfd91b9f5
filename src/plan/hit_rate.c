#include "plan/hit_rate.h"

plumb_hit_curve plumb__hit_curve_published(void) {
    static const struct {
        double slots, rate;
    } points[] = {{0, 0},        {1000, 0.574}, {2000, 0.728}, {3000, 0.808}, {4000, 0.855},
                  {5000, 0.893}, {6000, 0.922}, {8000, 0.960}, {40 * 384, 1}};
    enum { POINTS = sizeof points / sizeof points[0] };
    plumb_hit_curve curve = {.n = POINTS};
    for (int i = 0; i < POINTS; i++)
        curve.point[i] =
            (plumb_hit_point){points[i].slots / points[POINTS - 1].slots, points[i].rate};
    return curve;
}

plumb_hit_curve plumb__hit_curve_recorded(const plumb_replay *replays, int n, int64_t pairs) {
    plumb_hit_curve curve = {.n = 1, .recorded = true};
    for (int i = 0; i < n && curve.n < PLUMB_HIT_POINTS; i++)
        curve.point[curve.n++] = (plumb_hit_point){(double)replays[i].slots / (double)pairs,
                                                   plumb__replay_hit_rate(&replays[i].decode)};
    return curve;
}

double plumb__hit_rate(const plumb_hit_curve *curve, int64_t slots, int64_t pairs) {
    double share = (double)slots / (double)pairs;
    int above = 1;
    while (above < curve->n && curve->point[above].share < share) above++;
    if (above == curve->n) return curve->point[curve->n - 1].rate;
    const plumb_hit_point *a = &curve->point[above - 1], *b = &curve->point[above];
    return a->rate + (b->rate - a->rate) * (share - a->share) / (b->share - a->share);
}
