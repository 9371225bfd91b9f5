/* The message of an answer; see answer_message.h. */
#include "server/answer_message.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static void text_free(plumb_told_text *text) {
    free(text->bytes);
    *text = (plumb_told_text){0};
}

void plumb__told_message_free(plumb_told_message *message) {
    for (int64_t i = 0; i < message->n_calls; i++) {
        text_free(&message->calls[i].name);
        text_free(&message->calls[i].arguments);
    }
    free(message->calls);
    text_free(&message->reasoning);
    text_free(&message->content);
    *message = (plumb_told_message){0};
}

bool plumb__told_text_add(plumb_told_text *text, const char *bytes, size_t size) {
    if (size == 0) return true;
    if (size > (size_t)(INT64_MAX - text->size)) return false;
    char *grown = plumb__grow(text->bytes, &text->capacity, text->size + (int64_t)size, 1);
    if (!grown) return false;
    text->bytes = grown;
    memcpy(grown + text->size, bytes, size);
    text->size += (int64_t)size;
    return true;
}

plumb_told_call *plumb__told_call_begin(plumb_told_message *message, const char *name, size_t size) {
    plumb_told_call *grown =
        plumb__grow(message->calls, &message->calls_capacity, message->n_calls + 1, sizeof *grown);
    if (!grown) return NULL;
    message->calls = grown;
    plumb_told_call *call = &grown[message->n_calls];
    *call = (plumb_told_call){0};
    if (!plumb__told_text_add(&call->name, name, size)) return NULL;
    message->n_calls++;
    return call;
}

int64_t plumb__told_calls(const plumb_told_message *message, bool *all_complete) {
    int64_t complete = 0;
    for (int64_t i = 0; i < message->n_calls; i++) complete += message->calls[i].complete;
    *all_complete = complete == message->n_calls;
    return complete;
}

static json_t *string_of(const plumb_told_text *text) {
    return json_stringn(text->size > 0 ? text->bytes : "", (size_t)text->size);
}

/* Takes the value over; false: no memory, also where it is NULL. */
static bool set(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) == 0;
}

static json_t *call_json(const plumb_told_call *call) {
    json_t *json = json_object(), *function = json_object();
    bool complete = set(function, "name", string_of(&call->name));
    complete &= set(function, "arguments", string_of(&call->arguments));
    complete &= set(json, "id", json_string(call->id));
    complete &= set(json, "type", json_string("function"));
    complete &= set(json, "function", function);
    if (complete) return json;
    json_decref(json);
    return NULL;
}

char *plumb__told_message_json(const plumb_told_message *message) {
    json_t *json = json_object(), *calls = json_array();
    bool complete = set(json, "role", json_string("assistant"));
    complete &= set(json, "content", string_of(&message->content));
    if (message->reasoning.size > 0)
        complete &= set(json, "reasoning_content", string_of(&message->reasoning));
    for (int64_t i = 0; i < message->n_calls; i++)
        if (message->calls[i].complete)
            complete &= json_array_append_new(calls, call_json(&message->calls[i])) == 0;
    complete &= set(json, "tool_calls", calls);
    char *text = complete ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}
