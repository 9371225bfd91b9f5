/* What becomes of a response: items, and the events that tell of them in the order of the official API.
 *
 *   response.created, response.in_progress
 *   for each item: response.output_item.added
 *                  response.content_part.added, deltas, ...done, response.content_part.done (of texts)
 *                  deltas, response.function_call_arguments.done (of calls)
 *                  response.output_item.done
 *   response.completed, .incomplete or .failed
 *
 * Without a stream the same items are made and only the last state of the object is told. */
#include "server/responses.h"

#include <string.h>

#include "server/openai.h"

/* ---- Events ---- */

/* One event with these members, taken over.  NULL ends the stream with an error. */
static void tell(plumb_api_request *r, plumb_response *response, const char *type, json_t *members) {
    if (!r->stream) {
        json_decref(members);
        return;
    }
    json_t *event = json_pack("{s:s,s:I}", "type", type, "sequence_number", (json_int_t)r->sequence_number++);
    bool whole = json_object_update(event, members) == 0; /* fails for NULL too */
    json_decref(members);
    if (!whole) {
        json_decref(event);
        event = NULL;
    }
    plumb__response_event(response, type, event);
}

/* Nothing to see, but something to read: keeps clients and proxies from giving up. */
static void tell_progress(const plumb_api_request *r, const plumb_generation_event *event, plumb_response *response) {
    char line[80];
    if (!r->stream) return;
    snprintf(line, sizeof line, "prompt: %lld of %lld tokens", (long long)event->done, (long long)event->total);
    plumb__response_comment(response, line);
}

static void tell_response(plumb_api_request *r, plumb_response *response, const char *type) {
    tell(r, response, type, json_pack("{s:O}", "response", r->response));
}

static json_int_t place(const plumb_api_request *r) {
    return (json_int_t)json_array_size(json_object_get(r->response, "output"));
}

/* Members of an event of the item that is being told; `key`: one more, taken over. */
static json_t *of_item(const plumb_api_request *r, const char *key, json_t *value) {
    return json_pack("{s:s,s:I,s:o}", "item_id", r->item.id, "output_index", place(r), key, value);
}

static json_t *of_content(const plumb_api_request *r, const char *key, json_t *value) {
    json_t *members = of_item(r, key, value);
    if (json_object_set_new(members, "content_index", json_integer(0)) == 0) return members;
    json_decref(members);
    return NULL;
}

/* Text events carry log-probabilities, which are never asked for here. */
static json_t *of_text(const plumb_api_request *r, const char *key, json_t *value) {
    json_t *members = of_content(r, key, value);
    if (r->item.kind != PLUMB_ITEM_MESSAGE || json_object_set_new(members, "logprobs", json_array()) == 0)
        return members;
    json_decref(members);
    return NULL;
}

/* ---- Items ---- */

static const struct {
    const char *id_prefix, *delta, *done;
} kinds[] = {
    [PLUMB_ITEM_REASONING] = {"rs_", "response.reasoning_text.delta", "response.reasoning_text.done"},
    [PLUMB_ITEM_MESSAGE] = {"msg_", "response.output_text.delta", "response.output_text.done"},
    [PLUMB_ITEM_CALL] = {"fc_", "response.function_call_arguments.delta", "response.function_call_arguments.done"},
};

/* The one part of an item of text. */
static json_t *part(const plumb_output_item *item, json_t *text) {
    if (item->kind == PLUMB_ITEM_REASONING) return json_pack("{s:s,s:o}", "type", "reasoning_text", "text", text);
    return json_pack("{s:s,s:o,s:[],s:[]}", "type", "output_text", "text", text, "annotations", "logprobs");
}

/* The item as an object, its text or arguments (taken over) included unless it has just begun. */
static json_t *item_object(const plumb_output_item *item, const char *status, json_t *text, bool begun) {
    if (item->kind == PLUMB_ITEM_CALL)
        return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s*,s:o}", "id", item->id, "type", "function_call", "status", status,
                         "call_id", item->call_id, "name", item->name, "namespace", item->name_space, "arguments",
                         text);
    json_t *content = json_array();
    if (begun) json_decref(text);
    else if (json_array_append_new(content, part(item, text)) != 0) {
        json_decref(content);
        content = NULL;
    }
    if (item->kind == PLUMB_ITEM_REASONING)
        return json_pack("{s:s,s:s,s:s,s:[],s:o}", "id", item->id, "type", "reasoning", "status", status, "summary",
                         "content", content);
    return json_pack("{s:s,s:s,s:s,s:s,s:o}", "id", item->id, "type", "message", "status", status, "role",
                     "assistant", "content", content);
}

