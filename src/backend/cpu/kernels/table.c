/* The kernel table of one instruction level; compiled once per level. */
#include "backend/cpu/kernels/kernels.h"

#define PLUMB_STRING_(x) #x
#define PLUMB_STRING(x) PLUMB_STRING_(x)

const plumb_cpu_kernels PLUMB_KERNEL(cpu_kernels) = {
    .level = PLUMB_STRING(PLUMB_LEVEL),
    .quantized_row_bytes = PLUMB_KERNEL(quantized_row_bytes),
    .quantize_row = PLUMB_KERNEL(quantize_row),
    .prepared_bytes = PLUMB_KERNEL(prepared_bytes),
    .prepare = PLUMB_KERNEL(prepare),
    .linear_quantized_scratch = PLUMB_KERNEL(linear_quantized_scratch),
    .linear_quantized = PLUMB_KERNEL(linear_quantized),
    .widen = PLUMB_KERNEL(widen),
    .mean_square = PLUMB_KERNEL(mean_square),
    .lane_products = PLUMB_KERNEL(lane_products),
    .linear = PLUMB_KERNEL(linear),
    .rms_norm = PLUMB_KERNEL(rms_norm),
    .rotate = PLUMB_KERNEL(rotate),
    .pack_window = PLUMB_KERNEL(pack_window),
    .pack_compressed = PLUMB_KERNEL(pack_compressed),
    .pack_index = PLUMB_KERNEL(pack_index),
    .hc_coefficients = PLUMB_KERNEL(hc_coefficients),
    .hc_collapse = PLUMB_KERNEL(hc_collapse),
    .hc_update = PLUMB_KERNEL(hc_update),
    .attention = PLUMB_KERNEL(attention),
    .compress_pair = PLUMB_KERNEL(compress_pair),
    .index_scores = PLUMB_KERNEL(index_scores),
    .route = PLUMB_KERNEL(route),
    .swiglu = PLUMB_KERNEL(swiglu),
    .moe_sum = PLUMB_KERNEL(moe_sum),
    .engram_gate = PLUMB_KERNEL(engram_gate),
};
