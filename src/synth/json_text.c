/* The writer keeps one bit of state per value, whether its container already has items, because an
 * end bracket restores "has items" for the container around it by definition: it just got one. */
#include "synth/json_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

plumb__json_text plumb__json_compact(void) {
    return (plumb__json_text){.item_separator = ",", .key_separator = ":", .indent = -1};
}

plumb__json_text plumb__json_one_line(void) {
    return (plumb__json_text){.item_separator = ", ", .key_separator = ": ", .indent = -1};
}

plumb__json_text plumb__json_indented(int indent) {
    return (plumb__json_text){.item_separator = ",", .key_separator = ": ", .indent = indent};
}

void plumb__json_free(plumb__json_text *text) {
    free(text->bytes);
    text->bytes = NULL;
    text->size = text->capacity = 0;
}

bool plumb__json_failed(const plumb__json_text *text) {
    return text->failed;
}

void plumb__put_raw(plumb__json_text *text, const char *bytes, int64_t size) {
    if (text->failed) return;
    char *grown = plumb__grow(text->bytes, &text->capacity, text->size + size, 1);
    if (!grown) {
        text->failed = true;
        return;
    }
    text->bytes = grown;
    memcpy(grown + text->size, bytes, (size_t)size);
    text->size += size;
}

static void put(plumb__json_text *text, const char *string) {
    plumb__put_raw(text, string, (int64_t)strlen(string));
}

static void put_line_break(plumb__json_text *text) {
    if (text->indent < 0) return;
    put(text, "\n");
    for (int i = 0; i < text->depth * text->indent; i++) put(text, " ");
}

/* What stands before a value or key: nothing after a key, else a separator and a new line. */
static void put_lead(plumb__json_text *text) {
    if (!text->after_key) {
        if (text->has_items) put(text, text->item_separator);
        if (text->depth > 0) put_line_break(text);
    }
    text->after_key = false;
    text->has_items = true;
}

void plumb__put_begin(plumb__json_text *text, char bracket) {
    put_lead(text);
    plumb__put_raw(text, &bracket, 1);
    text->depth++;
    text->has_items = false;
}

void plumb__put_end(plumb__json_text *text, char bracket) {
    text->depth--;
    if (text->has_items) put_line_break(text);
    plumb__put_raw(text, &bracket, 1);
    text->has_items = true;
}

void plumb__put_string(plumb__json_text *text, const char *value) {
    put_lead(text);
    put(text, "\"");
    put(text, value);
    put(text, "\"");
}

void plumb__put_key(plumb__json_text *text, const char *key) {
    plumb__put_string(text, key);
    put(text, text->key_separator);
    text->after_key = true;
}

void plumb__put_integer(plumb__json_text *text, int64_t value) {
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRId64, value);
    plumb__put_word(text, digits);
}

void plumb__put_real(plumb__json_text *text, float value) {
    char digits[40];
    for (int precision = 1; precision <= 9; precision++) {
        (void)snprintf(digits, sizeof digits, "%.*g", precision, (double)value);
        /* "1e+01" reads back too, but Python writes such numbers in full. */
        if (strtof(digits, NULL) == value && !strstr(digits, "e+")) break;
    }
    /* Python marks a real number that happens to be whole. */
    if (!strpbrk(digits, ".e")) strcat(digits, ".0");
    plumb__put_word(text, digits);
}

void plumb__put_word(plumb__json_text *text, const char *word) {
    put_lead(text);
    put(text, word);
}
