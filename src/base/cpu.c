#include "base/cpu.h"

#include <stddef.h>
#include <stdlib.h>

bool plumb__cpu_has_avx2_fma(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

const char *plumb__cpu_level_from_environment(void) {
    const char *level = getenv("PLUMB_CPU");
    return level && level[0] ? level : NULL;
}
