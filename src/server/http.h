/* HTTP/1.1 on libevent's evhttp: the only file pair that knows of it is http*.c.
 *
 * One thread runs the loop and calls everything here but plumb__http_call and plumb__http_stop, which any
 * thread may call.  An exchange is one request and its answer; it lives until it was answered (plumb__http_end)
 * or its client has gone, which `gone` tells at once, whether the answer has begun or not.  A client that
 * closes its own half only counts as gone too, unless the answer has ended by then.
 *
 * SIGPIPE is blocked in the loop's thread while plumb__http_run runs, so no client can end the process. */
#ifndef PLUMB_SERVER_HTTP_H
#define PLUMB_SERVER_HTTP_H

#include "plumb.h"

typedef struct plumb_http plumb_http;
typedef struct plumb_http_exchange plumb_http_exchange;

typedef struct plumb_http_options {
    const char *host;          /* address or name to listen at */
    int port;                  /* 0: any that is free */
    int64_t most_header_bytes; /* 0: 64 KiB.  More is answered 431 */
    int64_t most_body_bytes;   /* 0: 64 MiB.  More is answered 413, and 503 where 16 such are held */
    int most_connections;      /* 0: 4,096.  No more than the process may open; further ones wait */
    int request_seconds;       /* 0: 60.  A request not complete by then is answered 408 */
    int idle_seconds;          /* 0: 120.  Between requests of one connection */
    int stalled_seconds;       /* 0: 60.  A client that takes nothing of its answer for so long is gone */
    /* A whole request, well-formed.  Malformed ones are answered before it. */
    void (*request)(void *user, plumb_http_exchange *exchange);
    void *user;
} plumb_http_options;

/* Listens; refused with the address where that fails.  The options' function is kept. */
PLUMB_MUST_CHECK plumb_status plumb__http_create(const plumb_http_options *options, plumb_http **http,
                                                 plumb_error *err);
int plumb__http_port(const plumb_http *http);
/* Runs the loop until plumb__http_stop. */
PLUMB_MUST_CHECK plumb_status plumb__http_run(plumb_http *http, plumb_error *err);
/* No more requests from now on: those that come are answered 503, and their connections closed. */
void plumb__http_close_door(plumb_http *http);
/* Requests that are being answered, until the last byte of the answer has been sent. */
int plumb__http_open_exchanges(const plumb_http *http);
int plumb__http_connections(const plumb_http *http);
/* May be called in a signal handler.  Calls that were asked for before it are still made. */
void plumb__http_stop(plumb_http *http);
/* After the loop; NULL is fine.  Tells `gone` of exchanges that are left. */
void plumb__http_destroy(plumb_http *http);

/* Calls `call` on the loop's thread, soon, in the order of asking; false without memory.  What is asked for
 * after plumb__http_stop is maybe not called. */
bool plumb__http_call(plumb_http *http, void (*call)(void *user), void *user);
/* Calls `tick` every so often on the loop's thread, from then on. */
PLUMB_MUST_CHECK plumb_status plumb__http_every(plumb_http *http, int milliseconds,
                                                void (*tick)(void *user), void *user, plumb_error *err);

/* ---- An exchange; strings live as long as it ---- */

/* None of these tells `gone` before it returns. */

const char *plumb__http_method(const plumb_http_exchange *exchange);
const char *plumb__http_path(const plumb_http_exchange *exchange);   /* decoded, without the query */
const char *plumb__http_header(const plumb_http_exchange *exchange, const char *name); /* NULL: none */
const char *plumb__http_body(const plumb_http_exchange *exchange, size_t *size);

/* The exchange is freed after `gone`.  Without it, it lives on as one that nobody reads, until
 * plumb__http_end. */
void plumb__http_on_gone(plumb_http_exchange *exchange, void (*gone)(void *user), void *user);
/* A header of the answer, before it begins, in place of one of that name; false where it has a control
 * character or memory ran out. */
bool plumb__http_set_header(plumb_http_exchange *exchange, const char *name, const char *value);
/* Begins the answer; a streaming one is sent in pieces as they come, another one whole at the end with its
 * length.  A client that leaves 16 MiB of a stream unread is taken for gone. */
void plumb__http_begin(plumb_http_exchange *exchange, int status, const char *content_type, bool streaming);
void plumb__http_write(plumb_http_exchange *exchange, const char *bytes, size_t size);
void plumb__http_end(plumb_http_exchange *exchange); /* the exchange is gone after it */
int64_t plumb__http_unsent(const plumb_http_exchange *exchange); /* bytes that the client has not taken */

#endif
