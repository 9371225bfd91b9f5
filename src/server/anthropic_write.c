/* What becomes of a message: blocks of content, and the events that tell of them in the official order.
 *
 *   message_start
 *   for each block: content_block_start, content_block_delta..., content_block_stop
 *   message_delta, message_stop
 *
 * Pings stand between them while the prompt is evaluated.  Without a stream the same blocks are gathered as JSON
 * text, so that a call's input is told as the model spelled it, whatever its numbers. */
#include "server/anthropic.h"

#include <string.h>

/* Clients send it back with the thinking, and some insist on one.  Nothing is checked by it. */
#define SIGNATURE "cGx1bWI="

/* ---- The message ---- */

/* As the delta at the end of a stream has it. */
static json_t *usage_object(const plumb_usage *usage) {
    json_t *details = json_pack("{s:I}", "thinking_tokens", (json_int_t)usage->reasoning_tokens);
    return json_pack("{s:I,s:I,s:I,s:I,s:o,s:n}", "input_tokens",
                     (json_int_t)(usage->prompt_tokens - usage->cached_tokens), "cache_creation_input_tokens",
                     (json_int_t)0, "cache_read_input_tokens", (json_int_t)usage->cached_tokens, "output_tokens",
                     (json_int_t)usage->completion_tokens, "output_tokens_details", details, "server_tool_use");
}

/* Sets all of the members, taken over, in the object, likewise; NULL: no memory. */
static json_t *with_members(json_t *object, json_t *members) {
    bool whole = json_object_update(object, members) == 0; /* fails for NULL too */
    json_decref(members);
    if (whole) return object;
    json_decref(object);
    return NULL;
}

/* As a message has it. */
static json_t *message_usage(const plumb_usage *usage) {
    json_t *cached = json_pack("{s:i,s:i}", "ephemeral_5m_input_tokens", 0, "ephemeral_1h_input_tokens", 0);
    return with_members(usage_object(usage), json_pack("{s:o,s:n,s:n,s:n}", "cache_creation", cached, "inference_geo",
                                                       "service_tier", "speed"));
}

/* Why it ended: members of a message, and of the delta that says so. */
static json_t *ending(const plumb_generation_event *finished) {
    static const char *const reasons[] = {[PLUMB_FINISH_STOP] = "end_turn",
                                          [PLUMB_FINISH_STOP_STRING] = "stop_sequence",
                                          [PLUMB_FINISH_LENGTH] = "max_tokens",
                                          [PLUMB_FINISH_CALLS] = "tool_use"};
    bool stopped = finished && finished->finish == PLUMB_FINISH_STOP_STRING;
    json_t *sequence = stopped ? plumb__text_json_bytes(finished->stop_string, strlen(finished->stop_string))
                               : json_null();
    return json_pack("{s:s?,s:o,s:n,s:n}", "stop_reason", finished ? reasons[finished->finish] : NULL, "stop_sequence",
                     sequence, "stop_details", "container");
}

/* All members but the content; `finished` is NULL while it goes on. */
static json_t *message_object(const plumb_api_request *r, const plumb_generation_event *finished,
                              const plumb_usage *usage) {
    json_t *message = json_pack("{s:s,s:s,s:s,s:s,s:n,s:o}", "id", r->id, "type", "message", "role", "assistant",
                                "model", r->context->model, "diagnostics", "usage", message_usage(usage));
    return with_members(message, ending(finished));
}

/* ---- Events ---- */

/* NULL ends the stream with an error. */
static void tell(const plumb_api_request *r, plumb_response *response, const char *type, json_t *event) {
    if (!r->stream) {
        json_decref(event);
        return;
    }
    if (json_object_set_new(event, "type", json_string(type)) != 0) {
        json_decref(event);
        event = NULL;
    }
    plumb__response_event(response, type, event);
}

static void tell_start(const plumb_api_request *r, const plumb_generation_event *event, plumb_response *response) {
    json_t *message = message_object(r, NULL, event->usage);
    if (json_object_set_new(message, "content", json_array()) != 0) {
        json_decref(message);
        message = NULL;
    }
    tell(r, response, "message_start", json_pack("{s:o}", "message", message));
}

