#include "convert/part_file.h"

#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* In place of a GGUF file's magic, version and counts. */
enum { MARK_BYTES = 8, HEAD_BYTES = 24 };
static const char mark[MARK_BYTES + 1] = PLUMB_GGUF_PART_MARK;

static const int64_t note_bytes = (int64_t)256 << 20; /* unless asked otherwise */

static plumb_status fail_system(const char *path, const char *what, const char *expected,
                                plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_IO, path, what, -1, strerror(errno), "%s", expected);
}

/* ---- Names ------------------------------------------------------------------------------------- */

char *plumb__part_file_path(const char *path) {
    size_t size = strlen(path) + sizeof ".part";
    char *part = malloc(size);
    if (part) (void)snprintf(part, size, "%s.part", path);
    return part;
}

plumb_status plumb__part_file_check(const char *path, bool force, plumb_error *err) {
    struct stat found;
    if (path[0] == 0)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, NULL, -1, "an empty name",
                           "a name for a new file");
    if (path[strlen(path) - 1] == '/')
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, path, NULL, -1, "a folder",
                           "a name for a new file");
    if (lstat(path, &found) != 0)
        return errno == ENOENT ? PLUMB_OK : fail_system(path, NULL, "a name for a new file", err);
    if (!S_ISREG(found.st_mode))
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, path, NULL, -1,
                           S_ISDIR(found.st_mode) ? "a folder" : "something that is no plain file",
                           "a name for a new file");
    if (force) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_ARGUMENT, path, NULL, -1, "a file",
                       "a name for a new file, or permission to replace it");
}

/* ---- Writing ----------------------------------------------------------------------------------- */

static plumb_status write_at(const plumb_part_file *part, const void *bytes, int64_t size,
                             int64_t offset, plumb_error *err) {
    return plumb__file_write_at(part->fd, part->path, offset, size, bytes, err);
}

/* A write that failed behind the caller's back is told of once; no later fsync can vouch for it. */
static plumb_status sync_file(plumb_part_file *part, plumb_error *err) {
    if (!part->lost && fsync(part->fd) == 0) return PLUMB_OK;
    if (part->lost) errno = EIO;
    part->lost = true;
    return fail_system(part->path, "fsync", "a file that is kept", err);
}

/* Payloads and the digests of what they were made from first, then the word that they are there. */
static plumb_status sync_payloads(plumb_part_file *part, plumb_error *err) {
    const plumb_converted_header *h = part->header;
    plumb_status status =
        write_at(part, h->bytes + h->source_at, 16 * h->sources, h->source_at, err);
    if (status == PLUMB_OK) status = sync_file(part, err);
    if (status != PLUMB_OK) return status;
    part->unsynced = 0;
    return write_at(part, h->bytes + h->stored_at, 16 * h->stored, h->stored_at, err);
}

plumb_status plumb__part_file_sync(plumb_part_file *part, plumb_error *err) {
    pthread_mutex_lock(&part->lock);
    plumb_status status = sync_payloads(part, err);
    pthread_mutex_unlock(&part->lock);
    return status;
}

/* While one thread waits for the disk, no other may note what is not there yet. */
plumb_status plumb__part_file_note(plumb_part_file *part, int64_t tensor, XXH128_hash_t digest,
                                   int64_t bytes, plumb_error *err) {
    pthread_mutex_lock(&part->lock);
    plumb__set_stored_digest(part->header, tensor, digest);
    part->unsynced += bytes;
    plumb_status status = part->unsynced >= part->note_bytes ? sync_payloads(part, err) : PLUMB_OK;
    pthread_mutex_unlock(&part->lock);
    return status;
}

/* As a part of something else it is emptied: where zeros belong, going on would leave what is there. */
void plumb__part_file_distrust(plumb_part_file *part) {
    static const uint8_t no_origin[HEAD_BYTES - MARK_BYTES];
    plumb_error ignored; /* there is a fault to tell already */
    (void)!write_at(part, no_origin, sizeof no_origin, MARK_BYTES, &ignored);
    part->ends = true;
}

