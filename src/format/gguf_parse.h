/* What the reader and the writer of GGUF headers share. */
#ifndef PLUMB_FORMAT_GGUF_PARSE_H
#define PLUMB_FORMAT_GGUF_PARSE_H

#include "format/gguf.h"

#define PLUMB_GGUF_MAGIC "GGUF"
#define PLUMB_GGUF_ALIGNMENT_KEY "general.alignment"

enum { PLUMB_GGUF_VERSION = 3 };

/* Bytes of a value of fixed size; 0 for strings, arrays and unknown types. */
int64_t plumb__gguf_type_bytes(uint32_t type);

/* Fills everything of `gguf` from gguf->header, of which `size` bytes are there, in place of what an
 * earlier attempt filled; path and file_bytes are set already.  *cut: the status is an error only
 * because the header goes on behind `size`. */
PLUMB_MUST_CHECK plumb_status plumb__gguf_parse_header(plumb_gguf *gguf, int64_t size, bool *cut,
                                                       plumb_error *err);

/* Sets by_key and by_name; refuses names that are there twice. */
PLUMB_MUST_CHECK plumb_status plumb__gguf_sort(plumb_gguf *gguf, plumb_error *err);

/* Frees all but header and path. */
void plumb__gguf_forget(plumb_gguf *gguf);

#endif
