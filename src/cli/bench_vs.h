/* `plumb bench --vs`: this command line against another one. */
#ifndef PLUMB_CLI_BENCH_VS_H
#define PLUMB_CLI_BENCH_VS_H

#include "cli/options.h"

/* Runs both in turns and prints ratios, verdicts and the comparison of bits on standard output.  Reports
 * failures; the exit status: CLI_FAILED also for a regression or, unless they may, for bits that
 * differ. */
int cli_bench_vs(const cli_options *options);

#endif
