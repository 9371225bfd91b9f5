/* Index scores of one row (model.md 4.6, docs/arithmetic.md section 10): three roundings to bf16,
 * sum over heads in head order.  A few keys at a time are unpacked and meet all heads, whose queries
 * were unpacked once; then each head's products are added to all scores of the tile at once. */
#include "arith/lanes.h"
#include "backend/cpu/kernels/tiles.h"

enum { KEYS = PLUMB_INDEX_KEYS };

static float rounded(float x) { return plumb__load(plumb__store(x)); }

/* product [heads][KEYS] -> score [KEYS]. */
static void add_heads(const float *product, const float *weight, int64_t heads, float *score) {
    float sum[KEYS] = {0};
    for (int64_t h = 0; h < heads; h++)
        for (int j = 0; j < KEYS; j++) {
            float t = rounded(product[h * KEYS + j]);
            t = t > 0.0f ? t : 0.0f;
            sum[j] = sum[j] + rounded(t * weight[h]);
        }
    for (int j = 0; j < KEYS; j++) score[j] = rounded(sum[j]);
}

/* scratch: tile [KEYS][dim], query [heads][dim], product [heads][KEYS]. */
bool PLUMB_KERNEL(index_scores)(const plumb_index_args *a, int64_t row, const int32_t *positions,
                                int64_t count, float *score, float *scratch) {
    int64_t dim = a->dim, heads = a->heads, row_bytes = plumb__index_row_bytes(dim);
    float *tile = scratch, *query = tile + KEYS * dim, *product = query + heads * dim;
    bool finite = true;
    for (int64_t h = 0; h < heads; h++)
        PLUMB_KERNEL(unpack_index)(a->query + (row * heads + h) * row_bytes, dim, query + h * dim);
    for (int64_t first = 0; first < count; first += KEYS) {
        int64_t n = count - first < KEYS ? count - first : KEYS;
        for (int64_t j = 0; j < n; j++) {
            int64_t at = positions ? positions[first + j] : first + j;
            PLUMB_KERNEL(unpack_index)(a->keys + at * row_bytes, dim, tile + j * dim);
        }
        /* A short tile leaves products of the tile before it, or of none, beside its own. */
        if (n < KEYS) memset(product, 0, (size_t)(heads * KEYS) * sizeof *product);
        PLUMB_KERNEL(lane_products)(query, heads, tile, n, dim, product, KEYS);
        float sum[KEYS];
        add_heads(product, a->weight + row * heads, heads, sum);
        for (int64_t j = 0; j < n; j++) {
            score[first + j] = sum[j];
            finite &= (plumb__bits_of(sum[j]) & 0x7F800000u) != 0x7F800000u;
        }
    }
    return finite;
}
