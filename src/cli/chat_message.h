/* Messages put together from lines.
 *
 * A message is a line, with these exceptions: a trailing backslash joins the next one; a line """
 * takes all lines up to the next """ as they are.  Text that was pasted into the editor is one "line"
 * with line breaks inside, and so is a message that comes back from the history. */
#ifndef PLUMB_CLI_CHAT_MESSAGE_H
#define PLUMB_CLI_CHAT_MESSAGE_H

#include "cli/line_input.h"

typedef struct cli_message {
    cli_line_input *input; /* borrowed */
    char *bytes;           /* (capacity) owned; NUL after what was read */
    int64_t filled, capacity;
    /* what the latest read made of them */
    const char *text; /* (size) inside `bytes` */
    int64_t size;
    bool quoted; /* between """: never a command */
} cli_message;

/* The next message; `bytes` is how it was typed.  What is unfinished at the end of input is a message too. */
cli_line_status cli_message_read(cli_message *message, plumb_error *err);
/* The lines up to a line /end or the end of input. */
cli_line_status cli_message_read_pasted(cli_message *message, plumb_error *err);
void cli_message_free(cli_message *message);

#endif
