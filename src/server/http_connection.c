/* A connection: a guard between the socket and evhttp.
 *
 * evhttp's bufferevent reads from the socket; a callback on its input buffer takes every byte away before
 * evhttp can look at it.  When a whole and well-formed request has come (http_reader.c), it is put into that
 * buffer and evhttp is made to read it.  So while a request is answered, reading goes on, a hang-up is
 * noticed at once, and requests that were sent ahead wait for their turn.
 *
 * evhttp does not tell when it closes a connection that had no request yet.  But what it gives its
 * bufferevent's callbacks is the connection, which takes a callback for its end (adopt), and until then our
 * reference keeps the bufferevent: one without callbacks has been let go of.
 *
 * Malformed requests are answered on the socket, past evhttp, which waits for a request and has nothing to
 * send.  After the last answer of a connection input is read and dropped for a while: closing a socket with
 * unread input would reset it, and the client might lose the answer. */
#include "server/http_parts.h"

#include <event2/util.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    DRAIN_SECONDS = 2,
    MOST_HELD_REQUESTS = 16 /* of the largest kind, on all connections together */
};

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* the loop's thread blocks SIGPIPE anyway */
#endif

void plumb__http_connection_look(plumb_http_connection *connection) { event_active(connection->look, EV_READ, 0); }

void plumb__http_connection_doom(plumb_http_connection *connection) {
    connection->doomed = true;
    plumb__http_connection_look(connection);
}

static void set_timer(plumb_http_connection *connection, int seconds) {
    const struct timeval after = {.tv_sec = seconds};
    evtimer_add(connection->timer, &after);
}

static void drain(struct evbuffer *buffer) { evbuffer_drain(buffer, evbuffer_get_length(buffer)); }

/* ---- Bytes from the socket ---- */

void plumb__http_connection_settle(plumb_http_connection *connection) {
    size_t left = evbuffer_get_length(connection->raw);
    connection->http->held -= connection->held - left;
    connection->held = left;
}

static void drop(plumb_http_connection *connection, const plumb_http_fault *why) {
    connection->overfull = why;
    drain(connection->raw);
    if (connection->state == PLUMB_HTTP_ANSWERING) return;
    plumb__http_reader_reset(&connection->reader);
    plumb__http_connection_settle(connection); /* at once, lest it costs others their place */
}

/* A client may send ahead as much as one request may have, and all clients together may have a few of those
 * held: bodies are small, and many large ones at once are no honest load.  Who has sent no more than a head
 * may need is served all the same. */
static void hold(plumb_http_connection *connection, size_t size) {
    static const plumb_http_fault ahead = {413, "too much was sent before the last request was answered"};
    static const plumb_http_fault crowd = {503, "there is no room for the request"};
    plumb_http *http = connection->http;
    size_t small = http->limits.most_header_bytes, largest = small + http->limits.most_body_bytes;
    connection->held += size;
    http->held += size;
    if (http->held > MOST_HELD_REQUESTS * largest && connection->held > small) drop(connection, &crowd);
    else if (evbuffer_get_length(connection->raw) > largest) drop(connection, &ahead);
}

static void take_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *user) {
    plumb_http_connection *connection = user;
    if (!info->n_added || connection->passing) return;
    bool wanted = connection->state <= PLUMB_HTTP_ANSWERING && !connection->overfull && !connection->doomed;
    if (wanted && !plumb__http_move(input, connection->raw, evbuffer_get_length(input))) connection->doomed = true;
    drain(input);
    if (!wanted) return;
    hold(connection, info->n_added);
    plumb__http_connection_look(connection);
}

/* ---- Answers beside evhttp ---- */

/* evhttp has nothing to send, so a small text fits into the socket's own buffer; where it does not, the
 * client reads nothing and will not miss it. */
