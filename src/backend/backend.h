/* The seam between the network and the machine: about twenty operations on rows of activations.
 *
 * model/ calls these and nothing else; a backend knows operations, not models.  Every operation is
 * defined bit for bit by docs/arithmetic.md, treats rows independently, and so gives the same bits
 * however rows are grouped.  All pointers are in the backend's memory (`allocate`).
 *
 * A backend may run behind: its operations happen in the order of their calls, but perhaps later.  Only
 * after `wait` may the caller look at what they wrote, write what they read, or release it.
 *
 * Conventions: a row of activations is plumb_act[width] (bf16); shapes stand beside every pointer,
 * slowest first; `rows` is the number of rows of the call.  A non-finite value inside an operation
 * raises the backend's fault flag, which `check` reports; the values are then meaningless. */
#ifndef PLUMB_BACKEND_BACKEND_H
#define PLUMB_BACKEND_BACKEND_H

#include "backend/operands.h"

typedef struct plumb_backend plumb_backend;

typedef struct plumb_backend_ops {
    const char *name;
    void (*close)(plumb_backend *b);
    void *(*allocate)(plumb_backend *b, int64_t bytes); /* zeroed; NULL: no memory.
                                                         * For files to be read into. */
    void (*release)(plumb_backend *b, void *memory);
    /* Sets the float environment of the calling thread around a series of operations. */
    void (*begin)(plumb_backend *b);
    void (*end)(plumb_backend *b);
    /* What the backend wants to know of a matrix that many linear_quantized will use: notes in the
     * backend's memory, of *bytes bytes, for the matrix's `prepared`.  NULL when it wants none
     * (*bytes 0) or has no memory for them. */
    void *(*prepare)(plumb_backend *b, const plumb_matrix *w, int64_t *bytes);
    /* Until all operations are done. */
    void (*wait)(plumb_backend *b);
    /* Sends on its way what has been asked for, and says without waiting what is known of it:
     * PLUMB_ERROR_VALUE when an operation met a non-finite value since the last check,
     * PLUMB_ERROR_MEMORY when one had no scratch memory, PLUMB_ERROR_IO when the device failed. */
    plumb_status (*check)(plumb_backend *b);
    /* Memory that this backend can work with at once, bytes; 0: all there is. */
    int64_t (*memory_limit)(plumb_backend *b);
    /* bytes from one place in the backend's memory to another, in turn with the other operations. */
    void (*copy)(plumb_backend *b, const void *from, void *to, int64_t bytes);

    /* Most memory of its own that a batch of `rows` rows makes the backend keep: `widest` input of a
     * linear, `places` slots of experts of `inter`. */
    int64_t (*working_bytes)(plumb_backend *b, int64_t rows, int64_t widest, int64_t places,
                             int64_t inter);

    /* x [rows][k] -> out; out was made for at least rows * k elements. */
    int64_t (*quantized_bytes)(plumb_backend *b, int64_t rows, int64_t k);
    void (*quantize)(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t k,
                     plumb_quantized *out);
    /* Section 3: y[rows][n] from quantised x and an FP8 or FP4 matrix. */
    void (*linear_quantized)(plumb_backend *b, const plumb_quantized *x, int64_t rows,
                             const plumb_matrix *w, plumb_act *y);
    /* Section 4: lanes.  x row i starts at x + i * x_stride, y row i at i * y_stride.  Exactly one of
     * y and y_float is not NULL.  An FP8 matrix is decoded to bf16 first. */
    void (*linear)(plumb_backend *b, const plumb_act *x, int64_t x_stride, int64_t rows,
                   const plumb_matrix *w, plumb_act *y, float *y_float, int64_t y_stride);
    /* y = bf16(w * (x * rsqrt(mean(x^2) + eps))) per row of `width`. */
    void (*rms_norm)(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t width,
                     const float *w, float eps, plumb_act *y);
    /* Rotates the last 2*pairs of each of `heads` vectors of `dim`, in place.  cosine, sine:
     * [rows][pairs]. */
    void (*rotate)(plumb_backend *b, plumb_act *x, int64_t rows, int64_t heads, int64_t dim,
                   int64_t pairs, const float *cosine, const float *sine, bool inverse);

    /* Hyper-connections, model.md 4.2, 4.3.  h [rows][4][hidden]; pre, post [rows][4]; comb
     * [rows][4][4]; fn [24][4*hidden] F32. */
    void (*hc_mix)(plumb_backend *b, const plumb_act *h, int64_t rows, int64_t hidden,
                   const plumb_matrix *fn, const float *base, const float *scale, float norm_eps,
                   float hc_eps, int64_t iterations, float *pre, float *post, float *comb);
    void (*hc_collapse)(plumb_backend *b, const plumb_act *h, const float *pre, int64_t rows,
                        int64_t hidden, plumb_act *x);
    /* h[k] = bf16(post[k]*a + sum_j comb[j][k]*h[j]), in place. */
    void (*hc_update)(plumb_backend *b, plumb_act *h, const plumb_act *a, const float *post,
                      const float *comb, int64_t rows, int64_t hidden);

    /* Packs rows of `dim` into cache rows (section 5). */
    void (*pack_window)(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                        uint8_t *packed);
    void (*pack_compressed)(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                            uint8_t *packed);
    void (*pack_index)(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                       uint8_t *packed);
    /* Pairs: value, gate [2*pairs][dim] -> latent [pairs][dim] (section 10, compressor pair). */
    void (*compress_pairs)(plumb_backend *b, const float *value, const float *gate, int64_t pairs,
                           int64_t dim, plumb_act *latent);
    void (*attention)(plumb_backend *b, const plumb_attention_args *args, int64_t rows);
    /* weight = bf16(proj * factor), as float. */
    void (*index_weights)(plumb_backend *b, const plumb_act *proj, int64_t count, float factor,
                          float *weight);
    void (*index_select)(plumb_backend *b, const plumb_index_args *args, int64_t rows);

    /* logits [rows][experts]; ids, weights [rows][k], ascending expert id (model.md 4.8). */
    void (*route)(plumb_backend *b, const float *logits, const float *bias, int64_t rows,
                  int64_t experts, int64_t k, float route_scale, int32_t *ids, float *weights);
    /* Some of a layer's experts: weights [rows * slots_per_row] by slot, slots_per_row = routed +
     * shared; every group fills its rows of outputs [rows * slots_per_row][hidden] (model.md 4.9). */
    void (*experts)(plumb_backend *b, const plumb_quantized *x, const plumb_expert_group *groups,
                    int64_t n_groups, const float *weights, int64_t slots_per_row, float limit,
                    plumb_act *outputs);
    /* Offered, the three together, where a look at the ids by the caller would stop the device (NULL
     * elsewhere).  experts_held: what `experts` and `experts_sum` do for a whole layer, without the caller
     * knowing which experts those are.  When one of them is not in memory, this and every later operation
     * does nothing, until `missed`, which waits, has told the layer; -1: there was no such. */
    void (*experts_held)(plumb_backend *b, const plumb_held_experts *args, int64_t rows);
    int64_t (*missed)(plumb_backend *b);
    uint64_t (*address)(plumb_backend *b, const void *memory);
    /* out [rows][hidden] is the sum over a row's slots in ascending place, rounded once (arithmetic.md
     * 11); the output of slot s lies in row where[s] of outputs. */
    void (*experts_sum)(plumb_backend *b, const plumb_act *outputs, const int32_t *where,
                        int64_t rows, int64_t slots_per_row, int64_t hidden, plumb_act *out);
    /* kv [rows][5][hidden]: keys of the four copies, then the value; live [rows] (model.md 5.5). */
    void (*engram_gate)(plumb_backend *b, plumb_act *h, const plumb_act *kv, const float *query_w,
                        const float *key_w, const uint8_t *live, int64_t rows, int64_t hidden,
                        float eps, float factor /* fl32(hidden^-0.5) */);
} plumb_backend_ops;

/* Every backend's state begins with its table. */
struct plumb_backend {
    const plumb_backend_ops *ops;
};

#endif
