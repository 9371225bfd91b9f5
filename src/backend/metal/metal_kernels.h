/* The kernels of the Metal backend by number. */
#ifndef PLUMB_BACKEND_METAL_METAL_KERNELS_H
#define PLUMB_BACKEND_METAL_METAL_KERNELS_H

#include "backend/metal/kernels/arguments.h"

typedef enum plumb_metal_kernel {
    KERNEL_COPY,
    KERNEL_QUANTIZE,
    KERNEL_LINEAR_FP8,
    KERNEL_LINEAR_FP4,
    KERNEL_LINEAR_BF16,
    KERNEL_LINEAR_F32,
    KERNEL_LINEAR_DECODED,
    KERNEL_RMS_NORM,
    KERNEL_ROTATE,
    KERNEL_HC_MIX,
    KERNEL_HC_COLLAPSE,
    KERNEL_HC_UPDATE,
    KERNEL_PACK_WINDOW,
    KERNEL_PACK_COMPRESSED,
    KERNEL_PACK_INDEX,
    KERNEL_COMPRESS_PAIRS,
    KERNEL_ATTENTION,
    KERNEL_INDEX_WEIGHTS,
    KERNEL_INDEX_SCORES,
    KERNEL_INDEX_BLOCKS,
    KERNEL_SELECT_TOP,
    KERNEL_ROUTE,
    KERNEL_GROUP_EXPERTS,
    KERNEL_EXPERTS_GATE_UP,
    KERNEL_EXPERTS_ACTIVATE,
    KERNEL_EXPERTS_DOWN,
    KERNEL_EXPERTS_SUM,
    KERNEL_ENGRAM_GATE,
    KERNEL_COUNT
} plumb_metal_kernel;

/* Binding of the first buffer behind the arguments; most buffers of a kernel. */
enum { PLUMB_METAL_FIRST_MEMORY = 2, PLUMB_METAL_MAX_MEMORY = 8 };

typedef struct plumb_metal_kernel_form {
    const char *name;
    int n_memory; /* buffers from PLUMB_METAL_FIRST_MEMORY on */
    int threads;  /* of a group */
} plumb_metal_kernel_form;

/* [KERNEL_COUNT], as kernels/arguments.h describes them. */
extern const plumb_metal_kernel_form plumb__metal_kernel_forms[];

#endif
