/* A request of an API on its way: from the exchange to a job, from its events to the answer. */
#include "server/server_parts.h"

#include <stdlib.h>

/* ---- The response over HTTP ---- */

/* The official clients tell an answer's name by these, OpenAI's and Anthropic's. */
static void name_answer(const plumb_served *s) {
    const plumb_api_context *context = &s->server->context;
    char id[64];
    context->new_id(context->user, "req_", id);
    plumb__http_set_header(s->exchange, "x-request-id", id);
    plumb__http_set_header(s->exchange, "request-id", id);
}

static void begin(plumb_response *response, int status, const char *content_type, bool streaming) {
    plumb_served *s = (plumb_served *)response;
    if (!s->exchange) return;
    s->streaming = streaming;
    name_answer(s);
    if (streaming) plumb__http_set_header(s->exchange, "Cache-Control", "no-store");
    /* Whoever asks again is soon served, or finds nobody. */
    if (status == 429 || status == 503) plumb__http_set_header(s->exchange, "Retry-After", "1");
    plumb__http_begin(s->exchange, status, content_type, streaming);
}

static void write_bytes(plumb_response *response, const char *bytes, size_t size) {
    plumb_served *s = (plumb_served *)response;
    if (!s->exchange) return;
    plumb__http_write(s->exchange, bytes, size);
    s->written += (int64_t)size;
}

static void end(plumb_response *response) {
    plumb_served *s = (plumb_served *)response;
    plumb_http_exchange *exchange = s->exchange;
    s->exchange = NULL;
    if (!exchange) return;
    plumb__http_on_gone(exchange, NULL, NULL);
    plumb__http_end(exchange);
}

/* ---- Life ---- */

static void on_gone(void *user) {
    plumb_served *s = user;
    s->exchange = NULL;
    s->response.ended = true;
    plumb__served_destroy(s);
}

plumb_served *plumb__served_create(plumb_server *server, plumb_http_exchange *exchange) {
    plumb_served *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->response = (plumb_response){.begin = begin, .write = write_bytes, .end = end};
    s->server = server;
    s->exchange = exchange;
    s->next = server->first;
    s->link = &server->first;
    if (s->next) s->next->link = &s->next;
    server->first = s;
    plumb__http_on_gone(exchange, on_gone, s);
    return s;
}

void plumb__served_destroy(plumb_served *s) {
    if (s->job) plumb__scheduler_cancel(s->server->scheduler, s->job);
    plumb__response_end(&s->response);
    if (s->request) s->api->destroy(s->request);
    *s->link = s->next;
    if (s->next) s->next->link = s->link;
    free(s);
}

void plumb__served_cancel(plumb_served *s, const plumb_api_error *error) {
    if (s->job) plumb__scheduler_cancel(s->server->scheduler, s->job);
    s->job = NULL;
    if (s->api && s->request)
        s->api->event(s->request,
                      &(plumb_generation_event){.kind = PLUMB_GENERATION_FAILED, .error = error},
                      &s->response);
    plumb__served_destroy(s);
}

void plumb__served_note_unsent(plumb_served *s) {
    if (s->job && s->exchange)
        plumb__scheduler_set_unsent(s->server->scheduler, s->job, plumb__http_unsent(s->exchange));
}

void plumb__served_tick(plumb_served *s) {
    static const plumb_api_error slow = {.refusal = PLUMB_REFUSAL_BAD_REQUEST,
                                         .message = "the answer was taken too slowly"};
    plumb__served_note_unsent(s);
    if (s->job && s->exchange && plumb__pace_is_too_slow(&s->pace, s->written, plumb__http_unsent(s->exchange)))
        plumb__served_cancel(s, &slow);
}

void plumb__served_keep_alive(plumb_served *s) {
    if (s->streaming && !s->response.ended) plumb__response_comment(&s->response, "working");
}

/* ---- Generating ---- */

static void on_event(void *user, const plumb_generation_event *event) {
    plumb_served *s = user;
    if (event->kind == PLUMB_GENERATION_FINISHED) s->runs_left--;
    bool last = event->kind == PLUMB_GENERATION_FAILED || s->runs_left == 0;
    if (last) s->job = NULL;
    s->api->event(s->request, event, &s->response);
    if (last || s->response.ended) plumb__served_destroy(s);
    else plumb__served_note_unsent(s);
}

void plumb__served_generate(plumb_served *s, int api) {
    plumb_server *server = s->server;
    s->api = plumb__apis[api];
    size_t size;
    const char *body = plumb__http_body(s->exchange, &size);
    plumb_generation *generation = NULL;
    plumb_api_error error = {0};
    plumb_status status = s->api->read(&server->context, server->api_state[api], body, size, &s->request,
                                       &generation, &error);
    if (status == PLUMB_OK && !generation) {
        s->api->answer(s->request, &s->response);
        plumb__served_destroy(s);
        return;
    }
    if (status == PLUMB_OK) {
        s->runs_left = generation->runs;
        s->streaming = generation->streamed;
        s->job = plumb__scheduler_submit(server->scheduler, generation, on_event, s, &error);
    }
    if (s->job) return;
    s->api->refuse(&error, &s->response);
    plumb__served_destroy(s);
}
