/* Snapshot files put together by hand, from docs/snapshots.md: with whatever header, table and payloads
 * a test wants, and checksums that are right.  Shares no code with the writer. */
#ifndef PLUMB_TESTS_SNAPSHOT_FORGED_H
#define PLUMB_TESTS_SNAPSHOT_FORGED_H

#include "snapshot/files.h"

enum {
    FORGED_HEADER = 96,
    FORGED_ENTRY = 40,
    FORGED_MOST = 160,
    /* Places in the header. */
    FORGED_VERSION = 8,
    FORGED_REVISION = 12,
    FORGED_MODEL = 16,
    FORGED_FILE_BYTES = 32,
    FORGED_LENGTH = 40,
    FORGED_LAYERS = 48,
    FORGED_WINDOW = 52,
    FORGED_HEAD_DIM = 56,
    FORGED_INDEX_DIM = 60,
    FORGED_VOCAB = 64,
    FORGED_SECTIONS = 68,
    FORGED_FLAGS = 72,
    FORGED_TABLE_SUM = 80,
    FORGED_HEADER_SUM = 88
};

typedef struct forged_section {
    uint32_t kind, layer;
    int64_t length, bytes;
    const uint8_t *payload;
} forged_section;

/* A file taken apart; payloads are the original's. */
typedef struct forged {
    file_bytes original;
    uint8_t header[FORGED_HEADER];
    forged_section section[FORGED_MOST];
    int sections;
} forged;

forged forged_take_apart(const char *path);
void forged_free(forged *f);
/* A whole file with right sizes, offsets and checksums; free its bytes. */
file_bytes forged_assemble(const forged *f);
/* The checksums of table and header made right, after bytes of a file were changed. */
void forged_seal(file_bytes *file);

void forged_set_u32(uint8_t *at, uint32_t value);
void forged_set_u64(uint8_t *at, uint64_t value);
uint32_t forged_u32(const uint8_t *at);
uint64_t forged_u64(const uint8_t *at);
/* Where entry i of the table is. */
uint8_t *forged_entry(const file_bytes *file, int i);

#endif
