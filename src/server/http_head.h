/* The head of a request: its request line and header fields, checked as RFC 9112 asks. */
#ifndef PLUMB_SERVER_HTTP_HEAD_H
#define PLUMB_SERVER_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a request is refused: a static text that may stand in JSON as it is. */
typedef struct plumb_http_fault {
    int status;
    const char *message;
} plumb_http_fault;

/* Offsets are into the bytes that were checked. */
typedef struct plumb_http_head {
    size_t method_size;      /* the method comes first */
    size_t target;           /* path and query, or "*"; of an absolute URI what follows the authority */
    size_t target_size;
    size_t fields;           /* the first header line */
    int minor;               /* of HTTP/1: 0 or 1 */
    int64_t length;          /* bytes of the body; 0 without one and where it is chunked */
    bool chunked, body, close, expects_continue;
} plumb_http_head;

/* Checks a head, all of its lines with their CR LF and the empty one.  False: *fault says why. */
bool plumb__http_head_check(const char *bytes, size_t size, plumb_http_head *head, plumb_http_fault *fault);

/* Checks one header line without its CR LF, as it may stand in a trailer too. */
bool plumb__http_field_check(const char *line, size_t size, plumb_http_fault *fault);

/* The number that hexadecimal digits write, of at most 15; -1 otherwise. */
int64_t plumb__http_hex(const char *digits, size_t size);

/* Writes the path of a target, decoded and without the query, NUL-terminated; `path` has room for size + 2
 * bytes.  False where an escape or a segment must not be. */
bool plumb__http_path_decode(const char *target, size_t size, char *path, plumb_http_fault *fault);

#endif
