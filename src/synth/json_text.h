/* JSON text spelled exactly as Python's json module spells it: its three layouts, its numbers.
 *
 * A memory failure is remembered and reported once, by plumb__json_failed; calls after it do
 * nothing.  Strings are written as they are: callers pass printable ASCII without quotes and
 * backslashes. */
#ifndef PLUMB_SYNTH_JSON_TEXT_H
#define PLUMB_SYNTH_JSON_TEXT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct plumb__json_text {
    char *bytes; /* not NUL-terminated; released by plumb__json_free */
    int64_t size, capacity;
    const char *item_separator, *key_separator;
    int indent; /* spaces per level; -1: everything on one line */
    int depth;
    bool has_items, after_key, failed;
} plumb__json_text;

plumb__json_text plumb__json_compact(void);        /* separators=(",", ":") */
plumb__json_text plumb__json_one_line(void);       /* the default separators */
plumb__json_text plumb__json_indented(int indent); /* indent=N */
void plumb__json_free(plumb__json_text *text);
bool plumb__json_failed(const plumb__json_text *text);

void plumb__put_begin(plumb__json_text *text, char bracket); /* '{' or '[' */
void plumb__put_end(plumb__json_text *text, char bracket);   /* '}' or ']' */
void plumb__put_key(plumb__json_text *text, const char *key);
void plumb__put_string(plumb__json_text *text, const char *value);
void plumb__put_integer(plumb__json_text *text, int64_t value);
void plumb__put_real(plumb__json_text *text, float value);      /* shortest text that reads back */
void plumb__put_word(plumb__json_text *text, const char *word); /* true, false, null */
/* Text outside the JSON value: a closing newline, padding. */
void plumb__put_raw(plumb__json_text *text, const char *bytes, int64_t size);

#endif
