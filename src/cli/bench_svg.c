/* Drawing in SVG; see bench_svg.h.
 *
 * There is no background, so that the picture sits on any page: each colour here has a contrast of at
 * least 3 : 1, letters 4 : 1, with white and with nearly black.  Within that the curves' colours lie
 * as far apart as they can, also for the three kinds of colour blindness, and each file has a shape of
 * marks of its own as well.  Letters are monospaced, so that their width is known here. */
#include "cli/bench_svg.h"

#include "base/clean_text.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 960,
    COLUMN = 480,  /* a panel with all around it */
    ROW = 300,
    LEFT = 84,     /* from the panel's edge to the frame: labels */
    RIGHT = 30,
    TOP = 34,      /* the title */
    BOTTOM = 54,   /* labels, and what they count */
    FRAME_WIDTH = COLUMN - LEFT - RIGHT,
    FRAME_HEIGHT = ROW - TOP - BOTTOM,
    MARGIN = 16,
    LEGEND_LINE = 20,
    LETTER_SIZE = 12,
    MOST_Y_TICKS = 7,
    NAME_COLUMNS = 110
};
static const double letter_width = 0.62 * LETTER_SIZE; /* of usual fonts at most */

static const char *const colours[CLI_MOST_PLOT_FILES] = {"#007fbf", "#e67300", "#a200f2",
                                                         "#994c26", "#a69085", "#5c6073"};

static const char *const titles[CLI_PANELS] = {
    [CLI_PANEL_PREFILL] = "prefill, tokens/s",
    [CLI_PANEL_DECODE] = "decode, tokens/s",
    [CLI_PANEL_MEMORY] = "memory: process (line), context (dashes)",
    [CLI_PANEL_HIT_RATE] = "experts found in memory",
};

/* Of marks, around (0, 0). */
static const char *const shapes[CLI_MOST_PLOT_FILES] = {
    "M-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0z", "M-3,-3h6v6h-6z",       "M0,-4l4,7h-8z",
    "M0,-4l4,4l-4,4l-4,-4z",               "M-4,-3h8l-4,7z",       "M-4,-1h3v-3h2v3h3v2h-3v3h-2v-3h-3z",
};

/* ---- Text ---- */

/* What two columns of a terminal wide characters take, is about what they take here. */
static int columns_of(uint32_t character) {
    return character >= 0x1100 ? 2 : 1;
}

/* Leaves the end of a path that is too long: there the files' names differ. */
static const char *end_of(const char *text, int most) {
    int columns = 0;
    const char *begin = text + strlen(text);
    while (begin > text) {
        const char *before = begin - 1;
        while (before > text && ((unsigned char)*before & 0xC0) == 0x80) before--;
        size_t n;
        columns += columns_of(plumb__utf8_read(before, &n));
        if (columns > most) break;
        begin = before;
    }
    return begin;
}

static void put_escaped(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc(*text, out);
        }
    }
}

/* U+FFFE and U+FFFF are no characters of XML, though UTF-8 can write them. */
static void replace_noncharacters(char *text) {
    for (char *at = text; (at = strstr(at, "\xEF\xBF")) != NULL; at += 3)
        if ((unsigned char)at[2] >= 0xBE) at[2] = (char)0xBD;
}

static void put_name(FILE *out, const char *path) {
    size_t size = 3 * strlen(path) + 1;
    char *name = malloc(size);
    if (name == NULL) return;
    plumb__clean_text(path, PLUMB_UTF8_REPLACEMENT, false, name, size);
    replace_noncharacters(name);
    const char *shown = end_of(name, NAME_COLUMNS);
    if (shown != name) fputs("...", out);
    put_escaped(out, shown);
    free(name);
}

static void put_text(FILE *out, double x, double y, const char *anchor, const char *text) {
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    put_escaped(out, text);
    fputs("</text>\n", out);
}

static void put_line(FILE *out, double x1, double y1, double x2, double y2) {
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x1, y1, x2, y2);
}

/* ---- A panel ---- */

typedef struct drawing {
    FILE *out;
    const cli_bench_plot *plot;
    cli_axis x, y;
    double left, top; /* of the frame */
} drawing;

static double x_of(const drawing *d, double value) {
    return d->left + FRAME_WIDTH * cli_axis_place(&d->x, value);
}

static double y_of(const drawing *d, double value) {
    return d->top + FRAME_HEIGHT * (1 - cli_axis_place(&d->y, value));
}

