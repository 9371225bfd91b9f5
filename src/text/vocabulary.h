/* The tokens of a vocabulary as bytes, and the way back from bytes to ids. */
#ifndef PLUMB_TEXT_VOCABULARY_H
#define PLUMB_TEXT_VOCABULARY_H

#include "text/tokenizer_json.h"

/* Ids fit 24 bits, so that (node, byte) of the prefix tree fits 32 (bpe.h). */
#define PLUMB_MOST_TOKENS (INT64_C(1) << 22)

enum {
    PLUMB_TOKEN_ADDED = 1,   /* cut out of text before anything else */
    PLUMB_TOKEN_MERGED = 2,  /* belongs to the BPE model: a byte, or made by a merge */
    PLUMB_TOKEN_CONTROL = 4, /* not shown to people */
    PLUMB_TOKEN_STOP = 8     /* ends a turn */
};

typedef struct plumb__vocabulary {
    int64_t size;         /* ids are 0..size-1, without holes */
    char *bytes;          /* of all tokens, in order of id */
    uint32_t *start;      /* (size + 1) offsets into bytes */
    unsigned char *flags; /* (size) */
    uint64_t *slots;      /* bytes -> id, of MERGED tokens: hash tag << 32 | id + 1; 0 is free */
    uint64_t slot_mask;
} plumb__vocabulary;

PLUMB_MUST_CHECK plumb_status plumb__vocabulary_build(plumb__vocabulary *v,
                                                      const plumb__tokenizer_json *file,
                                                      plumb_error *err);
void plumb__vocabulary_free(plumb__vocabulary *v);

static inline plumb__slice plumb__token(const plumb__vocabulary *v, int64_t id) {
    return (plumb__slice){v->bytes + v->start[id], v->start[id + 1] - v->start[id]};
}
/* Id of the MERGED token with these bytes, or -1. */
int32_t plumb__vocabulary_find(const plumb__vocabulary *v, const char *bytes, size_t size);

/* A byte-level vocabulary spells every byte as one printable stand-in character.
 * From spelling to bytes: returns their number, or SIZE_MAX if a character stands for no byte;
 * `bytes` has room for spelling.size. */
size_t plumb__unspell(plumb__slice spelling, char *bytes);
/* From bytes to spelling; `to` has room for 2 * size.  Returns the bytes written. */
size_t plumb__spell(plumb__slice bytes, char *to);

#endif
