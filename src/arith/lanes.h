/* Inner products in thirty-two lanes (docs/arithmetic.md section 4).
 *
 * Lane j sums elements j, j+32, j+64, ... with fused multiply-adds; a fixed tree joins the lanes.
 * It is the order of one warp, two AVX-512, four AVX2 or eight NEON registers, so every machine
 * can give the same bits at full speed. */
#ifndef PLUMB_ARITH_LANES_H
#define PLUMB_ARITH_LANES_H

#include "arith/portable.h"

enum { PLUMB_LANES = 32 };

/* a_i += a_(i+16), then +8, +4, +2, +1.  Destroys the lanes. */
PLUMB_FN float plumb__lanes_join(PLUMB_THREAD float *lane) {
    for (int step = PLUMB_LANES / 2; step > 0; step /= 2)
        for (int i = 0; i < step; i++) lane[i] = lane[i] + lane[i + step];
    return lane[0];
}

PLUMB_FN float plumb__lanes_dot(const PLUMB_THREAD float *x, const PLUMB_THREAD float *y,
                               int64_t n) {
    float lane[PLUMB_LANES] = {0};
    int64_t k = 0;
    for (; k + PLUMB_LANES <= n; k += PLUMB_LANES)
        for (int j = 0; j < PLUMB_LANES; j++) lane[j] = plumb__fma(x[k + j], y[k + j], lane[j]);
    for (int j = 0; k + j < n; j++) lane[j] = plumb__fma(x[k + j], y[k + j], lane[j]);
    return plumb__lanes_join(lane);
}

/* Sum of terms that are already formed: the same lanes and tree, plain additions. */
PLUMB_FN float plumb__lanes_sum(const PLUMB_THREAD float *x, int64_t n) {
    float lane[PLUMB_LANES] = {0};
    int64_t k = 0;
    for (; k + PLUMB_LANES <= n; k += PLUMB_LANES)
        for (int j = 0; j < PLUMB_LANES; j++) lane[j] = lane[j] + x[k + j];
    for (int j = 0; k + j < n; j++) lane[j] = lane[j] + x[k + j];
    return plumb__lanes_join(lane);
}

#endif
