/* Reading tokenizer.json.
 *
 * The file is a program in disguise: normalizer, pre-tokenizer, model and decoder are chosen by
 * names in it.  This tokenizer runs one such program (byte-level BPE behind regular expression
 * splits), so every property that could ask for something else is checked here, and an unknown
 * property is an error: it might change what the ids mean. */
#include "text/tokenizer_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/utf8.h"
#include "format/model_files.h"

/* Slices and offsets stay far inside 32 bits; the released file has 6.4 MB. */
#define MOST_FILE_BYTES (INT64_C(1) << 28)

/* ---- Small checks of single values ---- */

static plumb__text192 quote(plumb__slice s) {
    return plumb__format("\"%.*s\"", s.size > 100 ? 100 : (int)s.size, s.bytes);
}

static void expect_string(plumb__json_reader *r, const char *field, const char *expected) {
    plumb__slice found = plumb__json_string(r, field);
    if (r->status == PLUMB_OK && !plumb__slice_is(found, expected))
        plumb__json_refuse(r, field, quote(found).s, expected);
}

static void expect_boolean(plumb__json_reader *r, const char *field, bool expected) {
    bool found = plumb__json_boolean(r, field);
    if (r->status == PLUMB_OK && found != expected)
        plumb__json_refuse(r, field, found ? "true" : "false", expected ? "true" : "false");
}

static void expect_null(plumb__json_reader *r, const char *field) {
    if (plumb__json_null(r) || r->status != PLUMB_OK) return;
    char c = plumb__json_peek(r);
    plumb__json_refuse(r, field, plumb__format("a value that begins with '%c'", c ? c : '?').s,
                       "null");
}

static void refuse_key(plumb__json_reader *r, const char *where, plumb__slice key) {
    plumb__json_refuse(r, where, plumb__format("unknown property %s", quote(key).s).s,
                       "only properties that the tokenizer honours");
}

/* Properties are few: remembering the seen ones in bits finds repeated and missing ones. */
static bool note_property(plumb__json_reader *r, const char *where, plumb__slice key,
                          const char *const *names, unsigned *seen, int *which) {
    for (int i = 0; names[i]; i++) {
        if (!plumb__slice_is(key, names[i])) continue;
        if (*seen & 1u << i) {
            plumb__json_refuse(r, where, plumb__format("property \"%s\" twice", names[i]).s,
                               "once");
            return false;
        }
        *seen |= 1u << i;
        *which = i;
        return true;
    }
    refuse_key(r, where, key);
    return false;
}

static void require_properties(plumb__json_reader *r, const char *where, const char *const *names,
                               unsigned seen, unsigned required) {
    for (int i = 0; names[i]; i++)
        if (required & ~seen & 1u << i)
            plumb__json_refuse(r, where, "nothing", plumb__format("property \"%s\"", names[i]).s);
}

/* ---- normalizer, post-processor, decoder ---- */

/* null, or a Sequence of none. */
static void read_normalizer(plumb__json_reader *r) {
    static const char *const names[] = {"type", "normalizers", NULL};
    unsigned seen = 0;
    int which;
    if (plumb__json_null(r)) return;
    plumb__slice key;
    for (bool first = true; plumb__json_member(r, "normalizer", &first, &key);) {
        if (!note_property(r, "normalizer", key, names, &seen, &which)) return;
        if (which == 0) {
            expect_string(r, "normalizer.type", "Sequence");
        } else {
            bool first_element = true;
            if (plumb__json_element(r, "normalizer.normalizers", &first_element))
                plumb__json_refuse(r, "normalizer.normalizers", "a normalizer", "none");
        }
    }
    require_properties(r, "normalizer", names, seen, 3);
}

/* ByteLevel as post-processor or decoder: its switches concern character offsets and a prefix space
 * that decoding never adds, so they may have any value. */
static void read_byte_level(plumb__json_reader *r, const char *where) {
    static const char *const names[] = {"type", "add_prefix_space", "trim_offsets", "use_regex",
                                        NULL};
    unsigned seen = 0;
    int which;
    plumb__slice key;
    for (bool first = true; plumb__json_member(r, where, &first, &key);) {
        if (!note_property(r, where, key, names, &seen, &which)) return;
        if (which == 0)
            expect_string(r, plumb__format("%s.type", where).s, "ByteLevel");
        else
            (void)plumb__json_boolean(r, plumb__format("%s.%s", where, names[which]).s);
    }
    require_properties(r, where, names, seen, 1);
}

/* ---- pre-tokenizer ---- */

