/* Which kernel tables this machine can run.  In a file of its own: a test program that defines this
 * function itself decides what the backend finds (tests/kernels/emulated). */
#include "backend/cpu/kernels/kernels.h"
#include "base/machine.h"

int plumb__cpu_kernel_levels(const plumb_cpu_kernels **levels) {
    int n = 0;
#if defined(PLUMB_HAVE_AVX512)
    if (plumb__machine_has_avx512_bf16()) levels[n++] = &plumb__cpu_kernels_avx512_bf16;
    if (plumb__machine_has_avx512()) levels[n++] = &plumb__cpu_kernels_avx512;
#endif
#if defined(PLUMB_HAVE_AVX2)
    if (plumb__machine_has_avx2_fma()) levels[n++] = &plumb__cpu_kernels_avx2;
#endif
#if defined(PLUMB_HAVE_NEON)
    if (plumb__machine_has_dot_product()) levels[n++] = &plumb__cpu_kernels_neon;
#endif
    levels[n++] = &plumb__cpu_kernels_portable;
    return n;
}
