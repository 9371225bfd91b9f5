/* One whole request out of the bytes of a connection, before evhttp sees any of it. */
#ifndef PLUMB_SERVER_HTTP_READER_H
#define PLUMB_SERVER_HTTP_READER_H

#include "server/http_head.h"

#include <event2/buffer.h>

typedef struct plumb_http_limits {
    size_t most_header_bytes, most_body_bytes;
} plumb_http_limits;

typedef enum plumb_http_progress {
    PLUMB_HTTP_MORE,  /* more bytes are needed */
    PLUMB_HTTP_WHOLE, /* `request` and `path` are there for the taking */
    PLUMB_HTTP_FAULTY /* the rest of the connection cannot be understood */
} plumb_http_progress;

typedef struct plumb_http_reader {
    enum { PLUMB_HTTP_HEAD, PLUMB_HTTP_BODY, PLUMB_HTTP_CHUNK_SIZE, PLUMB_HTTP_CHUNK, PLUMB_HTTP_CHUNK_END,
           PLUMB_HTTP_TRAILER } state;
    plumb_http_head head;    /* once state is not PLUMB_HTTP_HEAD */
    size_t line, scanned;    /* of the head: where its last line begins, and what was looked at */
    size_t skipped;          /* empty lines before it, and bytes of the trailer after it */
    int64_t left;            /* bytes to come of the body, or of a chunk */
    char *path;              /* decoded */
    struct evbuffer *request; /* as evhttp is to see it: checked head, body in one piece */
    struct evbuffer *chunks; /* a chunked body as far as it was read */
} plumb_http_reader;

bool plumb__http_reader_create(plumb_http_reader *reader); /* false: no memory, nothing to destroy */
void plumb__http_reader_destroy(plumb_http_reader *reader);

/* Moves the first bytes of a buffer to the end of another; false: no memory.  Few are copied to what is there: a
 * buffer for each byte, as a client may send them, would be a thousand times its size. */
bool plumb__http_move(struct evbuffer *from, struct evbuffer *to, size_t size);

/* Goes on with what `raw` begins with, taking from it what belongs to the request.  After FAULTY, only
 * destroy is left. */
plumb_http_progress plumb__http_reader_step(plumb_http_reader *reader, struct evbuffer *raw,
                                            const plumb_http_limits *limits, plumb_http_fault *fault);
/* Whether the client waits for "100 Continue" before it sends its body. */
bool plumb__http_reader_awaited(const plumb_http_reader *reader);
/* After WHOLE, and once `request` and `path` are taken or not needed: ready for the next one. */
void plumb__http_reader_reset(plumb_http_reader *reader);

#endif
