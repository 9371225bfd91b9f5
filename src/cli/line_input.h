/* Lines that people type (libedit: editing, history) or that a pipe delivers. */
#ifndef PLUMB_CLI_LINE_INPUT_H
#define PLUMB_CLI_LINE_INPUT_H

#include "plumb.h"

enum { CLI_MOST_LINE_BYTES = 1 << 24 };

typedef struct cli_line_input cli_line_input;

typedef enum cli_line_status {
    CLI_LINE_READ,
    CLI_LINE_END,         /* end of input, or Ctrl-D on an empty line */
    CLI_LINE_INTERRUPTED, /* Ctrl-C */
    CLI_LINE_FAILED       /* a read error, no memory, or more than CLI_MOST_LINE_BYTES */
} cli_line_status;

/* `terminal`: standard input is one.  NULL: no memory. */
cli_line_input *cli_line_input_open(bool terminal);
void cli_line_input_close(cli_line_input *input);

/* One line without its line end; owned by `input`, valid until the next call.  `prompt` is shown
 * on a terminal only.  Fills *err when it returns CLI_LINE_FAILED. */
cli_line_status cli_line_input_read(cli_line_input *input, const char *prompt, const char **line,
                                    size_t *size, plumb_error *err);
/* Makes `line` the newest entry of the history (on a terminal). */
void cli_line_input_remember(cli_line_input *input, const char *line);

#endif
