/* Distances in units of the last place, and a count of them over many elements. */
#ifndef PLUMB_TESTS_ORACLE_BITS_H
#define PLUMB_TESTS_ORACLE_BITS_H

#include "arith/formats.h"

/* Steps between two numbers of one format; +0 and -0 are one number, a NaN is far from all else. */
static inline int64_t ulps_of_bits(uint32_t a, uint32_t b, uint32_t sign, uint32_t infinity) {
    uint32_t magnitude_a = a & (sign - 1), magnitude_b = b & (sign - 1);
    if (a == b) return 0;
    if (magnitude_a > infinity || magnitude_b > infinity) return INT64_MAX;
    int64_t x = a & sign ? -(int64_t)magnitude_a : (int64_t)magnitude_a;
    int64_t y = b & sign ? -(int64_t)magnitude_b : (int64_t)magnitude_b;
    return x > y ? x - y : y - x;
}
static inline int64_t bf16_ulps(uint16_t a, uint16_t b) {
    return ulps_of_bits(a, b, 0x8000u, 0x7F80u);
}
static inline int64_t float_ulps(float a, float b) {
    return ulps_of_bits(plumb__bits_of(a), plumb__bits_of(b), 0x80000000u, 0x7F800000u);
}

/* How many of the compared elements differ, and by how much at most. */
typedef struct ulp_count {
    int64_t compared, different, worst;
} ulp_count;

static inline void ulp_count_add(ulp_count *c, int64_t distance) {
    c->compared++;
    c->different += distance != 0;
    if (distance > c->worst) c->worst = distance;
}
static inline void ulp_count_bf16(ulp_count *c, const uint16_t *got, const uint16_t *want,
                                  int64_t n) {
    for (int64_t i = 0; i < n; i++) ulp_count_add(c, bf16_ulps(got[i], want[i]));
}
static inline void ulp_count_float(ulp_count *c, const float *got, const float *want, int64_t n) {
    for (int64_t i = 0; i < n; i++) ulp_count_add(c, float_ulps(got[i], want[i]));
}

#endif
