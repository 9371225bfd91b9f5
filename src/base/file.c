/* Reading and writing files.  pread and pwrite, so that threads may share a descriptor. */
#include "base/file.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One system call moves at most about 2 GiB on Linux; asking for less keeps the sums simple. */
enum { MOST_AT_ONCE = 1 << 30 };

plumb_status plumb__file_open(const char *path, int *fd, struct stat *status, plumb_error *err) {
    /* O_NONBLOCK: opening a FIFO by mistake must not hang; it does nothing to regular files. */
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (opened < 0)
        return plumb__fail(err, PLUMB_ERROR_IO, path, "open", -1, strerror(errno),
                           "a readable file");
    if (fstat(opened, status) != 0) {
        plumb_status failed =
            plumb__fail(err, PLUMB_ERROR_IO, path, "fstat", -1, strerror(errno), "file status");
        (void)close(opened);
        return failed;
    }
    if (!S_ISREG(status->st_mode)) {
        (void)close(opened);
        return plumb__fail(err, PLUMB_ERROR_IO, path, "open", -1,
                           S_ISDIR(status->st_mode) ? "a folder" : "not a regular file",
                           "a regular file");
    }
    /* io_uring may hand a read of a non-blocking descriptor back unread. */
    (void)fcntl(opened, F_SETFL, 0);
    *fd = opened;
    return PLUMB_OK;
}

plumb_status plumb__file_read_at(int fd, const char *path, const char *field, int64_t offset,
                                 int64_t size, void *into, plumb_error *err) {
    char *to = into;
    while (size > 0) {
        size_t ask = (size_t)(size < MOST_AT_ONCE ? size : MOST_AT_ONCE);
        ssize_t got = pread(fd, to, ask, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return plumb__fail(err, PLUMB_ERROR_IO, path, field, offset, strerror(errno),
                               "%lld more bytes", (long long)size);
        if (got == 0)
            return plumb__fail(err, PLUMB_ERROR_IO, path, field, offset, "end of file",
                               "%lld more bytes", (long long)size);
        to += got;
        offset += got;
        size -= got;
    }
    return PLUMB_OK;
}

plumb_status plumb__file_write_at(int fd, const char *path, int64_t offset, int64_t size,
                                  const void *from, plumb_error *err) {
    const char *rest = from;
    while (size > 0) {
        size_t ask = (size_t)(size < MOST_AT_ONCE ? size : MOST_AT_ONCE);
        ssize_t put = pwrite(fd, rest, ask, (off_t)offset);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0)
            return plumb__fail(err, PLUMB_ERROR_IO, path, "write", offset,
                               put == 0 ? "nothing written" : strerror(errno),
                               "room for %lld more bytes", (long long)size);
        rest += put;
        offset += put;
        size -= put;
    }
    return PLUMB_OK;
}

plumb_status plumb__file_sync_folder(const char *path, plumb_error *err) {
    char *copy = strdup(path); /* dirname writes to it */
    if (!copy) return plumb__fail_memory(err, path, strlen(path));
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    plumb_status status = good ? PLUMB_OK
                               : plumb__fail(err, PLUMB_ERROR_IO, path, "folder", -1,
                                             strerror(errno), "a folder to be synced");
    if (fd >= 0) (void)close(fd);
    free(copy);
    return status;
}

plumb_status plumb__file_load(const char *path, int64_t limit, char **text, int64_t *size,
                              plumb_error *err) {
    int fd = -1;
    struct stat status;
    plumb_status result = plumb__file_open(path, &fd, &status, err);
    if (result != PLUMB_OK) return result;
    int64_t bytes = status.st_size;
    char *loaded = NULL;
    if (bytes > limit) {
        result = plumb__fail(err, PLUMB_ERROR_FORMAT, path, "file size", -1,
                             plumb__format("%lld bytes", (long long)bytes).s,
                             "at most %lld bytes", (long long)limit);
    } else if (!(loaded = malloc((size_t)bytes + 1))) {
        result = plumb__fail_memory(err, path, (size_t)bytes + 1);
    } else {
        result = plumb__file_read_at(fd, path, "file", 0, bytes, loaded, err);
    }
    (void)close(fd);
    if (result != PLUMB_OK) {
        free(loaded);
        return result;
    }
    loaded[bytes] = 0;
    *text = loaded;
    *size = bytes;
    return PLUMB_OK;
}
