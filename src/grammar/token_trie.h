/* The bytes of a vocabulary as a tree, so that tokens that begin alike are refused together. */
#ifndef PLUMB_GRAMMAR_TOKEN_TRIE_H
#define PLUMB_GRAMMAR_TOKEN_TRIE_H

#include "grammar/automaton.h"
#include "grammar/grammar.h"

/* Tokens that are whole characters of an alphabet and nothing that could begin what follows a string, which
 * are nearly all: inside a string they are known beforehand. */
typedef struct plumb__plain_tokens {
    uint32_t *mask;
    uint8_t *others;    /* of each node: whether a token of its subtree is not plain */
    int32_t *by_length; /* n tokens, those of most characters first */
    int64_t n;
    uint8_t *characters; /* of each token */
} plumb__plain_tokens;

/* Nodes are in the order of a depth-first walk: the children of a node follow it, its subtree ends before
 * node `end`.  The root is not among them. */
struct plumb_token_trie {
    const plumb_text *text;
    int64_t n_tokens, n_words; /* vocabulary; words of a mask */
    int32_t eos, control;      /* -1: none */
    int32_t longest;           /* token, in bytes */
    int64_t n_nodes;
    uint8_t *byte;
    uint8_t *depth;       /* 1 for the first byte */
    uint32_t *end;
    uint32_t *first;      /* the node's tokens are sorted[first[i], first[i + 1]) */
    int32_t *sorted;      /* tokens by their bytes */
    uint32_t *text_tokens; /* a bit for each token that is text, not control or added */
    plumb__plain_tokens plain[PLUMB__ALPHABETS];
};

static inline bool plumb__token_is_text(const plumb_token_trie *trie, int32_t token) {
    return trie->text_tokens[token / 32] >> token % 32 & 1;
}

#endif
