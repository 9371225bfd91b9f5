/* Vocabulary: ids to bytes and bytes to ids.
 *
 * tokenizer.json spells tokens with stand-in characters (byte 0x20 is U+0120, and so on).  Here
 * they become bytes once, at load; nothing after it knows of stand-ins, except the folded map,
 * whose definition uses the spelling. */
#include "text/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "base/utf8.h"

/* ---- Stand-in characters (tokenizer-and-chat.md section 1) ----
 * Bytes that print in Latin-1 stand for themselves; the 68 others take U+0100.. in order. */

static int stand_in_byte(uint32_t c) {
    if ((c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF))
        return (int)c;
    if (c >= 0x100 && c <= 0x120) return (int)(c - 0x100);
    if (c >= 0x121 && c <= 0x142) return (int)(c - 0x121 + 0x7F);
    return c == 0x143 ? 0xAD : -1;
}

static uint32_t stand_in(unsigned char byte) {
    if (byte <= 0x20) return 0x100u + byte;
    if (byte >= 0x7F && byte <= 0xA0) return 0x121u + byte - 0x7Fu;
    return byte == 0xAD ? 0x143u : byte;
}

size_t plumb__unspell(plumb__slice spelling, char *bytes) {
    size_t n = 0, length;
    for (size_t at = 0; at < spelling.size; at += length) {
        int byte = stand_in_byte(plumb__utf8_read(spelling.bytes + at, &length));
        if (byte < 0) return SIZE_MAX;
        bytes[n++] = (char)byte;
    }
    return n;
}

size_t plumb__spell(plumb__slice bytes, char *to) {
    size_t n = 0;
    for (size_t i = 0; i < bytes.size; i++)
        n += plumb__utf8_write(to + n, stand_in((unsigned char)bytes.bytes[i]));
    return n;
}

/* ---- Bytes to id ---- */

/* The slot of these bytes, or the free one where they belong. */
static uint64_t *find_slot(const plumb__vocabulary *v, const char *bytes, size_t size,
                           uint64_t *tag) {
    uint64_t hash = XXH3_64bits(bytes, size);
    *tag = hash >> 32 << 32;
    for (uint64_t i = hash & v->slot_mask;; i = (i + 1) & v->slot_mask) {
        uint64_t slot = v->slots[i];
        if (slot == 0) return &v->slots[i];
        if ((slot ^ *tag) >> 32) continue;
        plumb__slice token = plumb__token(v, (int64_t)(slot & 0xFFFFFFFFu) - 1);
        if (token.size == size && memcmp(token.bytes, bytes, size) == 0) return &v->slots[i];
    }
}

int32_t plumb__vocabulary_find(const plumb__vocabulary *v, const char *bytes, size_t size) {
    uint64_t tag;
    return (int32_t)(*find_slot(v, bytes, size, &tag) & 0xFFFFFFFFu) - 1;
}

/* ---- Building ---- */

/* What the file says about one id. */
typedef struct id_entry {
    plumb__slice spelling; /* in model.vocab; bytes is NULL if it is not there */
    plumb__slice content;  /* in added_tokens; bytes is NULL if it is not there */
} id_entry;

typedef struct builder {
    const plumb__tokenizer_json *file;
    id_entry *ids; /* (capacity) */
    int64_t capacity;
    plumb_error *err;
} builder;

static plumb_status refuse(const builder *b, const char *field, int64_t index, plumb__text192 found,
                           const char *expected) {
    return plumb__fail(b->err, PLUMB_ERROR_FORMAT, b->file->path, field, index, found.s, "%s",
                       expected);
}

/* Sorts the entries of the file by id; every id must be used, and by one token. */
static plumb_status index_ids(builder *b, int64_t *size) {
    const plumb__tokenizer_json *file = b->file;
    int64_t used = 0;
    for (int64_t i = 0; i < file->n_vocab; i++) {
        int64_t id = file->vocab[i].id;
        if (id >= b->capacity)
            return refuse(b, "model.vocab", i, plumb__format("id %lld", (long long)id),
                          "ids without holes");
        if (b->ids[id].spelling.bytes)
            return refuse(b, "model.vocab", i, plumb__format("id %lld again", (long long)id),
                          "every id once");
        b->ids[id].spelling = file->vocab[i].spelling;
        used++;
    }
    for (int64_t i = 0; i < file->n_added; i++) {
        int64_t id = file->added[i].id;
        if (id >= b->capacity)
            return refuse(b, "added_tokens.id", i, plumb__format("id %lld", (long long)id),
                          "ids without holes");
        if (b->ids[id].content.bytes)
            return refuse(b, "added_tokens.id", i, plumb__format("id %lld again", (long long)id),
                          "every id once");
        b->ids[id].content = file->added[i].content;
        used += b->ids[id].spelling.bytes == NULL;
    }
    for (int64_t id = 0; id < used; id++)
        if (!b->ids[id].spelling.bytes && !b->ids[id].content.bytes)
            return refuse(b, "model.vocab", id, plumb__format("no token"), "ids without holes");
    *size = used;
    return PLUMB_OK;
}

