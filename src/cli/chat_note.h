/* A conversation as it rides in a snapshot: the note of /save, JSON text.
 *
 *     {"format": "plumb-chat", "version": 1, "think_level": 75, "messages": [...]} */
#ifndef PLUMB_CLI_CHAT_NOTE_H
#define PLUMB_CLI_CHAT_NOTE_H

#include "cli/conversation.h"

typedef struct cli_chat_note {
    cli_conversation *conversation;
    int think_level;
    int64_t n_turns; /* pairs of question and answer */
} cli_chat_note;

/* The text, not NUL-terminated; free() it. */
PLUMB_MUST_CHECK plumb_status cli_chat_note_write(const cli_chat_note *note, char **text,
                                                  size_t *size, plumb_error *err);
/* From anywhere: a file that another program wrote has another note, or none (text NULL).  `path`
 * names it in errors.  The conversation is the caller's. */
PLUMB_MUST_CHECK plumb_status cli_chat_note_read(const void *text, size_t size, const char *path,
                                                 cli_chat_note *note, plumb_error *err);

#endif
