/* Token sequences by their beginnings.
 *
 * A store holds hundreds of sequences and needs to know of each how much of it a prompt begins
 * with. Keeping all tokens would cost four bytes for each.  A chain has one hash per block of
 * tokens, of everything up to that block's end: two chains agree exactly as far as the sequences
 * do, in whole blocks, and where they part is found by bisection. */
#ifndef PLUMB_STORE_PREFIX_H
#define PLUMB_STORE_PREFIX_H

#include "plumb.h"

enum {
    PLUMB_PREFIX_BLOCK = 32, /* tokens */
    PLUMB_PREFIX_NAME_SIZE = 64
};

typedef struct plumb_prefix_chain {
    uint64_t *hash; /* [blocks] */
    int64_t blocks; /* whole ones */
} plumb_prefix_chain;

PLUMB_MUST_CHECK plumb_status plumb__prefix_chain(const int32_t *tokens, int64_t length,
                                                  plumb_prefix_chain *chain, plumb_error *err);
void plumb__prefix_chain_free(plumb_prefix_chain *chain);
/* Tokens that both begin with, rounded down to whole blocks. */
int64_t plumb__prefix_shared(const plumb_prefix_chain *a, const plumb_prefix_chain *b);
/* The same of two sequences, to the token. */
int64_t plumb__prefix_common(const int32_t *a, int64_t a_length, const int32_t *b,
                             int64_t b_length);

/* What a snapshot is of: the same tokens under the same rules. */
typedef struct plumb_prefix_id {
    int64_t length;
    uint64_t high, low; /* XXH3-128 of model, arithmetic revision and tokens */
} plumb_prefix_id;

plumb_prefix_id plumb__prefix_id(const uint8_t model[16], uint32_t arithmetic_revision,
                                 const int32_t *tokens, int64_t length);
bool plumb__prefix_id_equal(plumb_prefix_id a, plumb_prefix_id b);
/* "000055572-<32 hexadecimal digits>.plumb-session", and back: false for any other name. */
void plumb__prefix_name(plumb_prefix_id id, char name[PLUMB_PREFIX_NAME_SIZE]);
bool plumb__prefix_parse(const char *name, plumb_prefix_id *id);

#endif
