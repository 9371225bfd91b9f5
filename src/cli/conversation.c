/* Messages in JSON; see conversation.h. */
#include "cli/conversation.h"

#include "base/error.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

cli_conversation *cli_conversation_create(const char *system, plumb_error *err) {
    json_t *messages = json_array();
    if (messages == NULL) {
        (void)plumb__fail_memory(err, "conversation", 0);
        return NULL;
    }
    if (system == NULL) return messages;
    if (cli_conversation_add(messages, "system", system, strlen(system), err) == PLUMB_OK)
        return messages;
    json_decref(messages);
    return NULL;
}

void cli_conversation_destroy(cli_conversation *conversation) {
    json_decref(conversation);
}

plumb_status cli_conversation_add(cli_conversation *conversation, const char *role,
                                  const char *content, size_t size, plumb_error *err) {
    json_t *string = json_stringn(content, size);
    if (string == NULL)
        return plumb__fail(err, PLUMB_ERROR_TEXT, NULL, role, -1, "bytes that are not UTF-8",
                           "text in UTF-8");
    json_t *message = json_pack("{s:s,s:o}", "role", role, "content", string);
    if (message == NULL || json_array_append_new(conversation, message) != 0)
        return plumb__fail_memory(err, "message", size);
    return PLUMB_OK;
}

void cli_conversation_drop_last(cli_conversation *conversation) {
    size_t count = json_array_size(conversation);
    if (count > 0) (void)json_array_remove(conversation, count - 1);
}

cli_conversation *cli_conversation_copy(const cli_conversation *conversation) {
    return json_copy((json_t *)(size_t)conversation); /* which counts references to its messages */
}

size_t cli_conversation_count(const cli_conversation *conversation) {
    return json_array_size(conversation);
}

cli_chat_message cli_conversation_message(const cli_conversation *conversation, size_t i) {
    const json_t *message = json_array_get(conversation, i);
    const json_t *content = json_object_get(message, "content");
    return (cli_chat_message){.role = json_string_value(json_object_get(message, "role")),
                              .content = json_string_value(content),
                              .size = json_string_length(content)};
}

plumb_status cli_conversation_encode(const cli_conversation *conversation, const plumb_text *text,
                                     const plumb_chat_options *options, plumb_tokens *tokens,
                                     plumb_error *err) {
    char *messages = json_dumps(conversation, JSON_COMPACT);
    if (messages == NULL) return plumb__fail_memory(err, "conversation", 0);
    plumb_status status = plumb_chat_encode(text, messages, options, tokens, err);
    free(messages);
    return status;
}
