/* The engine's attention with keys of any bf16 value: a packed row is dim bf16 numbers.  The published
 * unit has such keys, which no cache format can hold. */
#ifndef PLUMB_TESTS_ORACLE_ATTENTION_BF16_KEYS_H
#define PLUMB_TESTS_ORACLE_ATTENTION_BF16_KEYS_H

#include "backend/backend.h"

void plumb__attention_bf16_keys(const plumb_attention_args *a, int64_t row, int64_t begin,
                                int64_t end, float *scratch);

#endif
