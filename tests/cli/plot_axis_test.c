/* Round numbers along the axes of plots. */
#include "t.h"

#include "cli/plot_axis.h"

#include <math.h>

/* Labels joined by commas. */
static const char *labels(const cli_axis *axis, char *text, size_t size) {
    text[0] = '\0';
    for (int i = 0; i < axis->n_ticks; i++) {
        size_t at = strlen(text);
        snprintf(text + at, size - at, "%s%s", i > 0 ? "," : "", axis->ticks[i].label);
    }
    return text;
}

static void contexts(void) {
    static const struct {
        double low, high, columns;
        const char *labels;
    } rows[] = {
        {2048, 131072, 60, "2K,4K,8K,16K,32K,64K,128K"},
        {2048, 131072, 24, "2K,8K,32K,128K"},
        {3000, 65000, 60, "4K,8K,16K,32K"},
        {128, 1024, 60, "128,256,512,1K"},
        {524288, 4194304, 60, "512K,1M,2M,4M"},
        {2048, 4096, 60, "2K,2.5K,3K,3.5K,4K"},
        {5000, 5003, 60, "5000,5001,5002,5003"},
        {1000, 1100, 60, "1024,1056,1088"},
        {2048, 2048, 60, "1K,1.5K,2K,2.5K,3K"},
        {1, 4, 60, "1,2,3,4"},
        {0, 64, 60, "0,16,32,48,64"},
        {0, 0, 60, "0,1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        cli_axis axis = cli_axis_context(rows[i].low, rows[i].high, rows[i].columns);
        T_CHECK(strcmp(labels(&axis, text, sizeof text), rows[i].labels) == 0, "row %zu: %s", i,
                text);
    }
}

static void amounts(void) {
    static const struct {
        char kind;
        double low, high;
        int most;
        const char *labels;
    } rows[] = {
        {'r', 0, 347, 7, "0,100,200,300,400"},
        {'r', 0, 31.4, 7, "0,10,20,30,40"},
        {'r', 0, 0.29, 7, "0,0.05,0.1,0.15,0.2,0.25,0.3"},
        {'r', 0, 10, 5, "0,5,10"},
        {'r', 0, 0, 5, "0,0.5,1"},
        {'r', 0, 9, 2, "0,10"},
        {'s', 0, 0.4, 7, "0 %,20 %,40 %,60 %,80 %,100 %"},
        {'s', 0, 0.4, 5, "0 %,50 %,100 %"},
        {'b', 4e6, 7e6, 7, "0,2 MB,4 MB,6 MB,8 MB"},
        {'b', 1.2e9, 1.4e9, 4, "0,500 MB,1 GB,1.5 GB"},
        {'b', 4e6, 5e10, 7, "1 MB,10 MB,100 MB,1 GB,10 GB,100 GB"},
        {'b', 4e6, 5e10, 5, "1 MB,100 MB,10 GB"},
        {'b', 100, 3000, 7, "100 B,1 kB,10 kB"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        cli_axis axis = rows[i].kind == 'r'   ? cli_axis_rate(rows[i].high, rows[i].most)
                        : rows[i].kind == 's' ? cli_axis_share(rows[i].high, rows[i].most)
                                              : cli_axis_bytes(rows[i].low, rows[i].high,
                                                               rows[i].most);
        T_CHECK(strcmp(labels(&axis, text, sizeof text), rows[i].labels) == 0, "row %zu: %s", i,
                text);
        T_CHECK(axis.n_ticks <= rows[i].most && axis.high >= rows[i].high, "row %zu", i);
    }
}

static void places(void) {
    cli_axis wide = cli_axis_context(1024, 16384, 60), flat = cli_axis_rate(200, 7);
    T_CHECK(fabs(cli_axis_place(&wide, 4096) - 0.5) < 1e-12, "middle");
    T_CHECK(fabs(cli_axis_place(&wide, 1024)) < 1e-12, "low");
    T_CHECK(fabs(cli_axis_place(&wide, 16384) - 1) < 1e-12, "high");
    T_CHECK(fabs(cli_axis_place(&flat, 50) - 0.25) < 1e-12, "quarter");
}

/* Whatever numbers a file holds: every place is one, and labels do not meet. */
static void hostile(void) {
    static const double ends[] = {0, 1e-9, 2e-9, 0.3, 1, 3, 1000, 1e9, 1e18, 1e18 + 128};
    enum { N = sizeof ends / sizeof ends[0] };
    for (int i = 0; i < N; i++) {
        for (int j = i; j < N; j++) {
            cli_axis axes[] = {cli_axis_context(ends[i], ends[j], 40), cli_axis_rate(ends[j], 5),
                               cli_axis_share(ends[j], 5), cli_axis_bytes(ends[i], ends[j], 5)};
            for (int k = 0; k < 4; k++) {
                const cli_axis *a = &axes[k];
                T_CHECK(a->low < a->high && a->n_ticks <= CLI_MOST_TICKS, "%g %g axis %d", ends[i],
                        ends[j], k);
                double low = cli_axis_place(a, k == 0 || k == 3 ? ends[i] : 0);
                double high = cli_axis_place(a, ends[j]);
                if (k == 3 && ends[i] <= 0) low = 0; /* no bytes are left out */
                T_CHECK(low >= -1e-6 && low <= 1 + 1e-6 && high >= -1e-6 && high <= 1 + 1e-6,
                        "%g %g axis %d: %g %g", ends[i], ends[j], k, low, high);
            }
        }
    }
}

T_MAIN({"contexts", contexts}, {"amounts", amounts}, {"places", places}, {"hostile", hostile})
