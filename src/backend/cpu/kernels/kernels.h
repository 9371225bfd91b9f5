/* The CPU's kernels: one table per instruction level, the portable C one is the definition.
 *
 * A kernel works on one row, or on the weights of a range of output rows; splitting over threads is the
 * business of cpu_linear.c, cpu_attention.c and cpu_rows.c.  The same bodies are compiled once per level
 * (PLUMB_LEVEL names it), so that a level without a hand-written variant of an op still gains from its
 * instructions: the source spells every rounding, so the compiler has no freedom to change a bit. */
#ifndef PLUMB_BACKEND_CPU_KERNELS_H
#define PLUMB_BACKEND_CPU_KERNELS_H

#include "backend/backend.h"

#ifndef PLUMB_LEVEL
#define PLUMB_LEVEL portable
#endif
#define PLUMB_PASTE_(name, level) name##_##level
#define PLUMB_PASTE(name, level) PLUMB_PASTE_(name, level)
/* plumb__rms_norm_portable, plumb__rms_norm_avx2, ... */
#define PLUMB_KERNEL(name) PLUMB_PASTE(plumb__##name, PLUMB_LEVEL)

/* Keys of a tile, which stays within the first cache: whole ones for scores, thirty-two elements of
 * many for values; whole index keys. */
enum { PLUMB_SCORE_KEYS = 8, PLUMB_VALUE_KEYS = 128, PLUMB_INDEX_KEYS = 8 };

struct plumb_cpu_kernels {
    const char *level;
    /* A row of k activations (a multiple of 32) quantised to e4m3: values and scales are the
     * contract's, their layout is the level's own, 64-byte aligned.  quantize_row returns false when
     * an element is not finite. */
    int64_t (*quantized_row_bytes)(int64_t k);
    bool (*quantize_row)(const plumb_act *x, int64_t k, void *row);
    /* Notes about a matrix for its `prepared`: their size, 0 for none, and their making. */
    int64_t (*prepared_bytes)(const plumb_matrix *w);
    void (*prepare)(const plumb_matrix *w, void *memory);
    /* Output columns [begin, end) of the rows x[rows]: y[row * y_stride + n].  scratch:
     * linear_quantized_scratch(k, rows) bytes, 64-byte aligned.  Returns false when a result is not
     * finite. */
    bool (*linear_quantized)(const void *const *x, int64_t rows, const plumb_matrix *w,
                             int64_t begin, int64_t end, plumb_act *y, int64_t y_stride,
                             void *scratch);
    int64_t (*linear_quantized_scratch)(int64_t k, int64_t rows);
    /* x: widened rows, x + row * x_stride.  Lanes.  Exactly one of y, y_float. */
    bool (*linear)(const float *x, int64_t x_stride, int64_t rows, const plumb_matrix *w,
                   int64_t begin, int64_t end, plumb_act *y, float *y_float, int64_t y_stride,
                   void *scratch);
    void (*widen)(const plumb_act *x, int64_t n, float *y);
    void (*rms_norm)(const plumb_act *x, int64_t width, const float *w, float eps, plumb_act *y,
                     float *scratch /* [width] */);
    void (*rotate)(plumb_act *x, int64_t heads, int64_t dim, int64_t pairs, const float *cosine,
                   const float *sine, bool inverse);
    float (*mean_square)(const float *x, int64_t n);
    /* out[r * out_stride + c] = lane product of x row r and y row c.  x [rows][n], y [columns][n]; n
     * is a multiple of 32. */
    void (*lane_products)(const float *x, int64_t rows, const float *y, int64_t columns, int64_t n,
                          float *out, int64_t out_stride);
    void (*hc_coefficients)(const float *m /* [24] */, float r, const float *base,
                            const float *scale, float eps, int64_t iterations, float *pre,
                            float *post, float *comb);
    void (*hc_collapse)(const plumb_act *h, const float *pre, int64_t hidden, plumb_act *x);
    void (*hc_update)(plumb_act *h, const plumb_act *a, const float *post, const float *comb,
                      int64_t hidden);
    void (*pack_window)(const float *x, int64_t dim, uint8_t *row);
    void (*pack_compressed)(const float *x, int64_t dim, uint8_t *row);
    void (*pack_index)(const float *x, int64_t dim, uint8_t *row);
    void (*compress_pair)(const float *value, const float *gate, int64_t dim, plumb_act *latent);
    /* Heads [begin, end) of one row. */
    void (*attention)(const plumb_attention_args *a, int64_t row, int64_t begin, int64_t end,
                      float *scratch);
    /* Scores of `count` keys for one row: keys positions[i], or 0..count-1 when positions is NULL. */
    bool (*index_scores)(const plumb_index_args *a, int64_t row, const int32_t *positions,
                         int64_t count, float *score, float *scratch);
    bool (*route)(const float *logits, const float *bias, int64_t experts, int64_t k,
                  float route_scale, int32_t *ids, float *weights, float *scratch);
    void (*swiglu)(const plumb_act *gate, const plumb_act *up, float weight, float limit,
                   int64_t n, plumb_act *t);
    /* out = bf16(y[0] + y[1] + ...) over `slots` rows of `hidden`, in this order. */
    void (*moe_sum)(const plumb_act *const *y, int64_t slots, int64_t hidden, plumb_act *out);
    void (*engram_gate)(plumb_act *h, const plumb_act *kv, const float *query_w,
                        const float *key_w, int64_t hidden, float eps, float factor,
                        float *scratch);
};
typedef struct plumb_cpu_kernels plumb_cpu_kernels;

