/* The scanner of shard headers and indexes; see json_scan.h for why there is one. */
#include "format/json_scan.h"

#include "base/error.h"

#include <string.h>

enum { MAX_DEPTH = 64 };

void plumb__scan_fault(plumb_json_scan *scan, const char *field, const char *found,
                       const char *expected) {
    if (scan->status != PLUMB_OK) return;
    scan->status = plumb__fail(scan->err, PLUMB_ERROR_FORMAT, scan->path, field,
                               scan->base + scan->at, found, "%s", expected);
}

/* The fault "the byte here is not what `expected` says". */
static void unexpected(plumb_json_scan *scan, const char *expected) {
    if (scan->at >= scan->size) {
        plumb__scan_fault(scan, "JSON", "end of text", expected);
        return;
    }
    unsigned char c = (unsigned char)scan->text[scan->at];
    plumb__text192 found = c > 0x20 && c < 0x7F ? plumb__format("'%c'", c)
                                                : plumb__format("byte 0x%02X", c);
    plumb__scan_fault(scan, "JSON", found.s, expected);
}

/* The next byte after white space, or 0 at the end or after a fault.  (A NUL in the text is never
 * valid, so the two need no telling apart here.) */
static char peek(plumb_json_scan *scan) {
    if (scan->status != PLUMB_OK) return 0;
    while (scan->at < scan->size) {
        char c = scan->text[scan->at];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return c;
        scan->at++;
    }
    return 0;
}

static bool take(plumb_json_scan *scan, char wanted, const char *expected) {
    if (peek(scan) == wanted) {
        scan->at++;
        return true;
    }
    unexpected(scan, expected);
    return false;
}

void plumb__scan_open(plumb_json_scan *scan, char bracket) {
    (void)take(scan, bracket, bracket == '{' ? "an object" : "an array");
}

bool plumb__scan_next(plumb_json_scan *scan, char closing, bool *first) {
    char c = peek(scan);
    bool was_first = *first;
    *first = false;
    if (c == closing) {
        scan->at++;
        return false;
    }
    if (was_first) return scan->status == PLUMB_OK;
    return take(scan, ',', closing == '}' ? "',' or '}'" : "',' or ']'");
}

char *plumb__scan_string(plumb_json_scan *scan) {
    if (!take(scan, '"', "a string")) return scan->text + scan->size;
    int64_t begin = scan->at;
    while (scan->at < scan->size) {
        unsigned char c = (unsigned char)scan->text[scan->at];
        if (c == '"') {
            scan->text[scan->at++] = 0;
            return scan->text + begin;
        }
        if (c < 0x20 || c > 0x7E || c == '\\') break;
        scan->at++;
    }
    unexpected(scan, "printable ASCII without escapes");
    return scan->text + scan->size;
}

char *plumb__scan_key(plumb_json_scan *scan) {
    char *key = plumb__scan_string(scan);
    (void)take(scan, ':', "':'");
    return key;
}

int64_t plumb__scan_integer(plumb_json_scan *scan) {
    char c = peek(scan);
    if (c < '0' || c > '9') {
        unexpected(scan, "a whole number, not negative");
        return 0;
    }
    int64_t value = 0;
    int64_t begin = scan->at;
    while (scan->at < scan->size) {
        c = scan->text[scan->at];
        if (c < '0' || c > '9') break;
        if (value > (INT64_MAX - (c - '0')) / 10) {
            plumb__scan_fault(scan, "JSON", "a larger number", "at most 9223372036854775807");
            return 0;
        }
        value = value * 10 + (c - '0');
        scan->at++;
    }
    bool leading_zero = scan->text[begin] == '0' && scan->at - begin > 1;
    if (leading_zero || c == '.' || c == 'e' || c == 'E') {
        plumb__scan_fault(scan, "JSON", leading_zero ? "a leading zero" : "a fraction or exponent",
                          "a whole number");
        return 0;
    }
    return value;
}

/* A string that nobody looks at: escapes are stepped over. */
static void skip_string(plumb_json_scan *scan) {
    scan->at++;
    while (scan->at < scan->size) {
        unsigned char c = (unsigned char)scan->text[scan->at];
        if (c < 0x20) break;
        scan->at++;
        if (c == '"') return;
        if (c == '\\' && scan->at < scan->size) scan->at++;
    }
    unexpected(scan, "a closed string");
}

/* A number or one of the three words; its spelling is not checked further. */
static void skip_word(plumb_json_scan *scan) {
    int64_t begin = scan->at;
    while (scan->at < scan->size) {
        char c = scan->text[scan->at];
        bool inside = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == 'E' || c == '+' ||
                      c == '-' || c == '.';
        if (!inside) break;
        scan->at++;
    }
    if (scan->at == begin) unexpected(scan, "a value");
}

/* An explicit stack of closing brackets: depth is the text's choice, not ours to recurse on. */
void plumb__scan_skip(plumb_json_scan *scan) {
    char closing[MAX_DEPTH];
    bool first[MAX_DEPTH];
    int depth = 0;
    do {
        if (depth > 0 && !plumb__scan_next(scan, closing[depth - 1], &first[depth - 1])) {
            depth--;
            continue;
        }
        char c = peek(scan);
        if (depth > 0 && closing[depth - 1] == '}') {
            if (c == '"') skip_string(scan);
            else unexpected(scan, "a string");
            (void)take(scan, ':', "':'");
            c = peek(scan);
        }
        if (c == '{' || c == '[') {
            if (depth == MAX_DEPTH) {
                plumb__scan_fault(scan, "JSON", "deeper nesting", "at most 64 levels");
                return;
            }
            closing[depth] = c == '{' ? '}' : ']';
            first[depth++] = true;
            scan->at++;
        } else if (c == '"') {
            skip_string(scan);
        } else {
            skip_word(scan);
        }
    } while (depth > 0 && scan->status == PLUMB_OK);
}

void plumb__scan_end(plumb_json_scan *scan) {
    (void)peek(scan);
    if (scan->status == PLUMB_OK && scan->at < scan->size) unexpected(scan, "the end");
}
