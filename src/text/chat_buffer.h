/* A growing run of bytes with a sticky failure: once memory is short (or the stated maximum is
 * passed) appends do nothing, so that writers write straight on and look at `failed` once. */
#ifndef PLUMB_TEXT_CHAT_BUFFER_H
#define PLUMB_TEXT_CHAT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plumb.h"

#define PLUMB__BUFFER_BYTES_MAX ((int64_t)1 << 31)

/* Start from {0}; free with plumb__buffer_free. */
typedef struct plumb__buffer {
    char *bytes;
    int64_t size, capacity;
    bool failed;
} plumb__buffer;

void plumb__buffer_free(plumb__buffer *buffer);
void plumb__buffer_append(plumb__buffer *buffer, const char *bytes, size_t size);
void plumb__buffer_text(plumb__buffer *buffer, const char *text); /* NUL-terminated */

#endif
