/* Messages of chat completions as the objects that the published encoder takes.
 *
 * Everything is checked here, so that encoding finds nothing to refuse and each fault is named by its path.
 * Texts are shared with the request, not copied: a conversation may be megabytes. */
#include "server/openai.h"

#include <string.h>

#include "server/conversation.h"

/* What a part of a content is called, by its "type", and where its text is; NULL: it has none we can read. */
static const struct {
    const char *type, *member, *what;
} parts[] = {
    {"text", "text", NULL},         {"input_text", "text", NULL},       {"output_text", "text", NULL},
    {"refusal", "refusal", NULL},   {"image_url", NULL, "image"},       {"input_image", NULL, "image"},
    {"image", NULL, "image"},       {"input_audio", NULL, "audio"},     {"audio", NULL, "audio"},
    {"file", NULL, "file"},         {"input_file", NULL, "file"},       {"video_url", NULL, "video"},
};

/* A string member as it is, NUL characters included.  *text is borrowed; NULL: absent or null. */
static bool text_member(const plumb_fields *fields, const char *key, json_t **text) {
    json_t *value = json_object_get(fields->object, key);
    *text = NULL;
    if (!value || json_is_null(value)) return true;
    if (!json_is_string(value)) return plumb__field_fault(fields, key, "'%s%s' is not a string", fields->path, key);
    *text = value;
    return true;
}

static bool add_part(const plumb_fields *part, json_t *list) {
    const char *type = NULL;
    if (!plumb__field_string(part, "type", &type)) return false;
    for (size_t i = 0; type && i < sizeof parts / sizeof parts[0]; i++) {
        json_t *text;
        if (strcmp(parts[i].type, type) != 0) continue;
        if (!parts[i].member)
            return plumb__field_fault(part, "type", "%s input is not supported yet", parts[i].what);
        if (!text_member(part, parts[i].member, &text)) return false;
        if (!text) return plumb__field_fault(part, parts[i].member, "'%s' is missing", parts[i].member);
        if (json_array_append_new(list, json_pack("{s:s, s:O}", "type", "text", "text", text)) != 0)
            return plumb__field_no_memory(part);
        return true;
    }
    return plumb__field_fault(part, "type", "'type' is %.40s, expected 'text'", type ? type : "missing");
}

bool plumb__openai_content(const plumb_fields *fields, const char *key, json_t **content) {
    json_t *value = json_object_get(fields->object, key);
    *content = NULL;
    if (!value || json_is_null(value)) return true;
    if (json_is_string(value)) {
        *content = json_incref(value);
        return true;
    }
    if (!json_is_array(value))
        return plumb__field_fault(fields, key, "'%s%s' is neither a string nor an array of parts", fields->path, key);
    json_t *list = json_array();
    bool ok = list || plumb__field_no_memory(fields);
    for (size_t i = 0; ok && i < json_array_size(value); i++) {
        plumb_fields part;
        ok = plumb__fields_at(fields, key, value, i, &part) && add_part(&part, list);
    }
    if (ok) *content = list;
    else json_decref(list);
    return ok;
}

/* A call of an answer that is told again.  Its name and arguments are what a model once made of them, so they
 * may be anything; the encoder copes. */
static bool add_call(const plumb_fields *call, json_t *list) {
    plumb_fields function;
    const char *type = NULL;
    json_t *id, *name, *arguments;
    bool present;
    if (!plumb__field_string(call, "type", &type) || !text_member(call, "id", &id) ||
        !plumb__fields_of(call, "function", &function, &present))
        return false;
    if (type && strcmp(type, "function") != 0)
        return plumb__field_fault(call, "type", "'type' is '%.40s', expected 'function'", type);
    if (!present) return plumb__field_fault(call, "function", "'function' is missing");
    if (!text_member(&function, "name", &name)) return false;
    if (!name) return plumb__field_fault(&function, "name", "'name' is missing");
    arguments = json_object_get(function.object, "arguments");
    if (!json_is_string(arguments) && !json_is_object(arguments))
        return plumb__field_fault(&function, "arguments", "'arguments' is neither a string nor an object");
    json_t *made =
        json_pack("{s:s, s:{s:O, s:O}}", "type", "function", "function", "name", name, "arguments", arguments);
    if (!made || (id && json_object_set(made, "id", id) != 0)) {
        json_decref(made);
        return plumb__field_no_memory(call);
    }
    return json_array_append_new(list, made) == 0 || plumb__field_no_memory(call);
}

