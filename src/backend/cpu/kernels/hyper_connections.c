/* Hyper-connections of one row (model.md 4.2, 4.3; docs/arithmetic.md section 8): coefficients,
 * collapse of the four copies, update.  Every product is rounded and added in index order: no
 * fused multiply-add anywhere here. */
#include "arith/functions.h"
#include "backend/cpu/kernels/kernels.h"

enum { COPIES = 4 };

/* Divides each of four lines by (its sum + eps).  Line i has elements c[i * line + j * step]. */
static void normalise(float *c, int line, int step, float eps) {
    for (int i = 0; i < COPIES; i++) {
        float *e = c + i * line;
        float sum = ((e[0] + e[step]) + e[2 * step]) + e[3 * step];
        for (int j = 0; j < COPIES; j++) e[j * step] = e[j * step] / (sum + eps);
    }
}

/* Softmax of each row j over k, plus eps. */
static void softmax_rows(float *c, float eps) {
    for (int j = 0; j < COPIES; j++) {
        float *row = c + j * COPIES;
        float most = row[0];
        for (int k = 1; k < COPIES; k++) most = row[k] > most ? row[k] : most;
        for (int k = 0; k < COPIES; k++) row[k] = plumb__exp(row[k] - most);
        float sum = ((row[0] + row[1]) + row[2]) + row[3];
        for (int k = 0; k < COPIES; k++) row[k] = row[k] / sum + eps;
    }
}

void PLUMB_KERNEL(hc_coefficients)(const float *m, float r, const float *base, const float *scale,
                                   float eps, int64_t iterations, float *pre, float *post,
                                   float *comb) {
    for (int c = 0; c < COPIES; c++) {
        pre[c] = plumb__sigmoid((m[c] * r) * scale[0] + base[c]) + eps;
        post[c] = 2.0f * plumb__sigmoid((m[COPIES + c] * r) * scale[1] + base[COPIES + c]);
    }
    for (int i = 0; i < COPIES * COPIES; i++)
        comb[i] = (m[2 * COPIES + i] * r) * scale[2] + base[2 * COPIES + i];
    softmax_rows(comb, eps);
    normalise(comb, 1, COPIES, eps); /* columns */
    for (int64_t i = 1; i < iterations; i++) {
        normalise(comb, COPIES, 1, eps); /* rows */
        normalise(comb, 1, COPIES, eps); /* columns: it ends on them */
    }
}

void PLUMB_KERNEL(hc_collapse)(const plumb_act *h, const float *pre, int64_t hidden, plumb_act *x) {
    for (int64_t i = 0; i < hidden; i++) {
        float sum = pre[0] * plumb__load(h[i]);
        for (int c = 1; c < COPIES; c++) sum = sum + pre[c] * plumb__load(h[c * hidden + i]);
        x[i] = plumb__store(sum);
    }
}

/* The four copies apart, so that the compiler sees that they do not overlap. */
static void update_copies(plumb_act *restrict h0, plumb_act *restrict h1, plumb_act *restrict h2,
                          plumb_act *restrict h3, const plumb_act *restrict a,
                          const float *restrict post, const float *restrict comb, int64_t hidden) {
    plumb_act *const h[COPIES] = {h0, h1, h2, h3};
    for (int64_t i = 0; i < hidden; i++) {
        float copy[COPIES], added = plumb__load(a[i]);
        for (int j = 0; j < COPIES; j++) copy[j] = plumb__load(h[j][i]);
        for (int k = 0; k < COPIES; k++) {
            /* comb[j][k] carries copy j into copy k. */
            float mixed = comb[k] * copy[0];
            for (int j = 1; j < COPIES; j++) mixed = mixed + comb[j * COPIES + k] * copy[j];
            h[k][i] = plumb__store(post[k] * added + mixed);
        }
    }
}

void PLUMB_KERNEL(hc_update)(plumb_act *h, const plumb_act *a, const float *post,
                             const float *comb, int64_t hidden) {
    update_copies(h, h + hidden, h + 2 * hidden, h + 3 * hidden, a, post, comb, hidden);
}
