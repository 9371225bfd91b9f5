/* See text_buffer.h. */
#include "server/text_buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

void plumb__text_append(plumb_text_buffer *text, const char *bytes, size_t size) {
    if (text->failed || size == 0) return;
    char *grown = plumb__grow(text->bytes, &text->capacity, text->size + (int64_t)size, 1);
    if (!grown) {
        text->failed = true;
        return;
    }
    text->bytes = grown;
    memcpy(grown + text->size, bytes, size);
    text->size += (int64_t)size;
}

static int append_piece(const char *bytes, size_t size, void *text) {
    plumb__text_append(text, bytes, size);
    return 0;
}

void plumb__text_append_json(plumb_text_buffer *text, const json_t *value) {
    if (!value || json_dump_callback(value, append_piece, text, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
        text->failed = true;
}

void plumb__text_clear(plumb_text_buffer *text) { text->size = 0; }

void plumb__text_free(plumb_text_buffer *text) {
    free(text->bytes);
    *text = (plumb_text_buffer){0};
}

/* Bytes that are no characters are rare, so this may take its time. */
static json_t *repaired(const char *bytes, size_t size) {
    plumb_text_buffer text = {0};
    for (size_t at = 0, length; at < size; at += length) {
        bool whole = plumb__utf8_judge(bytes + at, size - at, &length) == PLUMB_UTF8_CHARACTER;
        plumb__text_append(&text, whole ? bytes + at : PLUMB_UTF8_REPLACEMENT, whole ? length : 3);
    }
    json_t *value = text.failed ? NULL : json_stringn_nocheck(text.bytes, (size_t)text.size);
    plumb__text_free(&text);
    return value;
}

json_t *plumb__text_json_bytes(const char *bytes, size_t size) {
    if (size == 0) return json_string("");
    if (plumb__utf8_valid_prefix(bytes, size) < size) return repaired(bytes, size);
    return json_stringn_nocheck(bytes, size);
}

json_t *plumb__text_json(const plumb_text_buffer *text) {
    return text->failed ? NULL : plumb__text_json_bytes(text->bytes, (size_t)text->size);
}

json_t *plumb__json_float(float value) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", (double)value);
    return json_real(strtod(text, NULL));
}
