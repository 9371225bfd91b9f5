/* What the files of the HTTP server share: the server, its connections, their exchanges. */
#ifndef PLUMB_SERVER_HTTP_PARTS_H
#define PLUMB_SERVER_HTTP_PARTS_H

#include "server/http.h"
#include "server/http_reader.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <pthread.h>
#include <stdatomic.h>

typedef struct plumb_http_connection plumb_http_connection;
typedef struct plumb_http_job plumb_http_job;
typedef struct plumb_http_clock plumb_http_clock;

struct plumb_http {
    plumb_http_options options; /* with the defaults filled in; `host` is not kept */
    plumb_http_limits limits;
    struct event_base *base;
    struct evhttp *evhttp;
    struct evconnlistener *listener; /* evhttp's */
    int port;
    bool door_closed;

    plumb_http_connection *connections; /* all of them, linked */
    int n_connections, n_exchanges;     /* the latter until the last byte of the answer is sent */
    size_t held;                        /* bytes of requests, of all connections, until they are answered */
    plumb_http_connection *passing;     /* whose request evhttp is being given */

    plumb_http_clock *clocks;

    pthread_mutex_t mutex;             /* of the jobs */
    plumb_http_job *jobs, **last_job;
    int wake[2];                       /* a byte written to the second wakes the loop */
    struct event *woken;
    atomic_bool stop;
};

/* From the first byte of a request to the last of its answer, evhttp owns what it was given and the rest is
 * here.  A connection's end is told by evhttp, except where evhttp has ended it itself. */
typedef enum plumb_http_state {
    PLUMB_HTTP_IDLE,      /* nothing of a request has come */
    PLUMB_HTTP_READING,   /* part of one has */
    PLUMB_HTTP_ANSWERING, /* evhttp has a whole one */
    PLUMB_HTTP_CLOSING,   /* answered, for the last time: evhttp is about to let go */
    PLUMB_HTTP_REFUSED,   /* a malformed one was answered beside evhttp; what follows is dropped */
    PLUMB_HTTP_DRAINING,  /* evhttp has let go; what follows is dropped */
    PLUMB_HTTP_DEAD       /* evhttp has let go, and so has the client */
} plumb_http_state;

struct plumb_http_connection {
    plumb_http *http;
    plumb_http_connection *previous, *next;
    plumb_http_state state;
    struct bufferevent *stream; /* evhttp's, and with one reference ours */
    struct evbuffer_cb_entry *taking;
    struct event *look, *timer; /* look: to be run soon */
    struct evbuffer *raw;       /* bytes that were read and not yet looked at */
    plumb_http_reader reader;
    plumb_http_exchange *exchange; /* of the request that is answered, until its end */
    bool adopted;    /* evhttp tells us of its end */
    bool passing;    /* what now comes into evhttp's buffer is from us */
    bool close;      /* after this answer */
    const plumb_http_fault *overfull; /* why bytes were dropped, or NULL */
    size_t held;     /* its part of the server's */
    bool doomed;     /* cannot go on; to be treated as if the client had gone */
    bool continued;  /* "100 Continue" was sent */
};

struct plumb_http_exchange {
    plumb_http_connection *connection; /* NULL: the client has gone */
    struct evhttp_request *request;    /* NULL: evhttp has it */
    char *path;
    struct evbuffer *out; /* a whole answer, or the next piece of a streaming one */
    int status;
    bool old; /* HTTP/1.0 */
    bool begun, streaming;
    void (*gone)(void *user);
    void *gone_user;
};

/* evhttp's bufferevent for a connection that is being accepted. */
struct bufferevent *plumb__http_connection_open(struct event_base *base, void *http);
/* Has the loop look at the connection soon. */
void plumb__http_connection_look(plumb_http_connection *connection);
/* What was held of answered requests is not any more. */
void plumb__http_connection_settle(plumb_http_connection *connection);
/* As if the client had gone, soon: not from inside a call of the exchange's owner. */
void plumb__http_connection_doom(plumb_http_connection *connection);
/* Lets go of all that is left; after evhttp has been freed. */
void plumb__http_connections_release(plumb_http *http);

/* evhttp's callback for requests. */
void plumb__http_exchange_begin(struct evhttp_request *request, void *http);
/* The connection has ended; frees the exchange or leaves it to its owner. */
void plumb__http_exchange_gone(plumb_http_exchange *exchange);

const char *plumb__http_reason(int status);

/* Listens at the options' address and sets `listener` and `port`. */
plumb_status plumb__http_listen(plumb_http *http, plumb_error *err);
/* A connection has ended: there is room for another one. */
void plumb__http_accept_more(plumb_http *http);

#endif
