/* Which tokens may follow one reading, kept for the next time. */
#ifndef PLUMB_GRAMMAR_MASK_H
#define PLUMB_GRAMMAR_MASK_H

#include "grammar/machine.h"
#include "grammar/token_trie.h"

enum { PLUMB__MASKS_KEPT = 64 };

/* Tokens that a reading allows within its rule, and the nodes of the tree at which the rule can be left. */
typedef struct plumb__mask_entry {
    plumb__reading key;
    int32_t depth;   /* of the rule's frame, where that matters, else 0 */
    int64_t used;    /* the later the larger; 0: free */
    uint32_t *mask;
    uint32_t *exits; /* n_exits of them */
    int64_t n_exits, exits_capacity;
} plumb__mask_entry;

typedef struct plumb__masks {
    const plumb_token_trie *trie;
    plumb__machine *machine;
    plumb__mask_entry local[PLUMB__MASKS_KEPT]; /* by the place in the rule alone */
    plumb__mask_entry whole[PLUMB__MASKS_KEPT]; /* by the whole reading; no exits */
    int64_t clock;
    plumb__reading *arena; /* of a walk: the readings at each node from the root */
} plumb__masks;

bool plumb__masks_open(plumb__masks *masks, const plumb_token_trie *trie, plumb__machine *machine);
void plumb__masks_close(plumb__masks *masks);
/* Forgets those that depend on frames, whose numbers change. */
void plumb__masks_forget_whole(plumb__masks *masks);
/* Bits of the tokens of text that may follow; NULL: no memory.  Valid until the next call. */
const uint32_t *plumb__mask_of(plumb__masks *masks, const plumb__reading *reading);

#endif
