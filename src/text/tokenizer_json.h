/* What tokenizer.json says, read and checked property by property, but not yet put to use. */
#ifndef PLUMB_TEXT_TOKENIZER_JSON_H
#define PLUMB_TEXT_TOKENIZER_JSON_H

#include "text/json_reader.h"

#define PLUMB_MAX_SPLITS 8

typedef struct plumb__vocab_entry {
    plumb__slice spelling; /* one stand-in character per byte */
    int64_t id;
} plumb__vocab_entry;

typedef struct plumb__added_entry {
    plumb__slice content; /* literal text */
    int64_t id;
    bool special;
} plumb__added_entry;

typedef struct plumb__merge_entry {
    plumb__slice left, right; /* spellings */
} plumb__merge_entry;

/* All slices point into `text`. */
typedef struct plumb__tokenizer_json {
    char *path, *text;
    plumb__vocab_entry *vocab;
    plumb__added_entry *added;
    plumb__merge_entry *merges; /* in order of rank */
    int64_t n_vocab, n_added, n_merges;
    int64_t vocab_capacity, added_capacity, merges_capacity;
    plumb__slice splits[PLUMB_MAX_SPLITS]; /* regular expressions, applied one after the other */
    int n_splits;
} plumb__tokenizer_json;

/* Reads tokenizer.json of a model: a folder, a converted file, or the file itself.  Anything in it
 * that the tokenizer does not honour (a normalizer, dropout, byte fallback, other kinds of
 * pre-tokenizer, ...) is refused.  Spec: tokenizer-and-chat.md sections 1 and 2.  Free with
 * plumb__tokenizer_json_free, also after a failure. */
PLUMB_MUST_CHECK plumb_status plumb__tokenizer_json_read(plumb__tokenizer_json *file,
                                                         const char *model, plumb_error *err);
/* The same of bytes in memory, which are copied; `name` stands for the path in errors. */
PLUMB_MUST_CHECK plumb_status plumb__tokenizer_json_parse(plumb__tokenizer_json *file,
                                                          const char *name, const char *bytes,
                                                          size_t size, plumb_error *err);
void plumb__tokenizer_json_free(plumb__tokenizer_json *file);

#endif
