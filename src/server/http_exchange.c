/* An exchange: a request that evhttp has, and its answer. */
#include "server/http_parts.h"

#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A streaming answer that its client takes too slowly. */
enum { MOST_UNSENT_BYTES = 16 << 20 };

/* Those that evhttp has no words for. */
const char *plumb__http_reason(int status) {
    switch (status) {
    case 400: return "Bad Request";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return NULL;
    }
}

static void exchange_free(plumb_http_exchange *exchange) {
    if (exchange->request) evhttp_request_free(exchange->request);
    if (exchange->out) evbuffer_free(exchange->out);
    free(exchange->path);
    free(exchange);
}

/* The last byte of the answer has been sent.  evhttp goes on to the next request, or closes. */
static void on_sent(struct evhttp_request *request, void *user) {
    (void)request;
    plumb_http_connection *connection = user;
    connection->http->n_exchanges--;
    plumb__http_connection_settle(connection);
    connection->state = connection->close ? PLUMB_HTTP_CLOSING : PLUMB_HTTP_IDLE;
    plumb__http_connection_look(connection);
}

/* evhttp stopped reading; a hang-up would go unnoticed.  Its read callback must not see it, however: that
 * ends the process when it is called while a request is answered. */
static void go_on_reading(struct bufferevent *stream) {
    bufferevent_data_cb write = NULL;
    bufferevent_event_cb event = NULL;
    void *user = NULL;
    bufferevent_getcb(stream, NULL, &write, &event, &user);
    bufferevent_setcb(stream, NULL, write, event, user);
    bufferevent_enable(stream, EV_READ);
}

void plumb__http_exchange_begin(struct evhttp_request *request, void *user) {
    plumb_http *http = user;
    plumb_http_connection *connection = http->passing;
    plumb_http_exchange *exchange = connection ? calloc(1, sizeof *exchange) : NULL;
    if (exchange) exchange->out = evbuffer_new();
    if (!exchange || !exchange->out) { /* no memory, now or when the connection came */
        free(exchange);
        evhttp_connection_free(evhttp_request_get_connection(request));
        return;
    }
    exchange->connection = connection;
    exchange->request = request;
    exchange->old = !connection->reader.head.minor;
    exchange->path = connection->reader.path;
    connection->reader.path = NULL;
    connection->exchange = exchange;
    evhttp_request_set_on_complete_cb(request, on_sent, connection);
    go_on_reading(connection->stream);
    http->options.request(http->options.user, exchange);
}

void plumb__http_exchange_gone(plumb_http_exchange *exchange) {
    exchange->connection = NULL;
    /* Where evhttp still has the request, all of the server is being destroyed, and it frees it. */
    if (evhttp_request_get_connection(exchange->request)) exchange->request = NULL;
    if (!exchange->gone) return; /* its owner does not know, and will end it */
    exchange->gone(exchange->gone_user);
    exchange_free(exchange);
}

void plumb__http_on_gone(plumb_http_exchange *exchange, void (*gone)(void *user), void *user) {
    exchange->gone = gone;
    exchange->gone_user = user;
}

/* ---- The request ---- */

const char *plumb__http_method(const plumb_http_exchange *exchange) {
    if (!exchange->request) return "";
    switch (evhttp_request_get_command(exchange->request)) {
    case EVHTTP_REQ_GET: return "GET";
    case EVHTTP_REQ_HEAD: return "HEAD";
    case EVHTTP_REQ_POST: return "POST";
    case EVHTTP_REQ_PUT: return "PUT";
    case EVHTTP_REQ_DELETE: return "DELETE";
    case EVHTTP_REQ_OPTIONS: return "OPTIONS";
    case EVHTTP_REQ_PATCH: return "PATCH";
    default: return "";
    }
}

const char *plumb__http_path(const plumb_http_exchange *exchange) { return exchange->path; }

const char *plumb__http_header(const plumb_http_exchange *exchange, const char *name) {
    if (!exchange->request) return NULL;
    const char *value = evhttp_find_header(evhttp_request_get_input_headers(exchange->request), name);
    return value ? value + strspn(value, " \t") : NULL; /* evhttp leaves tabs */
}

