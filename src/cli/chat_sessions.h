/* What a chat keeps beyond a run: files of /save and /load, and the session store of --session-dir. */
#ifndef PLUMB_CLI_CHAT_SESSIONS_H
#define PLUMB_CLI_CHAT_SESSIONS_H

#include "cli/chat_turn.h"

/* Whether the options make sense together; says what does not. */
bool cli_sessions_check(const cli_options *options);
/* Opens the store that the options ask for, if they do.  Reports a failure itself; an exit status. */
int cli_sessions_open(cli_chat *chat);
void cli_sessions_close(cli_chat *chat);

/* Before a turn: a longer beginning of the prompt than the session's, if the store has one. */
void cli_sessions_recall(cli_chat *chat, const plumb_tokens *prompt);
/* After a turn. */
void cli_sessions_keep(cli_chat *chat);
/* Entries, bytes, and what was written, on standard error. */
void cli_sessions_tell(cli_chat *chat);

/* Both report failures and success themselves.  What load refuses changes nothing. */
int cli_chat_save(cli_chat *chat, const char *path);
int cli_chat_load(cli_chat *chat, const char *path);

#endif
