/* Events as a chat completion: chunk by chunk, or kept until all runs have finished.
 *
 * In a stream a call is told while it is sampled, as clients expect.  One that is dropped afterwards (the answer
 * was cut, or its markup is damaged) stays told in part, and its arguments are no JSON: nobody can execute them
 * by mistake.  A whole answer has complete calls only. */
#include "server/openai_chat.h"

#include <stdlib.h>

static json_t *text_of(const plumb_generation_event *event) {
    return plumb__text_json_bytes(event->bytes, event->size);
}

/* ---- Log-probabilities wait for the text that their tokens become ---- */

static void await_text(plumb_api_request *r, chat_run *run, const plumb_generation_event *event) {
    if (!event->of_content) return;
    if (!run->waiting) run->waiting = json_array();
    r->failed |= json_array_append_new(run->waiting, plumb__openai_logprob(r->text, event)) != 0;
}

/* Member "logprobs" of a chunk. */
static json_t *take_waiting(chat_run *run) {
    if (!run->waiting) return json_null();
    json_t *list = run->waiting;
    run->waiting = NULL;
    return json_pack("{s:o, s:n}", "content", list, "refusal");
}

static void keep_waiting(plumb_api_request *r, chat_run *run) {
    if (!run->waiting) return;
    if (!run->logprobs) run->logprobs = json_array();
    r->failed |= json_array_extend(run->logprobs, run->waiting) != 0;
    json_decref(run->waiting);
    run->waiting = NULL;
}

/* A stop string is told nowhere, so neither are its tokens. */
static void end_waiting(chat_run *run, plumb_finish finish) {
    if (finish != PLUMB_FINISH_STOP_STRING) return;
    json_decref(run->waiting);
    run->waiting = NULL;
}

/* ---- Streams ---- */

static void tell(plumb_api_request *r, int run, json_t *delta, json_t *logprobs, const char *finish_reason,
                 plumb_response *response) {
    json_t *choice = json_pack("{s:i, s:o, s:o, s:s?}", "index", run, "delta", delta, "logprobs", logprobs,
                               "finish_reason", finish_reason);
    plumb__openai_chunk(&r->answer, choice, response);
}

static void tell_call(plumb_api_request *r, const plumb_generation_event *event, json_t *call,
                      plumb_response *response) {
    bool failed = json_object_set_new(call, "index", json_integer(event->call)) != 0;
    if (failed) json_decref(call);
    tell(r, event->run, json_pack("{s:[o]}", "tool_calls", failed ? NULL : call), json_null(), NULL, response);
}

static json_t *begun_call(const plumb_generation_event *event) {
    return json_pack("{s:s, s:s, s:{s:o, s:s}}", "id", event->id, "type", "function", "function", "name",
                     text_of(event), "arguments", "");
}

static void stream_event(plumb_api_request *r, chat_run *run, const plumb_generation_event *event,
                         plumb_response *response) {
    if (!run->begun) {
        tell(r, event->run, json_pack("{s:s, s:s}", "role", "assistant", "content", ""), json_null(), NULL, response);
        run->begun = true;
    }
    switch (event->kind) {
    case PLUMB_GENERATION_REASONING:
        tell(r, event->run, json_pack("{s:o}", "reasoning_content", text_of(event)), json_null(), NULL, response);
        break;
    case PLUMB_GENERATION_CONTENT:
        tell(r, event->run, json_pack("{s:o}", "content", text_of(event)), take_waiting(run), NULL, response);
        break;
    case PLUMB_GENERATION_CALL_BEGIN: tell_call(r, event, begun_call(event), response); break;
    case PLUMB_GENERATION_CALL_ARGUMENTS:
        tell_call(r, event, json_pack("{s:{s:o}}", "function", "arguments", text_of(event)), response);
        break;
    case PLUMB_GENERATION_FINISHED:
        tell(r, event->run, json_object(), take_waiting(run), plumb__openai_finish_reason(event->finish), response);
        break;
    default: break; /* the end of a call needs no chunk */
    }
}

/* ---- Whole answers ---- */

static void keep_call(plumb_api_request *r, chat_run *run) {
    json_t *function = json_object_get(run->call, "function");
    if (!run->calls) run->calls = json_array();
    r->failed |= json_object_set_new(function, "arguments", plumb__text_json(&run->arguments)) != 0;
    r->failed |= json_array_append_new(run->calls, run->call) != 0;
    run->call = NULL;
}

