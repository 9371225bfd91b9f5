/* Digests of a converted file's header, inside it: XXH3-64 of its blocks of 64 KiB, with these digests
 * read as zeros.  A config with one wrong bit would be run otherwise. */
#ifndef PLUMB_FORMAT_GGUF_SEAL_H
#define PLUMB_FORMAT_GGUF_SEAL_H

#include "format/gguf.h"

#define PLUMB_KEY_HEADER_DIGESTS "plumb.digest.header" /* u64 array */

enum { PLUMB_HEADER_BLOCK = 65536 };

/* How many a header of so many bytes has. */
int64_t plumb__gguf_seal_blocks(int64_t header_bytes);
/* Computes digests[blocks] of header[bytes], where the array of them begins at `at`. */
PLUMB_MUST_CHECK plumb_status plumb__gguf_seal_compute(const uint8_t *header, int64_t bytes,
                                                       int64_t at, uint64_t *digests,
                                                       plumb_error *err);
/* Do they hold?  The first block that does not fit is named by its range. */
PLUMB_MUST_CHECK plumb_status plumb__gguf_seal_check(const plumb_gguf *gguf, plumb_error *err);

#endif
