/* All of a request that goes into the prompt, for generating and for counting.
 *
 * How long the model thinks is one number here, 1 to 100.  A budget of tokens becomes it on a scale on which
 * the names that the model was trained with are a factor of four apart: 4,096 tokens are low (50), 16,384 high
 * (75), 65,536 max (100); 1,024, the least there is, are 25.  output_config.effort says it directly and wins. */
#include "server/anthropic.h"

#include <math.h>
#include <string.h>

#include "server/openai.h"

enum { LEAST_BUDGET = 1024, LEAST_EFFORT = 25, MOST_EFFORT = 100 };

static int effort_of_budget(int64_t tokens) {
    double effort = LEAST_EFFORT + 12.5 * log2((double)tokens / LEAST_BUDGET);
    return effort > MOST_EFFORT ? MOST_EFFORT : (int)lround(effort);
}

/* thinking: {type, budget_tokens, display}.  *enabled: asked for in so many words. */
static bool read_thinking(const plumb_fields *fields, int64_t most_tokens, plumb_generation *g, bool *enabled,
                          bool *show) {
    static const char *const types[] = {"disabled", "enabled", "adaptive", NULL};
    static const char *const displays[] = {"summarized", "omitted", NULL};
    enum { DISABLED, ENABLED };
    plumb_fields thinking;
    bool present;
    int type = -1, display = 0;
    int64_t budget = 0;
    if (!plumb__fields_of(fields, "thinking", &thinking, &present)) return false;
    if (!present) return true;
    if (!plumb__field_choice(&thinking, "type", types, &type) ||
        !plumb__field_choice(&thinking, "display", displays, &display) ||
        !plumb__field_int(&thinking, "budget_tokens", LEAST_BUDGET, INT64_C(1) << 53, &budget))
        return false;
    if (type < 0) return plumb__field_fault(&thinking, "type", "'type' is missing");
    if (type == ENABLED && budget == 0)
        return plumb__field_fault(&thinking, "budget_tokens", "'budget_tokens' is missing");
    if (most_tokens >= 0 && budget >= most_tokens)
        return plumb__field_fault(&thinking, "budget_tokens", "'budget_tokens' must be less than 'max_tokens'");
    g->thinking = *enabled = type != DISABLED;
    *show = display == 0;
    if (budget > 0) g->effort = effort_of_budget(budget);
    return true;
}

/* {"name", "description", "input_schema"} as it is published. */
static bool add_tool(const plumb_fields *tool, json_t *tools) {
    const char *type = "custom", *name = NULL;
    json_t *schema = json_object_get(tool->object, "input_schema");
    json_t *description = json_object_get(tool->object, "description");
    if (!plumb__field_string(tool, "type", &type)) return false;
    if (strcmp(type, "custom") != 0)
        return plumb__field_fault(tool, "type", "tools of type '%.40s' are not supported, only those of one's own",
                                  type);
    if (!plumb__openai_check_function(tool) || !plumb__field_string(tool, "name", &name)) return false;
    if (!json_is_object(schema))
        return plumb__field_fault(tool, "input_schema", "'input_schema' is missing or no object");
    json_t *function = json_is_string(description) ? json_pack("{s:s,s:O,s:O}", "name", name, "description",
                                                               description, "parameters", schema)
                                                   : json_pack("{s:s,s:O}", "name", name, "parameters", schema);
    return json_array_append_new(tools, json_pack("{s:s,s:o}", "type", "function", "function", function)) == 0 ||
           plumb__field_no_memory(tool);
}

