/* Tools of a response: functions in their flat form, and how far the model may choose among them. */
#include "server/responses.h"

#include <string.h>

#include "server/openai.h"

/* {"type": "function", "name", "description", "parameters", "strict"} without what the prompt does not show. */
static bool add_tool(const plumb_fields *tool, json_t *tools) {
    static const char *const shown[] = {"name", "description", "parameters"};
    const char *type = NULL;
    if (!plumb__field_string(tool, "type", &type)) return false;
    if (!type || strcmp(type, "function") != 0)
        return plumb__field_fault(tool, "type", "tools of type '%.40s' are not supported: expected 'function'",
                                  type ? type : "");
    bool strict;
    if (!plumb__field_bool(tool, "strict", &strict) || !plumb__openai_check_function(tool)) return false;
    json_t *function = json_object();
    bool whole = function != NULL;
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        json_t *value = json_object_get(tool->object, shown[i]);
        if (value && !json_is_null(value)) whole = whole && json_object_set(function, shown[i], value) == 0;
    }
    bool added = json_array_append_new(tools, json_pack("{s:s,s:o}", "type", "function", "function", function)) == 0;
    return (whole && added) || plumb__field_no_memory(tool);
}

/* "auto", "none", "required", or {"type": "function", "name"}. */
static bool read_choice(const plumb_api_context *context, const plumb_fields *fields, bool parallel, json_t *tools,
                        plumb_generation *g) {
    static const char *const modes[] = {"auto", "none", "required", NULL};
    enum { AUTO, NONE, REQUIRED };
    if (json_is_object(json_object_get(fields->object, "tool_choice"))) {
        plumb_fields choice;
        bool present;
        const char *type = NULL, *name = NULL;
        if (!plumb__fields_of(fields, "tool_choice", &choice, &present) ||
            !plumb__field_string(&choice, "type", &type) || !plumb__field_string(&choice, "name", &name))
            return false;
        if (!type || strcmp(type, "function") != 0)
            return plumb__field_fault(&choice, "type", "'type' is '%.40s', expected 'function'", type ? type : "");
        if (!name) return plumb__field_fault(&choice, "name", "'name' is missing");
        return plumb__openai_force_calls(fields, "tool_choice", tools, name, parallel, g);
    }
    int mode = AUTO;
    if (!plumb__field_choice(fields, "tool_choice", modes, &mode)) return false;
    if (mode == REQUIRED) return plumb__openai_force_calls(fields, "tool_choice", tools, NULL, parallel, g);
    g->tools_offered = tools && mode != NONE;
    return !tools || mode != NONE || plumb__openai_forbid_calls(context, fields, g);
}

bool plumb__responses_tools(const plumb_api_context *context, const plumb_fields *fields, bool parallel,
                            json_t **tools, plumb_generation *generation) {
    *tools = NULL;
    return plumb__openai_list_tools(fields, add_tool, tools) &&
           read_choice(context, fields, parallel, *tools, generation);
}
