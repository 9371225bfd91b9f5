/* Hyper-connections (docs/arithmetic.md section 8): a row of the residual stream is four copies. */
#ifndef PLUMB_BACKEND_METAL_HC_H
#define PLUMB_BACKEND_METAL_HC_H

#include "backend/metal/kernels/common.h"

enum {
    HC_COPIES = 4,
    HC_MIX = 2 * HC_COPIES + HC_COPIES * HC_COPIES /* coefficients of a row: pre, post, comb */
};

#endif
