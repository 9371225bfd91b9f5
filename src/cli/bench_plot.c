/* Panels and curves; see bench_plot.h. */
#include "cli/bench_plot.h"

#include "base/error.h"

#include <stdlib.h>

/* A curve's value at a row; -1 where there is none. */
static double value_at(const cli_bench_record *record, cli_bench_panel_kind kind, int curve) {
    static const cli_bench_column memory[] = {CLI_BENCH_PEAK_RSS_BYTES, CLI_BENCH_KVCACHE_BYTES};
    double bytes;
    switch (kind) {
    case CLI_PANEL_PREFILL: return record->value[CLI_BENCH_PREFILL_TPS];
    case CLI_PANEL_DECODE: return cli_bench_decode_tps(record);
    case CLI_PANEL_HIT_RATE: return record->value[CLI_BENCH_HIT_RATE];
    case CLI_PANEL_MEMORY:
        bytes = record->value[memory[curve]];
        return bytes > 0 ? bytes : -1; /* nothing runs in no memory: it was not measured */
    case CLI_PANELS: break;
    }
    return -1;
}

static int by_place(const void *a, const void *b) {
    const cli_point *p = a, *q = b;
    if (p->x != q->x) return p->x < q->x ? -1 : 1;
    return (p->y > q->y) - (p->y < q->y);
}

/* Points of one x lie together and in order: the middle one, or the mean of the two there. */
static void find_medians(cli_bench_curve *curve) {
    for (int64_t begin = 0, end; begin < curve->n_points; begin = end) {
        const cli_point *p = curve->points;
        for (end = begin + 1; end < curve->n_points && p[end].x == p[begin].x;) end++;
        int64_t below = (begin + end - 1) / 2, above = (begin + end) / 2;
        curve->medians[curve->n_medians++] =
            (cli_point){.x = p[begin].x, .y = (p[below].y + p[above].y) / 2};
    }
}

static plumb_status make_curve(const cli_bench_table *table, cli_bench_panel_kind kind, int which,
                               cli_bench_panel *panel, cli_bench_curve *curve, plumb_error *err) {
    size_t bytes = (size_t)table->n_records * sizeof *curve->points;
    curve->points = malloc(bytes);
    curve->medians = malloc(bytes);
    if (curve->points == NULL || curve->medians == NULL)
        return plumb__fail_memory(err, "points of a plot", bytes);
    for (int64_t i = 0; i < table->n_records; i++) {
        const cli_bench_record *record = &table->records[i];
        double y = value_at(record, kind, which);
        if (y < 0) continue;
        if (panel->n_points == 0 || y < panel->low) panel->low = y;
        if (panel->n_points == 0 || y > panel->high) panel->high = y;
        panel->n_points++;
        curve->points[curve->n_points++] =
            (cli_point){.x = record->value[CLI_BENCH_CTX_TOKENS], .y = y};
    }
    qsort(curve->points, (size_t)curve->n_points, sizeof *curve->points, by_place);
    find_medians(curve);
    return PLUMB_OK;
}

static void find_contexts(cli_bench_plot *plot) {
    plot->x_low = plot->x_high = plot->tables[0].records[0].value[CLI_BENCH_CTX_TOKENS];
    for (int f = 0; f < plot->n_files; f++) {
        for (int64_t i = 0; i < plot->tables[f].n_records; i++) {
            double x = plot->tables[f].records[i].value[CLI_BENCH_CTX_TOKENS];
            if (x < plot->x_low) plot->x_low = x;
            if (x > plot->x_high) plot->x_high = x;
        }
    }
}

plumb_status cli_bench_plot_make(const cli_bench_table *tables, int n_files, cli_bench_plot *plot,
                                 plumb_error *err) {
    *plot = (cli_bench_plot){.tables = tables, .n_files = n_files};
    find_contexts(plot);
    for (cli_bench_panel_kind k = 0; k < CLI_PANELS; k++) {
        cli_bench_panel *panel = &plot->panels[k];
        panel->n_curves = k == CLI_PANEL_MEMORY ? 2 : 1;
        for (int c = 0; c < panel->n_curves; c++) {
            for (int f = 0; f < n_files; f++) {
                plumb_status status =
                    make_curve(&tables[f], k, c, panel, &panel->curves[c][f], err);
                if (status != PLUMB_OK) return status;
            }
        }
    }
    return PLUMB_OK;
}

void cli_bench_plot_free(cli_bench_plot *plot) {
    for (int k = 0; k < CLI_PANELS; k++) {
        for (int c = 0; c < CLI_PANEL_CURVES; c++) {
            for (int f = 0; f < CLI_MOST_PLOT_FILES; f++) {
                free(plot->panels[k].curves[c][f].points);
                free(plot->panels[k].curves[c][f].medians);
            }
        }
    }
    *plot = (cli_bench_plot){0};
}

cli_axis cli_bench_panel_axis(const cli_bench_plot *plot, cli_bench_panel_kind kind,
                              int most_ticks) {
    const cli_bench_panel *panel = &plot->panels[kind];
    if (kind == CLI_PANEL_MEMORY) return cli_axis_bytes(panel->low, panel->high, most_ticks);
    if (kind == CLI_PANEL_HIT_RATE) return cli_axis_share(panel->high, most_ticks);
    return cli_axis_rate(panel->high, most_ticks);
}
