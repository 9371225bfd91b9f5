/* Opening a snapshot: header, table, tokens and extras.  The caches stay in the file until a session
 * asks for them, so that many files can be looked through at the price of their tokens. */
#include "format/snapshot.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { PIECE = 1 << 20 }; /* what is read is hashed while it is in the processor's cache */

plumb_status plumb__snapshot_read(const plumb_snapshot *snapshot,
                                  const plumb_snapshot_section *section, void *into,
                                  plumb_error *err) {
    plumb__text192 name = plumb__snapshot_section_name(&snapshot->header, section);
    XXH3_state_t hash;
    (void)XXH3_64bits_reset(&hash);
    for (int64_t done = 0; done < section->bytes; done += PIECE) {
        int64_t size = section->bytes - done < PIECE ? section->bytes - done : PIECE;
        uint8_t *piece = (uint8_t *)into + done;
        plumb_status status = plumb__file_read_at(snapshot->fd, snapshot->path, name.s,
                                                  section->offset + done, size, piece, err);
        if (status != PLUMB_OK) return status;
        (void)XXH3_64bits_update(&hash, piece, (size_t)size);
    }
    uint64_t found = XXH3_64bits_digest(&hash);
    if (found == section->checksum) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_FORMAT, snapshot->path, name.s, section->offset,
                       plumb__format("checksum %016llx", (unsigned long long)found).s, "%016llx",
                       (unsigned long long)section->checksum);
}

/* ---- What is read at once ---------------------------------------------------------------------- */

/* A block of its own for the section's bytes, and a NUL after them. */
static plumb_status read_block(const plumb_snapshot *snapshot,
                               const plumb_snapshot_section *section, void **block,
                               plumb_error *err) {
    uint8_t *bytes = malloc((size_t)section->bytes + 1);
    if (!bytes)
        return plumb__fail_memory(err, plumb__snapshot_section_name(&snapshot->header, section).s,
                                  (size_t)section->bytes);
    plumb_status status = plumb__snapshot_read(snapshot, section, bytes, err);
    if (status != PLUMB_OK) {
        free(bytes);
        return status;
    }
    bytes[section->bytes] = 0;
    *block = bytes;
    return PLUMB_OK;
}

static plumb_status read_tokens(plumb_snapshot *snapshot, const plumb_snapshot_section *section,
                                plumb_error *err) {
    void *block = NULL;
    plumb_status status = read_block(snapshot, section, &block, err);
    if (status != PLUMB_OK) return status;
    snapshot->tokens = block;
    uint32_t vocab = snapshot->header.layout.vocab;
    for (int64_t i = 0; i < snapshot->header.length; i++) {
        int32_t id = snapshot->tokens[i];
        if (id < 0 || (uint32_t)id >= vocab)
            return plumb__fail(err, PLUMB_ERROR_FORMAT, snapshot->path, "tokens",
                               section->offset + i * (int64_t)sizeof id,
                               plumb__format("%ld", (long)id).s, "0 to %ld", (long)vocab - 1);
    }
    return PLUMB_OK;
}

void plumb__snapshot_pack_sampling(const plumb_sampling *s, uint8_t *bytes) {
    memcpy(bytes, &s->temperature, 4);
    memcpy(bytes + 4, &s->top_k, 4);
    memcpy(bytes + 8, &s->top_p, 4);
    memcpy(bytes + 12, &s->min_p, 4);
    memcpy(bytes + 16, &s->seed, 8);
    bytes += PLUMB_SNAPSHOT_SAMPLING_BYTES;
    for (int32_t i = 0; i < s->n_bias; i++, bytes += PLUMB_SNAPSHOT_BIAS_BYTES) {
        memcpy(bytes, &s->bias[i].token, 4);
        memcpy(bytes + 4, &s->bias[i].bias, 4);
    }
}

static plumb_status read_sampling(plumb_snapshot *snapshot, const plumb_snapshot_section *section,
                                  plumb_error *err) {
    void *block = NULL;
    plumb_status status = read_block(snapshot, section, &block, err);
    if (status != PLUMB_OK) return status;
    const uint8_t *bytes = block;
    plumb_sampling *s = &snapshot->sampling;
    memcpy(&s->temperature, bytes, 4);
    memcpy(&s->top_k, bytes + 4, 4);
    memcpy(&s->top_p, bytes + 8, 4);
    memcpy(&s->min_p, bytes + 12, 4);
    memcpy(&s->seed, bytes + 16, 8);
    s->n_bias = (int32_t)((section->bytes - PLUMB_SNAPSHOT_SAMPLING_BYTES) /
                          PLUMB_SNAPSHOT_BIAS_BYTES);
    snapshot->has_sampling = true;
    if (s->n_bias > 0) snapshot->bias = calloc((size_t)s->n_bias, sizeof *snapshot->bias);
    if (s->n_bias > 0 && !snapshot->bias)
        status = plumb__fail_memory(err, "sampling", (size_t)section->bytes);
    bytes += PLUMB_SNAPSHOT_SAMPLING_BYTES;
    for (int32_t i = 0; status == PLUMB_OK && i < s->n_bias; i++) {
        memcpy(&snapshot->bias[i].token, bytes, 4);
        memcpy(&snapshot->bias[i].bias, bytes + 4, 4);
        bytes += PLUMB_SNAPSHOT_BIAS_BYTES;
    }
    s->bias = snapshot->bias;
    free(block);
    return status;
}

