/* Whether and how long the model thinks, in all the ways that clients have of asking.
 *
 * The model knows one number from 1 to 100, or chat mode, which has no reasoning.  Names that it was trained
 * with are low = 50, high = 75 and max = 100 (tokenizer-and-chat.md section 4.2); the others go to the nearest.
 *
 * A switch wins over any effort. */
#include "server/openai.h"

#include <string.h>

static const struct {
    const char *name;
    int effort; /* 0: chat mode */
} efforts[] = {
    {"none", 0}, {"minimal", 0}, {"low", 50}, {"medium", 75}, {"high", 75}, {"xhigh", 100}, {"max", 100},
};

bool plumb__openai_effort(const plumb_fields *fields, const char *key, bool *thinking, int *effort) {
    if (json_is_number(json_object_get(fields->object, key))) {
        int64_t number = 0;
        if (!plumb__field_int(fields, key, 1, 100, &number)) return false;
        *thinking = true;
        *effort = (int)number;
        return true;
    }
    const char *name = NULL;
    if (!plumb__field_string(fields, key, &name)) return false;
    if (!name) return true;
    for (size_t i = 0; i < sizeof efforts / sizeof efforts[0]; i++) {
        if (strcmp(efforts[i].name, name) != 0) continue;
        *thinking = efforts[i].effort > 0;
        if (*thinking) *effort = efforts[i].effort;
        return true;
    }
    return plumb__field_fault(fields, key,
                              "'%s' is '%.40s', expected none, minimal, low, medium, high, xhigh, max or 1 to 100",
                              key, name);
}

/* The names that the model was trained with. */
const char *plumb__openai_effort_name(bool thinking, int effort) {
    if (!thinking) return "none";
    return effort == 50 ? "low" : effort == 75 ? "high" : effort == 100 ? "max" : NULL;
}

bool plumb__openai_reasoning(const plumb_fields *fields, plumb_generation *g) {
    static const char *const types[] = {"disabled", "enabled", NULL};
    plumb_fields reasoning, thinking, template;
    bool has_reasoning, has_thinking, has_template, drop = !g->keep_reasoning;
    int type = -1;
    if (!plumb__fields_of(fields, "reasoning", &reasoning, &has_reasoning) ||           /* routers' way */
        !plumb__fields_of(fields, "thinking", &thinking, &has_thinking) ||              /* DeepSeek's service */
        !plumb__fields_of(fields, "chat_template_kwargs", &template, &has_template) ||  /* other local servers */
        !plumb__openai_effort(fields, "reasoning_effort", &g->thinking, &g->effort))
        return false;
    if (has_reasoning && !plumb__openai_effort(&reasoning, "effort", &g->thinking, &g->effort)) return false;
    if (has_template && !plumb__openai_effort(&template, "reasoning_effort", &g->thinking, &g->effort)) return false;

    if (has_reasoning && !plumb__field_bool(&reasoning, "enabled", &g->thinking)) return false;
    if (has_thinking && !plumb__field_choice(&thinking, "type", types, &type)) return false;
    if (type >= 0) g->thinking = type == 1;
    if (has_template && (!plumb__field_bool(&template, "thinking", &g->thinking) ||
                         !plumb__field_bool(&template, "enable_thinking", &g->thinking) ||
                         !plumb__field_bool(&template, "drop_thinking", &drop))) /* the published encoder's own */
        return false;
    g->keep_reasoning = !drop;
    return true;
}
