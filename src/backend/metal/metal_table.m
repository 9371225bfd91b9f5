/* The Metal backend's table of operations, and the few that are too small for a file of theirs. */
#import "backend/metal/metal_ops.h"

#include "arith/float_env.h"

/* What the caller computes between operations, such as rotary angles, follows the contract too. */
static void begin(plumb_backend *b) { plumb__float_env_enter(&plumb__metal(b)->float_env); }

static void end(plumb_backend *b) { plumb__float_env_leave(plumb__metal(b)->float_env); }

static void *prepare(plumb_backend *b, const plumb_matrix *w, int64_t *bytes) {
    (void)b, (void)w;
    *bytes = 0; /* kernels take matrices as they are stored */
    return NULL;
}

static int64_t memory_limit(plumb_backend *b) {
    @autoreleasepool {
        return (int64_t)[plumb__metal(b)->device recommendedMaxWorkingSetSize];
    }
}

const plumb_backend_ops plumb__metal_ops = {
    .name = "metal",
    .close = plumb__metal_close,
    .allocate = plumb__metal_allocate,
    .release = plumb__metal_release,
    .begin = begin,
    .end = end,
    .prepare = prepare,
    .wait = plumb__metal_wait,
    .check = plumb__metal_check,
    .memory_limit = memory_limit,
    .copy = plumb__metal_copy,
    .working_bytes = plumb__metal_working_bytes,
    .quantized_bytes = plumb__metal_quantized_bytes,
    .quantize = plumb__metal_quantize,
    .linear_quantized = plumb__metal_linear_quantized,
    .linear = plumb__metal_linear,
    .rms_norm = plumb__metal_rms_norm,
    .rotate = plumb__metal_rotate,
    .hc_mix = plumb__metal_hc_mix,
    .hc_collapse = plumb__metal_hc_collapse,
    .hc_update = plumb__metal_hc_update,
    .pack_window = plumb__metal_pack_window,
    .pack_compressed = plumb__metal_pack_compressed,
    .pack_index = plumb__metal_pack_index,
    .compress_pairs = plumb__metal_compress_pairs,
    .attention = plumb__metal_attention,
    .index_weights = plumb__metal_index_weights,
    .index_select = plumb__metal_index_select,
    .route = plumb__metal_route,
    .experts = plumb__metal_experts,
    .experts_held = plumb__metal_experts_held,
    .missed = plumb__metal_missed,
    .address = plumb__metal_address,
    .experts_sum = plumb__metal_experts_sum,
    .engram_gate = plumb__metal_engram_gate,
};
