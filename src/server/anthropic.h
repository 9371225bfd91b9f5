/* POST /v1/messages and /v1/messages/count_tokens: what they share, and a request between its reading and its
 * last event. */
#ifndef PLUMB_SERVER_ANTHROPIC_H
#define PLUMB_SERVER_ANTHROPIC_H

#include "server/api.h"
#include "server/conversation.h"
#include "server/fields.h"
#include "server/text_buffer.h"

typedef enum plumb_block_kind {
    PLUMB_BLOCK_NONE,
    PLUMB_BLOCK_THINKING,
    PLUMB_BLOCK_TEXT,
    PLUMB_BLOCK_TOOL_USE
} plumb_block_kind;

struct plumb_api_request {
    const plumb_api_context *context;
    char id[64];
    bool stream, parallel, show_thinking;
    int64_t input_tokens; /* of count_tokens */

    /* The block of content that is being told. */
    plumb_block_kind block;
    int64_t index;
    plumb_text_buffer text; /* what it has so far; a call's input */
    char call_id[64];
    json_t *call_name;
    int call;
    bool broken_call; /* a call was told in part and cannot be taken back */
    /* Blocks that are done, as JSON text with commas between: inputs keep the spelling of their numbers. */
    plumb_text_buffer content;
};

/* How thinking is to be shown, and calls to be told. */
typedef struct plumb_anthropic_manner {
    bool parallel, show_thinking;
} plumb_anthropic_manner;

/* The conversation with all that goes into the prompt: system, messages, tools, tool_choice, thinking,
 * context_management, output_config.  `most_tokens` is what a thinking budget must stay below; -1: nothing. */
bool plumb__anthropic_prompt(const plumb_api_context *context, const plumb_fields *fields, int64_t most_tokens,
                             plumb_generation *generation, plumb_anthropic_manner *manner);
/* Member "messages" (anthropic_content.c). */
bool plumb__anthropic_messages_read(const plumb_fields *fields, plumb_conversation *conversation);
/* Member "context_management": takes out of the messages what it says (anthropic_context.c). */
bool plumb__anthropic_context(const plumb_fields *fields, json_t *messages, plumb_generation *generation);

json_t *plumb__anthropic_error(const plumb_api_error *error);
void plumb__anthropic_refuse(const plumb_api_error *error, plumb_response *response);
void plumb__anthropic_event(plumb_api_request *request, const plumb_generation_event *event,
                            plumb_response *response);
void plumb__anthropic_destroy(plumb_api_request *request);

#endif
