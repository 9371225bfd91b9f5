/* Where an API's answer goes: a whole body, or a stream of server-sent events. */
#ifndef PLUMB_SERVER_RESPONSE_H
#define PLUMB_SERVER_RESPONSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Implemented over HTTP (exchange.c) and by tests.  After the client has gone all calls do nothing. */
typedef struct plumb_response plumb_response;
struct plumb_response {
    void (*begin)(plumb_response *response, int status, const char *content_type, bool streaming);
    void (*write)(plumb_response *response, const char *bytes, size_t size);
    void (*end)(plumb_response *response);
    bool begun, ended; /* kept by the functions below */
};

/* Takes `value` over, NULL meaning that memory ran out: answers 500 then. */
void plumb__response_json(plumb_response *response, int status, json_t *value);
void plumb__response_text(plumb_response *response, int status, const char *content_type, const char *bytes,
                          size_t size);

void plumb__response_stream(plumb_response *response); /* begins text/event-stream, once */
/* One event; `name` may be NULL.  Takes `data` over, NULL meaning that memory ran out: tells an error and ends
 * the stream then.  Begins the stream if need be. */
void plumb__response_event(plumb_response *response, const char *name, json_t *data);
void plumb__response_data(plumb_response *response, const char *text); /* data: TEXT */
/* A comment line, which clients skip: shows that somebody works, and keeps proxies awake. */
void plumb__response_comment(plumb_response *response, const char *text);
void plumb__response_end(plumb_response *response); /* once; later calls do nothing */


#endif
