#include "base/machine.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

bool plumb__machine_has_avx2_fma(void) {
#if defined(__x86_64__)
    /* Every processor with AVX2 has F16C. */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

bool plumb__machine_has_dot_product(void) {
#if defined(__aarch64__) && defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#elif defined(__aarch64__) && defined(__APPLE__)
    int has = 0;
    size_t size = sizeof has;
    return sysctlbyname("hw.optional.arm.FEAT_DotProd", &has, &size, NULL, 0) == 0 && has != 0;
#else
    return false;
#endif
}

bool plumb__machine_has_avx512(void) {
#if defined(__x86_64__)
    return plumb__machine_has_avx2_fma() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

bool plumb__machine_has_avx512_bf16(void) {
#if defined(__x86_64__)
    return plumb__machine_has_avx512() && __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

int plumb__machine_cores(void) {
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

int64_t plumb__machine_memory_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (int64_t)pages * page_bytes : 0;
}

const char *plumb__machine_level_from_environment(void) {
    const char *level = getenv("PLUMB_CPU");
    return level && level[0] ? level : NULL;
}
