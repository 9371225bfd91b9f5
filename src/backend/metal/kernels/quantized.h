/* Activations quantised to e4m3 in blocks of 32 with a ue8m0 scale each (docs/arithmetic.md section 5). */
#ifndef PLUMB_BACKEND_METAL_QUANTIZED_H
#define PLUMB_BACKEND_METAL_QUANTIZED_H

#include "backend/metal/kernels/common.h"

/* Four neighbouring activations as float. */
static inline float4 plumb_load_quad(ushort4 x) {
    return float4(plumb__load(x.x), plumb__load(x.y), plumb__load(x.z), plumb__load(x.w));
}

/* Codes and scale of block `block` of a row of k; false: an element is not finite. */
static inline bool plumb_quantize_block(thread const float *value, uint k, uint block,
                                        device uchar *row) {
    float most = plumb__absolute_max(value, PLUMB_BLOCK);
    int exponent = plumb__q8_exponent_of(most);
    device uint *codes = (device uint *)(row + block * PLUMB_BLOCK); /* rows are aligned to 16 */
    for (uint i = 0; i < PLUMB_BLOCK; i += 4) {
        uint quad = 0;
        for (uint j = 0; j < 4; j++) {
            float x = plumb__divide_power(value[i + j], exponent);
            quad |= (uint)plumb__e4m3_encode(x) << (8 * j);
        }
        codes[i / 4] = quad;
    }
    row[k + block] = (uchar)(exponent + 127);
    return plumb_finite(most);
}

#endif