extern const plumb_cpu_kernels plumb__cpu_kernels_portable;
extern const plumb_cpu_kernels plumb__cpu_kernels_avx2;
extern const plumb_cpu_kernels plumb__cpu_kernels_neon;
extern const plumb_cpu_kernels plumb__cpu_kernels_avx512;
extern const plumb_cpu_kernels plumb__cpu_kernels_avx512_bf16;

/* ---- The kernels of this level ------------------------------------------------------------- */

int64_t PLUMB_KERNEL(quantized_row_bytes)(int64_t k);
bool PLUMB_KERNEL(quantize_row)(const plumb_act *x, int64_t k, void *row);
int64_t PLUMB_KERNEL(prepared_bytes)(const plumb_matrix *w);
void PLUMB_KERNEL(prepare)(const plumb_matrix *w, void *memory);
bool PLUMB_KERNEL(linear_quantized)(const void *const *x, int64_t rows, const plumb_matrix *w,
                                    int64_t begin, int64_t end, plumb_act *y, int64_t y_stride,
                                    void *scratch);
int64_t PLUMB_KERNEL(linear_quantized_scratch)(int64_t k, int64_t rows);
void PLUMB_KERNEL(widen)(const plumb_act *x, int64_t n, float *y);
float PLUMB_KERNEL(mean_square)(const float *x, int64_t n);
void PLUMB_KERNEL(lane_products)(const float *x, int64_t rows, const float *y, int64_t columns,
                                 int64_t n, float *out, int64_t out_stride);
bool PLUMB_KERNEL(linear)(const float *x, int64_t x_stride, int64_t rows, const plumb_matrix *w,
                          int64_t begin, int64_t end, plumb_act *y, float *y_float,
                          int64_t y_stride, void *scratch);
void PLUMB_KERNEL(rms_norm)(const plumb_act *x, int64_t width, const float *w, float eps,
                            plumb_act *y, float *scratch);
void PLUMB_KERNEL(rotate)(plumb_act *x, int64_t heads, int64_t dim, int64_t pairs,
                          const float *cosine, const float *sine, bool inverse);
void PLUMB_KERNEL(pack_window)(const float *x, int64_t dim, uint8_t *row);
void PLUMB_KERNEL(pack_compressed)(const float *x, int64_t dim, uint8_t *row);
void PLUMB_KERNEL(pack_index)(const float *x, int64_t dim, uint8_t *row);
void PLUMB_KERNEL(hc_coefficients)(const float *m, float r, const float *base, const float *scale,
                                   float eps, int64_t iterations, float *pre, float *post,
                                   float *comb);
void PLUMB_KERNEL(hc_collapse)(const plumb_act *h, const float *pre, int64_t hidden, plumb_act *x);
void PLUMB_KERNEL(hc_update)(plumb_act *h, const plumb_act *a, const float *post,
                             const float *comb, int64_t hidden);
void PLUMB_KERNEL(attention)(const plumb_attention_args *a, int64_t row, int64_t begin,
                             int64_t end, float *scratch);
void PLUMB_KERNEL(compress_pair)(const float *value, const float *gate, int64_t dim,
                                 plumb_act *latent);
bool PLUMB_KERNEL(index_scores)(const plumb_index_args *a, int64_t row, const int32_t *positions,
                                int64_t count, float *score, float *scratch);
bool PLUMB_KERNEL(route)(const float *logits, const float *bias, int64_t experts, int64_t k,
                         float route_scale, int32_t *ids, float *weights, float *scratch);
void PLUMB_KERNEL(swiglu)(const plumb_act *gate, const plumb_act *up, float weight, float limit,
                          int64_t n, plumb_act *t);
void PLUMB_KERNEL(moe_sum)(const plumb_act *const *y, int64_t slots, int64_t hidden, plumb_act *out);
void PLUMB_KERNEL(engram_gate)(plumb_act *h, const plumb_act *kv, const float *query_w,
                               const float *key_w, int64_t hidden, float eps, float factor,
                               float *scratch);

/* Tables this machine can run, best first; the last is the portable one.  Returns their number, at
 * most PLUMB_MAX_LEVELS (two are left for the tests). */
enum { PLUMB_MAX_LEVELS = 6 };
int plumb__cpu_kernel_levels(const plumb_cpu_kernels **levels);

/* Scratch sizes: floats of `attention` for n_heads heads and `keys` keys, floats of
 * `index_scores`, bytes of `linear`: one widened weight row, or a tile of sums of up to
 * PLUMB_LINEAR_GROUP activation rows.  Those of `attention` are aligned to pointers. */
enum { PLUMB_POINTER_FLOATS = (int)(sizeof(void *) / sizeof(float)) };
static inline int64_t plumb__attention_tile(int64_t dim) {
    int64_t whole = PLUMB_SCORE_KEYS * dim, strips = PLUMB_VALUE_KEYS * PLUMB_BLOCK;
    return whole > strips ? whole : strips;
}
static inline int64_t plumb__attention_scratch(int64_t dim, int64_t n_heads, int64_t keys) {
    return plumb__attention_tile(dim) + n_heads * (PLUMB_BLOCK + dim + keys + 1) +
           keys * PLUMB_POINTER_FLOATS;
}
static inline int64_t plumb__index_scratch(int64_t heads, int64_t dim) {
    return (heads + PLUMB_INDEX_KEYS) * dim + heads * PLUMB_INDEX_KEYS;
}
enum { PLUMB_LINEAR_GROUP = 64, PLUMB_LINEAR_TILE_BYTES = 40960 };
static inline int64_t plumb__linear_scratch_bytes(int64_t k) {
    return 4 * k > PLUMB_LINEAR_TILE_BYTES ? 4 * k : PLUMB_LINEAR_TILE_BYTES;
}

#endif
