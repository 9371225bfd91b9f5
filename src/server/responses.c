/* POST /v1/responses, as the official clients' types describe it; see responses.h for its parts.
 *
 * The object "response" is made when the request is read, with what it says echoed, and completed as items are
 * done.  What this server cannot do is refused, unless leaving it out changes nothing but convenience. */
#include "server/responses.h"

#include <stdlib.h>
#include <string.h>

#include "server/openai.h"
#include "server/openai_answer.h"

/* What is remembered for previous_response_id. */
enum { MOST_TURNS = 4096, MOST_STOPS = 16 };
#define MOST_TURN_BYTES ((int64_t)64 << 20)
#define MOST_WHOLE_NUMBER (INT64_C(1) << 53)

static void destroy(plumb_api_request *r) {
    if (!r) return;
    plumb__turn_release(r->memory, r->before);
    plumb__conversation_free(&r->turn);
    json_decref(r->response);
    json_decref(r->item.called);
    plumb__text_free(&r->item.text);
    free(r);
}

/* ---- The conversation ---- */

static bool continue_response(const plumb_fields *fields, plumb_api_request *r) {
    const char *id = NULL;
    if (!plumb__field_string(fields, "previous_response_id", &id)) return false;
    if (!id) return true;
    r->before = plumb__responses_memory_find(r->memory, id);
    if (r->before) return true;
    bool made = plumb__responses_memory_made(r->memory, id);
    if (made)
        plumb__field_fault(fields, "previous_response_id",
                           "the response '%.63s' is not held: it had store false, did not finish, or has given way "
                           "to later ones; send its conversation as 'input'", id);
    else
        plumb__field_fault(fields, "previous_response_id", "there is no response '%.63s'", id);
    fields->error->refusal = made ? PLUMB_REFUSAL_CONFLICT : PLUMB_REFUSAL_NOT_FOUND;
    return false;
}

/* Not json_copy, which leaves out members for which there is no memory. */
static json_t *copy_message(const json_t *message) {
    json_t *copy = json_object();
    if (json_object_update(copy, (json_t *)(uintptr_t)message) == 0) return copy;
    json_decref(copy);
    return NULL;
}

/* All messages: instructions of this request only, then the turns before, then this one. */
static json_t *all_messages(const plumb_fields *fields, const plumb_api_request *r, const char *instructions) {
    json_t *all = json_array(), *before = r->before ? plumb__turn_messages(r->before) : json_array();
    bool whole = all && before;
    if (instructions)
        whole = whole && json_array_append_new(all, json_pack("{s:s,s:s}", "role", "system", "content",
                                                              instructions)) == 0;
    whole = whole && json_array_extend(all, before) == 0;
    json_t *message;
    size_t i;
    /* Copies, since the last and the first of them may be given more members, which are not the turn's. */
    json_array_foreach(r->turn.messages, i, message)
        whole = whole && json_array_append_new(all, copy_message(message)) == 0;
    json_decref(before);
    if (whole) return all;
    json_decref(all);
    (void)plumb__field_no_memory(fields);
    return NULL;
}

/* ---- text: {format, verbosity} ---- */

static bool read_format(const plumb_fields *format, json_t *messages, plumb_generation *g) {
    static const char *const types[] = {"text", "json_object", "json_schema", NULL};
    enum { TEXT, JSON_OF_ANY_FORM, JSON_SCHEMA };
    int type = -1;
    plumb_fields schema;
    bool present;
    if (!plumb__field_choice(format, "type", types, &type)) return false;
    if (type < 0) return plumb__field_fault(format, "type", "'type' is missing");
    if (type == TEXT || g->grammar) return true; /* calls that are demanded leave no text */
    if (type == JSON_OF_ANY_FORM) return plumb__openai_json_object(format, messages, g);
    if (!plumb__fields_of(format, "schema", &schema, &present)) return false;
    if (!present) return plumb__field_fault(format, "schema", "'schema' is missing");
    return plumb__openai_json_schema(format, "schema", json_object_get(format->object, "schema"), messages, g);
}

static bool read_text(const plumb_fields *fields, json_t *messages, plumb_generation *g) {
    static const char *const verbosities[] = {"low", "medium", "high", NULL};
    plumb_fields text, format;
    bool present;
    int verbosity;
    if (!plumb__fields_of(fields, "text", &text, &present)) return false;
    if (!present) return true;
    if (!plumb__field_choice(&text, "verbosity", verbosities, &verbosity) ||
        !plumb__fields_of(&text, "format", &format, &present))
        return false;
    return !present || read_format(&format, messages, g);
}

/* ---- The other members ---- */

