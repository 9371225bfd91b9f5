/* The sequence of tokens that a benchmark walks over. */
#ifndef PLUMB_CLI_BENCH_TOKENS_H
#define PLUMB_CLI_BENCH_TOKENS_H

#include "cli/runtime.h"

/* Of --prompt-file or --tokens-file, all of it; or else `wanted` made-up ones, and says so unless
 * --quiet.  `tokens` is empty before and the caller's to free, also after a failure. */
PLUMB_MUST_CHECK plumb_status cli_bench_tokens(const cli_runtime *runtime, int64_t wanted,
                                               plumb_tokens *tokens, plumb_error *err);

#endif
