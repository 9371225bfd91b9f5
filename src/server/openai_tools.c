/* Tools and who decides about calls.
 *
 * Tools stand in the prompt whatever tool_choice says: without them the whole conversation would have to be
 * evaluated anew when a client turns them off for one answer.  What tool_choice forbids cannot be sampled:
 * "none" takes away the token that opens every call, "required" and names leave nothing but calls. */
#include "server/openai.h"

#include <math.h>
#include <string.h>

/* Names stand unescaped between quotes in the prompt and in calls. */
static bool is_name(const char *name) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/";
    size_t length = strlen(name);
    return length > 0 && length <= 128 && strspn(name, allowed) == length;
}

bool plumb__openai_check_function(const plumb_fields *function) {
    const char *name = NULL, *description;
    plumb_fields parameters;
    bool present;
    if (!plumb__field_string(function, "name", &name) || !plumb__field_string(function, "description", &description) ||
        !plumb__fields_of(function, "parameters", &parameters, &present))
        return false;
    if (!name) return plumb__field_fault(function, "name", "'name' is missing");
    return is_name(name) || plumb__field_fault(function, "name", "'name' is '%.60s', expected letters, digits and any "
                                               "of _-.:/, 128 at most", name);
}

static bool add_tool(const plumb_fields *fields, const json_t *given, size_t i, json_t *list) {
    plumb_fields tool, function;
    const char *type = "function";
    bool present;
    if (!plumb__fields_at(fields, "tools", given, i, &tool) || !plumb__field_string(&tool, "type", &type)) return false;
    if (strcmp(type, "function") != 0)
        return plumb__field_fault(&tool, "type", "tools of type '%.40s' are not supported, only functions", type);
    if (!plumb__fields_of(&tool, "function", &function, &present)) return false;
    if (!present) return plumb__field_fault(&tool, "function", "'function' is missing");
    if (!plumb__openai_check_function(&function)) return false;
    json_t *made = json_pack("{s:s, s:O}", "type", "function", "function", json_object_get(tool.object, "function"));
    return json_array_append_new(list, made) == 0 || plumb__field_no_memory(fields);
}

bool plumb__openai_tools(const plumb_fields *fields, json_t **tools) {
    json_t *given = NULL;
    *tools = NULL;
    if (!plumb__field_array(fields, "tools", &given)) return false;
    if (!given || json_array_size(given) == 0) return true;
    json_t *list = json_array();
    bool ok = list || plumb__field_no_memory(fields);
    for (size_t i = 0; ok && i < json_array_size(given); i++) ok = add_tool(fields, given, i, list);
    if (ok) *tools = list;
    else json_decref(list);
    return ok;
}

bool plumb__openai_list_tools(const plumb_fields *fields,
                              bool (*add)(const plumb_fields *tool, json_t *tools), json_t **tools) {
    json_t *given = NULL;
    if (!plumb__field_array(fields, "tools", &given)) return false;
    if (json_array_size(given) == 0) return true;
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(given); i++) {
        plumb_fields tool;
        if (plumb__fields_at(fields, "tools", given, i, &tool) && add(&tool, list)) continue;
        json_decref(list);
        return false;
    }
    *tools = list;
    return true;
}

json_t *plumb__openai_functions(const json_t *tools, const char *name) {
    json_t *list = json_array(), *tool;
    size_t i;
    json_array_foreach(tools, i, tool) {
        const json_t *function = json_object_get(tool, "function");
        json_t *named = json_object_get(function, "name"), *parameters = json_object_get(function, "parameters");
        if (name && strcmp(json_string_value(named), name) != 0) continue;
        json_t *entry = json_is_object(parameters)
                            ? json_pack("{s:O, s:O}", "name", named, "parameters", parameters)
                            : json_pack("{s:O, s:{s:s}}", "name", named, "parameters", "type", "object");
        if (json_array_append_new(list, entry) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

bool plumb__openai_force_calls(const plumb_fields *fields, const char *key, const json_t *tools, const char *name,
                               bool several, plumb_generation *g) {
    json_t *functions = plumb__openai_functions(tools, name);
    if (!functions) return plumb__field_no_memory(fields);
    bool ok = json_array_size(functions) > 0;
    plumb_error err;
    if (!ok && name) plumb__field_fault(fields, key, "'%s' names '%.60s', which is not among the tools", key, name);
    else if (!ok) plumb__field_fault(fields, key, "'%s' asks for a call, but there are no tools", key);
    if (ok) {
        plumb_status status = plumb__grammar_calls(functions, several, &g->grammar, &err);
        ok = plumb__openai_grammar_made(fields, key, status, &err);
    }
    json_decref(functions);
    g->tools_offered = true;
    return ok;
}

bool plumb__openai_forbid_calls(const plumb_api_context *context, const plumb_fields *fields, plumb_generation *g) {
    int32_t mark = plumb_text_token_id(context->text, "｜DSML｜");
    g->tools_offered = false;
    return mark < 0 || plumb__openai_add_bias(fields, mark, -INFINITY, g);
}

/* {"type": "function", "function": {"name": ...}} */
static bool choose_named(const plumb_fields *fields, const json_t *tools, plumb_generation *g) {
    plumb_fields choice, function = {0};
    bool present;
    const char *type = NULL, *name = NULL;
    if (!plumb__fields_of(fields, "tool_choice", &choice, &present) || !plumb__field_string(&choice, "type", &type) ||
        !plumb__fields_of(&choice, "function", &function, &present))
        return false;
    if (!type || strcmp(type, "function") != 0)
        return plumb__field_fault(&choice, "type", "'type' is '%.40s', expected 'function'", type ? type : "");
    if (!present) return plumb__field_fault(&choice, "function", "'function' is missing");
    if (!plumb__field_string(&function, "name", &name)) return false;
    if (!name) return plumb__field_fault(&function, "name", "'name' is missing");
    return plumb__openai_force_calls(fields, "tool_choice", tools, name, false, g);
}

bool plumb__openai_tool_choice(const plumb_api_context *context, const plumb_fields *fields, const json_t *tools,
                               bool parallel, plumb_generation *g) {
    static const char *const modes[] = {"auto", "none", "required", NULL};
    int mode = 0;
    if (json_is_object(json_object_get(fields->object, "tool_choice"))) return choose_named(fields, tools, g);
    if (!plumb__field_choice(fields, "tool_choice", modes, &mode)) return false;
    if (mode == 2) return plumb__openai_force_calls(fields, "tool_choice", tools, NULL, parallel, g);
    if (!tools) return true;
    if (mode == 1) return plumb__openai_forbid_calls(context, fields, g);
    g->tools_offered = true;
    return true;
}