static void read_pattern(plumb__json_reader *r, plumb__slice *pattern) {
    static const char *const names[] = {"Regex", NULL};
    unsigned seen = 0;
    int which;
    plumb__slice key;
    for (bool first = true; plumb__json_member(r, "pre_tokenizer.pattern", &first, &key);) {
        if (!note_property(r, "pre_tokenizer.pattern", key, names, &seen, &which)) return;
        *pattern = plumb__json_string(r, "pre_tokenizer.pattern.Regex");
    }
    require_properties(r, "pre_tokenizer.pattern", names, seen, 1);
}

/* One step of the sequence.  Type comes first, as every writer puts it: it says which properties
 * the step has.  Returns true for a Split (its pattern is added), false for the closing ByteLevel.
 */
static bool read_pre_tokenizer_step(plumb__json_reader *r, plumb__tokenizer_json *file) {
    static const char *const split[] = {"type", "pattern", "behavior", "invert", NULL};
    static const char *const bytes[] = {"type", "add_prefix_space", "trim_offsets", "use_regex",
                                        NULL};
    static const char where[] = "pre_tokenizer.pretokenizers";
    plumb__slice key, type;
    bool first = true;
    if (!plumb__json_member(r, where, &first, &key) || !plumb__slice_is(key, "type")) {
        plumb__json_refuse(r, where, "another property", "\"type\" as the first property");
        return false;
    }
    type = plumb__json_string(r, where);
    bool is_split = plumb__slice_is(type, "Split");
    if (r->status == PLUMB_OK && !is_split && !plumb__slice_is(type, "ByteLevel"))
        plumb__json_refuse(r, where, quote(type).s, "Split or ByteLevel");
    if (is_split && file->n_splits == PLUMB_MAX_SPLITS)
        plumb__json_refuse(r, where, "more splits",
                           plumb__format("at most %d", PLUMB_MAX_SPLITS).s);
    const char *const *names = is_split ? split : bytes;
    unsigned seen = 1;
    int which;
    while (plumb__json_member(r, where, &first, &key)) {
        if (!note_property(r, where, key, names, &seen, &which)) break;
        if (which == 1 && is_split)
            read_pattern(r, &file->splits[file->n_splits]);
        else if (which == 1)
            expect_boolean(r, "pre_tokenizer.add_prefix_space", false);
        else if (which == 2 && is_split)
            expect_string(r, "pre_tokenizer.behavior", "Isolated");
        else if (which == 2)
            (void)plumb__json_boolean(r, "pre_tokenizer.trim_offsets");
        else if (is_split)
            expect_boolean(r, "pre_tokenizer.invert", false);
        else
            expect_boolean(r, "pre_tokenizer.use_regex", false);
    }
    require_properties(r, where, names, seen, is_split ? 0xF : 0xB);
    if (is_split) file->n_splits++;
    return is_split;
}

/* A Sequence of Splits, then ByteLevel. */
static void read_pre_tokenizer(plumb__json_reader *r, plumb__tokenizer_json *file) {
    static const char *const names[] = {"type", "pretokenizers", NULL};
    static const char steps[] = "pre_tokenizer.pretokenizers";
    unsigned seen = 0;
    int which;
    bool closed = false;
    plumb__slice key;
    for (bool first = true; plumb__json_member(r, "pre_tokenizer", &first, &key);) {
        if (!note_property(r, "pre_tokenizer", key, names, &seen, &which)) return;
        if (which == 0) {
            expect_string(r, "pre_tokenizer.type", "Sequence");
            continue;
        }
        for (bool first_step = true; plumb__json_element(r, steps, &first_step);) {
            if (closed)
                plumb__json_refuse(r, steps, "a step after ByteLevel", "ByteLevel as the last");
            closed = !read_pre_tokenizer_step(r, file);
        }
        if (!closed) plumb__json_refuse(r, steps, "no ByteLevel", "ByteLevel as the last");
    }
    require_properties(r, "pre_tokenizer", names, seen, 3);
}

/* ---- added tokens, vocabulary, merges ---- */

static void no_memory(plumb__json_reader *r, size_t bytes) {
    if (r->status == PLUMB_OK) r->status = plumb__fail_memory(r->err, "tokenizer.json", bytes);
}

