/* Where words go: results to standard output, everything else to standard error.
 *
 * A reader that closes the pipe early is no fault worth a message: the first failed write is
 * remembered, later ones do nothing, and cli_output_finish decides the exit status. */
#ifndef PLUMB_CLI_OUTPUT_H
#define PLUMB_CLI_OUTPUT_H

#include "cli/options.h"

/* To standard output; false once a write has failed. */
bool cli_write(const void *bytes, size_t size);
bool cli_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool cli_output_flush(void);
/* Flushes and turns CLI_OK into CLI_FAILED if standard output could not take everything. */
int cli_output_finish(int status);

/* A number with commas: 510,286,023,000. */
typedef struct cli_digits {
    char text[64];
} cli_digits;
cli_digits cli_grouped(int64_t value);

/* "1 turn", "1,000 turns". */
cli_digits cli_count(int64_t value, const char *one, const char *many);

/* To standard error, with "plumb COMMAND: " ("plumb: " without options) before and a newline after.
 * Always one line that no terminal acts on, whatever the arguments hold. */
void cli_complain(const cli_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints a library error and returns the exit status that it means. */
int cli_report(const cli_options *options, const plumb_error *err);
/* A plumb_log_fn; `user` is the cli_options. */
void cli_log(void *user, plumb_log_level level, const char *line);

#endif
