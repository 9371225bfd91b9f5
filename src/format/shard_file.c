/* Files that may change under an open model, and reading them past the page cache.
 *
 * Whether a file system can do uncached reads shows when one is tried: some refuse the mode, others
 * only the read. */
#include "format/shard_file.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What uncached reads are aligned to; of the read that is tried. */
enum { BLOCK_BYTES = 4096 };

/* ---- Is it still the same? ------------------------------------------------------------------- */

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

static bool same_content(const struct stat *a, const struct stat *b) {
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static plumb_status fail_system(const plumb_shard_file *shard, const char *field, int64_t offset,
                                plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_IO, shard->path, field, offset, strerror(errno),
                       "the file that was opened");
}

static plumb_status check_content(const plumb_shard_file *shard, const struct stat *now,
                                  const char *field, int64_t offset, plumb_error *err) {
    if (same_content(&shard->opened, now)) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_IO, shard->path, field, offset,
                       plumb__format("a file changed since it was opened, now of %lld bytes",
                                     (long long)now->st_size).s,
                       "the unchanged file of %lld bytes", (long long)shard->opened.st_size);
}

static plumb_status check_identity(const plumb_shard_file *shard, const struct stat *there,
                                   const char *field, int64_t offset, plumb_error *err) {
    if (same_file(&shard->opened, there)) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_IO, shard->path, field, offset,
                       "another file of that name", "the file that was opened");
}

plumb_status plumb__shard_check_unchanged(const plumb_shard_file *shard, const char *field,
                                          int64_t offset, plumb_error *err) {
    struct stat now, there;
    if (fstat(shard->fd, &now) != 0) return fail_system(shard, field, offset, err);
    plumb_status status = check_content(shard, &now, field, offset, err);
    if (status != PLUMB_OK) return status;
    if (stat(shard->path, &there) != 0) return fail_system(shard, field, offset, err);
    return check_identity(shard, &there, field, offset, err);
}

/* ---- Uncached reading ------------------------------------------------------------------------------ */

/* Opens the path again and makes sure of what it led to.  O_NONBLOCK: what stands there now may be a
 * FIFO.  Not kept: io_uring may hand back reads of such a descriptor unread. */
static plumb_status open_again(const plumb_shard_file *shard, int *fd, plumb_error *err) {
    static const char field[] = "open again";
    struct stat now;
    int again = open(shard->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (again < 0) return fail_system(shard, field, -1, err);
    plumb_status status = fstat(again, &now) == 0 && fcntl(again, F_SETFL, O_RDONLY) == 0
                              ? check_identity(shard, &now, field, -1, err)
                              : fail_system(shard, field, -1, err);
    if (status == PLUMB_OK) status = check_content(shard, &now, field, -1, err);
    if (status == PLUMB_OK) *fd = again;
    else (void)close(again);
    return status;
}

/* 0 or -1 with errno. */
static int set_uncached(int fd, bool uncached) {
#if defined(O_DIRECT)
    return fcntl(fd, F_SETFL, uncached ? O_RDONLY | O_DIRECT : O_RDONLY);
#elif defined(F_NOCACHE)
    return fcntl(fd, F_NOCACHE, (int)uncached);
#else
    (void)fd;
    errno = ENOTSUP;
    return uncached ? -1 : 0;
#endif
}

/* One read with no more alignment than is promised; 0 or -1 with errno. */
static int try_read(int fd) {
    char *memory = aligned_alloc((size_t)2 * BLOCK_BYTES, (size_t)2 * BLOCK_BYTES);
    ssize_t got = memory ? pread(fd, memory + BLOCK_BYTES, BLOCK_BYTES, 0) : -1;
    int refused = errno;
    free(memory);
    errno = refused;
    return got < 0 ? -1 : 0;
}

plumb_status plumb__shard_open_uncached(const plumb_shard_file *shard, int *fd, bool *uncached,
                                        char *why, size_t why_size, plumb_error *err) {
    int again = -1;
    plumb_status status = open_again(shard, &again, err);
    if (status != PLUMB_OK) return status;
    bool works = set_uncached(again, true) == 0 && try_read(again) == 0;
    int refused = errno;
    if (!works && set_uncached(again, false) != 0) {
        status = fail_system(shard, "open again", -1, err);
        (void)close(again);
        return status;
    }
    if (why && works) (void)snprintf(why, why_size, "uncached");
    if (why && !works)
        (void)snprintf(why, why_size, "through the page cache: uncached reading is refused (%s)",
                       strerror(refused));
    *fd = again;
    *uncached = works;
    return PLUMB_OK;
}
