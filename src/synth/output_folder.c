/* Temporary files stand beside their final names, so that a rename never crosses a file system.
 *
 * The folder itself is the lock: it needs no file that could be left behind, and a killed run gives
 * it up.  Where the file system has no such locks, temporary files still belong to who made them:
 * none is opened that exists, and none of another run is removed. */
#include "synth/output_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

static const char temporary_ending[] = ".plumb-partial";

static plumb_status fail_system(plumb_error *err, const char *path, const char *what,
                                int64_t offset, const char *expected) {
    return plumb__fail(err, PLUMB_ERROR_IO, path, what, offset, strerror(errno), "%s", expected);
}

/* ---- The folder ----------------------------------------------------------------------------- */

/* mkdir of every leading part of the path; parts that exist are fine. */
static plumb_status make_parents(const char *folder, plumb_error *err) {
    char path[PATH_MAX];
    size_t size = strlen(folder);
    if (size == 0 || size >= sizeof path)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, folder, "folder", -1, "an impossible path",
                           "1 to %d bytes", PATH_MAX - 1);
    memcpy(path, folder, size + 1);
    for (size_t i = 1; i < size; i++) {
        if (path[i] != '/') continue;
        path[i] = 0;
        if (mkdir(path, 0777) && errno != EEXIST)
            return fail_system(err, path, "mkdir", -1, "a folder that can be made");
        path[i] = '/';
    }
    return PLUMB_OK;
}

static bool is_leftover(const char *name) {
    size_t size = strlen(name), ending = sizeof temporary_ending - 1;
    return size > ending && !strcmp(name + size - ending, temporary_ending);
}

/* Refuses a folder with files in it, unless `force`.  What a killed run left does not count; it is
 * removed if the folder is locked, since only then is it known that the run is over. */
static plumb_status clear_folder(const char *folder, bool force, bool locked, plumb_error *err) {
    DIR *directory = opendir(folder);
    if (!directory) return fail_system(err, folder, "opendir", -1, "a folder");
    plumb_status status = PLUMB_OK;
    for (struct dirent *entry; status == PLUMB_OK && !force && (entry = readdir(directory));) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, "..") || is_leftover(name)) continue;
        status = plumb__fail(err, PLUMB_ERROR_ARGUMENT, folder, "folder", -1,
                             plumb__format("'%s' in it", name).s,
                             "an empty folder, or permission to replace its files");
    }
    rewinddir(directory);
    for (struct dirent *entry; status == PLUMB_OK && locked && (entry = readdir(directory));)
        if (is_leftover(entry->d_name) && unlinkat(dirfd(directory), entry->d_name, 0))
            status = fail_system(err, folder, entry->d_name, -1, "a leftover that can be removed");
    (void)closedir(directory);
    return status;
}

/* One writer at a time.  The lock ends with the descriptor. */
static plumb_status lock_folder(plumb__output *output, bool *locked, plumb_error *err) {
    const char *folder = output->folder;
    output->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (output->folder_fd < 0) return fail_system(err, folder, "open", -1, "a folder");
    *locked = flock(output->folder_fd, LOCK_EX | LOCK_NB) == 0;
    if (!*locked && errno == EWOULDBLOCK)
        return plumb__fail(err, PLUMB_ERROR_IO, folder, "folder", -1,
                           "another run that is writing there", "a folder of its own");
    return PLUMB_OK;
}

static plumb_status open_folder(plumb__output *output, bool force, plumb_error *err) {
    const char *folder = output->folder;
    plumb_status status = make_parents(folder, err);
    if (status != PLUMB_OK) return status;
    bool made = mkdir(folder, 0777) == 0, locked = false;
    if (!made && errno != EEXIST)
        return fail_system(err, folder, "mkdir", -1, "a folder that can be made");
    struct stat found;
    if (stat(folder, &found)) return fail_system(err, folder, "stat", -1, "a folder");
    if (!S_ISDIR(found.st_mode))
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, folder, "folder", -1, "a file", "a folder");
    status = lock_folder(output, &locked, err);
    if (status != PLUMB_OK) return status;
    /* Another run may have come between making and locking, and gone: looking never hurts. */
    output->made_folder = made;
    return clear_folder(folder, force, locked, err);
}

plumb_status plumb__output_open(plumb__output *output, const char *folder, bool force,
                                plumb_error *err) {
    *output = (plumb__output){.folder = folder, .folder_fd = -1, .fd = -1};
    plumb_status status = open_folder(output, force, err);
    if (status != PLUMB_OK) plumb__output_close(output);
    return status;
}

plumb_status plumb__output_check_room(const plumb__output *output, int64_t bytes,
                                      plumb_error *err) {
    struct statvfs system;
    if (statvfs(output->folder, &system))
        return fail_system(err, output->folder, "statvfs", -1, "a file system");
    double available = (double)system.f_bavail * (double)system.f_frsize;
    if (available >= (double)bytes) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_IO, output->folder, "free disk space", -1,
                       plumb__format("%.3f GB", available / 1e9).s, "at least %.3f GB",
                       (double)bytes / 1e9);
}

