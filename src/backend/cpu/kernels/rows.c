/* Operations on one row: widening, mean of squares, RMSNorm, rotary embedding (model.md 3.6, 3.7),
 * packing of cache rows. */
#include "arith/lanes.h"
#include "backend/cpu/kernels/kernels.h"

void PLUMB_KERNEL(widen)(const plumb_act *x, int64_t n, float *y) {
    for (int64_t i = 0; i < n; i++) y[i] = plumb__load(x[i]);
}

float PLUMB_KERNEL(mean_square)(const float *x, int64_t n) {
    return plumb__lanes_dot(x, x, n) / (float)n;
}

void PLUMB_KERNEL(rms_norm)(const plumb_act *x, int64_t width, const float *w, float eps,
                            plumb_act *y, float *scratch) {
    for (int64_t i = 0; i < width; i++) scratch[i] = plumb__load(x[i]);
    float mean = plumb__lanes_dot(scratch, scratch, width) / (float)width;
    float r = 1.0f / plumb__sqrt(mean + eps);
    for (int64_t i = 0; i < width; i++) y[i] = plumb__store(w[i] * (scratch[i] * r));
}

/* Adjacent pairs (a, b) of the last 2*pairs components: a' = a cos - b sin, b' = a sin + b cos. */
static void rotate_pairs(plumb_act *restrict tail, int64_t pairs, const float *restrict cosine,
                         const float *restrict sine, float sign) {
    for (int64_t i = 0; i < pairs; i++) {
        float c = cosine[i], s = sign * sine[i];
        float a = plumb__load(tail[2 * i]), b = plumb__load(tail[2 * i + 1]);
        tail[2 * i] = plumb__store(a * c - b * s);
        tail[2 * i + 1] = plumb__store(a * s + b * c);
    }
}

void PLUMB_KERNEL(rotate)(plumb_act *x, int64_t heads, int64_t dim, int64_t pairs,
                          const float *cosine, const float *sine, bool inverse) {
    for (int64_t h = 0; h < heads; h++)
        rotate_pairs(x + h * dim + dim - 2 * pairs, pairs, cosine, sine, inverse ? -1.0f : 1.0f);
}

void PLUMB_KERNEL(pack_window)(const float *x, int64_t dim, uint8_t *row) {
    plumb__window_pack(x, dim, row);
}
void PLUMB_KERNEL(pack_compressed)(const float *x, int64_t dim, uint8_t *row) {
    plumb__compressed_pack(x, dim, row);
}
void PLUMB_KERNEL(pack_index)(const float *x, int64_t dim, uint8_t *row) {
    plumb__index_pack(x, dim, row);
}
