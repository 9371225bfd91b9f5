/* A line on the terminal that tells how far long work is, and a question whether to go on. */
#ifndef PLUMB_CLI_PROGRESS_H
#define PLUMB_CLI_PROGRESS_H

#include "cli/options.h"
#include "convert/jobs.h"

typedef struct cli_progress {
    bool wanted;
    bool shown;
} cli_progress;

/* Shows nothing with --quiet or where standard error is no terminal. */
cli_progress cli_progress_begin(const cli_options *options);
/* A plumb_progress_fn; `user` is the cli_progress.  Nonzero after Ctrl-C. */
int cli_progress_show(void *user, const plumb_progress *progress);
/* Takes the line away. */
void cli_progress_end(cli_progress *progress);

#endif
