/* POST /v1/responses: one request between its reading and its last event. */
#ifndef PLUMB_SERVER_RESPONSES_H
#define PLUMB_SERVER_RESPONSES_H

#include "server/api.h"
#include "server/conversation.h"
#include "server/fields.h"
#include "server/responses_memory.h"
#include "server/text_buffer.h"

typedef enum plumb_item_kind {
    PLUMB_ITEM_NONE,
    PLUMB_ITEM_REASONING,
    PLUMB_ITEM_MESSAGE,
    PLUMB_ITEM_CALL
} plumb_item_kind;

/* The item of the output that is being told. */
typedef struct plumb_output_item {
    plumb_item_kind kind;
    char id[PLUMB_RESPONSE_ID_SIZE], call_id[PLUMB_RESPONSE_ID_SIZE];
    json_t *called;         /* of a call: the function as the model knows it, and both parts of that name */
    const char *name, *name_space; /* the second may be NULL */
    plumb_text_buffer text; /* or a call's arguments */
    int call;
} plumb_output_item;

struct plumb_api_request {
    const plumb_api_context *context;
    plumb_responses_memory *memory;
    plumb_turn *before;        /* retained; the turn that is continued, or NULL */
    plumb_conversation turn;   /* what this request adds: its input, then the answer */
    bool stream, store, parallel;
    json_t *response;          /* the object that is told; "output" has the items that are done */
    char id[PLUMB_RESPONSE_ID_SIZE];
    int64_t sequence_number;   /* of the next event */
    plumb_output_item item;
    bool broken_call;          /* a call was told in part and cannot be taken back */
};

/* Member "input", a string or an array of items, as messages of the turn (responses_input.c).  Items that are only
 * referred to are those of the memory. */
bool plumb__responses_input(const plumb_fields *fields, plumb_responses_memory *memory, plumb_conversation *turn);
/* Tools and tool_choice (responses_tools.c): *tools as published, the caller's, NULL: none. */
bool plumb__responses_tools(const plumb_api_context *context, const plumb_fields *fields, bool parallel,
                            json_t **tools, plumb_generation *generation);
/* A request's tools as its response tells them: those that the model was offered, the caller's; NULL: no memory. */
json_t *plumb__responses_offered(const json_t *given);
/* A function as the model knows it, the caller's; the namespace (NULL: none) of one that it called. */
json_t *plumb__responses_full_name(const char *name_space, const char *name);
const char *plumb__responses_namespace(const json_t *offered, const char *called);
/* The events of a generation as items and events of this API (responses_write.c). */
void plumb__responses_event(plumb_api_request *request, const plumb_generation_event *event,
                            plumb_response *response);

#endif
