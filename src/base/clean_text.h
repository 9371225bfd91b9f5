/* Bytes of unknown origin (arguments, paths, files) made fit to be shown on one line. */
#ifndef PLUMB_BASE_CLEAN_TEXT_H
#define PLUMB_BASE_CLEAN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Copies `text` to `out` (size bytes, NUL included) with `mark` in place of each byte that is not
 * UTF-8 and, unless `keep_controls`, of each character that could drive a terminal or break the
 * line: C0, DEL, C1, line separators, byte order marks and those that turn the direction of text.
 * Cut at a character if it does not fit. */
void plumb__clean_text(const char *text, const char *mark, bool keep_controls, char *out,
                       size_t size);

#endif
