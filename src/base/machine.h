/* What this machine has: instructions, cores, memory; and the one environment variable that can
 * hide instructions. */
#ifndef PLUMB_BASE_MACHINE_H
#define PLUMB_BASE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Instructions, and an operating system that keeps their registers. */
bool plumb__machine_has_avx2_fma(void);
bool plumb__machine_has_dot_product(void); /* of Arm's Advanced SIMD */
bool plumb__machine_has_avx512(void);      /* F, BW, DQ, VL and VNNI */
bool plumb__machine_has_avx512_bf16(void); /* those and BF16 */
int plumb__machine_cores(void);            /* that this process may use */
int64_t plumb__machine_memory_bytes(void); /* that this process may have; 0 when unknown */
/* What could be allocated now without anything else being pushed out but file caches; -1: unknown. */
int64_t plumb__machine_available_bytes(void);
int64_t plumb__machine_peak_bytes(void); /* most memory this process has had */

/* PLUMB_CPU=portable|avx2|avx512|avx512_bf16|neon forces an instruction level; NULL when unset
 * or empty. */
const char *plumb__machine_level_from_environment(void);

#endif
