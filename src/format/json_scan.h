/* A scanner for the two huge, flat JSON texts of a checkpoint: shard headers and the index.
 *
 * The release has 96,085 tensors.  A tree of JSON values for them would cost hundreds of bytes a
 * node, and a hostile header of nested brackets many gigabytes; the scanner walks the text once,
 * allocates nothing, and knows the exact byte of every fault.  Strings are handed out as pointers
 * into the text, whose closing quote becomes a NUL: a name costs nothing beyond its header.
 * It accepts JSON, with one limit: strings that are handed out (names, dtypes, files) are plain
 * printable ASCII without escapes, as all of the format's are.
 *
 * A fault is remembered, and every later call does nothing and returns false or 0, so that callers
 * test once, at the end: scan->status. */
#ifndef PLUMB_FORMAT_JSON_SCAN_H
#define PLUMB_FORMAT_JSON_SCAN_H

#include "plumb.h"

typedef struct plumb_json_scan {
    char *text; /* text[size] is a NUL */
    int64_t size, at;
    int64_t base;     /* of text in the file, for messages */
    const char *path; /* for messages */
    plumb_error *err;
    plumb_status status;
} plumb_json_scan;

/* Walks the members of an object or the items of an array:
 *   plumb__scan_open(scan, '{');
 *   for (bool first = true; plumb__scan_next(scan, '}', &first);) {
 *       const char *key = plumb__scan_key(scan);  ... read one value ... } */
void plumb__scan_open(plumb_json_scan *scan, char bracket);
bool plumb__scan_next(plumb_json_scan *scan, char closing, bool *first);
/* A string and the colon after it; never NULL ("" after a fault). */
char *plumb__scan_key(plumb_json_scan *scan);
char *plumb__scan_string(plumb_json_scan *scan);
/* An integer 0 <= x <= INT64_MAX. */
int64_t plumb__scan_integer(plumb_json_scan *scan);
/* Any value, at most 64 levels deep. */
void plumb__scan_skip(plumb_json_scan *scan);
/* Only white space may follow. */
void plumb__scan_end(plumb_json_scan *scan);
/* Records a fault of the caller's at the current place, unless there is one already. */
void plumb__scan_fault(plumb_json_scan *scan, const char *field, const char *found,
                       const char *expected);

#endif
