#include "snapshot/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void file_must(bool condition, const char *what) {
    if (condition) return;
    perror(what);
    exit(1);
}

const char *snapshot_path(const char *name) {
    static char path[8][600];
    static int next;
    char *to = path[next++ % 8];
    file_must(mkdir(BUILD_DIR "/snapshots", 0777) == 0 || errno == EEXIST, "snapshots");
    (void)snprintf(to, sizeof path[0], BUILD_DIR "/snapshots/%s", name);
    return to;
}

void snapshot_save(const plumb_session *session, const char *path,
                   const plumb_snapshot_extra *extra) {
    plumb_error err;
    specimen_must(plumb_session_save(session, path, extra, &err), &err, "save");
}

plumb_snapshot *snapshot_open(const char *path) {
    plumb_snapshot *snapshot = NULL;
    plumb_error err;
    specimen_must(plumb_snapshot_open(path, &snapshot, &err), &err, "open");
    return snapshot;
}

plumb_status snapshot_try(plumb_session *session, const char *path, plumb_error *err) {
    plumb_snapshot *snapshot = NULL;
    plumb_status status = plumb_snapshot_open(path, &snapshot, err);
    if (status == PLUMB_OK) status = plumb_session_restore(session, snapshot, err);
    plumb_snapshot_close(snapshot);
    return status;
}

void snapshot_restore(plumb_session *session, const char *path) {
    plumb_error err;
    specimen_must(snapshot_try(session, path, &err), &err, "restore");
}

file_bytes file_load(const char *path) {
    FILE *file = fopen(path, "rb");
    file_must(file && fseek(file, 0, SEEK_END) == 0, path);
    file_bytes whole = {.size = (size_t)ftell(file)};
    rewind(file);
    whole.bytes = malloc(whole.size + 1);
    file_must(whole.bytes && fread(whole.bytes, 1, whole.size, file) == whole.size, path);
    file_must(fclose(file) == 0, path);
    return whole;
}

void file_store(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    file_must(file && fwrite(bytes, 1, size, file) == size, path);
    file_must(fclose(file) == 0, path);
}

bool files_same(const char *a, const char *b) {
    file_bytes first = file_load(a), second = file_load(b);
    bool same = first.size == second.size && memcmp(first.bytes, second.bytes, first.size) == 0;
    free(first.bytes);
    free(second.bytes);
    return same;
}

bool file_exists(const char *path) { return access(path, F_OK) == 0; }
