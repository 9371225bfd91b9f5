/* Text that grows piece by piece, for answers that are told whole at their end. */
#ifndef PLUMB_SERVER_TEXT_BUFFER_H
#define PLUMB_SERVER_TEXT_BUFFER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts as {0}.  After memory ran out once it takes no more, and says so with `failed`. */
typedef struct plumb_text_buffer {
    char *bytes; /* not NUL-terminated; NULL while empty */
    int64_t size, capacity;
    bool failed;
} plumb_text_buffer;

void plumb__text_append(plumb_text_buffer *text, const char *bytes, size_t size);
/* Compact; NULL: failed.  json_dumps of jansson 2.14 leaves out keys where memory is short, and says nothing. */
void plumb__text_append_json(plumb_text_buffer *text, const json_t *value);
void plumb__text_clear(plumb_text_buffer *text); /* keeps the memory */
void plumb__text_free(plumb_text_buffer *text);

/* A JSON string of any bytes: what is not UTF-8 becomes U+FFFD.  NULL: no memory. */
json_t *plumb__text_json_bytes(const char *bytes, size_t size);
json_t *plumb__text_json(const plumb_text_buffer *text); /* NULL also if it failed */

/* 0.95, not the 0.949999988 that is nearest to it among floats. */
json_t *plumb__json_float(float value);

#endif
