/* The instruction levels that a machine of this architecture could have, and which of them can run here. */
#ifndef PLUMB_TESTS_KERNELS_LEVELS_H
#define PLUMB_TESTS_KERNELS_LEVELS_H

#include "backend/cpu/kernels/kernels.h"

/* The emulated ones need SIMDe when the tests are built (emulated/CMakeLists.txt). */
#if defined(__aarch64__)
static const char *const known_levels[] = {"portable", "neon"};
#else
static const char *const known_levels[] = {
    "portable", "avx2", "avx512", "avx512_bf16", "avx512_emulated", "avx512_bf16_emulated"};
#endif
enum { KNOWN_LEVELS = sizeof known_levels / sizeof known_levels[0] };

/* Its kernels, or NULL. */
static inline const plumb_cpu_kernels *find_level(const char *name) {
    const plumb_cpu_kernels *levels[PLUMB_MAX_LEVELS];
    int n = plumb__cpu_kernel_levels(levels);
    for (int i = 0; i < n; i++)
        if (!strcmp(levels[i]->level, name)) return levels[i];
    return NULL;
}

#endif
