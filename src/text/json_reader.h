/* A strict pull reader for one JSON text in memory.
 *
 * tokenizer.json has a quarter of a million strings.  A document tree costs a hash insertion and
 * two allocations for each of them; this reader costs none: strings are unescaped in place and
 * handed out as slices of the buffer.  It also knows the byte offset of what it refuses.
 *
 * Errors are sticky: after the first one every function says "nothing more", so that callers read
 * straight on and look at `status` once. */
#ifndef PLUMB_TEXT_JSON_READER_H
#define PLUMB_TEXT_JSON_READER_H

#include "plumb.h"

typedef struct plumb__slice {
    const char *bytes; /* lives as long as the buffer; not NUL-terminated */
    size_t size;
} plumb__slice;

typedef struct plumb__json_reader {
    char *text; /* changed in place */
    size_t size, at;
    const char *file; /* for messages */
    plumb_status status;
    plumb_error *err;
} plumb__json_reader;

/* `text` (size bytes) must be valid UTF-8 and stays with the caller. */
void plumb__json_open(plumb__json_reader *r, char *text, size_t size, const char *file,
                      plumb_error *err);
/* Nothing but white space may follow. */
void plumb__json_end(plumb__json_reader *r);

/* Objects:  bool first = true; while (plumb__json_member(r, "field", &first, &key)) read the value.
 */
bool plumb__json_member(plumb__json_reader *r, const char *field, bool *first, plumb__slice *key);
/* Arrays:  bool first = true; while (plumb__json_element(r, "field", &first)) read the value. */
bool plumb__json_element(plumb__json_reader *r, const char *field, bool *first);

/* Values.  `field` names the value in the error when the type is another one. */
plumb__slice plumb__json_string(plumb__json_reader *r, const char *field);
int64_t plumb__json_integer(plumb__json_reader *r, const char *field); /* 0..2^53 */
bool plumb__json_boolean(plumb__json_reader *r, const char *field);
/* Reads null if that is what follows. */
bool plumb__json_null(plumb__json_reader *r);
/* The first character of the next value ('{', '[', '"', 't', ...), or 0 at the end. */
char plumb__json_peek(plumb__json_reader *r);

/* Refuses the value at hand; the first refusal wins. */
void plumb__json_refuse(plumb__json_reader *r, const char *field, const char *found,
                        const char *expected);
bool plumb__slice_is(plumb__slice slice, const char *text);

#endif