static bool read_metadata(const plumb_fields *fields) {
    plumb_fields metadata;
    bool present;
    const char *key;
    json_t *value;
    if (!plumb__fields_of(fields, "metadata", &metadata, &present)) return false;
    if (!present) return true;
    json_object_foreach((json_t *)(uintptr_t)metadata.object, key, value)
        if (!json_is_string(value)) return plumb__field_fault(&metadata, key, "'%.40s' is not a string", key);
    return true;
}

/* Things that would change the answer, were they left out in silence. */
static bool refuse_unsupported(const plumb_fields *fields) {
    static const char *const members[] = {"conversation", "prompt", "context_management", "moderation"};
    bool background = false;
    int64_t top_logprobs = 0, runs = 1;
    json_t *include = NULL, *what;
    size_t i;
    for (i = 0; i < sizeof members / sizeof members[0]; i++) {
        const json_t *value = json_object_get(fields->object, members[i]);
        if (value && !json_is_null(value))
            return plumb__field_fault(fields, members[i], "'%s' is not supported", members[i]);
    }
    if (!plumb__field_bool(fields, "background", &background) ||
        !plumb__field_int(fields, "top_logprobs", 0, 20, &top_logprobs) ||
        !plumb__field_int(fields, "n", 1, 1, &runs) ||
        !plumb__field_array(fields, "include", &include))
        return false;
    if (background) return plumb__field_fault(fields, "background", "'background' is not supported");
    if (top_logprobs > 0)
        return plumb__field_fault(fields, "top_logprobs", "log-probabilities are told by /v1/chat/completions only");
    json_array_foreach(include, i, what) {
        if (!json_is_string(what)) return plumb__field_fault(fields, "include", "'include' has other than strings");
        if (strcmp(json_string_value(what), "message.output_text.logprobs") == 0)
            return plumb__field_fault(fields, "include", "log-probabilities are told by /v1/chat/completions only");
    }
    return plumb__openai_refuse_unsupported(fields);
}

/* Members that are checked and change nothing here. */
static bool check_harmless(const plumb_fields *fields) {
    static const char *const truncations[] = {"auto", "disabled", NULL};
    static const char *const strings[] = {"model", "user", "safety_identifier", "prompt_cache_key", "service_tier",
                                          "prompt_cache_retention"};
    const char *string;
    int choice;
    int64_t calls;
    plumb_fields options;
    bool present;
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
        if (!plumb__field_string(fields, strings[i], &string)) return false;
    return plumb__field_choice(fields, "truncation", truncations, &choice) &&
           plumb__field_int(fields, "max_tool_calls", 0, MOST_WHOLE_NUMBER, &calls) &&
           plumb__fields_of(fields, "stream_options", &options, &present) && read_metadata(fields);
}

static bool read_reasoning(const plumb_fields *fields, plumb_generation *g) {
    plumb_fields reasoning;
    bool present;
    return plumb__fields_of(fields, "reasoning", &reasoning, &present) &&
           (!present || plumb__openai_effort(&reasoning, "effort", &g->thinking, &g->effort));
}

static bool read_options(const plumb_api_context *context, const plumb_fields *fields, plumb_api_request *r,
                         plumb_generation *g) {
    g->thinking = context->thinking;
    g->effort = context->effort;
    r->store = r->parallel = true;
    return plumb__field_bool(fields, "stream", &r->stream) && plumb__field_bool(fields, "store", &r->store) &&
           plumb__field_bool(fields, "parallel_tool_calls", &r->parallel) &&
           plumb__field_int(fields, "max_output_tokens", 1, MOST_WHOLE_NUMBER, &g->most_tokens) &&
           plumb__openai_sampling(context, fields, g) && plumb__field_stops(fields, "stop", MOST_STOPS, g) &&
           read_reasoning(fields, g) && refuse_unsupported(fields) && check_harmless(fields);
}

/* A turn ends with its answer, which is told only once. */
static bool check_continuation(const plumb_fields *fields, const plumb_api_request *r) {
    const char *role = json_string_value(json_object_get(json_array_get(r->turn.messages, 0), "role"));
    if (!r->before || strcmp(role, "assistant") != 0) return true;
    return plumb__field_fault(fields, "input", "'input' begins with items of an answer, which the response that is "
                              "continued has already");
}

