/* Header and table of a snapshot: both directions, and everything that can be refused without the
 * payloads. */
#include "format/snapshot.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Places in the header and in an entry of the table. */
enum {
    AT_VERSION = 8,
    AT_REVISION = 12,
    AT_MODEL = 16,
    AT_FILE_BYTES = 32,
    AT_LENGTH = 40,
    AT_LAYERS = 48,
    AT_WINDOW = 52,
    AT_HEAD_DIM = 56,
    AT_INDEX_DIM = 60,
    AT_VOCAB = 64,
    AT_SECTIONS = 68,
    AT_FLAGS = 72,
    AT_TABLE_CHECKSUM = 80,
    AT_CHECKSUM = 88,

    IN_KIND = 0,
    IN_LAYER = 4,
    IN_LENGTH = 8,
    IN_OFFSET = 16,
    IN_BYTES = 24,
    IN_CHECKSUM = 32
};

plumb__text192 plumb__snapshot_section_name(const plumb_snapshot_header *header,
                                            const plumb_snapshot_section *section) {
    static const char *const names[] = {"?",    "tokens",          "sampling",  "note", "ring",
                                        "carry", "compressed rows", "index keys"};
    const char *name = names[section->kind];
    if (section->layer == PLUMB_SNAPSHOT_NO_LAYER) return plumb__format("%s", name);
    if (section->length == header->length)
        return plumb__format("%s of layer %d", name, (int)section->layer);
    return plumb__format("%s of layer %d at %lld", name, (int)section->layer,
                         (long long)section->length);
}

/* ---- Bytes ------------------------------------------------------------------------------------- */

static void put_u32(uint8_t *to, uint32_t value) { memcpy(to, &value, sizeof value); }
static void put_u64(uint8_t *to, uint64_t value) { memcpy(to, &value, sizeof value); }