static void keep_event(plumb_api_request *r, chat_run *run, const plumb_generation_event *event) {
    switch (event->kind) {
    case PLUMB_GENERATION_REASONING: plumb__text_append(&run->reasoning, event->bytes, event->size); break;
    case PLUMB_GENERATION_CONTENT:
        plumb__text_append(&run->content, event->bytes, event->size);
        keep_waiting(r, run);
        break;
    case PLUMB_GENERATION_CALL_BEGIN:
        run->call = begun_call(event);
        r->failed |= !run->call;
        plumb__text_clear(&run->arguments);
        break;
    case PLUMB_GENERATION_CALL_ARGUMENTS: plumb__text_append(&run->arguments, event->bytes, event->size); break;
    case PLUMB_GENERATION_CALL_END: keep_call(r, run); break;
    case PLUMB_GENERATION_CALL_DROPPED:
        json_decref(run->call);
        run->call = NULL;
        break;
    case PLUMB_GENERATION_FINISHED:
        keep_waiting(r, run);
        run->finish_reason = plumb__openai_finish_reason(event->finish);
        break;
    default: break;
    }
}

static json_t *message_of(chat_run *run) {
    bool only_calls = run->calls && run->content.size == 0 && !run->content.failed;
    json_t *message = json_pack("{s:s, s:o, s:n}", "role", "assistant", "content",
                                only_calls ? json_null() : plumb__text_json(&run->content), "refusal");
    bool failed = !message;
    if (run->reasoning.size > 0 || run->reasoning.failed)
        failed |= json_object_set_new(message, "reasoning_content", plumb__text_json(&run->reasoning)) != 0;
    if (run->calls) failed |= json_object_set(message, "tool_calls", run->calls) != 0;
    if (!failed) return message;
    json_decref(message);
    return NULL;
}

static json_t *choice_of(chat_run *run, int index) {
    json_t *logprobs = run->logprobs ? json_pack("{s:O, s:n}", "content", run->logprobs, "refusal") : json_null();
    return json_pack("{s:i, s:o, s:o, s:s}", "index", index, "message", message_of(run), "logprobs", logprobs,
                     "finish_reason", run->finish_reason);
}

static void tell_whole(plumb_api_request *r, plumb_response *response) {
    json_t *choices = json_array();
    for (int i = 0; i < r->answer.runs; i++)
        r->failed |= json_array_append_new(choices, choice_of(&r->runs[i], i)) != 0;
    if (!r->failed) {
        plumb__openai_end_whole(&r->answer, choices, response);
        return;
    }
    json_decref(choices);
    plumb__response_json(response, 500, NULL);
}

/* ---- Both ---- */

/* Where one call was asked for, those after it are left out. */
static bool is_left_out(const plumb_api_request *r, chat_run *run, const plumb_generation_event *event) {
    bool of_call = event->kind >= PLUMB_GENERATION_CALL_BEGIN && event->kind <= PLUMB_GENERATION_CALL_DROPPED;
    if (!of_call) return false;
    bool left_out = r->one_call && run->complete_calls > 0;
    run->complete_calls += event->kind == PLUMB_GENERATION_CALL_END;
    return left_out;
}

void plumb__openai_chat_event(plumb_api_request *r, const plumb_generation_event *event, plumb_response *response) {
    chat_run *run = &r->runs[event->run];
    switch (event->kind) {
    case PLUMB_GENERATION_STARTED: return;
    case PLUMB_GENERATION_PROGRESS: plumb__openai_progress(&r->answer, event, response); return;
    case PLUMB_GENERATION_TOKEN: await_text(r, run, event); return;
    case PLUMB_GENERATION_FAILED: plumb__openai_fail(event->error, response); return;
    case PLUMB_GENERATION_FINISHED: end_waiting(run, event->finish); break;
    default: break;
    }
    if (is_left_out(r, run, event)) return;
    if (r->answer.stream && r->failed) plumb__response_event(response, NULL, NULL);
    if (r->answer.stream) stream_event(r, run, event, response);
    else keep_event(r, run, event);
    if (event->kind != PLUMB_GENERATION_FINISHED || !plumb__openai_run_finished(&r->answer, event)) return;
    if (r->answer.stream) plumb__openai_end_stream(&r->answer, response);
    else tell_whole(r, response);
}

void plumb__openai_chat_destroy(plumb_api_request *r) {
    if (!r) return;
    for (int i = 0; r->runs && i < r->answer.runs; i++) {
        chat_run *run = &r->runs[i];
        json_decref(run->waiting);
        json_decref(run->calls);
        json_decref(run->call);
        json_decref(run->logprobs);
        plumb__text_free(&run->reasoning);
        plumb__text_free(&run->content);
        plumb__text_free(&run->arguments);
    }
    free(r->runs);
    free(r);
}
