/* The editor of lines on a terminal: libedit with history, completion, and pasted text taken as it is. */
#ifndef PLUMB_CLI_LINE_EDITOR_H
#define PLUMB_CLI_LINE_EDITOR_H

#include "cli/line_input.h"

typedef struct cli_line_editor cli_line_editor;

/* `fd`: the terminal, for cli_read; borrowed.  NULL: no memory, or a terminal that no editor works on. */
cli_line_editor *cli_line_editor_open(int fd, const cli_line_options *options);
void cli_line_editor_close(cli_line_editor *editor);
/* As cli_line_input_read, with the line end. */
cli_line_status cli_line_editor_read(cli_line_editor *editor, const char *prompt, const char **line,
                                     size_t *size, plumb_error *err);
void cli_line_editor_remember(cli_line_editor *editor, const char *line);

#endif