static bool read_choice(const plumb_api_context *context, const plumb_fields *fields, json_t *tools,
                        plumb_generation *g, bool *parallel) {
    static const char *const types[] = {"auto", "any", "tool", "none", NULL};
    enum { AUTO, ANY, TOOL, NONE };
    plumb_fields choice;
    bool present, single = false;
    int type = AUTO;
    const char *name = NULL;
    if (!plumb__fields_of(fields, "tool_choice", &choice, &present)) return false;
    if (present) {
        type = -1;
        if (!plumb__field_choice(&choice, "type", types, &type) ||
            !plumb__field_bool(&choice, "disable_parallel_tool_use", &single) ||
            !plumb__field_string(&choice, "name", &name))
            return false;
        if (type < 0) return plumb__field_fault(&choice, "type", "'type' is missing");
        if (type == TOOL && !name) return plumb__field_fault(&choice, "name", "'name' is missing");
    }
    *parallel = !single;
    if (type == ANY || type == TOOL)
        return plumb__openai_force_calls(fields, "tool_choice", tools, type == TOOL ? name : NULL, !single, g);
    g->tools_offered = tools && type == AUTO;
    return !tools || type == AUTO || plumb__openai_forbid_calls(context, fields, g);
}

/* {"type": "json_schema", "schema"} */
static bool read_format(const plumb_fields *format, json_t *messages, plumb_generation *g) {
    static const char *const types[] = {"json_schema", NULL};
    plumb_fields schema;
    bool present;
    int type = -1;
    if (!plumb__field_choice(format, "type", types, &type)) return false;
    if (type < 0) return plumb__field_fault(format, "type", "'type' is missing");
    if (!plumb__fields_of(format, "schema", &schema, &present)) return false;
    if (!present) return plumb__field_fault(format, "schema", "'schema' is missing");
    if (g->grammar) return true; /* calls that are demanded leave no text */
    return plumb__openai_json_schema(format, "schema", json_object_get(format->object, "schema"), messages, g);
}

/* output_config: {effort, format}; output_format is how clients said the second before. */
static bool read_output_config(const plumb_fields *fields, json_t *messages, plumb_generation *g) {
    static const char *const efforts[] = {"low", "medium", "high", "xhigh", "max", NULL};
    plumb_fields config = {0}, format;
    bool has_config, has_format = false, thinking = true;
    int effort = 0;
    if (!plumb__fields_of(fields, "output_config", &config, &has_config)) return false;
    if (has_config && (!plumb__field_choice(&config, "effort", efforts, &effort) ||
                       !plumb__openai_effort(&config, "effort", &thinking, &g->effort) ||
                       !plumb__fields_of(&config, "format", &format, &has_format)))
        return false;
    if (has_config && json_is_object(json_object_get(config.object, "task_budget")))
        return plumb__field_fault(&config, "task_budget", "'task_budget' is not supported");
    if (!has_format && !plumb__fields_of(fields, "output_format", &format, &has_format)) return false;
    return !has_format || read_format(&format, messages, g);
}

bool plumb__anthropic_prompt(const plumb_api_context *context, const plumb_fields *fields, int64_t most_tokens,
                             plumb_generation *g, plumb_anthropic_manner *manner) {
    plumb_conversation conversation = {0};
    json_t *tools = NULL;
    bool continues = false, enabled = false;
    g->thinking = context->thinking;
    g->effort = context->effort;
    g->call_prefix = "toolu_";
    *manner = (plumb_anthropic_manner){.parallel = true, .show_thinking = true};
    bool ok = plumb__anthropic_messages_read(fields, &conversation) &&
              read_thinking(fields, most_tokens, g, &enabled, &manner->show_thinking) &&
              plumb__openai_list_tools(fields, add_tool, &tools) &&
              read_choice(context, fields, tools, g, &manner->parallel) &&
              plumb__conversation_ask(fields, "messages", conversation.messages, &continues) &&
              plumb__anthropic_context(fields, conversation.messages, g) &&
              (!tools || plumb__openai_system_member(fields, conversation.messages, "tools", tools)) &&
              read_output_config(fields, conversation.messages, g);
    if (ok && continues && enabled)
        ok = plumb__field_fault(fields, "messages", "an answer that has begun cannot be continued with thinking");
    if (continues) g->thinking = false; /* the answer has begun, so its reasoning is over */
    ok = ok && plumb__openai_set_messages(fields, conversation.messages, g);
    json_decref(tools);
    plumb__conversation_free(&conversation);
    return ok;
}
