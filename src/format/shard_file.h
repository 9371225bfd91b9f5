/* One file of a checkpoint: what it was when it was opened, and whether it still is that. */
#ifndef PLUMB_FORMAT_SHARD_FILE_H
#define PLUMB_FORMAT_SHARD_FILE_H

#include "plumb.h"

#include <sys/stat.h>

typedef struct plumb_shard_file {
    char *path;
    const char *file;   /* the last part of path */
    int fd;
    struct stat opened; /* what the file was */
    char *header;       /* holds the tensors' names */
} plumb_shard_file;

/* The open file and the one its path leads to are the file that was opened, of the same size and
 * modification time.  `field` and `offset` are for the message. */
PLUMB_MUST_CHECK plumb_status plumb__shard_check_unchanged(const plumb_shard_file *shard,
                                                           const char *field, int64_t offset,
                                                           plumb_error *err);
/* As plumb__checkpoint_open_uncached. */
PLUMB_MUST_CHECK plumb_status plumb__shard_open_uncached(const plumb_shard_file *shard, int *fd,
                                                         bool *uncached, char *why,
                                                         size_t why_size, plumb_error *err);

#endif
