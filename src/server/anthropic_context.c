/* context_management: what of the conversation is to be left out of the prompt.
 *
 * Thinking of earlier turns is all that this server clears; the published format by itself drops it where there are
 * no tools, and keeps it where there are.  What else a provider does (results of tools, summaries) is refused. */
#include "server/anthropic.h"

#include <string.h>

#define MOST_TURNS (INT64_C(1) << 31)

/* A turn is what stands between two messages of the user; results of calls are in the middle of it. */
static void clear_thinking(json_t *messages, int64_t kept_turns) {
    int64_t turns = 0;
    bool in_turn = false;
    for (size_t i = json_array_size(messages); i-- > 0;) {
        json_t *message = json_array_get(messages, i);
        const char *role = json_string_value(json_object_get(message, "role"));
        if (strcmp(role, "user") == 0) in_turn = false;
        if (strcmp(role, "assistant") != 0) continue;
        if (!in_turn) turns++;
        in_turn = true;
        if (turns > kept_turns) json_object_del(message, "reasoning_content");
    }
}

/* keep: "all", {"type": "all"} or {"type": "thinking_turns", "value"}; absent: one turn.  *turns is -1 for all. */
static bool read_keep(const plumb_fields *edit, int64_t *turns) {
    static const char *const types[] = {"all", "thinking_turns", NULL};
    plumb_fields keep;
    bool present;
    int type = -1;
    *turns = 1;
    if (json_is_string(json_object_get(edit->object, "keep"))) {
        if (!plumb__field_choice(edit, "keep", (const char *const[]){"all", NULL}, &type)) return false;
        *turns = -1;
        return true;
    }
    if (!plumb__fields_of(edit, "keep", &keep, &present)) return false;
    if (!present) return true;
    if (!plumb__field_choice(&keep, "type", types, &type)) return false;
    if (type < 0) return plumb__field_fault(&keep, "type", "'type' is missing");
    if (type == 0) *turns = -1;
    return type == 0 || plumb__field_int(&keep, "value", 1, MOST_TURNS, turns);
}

static bool apply(const plumb_fields *edit, json_t *messages, plumb_generation *g) {
    const char *type = NULL;
    int64_t turns;
    if (!plumb__field_string(edit, "type", &type)) return false;
    if (!type || strcmp(type, "clear_thinking_20251015") != 0)
        return plumb__field_fault(edit, "type", "edits of type '%.60s' are not supported, only clear_thinking_20251015",
                                  type ? type : "");
    if (!read_keep(edit, &turns)) return false;
    g->keep_reasoning = true;
    if (turns > 0) clear_thinking(messages, turns);
    return true;
}

bool plumb__anthropic_context(const plumb_fields *fields, json_t *messages, plumb_generation *g) {
    plumb_fields management, edit;
    bool present;
    json_t *edits = NULL;
    if (!plumb__fields_of(fields, "context_management", &management, &present)) return false;
    if (!present) return true;
    if (!plumb__field_array(&management, "edits", &edits)) return false;
    for (size_t i = 0; i < json_array_size(edits); i++)
        if (!plumb__fields_at(&management, "edits", edits, i, &edit) || !apply(&edit, messages, g)) return false;
    return true;
}
