/* Masks by walking the tree of the vocabulary and the automaton together.
 *
 * Where a reading stands in its rule decides most tokens; who called the rule decides only what follows its
 * end.  So a mask has two parts.  The local one is found by walking with an empty stack, and kept by the place
 * in the rule; a walk that comes to the rule's end notes the node of the tree.  From there on it continues with
 * the frame of the caller, which are few and small subtrees: those behind a quotation mark, say.
 *
 * Inside a string nearly all tokens are allowed, and known when the tree is built; only the others are walked. */
#include "grammar/mask.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { MOST_DEPTH = 256 };

static void set_bit(uint32_t *mask, int32_t token) { mask[token / 32] |= UINT32_C(1) << token % 32; }

bool plumb__masks_open(plumb__masks *masks, const plumb_token_trie *trie, plumb__machine *machine) {
    *masks = (plumb__masks){.trie = trie, .machine = machine};
    masks->arena = calloc(MOST_DEPTH * PLUMB__MOST_READINGS, sizeof *masks->arena);
    return masks->arena != NULL;
}

static void free_entries(plumb__mask_entry *entries) {
    for (int i = 0; i < PLUMB__MASKS_KEPT; i++) {
        free(entries[i].mask);
        free(entries[i].exits);
    }
}

void plumb__masks_close(plumb__masks *masks) {
    free_entries(masks->local);
    free_entries(masks->whole);
    free(masks->arena);
}

void plumb__masks_forget_whole(plumb__masks *masks) {
    for (int i = 0; i < PLUMB__MASKS_KEPT; i++) masks->whole[i].used = 0;
}

/* The entry of a key, or the one that was not used for longest, to be filled; *found tells which.  NULL: no
 * memory. */
static plumb__mask_entry *entry_of(plumb__masks *masks, plumb__mask_entry *entries, const plumb__reading *key,
                                   int32_t depth, bool *found) {
    plumb__mask_entry *oldest = entries;
    *found = true;
    for (int i = 0; i < PLUMB__MASKS_KEPT; i++) {
        plumb__mask_entry *e = &entries[i];
        if (e->used > 0 && e->key.node == key->node && e->key.value == key->value && e->key.phase == key->phase &&
            e->key.count == key->count && e->key.frame == key->frame && e->depth == depth) {
            e->used = ++masks->clock;
            return e;
        }
        if (e->used < oldest->used) oldest = e;
    }
    *found = false;
    if (!oldest->mask) oldest->mask = calloc((size_t)masks->trie->n_words, sizeof *oldest->mask);
    if (!oldest->mask) return NULL;
    oldest->key = *key;
    oldest->depth = depth;
    oldest->used = 0; /* until it is filled */
    oldest->n_exits = 0;
    return oldest;
}

typedef struct walk {
    uint32_t begin, end;       /* nodes of the tree */
    int base;                  /* depth of the node whose subtree they are; 0: the root */
    int count;                 /* readings there, the first of the arena */
    const uint8_t *worthwhile; /* NULL: every node */
    uint32_t *mask;
    plumb__mask_entry *exits;  /* where to note them; NULL: there can be none */
} walk;

static bool note_exit(plumb__masks *masks, plumb__mask_entry *entry, uint32_t node) {
    uint32_t *grown = plumb__grow(entry->exits, &entry->exits_capacity, entry->n_exits + 1, sizeof *grown);
    if (!grown) {
        masks->machine->out_of_memory = true;
        return false;
    }
    entry->exits = grown;
    grown[entry->n_exits++] = node;
    return true;
}

static void walk_tree(plumb__masks *masks, const walk *w) {
    const plumb_token_trie *trie = masks->trie;
    int counts[MOST_DEPTH];
    counts[0] = w->count;
    uint32_t node = w->begin;
    while (node < w->end) {
        int level = trie->depth[node] - w->base;
        plumb__readings to = {masks->arena + (size_t)level * PLUMB__MOST_READINGS, 0, PLUMB__MOST_READINGS};
        if (!w->worthwhile || w->worthwhile[node])
            plumb__advance(masks->machine, to.items - PLUMB__MOST_READINGS, counts[level - 1], trie->byte[node], &to);
        if (to.count == 0) {
            node = trie->end[node];
            continue;
        }
        for (uint32_t i = trie->first[node]; i < trie->first[node + 1]; i++) set_bit(w->mask, trie->sorted[i]);
        if (w->exits && plumb__has_node(&to, PLUMB__NODE_LEFT) && !note_exit(masks, w->exits, node)) return;
        counts[level] = to.count;
        node++;
    }
}

