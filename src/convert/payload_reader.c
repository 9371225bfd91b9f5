#include "convert/payload_reader.h"

#include "base/error.h"
#include "base/file.h"
#include "base/pages.h"

#include <errno.h>
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

plumb_status plumb__payload_reader_open(const plumb_payload_files *files, int64_t most,
                                        plumb_payload_reader *reader, plumb_error *err) {
    int64_t room = (most + BLOCK - 1) / BLOCK * BLOCK + BLOCK;
    *reader = (plumb_payload_reader){.files = files, .room = room, .zeros = room};
    reader->memory = plumb__pages_map(room);
    return reader->memory ? PLUMB_OK : plumb__fail_memory(err, "read buffer", (size_t)room);
}

void plumb__payload_reader_close(plumb_payload_reader *reader) {
    if (reader->memory) plumb__pages_unmap(reader->memory, reader->room);
    *reader = (plumb_payload_reader){0};
}

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

/* Aligned reads of whole blocks, of which the last may reach beyond the end of the file. */
static plumb_status read_blocks(const plumb_payload_reader *reader, int64_t file, int64_t begin,
                                int64_t needed, const char *field, plumb_error *err) {
    const char *path = reader->files->file[file]->path;
    int64_t size = (needed + BLOCK - 1) / BLOCK * BLOCK;
    for (int64_t got = 0; got < needed;) {
        ssize_t count = pread(reader->files->fd[file], reader->memory + got, (size_t)(size - got),
                              (off_t)(begin + got));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0)
            return plumb__fail(err, PLUMB_ERROR_IO, path, field, begin + got,
                               count == 0 ? "end of file" : strerror(errno), "%lld more bytes",
                               (long long)(needed - got));
        /* An uncached read can only go on from a block. */
        int64_t step = count;
        if (reader->files->uncached && got + count < needed) step = count / BLOCK * BLOCK;
        if (step == 0)
            return plumb__fail(err, PLUMB_ERROR_IO, path, field, begin + got, "a short read",
                               "%lld more bytes", (long long)(needed - got));
        got += step;
    }
    return PLUMB_OK;
}

plumb_status plumb__payload_read(plumb_payload_reader *reader, int64_t file, int64_t offset,
                                 int64_t size, const char *field, const uint8_t **bytes,
                                 plumb_error *err) {
    const plumb_shard_file *shard = reader->files->file[file];
    int64_t begin = offset / BLOCK * BLOCK;
    plumb_status status = PLUMB_OK;
    *bytes = reader->memory + (offset - begin);
    if (offset + size <= shard->opened.st_size &&
        is_hole(reader->files->fd[file], offset, size)) {
        int64_t needed = offset + size - begin, there = reader->zeros;
        if (there < needed) {
            memset(reader->memory + there, 0, (size_t)(needed - there));
            reader->zeros = needed;
        }
    } else {
        reader->zeros = 0;
        status = read_blocks(reader, file, begin, offset + size - begin, field, err);
    }
    if (status != PLUMB_OK) return status;
    return plumb__shard_check_unchanged(shard, field, offset, err);
}