static void read_added_token(plumb__json_reader *r, plumb__added_entry *entry) {
    static const char *const names[] = {"id",     "content",    "single_word", "lstrip",
                                        "rstrip", "normalized", "special",     NULL};
    unsigned seen = 0;
    int which;
    plumb__slice key;
    for (bool first = true; plumb__json_member(r, "added_tokens", &first, &key);) {
        if (!note_property(r, "added_tokens", key, names, &seen, &which)) return;
        if (which == 0)
            entry->id = plumb__json_integer(r, "added_tokens.id");
        else if (which == 1)
            entry->content = plumb__json_string(r, "added_tokens.content");
        else if (which == 2)
            expect_boolean(r, "added_tokens.single_word", false);
        else if (which == 3)
            expect_boolean(r, "added_tokens.lstrip", false);
        else if (which == 4)
            expect_boolean(r, "added_tokens.rstrip", false);
        else if (which == 5) /* without a normalizer it changes nothing */
            (void)plumb__json_boolean(r, "added_tokens.normalized");
        else /* what decoders of other libraries may skip */
            entry->special = plumb__json_boolean(r, "added_tokens.special");
    }
    require_properties(r, "added_tokens", names, seen, 3);
    bool has_nul = entry->content.size && memchr(entry->content.bytes, 0, entry->content.size);
    if (r->status == PLUMB_OK && (entry->content.size == 0 || has_nul))
        plumb__json_refuse(r, "added_tokens.content", has_nul ? "a NUL character" : "empty text",
                           "text");
}

static void read_added_tokens(plumb__json_reader *r, plumb__tokenizer_json *file) {
    for (bool first = true; plumb__json_element(r, "added_tokens", &first);) {
        void *grown =
            plumb__grow(file->added, &file->added_capacity, file->n_added + 1, sizeof *file->added);
        if (!grown) {
            no_memory(r, sizeof *file->added);
            return;
        }
        file->added = grown;
        file->added[file->n_added] = (plumb__added_entry){{"", 0}, -1, false};
        read_added_token(r, &file->added[file->n_added++]);
    }
}

static void read_vocab(plumb__json_reader *r, plumb__tokenizer_json *file) {
    plumb__slice key;
    for (bool first = true; plumb__json_member(r, "model.vocab", &first, &key);) {
        void *grown =
            plumb__grow(file->vocab, &file->vocab_capacity, file->n_vocab + 1, sizeof *file->vocab);
        if (!grown) {
            no_memory(r, sizeof *file->vocab);
            return;
        }
        file->vocab = grown;
        file->vocab[file->n_vocab++] =
            (plumb__vocab_entry){key, plumb__json_integer(r, "model.vocab")};
    }
}

/* "left right", or ["left", "right"]: writers of different years use one or the other. */
static plumb__merge_entry read_merge(plumb__json_reader *r) {
    plumb__merge_entry merge = {{"", 0}, {"", 0}};
    if (plumb__json_peek(r) == '[') {
        bool first = true;
        int parts = 0;
        for (; plumb__json_element(r, "model.merges", &first); parts++) {
            plumb__slice part = plumb__json_string(r, "model.merges");
            if (parts == 0) merge.left = part;
            if (parts == 1) merge.right = part;
        }
        if (parts != 2)
            plumb__json_refuse(r, "model.merges", "another number of parts", "two parts");
        return merge;
    }
    plumb__slice both = plumb__json_string(r, "model.merges");
    const char *space = both.size ? memchr(both.bytes, ' ', both.size) : NULL;
    if (!space) {
        plumb__json_refuse(r, "model.merges", quote(both).s, "two parts with a space between");
        return merge;
    }
    merge.left = (plumb__slice){both.bytes, (size_t)(space - both.bytes)};
    merge.right = (plumb__slice){space + 1, both.size - merge.left.size - 1};
    return merge;
}

static void read_merges(plumb__json_reader *r, plumb__tokenizer_json *file) {
    for (bool first = true; plumb__json_element(r, "model.merges", &first);) {
        void *grown = plumb__grow(file->merges, &file->merges_capacity, file->n_merges + 1,
                                  sizeof *file->merges);
        if (!grown) {
            no_memory(r, sizeof *file->merges);
            return;
        }
        file->merges = grown;
        file->merges[file->n_merges++] = read_merge(r);
    }
}

static void expect_no_affix(plumb__json_reader *r, const char *field) {
    if (plumb__json_null(r)) return;
    plumb__slice found = plumb__json_string(r, field);
    if (r->status == PLUMB_OK && found.size > 0)
        plumb__json_refuse(r, field, quote(found).s, "null or an empty string");
}

