/* Axes of plots: how far they go, and round numbers along them.  Pure computation, shared by the
 * picture and the text plot. */
#ifndef PLUMB_CLI_PLOT_AXIS_H
#define PLUMB_CLI_PLOT_AXIS_H

#include <stdbool.h>

enum { CLI_MOST_TICKS = 64, CLI_TICK_LABEL_SIZE = 24 };

typedef struct cli_tick {
    double value;
    char label[CLI_TICK_LABEL_SIZE];
} cli_tick;

typedef struct cli_axis {
    double low, high; /* low < high */
    bool logarithmic; /* then low > 0 */
    cli_tick ticks[CLI_MOST_TICKS];
    int n_ticks;
} cli_axis;

/* Tokens of context from low to high, in steps of powers of two (K is 1024); by powers of two where the
 * range is wide.  `columns`: how many characters fit along it; labels keep a character between them. */
cli_axis cli_axis_context(double low, double high, double columns);
/* Upwards from 0 to at least `high`, with at most `most` ticks, so two at the least. */
cli_axis cli_axis_rate(double high, int most);
cli_axis cli_axis_share(double high, int most); /* in per cent, to 100 at the least */
/* From 0; by powers of ten where the values (above 0) lie far apart. */
cli_axis cli_axis_bytes(double low, double high, int most);

/* 0 at the low end, 1 at the high end. */
double cli_axis_place(const cli_axis *axis, double value);

#endif
