#include "cli/chat_note.h"

#include "base/error.h"

#include <jansson.h>
#include <string.h>

static const char format_name[] = "plumb-chat";
enum { VERSION = 1, HIGHEST_LEVEL = 100 };

plumb_status cli_chat_note_write(const cli_chat_note *note, char **text, size_t *size,
                                 plumb_error *err) {
    json_t *object = json_pack("{s:s,s:i,s:i,s:O}", "format", format_name, "version", VERSION,
                               "think_level", note->think_level, "messages", note->conversation);
    char *printed = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (printed == NULL) return plumb__fail_memory(err, "conversation", 0);
    *text = printed;
    *size = strlen(printed);
    return PLUMB_OK;
}

static plumb_status refuse(plumb_error *err, const char *path, const char *found,
                           const char *expected) {
    return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "note", -1, found, "%s", expected);
}

static bool is_message(const json_t *message, const char *role) {
    const char *found = json_string_value(json_object_get(message, "role"));
    return found != NULL && strcmp(found, role) == 0 && json_object_size(message) == 2 &&
           json_is_string(json_object_get(message, "content"));
}

/* A system message or none, then questions with their answers. */
static plumb_status check_messages(const json_t *messages, const char *path, int64_t *n_turns,
                                   plumb_error *err) {
    size_t count = json_array_size(messages), i = 0;
    if (!json_is_array(messages)) return refuse(err, path, "no messages", "a list of messages");
    if (is_message(json_array_get(messages, 0), "system")) i++;
    *n_turns = 0;
    for (; i < count; i += 2, ++*n_turns)
        if (!is_message(json_array_get(messages, i), "user") ||
            !is_message(json_array_get(messages, i + 1), "assistant"))
            return refuse(err, path, plumb__format("something else as message %zu", i).s,
                          "questions and answers in turn");
    return PLUMB_OK;
}

static plumb_status check(const json_t *object, const char *path, cli_chat_note *note,
                          plumb_error *err) {
    static const char expected[] = "a conversation, as /save writes it";
    const char *format = json_string_value(json_object_get(object, "format"));
    if (format == NULL || strcmp(format, format_name) != 0)
        return refuse(err, path, "a note of another program", expected);
    const json_t *version = json_object_get(object, "version");
    if (!json_is_integer(version) || json_integer_value(version) != VERSION)
        return refuse(err, path, "a conversation of another version", "version 1");
    const json_t *level = json_object_get(object, "think_level");
    json_int_t value = json_integer_value(level);
    if (!json_is_integer(level) || value < 0 || value > HIGHEST_LEVEL)
        return refuse(err, path, "another think_level", "0 to 100");
    note->think_level = (int)value;
    return check_messages(json_object_get(object, "messages"), path, &note->n_turns, err);
}

plumb_status cli_chat_note_read(const void *text, size_t size, const char *path,
                                cli_chat_note *note, plumb_error *err) {
    if (text == NULL) return refuse(err, path, "none", "a conversation, as /save writes it");
    json_error_t fault;
    json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &fault);
    cli_chat_note read = {0};
    plumb_status status = check(object, path, &read, err);
    if (status == PLUMB_OK) {
        *note = read;
        note->conversation = json_incref(json_object_get(object, "messages"));
    }
    json_decref(object);
    return status;
}
