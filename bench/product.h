/* One of the model's matrix products, as the network calls it, over many copies of the matrix: a
 * sweep over them is longer than any cache, so that the weights come from memory every time. */
#ifndef BENCH_PRODUCT_H
#define BENCH_PRODUCT_H

#include "made_weights.h"

typedef struct bench_shape {
    plumb_matrix_type type;
    int64_t n, k;
    int64_t tokens;
    bool lanes;     /* products of bf16 activations; else of activations quantised on the way */
    int64_t blocks; /* of n / blocks rows, each with its own k activations (wo_a); else 1 */
} bench_shape;

typedef struct bench_product {
    plumb_backend *backend;
    bench_shape shape;
    int64_t copies, bytes; /* bytes: of the sweep */
    uint8_t *memory;       /* [bytes] the weights, one copy after the other */
    plumb_matrix *matrix;  /* [copies] */
    plumb_act *x;          /* [tokens][blocks * k] */
    plumb_quantized *xq;
    plumb_act *y;          /* [tokens][n], or of float for routers and heads */
} bench_product;

/* False when there is no memory. */
bool bench_product_create(plumb_backend *backend, bench_random *random, const bench_shape *shape,
                          int64_t copies, bench_product *product);
void bench_product_destroy(bench_product *product);
void bench_product_run(void *product); /* one sweep, quantising of activations included */

double bench_product_flops(const bench_product *product); /* of one sweep; 2 per weight and token */

/* Copies for a sweep of about `bytes`, but of no more than `flops` operations. */
int64_t bench_product_copies(const bench_shape *shape, double bytes, double flops);

#endif