static bool read_prompt(const plumb_api_context *context, const plumb_fields *fields, plumb_api_request *r,
                        plumb_generation *g) {
    const char *instructions = NULL;
    json_t *tools = NULL, *messages = NULL;
    bool continues = false;
    bool ok = plumb__field_string(fields, "instructions", &instructions) && continue_response(fields, r) &&
              plumb__responses_input(fields, r->memory, &r->turn) &&
              (plumb__conversation_end(&r->turn) || plumb__field_no_memory(fields)) && check_continuation(fields, r) &&
              plumb__responses_tools(context, fields, r->parallel, &tools, g) &&
              (messages = all_messages(fields, r, instructions)) != NULL &&
              plumb__conversation_ask(fields, "input", messages, &continues) &&
              (!tools || plumb__openai_system_member(fields, messages, "tools", tools)) &&
              read_text(fields, messages, g) && plumb__openai_set_messages(fields, messages, g);
    if (continues) {
        g->thinking = false; /* the answer has begun, so its reasoning is over */
        plumb__conversation_reopen(&r->turn);
    }
    json_decref(tools);
    json_decref(messages);
    return ok;
}

/* ---- The object ---- */

static json_t *given_or(const plumb_fields *fields, const char *key, json_t *otherwise) {
    json_t *given = json_object_get(fields->object, key);
    if (!given || json_is_null(given)) return otherwise;
    json_decref(otherwise);
    return json_incref(given);
}

/* The effort as it was asked for, or as it is: by its name where it has one. */
static json_t *effort_object(const plumb_fields *fields, const plumb_generation *g) {
    plumb_fields asked;
    bool present;
    const char *name = plumb__openai_effort_name(g->thinking, g->effort);
    json_t *effort = name ? json_string(name) : json_integer(g->effort);
    if (plumb__fields_of(fields, "reasoning", &asked, &present) && present) effort = given_or(&asked, "effort", effort);
    return json_pack("{s:o,s:n}", "effort", effort, "summary");
}

static json_t *make_response(const plumb_fields *fields, const plumb_api_request *r, const plumb_generation *g) {
    const plumb_api_context *context = r->context;
    json_t *response = json_pack(
        "{s:s,s:s,s:I,s:s,s:b,s:n,s:n,s:n,s:s,s:[],s:b,s:b,s:s}", "id", r->id, "object", "response", "created_at",
        (json_int_t)context->now(context->user), "status", "in_progress", "background", false, "completed_at", "error",
        "incomplete_details", "model", context->model, "output", "parallel_tool_calls", r->parallel, "store", r->store,
        "truncation", "disabled");
    json_t *echo = json_pack(
        "{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o*}", "instructions", given_or(fields, "instructions", json_null()),
        "max_output_tokens", given_or(fields, "max_output_tokens", json_null()), "metadata",
        given_or(fields, "metadata", json_object()), "previous_response_id",
        given_or(fields, "previous_response_id", json_null()), "reasoning", effort_object(fields, g), "temperature",
        given_or(fields, "temperature", plumb__json_float(g->sampling.temperature)), "text",
        given_or(fields, "text", json_pack("{s:{s:s}}", "format", "type", "text")), "tool_choice",
        given_or(fields, "tool_choice", json_string("auto")), "tools",
        plumb__responses_offered(json_object_get(fields->object, "tools")), "top_p",
        given_or(fields, "top_p", plumb__json_float(g->sampling.top_p)), "user", given_or(fields, "user", NULL));
    bool whole = json_object_update(response, echo) == 0;
    json_decref(echo);
    if (whole) return response;
    json_decref(response);
    return NULL;
}

static bool read_fields(const plumb_api_context *context, const plumb_fields *fields, plumb_generation *g,
                        plumb_api_request *r) {
    if (!read_options(context, fields, r, g) || !read_prompt(context, fields, r, g)) return false;
    g->streamed = r->stream;
    plumb__responses_memory_new_id(r->memory, context->new_id, context->user, r->id);
    r->response = make_response(fields, r, g);
    return r->response || plumb__field_no_memory(fields);
}

static plumb_status read_body(const plumb_api_context *context, void *state, const char *body, size_t size,
                              plumb_api_request **request, plumb_generation **generation, plumb_api_error *error) {
    plumb_api_request *r = calloc(1, sizeof *r);
    if (r) {
        r->context = context;
        r->memory = state;
    }
    plumb_status status = plumb__openai_read(context, body, size, read_fields, r, generation, error);
    if (status == PLUMB_OK) *request = r;
    else destroy(r);
    return status;
}

static plumb_status create_state(void **state, plumb_error *err) {
    plumb_responses_memory *memory;
    plumb_status status = plumb__responses_memory_create(MOST_TURNS, MOST_TURN_BYTES, &memory, err);
    if (status == PLUMB_OK) *state = memory;
    return status;
}

static void destroy_state(void *state) { plumb__responses_memory_destroy(state); }

const plumb_api plumb__openai_responses = {
    .method = "POST",
    .path = "/v1/responses",
    .read = read_body,
    .event = plumb__responses_event,
    .refuse = plumb__openai_refuse,
    .destroy = destroy,
    .create_state = create_state,
    .destroy_state = destroy_state,
};
