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

bool plumb__openai_json_schema(const plumb_fields *fields, const char *key, json_t *schema, json_t *messages,
                               plumb_generation *g) {
    plumb_error err;
    return plumb__openai_grammar_made(fields, key, plumb__grammar_json_schema(schema, &g->grammar, &err), &err) &&
           plumb__openai_system_member(fields, messages, "response_format", schema);
}

bool plumb__openai_json_object(const plumb_fields *fields, json_t *messages, plumb_generation *g) {
    plumb_error err;
    json_t *schema = json_pack("{s:s}", "type", "object");
    bool ok = schema ? plumb__openai_grammar_made(fields, NULL, plumb__grammar_json_object(&g->grammar, &err), &err) &&
                           plumb__openai_system_member(fields, messages, "response_format", schema)
                     : plumb__field_no_memory(fields);
    json_decref(schema);
    return ok;
}
