/* What a plot of benchmarks shows, before anything is drawn: panels, and in each the curves of every
 * file.  Repeats are points; the curve goes through their medians. */
#ifndef PLUMB_CLI_BENCH_PLOT_H
#define PLUMB_CLI_BENCH_PLOT_H

#include "cli/bench_table.h"
#include "cli/plot_axis.h"

enum { CLI_MOST_PLOT_FILES = 6, CLI_PANEL_CURVES = 2 };

typedef struct cli_point {
    double x, y; /* tokens of context, and a rate, a share or bytes */
} cli_point;

/* Both in ascending order of x; of one x in that of y. */
typedef struct cli_bench_curve {
    cli_point *points, *medians;
    int64_t n_points, n_medians;
} cli_bench_curve;

typedef enum cli_bench_panel_kind {
    CLI_PANEL_PREFILL,
    CLI_PANEL_DECODE,
    CLI_PANEL_MEMORY, /* two curves a file: of the process, of the session's state */
    CLI_PANEL_HIT_RATE,
    CLI_PANELS
} cli_bench_panel_kind;

typedef struct cli_bench_panel {
    cli_bench_curve curves[CLI_PANEL_CURVES][CLI_MOST_PLOT_FILES];
    int n_curves;     /* of one file */
    int64_t n_points; /* of all */
    double low, high; /* of all points; only if there are some */
} cli_bench_panel;

typedef struct cli_bench_plot {
    const cli_bench_table *tables; /* borrowed */
    int n_files;
    cli_bench_panel panels[CLI_PANELS];
    double x_low, x_high;
} cli_bench_plot;

/* 1 to CLI_MOST_PLOT_FILES tables.  Give the plot to cli_bench_plot_free in any case. */
PLUMB_MUST_CHECK plumb_status cli_bench_plot_make(const cli_bench_table *tables, int n_files,
                                                  cli_bench_plot *plot, plumb_error *err);
void cli_bench_plot_free(cli_bench_plot *plot);

/* The vertical axis of a panel that has points. */
cli_axis cli_bench_panel_axis(const cli_bench_plot *plot, cli_bench_panel_kind kind, int most_ticks);

#endif
