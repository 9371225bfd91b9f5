/* Errors are values.  Each fault names the file, the tensor or field, the offset, what was found
 * and what was expected; the caller decides what to do.  Nothing below cli/ prints or exits. */
#ifndef PLUMB_BASE_ERROR_H
#define PLUMB_BASE_ERROR_H

#include "plumb.h"

/* Fills *err (if not NULL) with formatted parts and returns `status`, so that a fault is one
 * statement:  return plumb__fail(err, PLUMB_ERROR_IO, path, "header", 8, "12 bytes", "%d bytes", n);
 * `file`, `field` and `found` may be NULL; offset -1 means none.  `expected` is a printf format
 * (may be NULL).  Use plumb__found() to format `found`. */
plumb_status plumb__fail(plumb_error *err, plumb_status status, const char *file, const char *field,
                         int64_t offset, const char *found, const char *expected, ...)
    __attribute__((format(printf, 7, 8)));

/* A formatted string in a struct, so that it can be built inside an argument list. */
typedef struct plumb__text192 {
    char s[192];
} plumb__text192;
plumb__text192 plumb__format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Out of memory while holding `what`. */
plumb_status plumb__fail_memory(plumb_error *err, const char *what, size_t bytes);

#endif