const char *plumb__http_body(const plumb_http_exchange *exchange, size_t *size) {
    *size = 0;
    if (!exchange->request) return "";
    struct evbuffer *body = evhttp_request_get_input_buffer(exchange->request);
    const char *bytes = (const char *)evbuffer_pullup(body, -1);
    if (!bytes) return "";
    *size = evbuffer_get_length(body);
    return bytes;
}

/* ---- The answer ---- */

static bool is_plain(const char *text) {
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c < 0x20 && c != '\t') || c == 0x7F) return false;
    }
    return true;
}

bool plumb__http_set_header(plumb_http_exchange *exchange, const char *name, const char *value) {
    if (!exchange->connection || exchange->begun || !is_plain(name) || !is_plain(value)) return false;
    struct evkeyvalq *headers = evhttp_request_get_output_headers(exchange->request);
    evhttp_remove_header(headers, name);
    return !evhttp_add_header(headers, name, value);
}

/* Says that the connection ends here, to the client and to evhttp, which heeds the request's wish first. */
static void announce_close(plumb_http_exchange *exchange) {
    struct evkeyvalq *asked = evhttp_request_get_input_headers(exchange->request);
    while (!evhttp_remove_header(asked, "Connection")) continue;
    plumb__http_set_header(exchange, "Connection", "close");
}

void plumb__http_begin(plumb_http_exchange *exchange, int status, const char *content_type, bool streaming) {
    if (exchange->begun) return;
    plumb_http_connection *connection = exchange->connection;
    if (connection) {
        if (content_type) plumb__http_set_header(exchange, "Content-Type", content_type);
        /* Only the end of the connection ends an answer of unknown length in HTTP/1.0. */
        connection->close |= connection->overfull != NULL || (streaming && exchange->old);
        if (connection->close) announce_close(exchange);
        if (streaming) evhttp_send_reply_start(exchange->request, status, plumb__http_reason(status));
    }
    exchange->begun = true;
    exchange->status = status;
    exchange->streaming = streaming;
}

void plumb__http_write(plumb_http_exchange *exchange, const char *bytes, size_t size) {
    plumb_http_connection *connection = exchange->connection;
    if (!connection || !exchange->begun || !size || connection->doomed) return;
    bool held = !evbuffer_add(exchange->out, bytes, size);
    if (held && exchange->streaming) {
        evhttp_send_reply_chunk(exchange->request, exchange->out);
        evbuffer_drain(exchange->out, evbuffer_get_length(exchange->out)); /* of HEAD nothing is sent */
        held = plumb__http_unsent(exchange) <= MOST_UNSENT_BYTES;
    }
    if (!held) plumb__http_connection_doom(connection);
}

/* HEAD has the length of the body that GET would have; some statuses have no body at all. */
static void send_whole(plumb_http_exchange *exchange) {
    char length[32];
    snprintf(length, sizeof length, "%zu", evbuffer_get_length(exchange->out));
    bool has_none = exchange->status == 204 || exchange->status == 304;
    if (!has_none) evhttp_add_header(evhttp_request_get_output_headers(exchange->request), "Content-Length", length);
    if (has_none || evhttp_request_get_command(exchange->request) == EVHTTP_REQ_HEAD)
        evbuffer_drain(exchange->out, evbuffer_get_length(exchange->out));
    evhttp_send_reply(exchange->request, exchange->status, plumb__http_reason(exchange->status), exchange->out);
}

static void ignore(void *user) { (void)user; }

void plumb__http_end(plumb_http_exchange *exchange) {
    plumb_http_connection *connection = exchange->connection;
    if (connection && connection->doomed) { /* a part of the answer is missing: it must not look whole */
        plumb__http_on_gone(exchange, ignore, NULL);
        return;
    }
    if (connection) {
        plumb__http_begin(exchange, 500, NULL, false);
        connection->exchange = NULL;
        if (exchange->streaming) evhttp_send_reply_end(exchange->request);
        else send_whole(exchange);
        exchange->request = NULL;
        /* What is left to send is sent, even to a client that closes its own half now. */
        if (connection->state == PLUMB_HTTP_ANSWERING) bufferevent_disable(connection->stream, EV_READ);
    }
    exchange_free(exchange);
}

int64_t plumb__http_unsent(const plumb_http_exchange *exchange) {
    if (!exchange->connection) return 0;
    return (int64_t)evbuffer_get_length(bufferevent_get_output(exchange->connection->stream));
}