/* ---- One file ------------------------------------------------------------------------------- */

static char *join(const char *folder, const char *name, const char *ending) {
    size_t size = strlen(folder) + strlen(name) + strlen(ending) + 2;
    char *path = malloc(size);
    if (path) (void)snprintf(path, size, "%s/%s%s", folder, name, ending);
    return path;
}

plumb_status plumb__output_create(plumb__output *output, const char *name, plumb_error *err) {
    plumb__output_file *files =
        plumb__grow(output->files, &output->capacity, output->count + 1, sizeof *files);
    if (!files) return plumb__fail_memory(err, name, sizeof *files);
    output->files = files;
    plumb__output_file file = {join(output->folder, name, temporary_ending),
                               join(output->folder, name, "")};
    if (!file.temporary || !file.path) {
        free(file.temporary);
        free(file.path);
        return plumb__fail_memory(err, name, strlen(output->folder));
    }
    output->fd = open(file.temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (output->fd < 0) {
        plumb_status status = fail_system(err, file.temporary, "open", -1, "a new file");
        free(file.temporary);
        free(file.path);
        return status;
    }
    /* Only now, since whatever is in the list is removed when the work fails. */
    files[output->count++] = file;
    return PLUMB_OK;
}

static const char *current_path(const plumb__output *output) {
    return output->files[output->count - 1].temporary;
}

plumb_status plumb__output_write(plumb__output *output, int64_t offset, const void *bytes,
                                 int64_t size, plumb_error *err) {
    const char *from = bytes;
    while (size > 0) {
        size_t ask = size < (1 << 30) ? (size_t)size : (size_t)1 << 30;
        ssize_t put = pwrite(output->fd, from, ask, (off_t)offset);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0)
            return fail_system(err, current_path(output), "write", offset, "room for the file");
        from += put;
        offset += put;
        size -= put;
    }
    return PLUMB_OK;
}

plumb_status plumb__output_set_size(plumb__output *output, int64_t size, plumb_error *err) {
    if (ftruncate(output->fd, (off_t)size))
        return fail_system(err, current_path(output), "ftruncate", size, "a file of that size");
    return PLUMB_OK;
}

plumb_status plumb__output_finish(plumb__output *output, plumb_error *err) {
    int fd = output->fd;
    output->fd = -1;
    int failed = fsync(fd) ? errno : 0;
    if (close(fd) && !failed) failed = errno;
    if (!failed) return PLUMB_OK;
    errno = failed;
    return fail_system(err, current_path(output), "fsync", -1, "bytes on the disk");
}

/* ---- All of them ---------------------------------------------------------------------------- */

/* Looks for whatever could stop a rename, while the old files are still there. */
static plumb_status check_renames(const plumb__output *output, plumb_error *err) {
    struct stat found;
    for (int64_t i = 0; i < output->count; i++) {
        const plumb__output_file *file = &output->files[i];
        if (lstat(file->temporary, &found))
            return fail_system(err, file->temporary, "lstat", -1, "the file written before");
        if (lstat(file->path, &found) == 0 && S_ISDIR(found.st_mode))
            return plumb__fail(err, PLUMB_ERROR_IO, file->path, "rename", -1, "a folder",
                               "nothing, or a file to replace");
    }
    return PLUMB_OK;
}

plumb_status plumb__output_commit(plumb__output *output, plumb_error *err) {
    plumb_status ready = check_renames(output, err);
    if (ready != PLUMB_OK) return ready;
    /* Replacing a checkpoint: its last files go first, so that old and new never open as one. */
    for (int64_t i = output->count - 1; i >= 0; i--)
        if (unlink(output->files[i].path) && errno != ENOENT)
            return fail_system(err, output->files[i].path, "unlink", -1, "a file to replace");
    for (int64_t i = 0; i < output->count; i++) {
        plumb__output_file *file = &output->files[i];
        if (rename(file->temporary, file->path)) {
            plumb_status status = fail_system(err, file->path, "rename", -1, "a new file");
            while (i-- > 0) (void)unlink(output->files[i].path);
            return status;
        }
    }
    /* Renames outlive a power cut once the folder itself is on the disk. */
    (void)fsync(output->folder_fd);
    for (int64_t i = 0; i < output->count; i++) {
        free(output->files[i].temporary);
        free(output->files[i].path);
    }
    output->count = 0;
    output->made_folder = false;
    return PLUMB_OK;
}

void plumb__output_close(plumb__output *output) {
    if (output->fd >= 0) (void)close(output->fd);
    for (int64_t i = 0; i < output->count; i++) {
        (void)unlink(output->files[i].temporary);
        free(output->files[i].temporary);
        free(output->files[i].path);
    }
    free(output->files);
    if (output->made_folder) (void)rmdir(output->folder);
    if (output->folder_fd >= 0) (void)close(output->folder_fd); /* and with it the lock */
    *output = (plumb__output){.folder_fd = -1, .fd = -1};
}