static void draw_axes(const drawing *d) {
    double bottom = d->top + FRAME_HEIGHT, right = d->left + FRAME_WIDTH;
    fputs("<g stroke=\"#808080\" stroke-opacity=\"0.3\">\n", d->out);
    for (int i = 0; i < d->y.n_ticks; i++)
        put_line(d->out, d->left, y_of(d, d->y.ticks[i].value), right,
                 y_of(d, d->y.ticks[i].value));
    for (int i = 0; i < d->x.n_ticks; i++)
        put_line(d->out, x_of(d, d->x.ticks[i].value), d->top, x_of(d, d->x.ticks[i].value),
                 bottom);
    fputs("</g>\n<g stroke=\"#808080\">\n", d->out);
    put_line(d->out, d->left, d->top, d->left, bottom);
    put_line(d->out, d->left, bottom, right, bottom);
    fputs("</g>\n", d->out);
    for (int i = 0; i < d->y.n_ticks; i++)
        put_text(d->out, d->left - 8, y_of(d, d->y.ticks[i].value) + 4, "end",
                 d->y.ticks[i].label);
    for (int i = 0; i < d->x.n_ticks; i++)
        put_text(d->out, x_of(d, d->x.ticks[i].value), bottom + 18, "middle",
                 d->x.ticks[i].label);
    put_text(d->out, d->left + FRAME_WIDTH / 2.0, bottom + 38, "middle",
             "context, tokens (K = 1024)");
}

static void draw_curve(const drawing *d, const cli_bench_curve *curve, int file, bool second) {
    if (curve->n_points == 0) return;
    fprintf(d->out,
            "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-linejoin=\"round\"%s "
            "points=\"",
            colours[file], second ? " stroke-dasharray=\"6 4\"" : "");
    for (int64_t i = 0; i < curve->n_medians; i++)
        fprintf(d->out, "%s%.1f,%.1f", i > 0 ? " " : "", x_of(d, curve->medians[i].x),
                y_of(d, curve->medians[i].y));
    fputs("\"/>\n", d->out);
    for (int64_t i = 0; i < curve->n_points; i++)
        fprintf(d->out, "<use href=\"#mark%d\" x=\"%.1f\" y=\"%.1f\"/>\n", file,
                x_of(d, curve->points[i].x), y_of(d, curve->points[i].y));
}

static void draw_panel(FILE *out, const cli_bench_plot *plot, cli_bench_panel_kind kind, double left,
                       double top) {
    const cli_bench_panel *panel = &plot->panels[kind];
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" font-weight=\"bold\">%s</text>\n", left + MARGIN,
            top + TOP - 16, titles[kind]);
    if (panel->n_points == 0) {
        put_text(out, left + MARGIN, top + TOP + 12, "start", "not in these files");
        return;
    }
    drawing d = {.out = out,
                 .plot = plot,
                 .x = cli_axis_context(plot->x_low, plot->x_high, FRAME_WIDTH / letter_width),
                 .y = cli_bench_panel_axis(plot, kind, MOST_Y_TICKS),
                 .left = left + LEFT,
                 .top = top + TOP};
    draw_axes(&d);
    for (int c = panel->n_curves - 1; c >= 0; c--)
        for (int f = 0; f < plot->n_files; f++) draw_curve(&d, &panel->curves[c][f], f, c > 0);
}

/* ---- The picture ---- */

static void draw_legend(FILE *out, const cli_bench_plot *plot) {
    for (int f = 0; f < plot->n_files; f++) {
        double y = MARGIN + LEGEND_LINE * (f + 0.5);
        fprintf(out,
                "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\" "
                "stroke-width=\"2\"/>\n",
                MARGIN, y, MARGIN + 32, y, colours[f]);
        fprintf(out, "<use href=\"#mark%d\" x=\"%d\" y=\"%.1f\"/>\n", f, MARGIN + 16, y);
        fprintf(out, "<text x=\"%d\" y=\"%.1f\">", MARGIN + 44, y + 4);
        put_name(out, plot->tables[f].path);
        fputs("</text>\n", out);
    }
}

bool cli_bench_svg(const cli_bench_plot *plot, FILE *out) {
    int legend = 2 * MARGIN + LEGEND_LINE * plot->n_files, height = legend + 2 * ROW;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"Menlo, Consolas, 'DejaVu Sans Mono', monospace\" "
            "font-size=\"%d\" fill=\"#787878\">\n"
            "<title>plumb bench: speed over the length of the context</title>\n<defs>\n",
            WIDTH, height, WIDTH, height, LETTER_SIZE);
    for (int f = 0; f < plot->n_files; f++)
        fprintf(out, "<path id=\"mark%d\" fill=\"%s\" d=\"%s\"/>\n", f, colours[f], shapes[f]);
    fputs("</defs>\n", out);
    draw_legend(out, plot);
    for (cli_bench_panel_kind k = 0; k < CLI_PANELS; k++)
        draw_panel(out, plot, k, k % 2 * (double)COLUMN, legend + k / 2 * (double)ROW);
    fputs("</svg>\n", out);
    return fflush(out) == 0 && ferror(out) == 0;
}
