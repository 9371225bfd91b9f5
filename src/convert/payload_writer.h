/* One payload on its way into a file: bytes are appended to a buffer that is hashed and written in
 * large aligned pieces, past the page cache where the file system allows it.  Pieces of zeros are left
 * as holes. */
#ifndef PLUMB_CONVERT_PAYLOAD_WRITER_H
#define PLUMB_CONVERT_PAYLOAD_WRITER_H

#include "plumb.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct plumb_payload_writer {
    const char *path;
    int fd;             /* borrowed */
    uint8_t *memory;    /* [room] */
    int64_t room;
    int64_t offset;     /* in the file, of memory[0]; a multiple of 4096 */
    int64_t filled;     /* bytes in memory */
    int64_t hashed;     /* of these, already in the digest */
    XXH3_state_t *hash;
} plumb_payload_writer;

/* fd: open for aligned writes.  A writer serves one payload after another. */
PLUMB_MUST_CHECK plumb_status plumb__payload_writer_open(const char *path, int fd,
                                                         plumb_payload_writer *writer,
                                                         plumb_error *err);
void plumb__payload_writer_close(plumb_payload_writer *writer);

/* offset: where the payload begins, a multiple of 4096. */
void plumb__payload_begin(plumb_payload_writer *writer, int64_t offset);
/* Room for at least one unit of `unit` bytes and as many more as fit, up to `most`: *units of them.
 * To be filled, then told with plumb__payload_added. */
PLUMB_MUST_CHECK plumb_status plumb__payload_reserve(plumb_payload_writer *writer, int64_t unit,
                                                     int64_t most, uint8_t **room, int64_t *units,
                                                     plumb_error *err);
void plumb__payload_added(plumb_payload_writer *writer, int64_t bytes);
/* Writes what is left, padded with zeros to a block, and gives the XXH3-128 of the payload. */
PLUMB_MUST_CHECK plumb_status plumb__payload_end(plumb_payload_writer *writer,
                                                 XXH128_hash_t *digest, plumb_error *err);

#endif
