#include "base/machine.h"

#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

/* ---- Memory ---------------------------------------------------------------------------------- */

#if defined(__linux__)
/* The first number after `key` in a small file of the system, or -1; "max" is no number. */
static int64_t number_in(const char *path, const char *key) {
    char text[4096];
    FILE *file = fopen(path, "re");
    if (!file) return -1;
    size_t size = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[size] = 0;
    const char *at = strstr(text, key);
    if (!at) return -1;
    at += strlen(key);
    while (*at == ' ') at++;
    return *at >= '0' && *at <= '9' ? strtoll(at, NULL, 10) : -1;
}

/* The limit of the container that we are in, and what it uses. */
static int64_t container_limit(void) {
    int64_t limit = number_in("/sys/fs/cgroup/memory.max", "");
    return limit >= 0 ? limit : number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", "");
}

static int64_t less_files(int64_t used, const char *statistics, const char *active,
                          const char *inactive) {
    int64_t a = number_in(statistics, active), i = number_in(statistics, inactive);
    int64_t files = (a > 0 ? a : 0) + (i > 0 ? i : 0);
    return used < 0 || files > used ? used : used - files;
}

/* Without the file caches, which give way to whoever needs memory. */
static int64_t container_use(void) {
    int64_t used = less_files(number_in("/sys/fs/cgroup/memory.current", ""),
                              "/sys/fs/cgroup/memory.stat", "\nactive_file ", "\ninactive_file ");
    if (used >= 0) return used;
    return less_files(number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes", ""),
                      "/sys/fs/cgroup/memory/memory.stat", "total_active_file ",
                      "total_inactive_file ");
}

int64_t plumb__machine_available_bytes(void) {
    int64_t available = number_in("/proc/meminfo", "MemAvailable:");
    if (available < 0) return -1;
    available *= 1024;
    int64_t limit = container_limit(), used = container_use();
    if (limit < 0 || used < 0) return available;
    int64_t left = limit > used ? limit - used : 0;
    return left < available ? left : available;
}
#else
static int64_t container_limit(void) { return -1; }

int64_t plumb__machine_available_bytes(void) { return -1; }
#endif

int64_t plumb__machine_memory_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page_bytes <= 0) return 0;
    int64_t physical = (int64_t)pages * page_bytes, limit = container_limit();
    return limit > 0 && limit < physical ? limit : physical;
}

int64_t plumb__machine_peak_bytes(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#if defined(__APPLE__)
    return usage.ru_maxrss;
#else
    return (int64_t)usage.ru_maxrss * 1024;
#endif
}

const char *plumb__machine_level_from_environment(void) {
    const char *level = getenv("PLUMB_CPU");
    return level && level[0] ? level : NULL;
}
