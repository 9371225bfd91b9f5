/* Operations that treat one row, or one element, at a time. */
#import "backend/metal/metal_ops.h"

void plumb__metal_copy(plumb_backend *b, const void *from, void *to, int64_t bytes) {
    const int64_t most = 1 << 30; /* sizes are 32 bits in the kernel */
    for (int64_t done = 0; done < bytes; done += most) {
        int64_t part = bytes - done < most ? bytes - done : most;
        plumb_metal_copy arguments = {.bytes = (uint32_t)part};
        plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
            .kernel = KERNEL_COPY,
            PLUMB_METAL_GIVE(arguments),
            .memory = {(void *)((uintptr_t)from + (uintptr_t)done), (void *)((uintptr_t)to + (uintptr_t)done)},
            .groups = {plumb__metal_flat((part + 15) / 16), 1, 1}});
    }
}

void plumb__metal_quantize(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t k,
                           plumb_quantized *out) {
    plumb_metal_quantize arguments = {.rows = (uint32_t)rows, .k = (uint32_t)k};
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = KERNEL_QUANTIZE,
        PLUMB_METAL_GIVE(arguments),
        .memory = {x, out},
        .groups = {plumb__metal_flat(rows * (k / PLUMB_BLOCK)), 1, 1}});
}

void plumb__metal_rms_norm(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t width,
                           const float *w, float eps, plumb_act *y) {
    /* One argument, not two with the same memory; the network normalises in place anyway. */
    if (x != y) plumb__metal_copy(b, x, y, rows * width * (int64_t)sizeof *x);
    plumb_metal_rms_norm arguments = {.width = (uint32_t)width, .eps = eps};
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = KERNEL_RMS_NORM,
        PLUMB_METAL_GIVE(arguments),
        .memory = {y, w},
        .groups = {rows, 1, 1}});
}

void plumb__metal_rotate(plumb_backend *b, plumb_act *x, int64_t rows, int64_t heads, int64_t dim,
                         int64_t pairs, const float *cosine, const float *sine, bool inverse) {
    plumb_metal_rotate arguments = {.rows = (uint32_t)rows, .heads = (uint32_t)heads,
                                    .dim = (uint32_t)dim, .pairs = (uint32_t)pairs,
                                    .inverse = inverse};
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = KERNEL_ROTATE,
        PLUMB_METAL_GIVE(arguments),
        .memory = {x, cosine, sine},
        .groups = {plumb__metal_flat(rows * heads * pairs), 1, 1}});
}

/* ---- Hyper-connections ------------------------------------------------------------------------- */

void plumb__metal_hc_mix(plumb_backend *b, const plumb_act *h, int64_t rows, int64_t hidden,
                         const plumb_matrix *fn, const float *base, const float *scale,
                         float norm_eps, float hc_eps, int64_t iterations, float *pre, float *post,
                         float *comb) {
    plumb_metal_hc_mix arguments = {.hidden = (uint32_t)hidden, .iterations = (uint32_t)iterations,
                                    .norm_eps = norm_eps, .hc_eps = hc_eps};
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = KERNEL_HC_MIX,
        PLUMB_METAL_GIVE(arguments),
        .memory = {h, fn->codes, base, scale, pre, post, comb},
        .groups = {rows, 1, 1},
        .threadgroup_bytes = {32 * (int64_t)sizeof(float)}});
}

void plumb__metal_hc_collapse(plumb_backend *b, const plumb_act *h, const float *pre, int64_t rows,
                              int64_t hidden, plumb_act *x) {
    plumb_metal_hc arguments = {.rows = (uint32_t)rows, .hidden = (uint32_t)hidden};
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = KERNEL_HC_COLLAPSE,
        PLUMB_METAL_GIVE(arguments),
        .memory = {h, pre, x},
        .groups = {plumb__metal_flat(rows * hidden), 1, 1}});
}

void plumb__metal_hc_update(plumb_backend *b, plumb_act *h, const plumb_act *a, const float *post,
                            const float *comb, int64_t rows, int64_t hidden) {
    plumb_metal_hc arguments = {.rows = (uint32_t)rows, .hidden = (uint32_t)hidden};
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = KERNEL_HC_UPDATE,
        PLUMB_METAL_GIVE(arguments),
        .memory = {h, a, post, comb},
        .groups = {plumb__metal_flat(rows * hidden), 1, 1}});
}

/* ---- Cache rows -------------------------------------------------------------------------------- */

static void pack(plumb_backend *b, plumb_metal_kernel kernel, int64_t block, const plumb_act *x,
                 int64_t rows, int64_t dim, uint8_t *packed) {
    plumb_metal_pack arguments = {.rows = (uint32_t)rows, .dim = (uint32_t)dim};
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = kernel,
        PLUMB_METAL_GIVE(arguments),
        .memory = {x, packed},
        .groups = {plumb__metal_flat(rows * (dim / block)), 1, 1}});
}

void plumb__metal_pack_window(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                              uint8_t *packed) {
    pack(b, KERNEL_PACK_WINDOW, PLUMB_BLOCK, x, rows, dim, packed);
}

void plumb__metal_pack_compressed(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                                  uint8_t *packed) {
    pack(b, KERNEL_PACK_COMPRESSED, PLUMB_COMPRESSED_BLOCK, x, rows, dim, packed);
}

void plumb__metal_pack_index(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                             uint8_t *packed) {
    pack(b, KERNEL_PACK_INDEX, PLUMB_BLOCK, x, rows, dim, packed);
}

void plumb__metal_compress_pairs(plumb_backend *b, const float *value, const float *gate,
                                 int64_t pairs, int64_t dim, plumb_act *latent) {
    plumb_metal_compress_pairs arguments = {.pairs = (uint32_t)pairs, .dim = (uint32_t)dim};
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = KERNEL_COMPRESS_PAIRS,
        PLUMB_METAL_GIVE(arguments),
        .memory = {value, gate, latent},
        .groups = {plumb__metal_flat(pairs * dim), 1, 1}});
}

/* ---- Router and Engram ------------------------------------------------------------------------- */

void plumb__metal_route(plumb_backend *b, const float *logits, const float *bias, int64_t rows,
                        int64_t experts, int64_t k, float route_scale, int32_t *ids,
                        float *weights) {
    plumb_metal_route arguments = {.experts = (uint32_t)experts, .k = (uint32_t)k,
                                   .route_scale = route_scale};
    int64_t floats = (2 * experts + 3) / 4 * 4;
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = KERNEL_ROUTE,
        PLUMB_METAL_GIVE(arguments),
        .memory = {logits, bias, ids, weights},
        .groups = {rows, 1, 1},
        .threadgroup_bytes = {floats * (int64_t)sizeof(float)}});
}

void plumb__metal_engram_gate(plumb_backend *b, plumb_act *h, const plumb_act *kv,
                              const float *query_w, const float *key_w, const uint8_t *live,
                              int64_t rows, int64_t hidden, float eps, float factor) {
    plumb_metal_engram_gate arguments = {.hidden = (uint32_t)hidden, .eps = eps, .factor = factor};
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = KERNEL_ENGRAM_GATE,
        PLUMB_METAL_GIVE(arguments),
        .memory = {h, kv, query_w, key_w, live},
        .groups = {4, rows, 1}});
}
