#include "convert/payload_reader.h"

#include "base/error.h"
#include "base/file.h"
#include "base/pages.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 4096 }; /* what uncached reads are aligned to */

plumb_status plumb__payload_files_open(const plumb_shard_file *const *file, int64_t count,
                                       plumb_payload_files *files, plumb_error *err) {
    *files = (plumb_payload_files){.file = file, .uncached = true};
    files->fd = malloc((size_t)count * sizeof *files->fd);
    if (!files->fd) return plumb__fail_memory(err, "files", (size_t)count * sizeof *files->fd);
    plumb_status status = PLUMB_OK;
    while (files->count < count && status == PLUMB_OK) {
        bool uncached;
        char why[160];
        int *fd = &files->fd[files->count];
        status = plumb__shard_open_uncached(file[files->count], fd, &uncached, why, sizeof why, err);
        if (status != PLUMB_OK) break;
        files->uncached &= uncached;
        files->count++;
    }
    if (status != PLUMB_OK) plumb__payload_files_close(files);
    return status;
}

void plumb__payload_files_close(plumb_payload_files *files) {
    for (int64_t i = 0; i < files->count; i++) (void)close(files->fd[i]);
    free(files->fd);
    *files = (plumb_payload_files){0};
}

/* ---- One read ---------------------------------------------------------------------------------- */

typedef struct request {
    int64_t file, offset, size;
    const char *field;
} request;

/* File systems that know no holes say that all is data. */
static bool is_hole(int fd, int64_t offset, int64_t size) {
#if defined(SEEK_DATA)
    off_t data = lseek(fd, (off_t)offset, SEEK_DATA);
    return data < 0 ? errno == ENXIO : data >= offset + size;
#else
    (void)fd;
    (void)offset;
    (void)size;
    return false;
#endif
}

static bool is_zero(const plumb_shard_file *shard, int64_t begin, int64_t end) {
    uint8_t bytes[BLOCK];
    plumb_error ignored;
    if (plumb__file_read_at(shard->fd, shard->path, NULL, begin, end - begin, bytes, &ignored) !=
        PLUMB_OK)
        return false;
    for (int64_t i = 0; i < end - begin; i++)
        if (bytes[i] != 0) return false;
    return true;
}

bool plumb__payload_is_hollow(const plumb_payload_files *files, int64_t file, int64_t offset,
                              int64_t size) {
    const plumb_shard_file *shard = files->file[file];
    int64_t end = offset + size;
    int64_t first = (offset + BLOCK - 1) / BLOCK * BLOCK, last = end / BLOCK * BLOCK;
    plumb_error ignored;
    bool zero = end <= shard->opened.st_size;
    if (first > last) {
        zero = zero && is_zero(shard, offset, end); /* all of it inside one block */
    } else {
        zero = zero && (first == last || is_hole(files->fd[file], first, last - first)) &&
               is_zero(shard, offset, first) && is_zero(shard, last, end);
    }
    return zero && plumb__shard_check_unchanged(shard, NULL, offset, &ignored) == PLUMB_OK;
}

/* Aligned reads of whole blocks, of which the last may reach beyond the end of the file. */
static plumb_status read_blocks(const plumb_payload_files *files, int64_t file, int64_t begin,
                                int64_t needed, const char *field, uint8_t *into,
                                plumb_error *err) {
    const char *path = files->file[file]->path;
    int64_t size = (needed + BLOCK - 1) / BLOCK * BLOCK;
    for (int64_t got = 0; got < needed;) {
        ssize_t count = pread(files->fd[file], into + got, (size_t)(size - got), (off_t)(begin + got));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0)
            return plumb__fail(err, PLUMB_ERROR_IO, path, field, begin + got,
                               count == 0 ? "end of file" : strerror(errno), "%lld more bytes",
                               (long long)(needed - got));
        /* An uncached read can only go on from a block. */
        int64_t step = count;
        if (files->uncached && got + count < needed) step = count / BLOCK * BLOCK;
        if (step == 0)
            return plumb__fail(err, PLUMB_ERROR_IO, path, field, begin + got, "a short read",
                               "%lld more bytes", (long long)(needed - got));
        got += step;
    }
    return PLUMB_OK;
}

/* The bytes asked for begin as far behind the buffer's beginning as they do behind a block's. */
static plumb_status fill(const plumb_payload_reader *reader, const request *r,
                         plumb_payload_buffer *buffer, plumb_error *err) {
    const plumb_shard_file *shard = reader->files->file[r->file];
    int64_t begin = r->offset / BLOCK * BLOCK, end = r->offset + r->size;
    plumb_status status = PLUMB_OK;
    if (end - begin > reader->room)
        return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, shard->path, r->field, r->offset,
                           plumb__format("a piece of %lld bytes", (long long)r->size).s,
                           "at most %lld", (long long)(reader->room - BLOCK));
    if (end <= shard->opened.st_size && is_hole(reader->files->fd[r->file], r->offset, r->size)) {
        if (buffer->zeros < end - begin)
            memset(buffer->memory + buffer->zeros, 0, (size_t)(end - begin - buffer->zeros));
        if (buffer->zeros < end - begin) buffer->zeros = end - begin;
    } else {
        buffer->zeros = 0;
        status = read_blocks(reader->files, r->file, begin, end - begin, r->field, buffer->memory,
                             err);
    }
    if (status != PLUMB_OK) return status;
    return plumb__shard_check_unchanged(shard, r->field, r->offset, err);
}

