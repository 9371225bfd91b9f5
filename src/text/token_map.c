/* The folded vocabulary: tokens that differ only in case, accents, width or outer white space share
 * one id, by a normalisation that must agree with the published one in every token (spec: model.md
 * section 5.1).
 *
 * The published order is NFKC, NFD, drop marks, lower case.  NFD of NFKC is NFKD, and the order in
 * which NFKD puts marks is lost with them, so that each character is decomposed by itself. */
#include "text/token_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/utf8.h"
#include "format/model_files.h"
#include "text/vocabulary.h"

/* Keys of all folded ids, one behind the other, and a hash table over them. */
typedef struct folding {
    char *keys;
    int64_t keys_capacity;
    int64_t *start; /* (folded + 1) */
    int64_t folded;
    int32_t *slots; /* folded id + 1; 0 is free */
    uint64_t slot_mask;
} folding;

#define MOST_DECOMPOSED 32 /* code points of one character; U+FDFA has 18 */
/* Bytes of a key for one byte of token: a character of 2 bytes or more becomes at most
 * MOST_DECOMPOSED characters of 4. */
#define MOST_KEY_GROWTH (MOST_DECOMPOSED * 2)

static bool is_mark(utf8proc_int32_t c) {
    utf8proc_category_t category = utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
           category == UTF8PROC_CATEGORY_ME;
}

/* Decomposes, drops marks, lowers.  The one character whose lower case is two, U+0130, does not
 * survive the decomposition.  Returns the bytes written. */
static size_t fold_characters(plumb__slice text, char *to) {
    size_t n = 0, length;
    for (size_t at = 0; at < text.size; at += length) {
        utf8proc_int32_t c = (utf8proc_int32_t)plumb__utf8_read(text.bytes + at, &length);
        utf8proc_int32_t parts[MOST_DECOMPOSED];
        utf8proc_ssize_t n_parts = 1;
        int boundary = 0;
        parts[0] = c;
        if (c >= 0x80)
            n_parts = utf8proc_decompose_char(c, parts, MOST_DECOMPOSED,
                                              UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &boundary);
        for (utf8proc_ssize_t i = 0; i < n_parts && i < MOST_DECOMPOSED; i++) {
            utf8proc_int32_t part = parts[i];
            if (part < 0x80)
                to[n++] = (char)(part >= 'A' && part <= 'Z' ? part + 'a' - 'A' : part);
            else if (!is_mark(part))
                n += plumb__utf8_write(to + n, (uint32_t)utf8proc_tolower(part));
        }
    }
    return n;
}

/* Runs of space, tab, CR, LF become one space, in place. */
static size_t collapse_blanks(char *text, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        bool blank = text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n';
        if (blank && n > 0 && text[n - 1] == ' ') continue;
        text[n++] = blank ? ' ' : text[i];
    }
    return n;
}

static bool is_white(uint32_t c) {
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

static plumb__slice strip(plumb__slice text) {
    size_t first = text.size, end = text.size, length;
    for (size_t at = 0; at < text.size; at += length) {
        if (is_white(plumb__utf8_read(text.bytes + at, &length))) continue;
        if (first == text.size) first = at;
        end = at + length;
    }
    return (plumb__slice){text.bytes + first, end - first};
}

/* The key of one token; the result points into `token` or `room`. */
static plumb__slice key_of(plumb__slice token, char *room) {
    static const char replacement[] = PLUMB_UTF8_REPLACEMENT;
    bool replaced = plumb__utf8_valid_prefix(token.bytes, token.size) < token.size ||
                    memmem(token.bytes, token.size, replacement, sizeof replacement - 1);
    if (replaced) return (plumb__slice){room, plumb__spell(token, room)};
    size_t size = collapse_blanks(room, fold_characters(token, room));
    plumb__slice key = {room, size};
    if (plumb__slice_is(key, " ")) return key;
    key = strip(key);
    return key.size ? key : token;
}

/* The folded id of a key, a new one for a new key. */
static plumb_status fold(folding *f, plumb__slice key, int32_t *id, plumb_error *err) {
    uint64_t i = XXH3_64bits(key.bytes, key.size) & f->slot_mask;
    for (; f->slots[i]; i = (i + 1) & f->slot_mask) {
        int64_t other = f->slots[i] - 1;
        size_t size = (size_t)(f->start[other + 1] - f->start[other]);
        if (size == key.size && memcmp(f->keys + f->start[other], key.bytes, size) == 0) {
            *id = (int32_t)other;
            return PLUMB_OK;
        }
    }
    int64_t end = f->start[f->folded] + (int64_t)key.size;
    char *grown = plumb__grow(f->keys, &f->keys_capacity, end, 1);
    if (!grown) return plumb__fail_memory(err, "token map", (size_t)end);
    f->keys = grown;
    memcpy(f->keys + f->start[f->folded], key.bytes, key.size);
    *id = (int32_t)f->folded++;
    f->start[f->folded] = end;
    f->slots[i] = *id + 1;
    return PLUMB_OK;
}

plumb_status plumb__token_map_build(const plumb_text *text, int32_t **map, int64_t *folded,
                                    plumb_error *err) {
    int64_t vocab = plumb_text_vocab_size(text);
    size_t longest = 0;
    for (int64_t id = 0; id < vocab; id++) {
        size_t size;
        (void)plumb_text_token_bytes(text, (int32_t)id, &size);
        if (size > longest) longest = size;
    }
    folding f = {.slot_mask = 15};
    while (f.slot_mask < (uint64_t)vocab * 2) f.slot_mask = f.slot_mask * 2 + 1;
    int32_t *ids = malloc((size_t)vocab * sizeof *ids);
    char *room = malloc(longest * MOST_KEY_GROWTH + 1);
    f.start = calloc((size_t)vocab + 1, sizeof *f.start);
    f.slots = calloc(f.slot_mask + 1, sizeof *f.slots);
    plumb_status status = PLUMB_OK;
    if (!ids || !room || !f.start || !f.slots)
        status = plumb__fail_memory(err, "token map", (size_t)vocab * sizeof *f.start);
    for (int64_t id = 0; status == PLUMB_OK && id < vocab; id++) {
        plumb__slice token;
        token.bytes = plumb_text_token_bytes(text, (int32_t)id, &token.size);
        status = fold(&f, key_of(token, room), &ids[id], err);
    }
    if (status == PLUMB_OK) {
        *map = ids;
        *folded = f.folded;
        ids = NULL;
    }
    free(ids);
    free(room);
    free(f.keys);
    free(f.start);
    free(f.slots);
    return status;
}

/* ---- Of a model ---- */

/* The token that every position of an image span carries (checkpoint.md section 7). */
static plumb_status check_image_token(const plumb_text *text, const char *path, int64_t image_id,
                                      plumb_error *err) {
    static const char name[] = "<｜deepseek_image｜>";
    int32_t id = plumb_text_token_id(text, name);
    if (id == image_id) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_FORMAT, path, name, -1,
                       id < 0 ? "no such token" : plumb__format("id %d", (int)id).s,
                       "id %lld, the config's image_token_id", (long long)image_id);
}

