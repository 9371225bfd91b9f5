/* Bytes of unknown origin (arguments, paths, files) made fit for one line of valid UTF-8. */
#ifndef PLUMB_CLI_CLEAN_TEXT_H
#define PLUMB_CLI_CLEAN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Copies `text` to `out` (size bytes, NUL included) with `mark` in place of each byte that is not
 * UTF-8 and, unless `keep_controls`, of each control character (C0, DEL, C1).  Cut at a character
 * if it does not fit: three times the length, and one, is enough for a mark of up to 3 bytes. */
void cli_clean_text(const char *text, const char *mark, bool keep_controls, char *out, size_t size);

#endif
