/* The file of a receipt: its name, its last line, which is the digest of all before it, and writing
 * it whole or not at all. */
#ifndef PLUMB_CONVERT_RECEIPT_FILE_H
#define PLUMB_CONVERT_RECEIPT_FILE_H

#include "plumb.h"

/* `body` is a JSON object, whose closing brace stands on the last line.  Adds the digest. */
PLUMB_MUST_CHECK plumb_status plumb__receipt_file_write(const char *path, const char *body,
                                                        plumb_error *err);
/* free() the text; text[size] is a NUL. */
PLUMB_MUST_CHECK plumb_status plumb__receipt_file_load(const char *path, char **text, int64_t *size,
                                                       plumb_error *err);
/* Does it end with its own digest? */
PLUMB_MUST_CHECK plumb_status plumb__receipt_file_check(const char *text, size_t size,
                                                        const char *path, plumb_error *err);

#endif
