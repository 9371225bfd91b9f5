/* The levels that the tests see: those of this machine, and the AVX-512 ones compiled against
 * immintrin.h of this folder, next to last, so that the best one stays the machine's own. Linked
 * into a test program, this function takes the place of the backend's. */
#define plumb__cpu_kernel_levels machine_levels
#include "backend/cpu/levels.c"
#undef plumb__cpu_kernel_levels

int plumb__cpu_kernel_levels(const plumb_cpu_kernels **levels);

extern const plumb_cpu_kernels plumb__cpu_kernels_avx512_emulated;
extern const plumb_cpu_kernels plumb__cpu_kernels_avx512_bf16_emulated;

int plumb__cpu_kernel_levels(const plumb_cpu_kernels **levels) {
    int n = machine_levels(levels);
    levels[n + 1] = levels[n - 1]; /* the portable one stays the last */
    levels[n - 1] = &plumb__cpu_kernels_avx512_bf16_emulated;
    levels[n] = &plumb__cpu_kernels_avx512_emulated;
    return n + 2;
}
