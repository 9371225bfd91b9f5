/* POST /v1/completions: text, or token ids, to go on with as they are. */
#include "server/openai_completions.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_STOPS = 16, MOST_LOGPROBS = 5, DEFAULT_TOKENS = 16 };

static bool read_text(const plumb_fields *fields, const json_t *text, plumb_generation *g) {
    size_t size = json_string_length(text);
    g->prompt = malloc(size + 1);
    if (!g->prompt) return plumb__field_no_memory(fields);
    memcpy(g->prompt, json_string_value(text), size + 1);
    g->prompt_size = size;
    return true;
}

static bool read_ids(const plumb_api_context *context, const plumb_fields *fields, const json_t *list,
                     plumb_generation *g) {
    const json_int_t vocabulary = plumb_text_vocab_size(context->text);
    const size_t count = json_array_size(list);
    g->ids.ids = malloc(count * sizeof *g->ids.ids);
    if (!g->ids.ids) return plumb__field_no_memory(fields);
    g->ids.capacity = (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(list, i);
        json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
        if (value < 0 || value >= vocabulary)
            return plumb__field_fault(fields, "prompt", "element %zu of 'prompt' is not a token id below %lld", i,
                                      (long long)vocabulary);
        g->ids.ids[g->ids.count++] = (int32_t)value;
    }
    return true;
}

/* A text, ids, or an array of one of either. */
static bool read_prompt(const plumb_api_context *context, const plumb_fields *fields, plumb_generation *g) {
    const json_t *prompt = json_object_get(fields->object, "prompt"), *first = json_array_get(prompt, 0);
    if (!prompt || json_is_null(prompt)) return plumb__field_fault(fields, "prompt", "'prompt' is missing");
    if (json_is_string(first) || json_is_array(first)) {
        if (json_array_size(prompt) > 1)
            return plumb__field_fault(fields, "prompt", "'prompt' has %zu prompts, expected one",
                                      json_array_size(prompt));
        prompt = first;
    }
    if (json_is_string(prompt)) return read_text(fields, prompt, g);
    if (json_array_size(prompt) > 0) return read_ids(context, fields, prompt, g);
    return plumb__field_fault(fields, "prompt", "'prompt' is neither a text nor token ids");
}

/* Members that this API has and chat completions have not, or in another form. */
static bool read_own(const plumb_fields *fields, plumb_generation *g) {
    int64_t logprobs = -1, best_of = g->runs;
    const char *suffix = NULL;
    g->most_tokens = DEFAULT_TOKENS;
    if (!plumb__field_bool(fields, "echo", &g->echo) ||
        !plumb__field_int(fields, "max_tokens", -1, INT32_MAX, &g->most_tokens) ||
        !plumb__field_int(fields, "logprobs", 0, MOST_LOGPROBS, &logprobs) ||
        !plumb__field_int(fields, "best_of", 1, INT32_MAX, &best_of) ||
        !plumb__field_string(fields, "suffix", &suffix) || !plumb__field_stops(fields, "stop", MOST_STOPS, g))
        return false;
    if (suffix && suffix[0]) return plumb__field_fault(fields, "suffix", "'suffix' is not supported");
    if (best_of != g->runs)
        return plumb__field_fault(fields, "best_of", "'best_of' is not supported, except equal to 'n'");
    if (g->most_tokens == 0 && !g->echo)
        return plumb__field_fault(fields, "max_tokens", "'max_tokens' is 0, which leaves nothing without 'echo'");
    g->logprobs = logprobs >= 0;
    g->top_logprobs = logprobs > 0 ? (int)logprobs : 0;
    return true;
}

/* A format goes into the messages, of which there are none here. */
static bool refuse_format(const plumb_fields *fields) {
    static const char *const types[] = {"text", NULL};
    plumb_fields format;
    bool present;
    int type;
    return plumb__fields_of(fields, "response_format", &format, &present) &&
           (!present || plumb__field_choice(&format, "type", types, &type));
}

static bool begin(const plumb_api_context *context, const plumb_fields *fields, const plumb_generation *g,
                  plumb_api_request *r) {
    r->answer.kind = "text_completion";
    r->text = context->text;
    r->logprobs = g->logprobs;
    r->top_logprobs = g->top_logprobs > 0;
    r->begins_with_bos = g->prompt != NULL;
    r->runs = calloc((size_t)g->runs, sizeof *r->runs);
    plumb__openai_begin_answer(&r->answer, context, "cmpl-", g->runs);
    return r->runs || plumb__field_no_memory(fields);
}

static bool read_fields(const plumb_api_context *context, const plumb_fields *fields, plumb_generation *g,
                        plumb_api_request *r) {
    const char *model;
    if (!read_prompt(context, fields, g) || !plumb__openai_sampling(context, fields, g) || !read_own(fields, g) ||
        !plumb__openai_streaming(fields, &r->answer.stream, &r->answer.include_usage) ||
        !plumb__field_string(fields, "model", &model) || !refuse_format(fields) ||
        !plumb__openai_refuse_unsupported(fields))
        return false;
    g->streamed = r->answer.stream;
    return begin(context, fields, g, r);
}

static plumb_status read_body(const plumb_api_context *context, void *state, const char *body, size_t size,
                              plumb_api_request **request, plumb_generation **generation, plumb_api_error *error) {
    (void)state;
    plumb_api_request *r = calloc(1, sizeof *r);
    plumb_status status = plumb__openai_read(context, body, size, read_fields, r, generation, error);
    if (status == PLUMB_OK) *request = r;
    else plumb__openai_completions_destroy(r);
    return status;
}

const plumb_api plumb__openai_completions = {
    .method = "POST",
    .path = "/v1/completions",
    .read = read_body,
    .event = plumb__openai_completions_event,
    .refuse = plumb__openai_refuse,
    .destroy = plumb__openai_completions_destroy,
};
