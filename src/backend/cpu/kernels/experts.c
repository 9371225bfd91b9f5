/* Router, gated activation and sum of the mixture of experts, one row (model.md 4.8, 4.9). */
#include "arith/functions.h"
#include "backend/cpu/kernels/kernels.h"

/* Ids of the k best, larger first, equal: smaller id.  Few of many enter the list, so one comparison
 * with its last is nearly all that an expert costs. */
static void best_of(const float *value, int64_t n, int64_t k, int32_t *ids) {
    for (int64_t e = 0, count = 0; e < n; e++) {
        if (count == k && !(value[e] > value[ids[k - 1]])) continue;
        int64_t at = count < k ? count++ : k - 1;
        for (; at > 0 && value[e] > value[ids[at - 1]]; at--) ids[at] = ids[at - 1];
        ids[at] = (int32_t)e;
    }
}

/* The k best of score + bias, returned in ascending id.  The bias selects and never weighs.  scratch:
 * [2][experts]. */
bool PLUMB_KERNEL(route)(const float *logits, const float *bias, int64_t experts, int64_t k,
                         float route_scale, int32_t *ids, float *weights, float *scratch) {
    float *score = scratch, *biased = scratch + experts;
    uint32_t not_finite = 0;
    for (int64_t e = 0; e < experts; e++) score[e] = plumb__sqrt(plumb__softplus(logits[e]));
    for (int64_t e = 0; e < experts; e++) {
        biased[e] = score[e] + bias[e];
        not_finite |= (plumb__bits_of(biased[e]) & 0x7F800000u) == 0x7F800000u;
    }
    best_of(biased, experts, k, ids);
    for (int64_t i = 1; i < k; i++) /* insertion sort: k is small */
        for (int64_t j = i; j > 0 && ids[j - 1] > ids[j]; j--) {
            int32_t swap = ids[j];
            ids[j] = ids[j - 1];
            ids[j - 1] = swap;
        }
    float sum = 0.0f;
    for (int64_t i = 0; i < k; i++) sum = sum + score[ids[i]];
    for (int64_t i = 0; i < k; i++) weights[i] = score[ids[i]] / (sum + 1e-20f) * route_scale;
    return !not_finite;
}

/* t = bf16(weight * (silu(u) * v)): the gate is clamped from above only, `up` on both sides. */
void PLUMB_KERNEL(swiglu)(const plumb_act *gate, const plumb_act *up, float weight, float limit,
                          int64_t n, plumb_act *t) {
    for (int64_t i = 0; i < n; i++) {
        float u = plumb__load(gate[i]), v = plumb__load(up[i]);
        u = u > limit ? limit : u;
        v = v > limit ? limit : v;
        v = v < -limit ? -limit : v;
        t[i] = plumb__store(weight * (plumb__silu(u) * v));
    }
}

/* Adds the outputs of a row's experts in ascending slot order, rounds once.  A strip at a time, so that
 * its sums stay in registers. */
void PLUMB_KERNEL(moe_sum)(const plumb_act *const *y, int64_t slots, int64_t hidden,
                           plumb_act *out) {
    enum { STRIP = 32 };
    int64_t first = 0;
    for (; first + STRIP <= hidden; first += STRIP) {
        float sum[STRIP] = {0};
        for (int64_t s = 0; s < slots; s++)
            for (int i = 0; i < STRIP; i++) sum[i] = sum[i] + plumb__load(y[s][first + i]);
        for (int i = 0; i < STRIP; i++) out[first + i] = plumb__store(sum[i]);
    }
    for (int64_t i = first; i < hidden; i++) {
        float sum = 0.0f;
        for (int64_t s = 0; s < slots; s++) sum = sum + plumb__load(y[s][i]);
        out[i] = plumb__store(sum);
    }
}
