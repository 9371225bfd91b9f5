#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 sequence at `s`, and its code point; 0 when it is none. */
static size_t decode(const unsigned char *s, uint32_t *code) {
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    if (n == 0) return 0;
    *code = n == 1 ? s[0] : s[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (s[i] >> 6 != 2) return 0;
        *code = *code << 6 | (s[i] & 0x3Fu);
    }
    return *code < least[n] || *code > 0x10FFFF || *code >> 11 == 27 ? 0 : n;
}

/* Controls, line separators and marks that turn the direction of text. */
static bool is_harmful(uint32_t c) {
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

/* Copies text that may come from a hostile file: what could drive a terminal or is not UTF-8 becomes
 * '?', so that an error stays one readable line; cut at the end of a character. */
static void copy_clean(char *to, size_t size, const char *from) {
    size_t at = 0;
    for (const unsigned char *s = (const unsigned char *)from; s && *s;) {
        uint32_t code = 0;
        size_t n = decode(s, &code);
        bool shown = n > 0 && !is_harmful(code);
        size_t width = shown ? n : 1;
        if (at + width > size - 1) break;
        if (shown) memcpy(to + at, s, n);
        else to[at] = '?';
        at += width;
        s += n > 0 ? n : 1;
    }
    to[at] = 0;
}

plumb_status plumb__fail(plumb_error *err, plumb_status status, const char *file, const char *field,
                         int64_t offset, const char *found, const char *expected, ...) {
    if (!err) return status;
    char text[192] = "";
    if (expected) {
        va_list args;
        va_start(args, expected);
        (void)vsnprintf(text, sizeof text, expected, args);
        va_end(args);
    }
    err->status = status;
    err->offset = offset;
    copy_clean(err->file, sizeof err->file, file);
    copy_clean(err->field, sizeof err->field, field);
    copy_clean(err->found, sizeof err->found, found);
    copy_clean(err->expected, sizeof err->expected, text);
    return status;
}

plumb__text192 plumb__format(const char *format, ...) {
    plumb__text192 text;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text.s, sizeof text.s, format, args);
    va_end(args);
    return text;
}

plumb_status plumb__fail_memory(plumb_error *err, const char *what, size_t bytes) {
    return plumb__fail(err, PLUMB_ERROR_MEMORY, NULL, what, -1, "no memory",
                       "%zu bytes", bytes);
}

const char *plumb_status_name(plumb_status status) {
    switch (status) {
    case PLUMB_OK: return "ok";
    case PLUMB_ERROR_ARGUMENT: return "bad argument";
    case PLUMB_ERROR_IO: return "input/output";
    case PLUMB_ERROR_FORMAT: return "bad format";
    case PLUMB_ERROR_CONFIG: return "bad config";
    case PLUMB_ERROR_TENSOR: return "bad tensor";
    case PLUMB_ERROR_VALUE: return "bad value";
    case PLUMB_ERROR_MEMORY: return "out of memory";
    case PLUMB_ERROR_CONTEXT: return "context full";
    case PLUMB_ERROR_TEXT: return "bad text";
    case PLUMB_ERROR_UNSUPPORTED: return "not supported";
    case PLUMB_ERROR_CANCELLED: return "cancelled";
    }
    return "unknown status";
}

void plumb_error_line(const plumb_error *err, char *line, size_t size) {
    char where[512] = "";
    int n = 0;
    if (err->file[0]) n += snprintf(where + n, sizeof where - (size_t)n, "%s: ", err->file);
    if (err->field[0]) n += snprintf(where + n, sizeof where - (size_t)n, "%s", err->field);
    if (err->field[0] && err->offset < 0) n += snprintf(where + n, sizeof where - (size_t)n, ": ");
    if (err->offset >= 0)
        (void)snprintf(where + n, sizeof where - (size_t)n, "%sat %lld: ", err->field[0] ? " " : "",
                       (long long)err->offset);
    const char *found = err->found[0] ? err->found : plumb_status_name(err->status);
    if (err->expected[0])
        (void)snprintf(line, size, "%sfound %s, expected %s", where, found, err->expected);
    else
        (void)snprintf(line, size, "%s%s", where, found);
}
