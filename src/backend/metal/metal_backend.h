/* The Metal backend: the operations of backend.h on an Apple GPU that shares its memory with the
 * processor, with the bits of docs/arithmetic.md. */
#ifndef PLUMB_BACKEND_METAL_METAL_BACKEND_H
#define PLUMB_BACKEND_METAL_METAL_BACKEND_H

#include "backend/backend.h"

/* Opens the default GPU, compiles the kernels and compares each of them with the portable ones on
 * known vectors (backend/self_test.h), so that no machine computes other bits unnoticed.
 *
 * PLUMB_ERROR_UNSUPPORTED says what the machine lacks: a GPU, the family Metal 3, unified memory,
 * macOS 15, threadgroup memory, a compiler that takes the kernels, or right bits (which operation and
 * kernel, where, found and expected).  PLUMB_ERROR_MEMORY: no memory for buffers.
 *
 * `close` waits for the GPU and frees all that was allocated.  Several backends may be open at once;
 * one thread at a time issues a backend's operations, any may allocate and release. */
PLUMB_MUST_CHECK plumb_status plumb__metal_backend_create(plumb_backend **backend,
                                                          plumb_error *err);
/* The GPU's own name, for the log; lives as long as the backend. */
const char *plumb__metal_device_name(const plumb_backend *backend);
/* Can this build open one at all? */
bool plumb__metal_is_built(void);

#endif
