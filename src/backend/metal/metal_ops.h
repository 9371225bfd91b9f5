/* The Metal operations, by file, and what they share. */
#ifndef PLUMB_BACKEND_METAL_METAL_OPS_H
#define PLUMB_BACKEND_METAL_METAL_OPS_H

#import "backend/metal/metal_host.h"

/* Groups of experts that one command takes by value: less than the 4 KB that it may. */
enum { PLUMB_METAL_LISTED = 32 };

/* A struct of kernels/arguments.h in an initialiser of plumb_metal_call. */
#define PLUMB_METAL_GIVE(struct_) .arguments = &(struct_), .arguments_bytes = sizeof(struct_)

/* Groups of a flat kernel. */
static inline int64_t plumb__metal_flat(int64_t items) {
    return (items + PLUMB_METAL_FLAT - 1) / PLUMB_METAL_FLAT;
}

/* metal_ops_rows.m */
void plumb__metal_copy(plumb_backend *b, const void *from, void *to, int64_t bytes);
void plumb__metal_quantize(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t k,
                           plumb_quantized *out);
void plumb__metal_rms_norm(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t width,
                           const float *w, float eps, plumb_act *y);
void plumb__metal_rotate(plumb_backend *b, plumb_act *x, int64_t rows, int64_t heads, int64_t dim,
                         int64_t pairs, const float *cosine, const float *sine, bool inverse);
void plumb__metal_hc_mix(plumb_backend *b, const plumb_act *h, int64_t rows, int64_t hidden,
                         const plumb_matrix *fn, const float *base, const float *scale,
                         float norm_eps, float hc_eps, int64_t iterations, float *pre, float *post,
                         float *comb);
void plumb__metal_hc_collapse(plumb_backend *b, const plumb_act *h, const float *pre, int64_t rows,
                              int64_t hidden, plumb_act *x);
void plumb__metal_hc_update(plumb_backend *b, plumb_act *h, const plumb_act *a, const float *post,
                            const float *comb, int64_t rows, int64_t hidden);
void plumb__metal_pack_window(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                              uint8_t *packed);
void plumb__metal_pack_compressed(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                                  uint8_t *packed);
void plumb__metal_pack_index(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                             uint8_t *packed);
void plumb__metal_compress_pairs(plumb_backend *b, const float *value, const float *gate,
                                 int64_t pairs, int64_t dim, plumb_act *latent);
void plumb__metal_route(plumb_backend *b, const float *logits, const float *bias, int64_t rows,
                        int64_t experts, int64_t k, float route_scale, int32_t *ids,
                        float *weights);
void plumb__metal_engram_gate(plumb_backend *b, plumb_act *h, const plumb_act *kv,
                              const float *query_w, const float *key_w, const uint8_t *live,
                              int64_t rows, int64_t hidden, float eps, float factor);

/* metal_ops_linear.m */
int64_t plumb__metal_quantized_bytes(plumb_backend *b, int64_t rows, int64_t k);
void plumb__metal_linear_quantized(plumb_backend *b, const plumb_quantized *x, int64_t rows,
                                   const plumb_matrix *w, plumb_act *y);
void plumb__metal_linear(plumb_backend *b, const plumb_act *x, int64_t x_stride, int64_t rows,
                         const plumb_matrix *w, plumb_act *y, float *y_float, int64_t y_stride);
void plumb__metal_experts(plumb_backend *b, const plumb_quantized *x,
                          const plumb_expert_group *groups, int64_t n_groups, const float *weights,
                          int64_t slots_per_row, float limit, plumb_act *outputs);
void plumb__metal_experts_sum(plumb_backend *b, const plumb_act *outputs, const int32_t *where,
                              int64_t rows, int64_t slots_per_row, int64_t hidden, plumb_act *out);
void plumb__metal_experts_held(plumb_backend *b, const plumb_held_experts *a, int64_t rows);
int64_t plumb__metal_working_bytes(plumb_backend *b, int64_t rows, int64_t widest, int64_t places,
                                   int64_t inter);

/* metal_ops_attention.m */
void plumb__metal_attention(plumb_backend *b, const plumb_attention_args *a, int64_t rows);
void plumb__metal_index_weights(plumb_backend *b, const plumb_act *proj, int64_t count,
                                float factor, float *weight);
void plumb__metal_index_select(plumb_backend *b, const plumb_index_args *a, int64_t rows);

#endif
