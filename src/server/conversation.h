/* A conversation that is read item by item, as the published message objects of plumb_chat_encode.
 *
 * APIs of blocks and items spread an assistant's turn over several of them (reasoning, text, calls), even over
 * several messages; the published form has one message for it.  So a turn gathers until somebody else speaks.
 * Functions that add note a lack of memory, and plumb__conversation_end tells it. */
#ifndef PLUMB_SERVER_CONVERSATION_H
#define PLUMB_SERVER_CONVERSATION_H

#include "server/fields.h"
#include "server/text_buffer.h"

/* Starts as {0}. */
typedef struct plumb_conversation {
    json_t *messages; /* array of those that are whole; NULL: none yet */
    plumb_text_buffer reasoning, content; /* of the assistant's turn that gathers */
    json_t *calls;
    bool in_turn, new_paragraph, failed;
} plumb_conversation;

void plumb__conversation_free(plumb_conversation *conversation);

/* Somebody else's message.  Takes `content` over: a string, or published text blocks; NULL: no memory. */
void plumb__conversation_say(plumb_conversation *conversation, const char *role, json_t *content);
void plumb__conversation_result(plumb_conversation *conversation, const char *call_id, json_t *content);

/* The assistant's turn.  Pieces of text follow each other without a gap, messages after an empty line. */
void plumb__conversation_assistant(plumb_conversation *conversation); /* another of its messages begins */
void plumb__conversation_reasoning(plumb_conversation *conversation, const char *bytes, size_t size);
void plumb__conversation_text(plumb_conversation *conversation, const char *bytes, size_t size);
/* Takes `arguments` over: an object, or its JSON text as a string; NULL: no memory. */
void plumb__conversation_call(plumb_conversation *conversation, const char *id, const char *name,
                              json_t *arguments);

/* Takes an answer at the end apart again, to go on with it. */
void plumb__conversation_reopen(plumb_conversation *conversation);
/* Ends the turn that gathers.  False: memory ran out somewhere on the way. */
bool plumb__conversation_end(plumb_conversation *conversation);

/* A content as plumb__openai_content reads it, as text of the assistant's turn; NULL: none. */
void plumb__conversation_content(plumb_conversation *conversation, const json_t *content);

/* Makes `messages`, of at least one, ready to be answered: a lone system message is given an empty question, an
 * answer at the end is left open (*continues).  An answer that ends with calls is a fault of `key`. */
bool plumb__conversation_ask(const plumb_fields *fields, const char *key, json_t *messages, bool *continues);

#endif