void plumb__part_file_note_source(plumb_part_file *part, int64_t tensor, XXH128_hash_t digest) {
    pthread_mutex_lock(&part->lock);
    plumb__set_source_digest(part->header, tensor, digest);
    pthread_mutex_unlock(&part->lock);
}

/* ---- Opening ----------------------------------------------------------------------------------- */

static void make_head(XXH128_hash_t origin, uint8_t head[HEAD_BYTES]) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, origin);
    memcpy(head, mark, MARK_BYTES);
    memcpy(head + MARK_BYTES, canonical.digest, sizeof canonical.digest);
}

/* The same header but for the digests and the first bytes? */
static bool same_header(const plumb_converted_header *h, const uint8_t *there) {
    const struct {
        int64_t begin, end;
    } stays[] = {{HEAD_BYTES, h->source_at},
                 {h->source_at + 16 * h->sources, h->stored_at},
                 {h->stored_at + 16 * h->stored, h->blocks_at},
                 {h->blocks_at + 8 * h->blocks, h->size}};
    for (size_t i = 0; i < sizeof stays / sizeof stays[0]; i++)
        if (memcmp(h->bytes + stays[i].begin, there + stays[i].begin,
                   (size_t)(stays[i].end - stays[i].begin)) != 0)
            return false;
    return true;
}

/* What stands there under the part's name. */
typedef enum kinship {
    NOTHING,
    FOREIGN,
    OTHER_WORK, /* a part of something else, or whole: killed just before it was renamed */
    SAME_WORK
} kinship;

static plumb_status look(const plumb_part_file *part, const struct stat *found, uint8_t *there,
                         kinship *kin, plumb_error *err) {
    const plumb_converted_header *h = part->header;
    uint8_t head[HEAD_BYTES];
    make_head(part->origin, head);
    int64_t size = found->st_size < h->size ? found->st_size : h->size;
    *kin = NOTHING;
    if (size == 0) return PLUMB_OK;
    plumb_status status = plumb__file_read_at(part->fd, part->path, "header", 0, size, there, err);
    if (status != PLUMB_OK) return status;
    bool same = found->st_size == h->file_bytes && same_header(h, there);
    bool marked = size >= MARK_BYTES && memcmp(there, mark, MARK_BYTES) == 0;
    bool whole = same && memcmp(there, h->bytes, HEAD_BYTES) == 0;
    *kin = marked && same && memcmp(there, head, HEAD_BYTES) == 0 ? SAME_WORK
           : marked || whole                                      ? OTHER_WORK
                                                                  : FOREIGN;
    return PLUMB_OK;
}

/* Takes over the digests of a part of the same work. */
static plumb_status try_resume(plumb_part_file *part, const struct stat *found, kinship *kin,
                               plumb_error *err) {
    plumb_converted_header *h = part->header;
    uint8_t *there = malloc((size_t)h->size);
    if (!there) return plumb__fail_memory(err, "header", (size_t)h->size);
    plumb_status status = look(part, found, there, kin, err);
    if (status == PLUMB_OK && *kin == SAME_WORK) {
        memcpy(h->bytes + h->source_at, there + h->source_at, (size_t)(16 * h->sources));
        memcpy(h->bytes + h->stored_at, there + h->stored_at, (size_t)(16 * h->stored));
    }
    free(there);
    if (status != PLUMB_OK || *kin != FOREIGN) return status;
    return plumb__fail(err, PLUMB_ERROR_ARGUMENT, part->path, NULL, 0,
                       "a file that is no part of a conversion", "no file of that name");
}

/* Synced with its name, so that a machine that stops leaves something that is known again. */
static plumb_status begin_anew(plumb_part_file *part, plumb_error *err) {
    const plumb_converted_header *h = part->header;
    uint8_t head[HEAD_BYTES];
    make_head(part->origin, head);
    if (ftruncate(part->fd, 0) != 0)
        return fail_system(part->path, "truncate", "a file that can be emptied", err);
    plumb_status status = write_at(part, head, HEAD_BYTES, 0, err);
    if (status == PLUMB_OK)
        status = write_at(part, h->bytes + HEAD_BYTES, h->size - HEAD_BYTES, HEAD_BYTES, err);
    if (status == PLUMB_OK && ftruncate(part->fd, (off_t)h->file_bytes) != 0)
        status = fail_system(part->path, "size", "room for a file of that size", err);
    if (status == PLUMB_OK) status = sync_file(part, err);
    return status == PLUMB_OK ? plumb__file_sync_folder(part->path, err) : status;
}

