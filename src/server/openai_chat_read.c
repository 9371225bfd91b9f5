/* POST /v1/chat/completions: from its body to a generation.  openai_chat_write.c tells what becomes of it.
 *
 * Members that would only change how an answer is stored or billed are ignored, as are unknown ones; one that
 * would change the answer, and cannot be served, is refused. */
#include "server/openai_chat.h"

#include <stdlib.h>

enum { MOST_STOPS = 16, MOST_TOP_LOGPROBS = 20 };

/* Other local servers have the schema beside the type, and let it stand with json_object too. */
static bool read_format(const plumb_fields *fields, json_t *messages, plumb_generation *g) {
    enum { TEXT, OBJECT, SCHEMA };
    static const char *const types[] = {"text", "json_object", "json_schema", NULL};
    plumb_fields format, described;
    bool present;
    int type = TEXT;
    if (!plumb__fields_of(fields, "response_format", &format, &present)) return false;
    if (!present) return true;
    if (!plumb__field_choice(&format, "type", types, &type)) return false;
    if (type == TEXT || g->grammar) return true; /* forced calls leave no text to have a format */
    if (!plumb__fields_of(&format, "json_schema", &described, &present)) return false;
    if (!present) described = format;
    json_t *schema = json_object_get(described.object, "schema");
    if (type == OBJECT && (!schema || json_is_null(schema))) return plumb__openai_json_object(fields, messages, g);
    if (!json_is_object(schema))
        return plumb__field_fault(fields, "response_format", "'json_schema.schema' is not an object");
    return plumb__openai_json_schema(&described, "schema", schema, messages, g);
}

/* Tools, choice and format, which go into the messages, and these into the generation. */
static bool read_prompt(const plumb_api_context *context, const plumb_fields *fields, json_t *messages,
                        plumb_generation *g, bool *one_call) {
    bool parallel = true;
    json_t *tools = NULL;
    bool ok = plumb__field_bool(fields, "parallel_tool_calls", &parallel) && plumb__openai_tools(fields, &tools) &&
              (!tools || plumb__openai_system_member(fields, messages, "tools", tools)) &&
              plumb__openai_tool_choice(context, fields, tools, parallel, g) && read_format(fields, messages, g) &&
              plumb__openai_set_messages(fields, messages, g);
    json_decref(tools);
    *one_call = !parallel;
    return ok;
}

/* -1 is what other local servers take for "as many as there is room for". */
static bool read_length(const plumb_fields *fields, const char *key, plumb_generation *g) {
    if (!plumb__field_int(fields, key, -1, INT32_MAX, &g->most_tokens)) return false;
    return g->most_tokens != 0 || plumb__field_fault(fields, key, "'%s' is 0, which leaves no room for an answer", key);
}

static bool read_lengths(const plumb_fields *fields, plumb_generation *g) {
    return read_length(fields, "max_tokens", g) && read_length(fields, "max_completion_tokens", g) &&
           plumb__field_stops(fields, "stop", MOST_STOPS, g);
}

static bool read_logprobs(const plumb_fields *fields, plumb_generation *g) {
    int64_t top = 0;
    if (!plumb__field_bool(fields, "logprobs", &g->logprobs) ||
        !plumb__field_int(fields, "top_logprobs", 0, MOST_TOP_LOGPROBS, &top))
        return false;
    if (top > 0 && !g->logprobs)
        return plumb__field_fault(fields, "top_logprobs", "'top_logprobs' needs 'logprobs' to be true");
    g->top_logprobs = (int)top;
    return true;
}

/* A client of the oldest form would wait for calls that never come. */
static bool refuse_functions(const plumb_fields *fields) {
    json_t *functions = NULL;
    if (!plumb__field_array(fields, "functions", &functions)) return false;
    return json_array_size(functions) == 0 ||
           plumb__field_fault(fields, "functions", "'functions' is not supported, use 'tools'");
}

static bool begin(const plumb_api_context *context, const plumb_fields *fields, const plumb_generation *g,
                  plumb_api_request *r) {
    r->answer.kind = r->answer.stream ? "chat.completion.chunk" : "chat.completion";
    r->text = context->text;
    r->runs = calloc((size_t)g->runs, sizeof *r->runs);
    plumb__openai_begin_answer(&r->answer, context, "chatcmpl-", g->runs);
    return r->runs || plumb__field_no_memory(fields);
}

static bool read_fields(const plumb_api_context *context, const plumb_fields *fields, plumb_generation *g,
                        plumb_api_request *r) {
    json_t *messages = NULL;
    bool continues = false;
    const char *model;
    g->thinking = context->thinking;
    g->effort = context->effort;
    bool ok = plumb__openai_messages(fields, &messages, &continues) && plumb__openai_reasoning(fields, g) &&
              read_prompt(context, fields, messages, g, &r->one_call) &&
              plumb__openai_sampling(context, fields, g) && read_lengths(fields, g) && read_logprobs(fields, g) &&
              plumb__openai_streaming(fields, &r->answer.stream, &r->answer.include_usage) &&
              plumb__field_string(fields, "model", &model) && refuse_functions(fields) &&
              plumb__openai_refuse_unsupported(fields);
    /* What has begun to answer has done with reasoning. */
    if (continues) g->thinking = false;
    g->streamed = r->answer.stream;
    json_decref(messages);
    return ok && begin(context, fields, g, r);
}

static plumb_status read_body(const plumb_api_context *context, void *state, const char *body, size_t size,
                              plumb_api_request **request, plumb_generation **generation, plumb_api_error *error) {
    (void)state;
    plumb_api_request *r = calloc(1, sizeof *r);
    plumb_status status = plumb__openai_read(context, body, size, read_fields, r, generation, error);
    if (status == PLUMB_OK) *request = r;
    else plumb__openai_chat_destroy(r);
    return status;
}

const plumb_api plumb__openai_chat = {
    .method = "POST",
    .path = "/v1/chat/completions",
    .read = read_body,
    .event = plumb__openai_chat_event,
    .refuse = plumb__openai_refuse,
    .destroy = plumb__openai_chat_destroy,
};
