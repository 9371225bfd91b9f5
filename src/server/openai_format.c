/* Answers of a given form: a grammar for the sampler, and the schema in the system message, which tells the
 * model what the grammar will hold it to (tokenizer-and-chat.md sections 4.2 and 5.3). */
#include "server/openai.h"

bool plumb__openai_grammar_made(const plumb_fields *fields, const char *key, plumb_status status,
                                const plumb_error *err) {
    char line[300];
    if (status == PLUMB_OK) return true;
    if (status == PLUMB_ERROR_MEMORY) return plumb__field_no_memory(fields);
    plumb_error_line(err, line, sizeof line);
    return plumb__field_fault(fields, key, "the schema %s: %s",
                              status == PLUMB_ERROR_UNSUPPORTED ? "is not supported" : "is wrong", line);
}

/* Where the model may call tools as well, an answer is calls or of the form.  schema NULL: any object. */
static bool compile(const plumb_fields *fields, const char *key, const json_t *schema, const json_t *messages,
                    plumb_generation *g) {
    plumb_error err;
    plumb_status status = PLUMB_OK;
    if (g->tools_offered) {
        json_t *functions = plumb__openai_functions(json_object_get(json_array_get(messages, 0), "tools"), NULL);
        if (!functions) return plumb__field_no_memory(fields);
        status = plumb__grammar_json_or_calls(schema, functions, true, &g->grammar, &err);
        json_decref(functions);
    } else {
        status = schema ? plumb__grammar_json_schema(schema, &g->grammar, &err)
                        : plumb__grammar_json_object(&g->grammar, &err);
    }
    return plumb__openai_grammar_made(fields, key, status, &err);
}

bool plumb__openai_json_schema(const plumb_fields *fields, const char *key, json_t *schema, json_t *messages,
                               plumb_generation *g) {
    return compile(fields, key, schema, messages, g) &&
           plumb__openai_system_member(fields, messages, "response_format", schema);
}

bool plumb__openai_json_object(const plumb_fields *fields, json_t *messages, plumb_generation *g) {
    json_t *schema = json_pack("{s:s}", "type", "object");
    if (!schema) return plumb__field_no_memory(fields);
    bool ok = compile(fields, NULL, NULL, messages, g) &&
              plumb__openai_system_member(fields, messages, "response_format", schema);
    json_decref(schema);
    return ok;
}
