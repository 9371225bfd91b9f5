/* A conversation as the encoder sees it: messages checked, tool results folded into user messages
 * and put into call order (spec: tokenizer-and-chat.md section 4.1). */
#ifndef PLUMB_TEXT_CHAT_MESSAGES_H
#define PLUMB_TEXT_CHAT_MESSAGES_H

#include "plumb.h"
#include "text/python_json.h"

/* Longest JSON text of one conversation.  Pictures travel inside it, hence the size. */
#define PLUMB__MESSAGES_BYTES_MAX ((size_t)256 << 20)

typedef enum plumb__chat_role {
    PLUMB__ROLE_SYSTEM,
    PLUMB__ROLE_USER, /* also "developer", and what "tool" becomes */
    PLUMB__ROLE_ASSISTANT,
    PLUMB__ROLE_REMINDER,
    PLUMB__ROLE_TOOL /* while reading only */
} plumb__chat_role;

typedef enum plumb__chat_block_kind {
    PLUMB__BLOCK_TEXT,
    PLUMB__BLOCK_IMAGE,
    PLUMB__BLOCK_RESULT,
    PLUMB__BLOCK_UNSUPPORTED
} plumb__chat_block_kind;

/* A part of a user message.  `value` is, by kind: the text (NULL: empty); nothing; the result's
 * content, a str or a list of blocks (NULL: empty); the name of the unknown type. */
typedef struct plumb__chat_block {
    plumb__chat_block_kind kind;
    const plumb__python_value *value;
    const plumb__python_value *call_id; /* of a result; may be NULL */
} plumb__chat_block;

/* Absent and null fields are NULL. */
typedef struct plumb__chat_message {
    plumb__chat_role role;
    const plumb__python_value *content;         /* str or list of text blocks; not of users */
    const plumb__python_value *reasoning;       /* str */
    const plumb__python_value *calls;           /* list of {function: {name, arguments}} */
    const plumb__python_value *tools;           /* list of {function: {...}}, not empty */
    const plumb__python_value *response_format; /* anything */
    const char *task;                           /* control token of a quick task */
    bool without_eos;
    int64_t first_block, n_blocks; /* of a user: its part of conversation.blocks */
} plumb__chat_message;

typedef struct plumb__chat_conversation {
    plumb__python_json json; /* owns what the pointers above point at */
    plumb__chat_message *messages;
    int64_t n_messages, messages_capacity;
    plumb__chat_block *blocks;
    int64_t n_blocks, blocks_capacity;
    bool has_tools;
    int64_t last; /* index of the last user message, or system message beyond the first; or -1 */
} plumb__chat_conversation;

/* Errors are PLUMB_ERROR_TEXT; of a wrong message, `offset` is its index in the array. */
PLUMB_MUST_CHECK plumb_status plumb__chat_conversation_read(const char *messages, size_t size,
                                                            plumb__chat_conversation *conversation,
                                                            plumb_error *err);
void plumb__chat_conversation_free(plumb__chat_conversation *conversation);

/* Arguments of a call as they are rendered.  Given as a string they are parsed, twice if that gives a
 * string again.  NULL: what came of it is no object, and is handed on whole as the one parameter
 * "arguments".  `parsed` owns what the result points at; `no_memory` may be set. */
const plumb__python_value *plumb__chat_arguments(const plumb__python_value *given,
                                                 plumb__python_json parsed[2], bool *no_memory);

/* What a block of a content list is, by its "type". */
plumb__chat_block_kind plumb__chat_block_kind_of(const plumb__python_value *block);
bool plumb__python_str_is(const plumb__python_value *value, const char *text);

#endif
