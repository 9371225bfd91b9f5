/* Tools of a response: functions in their flat form, and how far the model may choose among them.
 *
 * Functions of a namespace are shown and called by both names, "NAMESPACE.FUNCTION", and told apart again.  A search or
 * a picture that a provider would make is an offer that a model need not take: beside functions it is left out, and the
 * response's "tools" say so; alone it is what the answer is about, and is refused like all other kinds. */
#include "server/responses.h"

#include <string.h>

#include "server/openai.h"

static const char *type_of(const json_t *tool) {
    const char *type = json_string_value(json_object_get(tool, "type"));
    return type ? type : "";
}

static bool is_left_out(const json_t *tool) {
    return strncmp(type_of(tool), "web_search", strlen("web_search")) == 0 ||
           strcmp(type_of(tool), "image_generation") == 0;
}

/* ---- What is offered ---- */

json_t *plumb__responses_full_name(const char *name_space, const char *name) {
    return name_space ? json_sprintf("%s.%s", name_space, name) : json_string(name);
}

/* {"type": "function", "name", "description", "parameters", "strict"} without what the prompt does not show. */
static bool add_function(const plumb_fields *tool, const char *name_space, json_t *tools) {
    static const char *const shown[] = {"description", "parameters"};
    const char *type = NULL, *name = NULL;
    bool strict;
    if (!plumb__field_string(tool, "type", &type)) return false;
    if (!type || strcmp(type, "function") != 0)
        return plumb__field_fault(tool, "type", "tools of type '%.40s' are not supported: expected 'function'%s",
                                  type ? type : "", name_space ? "" : " or 'namespace'");
    if (!plumb__field_bool(tool, "strict", &strict) || !plumb__openai_check_function(tool) ||
        !plumb__field_string(tool, "name", &name))
        return false;
    json_t *function = json_pack("{s:o}", "name", plumb__responses_full_name(name_space, name));
    bool whole = function != NULL;
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        json_t *value = json_object_get(tool->object, shown[i]);
        if (value && !json_is_null(value)) whole = whole && json_object_set(function, shown[i], value) == 0;
    }
    bool added = json_array_append_new(tools, json_pack("{s:s,s:o}", "type", "function", "function", function)) == 0;
    return (whole && added) || plumb__field_no_memory(tool);
}

/* {"type": "namespace", "name", "description", "tools": [functions]} */
static bool add_namespace(const plumb_fields *given, json_t *tools) {
    const char *name = NULL;
    json_t *list = NULL;
    if (!plumb__openai_check_function(given) || !plumb__field_string(given, "name", &name) ||
        !plumb__field_array(given, "tools", &list))
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        plumb_fields tool;
        if (!plumb__fields_at(given, "tools", list, i, &tool) || !add_function(&tool, name, tools)) return false;
    }
    return true;
}

static bool add_tool(const plumb_fields *tool, json_t *tools) {
    if (is_left_out(tool->object)) return true;
    if (strcmp(type_of(tool->object), "namespace") == 0) return add_namespace(tool, tools);
    return add_function(tool, NULL, tools);
}

static bool list_tools(const plumb_fields *fields, json_t **tools) {
    if (!plumb__openai_list_tools(fields, add_tool, tools)) return false;
    if (!*tools || json_array_size(*tools) > 0) return true;
    const json_t *first = json_array_get(json_object_get(fields->object, "tools"), 0);
    return plumb__field_fault(fields, "tools", "tools of type '%.40s' are not supported: expected a 'function'",
                              type_of(first));
}

/* Members that a client left out are told as null. */
static json_t *told(const json_t *tool) {
    json_t *members = strcmp(type_of(tool), "function") == 0 ? json_pack("{s:n,s:n}", "parameters", "strict")
                                                             : json_object();
    if (json_object_update(members, (json_t *)(uintptr_t)tool) == 0) return members;
    json_decref(members);
    return NULL;
}

json_t *plumb__responses_offered(const json_t *given) {
    json_t *offered = json_array(), *tool;
    size_t i;
    json_array_foreach(given, i, tool) {
        if (is_left_out(tool) || json_array_append_new(offered, told(tool)) == 0) continue;
        json_decref(offered);
        return NULL;
    }
    return offered;
}

const char *plumb__responses_namespace(const json_t *offered, const char *called) {
    json_t *tool;
    size_t i;
    json_array_foreach(offered, i, tool) {
        const char *name = json_string_value(json_object_get(tool, "name"));
        size_t size = strlen(name);
        bool fits = strncmp(called, name, size) == 0 && called[size] == '.';
        if (fits && strcmp(type_of(tool), "namespace") == 0) return name;
    }
    return NULL;
}

/* ---- What may be called ---- */

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
    return list_tools(fields, tools) && read_choice(context, fields, parallel, *tools, generation);
}
