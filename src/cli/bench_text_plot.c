/* Drawing with characters; see bench_text_plot.h.
 *
 * File A is drawn with A where it was measured and a in between, file B with B and b; the second curve
 * of file A in a panel with 1 and dots.  Where two files meet stands a star. */
#include "cli/bench_text_plot.h"

#include "base/clean_text.h"
#include "cli/output.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LABELS = 9, HEIGHT = 12, MOST_Y_TICKS = 5, NAME_SIZE = 512 };

static const char *const titles[CLI_PANELS] = {
    [CLI_PANEL_PREFILL] = "prefill, tokens/s",
    [CLI_PANEL_DECODE] = "decode, tokens/s",
    [CLI_PANEL_MEMORY] = "memory: of the process (A), of the context (1)",
    [CLI_PANEL_HIT_RATE] = "experts found in memory",
};

typedef struct canvas {
    char cell[HEIGHT][CLI_PLOT_MOST_WIDTH];
    int width;
    cli_axis x, y;
} canvas;

static char mark_of(int file, int curve, bool measured) {
    if (curve == 0) return (char)((measured ? 'A' : 'a') + file);
    return measured ? (char)('1' + file) : '.';
}

/* The file that a mark stands for, or -1 for none in particular. */
static int file_of(char mark) {
    if (mark >= 'a' && mark < 'a' + CLI_MOST_PLOT_FILES) return mark - 'a';
    if (mark >= 'A' && mark < 'A' + CLI_MOST_PLOT_FILES) return mark - 'A';
    if (mark >= '1' && mark < '1' + CLI_MOST_PLOT_FILES) return mark - '1';
    return -1;
}

static int row_of(double place) {
    return (int)lround((1 - place) * (HEIGHT - 1));
}

static int column_of(const canvas *c, double place) {
    return (int)lround(place * (c->width - 1));
}

static void put_mark(canvas *c, int row, int column, char mark) {
    char *cell = &c->cell[row][column];
    bool other = *cell != ' ' && *cell != '.' && file_of(*cell) != file_of(mark);
    if (mark == '.' && *cell != ' ') return;
    *cell = other ? '*' : mark;
}

/* Straight in the plot, whatever the axes. */
static void draw_between(canvas *c, const cli_point *from, const cli_point *to, char mark) {
    double x = cli_axis_place(&c->x, from->x), y = cli_axis_place(&c->y, from->y);
    double dx = cli_axis_place(&c->x, to->x) - x, dy = cli_axis_place(&c->y, to->y) - y;
    int begin = column_of(c, x), end = column_of(c, x + dx);
    for (int column = begin + 1; column < end; column++) {
        double part = (column - begin) / (double)(end - begin);
        put_mark(c, row_of(y + part * dy), column, mark);
    }
}

static void draw_curves(canvas *c, const cli_bench_panel *panel, int n_files, bool measured) {
    for (int k = 0; k < panel->n_curves; k++) {
        for (int f = 0; f < n_files; f++) {
            const cli_bench_curve *curve = &panel->curves[k][f];
            for (int64_t i = 0; i < curve->n_medians; i++) {
                const cli_point *p = &curve->medians[i];
                if (measured)
                    put_mark(c, row_of(cli_axis_place(&c->y, p->y)),
                             column_of(c, cli_axis_place(&c->x, p->x)), mark_of(f, k, true));
                else if (i > 0)
                    draw_between(c, p - 1, p, mark_of(f, k, false));
            }
        }
    }
}

/* ---- Printing ---- */

static const cli_tick *tick_at(const canvas *c, int row) {
    for (int i = 0; i < c->y.n_ticks; i++)
        if (row_of(cli_axis_place(&c->y, c->y.ticks[i].value)) == row) return &c->y.ticks[i];
    return NULL;
}

static void print_line(char *line) {
    size_t size = strlen(line);
    while (size > 0 && line[size - 1] == ' ') size--;
    line[size] = '\0';
    cli_print("%s\n", line);
}

static void print_row(const canvas *c, int row) {
    char line[LABELS + 2 + CLI_PLOT_MOST_WIDTH + 1];
    const cli_tick *tick = tick_at(c, row);
    snprintf(line, sizeof line, "%*.*s %c%.*s", LABELS, LABELS, tick != NULL ? tick->label : "",
             tick != NULL ? '+' : '|', c->width, c->cell[row]);
    print_line(line);
}

/* The marks of the horizontal axis, and the numbers below them. */
static void print_x_axis(const canvas *c) {
    char marks[LABELS + 2 + CLI_PLOT_MOST_WIDTH + 1], labels[sizeof marks];
    int end = LABELS + 2 + c->width;
    memset(marks, ' ', sizeof marks);
    memset(labels, ' ', sizeof labels);
    memset(marks + LABELS + 1, '-', (size_t)c->width + 1);
    for (int i = 0; i < c->x.n_ticks; i++) {
        const cli_tick *tick = &c->x.ticks[i];
        int at = LABELS + 2 + column_of(c, cli_axis_place(&c->x, tick->value));
        int size = (int)strlen(tick->label), begin = at - size / 2;
        marks[at] = '+';
        if (begin + size > end) begin = end - size;
        /* One that was moved in from the edge may meet its neighbour. */
        if (labels[begin - 1] == ' ' && labels[begin] == ' ')
            memcpy(labels + begin, tick->label, (size_t)size);
    }
    marks[end] = labels[end] = '\0';
    print_line(marks);
    print_line(labels);
}

static void print_panel(const cli_bench_plot *plot, cli_bench_panel_kind kind, int width) {
    const cli_bench_panel *panel = &plot->panels[kind];
    canvas c = {.width = width - LABELS - 2};
    c.x = cli_axis_context(plot->x_low, plot->x_high, c.width);
    c.y = cli_bench_panel_axis(plot, kind, MOST_Y_TICKS);
    memset(c.cell, ' ', sizeof c.cell);
    draw_curves(&c, panel, plot->n_files, false);
    draw_curves(&c, panel, plot->n_files, true);
    cli_print("\n%s\n", titles[kind]);
    for (int row = 0; row < HEIGHT; row++) print_row(&c, row);
    print_x_axis(&c);
}

void cli_bench_text_plot(const cli_bench_plot *plot, int width) {
    if (width < CLI_PLOT_LEAST_WIDTH) width = CLI_PLOT_LEAST_WIDTH;
    if (width > CLI_PLOT_MOST_WIDTH) width = CLI_PLOT_MOST_WIDTH;
    for (int f = 0; f < plot->n_files; f++) {
        char name[NAME_SIZE];
        plumb__clean_text(plot->tables[f].path, "?", false, name, sizeof name);
        cli_print("%c  %s\n", 'A' + f, name);
    }
    for (cli_bench_panel_kind k = 0; k < CLI_PANELS; k++)
        if (plot->panels[k].n_points > 0) print_panel(plot, k, width);
    cli_print("\nacross: tokens of context, K = 1024; medians of repeats\n");
}
