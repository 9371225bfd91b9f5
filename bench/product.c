#include "product.h"

#include "base/alloc.h"

#include <stdlib.h>

bool bench_product_create(plumb_backend *backend, bench_random *random, const bench_shape *shape,
                          int64_t copies, bench_product *p) {
    const plumb_backend_ops *ops = backend->ops;
    int64_t stride = bench_matrix_stride(shape->type, shape->n, shape->k);
    int64_t inputs = shape->tokens * shape->blocks * shape->k;
    *p = (bench_product){.backend = backend, .shape = *shape, .copies = copies,
                         .bytes = copies * stride};
    p->memory = ops->allocate(backend, p->bytes);
    p->matrix = calloc((size_t)copies, sizeof *p->matrix);
    p->x = ops->allocate(backend, inputs * (int64_t)sizeof *p->x);
    p->xq = ops->allocate(backend, ops->quantized_bytes(backend, shape->tokens, shape->k));
    p->y = ops->allocate(backend, shape->tokens * shape->n * (int64_t)sizeof(float));
    if (!p->memory || !p->matrix || !p->x || !p->xq || !p->y) {
        bench_product_destroy(p);
        return false;
    }
    for (int64_t i = 0; i < copies; i++) {
        int64_t bytes;
        plumb_matrix *w = &p->matrix[i];
        *w = bench_make_matrix(random, shape->type, shape->n, shape->k, p->memory + i * stride);
        if (!shape->lanes) w->prepared = ops->prepare(backend, w, &bytes);
    }
    bench_draw_activations(random, p->x, inputs);
    return true;
}

void bench_product_destroy(bench_product *p) {
    const plumb_backend_ops *ops = p->backend->ops;
    void *blocks[] = {p->memory, p->x, p->xq, p->y};
    for (int i = 0; i < 4; i++)
        if (blocks[i]) ops->release(p->backend, blocks[i]);
    for (int64_t i = 0; p->matrix && i < p->copies; i++)
        if (p->matrix[i].prepared) ops->release(p->backend, (void *)(uintptr_t)p->matrix[i].prepared);
    free(p->matrix);
    *p = (bench_product){.backend = p->backend};
}

/* As the network projects the output of attention: each block of rows has its own input. */
static void run_lanes(const bench_product *p, const plumb_matrix *whole) {
    const bench_shape *s = &p->shape;
    int64_t rows = s->n / s->blocks;
    int64_t scale_bytes = whole->scales ? s->n / PLUMB_BLOCK * (s->k / PLUMB_BLOCK) : 0;
    int64_t code_bytes = bench_matrix_bytes(s->type, s->n, s->k) - scale_bytes;
    for (int64_t b = 0; b < s->blocks; b++) {
        plumb_matrix block = *whole;
        block.n = rows;
        block.codes = (const uint8_t *)whole->codes + b * code_bytes / s->blocks;
        if (whole->scales) block.scales += b * scale_bytes / s->blocks;
        p->backend->ops->linear(p->backend, p->x + b * s->k, s->blocks * s->k, s->tokens, &block,
                                p->y + b * rows, NULL, s->n);
    }
}

void bench_product_run(void *product) {
    const bench_product *p = product;
    const bench_shape *s = &p->shape;
    const plumb_backend_ops *ops = p->backend->ops;
    ops->begin(p->backend);
    for (int64_t i = 0; i < p->copies; i++) {
        if (s->lanes) {
            run_lanes(p, &p->matrix[i]);
        } else {
            ops->quantize(p->backend, p->x, s->tokens, s->k, p->xq);
            ops->linear_quantized(p->backend, p->xq, s->tokens, &p->matrix[i], p->y);
        }
    }
    ops->end(p->backend);
}

double bench_product_flops(const bench_product *p) {
    return 2.0 * (double)p->shape.n * (double)p->shape.k * (double)p->shape.tokens *
           (double)p->copies;
}

int64_t bench_product_copies(const bench_shape *shape, double bytes, double flops) {
    double by_bytes = bytes / (double)bench_matrix_bytes(shape->type, shape->n, shape->k);
    double by_flops =
        flops / (2.0 * (double)shape->n * (double)shape->k * (double)shape->tokens);
    double copies = by_bytes < by_flops ? by_bytes : by_flops;
    return copies < 1 ? 1 : (int64_t)copies;
}
