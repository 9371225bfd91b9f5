#include "convert_files.h"

#include "base/error.h"
#include "format/shard_file.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_SIZE = sizeof((bench_files *)0)->target };

extern char **environ;

static plumb_status fail_system(const char *path, const char *what, plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_IO, path, what, -1, strerror(errno), "success");
}

static const char *shard_path(const bench_files *files, int64_t shard) {
    return plumb__checkpoint_shard(files->source, shard)->path;
}

static void copy_path(const bench_files *files, int64_t shard, char path[PATH_SIZE]) {
    const char *from = shard_path(files, shard), *slash = strrchr(from, '/');
    (void)snprintf(path, PATH_SIZE, "%s/%.50s", files->folder, slash ? slash + 1 : from);
}

plumb_status bench_files_open(const plumb_checkpoint *source, const char *work, bench_files *files,
                              plumb_error *err) {
    char folder[sizeof files->folder];
    *files = (bench_files){.source = source};
    int length = snprintf(folder, sizeof folder, "%s/bench-convert-XXXXXX", work);
    if (length < 0 || (size_t)length >= sizeof folder || !mkdtemp(folder))
        return fail_system(work, "a new folder in it", err);
    memcpy(files->folder, folder, sizeof folder);
    (void)snprintf(files->target, sizeof files->target, "%s/converted.gguf", folder);
    for (int64_t i = 0; i < plumb__checkpoint_shards(source); i++)
        files->source_bytes += plumb__checkpoint_shard(source, i)->opened.st_size;
    return PLUMB_OK;
}

void bench_files_close(bench_files *files) {
    if (!files->folder[0]) return;
    bench_files_remove_copy(files);
    bench_files_remove_target(files);
    (void)rmdir(files->folder);
}

/* ---- Copying ----------------------------------------------------------------------------------- */

static plumb_status run_cp(char **arguments, plumb_error *err) {
    pid_t child;
    int ended;
    errno = posix_spawnp(&child, arguments[0], NULL, NULL, arguments, environ);
    if (errno != 0) return fail_system("cp", "start", err);
    while (waitpid(child, &ended, 0) < 0)
        if (errno != EINTR) return fail_system("cp", "wait", err);
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_IO, "cp", "status", -1, "a failure", "0");
}

static plumb_status sync_copy(const char *path, plumb_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    plumb_status status = good ? PLUMB_OK : fail_system(path, "fsync", err);
    if (fd >= 0) (void)close(fd);
    return status;
}

/* cp --reflink=never SHARD... FOLDER, where cp knows the option. */
plumb_status bench_files_copy(const bench_files *files, plumb_error *err) {
    int64_t shards = plumb__checkpoint_shards(files->source), n = 0;
    char **arguments = calloc((size_t)shards + 4, sizeof *arguments);
    if (!arguments) return plumb__fail_memory(err, "cp", (size_t)(shards + 4) * sizeof *arguments);
    char never[] = "--reflink=never", cp[] = "cp", folder[PATH_SIZE];
    (void)snprintf(folder, sizeof folder, "%s", files->folder);
    arguments[n++] = cp;
#if defined(__linux__)
    arguments[n++] = never;
#else
    (void)never;
#endif
    for (int64_t i = 0; i < shards; i++) arguments[n++] = (char *)(uintptr_t)shard_path(files, i);
    arguments[n] = folder;
    plumb_status status = run_cp(arguments, err);
    free(arguments);
    for (int64_t i = 0; i < shards && status == PLUMB_OK; i++) {
        char path[PATH_SIZE];
        copy_path(files, i, path);
        status = sync_copy(path, err);
    }
    return status;
}

void bench_files_remove_copy(const bench_files *files) {
    for (int64_t i = 0; i < plumb__checkpoint_shards(files->source); i++) {
        char path[PATH_SIZE];
        copy_path(files, i, path);
        (void)unlink(path);
    }
}

void bench_files_remove_target(const bench_files *files) {
    char part[PATH_SIZE + 8];
    (void)snprintf(part, sizeof part, "%s.part", files->target);
    (void)unlink(files->target);
    (void)unlink(part);
}

/* ---- Caches ------------------------------------------------------------------------------------ */

static void drop_file(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return; /* the target is not always there */
    (void)fsync(fd);
#if defined(POSIX_FADV_DONTNEED)
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
#endif
    (void)close(fd);
}

bool bench_files_drop_caches(const bench_files *files) {
    sync();
    for (int64_t i = 0; i < plumb__checkpoint_shards(files->source); i++)
        drop_file(shard_path(files, i));
    drop_file(files->target);
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    bool all = fd >= 0 && write(fd, "1\n", 2) == 2;
    if (fd >= 0) (void)close(fd);
    return all;
}
