/* Errors as OpenAI's clients know them: {"error": {"message", "type", "param", "code"}}.
 *
 * Clients decide by the HTTP status whether to try again, by `code` what went wrong.  In a stream, whose status
 * is long sent, the same object is the last event: the official clients throw it. */
#include "server/openai.h"

#include <string.h>

#include "server/text_buffer.h"

typedef struct refusal_words {
    int status;
    const char *type, *code; /* code may be NULL */
} refusal_words;

static const refusal_words words_of[] = {
    [PLUMB_REFUSAL_BAD_REQUEST] = {400, "invalid_request_error", NULL},
    [PLUMB_REFUSAL_UNAUTHORIZED] = {401, "authentication_error", "invalid_api_key"},
    [PLUMB_REFUSAL_FORBIDDEN] = {403, "permission_error", NULL},
    [PLUMB_REFUSAL_NOT_FOUND] = {404, "invalid_request_error", "not_found"},
    [PLUMB_REFUSAL_METHOD] = {405, "invalid_request_error", "method_not_allowed"},
    [PLUMB_REFUSAL_CONFLICT] = {409, "invalid_request_error", "conflict"},
    [PLUMB_REFUSAL_TOO_LARGE] = {413, "invalid_request_error", "request_too_large"},
    [PLUMB_REFUSAL_CONTEXT] = {400, "invalid_request_error", "context_length_exceeded"},
    [PLUMB_REFUSAL_BUSY] = {429, "rate_limit_error", "rate_limit_exceeded"},
    [PLUMB_REFUSAL_INTERNAL] = {500, "server_error", NULL},
    [PLUMB_REFUSAL_STOPPING] = {503, "server_error", "server_stopping"},
};

int plumb__refusal_status(plumb_refusal refusal) { return words_of[refusal].status; }

static json_t *text_or_null(const char *text) {
    return text && text[0] ? plumb__text_json_bytes(text, strlen(text)) : json_null();
}

json_t *plumb__openai_error(const plumb_api_error *error) {
    const refusal_words *words = &words_of[error->refusal];
    return json_pack("{s:{s:o, s:s, s:o, s:o}}", "error", "message",
                     plumb__text_json_bytes(error->message, strlen(error->message)), "type", words->type, "param",
                     text_or_null(error->param), "code", text_or_null(words->code));
}

void plumb__openai_refuse(const plumb_api_error *error, plumb_response *response) {
    plumb__response_json(response, plumb__refusal_status(error->refusal), plumb__openai_error(error));
}

void plumb__openai_fail(const plumb_api_error *error, plumb_response *response) {
    if (response->begun) {
        plumb__response_event(response, NULL, plumb__openai_error(error));
        plumb__response_end(response);
    } else {
        plumb__openai_refuse(error, response);
    }
}
