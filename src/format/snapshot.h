/* Snapshot files: a session on disk, byte by byte in docs/snapshots.md.
 *
 *     header   what it is of, how long, how large; under a checksum
 *     table    of sections: kind, layer, place, checksum; under a checksum
 *     sections one behind the other: tokens, sampling, note, then the caches of each layer
 *
 * There is no padding: each byte is under a checksum or is one, and every size is checked against the
 * size of the file before it is believed.  Nothing here knows what a layer's bytes mean or which there
 * must be; the engine does (engine/session_snapshot.c). */
#ifndef PLUMB_FORMAT_SNAPSHOT_H
#define PLUMB_FORMAT_SNAPSHOT_H

#include "base/error.h"

#define PLUMB_SNAPSHOT_MAGIC "PLUMBSNP"
#define PLUMB_SNAPSHOT_PART_MARK "PLUMBprt" /* in its place while the file is being written */

enum {
    PLUMB_SNAPSHOT_VERSION = 1,
    PLUMB_SNAPSHOT_HEADER_BYTES = 96,
    PLUMB_SNAPSHOT_ENTRY_BYTES = 40, /* of the table */
    PLUMB_SNAPSHOT_SAMPLING_BYTES = 24,
    PLUMB_SNAPSHOT_BIAS_BYTES = 8,
    PLUMB_SNAPSHOT_MOST_SECTIONS = 1 << 14,
    PLUMB_SNAPSHOT_MOST_TOKENS = 1 << 28,
    PLUMB_SNAPSHOT_MOST_BIASES = 1 << 24,
    PLUMB_SNAPSHOT_MOST_NOTE_BYTES = 1 << 28
};

/* Values are pinned.  The order in a file is tokens, sampling, note, the others. */
typedef enum plumb_snapshot_kind {
    PLUMB_SNAPSHOT_TOKENS = 1,     /* int32 each */
    PLUMB_SNAPSHOT_SAMPLING = 2,   /* may be absent */
    PLUMB_SNAPSHOT_NOTE = 3,       /* may be absent */
    PLUMB_SNAPSHOT_RING = 4,       /* window rows in slot order */
    PLUMB_SNAPSHOT_CARRY = 5,      /* float32 value and gate of the first of a pair */
    PLUMB_SNAPSHOT_COMPRESSED = 6, /* rows */
    PLUMB_SNAPSHOT_INDEX_KEYS = 7  /* rows */
} plumb_snapshot_kind;

enum { PLUMB_SNAPSHOT_NO_LAYER = -1 };

/* Flags of the header: the session had gone back by one position, and its rings and carries are still
 * those of the longer one.  What follows has the right bits; another step back from there would not. */
enum { PLUMB_SNAPSHOT_STEPPED_BACK = 1 };

typedef struct plumb_snapshot_section {
    int32_t kind, layer;
    int64_t length; /* of the sequence when it looked like this: less than the session's in resume points */
    int64_t offset, bytes;
    uint64_t checksum; /* XXH3-64 */
    void *memory;      /* of whoever writes or restores: where its bytes are, or go */
} plumb_snapshot_section;

/* What must be equal for a snapshot to fit a model, besides the model itself. */
typedef struct plumb_snapshot_layout {
    uint32_t layers, window, head_dim, index_dim, vocab;
} plumb_snapshot_layout;

typedef struct plumb_snapshot_header {
    uint32_t arithmetic_revision;
    uint8_t model[16]; /* digest (engine/model_digest.h) */
    int64_t file_bytes, length;
    plumb_snapshot_layout layout;
    uint32_t sections;
    uint64_t flags;
    uint64_t table_checksum;
} plumb_snapshot_header;

struct plumb_snapshot {
    char *path;
    int fd;
    plumb_snapshot_header header;
    plumb_snapshot_section *section; /* [header.sections] */
    int64_t first_cache;             /* sections before it are tokens, sampling and note */
    int32_t *tokens;                 /* [header.length] */
    bool has_sampling;
    plumb_sampling sampling;
    plumb_logit_bias *bias;
    void *note;
    int64_t note_bytes;
};

/* "ring of layer 3", "carry of layer 2 at 128" for one of a resume point. */
plumb__text192 plumb__snapshot_section_name(const plumb_snapshot_header *header,
                                            const plumb_snapshot_section *section);

/* The header from the first `size` bytes of a file of `file_bytes`, at least `size`; then the table, table_bytes of it,
 * which follows.  *sections is one block of header->sections; free() it. */
PLUMB_MUST_CHECK plumb_status plumb__snapshot_parse_header(const uint8_t *bytes, int64_t size,
                                                           int64_t file_bytes, const char *path,
                                                           plumb_snapshot_header *header,
                                                           plumb_error *err);
int64_t plumb__snapshot_table_bytes(const plumb_snapshot_header *header);
PLUMB_MUST_CHECK plumb_status plumb__snapshot_parse_table(const uint8_t *table, const char *path,
                                                          const plumb_snapshot_header *header,
                                                          plumb_snapshot_section **sections,
                                                          plumb_error *err);
/* Reads a section into `into`, section->bytes of them, and compares its checksum. */
PLUMB_MUST_CHECK plumb_status plumb__snapshot_read(const plumb_snapshot *snapshot,
                                                   const plumb_snapshot_section *section,
                                                   void *into, plumb_error *err);

/* The bytes of a section of kind SAMPLING: PLUMB_SNAPSHOT_SAMPLING_BYTES and PLUMB_SNAPSHOT_BIAS_BYTES
 * for each bias. */
void plumb__snapshot_pack_sampling(const plumb_sampling *sampling, uint8_t *bytes);

/* Does the file at `path` begin as a snapshot?  An error says that it does not: it is somebody's, and
 * would be lost if one were written over it. */
PLUMB_MUST_CHECK plumb_status plumb__snapshot_begins(const char *path, plumb_error *err);

/* Writes a file: header->file_bytes and ->sections and the sections' offsets and checksums are filled
 * in.  Sections come in the order of the file.  Not touched: what is at `path`, until all is there. */
PLUMB_MUST_CHECK plumb_status plumb__snapshot_write(const char *path, plumb_snapshot_header *header,
                                                    plumb_snapshot_section *sections, int64_t count,
                                                    plumb_error *err);

/* Header and table as they are in a file, which begin with the magic. */
void plumb__snapshot_pack(const plumb_snapshot_header *header,
                          const plumb_snapshot_section *sections, uint8_t *bytes);

#endif
