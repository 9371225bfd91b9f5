/* What all answers bear, and how their streams end; what an answer cost, and how long it took. */
#include "server/openai_answer.h"

#include <stdio.h>

#define TEXT(number) #number
#define NUMBER(macro) TEXT(macro)
/* Answers repeat where this is the same, and the model. */
static const char fingerprint[] = "plumb-" PLUMB_VERSION "-arithmetic-" NUMBER(PLUMB_ARITHMETIC_REVISION);

plumb_status plumb__openai_read(const plumb_api_context *context, const char *body, size_t size,
                                plumb_openai_reader read_fields, plumb_api_request *request,
                                plumb_generation **generation, plumb_api_error *error) {
    *error = (plumb_api_error){0};
    plumb_fields fields = {.error = error};
    json_t *root = NULL;
    plumb_generation *g = plumb__generation_create();
    bool ok = (g && request) || plumb__field_no_memory(&fields);
    ok = ok && plumb__fields_parse(body, size, &root, &fields, error) && read_fields(context, &fields, g, request);
    json_decref(root);
    if (ok) {
        *generation = g;
        return PLUMB_OK;
    }
    plumb__generation_destroy(g);
    return error->refusal == PLUMB_REFUSAL_INTERNAL ? PLUMB_ERROR_MEMORY : PLUMB_ERROR_ARGUMENT;
}

void plumb__openai_begin_answer(plumb_openai_answer *answer, const plumb_api_context *context, const char *prefix,
                                int runs) {
    context->new_id(context->user, prefix, answer->id);
    answer->created = context->now(context->user);
    answer->model = context->model;
    answer->runs = runs;
}

static json_t *object(const plumb_openai_answer *answer, json_t *choices) {
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "id", answer->id, "object", answer->kind, "created",
                     (json_int_t)answer->created, "model", answer->model, "system_fingerprint", fingerprint, "choices",
                     choices);
}

/* Adds both accounts; takes the value over. */
static json_t *with_usage(json_t *value, const plumb_usage *usage) {
    bool failed = json_object_set_new(value, "usage", plumb__openai_usage(usage)) != 0 ||
                  json_object_set_new(value, "timings", plumb__openai_timings(usage)) != 0;
    if (!failed) return value;
    json_decref(value);
    return NULL;
}

void plumb__openai_chunk(const plumb_openai_answer *answer, json_t *choice, plumb_response *response) {
    json_t *chunk = object(answer, json_pack("[o]", choice));
    /* With usage asked for, every chunk has the member. */
    if (answer->include_usage && json_object_set_new(chunk, "usage", json_null()) != 0) {
        json_decref(chunk);
        chunk = NULL;
    }
    plumb__response_event(response, NULL, chunk);
}

void plumb__openai_progress(const plumb_openai_answer *answer, const plumb_generation_event *event,
                            plumb_response *response) {
    char line[80];
    if (!answer->stream) return;
    snprintf(line, sizeof line, "prompt: %lld of %lld tokens", (long long)event->done, (long long)event->total);
    plumb__response_comment(response, line);
}

bool plumb__openai_run_finished(plumb_openai_answer *answer, const plumb_generation_event *event) {
    const plumb_usage *usage = event->usage;
    plumb_usage *total = &answer->usage;
    if (event->run == 0) {
        total->prompt_tokens = usage->prompt_tokens;
        total->cached_tokens = usage->cached_tokens;
        total->prefill_seconds = usage->prefill_seconds;
    }
    total->completion_tokens += usage->completion_tokens;
    total->reasoning_tokens += usage->reasoning_tokens;
    /* Runs are decoded side by side. */
    if (usage->decode_seconds > total->decode_seconds) total->decode_seconds = usage->decode_seconds;
    return ++answer->finished == answer->runs;
}

void plumb__openai_end_stream(const plumb_openai_answer *answer, plumb_response *response) {
    if (answer->include_usage)
        plumb__response_event(response, NULL, with_usage(object(answer, json_array()), &answer->usage));
    plumb__response_data(response, "[DONE]");
    plumb__response_end(response);
}

void plumb__openai_end_whole(const plumb_openai_answer *answer, json_t *choices, plumb_response *response) {
    plumb__response_json(response, 200, with_usage(object(answer, choices), &answer->usage));
}

const char *plumb__openai_finish_reason(plumb_finish finish) {
    switch (finish) {
    case PLUMB_FINISH_LENGTH: return "length";
    case PLUMB_FINISH_CALLS: return "tool_calls";
    case PLUMB_FINISH_STOP:
    case PLUMB_FINISH_STOP_STRING: break;
    }
    return "stop";
}

json_t *plumb__openai_usage(const plumb_usage *usage) {
    return json_pack("{s:I, s:I, s:I, s:{s:I}, s:{s:I}}", "prompt_tokens", (json_int_t)usage->prompt_tokens,
                     "completion_tokens", (json_int_t)usage->completion_tokens, "total_tokens",
                     (json_int_t)(usage->prompt_tokens + usage->completion_tokens), "prompt_tokens_details",
                     "cached_tokens", (json_int_t)usage->cached_tokens, "completion_tokens_details",
                     "reasoning_tokens", (json_int_t)usage->reasoning_tokens);
}

static double rate(int64_t tokens, double seconds) { return seconds > 0.0 ? (double)tokens / seconds : 0.0; }

json_t *plumb__openai_timings(const plumb_usage *usage) {
    int64_t evaluated = usage->prompt_tokens - usage->cached_tokens;
    return json_pack("{s:f, s:f, s:f, s:f, s:I}", "prompt_seconds", usage->prefill_seconds, "generation_seconds",
                     usage->decode_seconds, "prompt_tokens_per_second", rate(evaluated, usage->prefill_seconds),
                     "generation_tokens_per_second", rate(usage->completion_tokens, usage->decode_seconds),
                     "cached_tokens", (json_int_t)usage->cached_tokens);
}
