/* See conversation.h. */
#include "server/conversation.h"

#include <string.h>

void plumb__conversation_free(plumb_conversation *c) {
    json_decref(c->messages);
    json_decref(c->calls);
    plumb__text_free(&c->reasoning);
    plumb__text_free(&c->content);
    *c = (plumb_conversation){0};
}

static void add_message(plumb_conversation *c, json_t *message) {
    if (!c->messages) c->messages = json_array();
    if (json_array_append_new(c->messages, message) != 0) c->failed = true;
}

bool plumb__conversation_end(plumb_conversation *c) {
    if (!c->in_turn) return !c->failed;
    json_t *message = json_pack("{s:s,s:o}", "role", "assistant", "content", plumb__text_json(&c->content));
    if (c->reasoning.size > 0 &&
        json_object_set_new(message, "reasoning_content", plumb__text_json(&c->reasoning)) != 0)
        c->failed = true;
    if (c->calls && json_object_set(message, "tool_calls", c->calls) != 0) c->failed = true;
    add_message(c, message);
    json_decref(c->calls);
    c->calls = NULL;
    plumb__text_clear(&c->reasoning);
    plumb__text_clear(&c->content);
    c->in_turn = c->new_paragraph = false;
    return !c->failed;
}

void plumb__conversation_say(plumb_conversation *c, const char *role, json_t *content) {
    (void)plumb__conversation_end(c);
    add_message(c, json_pack("{s:s,s:o}", "role", role, "content", content));
}

void plumb__conversation_result(plumb_conversation *c, const char *call_id, json_t *content) {
    (void)plumb__conversation_end(c);
    add_message(c, json_pack("{s:s,s:s,s:o}", "role", "tool", "tool_call_id", call_id, "content", content));
}

void plumb__conversation_assistant(plumb_conversation *c) {
    c->new_paragraph = c->in_turn;
    c->in_turn = true;
}

void plumb__conversation_reasoning(plumb_conversation *c, const char *bytes, size_t size) {
    c->in_turn = true;
    plumb__text_append(&c->reasoning, bytes, size);
}

void plumb__conversation_text(plumb_conversation *c, const char *bytes, size_t size) {
    c->in_turn = true;
    if (size == 0) return;
    if (c->new_paragraph && c->content.size > 0) plumb__text_append(&c->content, "\n\n", 2);
    c->new_paragraph = false;
    plumb__text_append(&c->content, bytes, size);
}

void plumb__conversation_call(plumb_conversation *c, const char *id, const char *name, json_t *arguments) {
    c->in_turn = true;
    if (!c->calls) c->calls = json_array();
    json_t *call = json_pack("{s:s,s:s,s:{s:s,s:o}}", "id", id, "type", "function", "function", "name", name,
                             "arguments", arguments);
    if (json_array_append_new(c->calls, call) != 0) c->failed = true;
}

static void add_text(plumb_conversation *c, const json_t *text) {
    plumb__conversation_text(c, json_string_value(text), json_string_length(text));
}

void plumb__conversation_content(plumb_conversation *c, const json_t *content) {
    if (json_is_string(content)) add_text(c, content);
    for (size_t i = 0; i < json_array_size(content); i++)
        add_text(c, json_object_get(json_array_get(content, i), "text"));
}

void plumb__conversation_reopen(plumb_conversation *c) {
    size_t last = json_array_size(c->messages) - 1;
    json_t *message = json_incref(json_array_get(c->messages, last));
    const json_t *reasoning = json_object_get(message, "reasoning_content");
    json_array_remove(c->messages, last);
    plumb__conversation_reasoning(c, json_string_value(reasoning), json_string_length(reasoning));
    plumb__conversation_content(c, json_object_get(message, "content"));
    c->calls = json_incref(json_object_get(message, "tool_calls"));
    json_decref(message);
}

static bool role_is(const json_t *message, const char *role) {
    return strcmp(json_string_value(json_object_get(message, "role")), role) == 0;
}

bool plumb__conversation_ask(const plumb_fields *fields, const char *key, json_t *messages, bool *continues) {
    size_t count = json_array_size(messages);
    json_t *last = json_array_get(messages, count - 1);
    *continues = role_is(last, "assistant");
    if (*continues && json_object_get(last, "tool_calls"))
        return plumb__field_fault(fields, key, "'%s' ends with calls, whose results are missing", key);
    if (*continues && json_object_set_new(last, "wo_eos", json_true()) != 0) return plumb__field_no_memory(fields);
    if (count == 1 && role_is(last, "system") &&
        json_array_append_new(messages, json_pack("{s:s,s:s}", "role", "user", "content", "")) != 0)
        return plumb__field_no_memory(fields);
    return true;
}