/* A delta of one text. */
static void tell_delta(const plumb_api_request *r, const char *type, const char *key, json_t *text,
                       plumb_response *response) {
    tell(r, response, "content_block_delta",
         json_pack("{s:I,s:{s:s,s:o}}", "index", (json_int_t)r->index, "delta", "type", type, key, text));
}

/* ---- Blocks ---- */

/* A block with its text, taken over; of a call without its input. */
static json_t *block_object(const plumb_api_request *r, const char *signature, json_t *text) {
    if (r->block == PLUMB_BLOCK_THINKING)
        return json_pack("{s:s,s:o,s:s}", "type", "thinking", "thinking", text, "signature", signature);
    if (r->block == PLUMB_BLOCK_TEXT) return json_pack("{s:s,s:o,s:n}", "type", "text", "text", text, "citations");
    json_decref(text);
    return json_pack("{s:s,s:s,s:O,s:{s:s}}", "type", "tool_use", "id", r->call_id, "name", r->call_name, "caller",
                     "type", "direct");
}

static void open_block(plumb_api_request *r, plumb_block_kind kind, plumb_response *response) {
    r->block = kind;
    plumb__text_clear(&r->text);
    json_t *block = block_object(r, "", json_string(""));
    if (kind == PLUMB_BLOCK_TOOL_USE && json_object_set_new(block, "input", json_object()) != 0) {
        json_decref(block);
        block = NULL;
    }
    tell(r, response, "content_block_start",
         json_pack("{s:I,s:o}", "index", (json_int_t)r->index, "content_block", block));
}

/* Puts the block among those that are done. */
static void gather(plumb_api_request *r) {
    json_t *block = block_object(r, SIGNATURE, plumb__text_json(&r->text));
    if (r->content.size > 0) plumb__text_append(&r->content, ",", 1);
    plumb__text_append_json(&r->content, block);
    json_decref(block);
    if (r->block != PLUMB_BLOCK_TOOL_USE || r->content.failed) return;
    r->content.size--; /* opens the object again: its input is JSON already */
    plumb__text_append(&r->content, ",\"input\":", strlen(",\"input\":"));
    plumb__text_append(&r->content, r->text.bytes, (size_t)r->text.size);
    plumb__text_append(&r->content, "}", 1);
    r->content.failed |= r->text.failed;
}

static void close_block(plumb_api_request *r, plumb_response *response) {
    if (r->block == PLUMB_BLOCK_NONE) return;
    if (r->block == PLUMB_BLOCK_THINKING)
        tell_delta(r, "signature_delta", "signature", json_string(SIGNATURE), response);
    tell(r, response, "content_block_stop", json_pack("{s:I}", "index", (json_int_t)r->index));
    if (!r->stream) gather(r);
    r->index++;
    r->block = PLUMB_BLOCK_NONE;
}

static void add_text(plumb_api_request *r, const plumb_generation_event *event, const char *type, const char *key,
                     plumb_response *response) {
    if (r->stream) tell_delta(r, type, key, plumb__text_json_bytes(event->bytes, event->size), response);
    else plumb__text_append(&r->text, event->bytes, event->size);
}

static void turn_to(plumb_api_request *r, plumb_block_kind kind, plumb_response *response) {
    if (r->block == kind) return;
    close_block(r, response);
    open_block(r, kind, response);
}

/* ---- Calls ---- */

static void begin_call(plumb_api_request *r, const plumb_generation_event *event, plumb_response *response) {
    close_block(r, response);
    json_decref(r->call_name);
    r->call_name = plumb__text_json_bytes(event->bytes, event->size);
    r->call = event->call;
    snprintf(r->call_id, sizeof r->call_id, "%s", event->id);
    open_block(r, PLUMB_BLOCK_TOOL_USE, response);
}

