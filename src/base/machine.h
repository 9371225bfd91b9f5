/* What this machine has: instructions, cores, memory; and the one environment variable that can
 * hide instructions. */
#ifndef PLUMB_BASE_MACHINE_H
#define PLUMB_BASE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

bool plumb__machine_has_avx2_fma(void);
bool plumb__machine_has_dot_product(void); /* of Arm's Advanced SIMD */
int plumb__machine_cores(void);            /* that this process may use */
int64_t plumb__machine_memory_bytes(void); /* physical; 0 when unknown */

/* PLUMB_CPU=portable|avx2|avx512|neon forces an instruction level; NULL when unset or empty. */
const char *plumb__machine_level_from_environment(void);

#endif