static plumb_status open_buffer(int64_t room, plumb_payload_buffer *buffer, plumb_error *err) {
    *buffer = (plumb_payload_buffer){plumb__pages_map(room), room};
    return buffer->memory ? PLUMB_OK : plumb__fail_memory(err, "read buffer", (size_t)room);
}

/* ---- Reading ahead ----------------------------------------------------------------------------- */

typedef struct plumb_read_ahead {
    const plumb_payload_reader *reader;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool begun, ended, stop; /* a request was made; it was carried out; no more will come */
    request request;
    plumb_payload_buffer buffer;
    plumb_status status;
    plumb_error fault;
} read_ahead;

static void *run_ahead(void *arg) {
    read_ahead *a = arg;
    pthread_mutex_lock(&a->lock);
    while (!a->stop) {
        if (a->begun && !a->ended) {
            pthread_mutex_unlock(&a->lock);
            a->status = fill(a->reader, &a->request, &a->buffer, &a->fault);
            pthread_mutex_lock(&a->lock);
            a->ended = true;
            pthread_cond_broadcast(&a->changed);
        } else {
            (void)pthread_cond_wait(&a->changed, &a->lock);
        }
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* Waits for the request that was made, if any; whether there was one. */
static bool await(read_ahead *a) {
    if (!a || !a->begun) return false;
    pthread_mutex_lock(&a->lock);
    while (!a->ended) (void)pthread_cond_wait(&a->changed, &a->lock);
    a->begun = a->ended = false;
    pthread_mutex_unlock(&a->lock);
    return true;
}

static plumb_status open_ahead(plumb_payload_reader *reader, plumb_error *err) {
    read_ahead *a = calloc(1, sizeof *a);
    if (!a) return plumb__fail_memory(err, "read ahead", sizeof *a);
    a->reader = reader;
    plumb_status status = open_buffer(reader->room, &a->buffer, err);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    if (status == PLUMB_OK && pthread_create(&a->thread, NULL, run_ahead, a) != 0)
        status = plumb__fail_memory(err, "a thread", sizeof *a);
    if (status == PLUMB_OK) {
        reader->ahead = a;
        return PLUMB_OK;
    }
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    plumb__pages_unmap(a->buffer.memory, reader->room);
    free(a);
    return status;
}

static void close_ahead(plumb_payload_reader *reader) {
    read_ahead *a = reader->ahead;
    if (!a) return;
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    (void)pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    plumb__pages_unmap(a->buffer.memory, reader->room);
    free(a);
}

plumb_status plumb__payload_read_ahead(plumb_payload_reader *reader, int64_t file, int64_t offset,
                                       int64_t size, const char *field, plumb_error *err) {
    plumb_status status = reader->ahead ? PLUMB_OK : open_ahead(reader, err);
    if (status != PLUMB_OK) return status;
    read_ahead *a = reader->ahead;
    (void)await(a);
    pthread_mutex_lock(&a->lock);
    a->request = (request){file, offset, size, field};
    a->begun = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    return PLUMB_OK;
}

/* ---- Readers ----------------------------------------------------------------------------------- */

plumb_status plumb__payload_reader_open(const plumb_payload_files *files, int64_t most,
                                        plumb_payload_reader *reader, plumb_error *err) {
    int64_t room = (most + BLOCK - 1) / BLOCK * BLOCK + BLOCK;
    *reader = (plumb_payload_reader){.files = files, .room = room};
    return open_buffer(room, &reader->now, err);
}

void plumb__payload_reader_close(plumb_payload_reader *reader) {
    close_ahead(reader);
    plumb__pages_unmap(reader->now.memory, reader->room);
    *reader = (plumb_payload_reader){0};
}

static bool same_range(const request *a, const request *b) {
    return a->file == b->file && a->offset == b->offset && a->size == b->size;
}

plumb_status plumb__payload_read(plumb_payload_reader *reader, int64_t file, int64_t offset,
                                 int64_t size, const char *field, const uint8_t **bytes,
                                 plumb_error *err) {
    const request wanted = {file, offset, size, field};
    read_ahead *a = reader->ahead;
    plumb_status status;
    if (await(a) && same_range(&wanted, &a->request)) {
        plumb_payload_buffer filled = a->buffer;
        a->buffer = reader->now;
        reader->now = filled;
        status = a->status;
        if (status != PLUMB_OK && err) *err = a->fault;
    } else {
        status = fill(reader, &wanted, &reader->now, err);
    }
    *bytes = reader->now.memory + offset % BLOCK;
    return status;
}
