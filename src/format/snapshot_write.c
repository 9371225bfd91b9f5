/* Writing a snapshot: the sections, then the table that tells of them, then the magic.  Until that is
 * there the file begins as a part. */
#include "format/snapshot.h"

#include "base/file.h"
#include "base/whole_file.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { PIECE = 1 << 20 }; /* what is hashed is written while it is in the processor's cache */

static plumb_status write_section(const plumb_whole_file *file, plumb_snapshot_section *section,
                                  plumb_error *err) {
    const uint8_t *bytes = section->memory;
    XXH3_state_t hash;
    (void)XXH3_64bits_reset(&hash);
    for (int64_t done = 0; done < section->bytes; done += PIECE) {
        int64_t size = section->bytes - done < PIECE ? section->bytes - done : PIECE;
        (void)XXH3_64bits_update(&hash, bytes + done, (size_t)size);
        plumb_status status = plumb__file_write_at(file->fd, file->part, section->offset + done,
                                                   size, bytes + done, err);
        if (status != PLUMB_OK) return status;
    }
    section->checksum = XXH3_64bits_digest(&hash);
    return PLUMB_OK;
}

/* Header and table; the magic last. */
static plumb_status write_beginning(const plumb_whole_file *file,
                                    const plumb_snapshot_header *header,
                                    const plumb_snapshot_section *sections, plumb_error *err) {
    enum { MAGIC = PLUMB_WHOLE_FILE_MARK };
    int64_t size = PLUMB_SNAPSHOT_HEADER_BYTES +
                   (int64_t)header->sections * PLUMB_SNAPSHOT_ENTRY_BYTES;
    uint8_t *bytes = malloc((size_t)size);
    if (!bytes) return plumb__fail_memory(err, "header", (size_t)size);
    plumb__snapshot_pack(header, sections, bytes);
    plumb_status status = plumb__file_write_at(file->fd, file->part, MAGIC, size - MAGIC,
                                               bytes + MAGIC, err);
    if (status == PLUMB_OK)
        status = plumb__file_write_at(file->fd, file->part, 0, MAGIC, bytes, err);
    free(bytes);
    return status;
}

plumb_status plumb__snapshot_write(const char *path, plumb_snapshot_header *header,
                                   plumb_snapshot_section *sections, int64_t count,
                                   plumb_error *err) {
    plumb_whole_file file;
    plumb_status status = plumb__whole_file_open(path, PLUMB_SNAPSHOT_PART_MARK,
                                                 PLUMB_SNAPSHOT_MAGIC, &file, err);
    if (status != PLUMB_OK) return status;
    int64_t offset = PLUMB_SNAPSHOT_HEADER_BYTES + count * PLUMB_SNAPSHOT_ENTRY_BYTES;
    for (int64_t i = 0; i < count && status == PLUMB_OK; i++) {
        sections[i].offset = offset;
        offset += sections[i].bytes;
        status = write_section(&file, &sections[i], err);
    }
    header->sections = (uint32_t)count;
    header->file_bytes = offset;
    if (status == PLUMB_OK) status = write_beginning(&file, header, sections, err);
    if (status == PLUMB_OK) return plumb__whole_file_commit(&file, err);
    plumb__whole_file_abandon(&file);
    return status;
}
