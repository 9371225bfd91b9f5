/* Events as a completion: chunk by chunk, or kept until all runs have finished.
 *
 * An echoed prompt comes as its tokens, which are put together first: one may be half a character. */
#include "server/openai_completions.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

/* ---- Log-probabilities in their oldest form: parallel arrays ---- */

/* A token as these arrays show it: text, or (half a character) its bytes spelt out, as OpenAI does. */
static json_t *token_text(const char *bytes, size_t size) {
    if (plumb__utf8_valid_prefix(bytes, size) == size) return plumb__text_json_bytes(bytes, size);
    plumb_text_buffer spelt = {0};
    plumb__text_append(&spelt, "bytes:", 6);
    for (size_t i = 0; i < size; i++) {
        char byte[8];
        snprintf(byte, sizeof byte, "\\x%02x", (unsigned)(unsigned char)bytes[i]);
        plumb__text_append(&spelt, byte, 4);
    }
    json_t *text = plumb__text_json(&spelt);
    plumb__text_free(&spelt);
    return text;
}

/* {token: log-probability}: the best ones and the token itself. */
static json_t *top_of(const plumb_api_request *r, const plumb_generation_event *event, json_t *token) {
    json_t *top = json_object();
    bool failed = json_object_set_new(top, json_string_value(token),
                                      plumb__openai_logprob_value(event->token.logprob)) != 0;
    for (int i = 0; i < event->n_top; i++) {
        size_t size = 0;
        const char *bytes = plumb_text_token_bytes(r->text, event->top[i].token, &size);
        json_t *other = token_text(bytes ? bytes : "", bytes ? size : 0);
        failed |= !other || json_object_set_new(top, json_string_value(other),
                                                plumb__openai_logprob_value(event->top[i].logprob)) != 0;
        json_decref(other);
    }
    if (!failed) return top;
    json_decref(top);
    return NULL;
}

/* Where a token begins in the text, in characters; one that goes on with a character begins where that does. */
static int64_t place_of(completion_run *run, const plumb_generation_event *event) {
    int64_t place = run->characters;
    for (size_t i = 0; i < event->size; i++) run->characters += ((unsigned char)event->bytes[i] & 0xC0) != 0x80;
    bool goes_on = event->size > 0 && ((unsigned char)event->bytes[0] & 0xC0) == 0x80;
    return goes_on && place > 0 ? place - 1 : place;
}

static void await_text(plumb_api_request *r, completion_run *run, const plumb_generation_event *event) {
    int64_t place = place_of(run, event);
    json_t *token = token_text(event->bytes, event->size);
    if (!token) {
        r->failed = true;
        return;
    }
    json_t *logprob = event->has_logprob ? plumb__openai_logprob_value(event->token.logprob) : json_null();
    json_t *top = event->has_logprob && r->top_logprobs ? top_of(r, event, token) : json_null();
    if (!run->waiting) run->waiting = json_array();
    json_t *entry = json_pack("[o, o, o, I]", token, logprob, top, (json_int_t)place);
    r->failed |= json_array_append_new(run->waiting, entry) != 0;
}

/* Entries of await_text as member "logprobs". */
static json_t *logprobs_of(const plumb_api_request *r, const json_t *entries) {
    if (!r->logprobs) return json_null();
    json_t *columns[4], *entry;
    bool failed = false;
    size_t i;
    for (int c = 0; c < 4; c++) columns[c] = json_array();
    json_array_foreach(entries, i, entry) {
        for (size_t c = 0; c < 4; c++) failed |= json_array_append(columns[c], json_array_get(entry, c)) != 0;
    }
    if (!r->top_logprobs) {
        json_decref(columns[2]);
        columns[2] = json_null();
    }
    json_t *value = json_pack("{s:o, s:o, s:o, s:o}", "tokens", columns[0], "token_logprobs", columns[1],
                              "top_logprobs", columns[2], "text_offset", columns[3]);
    if (!failed) return value;
    json_decref(value);
    return NULL;
}

/* ---- Streams ---- */

/* `text` with the tokens that waited for it. */
static void tell(plumb_api_request *r, int index, json_t *text, const char *finish_reason, plumb_response *response) {
    completion_run *run = &r->runs[index];
    json_t *logprobs = logprobs_of(r, run->waiting);
    json_decref(run->waiting);
    run->waiting = NULL;
    plumb__openai_chunk(&r->answer, json_pack("{s:o, s:i, s:o, s:s?}", "text", text, "index", index, "logprobs",
                                              logprobs, "finish_reason", finish_reason), response);
}