static void open_item(plumb_api_request *r, plumb_item_kind kind, plumb_response *response) {
    plumb_output_item *item = &r->item;
    item->kind = kind;
    plumb__text_clear(&item->text);
    plumb__responses_memory_item_id(r->id, kinds[kind].id_prefix, (size_t)place(r), item->id);
    tell(r, response, "response.output_item.added",
         json_pack("{s:I,s:o}", "output_index", place(r), "item",
                   item_object(item, "in_progress", json_string(""), true)));
    if (kind != PLUMB_ITEM_CALL)
        tell(r, response, "response.content_part.added", of_content(r, "part", part(item, json_string(""))));
}

static void tell_done(plumb_api_request *r, plumb_response *response) {
    const plumb_output_item *item = &r->item;
    if (item->kind == PLUMB_ITEM_CALL) {
        json_t *members = of_item(r, "arguments", plumb__text_json(&item->text));
        if (json_object_set_new(members, "name", json_string(item->name)) == 0) {
            tell(r, response, kinds[item->kind].done, members);
        } else {
            json_decref(members);
            tell(r, response, kinds[item->kind].done, NULL);
        }
        return;
    }
    tell(r, response, kinds[item->kind].done, of_text(r, "text", plumb__text_json(&item->text)));
    tell(r, response, "response.content_part.done", of_content(r, "part", part(item, plumb__text_json(&item->text))));
}

/* Ends the item that is being told, if any. */
static void close_item(plumb_api_request *r, const char *status, plumb_response *response) {
    plumb_output_item *item = &r->item;
    if (item->kind == PLUMB_ITEM_NONE) return;
    tell_done(r, response);
    json_t *object = item_object(item, status, plumb__text_json(&item->text), false);
    tell(r, response, "response.output_item.done",
         json_pack("{s:I,s:O}", "output_index", place(r), "item", object));
    if (json_array_append_new(json_object_get(r->response, "output"), object) != 0) r->turn.failed = true;
    item->kind = PLUMB_ITEM_NONE;
}

static void add_text(plumb_api_request *r, const plumb_generation_event *event, plumb_response *response) {
    if (event->size == 0) return;
    plumb__text_append(&r->item.text, event->bytes, event->size);
    json_t *delta = plumb__text_json_bytes(event->bytes, event->size);
    tell(r, response, kinds[r->item.kind].delta,
         r->item.kind == PLUMB_ITEM_CALL ? of_item(r, "delta", delta) : of_text(r, "delta", delta));
}

static void tell_text(plumb_api_request *r, plumb_item_kind kind, const plumb_generation_event *event,
                      plumb_response *response) {
    if (r->item.kind != kind) {
        close_item(r, "completed", response);
        open_item(r, kind, response);
    }
    add_text(r, event, response);
    if (kind == PLUMB_ITEM_REASONING) plumb__conversation_reasoning(&r->turn, event->bytes, event->size);
    else plumb__conversation_text(&r->turn, event->bytes, event->size);
}

/* ---- Calls ---- */

static void begin_call(plumb_api_request *r, const plumb_generation_event *event, plumb_response *response) {
    close_item(r, "completed", response);
    plumb_output_item *item = &r->item;
    json_decref(item->called);
    item->called = plumb__text_json_bytes(event->bytes, event->size);
    item->name = json_string_value(item->called);
    const json_t *tools = json_object_get(r->response, "tools");
    item->name_space = item->name ? plumb__responses_namespace(tools, item->name) : NULL;
    if (item->name_space) item->name += strlen(item->name_space) + 1;
    item->call = event->call;
    snprintf(item->call_id, sizeof item->call_id, "%s", event->id);
    open_item(r, PLUMB_ITEM_CALL, response);
}

static void end_call(plumb_api_request *r, plumb_response *response) {
    const char *name = json_string_value(r->item.called);
    plumb__conversation_call(&r->turn, r->item.call_id, name ? name : "", plumb__text_json(&r->item.text));
    close_item(r, "completed", response);
}

/* What was streamed cannot be taken back, so it is marked as incomplete; otherwise it never was. */
static void drop_call(plumb_api_request *r, plumb_response *response) {
    if (r->stream) {
        close_item(r, "incomplete", response);
        r->broken_call = true;
    }
    r->item.kind = PLUMB_ITEM_NONE;
}

static void call_event(plumb_api_request *r, const plumb_generation_event *event, plumb_response *response) {
    if (!r->parallel && event->call > 0) return; /* one was asked for: the others are not told */
    if (event->kind == PLUMB_GENERATION_CALL_BEGIN) begin_call(r, event, response);
    if (r->item.kind != PLUMB_ITEM_CALL || r->item.call != event->call) return;
    if (event->kind == PLUMB_GENERATION_CALL_ARGUMENTS) add_text(r, event, response);
    if (event->kind == PLUMB_GENERATION_CALL_END) end_call(r, response);
    if (event->kind == PLUMB_GENERATION_CALL_DROPPED) drop_call(r, response);
}

