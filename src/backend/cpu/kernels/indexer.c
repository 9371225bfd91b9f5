/* Index scores of one row (model.md 4.6, docs/arithmetic.md section 10): three roundings to bf16,
 * sum over heads in head order. */
#include "arith/lanes.h"
#include "backend/cpu/kernels/kernels.h"

static float rounded(float x) { return plumb__load(plumb__store(x)); }

/* scratch: query [heads][dim], key [dim]. */
bool PLUMB_KERNEL(index_scores)(const plumb_index_args *a, int64_t row, const int32_t *positions,
                                int64_t count, float *score, float *scratch) {
    int64_t row_bytes = plumb__index_row_bytes(a->dim);
    float *query = scratch, *key = scratch + a->heads * a->dim;
    const float *weight = a->weight + row * a->heads;
    bool finite = true;
    for (int64_t h = 0; h < a->heads; h++)
        plumb__index_unpack(a->query + (row * a->heads + h) * row_bytes, a->dim, query + h * a->dim);
    for (int64_t j = 0; j < count; j++) {
        int64_t at = positions ? positions[j] : j;
        plumb__index_unpack(a->keys + at * row_bytes, a->dim, key);
        float sum = 0.0f;
        for (int64_t h = 0; h < a->heads; h++) {
            float t = rounded(plumb__lanes_dot(query + h * a->dim, key, a->dim));
            t = t > 0.0f ? t : 0.0f;
            sum = sum + rounded(t * weight[h]);
        }
        score[j] = rounded(sum);
        finite &= (plumb__bits_of(score[j]) & 0x7F800000u) != 0x7F800000u;
    }
    return finite;
}