/* ---- The local part ---- */

/* The plain tokens that may follow between two characters of a string; NULL: this is no such place. */
static const plumb__plain_tokens *plain_of(const plumb__masks *masks, const plumb__node *node,
                                           const plumb__reading *r) {
    if (node->kind == PLUMB__NODE_TEXT && r->phase == PLUMB__TEXT_BETWEEN) return &masks->trie->plain[node->alphabet];
    /* Whatever the list, it is asked at the closing quotation mark only. */
    if (node->kind == PLUMB__NODE_OTHER_KEY && r->phase == 1 + PLUMB__TEXT_BETWEEN)
        return &masks->trie->plain[PLUMB__ALPHABET_JSON];
    return NULL;
}

static void set_plain(const plumb__masks *masks, const plumb__plain_tokens *plain, const plumb__node *node,
                      const plumb__reading *r, uint32_t *mask) {
    memcpy(mask, plain->mask, (size_t)masks->trie->n_words * sizeof *mask);
    if (node->kind != PLUMB__NODE_TEXT || node->most == PLUMB__NO_LIMIT) return;
    int64_t room = node->most - r->value;
    for (int64_t i = 0; i < plain->n && plain->characters[plain->by_length[i]] > room; i++)
        mask[plain->by_length[i] / 32] &= ~(UINT32_C(1) << plain->by_length[i] % 32);
}

/* Counts of characters that no token can bring to the minimum or maximum are as good as each other. */
static int64_t same_count(const plumb__masks *masks, const plumb__node *node, int64_t count) {
    int64_t longest = masks->trie->longest;
    if (count + longest < node->least) return 0;
    if (count >= node->least && (node->most == PLUMB__NO_LIMIT || count + longest <= node->most)) return node->least;
    return count;
}

static const plumb__mask_entry *local_mask(plumb__masks *masks, const plumb__reading *reading) {
    const plumb__node *node = plumb__node_at(masks->machine->grammar, reading->node);
    int32_t depth = node->calls ? masks->machine->frames[reading->frame].depth : 0;
    plumb__reading key = *reading;
    key.frame = 0;
    if (node->kind == PLUMB__NODE_TEXT) key.value = same_count(masks, node, key.value);
    bool found;
    plumb__mask_entry *entry = entry_of(masks, masks->local, &key, depth, &found);
    if (!entry || found) return entry;
    masks->arena[0] = key;
    masks->arena[0].frame = plumb__frame_push(masks->machine, PLUMB__NODE_LEFT, 0, -1, depth);
    if (masks->arena[0].frame < 0) return NULL;
    const plumb__plain_tokens *plain = plain_of(masks, node, &key);
    if (plain) set_plain(masks, plain, node, &key, entry->mask);
    else memset(entry->mask, 0, (size_t)masks->trie->n_words * sizeof *entry->mask);
    walk_tree(masks, &(walk){.end = (uint32_t)masks->trie->n_nodes, .count = 1, .mask = entry->mask, .exits = entry,
                             .worthwhile = plain ? plain->others : NULL});
    if (masks->machine->out_of_memory) return NULL;
    entry->used = ++masks->clock;
    return entry;
}

/* ---- The whole ---- */

const uint32_t *plumb__mask_of(plumb__masks *masks, const plumb__reading *reading) {
    plumb__machine *m = masks->machine;
    bool found;
    plumb__mask_entry *entry = entry_of(masks, masks->whole, reading, 0, &found);
    if (!entry || found) return entry ? entry->mask : NULL;
    const plumb__mask_entry *local = local_mask(masks, reading);
    if (!local) return NULL;
    memcpy(entry->mask, local->mask, (size_t)masks->trie->n_words * sizeof *entry->mask);
    plumb__frame caller = m->frames[reading->frame];
    plumb__readings after = {masks->arena, 0, PLUMB__MOST_READINGS};
    if (local->n_exits > 0 && caller.parent >= 0) {
        plumb__begin_step(m);
        plumb__enter(m, (plumb__reading){.node = caller.node, .count = caller.count, .frame = caller.parent}, &after);
    }
    for (int64_t i = 0; after.count > 0 && i < local->n_exits; i++) {
        uint32_t exit = local->exits[i];
        walk_tree(masks, &(walk){.begin = exit + 1, .end = masks->trie->end[exit], .base = masks->trie->depth[exit],
                                 .count = after.count, .mask = entry->mask});
    }
    if (m->out_of_memory) return NULL;
    entry->used = ++masks->clock;
    return entry->mask;
}
