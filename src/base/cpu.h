/* What this processor can do, and the one environment variable that can hide it. */
#ifndef PLUMB_BASE_CPU_H
#define PLUMB_BASE_CPU_H

#include <stdbool.h>

bool plumb__cpu_has_avx2_fma(void);

/* PLUMB_CPU=portable|avx2|avx512|neon forces an instruction level; NULL when unset or empty. */
const char *plumb__cpu_level_from_environment(void);

#endif
