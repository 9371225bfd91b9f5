/* GET /v1/models and /v1/models/ID: the one model, as OpenAI's clients know it, or as Anthropic's do, which say by a
 * header who they are. */
#include "server/anthropic.h"
#include "server/server_parts.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static bool is_anthropic(const plumb_http_exchange *exchange) {
    return plumb__http_header(exchange, "anthropic-version") != NULL;
}

static json_t *describe_openai(const plumb_server *server) {
    return json_pack("{s:s,s:s,s:I,s:s,s:I,s:I}", "id", server->options.model_id, "object", "model", "created",
                     (json_int_t)server->started, "owned_by", "plumb", "context_length",
                     (json_int_t)server->options.context, "max_model_len",
                     (json_int_t)server->options.context);
}

static json_t *describe_anthropic(const plumb_server *server) {
    const plumb_server_options *o = &server->options;
    const time_t started = (time_t)server->started;
    char created[32] = "1970-01-01T00:00:00Z";
    struct tm date;
    if (gmtime_r(&started, &date)) strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &date);
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:n,s:n,s:n,s:n}", "id", o->model_id, "type", "model",
                     "display_name", o->model_id, "created_at", created, "lifecycle", "active", "max_input_tokens",
                     (json_int_t)o->context, "max_tokens", (json_int_t)o->context, "capabilities", "line",
                     "deprecated_at", "retires_at");
}

void plumb__endpoint_models(plumb_server *server, plumb_http_exchange *exchange, plumb_response *response) {
    const char *id = server->options.model_id;
    json_t *list = is_anthropic(exchange) ? json_pack("{s:[o],s:b,s:s,s:s}", "data", describe_anthropic(server),
                                                      "has_more", 0, "first_id", id, "last_id", id)
                                          : json_pack("{s:s,s:[o]}", "object", "list", "data", describe_openai(server));
    plumb__response_json(response, 200, list);
}

void plumb__endpoint_model(plumb_server *server, plumb_http_exchange *exchange, plumb_response *response) {
    const char *id = plumb__http_path(exchange) + strlen("/v1/models/");
    const bool anthropic = is_anthropic(exchange);
    if (strcmp(id, server->options.model_id) == 0) {
        plumb__response_json(response, 200, anthropic ? describe_anthropic(server) : describe_openai(server));
        return;
    }
    plumb_api_error error = {.refusal = PLUMB_REFUSAL_NOT_FOUND, .param = "model"};
    snprintf(error.message, sizeof error.message, "no model '%.100s' here; there is '%.100s'", id,
             server->options.model_id);
    if (anthropic) plumb__anthropic_refuse(&error, response);
    else plumb__openai_refuse(&error, response);
}
