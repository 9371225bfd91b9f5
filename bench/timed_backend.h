/* A backend that passes every operation on to another and notes how long it took, what it read and
 * what it computed.  The network does not know that it is being watched, so what is measured is the
 * forward pass itself. */
#ifndef BENCH_TIMED_BACKEND_H
#define BENCH_TIMED_BACKEND_H

#include "backend/backend.h"

/* Kinds of multiply-adds, since each has its own speed. */
typedef enum bench_work {
    BENCH_WORK_FP4,       /* quantised activations, FP4 weights */
    BENCH_WORK_FP8,       /* quantised activations, FP8 weights */
    BENCH_WORK_LANES_FP8, /* bf16 activations, FP8 weights decoded to bf16 */
    BENCH_WORK_LANES,     /* bf16 activations, BF16 or F32 weights */
    BENCH_WORK_KINDS
} bench_work;

/* All calls of one operation with one shape of weight. */
typedef struct bench_op {
    const char *name;            /* member of plumb_backend_ops */
    plumb_matrix_type type;      /* with n and k; n = 0: no weight */
    int64_t n, k;
    int64_t calls;
    double seconds;
    double bytes;                /* weights and caches that had to come from memory */
    double flops[BENCH_WORK_KINDS]; /* of products with weights, 2 per weight and row */
} bench_op;

enum { BENCH_MAX_OPS = 64 };

typedef struct bench_timed_backend {
    plumb_backend base; /* give its address to the network */
    plumb_backend *inner;
    /* The router's choice is replaced by one drawn from its logits: any expert is as likely as any
     * other, and the same row still gets the same ones.  Random weights prefer a few experts. */
    bool even_routes;
    bench_op op[BENCH_MAX_OPS];
    int ops;
    /* Of all operations since the last clear. */
    double seconds, bytes, flops[BENCH_WORK_KINDS];
    /* `seconds` when the first router was done since this was set to -1: what follows needs experts. */
    double seconds_routed;
} bench_timed_backend;

/* inner is borrowed and must outlive the timed backend. */
void bench_timed_backend_init(bench_timed_backend *timed, plumb_backend *inner);
void bench_timed_backend_clear(bench_timed_backend *timed);

#endif
