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
static const char mark[MARK_BYTES + 1] = "PLUMBPRT";

static const int64_t note_every = (int64_t)256 << 20;

static plumb_status fail_system(const char *path, const char *what, const char *expected,
                                plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_IO, path, what, -1, strerror(errno), "%s", expected);
}

/* ---- Names ------------------------------------------------------------------------------------- */

plumb_status plumb__part_file_check(const char *path, bool force, plumb_error *err) {
    struct stat found;
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

/* A folder's new entry reaches the disk with the folder. */
static plumb_status sync_folder(const char *path, plumb_error *err) {
    char *copy = strdup(path);
    if (!copy) return plumb__fail_memory(err, "path", strlen(path));
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    plumb_status status = good ? PLUMB_OK : fail_system(path, "folder", "a folder to be synced", err);
    if (fd >= 0) (void)close(fd);
    free(copy);
    return status;
}

/* ---- Writing ----------------------------------------------------------------------------------- */

static plumb_status write_at(const plumb_part_file *part, const void *bytes, int64_t size,
                             int64_t offset, plumb_error *err) {
    for (int64_t done = 0; done < size;) {
        ssize_t count = pwrite(part->fd, (const uint8_t *)bytes + done, (size_t)(size - done),
                               (off_t)(offset + done));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0)
            return plumb__fail(err, PLUMB_ERROR_IO, part->path, "header", offset + done,
                               count == 0 ? "nothing written" : strerror(errno),
                               "room for %lld more bytes", (long long)(size - done));
        done += count;
    }
    return PLUMB_OK;
}

static plumb_status write_digests(const plumb_part_file *part, plumb_error *err) {
    const plumb_converted_header *h = part->header;
    plumb_status status =
        write_at(part, h->bytes + h->source_at, 16 * h->sources, h->source_at, err);
    if (status == PLUMB_OK)
        status = write_at(part, h->bytes + h->stored_at, 16 * h->stored, h->stored_at, err);
    return status;
}

/* Payloads first, then the word that they are there. */
static plumb_status sync_payloads(plumb_part_file *part, plumb_error *err) {
    if (fsync(part->fd) != 0) return fail_system(part->path, "fsync", "a file that is kept", err);
    part->unsynced = 0;
    return write_digests(part, err);
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
    plumb_status status = part->unsynced >= note_every ? sync_payloads(part, err) : PLUMB_OK;
    pthread_mutex_unlock(&part->lock);
    return status;
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
    bool marked = size >= HEAD_BYTES && memcmp(there, mark, MARK_BYTES) == 0;
    bool whole = same && memcmp(there, h->bytes, HEAD_BYTES) == 0;
    *kin = marked && same && memcmp(there, head, HEAD_BYTES) == 0 ? SAME_WORK
           : marked || whole                                      ? OTHER_WORK
                                                                  : FOREIGN;
    return PLUMB_OK;
}

/* Takes over the digests of a part of the same work. */
static plumb_status try_resume(plumb_part_file *part, const struct stat *found, bool *resumed,
                               plumb_error *err) {
    plumb_converted_header *h = part->header;
    kinship kin;
    uint8_t *there = malloc((size_t)h->size);
    if (!there) return plumb__fail_memory(err, "header", (size_t)h->size);
    plumb_status status = look(part, found, there, &kin, err);
    *resumed = status == PLUMB_OK && kin == SAME_WORK;
    if (*resumed) {
        memcpy(h->bytes + h->source_at, there + h->source_at, (size_t)(16 * h->sources));
        memcpy(h->bytes + h->stored_at, there + h->stored_at, (size_t)(16 * h->stored));
    }
    free(there);
    if (status != PLUMB_OK || kin != FOREIGN) return status;
    return plumb__fail(err, PLUMB_ERROR_ARGUMENT, part->path, NULL, 0,
                       "a file that is no part of a conversion", "no file of that name");
}

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
    return status;
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
    part->payload_fd = open(part->path, O_WRONLY | O_CLOEXEC | O_DIRECT);
    if (part->payload_fd >= 0 && takes_uncached_writes(part)) return PLUMB_OK;
    if (part->payload_fd >= 0) (void)close(part->payload_fd);
