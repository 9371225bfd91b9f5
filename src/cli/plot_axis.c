/* Axes; see plot_axis.h. */
#include "cli/plot_axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double wide_context = 8, wide_bytes = 20; /* high over low */

/* ---- Labels ---- */

typedef void (*label_fn)(double value, char label[CLI_TICK_LABEL_SIZE]);

static void label_number(double value, char label[CLI_TICK_LABEL_SIZE]) {
    snprintf(label, CLI_TICK_LABEL_SIZE, "%.7g", value);
}

static void label_share(double value, char label[CLI_TICK_LABEL_SIZE]) {
    snprintf(label, CLI_TICK_LABEL_SIZE, "%.7g %%", 100 * value);
}

static void label_bytes(double value, char label[CLI_TICK_LABEL_SIZE]) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t unit = 0;
    while (value >= 1000 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1000;
        unit++;
    }
    snprintf(label, CLI_TICK_LABEL_SIZE, value > 0 ? "%.4g %s" : "%.4g", value, units[unit]);
}

/* Of contexts that lie close together, in full: 5001 rather than 4.883789K. */
static void label_tokens(double value, char label[CLI_TICK_LABEL_SIZE]) {
    snprintf(label, CLI_TICK_LABEL_SIZE, "%.10g", value);
}

static void label_context(double value, char label[CLI_TICK_LABEL_SIZE]) {
    static const char *const units[] = {"", "K", "M", "G", "T"};
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(label, CLI_TICK_LABEL_SIZE, "%.7g%s", value, units[unit]);
}

/* ---- Ticks ---- */

static void add_tick(cli_axis *axis, double value, label_fn label) {
    if (axis->n_ticks == CLI_MOST_TICKS) return;
    cli_tick *tick = &axis->ticks[axis->n_ticks++];
    tick->value = value;
    label(value, tick->label);
}

/* 1, 2 or 5 times a power of ten, not less than `least`. */
static double round_step(double least) {
    double power = pow(10, floor(log10(least)));
    static const double times[] = {1, 2, 5};
    for (int i = 0; i < 3; i++)
        if (times[i] * power >= least * (1 - 1e-9)) return times[i] * power;
    return 10 * power;
}

/* Multiples of `step` within the axis. */
static void add_multiples(cli_axis *axis, double step, label_fn label) {
    double slack = 1e-9 * (axis->high - axis->low); /* for rounding */
    double first = ceil((axis->low - slack) / step) + 0 /* not -0 */;
    double last = floor((axis->high + slack) / step);
    for (double i = first; i <= last && axis->n_ticks < CLI_MOST_TICKS; i++)
        add_tick(axis, i * step, label);
}

static void keep_every_second(cli_axis *axis) {
    int kept = 0;
    for (int i = 0; i < axis->n_ticks; i += 2) axis->ticks[kept++] = axis->ticks[i];
    axis->n_ticks = kept;
}

static bool labels_touch(const cli_axis *axis, double columns) {
    for (int i = 1; i < axis->n_ticks; i++) {
        const cli_tick *a = &axis->ticks[i - 1], *b = &axis->ticks[i];
        double apart = cli_axis_place(axis, b->value) - cli_axis_place(axis, a->value);
        double needed = (double)(strlen(a->label) + strlen(b->label)) / 2 + 1;
        if (apart * columns < needed) return true;
    }
    return false;
}

/* ---- Axes ---- */

cli_axis cli_axis_context(double low, double high, double columns) {
    cli_axis axis = {.low = low, .high = high};
    if (!(low < high)) {
        axis.low = low > 0 ? low / 2 : 0;
        axis.high = low > 0 ? low * 1.5 : 1;
    }
    axis.logarithmic = low > 0 && high / low >= wide_context;
    if (axis.logarithmic) {
        for (double i = ceil(log2(low)); exp2(i) <= high; i++)
            add_tick(&axis, exp2(i), label_context);
    } else {
        double step = exp2(ceil(log2((axis.high - axis.low) / 6)));
        add_multiples(&axis, step > 1 ? step : 1, step < 256 ? label_tokens : label_context);
    }
    while (labels_touch(&axis, columns)) keep_every_second(&axis);
    return axis;
}

static cli_axis from_zero(double high, int most, label_fn label) {
    if (!(high > 0)) high = 1;
    double step = round_step(high / (most > 2 ? most - 1 : 1));
    cli_axis axis = {.low = 0, .high = step * ceil(high / step - 1e-9)};
    add_multiples(&axis, step, label);
    return axis;
}

cli_axis cli_axis_rate(double high, int most) {
    return from_zero(high, most, label_number);
}

cli_axis cli_axis_share(double high, int most) {
    return from_zero(high > 1 ? high : 1, most, label_share);
}

cli_axis cli_axis_bytes(double low, double high, int most) {
    if (!(low > 0) || high / low < wide_bytes) return from_zero(high, most, label_bytes);
    double first = floor(log10(low) + 1e-9), last = ceil(log10(high) - 1e-9);
    cli_axis axis = {.low = pow(10, first), .high = pow(10, last), .logarithmic = true};
    for (double i = first; i <= last; i++) add_tick(&axis, pow(10, i), label_bytes);
    while (axis.n_ticks > most) keep_every_second(&axis);
    return axis;
}

double cli_axis_place(const cli_axis *axis, double value) {
    if (axis->logarithmic) /* the quotient of the ends may be above what a double holds */
        return (log(value) - log(axis->low)) / (log(axis->high) - log(axis->low));
    return (value - axis->low) / (axis->high - axis->low);
}
