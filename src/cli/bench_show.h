/* `plumb bench --plot`: files that benchmarks wrote, as a picture and in the terminal. */
#ifndef PLUMB_CLI_BENCH_SHOW_H
#define PLUMB_CLI_BENCH_SHOW_H

#include "cli/options.h"

/* Draws options->arguments into options->plot, written whole or not at all, and in characters on
 * standard output.  No model is opened.  Reports failures; the exit status. */
int cli_bench_show(const cli_options *options);

/* The characters alone: what a benchmark that has just ended shows of its own CSV files. */
PLUMB_MUST_CHECK plumb_status cli_bench_plot_text(const char *const *paths, int n_paths,
                                                  plumb_error *err);

#endif
