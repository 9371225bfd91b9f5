/* Rotary tables (docs/arithmetic.md section 9, model.md 3.7): frequencies once per model, one row
 * of cosines and sines per position.
 *
 * The frequency and the angle are rounded float32 steps, as the published code takes them: at
 * position 10^6 one ulp of the angle is 0.06 rad, so that rounding is part of the model.  The
 * transcendental steps in between, base^(2i/d), cos and sin, are correctly rounded, which leaves
 * nothing to a libm. */
#ifndef PLUMB_ARITH_ROTARY_H
#define PLUMB_ARITH_ROTARY_H

#include "plumb.h"

/* YaRN: frequencies that turn fewer than beta_slow times in original_positions are divided by
 * factor, those above beta_fast kept, with a ramp between. */
typedef struct plumb_rotary_yarn {
    double factor, beta_fast, beta_slow;
    int64_t original_positions;
} plumb_rotary_yarn;

/* freq: [dim / 2], frequency i = base^(-2i/dim), blended by yarn unless it is NULL.  base in
 * (1, 1e30], dim even and positive.  A YaRN corner within 1e-9 of an integer is refused
 * (PLUMB_ERROR_CONFIG): another libm might see it on the other side. */
PLUMB_MUST_CHECK plumb_status plumb__rotary_frequencies(double base, const plumb_rotary_yarn *yarn,
                                                        int64_t dim, float *freq, plumb_error *err);

/* cosines, sines: [n] of fl32(fl32(position) * freq[i]), each correctly rounded for angles below
 * 2^20, which covers every position below 2^20 since no frequency exceeds 1. */
void plumb__rotary_row(const float *freq, int64_t n, int64_t position, float *cosines,
                       float *sines);

#endif
