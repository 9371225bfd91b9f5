#include "snapshot/forged.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

void forged_set_u32(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> 8 * i);
}

void forged_set_u64(uint8_t *at, uint64_t value) {
    for (int i = 0; i < 8; i++) at[i] = (uint8_t)(value >> 8 * i);
}

uint64_t forged_u64(const uint8_t *at) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value |= (uint64_t)at[i] << 8 * i;
    return value;
}

uint32_t forged_u32(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint8_t *forged_entry(const file_bytes *file, int i) {
    return file->bytes + FORGED_HEADER + i * FORGED_ENTRY;
}

forged forged_take_apart(const char *path) {
    forged f = {.original = file_load(path)};
    memcpy(f.header, f.original.bytes, FORGED_HEADER);
    f.sections = (int)forged_u32(f.header + FORGED_SECTIONS);
    file_must(f.sections <= FORGED_MOST, "sections");
    for (int i = 0; i < f.sections; i++) {
        const uint8_t *entry = forged_entry(&f.original, i);
        f.section[i] = (forged_section){.kind = forged_u32(entry), .layer = forged_u32(entry + 4),
                                        .length = (int64_t)forged_u64(entry + 8),
                                        .bytes = (int64_t)forged_u64(entry + 24),
                                        .payload = f.original.bytes + forged_u64(entry + 16)};
    }
    return f;
}

void forged_free(forged *f) { free(f->original.bytes); }

void forged_seal(file_bytes *file) {
    size_t table = FORGED_ENTRY * (size_t)forged_u32(file->bytes + FORGED_SECTIONS);
    if (FORGED_HEADER + table <= file->size)
        forged_set_u64(file->bytes + FORGED_TABLE_SUM,
                       XXH3_64bits(file->bytes + FORGED_HEADER, table));
    forged_set_u64(file->bytes + FORGED_HEADER_SUM, XXH3_64bits(file->bytes, FORGED_HEADER_SUM));
}

file_bytes forged_assemble(const forged *f) {
    size_t size = FORGED_HEADER + FORGED_ENTRY * (size_t)f->sections, at = size;
    for (int i = 0; i < f->sections; i++) size += (size_t)f->section[i].bytes;
    file_bytes file = {.bytes = malloc(size), .size = size};
    file_must(file.bytes != NULL, "memory");
    memcpy(file.bytes, f->header, FORGED_HEADER);
    for (int i = 0; i < f->sections; i++) {
        const forged_section *s = &f->section[i];
        uint8_t *entry = forged_entry(&file, i);
        forged_set_u32(entry, s->kind);
        forged_set_u32(entry + 4, s->layer);
        forged_set_u64(entry + 8, (uint64_t)s->length);
        forged_set_u64(entry + 16, at);
        forged_set_u64(entry + 24, (uint64_t)s->bytes);
        forged_set_u64(entry + 32, XXH3_64bits(s->payload, (size_t)s->bytes));
        memcpy(file.bytes + at, s->payload, (size_t)s->bytes);
        at += (size_t)s->bytes;
    }
    forged_set_u64(file.bytes + FORGED_FILE_BYTES, size);
    forged_set_u32(file.bytes + FORGED_SECTIONS, (uint32_t)f->sections);
    forged_seal(&file);
    return file;
}
