/* Ranges of large files, read past the page cache where the file system allows it, so that what is
 * read is what the disk holds and other files stay cached. */
#ifndef PLUMB_CONVERT_PAYLOAD_READER_H
#define PLUMB_CONVERT_PAYLOAD_READER_H

#include "format/shard_file.h"

/* Uncached descriptors of some files; shared by threads. */
typedef struct plumb_payload_files {
    const plumb_shard_file *const *file; /* [count] borrowed */
    int64_t count;
    int *fd;                             /* [count] */
    bool uncached;                       /* all of them */
} plumb_payload_files;

/* `file` must outlive it. */
PLUMB_MUST_CHECK plumb_status plumb__payload_files_open(const plumb_shard_file *const *file,
                                                        int64_t count, plumb_payload_files *files,
                                                        plumb_error *err);
void plumb__payload_files_close(plumb_payload_files *files);

typedef struct plumb_payload_buffer {
    uint8_t *memory;
    int64_t zeros; /* so many bytes from the start on are zero: holes need no more */
} plumb_payload_buffer;

/* One thread's buffers. */
typedef struct plumb_payload_reader {
    const plumb_payload_files *files;
    int64_t room;
    plumb_payload_buffer now;
    struct plumb_read_ahead *ahead; /* a second buffer and who fills it; NULL until one is asked to */
} plumb_payload_reader;

/* most: bytes of one read. */
PLUMB_MUST_CHECK plumb_status plumb__payload_reader_open(const plumb_payload_files *files,
                                                         int64_t most, plumb_payload_reader *reader,
                                                         plumb_error *err);
void plumb__payload_reader_close(plumb_payload_reader *reader);
/* Bytes [offset, offset + size) of file number `file`; *bytes is inside the buffer and lasts until the
 * next read.  Holes are not read.  A short or failing read, or a file that changed, is an error naming
 * `field` and the offset. */
PLUMB_MUST_CHECK plumb_status plumb__payload_read(plumb_payload_reader *reader, int64_t file,
                                                  int64_t offset, int64_t size, const char *field,
                                                  const uint8_t **bytes, plumb_error *err);
/* Is the range a hole, but for the parts of blocks at its ends, which are read and must be zero too?  Where
 * it cannot be said without reading more, or the file changed: false. */
bool plumb__payload_is_hollow(const plumb_payload_files *files, int64_t file, int64_t offset,
                              int64_t size);
/* Has another thread begin the read that the caller will ask for next, so that the drive works while
 * the caller does.  Faults are told by that read; `field` must last until then.  Any other read, or
 * none, is fine. */
PLUMB_MUST_CHECK plumb_status plumb__payload_read_ahead(plumb_payload_reader *reader, int64_t file,
                                                        int64_t offset, int64_t size,
                                                        const char *field, plumb_error *err);

#endif
