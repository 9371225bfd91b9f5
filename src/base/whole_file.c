#include "base/whole_file.h"

#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char suffix[] = PLUMB_WHOLE_FILE_SUFFIX;

static plumb_status fail_system(const char *path, const char *what, const char *expected,
                                plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_IO, path, what, -1, strerror(errno), "%s", expected);
}

static plumb_status refuse(const char *path, const char *found, plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_ARGUMENT, path, NULL, -1, found,
                       "a name for a new file, or a file to replace");
}

/* ---- Names ------------------------------------------------------------------------------------- */

static const char *kind_of(const struct stat *there) {
    return S_ISDIR(there->st_mode) ? "a folder" : "something that is no plain file";
}

/* The name to rename to; free() it. */
static plumb_status resolve(const char *path, char **resolved, plumb_error *err) {
    size_t size = strlen(path), ending = sizeof suffix - 1;
    if (size == 0) return refuse(NULL, "an empty name", err);
    if (path[size - 1] == '/') return refuse(path, "a folder", err);
    if (size >= ending && strcmp(path + size - ending, suffix) == 0)
        return refuse(path, "the name of an unfinished file", err);
    struct stat there;
    bool exists = lstat(path, &there) == 0;
    if (!exists && errno != ENOENT) return fail_system(path, NULL, "a name for a new file", err);
    bool is_link = exists && S_ISLNK(there.st_mode);
    char *name = is_link ? realpath(path, NULL) : strdup(path);
    if (!name && is_link) return fail_system(path, NULL, "a link that leads to a file", err);
    if (!name) return plumb__fail_memory(err, path, size + 1);
    if (is_link) exists = stat(name, &there) == 0;
    if (exists && !S_ISREG(there.st_mode)) {
        free(name);
        return refuse(path, kind_of(&there), err);
    }
    *resolved = name;
    return PLUMB_OK;
}

plumb_status plumb__whole_file_check(const char *path, plumb_error *err) {
    char *name = NULL;
    plumb_status status = resolve(path, &name, err);
    free(name);
    return status;
}

/* ---- The part ---------------------------------------------------------------------------------- */

/* Opens and locks the part.  A writer that ends between the two takes the name away: what was opened may
 * be a finished file by now. */
static plumb_status open_locked(plumb_whole_file *file, plumb_error *err) {
    for (;;) {
        struct stat opened, named;
        /* Asked before: opening a device may do something. */
        if (lstat(file->part, &named) == 0 && !S_ISREG(named.st_mode))
            return refuse(file->part, kind_of(&named), err);
        /* What people say to a model is nobody else's. */
        file->fd = open(file->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (file->fd < 0) return fail_system(file->part, "open", "a file that can be written", err);
        /* Other failures: a file system without locks. */
        if (flock(file->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
            return plumb__fail(err, PLUMB_ERROR_IO, file->part, NULL, -1,
                               "a file that is being written", "one writer at a time");
        if (fstat(file->fd, &opened) != 0) return fail_system(file->part, "stat", "a file", err);
        if (S_ISREG(opened.st_mode) && lstat(file->part, &named) == 0 &&
            named.st_ino == opened.st_ino && named.st_dev == opened.st_dev)
            return PLUMB_OK;
        (void)close(file->fd);
        file->fd = -1;
    }
}

bool plumb__whole_file_is_left_over(int fd, const char mark[PLUMB_WHOLE_FILE_MARK],
                                    const char magic[PLUMB_WHOLE_FILE_MARK]) {
    static const char zeros[PLUMB_WHOLE_FILE_MARK];
    char head[PLUMB_WHOLE_FILE_MARK];
    ssize_t got = pread(fd, head, sizeof head, 0);
    return got == 0 || (got == (ssize_t)sizeof head &&
                        (memcmp(head, mark, sizeof head) == 0 ||
                         memcmp(head, magic, sizeof head) == 0 ||
                         memcmp(head, zeros, sizeof head) == 0));
}

static plumb_status open_part(plumb_whole_file *file, const char *mark, const char *magic,
                              plumb_error *err) {
    plumb_status status = open_locked(file, err);
    if (status == PLUMB_OK && !plumb__whole_file_is_left_over(file->fd, mark, magic))
        status = plumb__fail(err, PLUMB_ERROR_ARGUMENT, file->part, NULL, 0,
                             "a file that is no unfinished one", "no file of that name");
    if (status != PLUMB_OK) {
        if (file->fd >= 0) (void)close(file->fd); /* not ours to remove */
        file->fd = -1;
        return status;
    }
    if (ftruncate(file->fd, 0) != 0)
        return fail_system(file->part, "truncate", "a file that can be emptied", err);
    return plumb__file_write_at(file->fd, file->part, 0, PLUMB_WHOLE_FILE_MARK, mark, err);
}

plumb_status plumb__whole_file_open(const char *path, const char mark[PLUMB_WHOLE_FILE_MARK],
                                    const char magic[PLUMB_WHOLE_FILE_MARK],
                                    plumb_whole_file *file, plumb_error *err) {
    *file = (plumb_whole_file){.fd = -1};
    plumb_status status = resolve(path, &file->path, err);
    if (status != PLUMB_OK) return status;
    size_t size = strlen(file->path) + sizeof suffix;
    file->part = malloc(size);
    if (file->part) {
        (void)snprintf(file->part, size, "%s%s", file->path, suffix);
        status = open_part(file, mark, magic, err);
    } else {
        status = plumb__fail_memory(err, path, size);
    }
    if (status != PLUMB_OK) plumb__whole_file_abandon(file);
    return status;
}

/* ---- Ending ------------------------------------------------------------------------------------ */

static void forget(plumb_whole_file *file) {
    if (file->fd >= 0) (void)close(file->fd); /* unlocks it */
    free(file->part);
    free(file->path);
    *file = (plumb_whole_file){.fd = -1};
}

plumb_status plumb__whole_file_commit(plumb_whole_file *file, plumb_error *err) {
    char *again = NULL;
    plumb_status status = PLUMB_OK;
    if (fsync(file->fd) != 0)
        status = fail_system(file->part, "fsync", "a file that is kept", err);
    /* Asked again: writing took its time. */
    if (status == PLUMB_OK) status = resolve(file->path, &again, err);
    free(again);
    if (status == PLUMB_OK && rename(file->part, file->path) != 0)
        status = fail_system(file->path, "rename", "a name for the new file", err);
    if (status != PLUMB_OK) {
        plumb__whole_file_abandon(file);
        return status;
    }
    status = plumb__file_sync_folder(file->path, err);
    forget(file);
    return status;
}

void plumb__whole_file_abandon(plumb_whole_file *file) {
    if (file->fd >= 0) (void)unlink(file->part);
    forget(file);
}