static void read_model(plumb__json_reader *r, plumb__tokenizer_json *file) {
    static const char *const names[] = {"type",
                                        "dropout",
                                        "unk_token",
                                        "continuing_subword_prefix",
                                        "end_of_word_suffix",
                                        "fuse_unk",
                                        "byte_fallback",
                                        "ignore_merges",
                                        "vocab",
                                        "merges",
                                        NULL};
    unsigned seen = 0;
    int which;
    plumb__slice key;
    for (bool first = true; plumb__json_member(r, "model", &first, &key);) {
        if (!note_property(r, "model", key, names, &seen, &which)) return;
        switch (which) {
        case 0: expect_string(r, "model.type", "BPE"); break;
        case 1: expect_null(r, "model.dropout"); break;
        case 2: expect_null(r, "model.unk_token"); break;
        case 3: expect_no_affix(r, "model.continuing_subword_prefix"); break;
        case 4: expect_no_affix(r, "model.end_of_word_suffix"); break;
        case 5: expect_boolean(r, "model.fuse_unk", false); break;
        case 6: expect_boolean(r, "model.byte_fallback", false); break;
        case 7: expect_boolean(r, "model.ignore_merges", false); break;
        case 8: read_vocab(r, file); break;
        default: read_merges(r, file); break;
        }
    }
    require_properties(r, "model", names, seen, 1u << 0 | 1u << 8 | 1u << 9);
}

/* Another kind of file (config.json, an index of shards) shows at its first property; to call that
 * one unknown would not say what is wrong. */
static void expect_tokenizer(plumb__json_reader *r, plumb__slice first_key,
                             const char *const *names) {
    for (int i = 0; names[i]; i++)
        if (plumb__slice_is(first_key, names[i])) return;
    plumb__json_refuse(r, "tokenizer",
                       plumb__format("a file that begins with property %s", quote(first_key).s).s,
                       "a tokenizer.json, or the folder that holds one");
}

static void read_top(plumb__json_reader *r, plumb__tokenizer_json *file) {
    static const char *const names[] = {
        "version",       "truncation",     "padding", "added_tokens", "normalizer",
        "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    unsigned seen = 0;
    int which;
    plumb__slice key;
    for (bool first = true; plumb__json_member(r, "tokenizer", &first, &key);) {
        if (seen == 0) expect_tokenizer(r, key, names);
        if (!note_property(r, "tokenizer", key, names, &seen, &which)) return;
        switch (which) {
        case 0: expect_string(r, "version", "1.0"); break;
        case 1: expect_null(r, "truncation"); break;
        case 2: expect_null(r, "padding"); break;
        case 3: read_added_tokens(r, file); break;
        case 4: read_normalizer(r); break;
        case 5: read_pre_tokenizer(r, file); break;
        case 6:
            if (!plumb__json_null(r)) read_byte_level(r, "post_processor");
            break;
        case 7: read_byte_level(r, "decoder"); break;
        default: read_model(r, file); break;
        }
    }
    /* Without added tokens there would be no end of a turn. */
    require_properties(r, "tokenizer", names, seen, 1u << 3 | 1u << 5 | 1u << 7 | 1u << 8);
}

/* ---- The file ---- */

static plumb_status parse(plumb__tokenizer_json *file, size_t size, plumb_error *err) {
    size_t valid = plumb__utf8_valid_prefix(file->text, size);
    if (valid < size)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, file->path, "text", (int64_t)valid,
                           plumb__format("byte 0x%02x", (unsigned char)file->text[valid]).s,
                           "valid UTF-8");
    plumb__json_reader reader;
    plumb__json_open(&reader, file->text, size, file->path, err);
    read_top(&reader, file);
    plumb__json_end(&reader);
    return reader.status;
}

plumb_status plumb__tokenizer_json_read(plumb__tokenizer_json *file, const char *model,
                                        plumb_error *err) {
    *file = (plumb__tokenizer_json){.path = plumb__model_file_name(model, "tokenizer.json")};
    if (!file->path) return plumb__fail_memory(err, model, strlen(model));
    int64_t size;
    plumb_status status = plumb__model_file_load(model, "tokenizer.json", MOST_FILE_BYTES,
                                                 &file->text, &size, err);
    return status == PLUMB_OK ? parse(file, (size_t)size, err) : status;
}

plumb_status plumb__tokenizer_json_parse(plumb__tokenizer_json *file, const char *name,
                                         const char *bytes, size_t size, plumb_error *err) {
    *file = (plumb__tokenizer_json){.path = strdup(name), .text = malloc(size + 1)};
    if (!file->path || !file->text) return plumb__fail_memory(err, name, size);
    memcpy(file->text, bytes, size);
    return parse(file, size, err);
}

void plumb__tokenizer_json_free(plumb__tokenizer_json *file) {
    free(file->path);
    free(file->text);
    free(file->vocab);
    free(file->added);
    free(file->merges);
    *file = (plumb__tokenizer_json){0};
}
