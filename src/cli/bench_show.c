/* Showing benchmarks; see bench_show.h. */
#include "cli/bench_show.h"

#include "base/error.h"
#include "cli/bench_svg.h"
#include "cli/bench_text_plot.h"
#include "cli/files.h"
#include "cli/output.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Of the terminal; the same everywhere else, so that what is piped or kept can be compared. */
static int output_width(void) {
    struct winsize size;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return CLI_PLOT_WIDTH;
}

static plumb_status write_picture(const cli_bench_plot *plot, const char *path, plumb_error *err) {
    cli_new_file file;
    plumb_status status = cli_new_file_open(path, &file, err);
    if (status != PLUMB_OK) return status;
    if (!cli_bench_svg(plot, file.stream))
        status = plumb__fail(err, PLUMB_ERROR_IO, path, NULL, -1, strerror(errno),
                             "a file that takes every byte");
    if (status == PLUMB_OK) status = cli_new_file_commit(&file, err);
    cli_new_file_abandon(&file);
    return status;
}

/* `picture` may be NULL. */
static plumb_status show(const char *const *paths, int n_paths, const char *picture,
                         plumb_error *err) {
    cli_bench_table tables[CLI_MOST_PLOT_FILES] = {0};
    cli_bench_plot plot = {0};
    plumb_status status = PLUMB_OK;
    for (int i = 0; i < n_paths && status == PLUMB_OK; i++)
        status = cli_bench_table_read(paths[i], &tables[i], err);
    if (status == PLUMB_OK) status = cli_bench_plot_make(tables, n_paths, &plot, err);
    if (status == PLUMB_OK && picture != NULL) status = write_picture(&plot, picture, err);
    if (status == PLUMB_OK) cli_bench_text_plot(&plot, output_width());
    cli_bench_plot_free(&plot);
    for (int i = 0; i < CLI_MOST_PLOT_FILES; i++) cli_bench_table_free(&tables[i]);
    return status;
}

plumb_status cli_bench_plot_text(const char *const *paths, int n_paths, plumb_error *err) {
    return show(paths, n_paths, NULL, err);
}

int cli_bench_show(const cli_options *options) {
    if (options->n_arguments < 1 || options->n_arguments > CLI_MOST_PLOT_FILES) {
        cli_complain(options, "--plot takes 1 to %d CSV files, found %d", CLI_MOST_PLOT_FILES,
                     options->n_arguments);
        return CLI_USAGE;
    }
    /* Without its own value --plot would take the first CSV file for it, and replace that. */
    size_t size = strlen(options->plot);
    if (size < 5 || strcmp(options->plot + size - 4, ".svg") != 0) {
        cli_complain(options, "--plot: found '%s', expected a name that ends in .svg",
                     options->plot);
        return CLI_USAGE;
    }
    plumb_error err;
    plumb_status status = cli_new_file_check(options->plot, &err);
    for (int i = 0; i < options->n_arguments && status == PLUMB_OK; i++)
        status = cli_new_file_check_input(options->plot, options->arguments[i], &err);
    if (status == PLUMB_OK)
        status = show(options->arguments, options->n_arguments, options->plot, &err);
    return status == PLUMB_OK ? CLI_OK : cli_report(options, &err);
}
