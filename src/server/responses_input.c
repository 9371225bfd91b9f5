/* Items of a response's input as messages.
 *
 * Reasoning, text and calls of one answer are items of their own; the conversation gathers them into one
 * message.  Reasoning that was only summarised is told as its summary; what is encrypted for somebody else is
 * passed over. */
#include "server/responses.h"

#include <string.h>

#include "server/openai.h"

static bool required(const plumb_fields *item, const char *key, const char **value) {
    if (!plumb__field_string(item, key, value)) return false;
    return *value || plumb__field_fault(item, key, "'%s' is missing", key);
}

/* The role decides whether the parts are of the answer or of what it answers. */
static bool read_message(const plumb_fields *item, plumb_conversation *turn) {
    static const char *const roles[] = {"user", "system", "developer", "assistant", NULL};
    static const char *const published[] = {"user", "system", "system"};
    enum { ASSISTANT = 3 };
    int role = -1;
    json_t *content;
    if (!plumb__field_choice(item, "role", roles, &role)) return false;
    if (role < 0) return plumb__field_fault(item, "role", "'role' is missing");
    if (!plumb__openai_content(item, "content", &content)) return false;
    if (!content) return plumb__field_fault(item, "content", "'content' is missing");
    if (role != ASSISTANT) {
        plumb__conversation_say(turn, published[role], content);
        return true;
    }
    plumb__conversation_assistant(turn);
    plumb__conversation_content(turn, content);
    json_decref(content);
    return true;
}

static bool read_reasoning_texts(const plumb_fields *item, const char *key, plumb_conversation *turn,
                                 bool *any) {
    json_t *parts = NULL;
    if (!plumb__field_array(item, key, &parts)) return false;
    for (size_t i = 0; i < json_array_size(parts); i++) {
        plumb_fields part;
        if (!plumb__fields_at(item, key, parts, i, &part)) return false;
        const json_t *text = json_object_get(part.object, "text");
        if (!json_is_string(text)) return plumb__field_fault(&part, "text", "'text' is missing or no string");
        plumb__conversation_reasoning(turn, json_string_value(text), json_string_length(text));
        *any = true;
    }
    return true;
}

static bool read_reasoning(const plumb_fields *item, plumb_conversation *turn) {
    bool any = false;
    plumb__conversation_reasoning(turn, "", 0); /* an answer's, even if it says nothing that can be read */
    return read_reasoning_texts(item, "content", turn, &any) &&
           (any || read_reasoning_texts(item, "summary", turn, &any));
}

static bool read_call(const plumb_fields *item, plumb_conversation *turn) {
    const char *call_id = NULL, *name = NULL, *name_space = NULL;
    json_t *arguments = json_object_get(item->object, "arguments");
    if (!required(item, "call_id", &call_id) || !required(item, "name", &name) ||
        !plumb__field_string(item, "namespace", &name_space))
        return false;
    if (!json_is_string(arguments))
        return plumb__field_fault(item, "arguments", "'arguments' is missing or no string");
    json_t *full = plumb__responses_full_name(name_space, name);
    if (!full) return plumb__field_no_memory(item);
    plumb__conversation_call(turn, call_id, json_string_value(full), json_incref(arguments));
    json_decref(full);
    return true;
}

static bool read_result(const plumb_fields *item, plumb_conversation *turn) {
    const char *call_id = NULL;
    json_t *output;
    if (!required(item, "call_id", &call_id) || !plumb__openai_content(item, "output", &output)) return false;
    if (!output) return plumb__field_fault(item, "output", "'output' is missing");
    plumb__conversation_result(turn, call_id, output);
    return true;
}

static bool read_known_item(const plumb_fields *item, plumb_conversation *turn) {
    static const struct {
        const char *type;
        bool (*read)(const plumb_fields *item, plumb_conversation *turn);
    } kinds[] = {{"message", read_message},
                 {"reasoning", read_reasoning},
                 {"function_call", read_call},
                 {"function_call_output", read_result}};
    const char *type = "message"; /* a message may leave it out */
    if (!plumb__field_string(item, "type", &type)) return false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].type, type) == 0) return kinds[i].read(item, turn);
    return plumb__field_fault(item, "type",
                              "items of type '%.40s' are not supported: expected message, reasoning, "
                              "function_call, function_call_output or item_reference", type);
}

/* A reference may leave out its type, as a message may; it has nothing but an id. */
static bool is_reference(const plumb_fields *item) {
    const json_t *type = json_object_get(item->object, "type");
    if (json_is_string(type)) return strcmp(json_string_value(type), "item_reference") == 0;
    return json_object_get(item->object, "id") && !json_object_get(item->object, "role");
}

/* Items that may be referred to, by their ids; null: it was.  Each response is looked up once, and no item stands twice
 * in a conversation: a short request stays a short prompt, or one that was here before. */
typedef struct references {
    plumb_responses_memory *memory;
    json_t *known;
} references;

static bool learn(references *r, const plumb_fields *reference, const char *id) {
    json_t *items, *item;
    size_t i;
    bool made, whole = plumb__responses_memory_find_items(r->memory, id, &items, &made);
    json_array_foreach(items, i, item)
        whole = whole && json_object_set(r->known, json_string_value(json_object_get(item, "id")), item) == 0;
    json_decref(items);
    if (!whole) return plumb__field_no_memory(reference);
    if (json_object_get(r->known, id)) return true;
    plumb__field_fault(reference, "id", "the item '%.63s' is not held%s", id,
                       made ? ": its response had store false, did not finish, or has given way to others" : "");
    reference->error->refusal = made ? PLUMB_REFUSAL_CONFLICT : PLUMB_REFUSAL_NOT_FOUND;
    return false;
}

/* An item of an answer of this server, which its client does not tell again. */
static bool read_reference(const plumb_fields *reference, references *r, plumb_conversation *turn) {
    const char *id = NULL;
    if (!required(reference, "id", &id)) return false;
    if (!json_object_get(r->known, id) && !learn(r, reference, id)) return false;
    json_t *found = json_incref(json_object_get(r->known, id));
    plumb_fields item = *reference;
    item.object = found;
    bool ok = !json_is_null(found) || plumb__field_fault(reference, "id", "the item '%.63s' is referred to twice", id);
    ok = ok && read_known_item(&item, turn) &&
         (json_object_set_new(r->known, id, json_null()) == 0 || plumb__field_no_memory(reference));
    json_decref(found);
    return ok;
}

static bool read_items(const plumb_fields *fields, const json_t *input, references *r, plumb_conversation *turn) {
    for (size_t i = 0; i < json_array_size(input); i++) {
        plumb_fields item;
        if (!plumb__fields_at(fields, "input", input, i, &item)) return false;
        if (!(is_reference(&item) ? read_reference(&item, r, turn) : read_known_item(&item, turn))) return false;
    }
    return true;
}

bool plumb__responses_input(const plumb_fields *fields, plumb_responses_memory *memory, plumb_conversation *turn) {
    json_t *input = json_object_get(fields->object, "input");
    if (json_is_string(input)) {
        plumb__conversation_say(turn, "user", json_incref(input));
        return true;
    }
    if (!json_is_array(input) || json_array_size(input) == 0)
        return plumb__field_fault(fields, "input", "'input' is %s: expected a string or an array of items",
                                  !input || json_is_null(input) ? "missing"
                                  : json_is_array(input)        ? "empty"
                                                                : "neither");
    references r = {memory, json_object()};
    bool ok = r.known ? read_items(fields, input, &r, turn) : plumb__field_no_memory(fields);
    json_decref(r.known);
    return ok;
}