static const char tokenizer_file[] = "tokenizer.json", map_file[] = "engram_token_map.i32";

/* `path` is what errors call the file. */
static plumb_status from_tokenizer(const char *model, const char *path, int64_t vocab,
                                   int64_t folded, int64_t image_id, int32_t **map,
                                   plumb_error *err) {
    plumb_text *text;
    plumb_status status = plumb_text_open(model, &text, err);
    if (status != PLUMB_OK) return status;
    int64_t size = plumb_text_vocab_size(text), found = 0;
    int32_t *ids = NULL;
    if (size != vocab)
        status =
            plumb__fail(err, PLUMB_ERROR_FORMAT, path, "vocabulary", -1,
                        plumb__format("%lld ids", (long long)size).s, "%lld", (long long)vocab);
    else
        status = check_image_token(text, path, image_id, err);
    if (status == PLUMB_OK) status = plumb__token_map_build(text, &ids, &found, err);
    if (status == PLUMB_OK && found != folded) {
        free(ids);
        status = plumb__fail(err, PLUMB_ERROR_FORMAT, path, "engram token map", -1,
                             plumb__format("%lld folded ids", (long long)found).s, "%lld",
                             (long long)folded);
    }
    if (status == PLUMB_OK) *map = ids;
    plumb_text_close(text);
    return status;
}

/* Little-endian int32 per id; a new folded id is always the next one. */
static plumb_status check_ids(const char *path, const unsigned char *bytes, int64_t vocab,
                              int64_t folded, int32_t *ids, plumb_error *err) {
    int64_t next = 0;
    for (int64_t i = 0; i < vocab; i++) {
        const unsigned char *b = bytes + 4 * i;
        uint32_t id =
            (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        if (id > next)
            return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "folded id", 4 * i,
                               plumb__format("%u", id).s, "at most %lld", (long long)next);
        next += id == next;
        ids[i] = (int32_t)id;
    }
    if (next == folded) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "folded ids", -1,
                       plumb__format("%lld", (long long)next).s, "%lld", (long long)folded);
}

static plumb_status from_file(const char *model, const char *path, int64_t vocab, int64_t folded,
                              int32_t **map, plumb_error *err) {
    int64_t expected = vocab * 4, found;
    char *bytes;
    plumb_status status = plumb__model_file_load(model, map_file, expected, &bytes, &found, err);
    if (status != PLUMB_OK) return status;
    int32_t *ids = malloc((size_t)expected);
    if (!ids)
        status = plumb__fail_memory(err, path, (size_t)expected);
    else if (found != expected)
        status = plumb__fail(err, PLUMB_ERROR_FORMAT, path, "file size", -1,
                             plumb__format("%lld bytes", (long long)found).s, "%lld bytes",
                             (long long)expected);
    else
        status = check_ids(path, (const unsigned char *)bytes, vocab, folded, ids, err);
    if (status == PLUMB_OK) {
        *map = ids;
        ids = NULL;
    }
    free(bytes);
    free(ids);
    return status;
}

plumb_status plumb__token_map_load(const char *model, int64_t vocab, int64_t folded,
                                   int64_t image_id, int32_t **map, plumb_error *err) {
    if (vocab < 1 || vocab > PLUMB_MOST_TOKENS)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, model, "vocabulary", -1,
                           plumb__format("%lld ids", (long long)vocab).s, "1..%lld",
                           (long long)PLUMB_MOST_TOKENS);
    bool tokenizer = plumb__model_file_exists(model, tokenizer_file);
    char *path = plumb__model_file_name(model, tokenizer ? tokenizer_file : map_file);
    plumb_status status;
    if (!path)
        status = plumb__fail_memory(err, model, strlen(model));
    else if (tokenizer)
        status = from_tokenizer(model, path, vocab, folded, image_id, map, err);
    else if (plumb__model_file_exists(model, map_file))
        status = from_file(model, path, vocab, folded, map, err);
    else
        status = plumb__fail(err, PLUMB_ERROR_IO, path, "open", -1, "no such file",
                             "a readable file, or tokenizer.json beside it");
    free(path);
    return status;
}