static bool add_calls(const plumb_fields *fields, json_t *message) {
    json_t *given = NULL;
    if (!plumb__field_array(fields, "tool_calls", &given)) return false;
    if (!given || json_array_size(given) == 0) return true;
    json_t *list = json_array();
    if (!list || json_object_set_new(message, "tool_calls", list) != 0) return plumb__field_no_memory(fields);
    for (size_t i = 0; i < json_array_size(given); i++) {
        plumb_fields call;
        if (!plumb__fields_at(fields, "tool_calls", given, i, &call) || !add_call(&call, list)) return false;
    }
    return true;
}

static bool set(const plumb_fields *fields, json_t *message, const char *key, json_t *value) {
    return json_object_set(message, key, value) == 0 || plumb__field_no_memory(fields);
}

/* What an answer may have had elsewhere, and what is lost if nobody says so. */
static bool refuse_lost(const plumb_fields *fields) {
    static const char *const members[] = {"function_call", "audio"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        const json_t *value = json_object_get(fields->object, members[i]);
        if (value && !json_is_null(value))
            return plumb__field_fault(fields, members[i], "'%s' is not supported%s", members[i],
                                      i == 0 ? ", use 'tool_calls'" : "");
    }
    return true;
}

/* Some clients send reasoning back as "reasoning"; most leave it out. */
static bool add_reasoning(const plumb_fields *fields, json_t *message) {
    json_t *text;
    if (!text_member(fields, "reasoning_content", &text)) return false;
    if (!text && json_is_string(json_object_get(fields->object, "reasoning")))
        text = json_object_get(fields->object, "reasoning");
    return !text || set(fields, message, "reasoning_content", text);
}

enum { SYSTEM, DEVELOPER, USER, ASSISTANT, TOOL };
static const char *const roles[] = {"system", "developer", "user", "assistant", "tool", NULL};
static const char *const published[] = {"system", "system", "user", "assistant", "tool"};

static bool fill_message(const plumb_fields *fields, int role, json_t *message) {
    json_t *content, *id;
    if (!plumb__openai_content(fields, "content", &content)) return false;
    if (!content && role != ASSISTANT) return plumb__field_fault(fields, "content", "'content' is missing");
    if (content && json_object_set_new(message, "content", content) != 0) return plumb__field_no_memory(fields);
    if (role == ASSISTANT)
        return refuse_lost(fields) && add_reasoning(fields, message) && add_calls(fields, message);
    if (role != TOOL) return true;
    if (!text_member(fields, "tool_call_id", &id)) return false;
    if (!id) return plumb__field_fault(fields, "tool_call_id", "'tool_call_id' is missing");
    return set(fields, message, "tool_call_id", id);
}

static bool add_message(const plumb_fields *fields, json_t *list) {
    int role = -1;
    if (!plumb__field_choice(fields, "role", roles, &role)) return false;
    if (role < 0) return plumb__field_fault(fields, "role", "'role' is missing");
    json_t *message = json_pack("{s:s}", "role", published[role]);
    if (json_array_append_new(list, message) != 0) return plumb__field_no_memory(fields);
    return fill_message(fields, role, message);
}

static bool role_is(const json_t *message, int role) {
    return strcmp(json_string_value(json_object_get(message, "role")), published[role]) == 0;
}

bool plumb__openai_messages(const plumb_fields *fields, json_t **messages, bool *continues) {
    json_t *given = NULL;
    if (!plumb__field_array(fields, "messages", &given)) return false;
    if (!given || json_array_size(given) == 0)
        return plumb__field_fault(fields, "messages", "'messages' is %s", given ? "empty" : "missing");
    json_t *list = json_array();
    bool ok = list || plumb__field_no_memory(fields);
    for (size_t i = 0; ok && i < json_array_size(given); i++) {
        plumb_fields message;
        ok = plumb__fields_at(fields, "messages", given, i, &message) && add_message(&message, list);
    }
    if (ok && plumb__conversation_ask(fields, "messages", list, continues)) *messages = list;
    else json_decref(list), ok = false;
    return ok;
}

bool plumb__openai_system_member(const plumb_fields *fields, json_t *messages, const char *key, json_t *value) {
    json_t *first = json_array_get(messages, 0);
    if (!role_is(first, SYSTEM)) {
        first = json_pack("{s:s, s:s}", "role", "system", "content", "");
        if (json_array_insert_new(messages, 0, first) != 0) return plumb__field_no_memory(fields);
    }
    return set(fields, first, key, value);
}

bool plumb__openai_set_messages(const plumb_fields *fields, const json_t *messages, plumb_generation *generation) {
    plumb_text_buffer text = {0};
    plumb__text_append_json(&text, messages);
    plumb__text_append(&text, "", 1);
    if (text.failed) {
        plumb__text_free(&text);
        return plumb__field_no_memory(fields);
    }
    generation->messages = text.bytes;
    return true;
}