static void tell_echo(plumb_api_request *r, int index, plumb_response *response) {
    completion_run *run = &r->runs[index];
    if (run->text.size == 0 && !run->text.failed) return;
    tell(r, index, plumb__text_json(&run->text), NULL, response);
    plumb__text_clear(&run->text);
}

/* ---- Whole answers ---- */

static void keep_waiting(plumb_api_request *r, completion_run *run) {
    if (!run->waiting) return;
    if (!run->tokens) run->tokens = json_array();
    r->failed |= json_array_extend(run->tokens, run->waiting) != 0;
    json_decref(run->waiting);
    run->waiting = NULL;
}

static void tell_whole(plumb_api_request *r, plumb_response *response) {
    json_t *choices = json_array();
    for (int i = 0; i < r->answer.runs; i++) {
        completion_run *run = &r->runs[i];
        json_t *choice = json_pack("{s:o, s:i, s:o, s:s}", "text", plumb__text_json(&run->text), "index", i, "logprobs",
                                   logprobs_of(r, run->tokens), "finish_reason", run->finish_reason);
        r->failed |= json_array_append_new(choices, choice) != 0;
    }
    if (!r->failed) {
        plumb__openai_end_whole(&r->answer, choices, response);
        return;
    }
    json_decref(choices);
    plumb__response_json(response, 500, NULL);
}

/* ---- Events ---- */

static void token_event(plumb_api_request *r, completion_run *run, const plumb_generation_event *event) {
    if (event->of_prompt && r->begins_with_bos && !event->has_logprob) return; /* BOS */
    if (event->of_prompt) plumb__text_append(&run->text, event->bytes, event->size);
    if (r->logprobs && (event->of_prompt || event->of_content)) await_text(r, run, event);
}

static void content_event(plumb_api_request *r, completion_run *run, const plumb_generation_event *event,
                          plumb_response *response) {
    if (r->answer.stream) {
        tell(r, event->run, plumb__text_json_bytes(event->bytes, event->size), NULL, response);
        return;
    }
    plumb__text_append(&run->text, event->bytes, event->size);
    keep_waiting(r, run);
}

static void finished_event(plumb_api_request *r, completion_run *run, const plumb_generation_event *event,
                           plumb_response *response) {
    if (event->finish == PLUMB_FINISH_STOP_STRING) { /* it is told nowhere, so neither are its tokens */
        json_decref(run->waiting);
        run->waiting = NULL;
    }
    run->finish_reason = plumb__openai_finish_reason(event->finish);
    if (r->answer.stream) tell(r, event->run, json_string(""), run->finish_reason, response);
    else keep_waiting(r, run);
    if (!plumb__openai_run_finished(&r->answer, event)) return;
    if (r->answer.stream) plumb__openai_end_stream(&r->answer, response);
    else tell_whole(r, response);
}

static bool ends_echo(const plumb_generation_event *event) {
    return event->kind == PLUMB_GENERATION_CONTENT || event->kind == PLUMB_GENERATION_FINISHED ||
           (event->kind == PLUMB_GENERATION_TOKEN && !event->of_prompt);
}

void plumb__openai_completions_event(plumb_api_request *r, const plumb_generation_event *event,
                                     plumb_response *response) {
    completion_run *run = &r->runs[event->run];
    if (r->answer.stream && r->failed) plumb__response_event(response, NULL, NULL);
    if (r->answer.stream && ends_echo(event)) tell_echo(r, event->run, response);
    switch (event->kind) {
    case PLUMB_GENERATION_PROGRESS: plumb__openai_progress(&r->answer, event, response); break;
    case PLUMB_GENERATION_FAILED: plumb__openai_fail(event->error, response); break;
    case PLUMB_GENERATION_TOKEN: token_event(r, run, event); break;
    case PLUMB_GENERATION_CONTENT: content_event(r, run, event, response); break;
    case PLUMB_GENERATION_FINISHED: finished_event(r, run, event, response); break;
    default: break;
    }
}

void plumb__openai_completions_destroy(plumb_api_request *r) {
    if (!r) return;
    for (int i = 0; r->runs && i < r->answer.runs; i++) {
        json_decref(r->runs[i].waiting);
        json_decref(r->runs[i].tokens);
        plumb__text_free(&r->runs[i].text);
    }
    free(r->runs);
    free(r);
}