static plumb_status check_room(const plumb_part_file *part, const struct stat *there, int64_t holes,
                               plumb_error *err) {
    struct statvfs system;
    if (fstatvfs(part->fd, &system) != 0)
        return fail_system(part->path, "free space", "a file system", err);
    int64_t needed = part->header->file_bytes - holes - (int64_t)there->st_blocks * 512;
    double available = (double)system.f_bavail * (double)system.f_frsize;
    if ((double)needed <= available) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_IO, part->final, "free disk space", -1,
                       plumb__format("%.3f GB", available / 1e9).s, "at least %.3f GB",
                       (double)needed / 1e9);
}

/* Some file systems take the mode and refuse the write, so the first block is written once more. */
static bool takes_uncached_writes(const plumb_part_file *part) {
    enum { BLOCK = 4096 };
    void *block = NULL;
    if (posix_memalign(&block, BLOCK, BLOCK) != 0) return false;
    bool taken = pread(part->fd, block, BLOCK, 0) == BLOCK &&
                 pwrite(part->payload_fd, block, BLOCK, 0) == BLOCK;
    free(block);
    return taken;
}

static plumb_status open_payloads(plumb_part_file *part, plumb_error *err) {
#if defined(O_DIRECT)
    part->payload_fd = open(part->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_DIRECT);
    if (part->payload_fd >= 0 && takes_uncached_writes(part)) return PLUMB_OK;
    if (part->payload_fd >= 0) (void)close(part->payload_fd);
#endif
    part->payload_fd = open(part->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (part->payload_fd < 0) return fail_system(part->path, "open", "a file to write to", err);
#if defined(F_NOCACHE)
    (void)fcntl(part->payload_fd, F_NOCACHE, 1);
#endif
    return PLUMB_OK;
}

/* Opens and locks what stands there under the part's name, or a new file.  A run that ends between the
 * two takes the name away: the file that was opened may be a finished one by now. */
static plumb_status open_locked(plumb_part_file *part, struct stat *there, plumb_error *err) {
    for (;;) {
        struct stat named;
        plumb_status status = plumb__part_file_check(part->path, true, err);
        if (status != PLUMB_OK) return status;
        part->fd = open(part->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (part->fd < 0) return fail_system(part->path, "open", "a file that can be written", err);
        /* Other failures: a file system without locks. */
        if (flock(part->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
            return plumb__fail(err, PLUMB_ERROR_IO, part->path, NULL, -1,
                               "a file that another run is writing", "one run at a time");
        if (fstat(part->fd, there) != 0) return fail_system(part->path, "stat", "a file", err);
        if (S_ISREG(there->st_mode) && lstat(part->path, &named) == 0 &&
            named.st_ino == there->st_ino && named.st_dev == there->st_dev)
            return PLUMB_OK;
        (void)close(part->fd);
        part->fd = -1;
    }
}

/* A run that was killed while it gave the name leaves two; under the other one the file is finished and
 * must stay what it is. */
static plumb_status leave_finished(plumb_part_file *part, struct stat *there, plumb_error *err) {
    if (there->st_nlink < 2) return PLUMB_OK;
    if (unlink(part->path) != 0)
        return fail_system(part->path, "unlink", "a name to give up", err);
    (void)close(part->fd);
    part->fd = -1;
    return open_locked(part, there, err);
}

static plumb_status open_part(plumb_part_file *part, int64_t holes, bool *replaced,
                              plumb_error *err) {
    struct stat there;
    kinship kin = NOTHING;
    plumb_status status = open_locked(part, &there, err);
    if (status != PLUMB_OK) return status;
    status = try_resume(part, &there, &kin, err);
    if (status == PLUMB_OK && kin == OTHER_WORK) status = leave_finished(part, &there, err);
    if (status == PLUMB_OK) status = check_room(part, &there, holes, err);
    if (status != PLUMB_OK) {
        if (there.st_size == 0) (void)unlink(part->path); /* made just now */
        return status;
    }
    *replaced = kin == OTHER_WORK;
    part->resumed = kin == SAME_WORK;
    if (kin != SAME_WORK) status = begin_anew(part, err);
    return status == PLUMB_OK ? open_payloads(part, err) : status;
}

plumb_status plumb__part_file_open(const char *path, const plumb_part_work *work,
                                   plumb_converted_header *header, plumb_part_file *part,
                                   bool *replaced, plumb_error *err) {
    *part = (plumb_part_file){.fd = -1, .payload_fd = -1, .header = header,
                              .origin = work->origin, .force = work->force,
                              .note_bytes = work->note_bytes > 0 ? work->note_bytes : note_bytes};
    pthread_mutex_init(&part->lock, NULL);
    part->final = strdup(path);
    part->path = plumb__part_file_path(path);
    plumb_status status = part->final && part->path
                              ? plumb__part_file_check(path, work->force, err)
                              : plumb__fail_memory(err, "path", strlen(path));
    if (status == PLUMB_OK) status = open_part(part, work->holes, replaced, err);
    if (status != PLUMB_OK) plumb__part_file_close(part);
    return status;
}

/* ---- Ending ------------------------------------------------------------------------------------ */

plumb_status plumb__part_file_seal(plumb_part_file *part, plumb_shard_file *shard,
                                   plumb_error *err) {
    const plumb_converted_header *h = part->header;
    plumb_status status = plumb__part_file_sync(part, err);
    if (status == PLUMB_OK) status = plumb__converted_header_seal(part->header, err);
    if (status == PLUMB_OK)
        status = write_at(part, h->bytes + HEAD_BYTES, h->size - HEAD_BYTES, HEAD_BYTES, err);
    if (status != PLUMB_OK) return status;
    *shard = (plumb_shard_file){.path = part->path, .file = part->path, .fd = part->fd};
    status = sync_file(part, err);
    if (status != PLUMB_OK) return status;
    return fstat(part->fd, &shard->opened) == 0 ? PLUMB_OK
                                                : fail_system(part->path, "stat", "a file", err);
}

/* Without `force` a file that came there meanwhile is not replaced: link, unlike rename, takes no name
 * that is in use.  Where there are no hard links, looking has to do. */
static plumb_status give_name(const plumb_part_file *part, plumb_error *err) {
    if (!part->force && link(part->path, part->final) == 0)
        return unlink(part->path) == 0
                   ? PLUMB_OK : fail_system(part->path, "unlink", "a name to give up", err);
    plumb_status status = plumb__part_file_check(part->final, part->force, err);
    if (status != PLUMB_OK) return status;
    return rename(part->path, part->final) == 0
               ? PLUMB_OK : fail_system(part->final, "rename", "a name for the new file", err);
}

plumb_status plumb__part_file_finish(plumb_part_file *part, plumb_error *err) {
    /* Asked while it is still a part, which can be finished once the name is free. */
    plumb_status status = plumb__part_file_check(part->final, part->force, err);
    if (status != PLUMB_OK) return status;
    part->ends = true;
    status = write_at(part, part->header->bytes, HEAD_BYTES, 0, err);
    if (status == PLUMB_OK) status = sync_file(part, err);
    if (status == PLUMB_OK) status = give_name(part, err);
    return status == PLUMB_OK ? plumb__file_sync_folder(part->final, err) : status;
}

void plumb__part_file_close(plumb_part_file *part) {
    if (part->fd >= 0) (void)close(part->fd);
    if (part->payload_fd >= 0) (void)close(part->payload_fd);
    free(part->path);
    free(part->final);
    pthread_mutex_destroy(&part->lock);
    *part = (plumb_part_file){.fd = -1, .payload_fd = -1};
}
