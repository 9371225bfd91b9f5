/* A plot of benchmarks in characters, for a terminal or a report: ASCII only. */
#ifndef PLUMB_CLI_BENCH_TEXT_PLOT_H
#define PLUMB_CLI_BENCH_TEXT_PLOT_H

#include "cli/bench_plot.h"

enum { CLI_PLOT_LEAST_WIDTH = 40, CLI_PLOT_MOST_WIDTH = 160, CLI_PLOT_WIDTH = 80 };

/* Prints every panel that has points to standard output, in lines of at most `width` characters, cut
 * to the limits above; the names of files may be longer. */
void cli_bench_text_plot(const cli_bench_plot *plot, int width);

#endif
