/* One turn of a chat: a user's message in, a streamed answer out, both kept. */
#ifndef PLUMB_CLI_CHAT_TURN_H
#define PLUMB_CLI_CHAT_TURN_H

#include "cli/conversation.h"
#include "cli/runtime.h"

typedef struct cli_chat {
    cli_runtime runtime;
    cli_conversation *conversation;
    int think_level;     /* 0: chat mode */
    bool terminal, dim;  /* of standard output: thinking is shown on terminals only */
    cli_generation last; /* the latest answer */
    int64_t n_turns;
    bool taken_back; /* the session may hold what was said and is no part of the conversation any more */
    plumb_store *store; /* NULL without --session-dir */
    plumb_store_decision kept; /* the last one that was news */
    plumb_logit_bias *loaded_bias; /* what the sampling of a loaded snapshot points at; owned */
} cli_chat;

/* How the turns so far are encoded, with the header of the next answer; appended to `tokens`. */
PLUMB_MUST_CHECK plumb_status cli_chat_encode(const cli_chat *chat, plumb_tokens *tokens, plumb_error *err);

/* Streams the answer to standard output and its speed to standard error; reports failures itself.
 * CLI_OK, CLI_FAILED (the message is forgotten, the conversation goes on) or CLI_INTERRUPTED (what
 * was answered so far is kept). */
int cli_chat_turn(cli_chat *chat, const char *message, size_t size);

#endif