static plumb_status read_extras(plumb_snapshot *snapshot, plumb_error *err) {
    plumb_status status = PLUMB_OK;
    int64_t i = 0;
    for (; i < snapshot->header.sections && status == PLUMB_OK; i++) {
        const plumb_snapshot_section *section = &snapshot->section[i];
        if (section->kind == PLUMB_SNAPSHOT_TOKENS) {
            status = read_tokens(snapshot, section, err);
        } else if (section->kind == PLUMB_SNAPSHOT_SAMPLING) {
            status = read_sampling(snapshot, section, err);
        } else if (section->kind == PLUMB_SNAPSHOT_NOTE) {
            status = read_block(snapshot, section, &snapshot->note, err);
            snapshot->note_bytes = section->bytes;
        } else {
            break;
        }
    }
    snapshot->first_cache = i;
    return status;
}

plumb_status plumb__snapshot_begins(const char *path, plumb_error *err) {
    enum { MAGIC = sizeof PLUMB_SNAPSHOT_MAGIC - 1 };
    char head[MAGIC] = {0};
    struct stat there;
    int fd = -1;
    plumb_status status = plumb__file_open(path, &fd, &there, err);
    if (status != PLUMB_OK) return status;
    if (there.st_size >= MAGIC)
        status = plumb__file_read_at(fd, path, "magic", 0, MAGIC, head, err);
    (void)close(fd);
    if (status != PLUMB_OK || memcmp(head, PLUMB_SNAPSHOT_MAGIC, MAGIC) == 0) return status;
    return plumb__fail(err, PLUMB_ERROR_ARGUMENT, path, NULL, -1, "a file that is no snapshot",
                       "a new name, or a snapshot to replace");
}

/* ---- Life -------------------------------------------------------------------------------------- */

static plumb_status read_table(plumb_snapshot *snapshot, plumb_error *err) {
    int64_t size = plumb__snapshot_table_bytes(&snapshot->header);
    uint8_t *table = malloc((size_t)size);
    if (!table) return plumb__fail_memory(err, "table", (size_t)size);
    plumb_status status = plumb__file_read_at(snapshot->fd, snapshot->path, "table",
                                              PLUMB_SNAPSHOT_HEADER_BYTES, size, table, err);
    if (status == PLUMB_OK)
        status = plumb__snapshot_parse_table(table, snapshot->path, &snapshot->header,
                                             &snapshot->section, err);
    free(table);
    return status;
}

static plumb_status read_beginning(plumb_snapshot *snapshot, int64_t file_bytes, plumb_error *err) {
    uint8_t bytes[PLUMB_SNAPSHOT_HEADER_BYTES];
    int64_t size = file_bytes < (int64_t)sizeof bytes ? file_bytes : (int64_t)sizeof bytes;
    plumb_status status =
        plumb__file_read_at(snapshot->fd, snapshot->path, "header", 0, size, bytes, err);
    if (status == PLUMB_OK)
        status = plumb__snapshot_parse_header(bytes, size, file_bytes, snapshot->path,
                                              &snapshot->header, err);
    return status == PLUMB_OK ? read_table(snapshot, err) : status;
}

plumb_status plumb_snapshot_open(const char *path, plumb_snapshot **out, plumb_error *err) {
    if (!path) return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "path", -1, "NULL", "a file");
    plumb_snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot) return plumb__fail_memory(err, "snapshot", sizeof *snapshot);
    snapshot->fd = -1;
    snapshot->path = strdup(path);
    struct stat there = {0};
    plumb_status status = snapshot->path ? plumb__file_open(path, &snapshot->fd, &there, err)
                                         : plumb__fail_memory(err, "path", strlen(path));
    if (status == PLUMB_OK) status = read_beginning(snapshot, there.st_size, err);
    if (status == PLUMB_OK) status = read_extras(snapshot, err);
    if (status != PLUMB_OK) {
        plumb_snapshot_close(snapshot);
        return status;
    }
    *out = snapshot;
    return PLUMB_OK;
}

void plumb_snapshot_close(plumb_snapshot *snapshot) {
    if (!snapshot) return;
    if (snapshot->fd >= 0) (void)close(snapshot->fd);
    free(snapshot->section);
    free(snapshot->tokens);
    free(snapshot->bias);
    free(snapshot->note);
    free(snapshot->path);
    free(snapshot);
}

int64_t plumb_snapshot_length(const plumb_snapshot *snapshot) { return snapshot->header.length; }

const int32_t *plumb_snapshot_tokens(const plumb_snapshot *snapshot) { return snapshot->tokens; }

const plumb_sampling *plumb_snapshot_sampling(const plumb_snapshot *snapshot) {
    return snapshot->has_sampling ? &snapshot->sampling : NULL;
}

const void *plumb_snapshot_note(const plumb_snapshot *snapshot, int64_t *bytes) {
    if (bytes) *bytes = snapshot->note_bytes;
    return snapshot->note;
}