/* What was streamed cannot be taken back; otherwise it never was. */
static void drop_call(plumb_api_request *r, plumb_response *response) {
    if (r->stream) {
        close_block(r, response);
        r->broken_call = true;
    }
    r->block = PLUMB_BLOCK_NONE;
}

static void call_event(plumb_api_request *r, const plumb_generation_event *event, plumb_response *response) {
    if (!r->parallel && event->call > 0) return; /* one was asked for: the others are not told */
    if (event->kind == PLUMB_GENERATION_CALL_BEGIN) begin_call(r, event, response);
    if (r->block != PLUMB_BLOCK_TOOL_USE || r->call != event->call) return;
    if (event->kind == PLUMB_GENERATION_CALL_ARGUMENTS)
        add_text(r, event, "input_json_delta", "partial_json", response);
    if (event->kind == PLUMB_GENERATION_CALL_END) close_block(r, response);
    if (event->kind == PLUMB_GENERATION_CALL_DROPPED) drop_call(r, response);
}

/* ---- The end ---- */

static void fail(const plumb_api_error *error, plumb_response *response) {
    if (!response->begun) {
        plumb__anthropic_refuse(error, response);
        return;
    }
    plumb__response_event(response, "error", plumb__anthropic_error(error));
    plumb__response_end(response);
}

/* {CONTENT, other members}: the content is spliced in as text. */
static void tell_whole(plumb_api_request *r, const plumb_generation_event *event, plumb_response *response) {
    static const plumb_api_error no_memory = {PLUMB_REFUSAL_INTERNAL, "", "no memory for the answer"};
    plumb_text_buffer body = {0};
    json_t *message = message_object(r, event, event->usage);
    plumb__text_append_json(&body, message);
    json_decref(message);
    if (!body.failed) {
        body.size--;
        plumb__text_append(&body, ",\"content\":[", strlen(",\"content\":["));
        plumb__text_append(&body, r->content.bytes, (size_t)r->content.size);
        plumb__text_append(&body, "]}", 2);
    }
    if (body.failed || r->content.failed) fail(&no_memory, response);
    else plumb__response_text(response, 200, "application/json", body.bytes, (size_t)body.size);
    plumb__text_free(&body);
}

static void finish(plumb_api_request *r, const plumb_generation_event *event, plumb_response *response) {
    static const plumb_api_error broken = {PLUMB_REFUSAL_INTERNAL, "", "the model broke off in the middle of a call"};
    close_block(r, response);
    if (r->broken_call && event->finish != PLUMB_FINISH_LENGTH) {
        fail(&broken, response);
    } else if (r->stream) {
        tell(r, response, "message_delta",
             json_pack("{s:o,s:o}", "delta", ending(event), "usage", usage_object(event->usage)));
        tell(r, response, "message_stop", json_object());
        plumb__response_end(response);
    } else {
        tell_whole(r, event, response);
    }
}

void plumb__anthropic_event(plumb_api_request *r, const plumb_generation_event *event, plumb_response *response) {
    switch (event->kind) {
    case PLUMB_GENERATION_STARTED: tell_start(r, event, response); break;
    case PLUMB_GENERATION_PROGRESS: tell(r, response, "ping", json_object()); break;
    case PLUMB_GENERATION_TOKEN: break;
    case PLUMB_GENERATION_REASONING:
        turn_to(r, PLUMB_BLOCK_THINKING, response);
        if (r->show_thinking) add_text(r, event, "thinking_delta", "thinking", response);
        break;
    case PLUMB_GENERATION_CONTENT:
        turn_to(r, PLUMB_BLOCK_TEXT, response);
        add_text(r, event, "text_delta", "text", response);
        break;
    case PLUMB_GENERATION_CALL_BEGIN:
    case PLUMB_GENERATION_CALL_ARGUMENTS:
    case PLUMB_GENERATION_CALL_END:
    case PLUMB_GENERATION_CALL_DROPPED: call_event(r, event, response); break;
    case PLUMB_GENERATION_FINISHED: finish(r, event, response); break;
    case PLUMB_GENERATION_FAILED: fail(event->error, response); break;
    }
}
