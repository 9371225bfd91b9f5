/* Messages of content blocks as the objects that the published encoder takes.
 *
 * A user's message may hold results of calls beside text: each result becomes a message of its own, in its
 * place.  A result that is an error says so in its text, since the published form knows no other way. */
#include "server/anthropic.h"

#include <string.h>

#include "server/openai.h"

#define ERROR_WORD "Error: "

typedef bool (*block_reader)(const plumb_fields *block, plumb_conversation *conversation, json_t *said);

static bool required(const plumb_fields *block, const char *key, const char **value) {
    if (!plumb__field_string(block, key, value)) return false;
    return *value || plumb__field_fault(block, key, "'%s' is missing", key);
}

static bool text_member(const plumb_fields *block, const char *key, json_t **text) {
    *text = json_object_get(block->object, key);
    return json_is_string(*text) || plumb__field_fault(block, key, "'%s' is missing or no string", key);
}

/* ---- The user's blocks; `said` gathers the text that stands together ---- */

static bool read_user_text(const plumb_fields *block, plumb_conversation *conversation, json_t *said) {
    json_t *text;
    (void)conversation;
    if (!text_member(block, "text", &text)) return false;
    return json_array_append_new(said, json_pack("{s:s,s:O}", "type", "text", "text", text)) == 0 ||
           plumb__field_no_memory(block);
}

/* Hands over what was said so far, if anything.  A single text is a content by itself. */
static void say(plumb_conversation *conversation, json_t *said) {
    size_t count = json_array_size(said);
    if (count == 0) return;
    json_t *content = count == 1 ? json_incref(json_object_get(json_array_get(said, 0), "text")) : json_array();
    if (count > 1 && json_array_extend(content, said) != 0) {
        json_decref(content);
        content = NULL;
    }
    plumb__conversation_say(conversation, "user", content);
    json_array_clear(said);
}

static json_t *marked_as_error(const json_t *text) {
    plumb_text_buffer marked = {0};
    plumb__text_append(&marked, ERROR_WORD, strlen(ERROR_WORD));
    plumb__text_append(&marked, json_string_value(text), json_string_length(text));
    json_t *value = plumb__text_json(&marked);
    plumb__text_free(&marked);
    return value;
}

/* Puts the word before the first text.  Takes the content over. */
static json_t *as_error(json_t *content) {
    json_t *first = json_array_get(content, 0);
    json_t *marked = marked_as_error(first ? json_object_get(first, "text") : content);
    if (first && json_object_set_new(first, "text", marked) == 0) return content;
    json_decref(content);
    return first ? NULL : marked;
}

static bool read_result(const plumb_fields *block, plumb_conversation *conversation, json_t *said) {
    const char *id = NULL;
    bool is_error = false;
    json_t *content;
    if (!required(block, "tool_use_id", &id) || !plumb__field_bool(block, "is_error", &is_error) ||
        !plumb__openai_content(block, "content", &content))
        return false;
    say(conversation, said);
    if (!content) content = json_string("");
    plumb__conversation_result(conversation, id, is_error && content ? as_error(content) : content);
    return true;
}

/* ---- The assistant's blocks ---- */

static bool read_said(const plumb_fields *block, plumb_conversation *conversation, json_t *said) {
    json_t *text;
    (void)said;
    if (!text_member(block, "text", &text)) return false;
    plumb__conversation_content(conversation, text);
    return true;
}

static bool read_thinking(const plumb_fields *block, plumb_conversation *conversation, json_t *said) {
    json_t *text;
    (void)said;
    if (!text_member(block, "thinking", &text)) return false;
    plumb__conversation_reasoning(conversation, json_string_value(text), json_string_length(text));
    return true;
}

/* Encrypted for somebody else. */
static bool skip(const plumb_fields *block, plumb_conversation *conversation, json_t *said) {
    (void)block, (void)conversation, (void)said;
    return true;
}

