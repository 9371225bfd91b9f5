#include "cli/progress.h"

#include "cli/interrupt.h"

#include <stdio.h>
#include <unistd.h>

cli_progress cli_progress_begin(const cli_options *options) {
    return (cli_progress){.wanted = !options->quiet && isatty(STDERR_FILENO)};
}

/* "1:02:03", or what of it there is. */
static void print_time(double seconds) {
    long long s = (long long)(seconds + 0.5);
    if (s >= 3600) fprintf(stderr, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else fprintf(stderr, "%lld:%02lld", s / 60, s % 60);
}

int cli_progress_show(void *user, const plumb_progress *p) {
    cli_progress *progress = user;
    if (progress->wanted && p->total > 0) {
        double rate = p->seconds > 0 ? (double)p->done / p->seconds : 0;
        fprintf(stderr, "\r\033[K%s: %.2f of %.2f GB (%d %%), %.2f GB/s, ", p->doing,
                (double)p->done / 1e9, (double)p->total / 1e9,
                (int)(100.0 * (double)p->done / (double)p->total), rate / 1e9);
        if (rate > 0) print_time((double)(p->total - p->done) / rate);
        else fputs("?", stderr);
        fputs(" left", stderr);
        fflush(stderr);
        progress->shown = true;
    }
    return cli_interrupted();
}

void cli_progress_end(cli_progress *progress) {
    if (progress->shown) fprintf(stderr, "\r\033[K");
    progress->shown = false;
}
