/* POST /v1/messages, as the official clients' types describe it; see anthropic.h for its parts. */
#include "server/anthropic.h"

#include <stdlib.h>

#include "server/openai_answer.h"

enum { MOST_STOP_SEQUENCES = 64 };
#define MOST_WHOLE_NUMBER (INT64_C(1) << 53)

void plumb__anthropic_destroy(plumb_api_request *r) {
    if (!r) return;
    json_decref(r->call_name);
    plumb__text_free(&r->text);
    plumb__text_free(&r->content);
    free(r);
}

/* Members that are checked and change nothing here. */
static bool check_harmless(const plumb_fields *fields) {
    static const char *const tiers[] = {"auto", "standard_only", NULL};
    static const char *const objects[] = {"metadata", "cache_control"};
    const char *string;
    int choice;
    plumb_fields inner;
    bool present;
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++)
        if (!plumb__fields_of(fields, objects[i], &inner, &present)) return false;
    return plumb__field_string(fields, "model", &string) && plumb__field_choice(fields, "service_tier", tiers, &choice);
}

/* Things that would change the answer, were they left out in silence. */
static bool refuse_unsupported(const plumb_fields *fields) {
    static const char *const members[] = {"container", "mcp_servers", "compaction", "thread"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        const json_t *value = json_object_get(fields->object, members[i]);
        bool empty = json_is_array(value) && json_array_size(value) == 0;
        if (value && !json_is_null(value) && !empty)
            return plumb__field_fault(fields, members[i], "'%s' is not supported", members[i]);
    }
    return plumb__openai_refuse_unsupported(fields);
}

static bool read_stops(const plumb_fields *fields, plumb_generation *g) {
    json_t *array;
    return plumb__field_array(fields, "stop_sequences", &array) &&
           plumb__field_stops(fields, "stop_sequences", MOST_STOP_SEQUENCES, g);
}

static bool read_sampling(const plumb_api_context *context, const plumb_fields *fields, plumb_generation *g) {
    int64_t top_k = context->sampling->top_k;
    g->sampling = *context->sampling;
    if (!plumb__field_float(fields, "temperature", 0, 1, &g->sampling.temperature) ||
        !plumb__field_float(fields, "top_p", 0, 1, &g->sampling.top_p) ||
        !plumb__field_int(fields, "top_k", 0, INT32_MAX, &top_k))
        return false;
    g->sampling.top_k = (int32_t)top_k;
    return true;
}

static bool read_fields(const plumb_api_context *context, const plumb_fields *fields, plumb_generation *g,
                        plumb_api_request *r) {
    plumb_anthropic_manner manner;
    if (!plumb__field_int(fields, "max_tokens", 1, MOST_WHOLE_NUMBER, &g->most_tokens)) return false;
    if (g->most_tokens < 0) return plumb__field_fault(fields, "max_tokens", "'max_tokens' is missing");
    if (!plumb__field_bool(fields, "stream", &r->stream) || !read_sampling(context, fields, g) ||
        !read_stops(fields, g) || !refuse_unsupported(fields) || !check_harmless(fields) ||
        !plumb__anthropic_prompt(context, fields, g->most_tokens, g, &manner))
        return false;
    g->streamed = r->stream;
    r->parallel = manner.parallel;
    r->show_thinking = manner.show_thinking;
    context->new_id(context->user, "msg_", r->id);
    return true;
}

static plumb_status read_body(const plumb_api_context *context, void *state, const char *body, size_t size,
                              plumb_api_request **request, plumb_generation **generation, plumb_api_error *error) {
    (void)state;
    plumb_api_request *r = calloc(1, sizeof *r);
    if (r) r->context = context;
    plumb_status status = plumb__openai_read(context, body, size, read_fields, r, generation, error);
    if (status == PLUMB_OK) *request = r;
    else plumb__anthropic_destroy(r);
    return status;
}

const plumb_api plumb__anthropic_messages = {
    .method = "POST",
    .path = "/v1/messages",
    .read = read_body,
    .event = plumb__anthropic_event,
    .refuse = plumb__anthropic_refuse,
    .destroy = plumb__anthropic_destroy,
};
