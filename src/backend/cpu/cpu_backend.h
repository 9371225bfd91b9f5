/* The CPU backend: state, dispatch and scratch.  Only src/backend/cpu includes this header, apart from
 * the engine, which calls plumb__cpu_backend_create. */
#ifndef PLUMB_BACKEND_CPU_CPU_BACKEND_H
#define PLUMB_BACKEND_CPU_CPU_BACKEND_H

#include "backend/backend.h"
#include "backend/cpu/kernels/kernels.h"
#include "base/thread_pool.h"

/* threads >= 1.  level: NULL for the best this machine has, or the name of one it must have.
 * *chosen receives the level's name (static). */
PLUMB_MUST_CHECK plumb_status plumb__cpu_backend_create(int threads, const char *level,
                                                        plumb_backend **backend,
                                                        const char **chosen, plumb_error *err);

/* Buffers shared by all threads of one operation; grown to the largest need, never shrunk. */
typedef enum plumb_cpu_work {
    PLUMB_WORK_WIDE,     /* activations widened to float */
    PLUMB_WORK_ROWS,     /* arrays of quantised row views */
    PLUMB_WORK_GATE,
    PLUMB_WORK_UP,
    PLUMB_WORK_QUANTIZED,
    PLUMB_WORK_PLACES,
    PLUMB_WORK_SCORES,   /* of one row's index keys, and what is made of them */
    PLUMB_WORK_COUNT
} plumb_cpu_work;

typedef struct plumb_cpu_buffer {
    void *memory;
    int64_t bytes;
} plumb_cpu_buffer;

typedef struct plumb_cpu_backend {
    plumb_backend base;
    plumb_pool *pool;
    const plumb_cpu_kernels *kernels;
    plumb_cpu_buffer *scratch; /* one per thread */
    plumb_cpu_buffer work[PLUMB_WORK_COUNT];
    uint64_t float_env;        /* the caller's, between begin and end */
    _Atomic int fault;         /* a plumb_status, PLUMB_OK when all is well */
} plumb_cpu_backend;

/* At least `bytes` of memory that only `thread` uses; NULL raises the memory fault. */
void *plumb__cpu_scratch(plumb_cpu_backend *cpu, int thread, int64_t bytes);
void *plumb__cpu_work_buffer(plumb_cpu_backend *cpu, plumb_cpu_work which, int64_t bytes);
void plumb__cpu_fault(plumb_cpu_backend *cpu, plumb_status status);

/* Items worth waking threads for, when one item costs `cost` multiply-adds. */
int64_t plumb__cpu_grain(int64_t cost);

/* A quantised batch is rows * quantized_row_bytes(k), in the layout of the level. */
int64_t plumb__cpu_quantized_bytes(const plumb_cpu_backend *cpu, int64_t rows, int64_t k);
void *plumb__cpu_quantized_row(const plumb_cpu_backend *cpu, const plumb_quantized *q, int64_t k,
                               int64_t row);

/* Threads share columns in units that panels of weight rows are made of. */
enum { PLUMB_CPU_UNIT = 16 };
static inline int64_t plumb__cpu_units(int64_t columns) {
    return (columns + PLUMB_CPU_UNIT - 1) / PLUMB_CPU_UNIT;
}

/* The operations, by file. */
void plumb__cpu_quantize(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t k,
                         plumb_quantized *out);
void plumb__cpu_linear_quantized(plumb_backend *b, const plumb_quantized *x, int64_t rows,
                                 const plumb_matrix *w, plumb_act *y);
void plumb__cpu_linear(plumb_backend *b, const plumb_act *x, int64_t x_stride, int64_t rows,
                       const plumb_matrix *w, plumb_act *y, float *y_float, int64_t y_stride);
void plumb__cpu_rms_norm(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t width,
                         const float *w, float eps, plumb_act *y);
void plumb__cpu_rotate(plumb_backend *b, plumb_act *x, int64_t rows, int64_t heads, int64_t dim,
                       int64_t pairs, const float *cosine, const float *sine, bool inverse);
void plumb__cpu_hc_mix(plumb_backend *b, const plumb_act *h, int64_t rows, int64_t hidden,
                       const plumb_matrix *fn, const float *base, const float *scale,
                       float norm_eps, float hc_eps, int64_t iterations, float *pre, float *post,
                       float *comb);
void plumb__cpu_hc_collapse(plumb_backend *b, const plumb_act *h, const float *pre, int64_t rows,
                            int64_t hidden, plumb_act *x);
void plumb__cpu_hc_update(plumb_backend *b, plumb_act *h, const plumb_act *a, const float *post,
                          const float *comb, int64_t rows, int64_t hidden);
void plumb__cpu_pack_window(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                            uint8_t *packed);
void plumb__cpu_pack_compressed(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                                uint8_t *packed);
void plumb__cpu_pack_index(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                           uint8_t *packed);
void plumb__cpu_compress_pairs(plumb_backend *b, const float *value, const float *gate,
                               int64_t pairs, int64_t dim, plumb_act *latent);
void plumb__cpu_attention(plumb_backend *b, const plumb_attention_args *args, int64_t rows);
void plumb__cpu_index_weights(plumb_backend *b, const plumb_act *proj, int64_t count, float factor,
                              float *weight);
void plumb__cpu_index_select(plumb_backend *b, const plumb_index_args *args, int64_t rows);
void plumb__cpu_route(plumb_backend *b, const float *logits, const float *bias, int64_t rows,
                      int64_t experts, int64_t k, float route_scale, int32_t *ids, float *weights);
void plumb__cpu_experts(plumb_backend *b, const plumb_quantized *x,
                        const plumb_expert_group *groups, int64_t n_groups, const float *weights,
                        int64_t slots_per_row, float limit, plumb_act *outputs);
void plumb__cpu_experts_sum(plumb_backend *b, const plumb_act *outputs, const int32_t *where,
                            int64_t rows, int64_t slots_per_row, int64_t hidden, plumb_act *out);
void plumb__cpu_engram_gate(plumb_backend *b, plumb_act *h, const plumb_act *kv,
                            const float *query_w, const float *key_w, const uint8_t *live,
                            int64_t rows, int64_t hidden, float eps, float factor);

#endif
