/* Errors as Anthropic's clients know them: {"type": "error", "error": {"type", "message"}, "request_id"}.  There is no
 * member for the field that is wrong, so the message begins with it.  The request's name is in the headers. */
#include "server/anthropic.h"

#include <string.h>

static const char *const types[] = {
    [PLUMB_REFUSAL_BAD_REQUEST] = "invalid_request_error",
    [PLUMB_REFUSAL_UNAUTHORIZED] = "authentication_error",
    [PLUMB_REFUSAL_FORBIDDEN] = "permission_error",
    [PLUMB_REFUSAL_NOT_FOUND] = "not_found_error",
    [PLUMB_REFUSAL_METHOD] = "invalid_request_error",
    [PLUMB_REFUSAL_CONFLICT] = "invalid_request_error",
    [PLUMB_REFUSAL_TOO_LARGE] = "request_too_large",
    [PLUMB_REFUSAL_CONTEXT] = "invalid_request_error",
    [PLUMB_REFUSAL_BUSY] = "rate_limit_error",
    [PLUMB_REFUSAL_INTERNAL] = "api_error",
    [PLUMB_REFUSAL_STOPPING] = "overloaded_error",
};

json_t *plumb__anthropic_error(const plumb_api_error *error) {
    char message[sizeof error->param + sizeof error->message + 2];
    snprintf(message, sizeof message, "%s%s%s", error->param, error->param[0] ? ": " : "", error->message);
    return json_pack("{s:s,s:{s:s,s:o},s:n}", "type", "error", "error", "type", types[error->refusal], "message",
                     plumb__text_json_bytes(message, strlen(message)), "request_id");
}

void plumb__anthropic_refuse(const plumb_api_error *error, plumb_response *response) {
    plumb__response_json(response, plumb__refusal_status(error->refusal), plumb__anthropic_error(error));
}
