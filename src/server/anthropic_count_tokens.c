/* POST /v1/messages/count_tokens: the prompt of a request is encoded, and nothing is generated. */
#include "server/anthropic.h"

#include <stdlib.h>

/* Reading has checked what the encoder does, so this is for what both of us did not think of. */
static bool refuse(const plumb_fields *fields, plumb_status status, const plumb_error *err) {
    char line[300];
    if (status == PLUMB_ERROR_MEMORY) return plumb__field_no_memory(fields);
    plumb_error_line(err, line, sizeof line);
    return plumb__field_fault(fields, "messages", "%s", line);
}

static bool count(const plumb_api_context *context, const plumb_fields *fields, plumb_api_request *r) {
    plumb_anthropic_manner manner;
    plumb_tokens tokens = {0};
    plumb_error err;
    plumb_generation *g = plumb__generation_create();
    bool ok = g ? plumb__anthropic_prompt(context, fields, -1, g, &manner) : plumb__field_no_memory(fields);
    if (ok) {
        plumb_status status = context->encode(context->user, g, &tokens, &err);
        ok = status == PLUMB_OK || refuse(fields, status, &err);
    }
    r->input_tokens = tokens.count;
    plumb_tokens_free(&tokens);
    plumb__generation_destroy(g);
    return ok;
}

static plumb_status read_request(const plumb_api_context *context, void *state, const char *body, size_t size,
                                 plumb_api_request **request, plumb_generation **generation, plumb_api_error *error) {
    plumb_fields fields;
    json_t *root = NULL;
    (void)state;
    *error = (plumb_api_error){0};
    if (!plumb__fields_parse(body, size, &root, &fields, error)) return PLUMB_ERROR_FORMAT;
    plumb_api_request *r = calloc(1, sizeof *r);
    bool ok = r ? count(context, &fields, r) : plumb__field_no_memory(&fields);
    json_decref(root);
    if (ok) {
        *request = r;
        *generation = NULL;
        return PLUMB_OK;
    }
    plumb__anthropic_destroy(r);
    return PLUMB_ERROR_FORMAT;
}

static void answer(plumb_api_request *r, plumb_response *response) {
    plumb__response_json(response, 200, json_pack("{s:I}", "input_tokens", (json_int_t)r->input_tokens));
}

const plumb_api plumb__anthropic_count_tokens = {
    .method = "POST",
    .path = "/v1/messages/count_tokens",
    .read = read_request,
    .answer = answer,
    .refuse = plumb__anthropic_refuse,
    .destroy = plumb__anthropic_destroy,
};
