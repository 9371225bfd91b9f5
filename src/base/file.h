/* Reading files, whole small ones and ranges of large ones; writing ranges. */
#ifndef PLUMB_BASE_FILE_H
#define PLUMB_BASE_FILE_H

#include "plumb.h"

#include <sys/stat.h>

/* Opens a regular file for reading; fills *status with what fstat says. */
PLUMB_MUST_CHECK plumb_status plumb__file_open(const char *path, int *fd, struct stat *status,
                                               plumb_error *err);
/* Reads exactly `size` bytes at `offset`, going on after interruptions and short reads.  An end of
 * file before that, or a failing read, is an error that names `field` and the offset reached. */
PLUMB_MUST_CHECK plumb_status plumb__file_read_at(int fd, const char *path, const char *field,
                                                  int64_t offset, int64_t size, void *into,
                                                  plumb_error *err);
/* Writes all of it at `offset`, going on after interruptions and short writes.  A failing write is an
 * error that names the offset reached. */
PLUMB_MUST_CHECK plumb_status plumb__file_write_at(int fd, const char *path, int64_t offset,
                                                   int64_t size, const void *from,
                                                   plumb_error *err);
/* Syncs the folder that `path` is in, so that a new name survives a loss of power; not every file
 * system can, which is no error. */
PLUMB_MUST_CHECK plumb_status plumb__file_sync_folder(const char *path, plumb_error *err);
/* The whole of a file of at most `limit` bytes, with a NUL after it; free() it. */
PLUMB_MUST_CHECK plumb_status plumb__file_load(const char *path, int64_t limit, char **text,
                                               int64_t *size, plumb_error *err);

#endif