static uint32_t get_u32(const uint8_t *from) {
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static uint64_t get_u64(const uint8_t *from) {
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

void plumb__snapshot_pack(const plumb_snapshot_header *h, const plumb_snapshot_section *sections,
                          uint8_t *bytes) {
    uint8_t *table = bytes + PLUMB_SNAPSHOT_HEADER_BYTES;
    for (uint32_t i = 0; i < h->sections; i++) {
        uint8_t *entry = table + (size_t)i * PLUMB_SNAPSHOT_ENTRY_BYTES;
        put_u32(entry + IN_KIND, (uint32_t)sections[i].kind);
        put_u32(entry + IN_LAYER, (uint32_t)sections[i].layer);
        put_u64(entry + IN_LENGTH, (uint64_t)sections[i].length);
        put_u64(entry + IN_OFFSET, (uint64_t)sections[i].offset);
        put_u64(entry + IN_BYTES, (uint64_t)sections[i].bytes);
        put_u64(entry + IN_CHECKSUM, sections[i].checksum);
    }
    memcpy(bytes, PLUMB_SNAPSHOT_MAGIC, AT_VERSION);
    put_u32(bytes + AT_VERSION, PLUMB_SNAPSHOT_VERSION);
    put_u32(bytes + AT_REVISION, h->arithmetic_revision);
    memcpy(bytes + AT_MODEL, h->model, sizeof h->model);
    put_u64(bytes + AT_FILE_BYTES, (uint64_t)h->file_bytes);
    put_u64(bytes + AT_LENGTH, (uint64_t)h->length);
    put_u32(bytes + AT_LAYERS, h->layout.layers);
    put_u32(bytes + AT_WINDOW, h->layout.window);
    put_u32(bytes + AT_HEAD_DIM, h->layout.head_dim);
    put_u32(bytes + AT_INDEX_DIM, h->layout.index_dim);
    put_u32(bytes + AT_VOCAB, h->layout.vocab);
    put_u32(bytes + AT_SECTIONS, h->sections);
    put_u64(bytes + AT_FLAGS, h->flags);
    put_u64(bytes + AT_TABLE_CHECKSUM,
            XXH3_64bits(table, (size_t)h->sections * PLUMB_SNAPSHOT_ENTRY_BYTES));
    put_u64(bytes + AT_CHECKSUM, XXH3_64bits(bytes, AT_CHECKSUM));
}

/* ---- The header -------------------------------------------------------------------------------- */

typedef struct place {
    const char *path;
    plumb_error *err;
} place;

static plumb_status refuse(const place *p, const char *field, int64_t offset, plumb__text192 found,
                           plumb__text192 expected) {
    return plumb__fail(p->err, PLUMB_ERROR_FORMAT, p->path, field, offset, found.s, "%s", expected.s);
}

static plumb_status check_checksum(const place *p, const char *field, int64_t offset,
                                   uint64_t found, uint64_t told) {
    if (found == told) return PLUMB_OK;
    return refuse(p, field, offset, plumb__format("checksum %016llx", (unsigned long long)found),
                  plumb__format("%016llx", (unsigned long long)told));
}

/* What stays in every version of the format: magic and version. */
static plumb_status check_beginning(const place *p, const uint8_t *bytes, int64_t size) {
    if (size < AT_REVISION || memcmp(bytes, PLUMB_SNAPSHOT_MAGIC, AT_VERSION) != 0) {
        bool part = size >= AT_VERSION && memcmp(bytes, PLUMB_SNAPSHOT_PART_MARK, AT_VERSION) == 0;
        return refuse(p, "magic", 0,
                      plumb__format("%s", part               ? "an unfinished snapshot"
                                          : size < AT_REVISION ? "a file that ends too early"
                                                               : "other bytes"),
                      plumb__format("a snapshot (\"%s\")", PLUMB_SNAPSHOT_MAGIC));
    }
    uint32_t version = get_u32(bytes + AT_VERSION);
    if (version == PLUMB_SNAPSHOT_VERSION) return PLUMB_OK;
    return plumb__fail(p->err, PLUMB_ERROR_UNSUPPORTED, p->path, "format version", AT_VERSION,
                       plumb__format("%lu", (unsigned long)version).s, "%d, all that this plumb knows",
                       PLUMB_SNAPSHOT_VERSION);
}

static plumb_status check_counts(const place *p, const plumb_snapshot_header *h,
                                 int64_t file_bytes) {
    if (h->file_bytes != file_bytes)
        return refuse(p, "file size", AT_FILE_BYTES,
                      plumb__format("%lld bytes (%s)", (long long)file_bytes,
                                    file_bytes < h->file_bytes ? "cut short"
                                                               : "more behind its end"),
                      plumb__format("%lld", (long long)h->file_bytes));
    if (h->length < 0 || h->length > PLUMB_SNAPSHOT_MOST_TOKENS)
        return refuse(p, "length", AT_LENGTH, plumb__format("%lld tokens", (long long)h->length),
                      plumb__format("0 to %d", PLUMB_SNAPSHOT_MOST_TOKENS));
    if (h->flags > PLUMB_SNAPSHOT_STEPPED_BACK)
        return refuse(p, "flags", AT_FLAGS, plumb__format("%llu", (unsigned long long)h->flags),
                      plumb__format("0 or %d", PLUMB_SNAPSHOT_STEPPED_BACK));
    int64_t room = (file_bytes - PLUMB_SNAPSHOT_HEADER_BYTES) / PLUMB_SNAPSHOT_ENTRY_BYTES;
    if (room > PLUMB_SNAPSHOT_MOST_SECTIONS) room = PLUMB_SNAPSHOT_MOST_SECTIONS;
    if (h->sections < 1 || h->sections > room)
        return refuse(p, "sections", AT_SECTIONS, plumb__format("%lu", (unsigned long)h->sections),
                      plumb__format("1 to %lld", (long long)room));
    return PLUMB_OK;
}

plumb_status plumb__snapshot_parse_header(const uint8_t *bytes, int64_t size, int64_t file_bytes,
                                          const char *path, plumb_snapshot_header *header,
                                          plumb_error *err) {
    const place p = {path, err};
    plumb_status status = check_beginning(&p, bytes, size);
    if (status != PLUMB_OK) return status;
    if (size < PLUMB_SNAPSHOT_HEADER_BYTES)
        return refuse(&p, "header", 0, plumb__format("%lld bytes", (long long)size),
                      plumb__format("%d", PLUMB_SNAPSHOT_HEADER_BYTES));
    status = check_checksum(&p, "header", 0, XXH3_64bits(bytes, AT_CHECKSUM),
                            get_u64(bytes + AT_CHECKSUM));
    if (status != PLUMB_OK) return status;
    plumb_snapshot_header h = {
        .arithmetic_revision = get_u32(bytes + AT_REVISION),
        .file_bytes = (int64_t)get_u64(bytes + AT_FILE_BYTES),
        .length = (int64_t)get_u64(bytes + AT_LENGTH),
        .layout = {get_u32(bytes + AT_LAYERS), get_u32(bytes + AT_WINDOW),
                   get_u32(bytes + AT_HEAD_DIM), get_u32(bytes + AT_INDEX_DIM),
                   get_u32(bytes + AT_VOCAB)},
        .sections = get_u32(bytes + AT_SECTIONS),
        .flags = get_u64(bytes + AT_FLAGS),
        .table_checksum = get_u64(bytes + AT_TABLE_CHECKSUM)};
    memcpy(h.model, bytes + AT_MODEL, sizeof h.model);
    status = check_counts(&p, &h, file_bytes);
    if (status == PLUMB_OK) *header = h;
    return status;
}

/* ---- The table --------------------------------------------------------------------------------- */

static plumb_snapshot_section unpack_entry(const uint8_t *entry) {
    return (plumb_snapshot_section){.kind = (int32_t)get_u32(entry + IN_KIND),
                                    .layer = (int32_t)get_u32(entry + IN_LAYER),
                                    .length = (int64_t)get_u64(entry + IN_LENGTH),
                                    .offset = (int64_t)get_u64(entry + IN_OFFSET),
                                    .bytes = (int64_t)get_u64(entry + IN_BYTES),
                                    .checksum = get_u64(entry + IN_CHECKSUM)};
}

/* Kind, layer and length are possible ones. */
static plumb_status check_subject(const place *p, const plumb_snapshot_header *h,
                                  const plumb_snapshot_section *s, int64_t at) {
    if (s->kind < PLUMB_SNAPSHOT_TOKENS || s->kind > PLUMB_SNAPSHOT_INDEX_KEYS)
        return refuse(p, "section kind", at + IN_KIND, plumb__format("%ld", (long)s->kind),
                      plumb__format("%d to %d", PLUMB_SNAPSHOT_TOKENS, PLUMB_SNAPSHOT_INDEX_KEYS));
    bool of_layer = s->kind >= PLUMB_SNAPSHOT_RING;
    if (of_layer ? s->layer < 0 || (uint32_t)s->layer >= h->layout.layers
                 : s->layer != PLUMB_SNAPSHOT_NO_LAYER)
        return refuse(p, "section layer", at + IN_LAYER, plumb__format("%ld", (long)s->layer),
                      of_layer ? plumb__format("0 to %ld", (long)h->layout.layers - 1)
                               : plumb__format("%d", PLUMB_SNAPSHOT_NO_LAYER));
    if (s->length < 0 || s->length > h->length || (!of_layer && s->length != h->length))
        return refuse(p, "section length", at + IN_LENGTH,
                      plumb__format("%lld", (long long)s->length),
                      plumb__format("%s%lld", of_layer ? "0 to " : "", (long long)h->length));
    return PLUMB_OK;
}

/* Sections follow each other without a gap. */
static plumb_status check_place(const place *p, const plumb_snapshot_header *h,
                                const plumb_snapshot_section *s, int64_t at, int64_t begin) {
    if (s->offset != begin)
        return refuse(p, "section offset", at + IN_OFFSET,
                      plumb__format("%lld", (long long)s->offset),
                      plumb__format("%lld, where the one before ends", (long long)begin));
    if (s->bytes < 0 || s->bytes > h->file_bytes - begin)
        return refuse(p, "section size", at + IN_BYTES, plumb__format("%lld", (long long)s->bytes),
                      plumb__format("at most %lld", (long long)(h->file_bytes - begin)));
    return PLUMB_OK;
}

/* Tokens first; at most one each of sampling and note, in this order; then caches. */
static plumb_status check_order(const place *p, const plumb_snapshot_section *sections, uint32_t i,
                                int64_t at) {
    int32_t kind = sections[i].kind, before = i > 0 ? sections[i - 1].kind : 0;
    bool good = i == 0 ? kind == PLUMB_SNAPSHOT_TOKENS
                       : kind >= PLUMB_SNAPSHOT_RING || kind > before;
    if (good) return PLUMB_OK;
    return refuse(p, "section kind", at + IN_KIND, plumb__format("%ld", (long)kind),
                  i == 0 ? plumb__format("%d, the tokens", PLUMB_SNAPSHOT_TOKENS)
                         : plumb__format("one above %ld, the kind before it", (long)before));
}

static plumb_status check_size(const place *p, const plumb_snapshot_header *h,
                               const plumb_snapshot_section *s, int64_t at) {
    bool good = true;
    plumb__text192 expected = {""};
    if (s->kind == PLUMB_SNAPSHOT_TOKENS) {
        good = s->bytes == 4 * h->length;
        expected = plumb__format("%lld for %lld tokens", 4 * (long long)h->length,
                                 (long long)h->length);
    } else if (s->kind == PLUMB_SNAPSHOT_SAMPLING) {
        int64_t biases = s->bytes - PLUMB_SNAPSHOT_SAMPLING_BYTES;
        good = biases >= 0 && biases % PLUMB_SNAPSHOT_BIAS_BYTES == 0 &&
               biases / PLUMB_SNAPSHOT_BIAS_BYTES <= PLUMB_SNAPSHOT_MOST_BIASES;
        expected = plumb__format("%d and %d for each bias, at most %d of them",
                                 PLUMB_SNAPSHOT_SAMPLING_BYTES, PLUMB_SNAPSHOT_BIAS_BYTES,
                                 PLUMB_SNAPSHOT_MOST_BIASES);
    } else if (s->kind == PLUMB_SNAPSHOT_NOTE) {
        good = s->bytes <= PLUMB_SNAPSHOT_MOST_NOTE_BYTES;
        expected = plumb__format("at most %d", PLUMB_SNAPSHOT_MOST_NOTE_BYTES);
    }
    if (good) return PLUMB_OK;
    return refuse(p, plumb__snapshot_section_name(h, s).s, at + IN_BYTES,
                  plumb__format("%lld bytes", (long long)s->bytes), expected);
}

int64_t plumb__snapshot_table_bytes(const plumb_snapshot_header *header) {
    return (int64_t)header->sections * PLUMB_SNAPSHOT_ENTRY_BYTES;
}

static plumb_status unpack_table(const place *p, const uint8_t *table,
                                 const plumb_snapshot_header *h,
                                 plumb_snapshot_section *sections) {
    plumb_status status = PLUMB_OK;
    int64_t begin = PLUMB_SNAPSHOT_HEADER_BYTES + plumb__snapshot_table_bytes(h);
    for (uint32_t i = 0; i < h->sections && status == PLUMB_OK; i++) {
        int64_t in_table = (int64_t)i * PLUMB_SNAPSHOT_ENTRY_BYTES;
        int64_t at = PLUMB_SNAPSHOT_HEADER_BYTES + in_table;
        plumb_snapshot_section *s = &sections[i];
        *s = unpack_entry(table + in_table);
        status = check_subject(p, h, s, at);
        if (status == PLUMB_OK) status = check_order(p, sections, i, at);
        if (status == PLUMB_OK) status = check_place(p, h, s, at, begin);
        if (status == PLUMB_OK) status = check_size(p, h, s, at);
        if (status == PLUMB_OK) begin += s->bytes;
    }
    if (status == PLUMB_OK && begin != h->file_bytes)
        status = refuse(p, "sections", begin,
                        plumb__format("%lld bytes behind the last",
                                      (long long)(h->file_bytes - begin)),
                        plumb__format("none"));
    return status;
}

plumb_status plumb__snapshot_parse_table(const uint8_t *table, const char *path,
                                         const plumb_snapshot_header *h,
                                         plumb_snapshot_section **sections, plumb_error *err) {
    const place p = {path, err};
    plumb_status status =
        check_checksum(&p, "table", PLUMB_SNAPSHOT_HEADER_BYTES,
                       XXH3_64bits(table, (size_t)plumb__snapshot_table_bytes(h)), h->table_checksum);
    if (status != PLUMB_OK) return status;
    plumb_snapshot_section *unpacked = calloc(h->sections, sizeof *unpacked);
    if (!unpacked) return plumb__fail_memory(err, "sections", h->sections * sizeof *unpacked);
    status = unpack_table(&p, table, h, unpacked);
    if (status == PLUMB_OK) *sections = unpacked;
    else free(unpacked);
    return status;
}