/* ---- The end ---- */

static void fail(plumb_api_request *r, const plumb_api_error *error, plumb_response *response) {
    if (!response->begun) {
        plumb__openai_refuse(error, response);
        return;
    }
    /* A stream that had only signs of life while it waited. */
    if (r->sequence_number == 0) tell_response(r, response, "response.created");
    close_item(r, "incomplete", response);
    bool busy = error->refusal == PLUMB_REFUSAL_BUSY, theirs = plumb__refusal_status(error->refusal) < 500;
    json_t *told = json_pack("{s:s,s:o}", "code",
                             busy ? "rate_limit_exceeded" : theirs ? "invalid_prompt" : "server_error", "message",
                             plumb__text_json_bytes(error->message, strlen(error->message)));
    bool whole = json_object_set_new(r->response, "status", json_string("failed")) == 0;
    whole = json_object_set_new(r->response, "error", told) == 0 && whole;
    tell(r, response, "response.failed", whole ? json_pack("{s:O}", "response", r->response) : NULL);
    plumb__response_end(response);
}

static json_t *usage_object(const plumb_usage *usage) {
    return json_pack("{s:I,s:{s:I,s:I},s:I,s:{s:I},s:I}", "input_tokens", (json_int_t)usage->prompt_tokens,
                     "input_tokens_details", "cached_tokens", (json_int_t)usage->cached_tokens, "cache_write_tokens",
                     (json_int_t)0, "output_tokens", (json_int_t)usage->completion_tokens, "output_tokens_details",
                     "reasoning_tokens", (json_int_t)usage->reasoning_tokens, "total_tokens",
                     (json_int_t)(usage->prompt_tokens + usage->completion_tokens));
}

/* Remembers the turn; a response that cannot be remembered says so. */
static bool keep_turn(plumb_api_request *r) {
    if (!plumb__conversation_end(&r->turn)) return false;
    if (!r->store || plumb__responses_memory_keep(r->memory, r->id, r->before, r->turn.messages,
                                                  json_object_get(r->response, "output")))
        return true;
    return json_object_set_new(r->response, "store", json_false()) == 0;
}

static void finish(plumb_api_request *r, const plumb_generation_event *event, plumb_response *response) {
    static const plumb_api_error no_memory = {PLUMB_REFUSAL_INTERNAL, "", "no memory for the answer"};
    static const plumb_api_error broken = {PLUMB_REFUSAL_INTERNAL, "", "the model broke off in the middle of a call"};
    bool cut = event->finish == PLUMB_FINISH_LENGTH;
    if (r->broken_call && !cut) {
        fail(r, &broken, response);
        return;
    }
    close_item(r, cut ? "incomplete" : "completed", response);
    const json_int_t at = (json_int_t)r->context->now(r->context->user);
    bool whole = keep_turn(r) &&
                 json_object_set_new(r->response, "status", json_string(cut ? "incomplete" : "completed")) == 0 &&
                 (cut || json_object_set_new(r->response, "completed_at", json_integer(at)) == 0) &&
                 json_object_set_new(r->response, "usage", usage_object(event->usage)) == 0 &&
                 (!cut || json_object_set_new(r->response, "incomplete_details",
                                              json_pack("{s:s}", "reason", "max_output_tokens")) == 0);
    if (!whole) {
        fail(r, &no_memory, response);
    } else if (r->stream) {
        tell_response(r, response, cut ? "response.incomplete" : "response.completed");
        plumb__response_end(response);
    } else {
        plumb__response_json(response, 200, json_incref(r->response));
    }
}

void plumb__responses_event(plumb_api_request *r, const plumb_generation_event *event, plumb_response *response) {
    switch (event->kind) {
    case PLUMB_GENERATION_STARTED:
        r->turn.in_turn = true; /* an answer, even if it stays empty */
        tell_response(r, response, "response.created");
        tell_response(r, response, "response.in_progress");
        break;
    case PLUMB_GENERATION_PROGRESS: tell_progress(r, event, response); break;
    case PLUMB_GENERATION_TOKEN: break;
    case PLUMB_GENERATION_REASONING: tell_text(r, PLUMB_ITEM_REASONING, event, response); break;
    case PLUMB_GENERATION_CONTENT: tell_text(r, PLUMB_ITEM_MESSAGE, event, response); break;
    case PLUMB_GENERATION_CALL_BEGIN:
    case PLUMB_GENERATION_CALL_ARGUMENTS:
    case PLUMB_GENERATION_CALL_END:
    case PLUMB_GENERATION_CALL_DROPPED: call_event(r, event, response); break;
    case PLUMB_GENERATION_FINISHED: finish(r, event, response); break;
    case PLUMB_GENERATION_FAILED: fail(r, event->error, response); break;
    }
}