#endif
    part->payload_fd = open(part->path, O_WRONLY | O_CLOEXEC);
    if (part->payload_fd < 0) return fail_system(part->path, "open", "a file to write to", err);
#if defined(F_NOCACHE)
    (void)fcntl(part->payload_fd, F_NOCACHE, 1);
#endif
    return PLUMB_OK;
}

static plumb_status open_part(plumb_part_file *part, int64_t holes, bool *resumed,
                              plumb_error *err) {
    struct stat there;
    part->fd = open(part->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (part->fd < 0) return fail_system(part->path, "open", "a file that can be written", err);
    if (fstat(part->fd, &there) != 0) return fail_system(part->path, "stat", "a file", err);
    if (!S_ISREG(there.st_mode))
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, part->path, NULL, -1,
                           "something that is no plain file", "a new file or a part of one");
    if (flock(part->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return plumb__fail(err, PLUMB_ERROR_IO, part->path, NULL, -1,
                           "a file that another run is writing", "one run at a time");
    plumb_status status = try_resume(part, &there, resumed, err);
    if (status == PLUMB_OK) status = check_room(part, &there, holes, err);
    if (status != PLUMB_OK) {
        if (there.st_size == 0) (void)unlink(part->path); /* made just now */
        return status;
    }
    if (!*resumed) status = begin_anew(part, err);
    return status == PLUMB_OK ? open_payloads(part, err) : status;
}

plumb_status plumb__part_file_open(const char *path, bool force, XXH128_hash_t origin,
                                   plumb_converted_header *header, int64_t holes,
                                   plumb_part_file *part, bool *resumed, plumb_error *err) {
    *part = (plumb_part_file){.fd = -1, .payload_fd = -1, .header = header, .origin = origin,
                              .force = force};
    size_t size = strlen(path) + sizeof ".part";
    pthread_mutex_init(&part->lock, NULL);
    part->final = strdup(path);
    part->path = malloc(size);
    plumb_status status = PLUMB_OK;
    if (!part->final || !part->path) {
        status = plumb__fail_memory(err, "path", size);
    } else {
        (void)snprintf(part->path, size, "%s.part", path);
        status = plumb__part_file_check(path, force, err);
    }
    if (status == PLUMB_OK) status = open_part(part, holes, resumed, err);
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
    if (fsync(part->fd) != 0) return fail_system(part->path, "fsync", "a file that is kept", err);
    return fstat(part->fd, &shard->opened) == 0 ? PLUMB_OK
                                                : fail_system(part->path, "stat", "a file", err);
}

/* Without `force` a file that came there meanwhile is not replaced. */
static plumb_status give_name(const plumb_part_file *part, plumb_error *err) {
    if (part->force)
        return rename(part->path, part->final) == 0
                   ? PLUMB_OK : fail_system(part->final, "rename", "a name for the new file", err);
    if (link(part->path, part->final) != 0)
        return fail_system(part->final, "link", "a name for the new file", err);
    return unlink(part->path) == 0 ? PLUMB_OK
                                   : fail_system(part->path, "unlink", "a name to give up", err);
}

plumb_status plumb__part_file_finish(plumb_part_file *part, plumb_error *err) {
    plumb_status status = write_at(part, part->header->bytes, HEAD_BYTES, 0, err);
    if (status == PLUMB_OK && fsync(part->fd) != 0)
        status = fail_system(part->path, "fsync", "a file that is kept", err);
    if (status == PLUMB_OK) status = give_name(part, err);
    return status == PLUMB_OK ? sync_folder(part->final, err) : status;
}

void plumb__part_file_close(plumb_part_file *part) {
    if (part->fd >= 0) (void)close(part->fd);
    if (part->payload_fd >= 0) (void)close(part->payload_fd);
    free(part->path);
    free(part->final);
    pthread_mutex_destroy(&part->lock);
    *part = (plumb_part_file){.fd = -1, .payload_fd = -1};
}
