/* A conversation as the JSON array of message objects that plumb_chat_encode takes. */
#ifndef PLUMB_CLI_CONVERSATION_H
#define PLUMB_CLI_CONVERSATION_H

#include "plumb.h"

typedef struct json_t cli_conversation;

/* Only the system message (none if NULL).  NULL result: no memory or not UTF-8, see `err`. */
cli_conversation *cli_conversation_create(const char *system, plumb_error *err);
void cli_conversation_destroy(cli_conversation *conversation);

/* Appends a message; `content` must be UTF-8. */
PLUMB_MUST_CHECK plumb_status cli_conversation_add(cli_conversation *conversation, const char *role,
                                                   const char *content, size_t size,
                                                   plumb_error *err);
void cli_conversation_drop_last(cli_conversation *conversation);

/* One that changes apart from `conversation`; NULL: no memory. */
cli_conversation *cli_conversation_copy(const cli_conversation *conversation);
size_t cli_conversation_count(const cli_conversation *conversation);
/* Message i, 0 <= i < count; its parts are the conversation's. */
typedef struct cli_chat_message {
    const char *role, *content; /* content: `size` bytes of UTF-8 */
    size_t size;
} cli_chat_message;
cli_chat_message cli_conversation_message(const cli_conversation *conversation, size_t i);

/* Appends the token ids of the whole conversation and the header of the next answer. */
PLUMB_MUST_CHECK plumb_status cli_conversation_encode(const cli_conversation *conversation,
                                                      const plumb_text *text,
                                                      const plumb_chat_options *options,
                                                      plumb_tokens *tokens, plumb_error *err);

#endif
