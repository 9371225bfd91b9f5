/* What each API implements: reading a request, writing what becomes of it.
 *
 * An API is pure: it sees no sockets, threads or clocks; the context and the response give it all it may
 * know, so a test or a fuzzer can drive it alone.  All calls come from the thread of the event loop. */
#ifndef PLUMB_SERVER_API_H
#define PLUMB_SERVER_API_H

#include "server/generation.h"
#include "server/response.h"

/* What APIs may know of the server. */
typedef struct plumb_api_context {
    const char *model;            /* the id of the model that is served */
    const plumb_text *text;
    int64_t context;              /* most tokens of prompt and answer */
    const plumb_sampling *sampling; /* what applies where the request says nothing */
    bool thinking;                /* likewise */
    int effort;
    int most_runs;                /* of one request */
    int64_t (*now)(void *user);   /* seconds since 1970 */
    /* Writes prefix and 24 random letters and digits, NUL-terminated; `id` has room for 64 bytes. */
    void (*new_id)(void *user, const char *prefix, char *id);
    /* Appends the tokens that a job of this generation, a conversation, has for its prompt. */
    plumb_status (*encode)(void *user, const plumb_generation *generation, plumb_tokens *tokens, plumb_error *err);
    void *user;
} plumb_api_context;

/* One request of an API between its reading and its last event. */
typedef struct plumb_api_request plumb_api_request;

typedef struct plumb_api {
    const char *method, *path; /* "POST", "/v1/chat/completions" */
    /* Reads a body.  PLUMB_OK: *request and *generation are the caller's; *generation may be NULL, then
     * there is nothing to generate and `answer` tells the result at once.  Otherwise *error says what is
     * wrong.  `state` is what the API keeps between requests (create_state), NULL for most. */
    plumb_status (*read)(const plumb_api_context *context, void *state, const char *body, size_t size,
                         plumb_api_request **request, plumb_generation **generation, plumb_api_error *error);
    /* Where read gave no generation: the whole answer. */
    void (*answer)(plumb_api_request *request, plumb_response *response);
    /* One event; the API begins the response, writes to it and ends it.  After FAILED, or after as many
     * FINISHED as there are runs, no more come. */
    void (*event)(plumb_api_request *request, const plumb_generation_event *event, plumb_response *response);
    /* An error in this API's shape, as a whole response: for those of `read`, and those that are found
     * before it (authorisation, size, a full queue). */
    void (*refuse)(const plumb_api_error *error, plumb_response *response);
    void (*destroy)(plumb_api_request *request); /* NULL is fine */
    plumb_status (*create_state)(void **state, plumb_error *err); /* NULL: keeps none */
    void (*destroy_state)(void *state);
} plumb_api;

extern const plumb_api plumb__openai_chat, plumb__openai_completions, plumb__openai_responses;
extern const plumb_api plumb__anthropic_messages, plumb__anthropic_count_tokens;

/* The HTTP status of a refusal, and the error object of OpenAI's APIs, which the native endpoints use too. */
int plumb__refusal_status(plumb_refusal refusal);
void plumb__openai_refuse(const plumb_api_error *error, plumb_response *response);

#endif
