/* See chat_buffer.h. */
#include "text/chat_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void plumb__buffer_free(plumb__buffer *buffer) {
    free(buffer->bytes);
    *buffer = (plumb__buffer){0};
}

void plumb__buffer_append(plumb__buffer *buffer, const char *bytes, size_t size) {
    if (buffer->failed || size == 0) return;
    if (size > (size_t)(PLUMB__BUFFER_BYTES_MAX - buffer->size)) {
        buffer->failed = true;
        return;
    }
    int64_t needed = buffer->size + (int64_t)size;
    char *grown = plumb__grow(buffer->bytes, &buffer->capacity, needed, 1);
    if (!grown) {
        buffer->failed = true;
        return;
    }
    buffer->bytes = grown;
    memcpy(grown + buffer->size, bytes, size);
    buffer->size = needed;
}

void plumb__buffer_text(plumb__buffer *buffer, const char *text) {
    plumb__buffer_append(buffer, text, strlen(text));
}