static plumb_status allocate(plumb__vocabulary *v, const builder *b) {
    size_t bytes = 0;
    for (int64_t id = 0; id < v->size; id++)
        bytes += b->ids[id].spelling.size + b->ids[id].content.size;
    uint64_t slots = 16;
    while (slots < (uint64_t)v->size * 2) slots *= 2;
    v->slot_mask = slots - 1;
    v->bytes = malloc(bytes + 1);
    v->start = calloc((size_t)v->size + 1, sizeof *v->start);
    v->flags = calloc((size_t)v->size + 1, sizeof *v->flags);
    v->slots = calloc(slots, sizeof *v->slots);
    if (v->bytes && v->start && v->flags && v->slots) return PLUMB_OK;
    return plumb__fail_memory(b->err, "vocabulary", bytes + slots * sizeof *v->slots);
}

/* Writes the bytes of one token behind those of the ids before it. */
static plumb_status add_token(plumb__vocabulary *v, const builder *b, int64_t id) {
    id_entry entry = b->ids[id];
    char *to = v->bytes + v->start[id];
    bool added = entry.content.bytes != NULL;
    size_t size = entry.spelling.bytes ? plumb__unspell(entry.spelling, to) : SIZE_MAX;
    if (entry.spelling.bytes && size != SIZE_MAX) {
        if (size == 0) return refuse(b, "model.vocab", id, plumb__format("an empty token"), "text");
        if (added && (entry.content.size != size || memcmp(entry.content.bytes, to, size) != 0))
            return refuse(b, "added_tokens.content", id,
                          plumb__format("a text unlike model.vocab's"), "the same text");
        v->flags[id] |= PLUMB_TOKEN_MERGED;
    } else if (entry.spelling.bytes) {
        /* A control token that the vocabulary lists too, spelled literally. */
        if (!added || entry.content.size != entry.spelling.size ||
            memcmp(entry.content.bytes, entry.spelling.bytes, entry.content.size) != 0)
            return refuse(b, "model.vocab", id,
                          plumb__format("a character that stands for no byte"),
                          "byte-level spelling, or an added token's text");
    }
    if (added) {
        v->flags[id] |= PLUMB_TOKEN_ADDED;
        size = entry.content.size;
        memcpy(to, entry.content.bytes, size);
    }
    v->start[id + 1] = v->start[id] + (uint32_t)size;
    return PLUMB_OK;
}

/* Enters MERGED tokens into the table; two with the same bytes are an error. */
static plumb_status index_bytes(plumb__vocabulary *v, const builder *b) {
    uint64_t tag;
    for (int64_t id = 0; id < v->size; id++) {
        if (!(v->flags[id] & PLUMB_TOKEN_MERGED)) continue;
        plumb__slice token = plumb__token(v, id);
        uint64_t *slot = find_slot(v, token.bytes, token.size, &tag);
        if (*slot)
            return refuse(b, "model.vocab", id, plumb__format("the same token as another id's"),
                          "every token once");
        *slot = tag | ((uint64_t)id + 1);
    }
    for (int64_t id = 0; id < v->size; id++) {
        if ((v->flags[id] & (PLUMB_TOKEN_MERGED | PLUMB_TOKEN_ADDED)) != PLUMB_TOKEN_ADDED)
            continue;
        plumb__slice token = plumb__token(v, id);
        if (plumb__vocabulary_find(v, token.bytes, token.size) >= 0)
            return refuse(b, "added_tokens.content", id,
                          plumb__format("\"%.*s\", which model.vocab has under another id",
                                        token.size > 100 ? 100 : (int)token.size, token.bytes),
                          "one id for one text");
    }
    return PLUMB_OK;
}

plumb_status plumb__vocabulary_build(plumb__vocabulary *v, const plumb__tokenizer_json *file,
                                     plumb_error *err) {
    builder b = {.file = file, .capacity = file->n_vocab + file->n_added, .err = err};
    *v = (plumb__vocabulary){0};
    if (b.capacity > PLUMB_MOST_TOKENS)
        return refuse(&b, "model.vocab", -1, plumb__format("%lld tokens", (long long)b.capacity),
                      plumb__format("at most %lld", (long long)PLUMB_MOST_TOKENS).s);
    b.ids = calloc((size_t)b.capacity + 1, sizeof *b.ids);
    if (!b.ids) return plumb__fail_memory(err, "vocabulary", (size_t)b.capacity * sizeof *b.ids);
    plumb_status status = index_ids(&b, &v->size);
    if (status == PLUMB_OK) status = allocate(v, &b);
    for (int64_t id = 0; status == PLUMB_OK && id < v->size; id++) status = add_token(v, &b, id);
    if (status == PLUMB_OK) status = index_bytes(v, &b);
    free(b.ids);
    return status;
}

void plumb__vocabulary_free(plumb__vocabulary *v) {
    free(v->bytes);
    free(v->start);
    free(v->flags);
    free(v->slots);
    *v = (plumb__vocabulary){0};
}