static bool send_text(const plumb_http_connection *connection, const char *text, size_t size) {
    return send(bufferevent_getfd(connection->stream), text, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static void send_continue(plumb_http_connection *connection) {
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (connection->continued) return;
    connection->continued = true;
    send_text(connection, text, sizeof text - 1);
}

/* What some refusals must say beside their status. */
static const char *more_of(int status) {
    if (status == 405) return "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n";
    return status == 503 ? "Retry-After: 1\r\n" : "";
}

/* Before anybody has looked at the path: clients of every API find theirs in it. */
static void refuse(plumb_http_connection *connection, const plumb_http_fault *fault) {
    char body[320], text[720], date[64];
    int size = snprintf(body, sizeof body,
                        "{\"type\":\"error\",\"error\":"
                        "{\"message\":\"%s\",\"type\":\"%s\",\"param\":null,\"code\":null}}",
                        fault->message, fault->status < 500 ? "invalid_request_error" : "server_error");
    evutil_date_rfc1123(date, sizeof date, NULL);
    int length = snprintf(text, sizeof text,
                          "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nDate: %s\r\n"
                          "%sConnection: close\r\n\r\n%s",
                          fault->status, plumb__http_reason(fault->status), size, date, more_of(fault->status), body);
    send_text(connection, text, (size_t)length);
    shutdown(bufferevent_getfd(connection->stream), SHUT_WR);
    connection->state = PLUMB_HTTP_REFUSED;
    drain(connection->raw);
    plumb__http_reader_reset(&connection->reader);
    plumb__http_connection_settle(connection);
    set_timer(connection, DRAIN_SECONDS);
}

/* ---- Requests ---- */

static void pass(plumb_http_connection *connection) {
    static const plumb_http_fault closed = {503, "the server is stopping"}, no_memory = {503, "no memory"};
    plumb_http *http = connection->http;
    if (http->door_closed) {
        refuse(connection, &closed);
        return;
    }
    struct evbuffer *input = bufferevent_get_input(connection->stream);
    connection->passing = true;
    /* Libevent lets nobody but itself append to this buffer, which is empty. */
    bool given = !evbuffer_prepend_buffer(input, connection->reader.request);
    connection->passing = false;
    if (!given) {
        refuse(connection, &no_memory);
        return;
    }
    connection->state = PLUMB_HTTP_ANSWERING;
    connection->close = connection->reader.head.close;
    connection->continued = false;
    evtimer_del(connection->timer);
    http->n_exchanges++;
    http->passing = connection;
    bufferevent_trigger(connection->stream, EV_READ, 0); /* evhttp reads it and calls exchange_begin */
    http->passing = NULL;
    plumb__http_reader_reset(&connection->reader);
}

static void read_request(plumb_http_connection *connection) {
    plumb_http_fault fault = {0};
    plumb_http_progress progress = PLUMB_HTTP_FAULTY;
    if (!connection->overfull)
        progress = plumb__http_reader_step(&connection->reader, connection->raw, &connection->http->limits, &fault);
    else fault = *connection->overfull;
    if (progress == PLUMB_HTTP_FAULTY) {
        refuse(connection, &fault);
    } else if (progress == PLUMB_HTTP_WHOLE) {
        pass(connection);
    } else {
        if (plumb__http_reader_awaited(&connection->reader)) send_continue(connection);
        bool begun = connection->reader.state != PLUMB_HTTP_HEAD || evbuffer_get_length(connection->raw) ||
                     connection->reader.skipped;
        if (connection->state == PLUMB_HTTP_IDLE && begun) {
            connection->state = PLUMB_HTTP_READING;
            set_timer(connection, connection->http->options.request_seconds);
        }
    }
}

/* ---- The end ---- */

static void release(plumb_http_connection *connection) {
    plumb_http *http = connection->http;
    if (connection->previous) connection->previous->next = connection->next;
    else http->connections = connection->next;
    if (connection->next) connection->next->previous = connection->previous;
    http->n_connections--;
    http->held -= connection->held;
    evbuffer_remove_cb_entry(bufferevent_get_input(connection->stream), connection->taking);
    bufferevent_setcb(connection->stream, NULL, NULL, NULL, NULL);
    bufferevent_disable(connection->stream, EV_READ | EV_WRITE);
    bufferevent_decref(connection->stream); /* closes the socket */
    event_free(connection->look);
    event_free(connection->timer);
    evbuffer_free(connection->raw);
    plumb__http_reader_destroy(&connection->reader);
    free(connection);
    plumb__http_accept_more(http);
}

void plumb__http_connections_release(plumb_http *http) {
    while (http->connections) release(http->connections);
}

/* evhttp calls this before it lets go of a connection, for whatever reason. */
static void let_go(struct evhttp_connection *evhttp_connection, void *user) {
    (void)evhttp_connection;
    plumb_http_connection *connection = user;
    plumb_http_state last = connection->state;
    connection->state = last == PLUMB_HTTP_CLOSING ? PLUMB_HTTP_DRAINING : PLUMB_HTTP_DEAD;
    if (last == PLUMB_HTTP_ANSWERING) connection->http->n_exchanges--;
    plumb_http_exchange *exchange = connection->exchange;
    connection->exchange = NULL;
    if (exchange) plumb__http_exchange_gone(exchange);
    plumb__http_connection_look(connection); /* evhttp still has things to do with the bufferevent */
}

static void hang_up(plumb_http_connection *connection) {
    bufferevent_trigger_event(connection->stream, BEV_EVENT_READING | BEV_EVENT_EOF, 0);
}

static void on_drained(struct bufferevent *stream, short what, void *user) {
    (void)stream;
    (void)what;
    plumb_http_connection *connection = user;
    connection->state = PLUMB_HTTP_DEAD;
    plumb__http_connection_look(connection);
}

static void begin_draining(plumb_http_connection *connection) {
    bufferevent_setcb(connection->stream, NULL, NULL, on_drained, connection);
    bufferevent_enable(connection->stream, EV_READ);
    set_timer(connection, DRAIN_SECONDS);
}

/* ---- Events ---- */

static void on_timer(evutil_socket_t socket, short what, void *user) {
    static const plumb_http_fault slow = {408, "the request did not come in time"};
    (void)socket;
    (void)what;
    plumb_http_connection *connection = user;
    if (connection->state == PLUMB_HTTP_READING) refuse(connection, &slow);
    else if (connection->state == PLUMB_HTTP_DRAINING) release(connection);
    else hang_up(connection);
}

/* False: evhttp has let go of the connection already. */
static bool adopt(plumb_http_connection *connection) {
    bufferevent_event_cb event = NULL;
    void *evhttp_connection = NULL;
    bufferevent_getcb(connection->stream, NULL, NULL, &event, &evhttp_connection);
    if (!event) return false;
    connection->adopted = true;
    evhttp_connection_set_closecb(evhttp_connection, let_go, connection);
    int fd = bufferevent_getfd(connection->stream), on = 1;
    /* Where these fail the connection works all the same: an idle peer that died is noticed later. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    const struct timeval stalled = {.tv_sec = connection->http->options.stalled_seconds};
    bufferevent_set_timeouts(connection->stream, NULL, &stalled);
    return true;
}

static void on_look(evutil_socket_t socket, short what, void *user) {
    (void)socket;
    (void)what;
    plumb_http_connection *connection = user;
    if (!connection->adopted && !adopt(connection)) connection->state = PLUMB_HTTP_DEAD;
    if (connection->doomed && connection->state <= PLUMB_HTTP_CLOSING) hang_up(connection);
    if (connection->state == PLUMB_HTTP_IDLE) set_timer(connection, connection->http->options.idle_seconds);
    if (connection->state <= PLUMB_HTTP_READING) read_request(connection);
    if (connection->state == PLUMB_HTTP_DRAINING) begin_draining(connection);
    if (connection->state == PLUMB_HTTP_DEAD) release(connection);
}

struct bufferevent *plumb__http_connection_open(struct event_base *base, void *user) {
    plumb_http *http = user;
    plumb_http_connection *connection = calloc(1, sizeof *connection);
    struct bufferevent *stream = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (!connection || !stream || !plumb__http_reader_create(&connection->reader)) goto no_memory;
    connection->http = http;
    connection->stream = stream;
    connection->raw = evbuffer_new();
    connection->look = event_new(base, -1, 0, on_look, connection);
    connection->timer = evtimer_new(base, on_timer, connection);
    if (!connection->raw || !connection->look || !connection->timer) goto no_parts;
    connection->taking = evbuffer_add_cb(bufferevent_get_input(stream), take_input, connection);
    if (!connection->taking) goto no_parts;
    bufferevent_incref(stream);
    connection->next = http->connections;
    if (connection->next) connection->next->previous = connection;
    http->connections = connection;
    http->n_connections++;
    if (http->n_connections >= http->options.most_connections) evconnlistener_disable(http->listener);
    plumb__http_connection_look(connection);
    return stream;

no_parts:
    if (connection->raw) evbuffer_free(connection->raw);
    if (connection->look) event_free(connection->look);
    if (connection->timer) event_free(connection->timer);
    plumb__http_reader_destroy(&connection->reader);
no_memory:
    free(connection);
    /* evhttp serves what is returned here, or one of its own: without a guard it gets no request, since
     * exchange_begin closes such a connection. */
    return stream;
}
