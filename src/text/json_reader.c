/* See json_reader.h.  RFC 8259; numbers are whole and not negative, since a tokenizer has no
 * others. */
#include "text/json_reader.h"

#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

void plumb__json_open(plumb__json_reader *r, char *text, size_t size, const char *file,
                      plumb_error *err) {
    *r = (plumb__json_reader){.text = text, .size = size, .file = file, .err = err};
}

static bool ended(const plumb__json_reader *r) {
    return r->status != PLUMB_OK || r->at >= r->size;
}

void plumb__json_refuse(plumb__json_reader *r, const char *field, const char *found,
                        const char *expected) {
    if (r->status != PLUMB_OK) return;
    r->status = plumb__fail(r->err, PLUMB_ERROR_FORMAT, r->file, field, (int64_t)r->at, found, "%s",
                            expected);
}

/* What stands at the reading position, in words. */
static plumb__text192 describe(const plumb__json_reader *r) {
    if (r->at >= r->size) return plumb__format("end of file");
    size_t length;
    (void)plumb__utf8_judge(r->text + r->at, r->size - r->at, &length);
    return plumb__format("\"%.*s\"", (int)length, r->text + r->at);
}

static void refuse_here(plumb__json_reader *r, const char *field, const char *expected) {
    plumb__json_refuse(r, field, describe(r).s, expected);
}

char plumb__json_peek(plumb__json_reader *r) {
    while (!ended(r)) {
        char c = r->text[r->at];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return c;
        r->at++;
    }
    return 0;
}

static bool accept(plumb__json_reader *r, char wanted) {
    if (plumb__json_peek(r) != wanted || ended(r)) return false;
    r->at++;
    return true;
}

void plumb__json_end(plumb__json_reader *r) {
    (void)plumb__json_peek(r);
    if (!ended(r)) refuse_here(r, "JSON", "end of file");
}

/* The common shape of objects and arrays: an opener, then items with commas, then the closer. */
static bool next_item(plumb__json_reader *r, const char *field, bool *first, char open,
                      char close) {
    if (*first) {
        if (!accept(r, open)) {
            refuse_here(r, field, open == '{' ? "an object" : "an array");
            return false;
        }
        *first = false;
        return !accept(r, close) && r->status == PLUMB_OK;
    }
    if (accept(r, close)) return false;
    if (!accept(r, ',')) refuse_here(r, field, open == '{' ? "',' or '}'" : "',' or ']'");
    return r->status == PLUMB_OK;
}

bool plumb__json_member(plumb__json_reader *r, const char *field, bool *first, plumb__slice *key) {
    if (!next_item(r, field, first, '{', '}')) return false;
    *key = plumb__json_string(r, field);
    if (r->status == PLUMB_OK && !accept(r, ':')) refuse_here(r, field, "':'");
    return r->status == PLUMB_OK;
}

bool plumb__json_element(plumb__json_reader *r, const char *field, bool *first) {
    return next_item(r, field, first, '[', ']');
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Four hexadecimal digits at `at`, or -1. */
static int32_t hex4(const plumb__json_reader *r, size_t at) {
    if (r->size - at < 4) return -1;
    int32_t value = 0;
    for (size_t i = 0; i < 4; i++) {
        int digit = hex_digit(r->text[at + i]);
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Reads the escape at r->at (just behind the backslash) and writes it to `to`.  An escape is never
 * shorter than what it stands for.  Returns the bytes written, 0 if it is malformed. */
static size_t unescape(plumb__json_reader *r, char *to) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = r->text[r->at];
    if (c != 'u') {
        const char *name = c ? strchr(names, c) : NULL;
        if (!name) return 0;
        r->at++;
        *to = values[name - names];
        return 1;
    }
    int32_t unit = hex4(r, r->at + 1);
    if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF)) return 0;
    r->at += 5;
    if (unit < 0xD800 || unit > 0xDBFF) return plumb__utf8_write(to, (uint32_t)unit);
    if (r->size - r->at < 6 || r->text[r->at] != '\\' || r->text[r->at + 1] != 'u') return 0;
    int32_t low = hex4(r, r->at + 2);
    if (low < 0xDC00 || low > 0xDFFF) return 0;
    r->at += 6;
    return plumb__utf8_write(to, 0x10000u + ((uint32_t)(unit - 0xD800) << 10) +
                                     (uint32_t)(low - 0xDC00));
}

plumb__slice plumb__json_string(plumb__json_reader *r, const char *field) {
    plumb__slice none = {"", 0};
    if (!accept(r, '"')) {
        refuse_here(r, field, "a string");
        return none;
    }
    char *start = r->text + r->at, *to = start;
    while (r->at < r->size) {
        char c = r->text[r->at];
        if (c == '"') {
            r->at++;
            return (plumb__slice){start, (size_t)(to - start)};
        }
        if ((unsigned char)c < 0x20) break;
        r->at++;
        if (c != '\\') {
            *to++ = c;
            continue;
        }
        size_t written = r->at < r->size ? unescape(r, to) : 0;
        if (written == 0) {
            refuse_here(r, field, "a valid escape in a string");
            return none;
        }
        to += written;
    }
    refuse_here(r, field, "'\"' at the end of a string");
    return none;
}

int64_t plumb__json_integer(plumb__json_reader *r, const char *field) {
    static const char expected[] = "a whole number of at most 2^53";
    (void)plumb__json_peek(r);
    size_t start = r->at;
    int64_t value = 0;
    while (!ended(r) && r->text[r->at] >= '0' && r->text[r->at] <= '9') {
        value = value * 10 + (r->text[r->at] - '0');
        if (value > INT64_C(1) << 53) break;
        r->at++;
    }
    bool leading_zero = r->at - start > 1 && r->text[start] == '0';
    bool goes_on = r->at < r->size && strchr("0123456789.eE+-", r->text[r->at]) && r->text[r->at];
    if (r->at == start || leading_zero || goes_on) {
        refuse_here(r, field, expected);
        return 0;
    }
    return value;
}

static bool accept_word(plumb__json_reader *r, const char *word) {
    size_t length = strlen(word);
    (void)plumb__json_peek(r);
    if (ended(r) || r->size - r->at < length || memcmp(r->text + r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

bool plumb__json_boolean(plumb__json_reader *r, const char *field) {
    if (accept_word(r, "true")) return true;
    if (!accept_word(r, "false")) refuse_here(r, field, "true or false");
    return false;
}

bool plumb__json_null(plumb__json_reader *r) {
    return accept_word(r, "null");
}

bool plumb__slice_is(plumb__slice slice, const char *text) {
    return slice.size == strlen(text) && memcmp(slice.bytes, text, slice.size) == 0;
}