static bool read_call(const plumb_fields *block, plumb_conversation *conversation, json_t *said) {
    const char *id = NULL, *name = NULL;
    json_t *input = json_object_get(block->object, "input");
    (void)said;
    if (!required(block, "id", &id) || !required(block, "name", &name)) return false;
    if (!json_is_object(input)) return plumb__field_fault(block, "input", "'input' is missing or no object");
    plumb__conversation_call(conversation, id, name, json_incref(input));
    return true;
}

/* ---- Messages ---- */

enum { USER, ASSISTANT, SYSTEM };
static const char *const roles[] = {"user", "assistant", "system", NULL};

static const struct {
    const char *type;
    int role;
    block_reader read;
} kinds[] = {
    {"text", USER, read_user_text},      {"tool_result", USER, read_result},
    {"text", ASSISTANT, read_said},      {"thinking", ASSISTANT, read_thinking},
    {"tool_use", ASSISTANT, read_call},  {"redacted_thinking", ASSISTANT, skip},
};

static bool read_block(const plumb_fields *block, int role, plumb_conversation *conversation, json_t *said) {
    const char *type = NULL;
    if (!required(block, "type", &type)) return false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].role == role && strcmp(kinds[i].type, type) == 0)
            return kinds[i].read(block, conversation, said);
    if (strcmp(type, "image") == 0 || strcmp(type, "document") == 0)
        return plumb__field_fault(block, "type", "%s input is not supported: this server reads text only", type);
    return plumb__field_fault(block, "type", "blocks of type '%.40s' are not supported in messages of the %s", type,
                              roles[role]);
}

static bool read_blocks(const plumb_fields *message, int role, const json_t *content,
                        plumb_conversation *conversation) {
    json_t *said = json_array();
    bool ok = said || plumb__field_no_memory(message);
    if (role == ASSISTANT) plumb__conversation_assistant(conversation);
    else if (json_array_size(content) == 0) plumb__conversation_say(conversation, "user", json_string(""));
    for (size_t i = 0; ok && i < json_array_size(content); i++) {
        plumb_fields block;
        ok = plumb__fields_at(message, "content", content, i, &block) && read_block(&block, role, conversation, said);
    }
    say(conversation, said);
    json_decref(said);
    return ok;
}

static bool read_message(const plumb_fields *message, plumb_conversation *conversation) {
    int role = -1;
    json_t *content = json_object_get(message->object, "content");
    if (!plumb__field_choice(message, "role", roles, &role)) return false;
    if (role < 0) return plumb__field_fault(message, "role", "'role' is missing");
    if (!json_is_string(content) && !json_is_array(content))
        return plumb__field_fault(message, "content", "'content' is missing, or neither a string nor an array");
    if (role != SYSTEM && json_is_array(content)) return read_blocks(message, role, content, conversation);
    if (!plumb__openai_content(message, "content", &content)) return false;
    if (role != ASSISTANT) {
        plumb__conversation_say(conversation, roles[role], content);
        return true;
    }
    plumb__conversation_assistant(conversation);
    plumb__conversation_content(conversation, content);
    json_decref(content);
    return true;
}

bool plumb__anthropic_messages_read(const plumb_fields *fields, plumb_conversation *conversation) {
    json_t *messages = NULL, *system;
    if (!plumb__field_array(fields, "messages", &messages) || !plumb__openai_content(fields, "system", &system))
        return false;
    if (system) plumb__conversation_say(conversation, "system", system);
    if (json_array_size(messages) == 0)
        return plumb__field_fault(fields, "messages", "'messages' is %s", messages ? "empty" : "missing");
    for (size_t i = 0; i < json_array_size(messages); i++) {
        plumb_fields message;
        if (!plumb__fields_at(fields, "messages", messages, i, &message) || !read_message(&message, conversation))
            return false;
    }
    return plumb__conversation_end(conversation) || plumb__field_no_memory(fields);
}
