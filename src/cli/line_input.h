/* Lines that people type (libedit: editing, history, completion) or that a pipe delivers. */
#ifndef PLUMB_CLI_LINE_INPUT_H
#define PLUMB_CLI_LINE_INPUT_H

#include "plumb.h"

enum { CLI_MOST_LINE_BYTES = 1 << 24 };

typedef struct cli_line_input cli_line_input;

typedef enum cli_line_status {
    CLI_LINE_READ,
    CLI_LINE_END,         /* end of input, or Ctrl-D on an empty line */
    CLI_LINE_INTERRUPTED, /* Ctrl-C before anything was typed */
    CLI_LINE_CLEARED,     /* Ctrl-C after that */
    CLI_LINE_FAILED       /* a read error, no memory, or more than CLI_MOST_LINE_BYTES */
} cli_line_status;

/* What Tab may do; free() both. */
typedef struct cli_completion {
    char *insert;  /* to be inserted at the cursor, or NULL */
    char *choices; /* where nothing can be inserted: what there is to choose from, each with a line end, or NULL */
} cli_completion;

/* `begin`: the line up to the cursor.  False where Tab is an ordinary character. */
typedef bool (*cli_completer)(void *user, const char *begin, cli_completion *completion);

typedef struct cli_line_options {
    bool terminal; /* standard input is one; the rest is for terminals only */
    bool color;    /* of the prompt */
    cli_completer complete; /* NULL: none */
    void *user;
} cli_line_options;

/* NULL: no memory, or a terminal that no editor works on. */
cli_line_input *cli_line_input_open(const cli_line_options *options);
void cli_line_input_close(cli_line_input *input);

/* One line without its line end; owned by `input`, valid until the next call.  On a terminal it has line
 * breaks inside where text was pasted that has.  `prompt` is shown on a terminal only.  Fills *err when it
 * returns CLI_LINE_FAILED. */
cli_line_status cli_line_input_read(cli_line_input *input, const char *prompt, const char **line,
                                    size_t *size, plumb_error *err);
/* Makes `line` the newest entry of the history (on a terminal). */
void cli_line_input_remember(cli_line_input *input, const char *line);

#endif
