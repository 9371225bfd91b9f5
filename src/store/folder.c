#include "store/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/whole_file.h"
#include "format/snapshot.h"

static const char part_ending[] = PLUMB_WHOLE_FILE_SUFFIX;

static plumb_status fail_system(const char *path, const char *what, const char *expected,
                                plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_IO, path, what, -1, strerror(errno), "%s", expected);
}

plumb_status plumb__store_folder_make(const char *folder, plumb_error *err) {
    struct stat there;
    if (mkdir(folder, 0700) == 0) return PLUMB_OK; /* what people say to a model is theirs */
    if (errno != EEXIST) return fail_system(folder, "mkdir", "a folder, or a name for one", err);
    if (stat(folder, &there) != 0) return fail_system(folder, "stat", "a folder", err);
    if (!S_ISDIR(there.st_mode))
        return plumb__fail(err, PLUMB_ERROR_IO, folder, NULL, -1, "a file", "a folder");
    return PLUMB_OK;
}

plumb_status plumb__store_path(const char *folder, const char *name, char **path,
                               plumb_error *err) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char *made = malloc(size);
    if (!made) return plumb__fail_memory(err, folder, size);
    (void)snprintf(made, size, "%s/%s", folder, name);
    *path = made;
    return PLUMB_OK;
}

plumb_status plumb__store_lock(const char *folder, int *lock, plumb_error *err) {
    char *path = NULL;
    plumb_status status = plumb__store_path(folder, "lock", &path, err);
    if (status != PLUMB_OK) return status;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) {
        status = fail_system(path, "open", "a file to lock", err);
    } else if (flock(fd, LOCK_EX) != 0 && errno == EINTR) {
        status = plumb__fail(err, PLUMB_ERROR_CANCELLED, path, NULL, -1, "a signal", "a lock");
        (void)close(fd);
        fd = -1;
    } /* other failures: a file system without locks */
    free(path);
    *lock = fd;
    return status;
}

void plumb__store_unlock(int lock) {
    (void)close(lock);
}

/* ---- What lies there ------------------------------------------------------------------------- */

static bool is_plain(int folder, const char *name, struct stat *there) {
    return fstatat(folder, name, there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(there->st_mode);
}

plumb_status plumb__store_list(const char *folder, plumb_store_file **files, int64_t *count,
                               plumb_error *err) {
    plumb_store_file *list = NULL;
    int64_t n = 0, capacity = 0;
    plumb_status status = PLUMB_OK;
    DIR *dir = opendir(folder);
    if (!dir) return fail_system(folder, "open", "a folder", err);
    for (const struct dirent *e; status == PLUMB_OK && (e = readdir(dir));) {
        plumb_store_file file = {0};
        struct stat there;
        if (!plumb__prefix_parse(e->d_name, &file.id) || !is_plain(dirfd(dir), e->d_name, &there))
            continue;
        file.bytes = there.st_size;
        file.modified = there.st_mtim.tv_sec * INT64_C(1000000000) + there.st_mtim.tv_nsec;
        plumb_store_file *grown = plumb__grow(list, &capacity, n + 1, sizeof *list);
        if (grown) {
            list = grown;
            list[n++] = file;
        } else {
            status = plumb__fail_memory(err, folder, (size_t)n * sizeof *list);
        }
    }
    (void)closedir(dir);
    if (status != PLUMB_OK) {
        free(list);
        return status;
    }
    *files = list;
    *count = n;
    return PLUMB_OK;
}

static bool is_left_over(int folder, const char *name) {
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return false;
    bool ours =
        plumb__whole_file_is_left_over(fd, PLUMB_SNAPSHOT_PART_MARK, PLUMB_SNAPSHOT_MAGIC);
    (void)close(fd);
    return ours;
}

static bool is_part(int folder, const char *name) {
    char entry[PLUMB_PREFIX_NAME_SIZE];
    plumb_prefix_id id;
    struct stat there;
    size_t size = strlen(name), ending = sizeof part_ending - 1;
    if (size <= ending || size - ending >= sizeof entry ||
        strcmp(name + size - ending, part_ending) != 0)
        return false;
    memcpy(entry, name, size - ending);
    entry[size - ending] = 0;
    return plumb__prefix_parse(entry, &id) && is_plain(folder, name, &there) &&
           is_left_over(folder, name);
}

void plumb__store_remove_parts(const char *folder) {
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (const struct dirent *e; (e = readdir(dir));)
        if (is_part(dirfd(dir), e->d_name)) (void)unlinkat(dirfd(dir), e->d_name, 0);
    (void)closedir(dir);
}

plumb_status plumb__store_check_place(const char *path, plumb_error *err) {
    struct stat there;
    if (lstat(path, &there) != 0) return PLUMB_OK; /* writing says what is wrong */
    if (S_ISREG(there.st_mode)) return plumb__snapshot_begins(path, err);
    return plumb__fail(err, PLUMB_ERROR_ARGUMENT, path, NULL, -1, "something that is no plain file",
                       "a new name, or a snapshot to replace");
}

plumb_status plumb__store_remove(const char *folder, plumb_prefix_id id, plumb_error *err) {
    char name[PLUMB_PREFIX_NAME_SIZE], *path = NULL;
    plumb__prefix_name(id, name);
    plumb_status status = plumb__store_path(folder, name, &path, err);
    if (status == PLUMB_OK && unlink(path) != 0 && errno != ENOENT)
        status = fail_system(path, "unlink", "a file that can be removed", err);
    free(path);
    return status;
}

plumb_status plumb__store_room(const char *folder, double share, int64_t *bytes, plumb_error *err) {
    struct statvfs there;
    if (statvfs(folder, &there) != 0) return fail_system(folder, "statvfs", "a file system", err);
    double block = (double)there.f_frsize;
    *bytes = (int64_t)(block * ((double)there.f_bavail - share * (double)there.f_blocks));
    return PLUMB_OK;
}
