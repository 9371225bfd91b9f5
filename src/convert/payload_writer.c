#include "convert/payload_writer.h"

#include "base/error.h"
#include "base/file.h"
#include "base/pages.h"

#include <string.h>

enum {
    BLOCK = 4096,        /* what uncached writes are aligned to */
    ROOM = 4 << 20,
    HOLE = 64 << 10      /* zeros that are worth leaving out */
};

plumb_status plumb__payload_writer_open(const char *path, int fd, plumb_payload_writer *writer,
                                        plumb_error *err) {
    *writer = (plumb_payload_writer){.path = path, .fd = fd, .room = ROOM};
    writer->memory = plumb__pages_map(ROOM);
    writer->hash = XXH3_createState();
    return writer->memory && writer->hash ? PLUMB_OK : plumb__fail_memory(err, "write buffer", ROOM);
}

void plumb__payload_writer_close(plumb_payload_writer *writer) {
    if (writer->memory) plumb__pages_unmap(writer->memory, writer->room);
    (void)XXH3_freeState(writer->hash);
    *writer = (plumb_payload_writer){0};
}

void plumb__payload_begin(plumb_payload_writer *writer, int64_t offset) {
    writer->offset = offset;
    writer->filled = writer->hashed = 0;
    (void)XXH3_128bits_reset(writer->hash);
}

static bool all_zero(const uint8_t *bytes, int64_t size) {
    /* Every byte equals the one before, and the first is zero. */
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)size - 1) == 0;
}

static plumb_status write_part(const plumb_payload_writer *w, int64_t begin, int64_t end,
                               plumb_error *err) {
    return plumb__file_write_at(w->fd, w->path, w->offset + begin, end - begin, w->memory + begin,
                                err);
}

/* Writes the first `size` bytes, whole blocks: the file has zeros already where nothing was written. */
static plumb_status flush(plumb_payload_writer *w, int64_t size, plumb_error *err) {
    int64_t begin = 0; /* of what is not zero */
    plumb_status status = PLUMB_OK;
    for (int64_t at = 0; at < size && status == PLUMB_OK; at += HOLE) {
        int64_t piece = size - at < HOLE ? size - at : HOLE;
        if (!all_zero(w->memory + at, piece)) continue;
        status = write_part(w, begin, at, err);
        begin = at + piece;
    }
    return status == PLUMB_OK ? write_part(w, begin, size, err) : status;
}

static void hash_new(plumb_payload_writer *w) {
    (void)XXH3_128bits_update(w->hash, w->memory + w->hashed, (size_t)(w->filled - w->hashed));
    w->hashed = w->filled;
}

plumb_status plumb__payload_reserve(plumb_payload_writer *w, int64_t unit, int64_t most,
                                    uint8_t **room, int64_t *units, plumb_error *err) {
    if (w->room - w->filled < unit) {
        int64_t whole = w->filled / BLOCK * BLOCK;
        hash_new(w);
        plumb_status status = flush(w, whole, err);
        if (status != PLUMB_OK) return status;
        memmove(w->memory, w->memory + whole, (size_t)(w->filled - whole));
        w->offset += whole;
        w->filled -= whole;
        w->hashed = w->filled;
    }
    if (w->room - w->filled < unit)
        return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, w->path, "row", w->offset,
                           plumb__format("%lld bytes", (long long)unit).s, "at most %d", ROOM - BLOCK);
    int64_t fit = (w->room - w->filled) / unit;
    *units = fit < most ? fit : most;
    *room = w->memory + w->filled;
    return PLUMB_OK;
}

void plumb__payload_added(plumb_payload_writer *writer, int64_t bytes) { writer->filled += bytes; }

plumb_status plumb__payload_end(plumb_payload_writer *w, XXH128_hash_t *digest, plumb_error *err) {
    hash_new(w);
    *digest = XXH3_128bits_digest(w->hash);
    int64_t blocks = (w->filled + BLOCK - 1) / BLOCK * BLOCK;
    memset(w->memory + w->filled, 0, (size_t)(blocks - w->filled));
    return flush(w, blocks, err);
}
