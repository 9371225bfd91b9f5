/* Byte-pair encoding of one piece of text (spec: tokenizer-and-chat.md section 2, step 3).
 *
 * The definition: start from single bytes; again and again merge the adjacent pair of lowest rank,
 * leftmost first among equals, until no pair merges.  bpe_merge.c does just that.
 *
 * What runs is bpe.c, which finds the same tokens without merging.  It rests on this fact, for
 * vocabularies in which every merge that makes a part ranks before every merge that uses it (which
 * holds for every trained one and is checked at load; otherwise the definition runs):
 *
 *   A sequence of tokens is the encoding of its bytes if and only if each token encodes to itself,
 *   and each two neighbours, encoded together, stay apart.
 *
 * For merges then happen in order of rank over the whole piece.  Take the first one that would
 * reach across a boundary of the sequence: up to then each token has developed as it does alone, so
 * the same merge would have happened with its two neighbours alone.  The encoding is unique, so any
 * search that ends with such a sequence has found it. */
#ifndef PLUMB_TEXT_BPE_H
#define PLUMB_TEXT_BPE_H

#include "text/vocabulary.h"

typedef struct plumb__pair_slot {
    uint64_t key; /* left << 32 | right, plus 1; 0 is free */
    int32_t rank, result;
} plumb__pair_slot;

/* An edge of the prefix tree.  A node that ends a token has the token's id as its number; the other
 * nodes are numbered from the vocabulary's size on. */
typedef struct plumb__edge_slot {
    uint32_t key; /* node << 8 | byte, plus 1; 0 is free */
    uint32_t target;
} plumb__edge_slot;

/* How a token comes about; for a token that does not encode to itself, `born` is PLUMB_NEVER. */
typedef struct plumb__derivation {
    int32_t left, right; /* parts; -1 for a single byte */
    int32_t born;        /* rank of its merge; -1 for a single byte */
    int32_t shorter;     /* the longest token that is a proper prefix of this one, or -1 */
} plumb__derivation;

/* One bit for each of 2^21 hashes of pairs: pairs that merge have theirs set, 15 of 16 others do
 * not.  Its 256 KB stay in the second-level cache, where the table of pairs does not. */
#define PLUMB_PAIR_FILTER_BITS 21

#define PLUMB_NEVER INT32_MAX

typedef struct plumb__bpe {
    const plumb__vocabulary *vocabulary; /* borrowed */
    int32_t byte_id[256];
    plumb__pair_slot *pairs;
    uint64_t pair_mask;
    uint64_t *pair_filter;
    bool ordered;                   /* parts rank before their uses: the search of bpe.c may run */
    plumb__derivation *derivations; /* (vocabulary size) */
    plumb__edge_slot *edges;
    uint64_t edge_mask;
    int64_t n_nodes;
} plumb__bpe;

/* Per call; start from {0}, free with plumb__bpe_scratch_free. */
typedef struct plumb__bpe_scratch {
    void *symbols, *heap; /* bpe_merge.c's */
    int64_t symbols_capacity, heap_capacity;
    int64_t steps; /* counted work, for tests of its growth */
} plumb__bpe_scratch;
void plumb__bpe_scratch_free(plumb__bpe_scratch *scratch);

PLUMB_MUST_CHECK plumb_status plumb__bpe_build(plumb__bpe *bpe, const plumb__vocabulary *vocabulary,
                                               const plumb__tokenizer_json *file, plumb_error *err);
void plumb__bpe_free(plumb__bpe *bpe);

/* Appends the ids of one piece; any bytes. */
PLUMB_MUST_CHECK plumb_status plumb__bpe_encode(const plumb__bpe *bpe, const char *piece,
                                                size_t size, plumb__bpe_scratch *scratch,
                                                plumb_tokens *tokens, plumb_error *err);
/* The same by the definition, in O(n log n). */
PLUMB_MUST_CHECK plumb_status plumb__bpe_merge(const plumb__bpe *bpe, const char *piece,
                                               size_t size, plumb__bpe_scratch *scratch,
                                               plumb_tokens *tokens, plumb_error *err);

/* Whether left and right, encoded together, do not merge across their boundary at a rank below
 * `limit`.  Needs their derivations, and `ordered`. */
bool plumb__bpe_stay_apart(const plumb__bpe *bpe, int32_t left, int32_t right, int32_t limit);

/* Room for `more` further ids. */
PLUMB_MUST_CHECK plumb_status plumb__tokens_reserve(plumb_tokens *tokens, int64_t more,
                                                    plumb_error *err);

static inline uint64_t plumb__hash_key(uint64_t key) {
    key *= UINT64_C(0x9E3779B97F4A7C15); /* 2^64 / golden ratio */
    return key ^ key >> 32;
}

static inline uint64_t plumb__pair_key(int32_t left, int32_t right) {
    return ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) + 1;
}

/* The merge of two ids, or NULL. */
static inline const plumb__pair_slot *plumb__bpe_pair(const plumb__bpe *bpe, int32_t left,
                                                      int32_t right) {
    uint64_t key = plumb__pair_key(left, right), hash = plumb__hash_key(key);
    uint64_t bit = hash >> (64 - PLUMB_PAIR_FILTER_BITS);
    if (!(bpe->pair_filter[bit / 64] >> (bit % 64) & 1)) return NULL;
    for (uint64_t i = hash & bpe->pair_mask;; i = (i + 1) & bpe->pair_mask) {
        if (bpe->pairs[i].key == key) return &bpe->pairs[i];
        if (bpe->pairs[i].key == 0) return NULL;
    }
}

#endif
