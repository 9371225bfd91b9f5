/* Header and table of a snapshot from anywhere.  The file is as large as its header says, where that can be,
 * and checksums are made right: random bytes would not come past them. */
#include "format/snapshot.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(int promised) {
    if (!promised) abort();
}

enum { FILE_BYTES = 32, SECTIONS = 68, TABLE_SUM = 80, HEADER_SUM = 88 };

static void seal(uint8_t *bytes, size_t size) {
    uint32_t sections;
    memcpy(&sections, bytes + SECTIONS, 4);
    if (sections <= (size - PLUMB_SNAPSHOT_HEADER_BYTES) / PLUMB_SNAPSHOT_ENTRY_BYTES) {
        uint64_t sum = XXH3_64bits(bytes + PLUMB_SNAPSHOT_HEADER_BYTES,
                                   (size_t)sections * PLUMB_SNAPSHOT_ENTRY_BYTES);
        memcpy(bytes + TABLE_SUM, &sum, 8);
    }
    uint64_t sum = XXH3_64bits(bytes, HEADER_SUM);
    memcpy(bytes + HEADER_SUM, &sum, 8);
}

/* What a table that passes has promised. */
static void check(const plumb_snapshot_header *h, const plumb_snapshot_section *section) {
    int64_t end = PLUMB_SNAPSHOT_HEADER_BYTES + plumb__snapshot_table_bytes(h);
    need(h->flags <= PLUMB_SNAPSHOT_STEPPED_BACK);
    need(h->length >= 0 && h->length <= PLUMB_SNAPSHOT_MOST_TOKENS);
    for (uint32_t i = 0; i < h->sections; i++) {
        const plumb_snapshot_section *s = &section[i];
        need(s->offset == end && s->bytes >= 0 && s->bytes <= h->file_bytes - end);
        need(s->length >= 0 && s->length <= h->length);
        need((i == 0) == (s->kind == PLUMB_SNAPSHOT_TOKENS));
        need(s->kind >= PLUMB_SNAPSHOT_TOKENS && s->kind <= PLUMB_SNAPSHOT_INDEX_KEYS);
        need(s->kind < PLUMB_SNAPSHOT_RING || (s->layer >= 0 && (uint32_t)s->layer < h->layout.layers));
        need(plumb__snapshot_section_name(h, s).s[0] != 0);
        end += s->bytes;
    }
    need(end == h->file_bytes && section[0].bytes == 4 * h->length);
}

/* Checks, packs again and must have the same bytes. */
static void round_trip(const plumb_snapshot_header *h, const plumb_snapshot_section *sections,
                       const uint8_t *bytes) {
    size_t size = PLUMB_SNAPSHOT_HEADER_BYTES + (size_t)plumb__snapshot_table_bytes(h);
    uint8_t *packed = malloc(size);
    if (!packed) return;
    plumb__snapshot_pack(h, sections, packed);
    need(memcmp(packed, bytes, size) == 0);
    free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    plumb_snapshot_header header;
    plumb_snapshot_section *sections = NULL;
    plumb_error err = {0};
    uint8_t *bytes = malloc(size + 1);
    if (!bytes) return 0;
    if (size > 0) memcpy(bytes, data, size);
    int64_t file_bytes = (int64_t)size;
    if (size >= PLUMB_SNAPSHOT_HEADER_BYTES) {
        seal(bytes, size);
        int64_t said;
        memcpy(&said, bytes + FILE_BYTES, 8);
        if (said > file_bytes) file_bytes = said; /* these bytes are in the file, however short it claims to be */
    }
    plumb_status status =
        plumb__snapshot_parse_header(bytes, (int64_t)size, file_bytes, "x", &header, &err);
    if (status == PLUMB_OK &&
        plumb__snapshot_table_bytes(&header) <= (int64_t)size - PLUMB_SNAPSHOT_HEADER_BYTES) {
        status = plumb__snapshot_parse_table(bytes + PLUMB_SNAPSHOT_HEADER_BYTES, "x", &header,
                                             &sections, &err);
        if (status == PLUMB_OK) {
            check(&header, sections);
            round_trip(&header, sections, bytes);
        }
    }
    if (status != PLUMB_OK) need(err.found[0] && err.expected[0]);
    free(sections);
    free(bytes);
    return 0;
}
