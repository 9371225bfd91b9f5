#include "base/error.h"

#include "base/clean_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void copy_clean(char *to, size_t size, const char *from) {
    plumb__clean_text(from ? from : "", "?", false, to, size);
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
