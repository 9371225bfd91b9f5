/* A plot of benchmarks as one SVG picture that stands by itself: no external fonts, styles or
 * programs. */
#ifndef PLUMB_CLI_BENCH_SVG_H
#define PLUMB_CLI_BENCH_SVG_H

#include "cli/bench_plot.h"

#include <stdio.h>

/* False if the stream did not take everything; errno tells why. */
bool cli_bench_svg(const cli_bench_plot *plot, FILE *out);

#endif
