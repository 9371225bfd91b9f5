/* Engram gate of one row (model.md 5.5, docs/arithmetic.md section 10). */
#include "arith/functions.h"
#include "arith/lanes.h"
#include "backend/cpu/kernels/kernels.h"

static float rsqrt_mean_square(const float *x, int64_t n, float eps) {
    float mean = plumb__lanes_dot(x, x, n) / (float)n;
    return 1.0f / plumb__sqrt(mean + eps);
}

/* sigmoid(copysign(sqrt(max(|dot|, 1e-6)), dot)); a zero counts as positive. */
static float gate_of(float dot) {
    float magnitude = dot < 0.0f ? -dot : dot;
    magnitude = magnitude < 1e-6f ? 1e-6f : magnitude;
    float root = plumb__sqrt(magnitude);
    return plumb__sigmoid(dot < 0.0f ? -root : root);
}

/* One copy and its key as floats, and the terms of their dot product. */
static void widen_terms(const plumb_act *restrict h, const plumb_act *restrict k,
                        const float *restrict query_w, const float *restrict key_w, int64_t n,
                        float *restrict copy, float *restrict key, float *restrict term) {
    for (int64_t i = 0; i < n; i++) {
        copy[i] = plumb__load(h[i]);
        key[i] = plumb__load(k[i]);
        float qk = query_w[i] * key_w[i];
        term[i] = (copy[i] * qk) * key[i];
    }
}

/* kv: keys of the four copies, then the shared value.  factor: fl32(hidden^-0.5).  scratch:
 * [3][hidden]. */
void PLUMB_KERNEL(engram_gate)(plumb_act *h, const plumb_act *kv, const float *query_w,
                               const float *key_w, int64_t hidden, float eps, float factor,
                               float *scratch) {
    float *copy = scratch, *key = scratch + hidden, *term = scratch + 2 * hidden;
    for (int64_t c = 0; c < 4; c++) {
        widen_terms(h + c * hidden, kv + c * hidden, query_w + c * hidden, key_w + c * hidden,
                    hidden, copy, key, term);
        float rs = rsqrt_mean_square(copy, hidden, eps) * rsqrt_mean_square(key, hidden, eps);
        float gate = gate_of((plumb__lanes_sum(term, hidden) * rs) * factor);
        for (int64_t i = 0; i < hidden; i++) {
            float added = gate * plumb__load(kv[4 * hidden + i]);
            h[c * hidden + i] = plumb__store(copy[i] + added);
        }
    }
}
