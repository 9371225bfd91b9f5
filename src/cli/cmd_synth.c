/* plumb synth: writes a synthetic checkpoint, with progress, until Ctrl-C. */
#include "cli/commands.h"

#include "cli/interrupt.h"
#include "cli/output.h"
#include "synth/synth.h"

#include <stdio.h>
#include <unistd.h>

typedef struct meter {
    bool wanted;
    int shown; /* per mille on the terminal, -1: none */
} meter;

static int on_progress(void *user, int64_t done, int64_t total) {
    meter *m = user;
    int part = (int)(1000.0 * (double)done / (double)total);
    if (m->wanted && part != m->shown) {
        fprintf(stderr, "\rwriting %.2f of %.2f GB (%d %%)", (double)done / 1e9,
                (double)total / 1e9, part / 10);
        fflush(stderr);
        m->shown = part;
    }
    return cli_interrupted();
}

int cli_run_synth(const cli_options *options) {
    int variant = plumb__synth_variant_find(options->arguments[0]);
    if (variant < 0) {
        cli_complain(options, "found '%s', expected tiny, deep40, dspark, vision or release",
                     options->arguments[0]);
        return CLI_USAGE;
    }
    bool holes = options->sparse || options->sparse_tables;
    if (variant != PLUMB_SYNTH_RELEASE && (holes || options->layers > 0)) {
        cli_complain(options, "%s is an option of the variant release",
                     options->sparse          ? "--sparse"
                     : options->sparse_tables ? "--sparse-tables"
                                              : "--layers");
        return CLI_USAGE;
    }
    meter m = {.wanted = !options->quiet && isatty(STDERR_FILENO), .shown = -1};
    plumb_synth_options request = {
        .variant = (plumb_synth_variant)variant,
        .folder = options->arguments[1],
        .seed = options->seed,
        .layers = options->layers,
        .payload = options->sparse          ? PLUMB_SYNTH_SPARSE
                   : options->sparse_tables ? PLUMB_SYNTH_SPARSE_TABLES
                                            : PLUMB_SYNTH_FULL,
        .force = options->force,
        .threads = (int)options->threads,
        .progress = on_progress,
        .progress_user = &m,
    };
    plumb_error err = {0};
    plumb_status status = cli_interrupt_catch(&err);
    if (status == PLUMB_OK) status = plumb__synth_write(&request, &err);
    if (m.shown >= 0) fprintf(stderr, "\r\033[K");
    if (status == PLUMB_ERROR_CANCELLED) {
        cli_complain(options, "interrupted; what was written is removed");
        return CLI_INTERRUPTED;
    }
    return status == PLUMB_OK ? CLI_OK : cli_report(options, &err);
}
