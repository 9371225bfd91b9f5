/* The bookkeeping of the expert cache, as scripts: a string of steps, and the keys that must have
 * given way.  Steps are
 *
 *     a..z   use key 0..25 by one row: find it, or claim a slot for it
 *     A..Z   the same by ten rows
 *     +x -x  pin, unpin the slot of key x
 *     !x     drop key x
 *     ~x     key x is only passing
 *     <      retire a slot        >N  grow to N slots
 *
 * `evicted` lists what claims displaced, `.` for an empty slot, `?` for a claim that was refused;
 * retiring lists the key that its slot held, or `_`. */
#include "stream/slot_table.h"

#include "t.h"

#include <ctype.h>

enum { KEYS = 26, ROOM = 128 };

typedef struct script {
    plumb_eviction eviction;
    int64_t slots;
    const char *steps, *evicted;
    const char *held; /* at the end, ascending */
} script;

static char name_of(int64_t key) { return (char)('a' + key); }

static void use(plumb_slot_table *t, int64_t key, int64_t rows, char *out, size_t *n) {
    int64_t gone, slot = plumb__slot_find(t, key);
    if (slot < 0) {
        slot = plumb__slot_claim(t, key, &gone);
        out[(*n)++] = slot < 0 ? '?' : gone < 0 ? '.' : name_of(gone);
    }
    if (slot >= 0) plumb__slot_use(t, slot, rows);
}

/* The key whose slot is about to retire is the one that is no longer found afterwards. */
static char retire(plumb_slot_table *t) {
    bool before[KEYS];
    for (int64_t k = 0; k < KEYS; k++) before[k] = plumb__slot_find(t, k) >= 0;
    if (plumb__slot_retire(t) < 0) return '?';
    for (int64_t k = 0; k < KEYS; k++)
        if (before[k] && plumb__slot_find(t, k) < 0) return name_of(k);
    return '_';
}

static void check_table(const plumb_slot_table *t, const char *steps) {
    int64_t used = 0, pinned = 0, live = 0;
    for (int64_t i = 0; i < t->capacity; i++) {
        const plumb_slot *slot = &t->slot[i];
        live += slot->key != PLUMB_SLOT_RETIRED;
        used += slot->key >= 0;
        pinned += slot->pins > 0;
        T_CHECK(slot->key < 0 || t->slot_of[slot->key] == i, "%s: slot %" PRId64, steps, i);
    }
    for (int64_t k = 0; k < t->keys; k++)
        T_CHECK(t->slot_of[k] < 0 || t->slot[t->slot_of[k]].key == k, "%s: key %" PRId64, steps, k);
    T_CHECK(live == t->slots && used == t->used && pinned == t->pinned,
            "%s: %" PRId64 " slots, %" PRId64 " used, %" PRId64 " pinned", steps, live, used, pinned);
}

static void run(const script *s) {
    plumb_slot_table t;
    plumb_error err = {0};
    T_CHECK(plumb__slot_table_open(KEYS, s->slots, s->eviction, &t, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
    char evicted[ROOM] = "", held[KEYS + 1] = "";
    size_t n = 0, n_held = 0;
    for (const char *c = s->steps; *c; c++) {
        if (islower((unsigned char)*c)) use(&t, *c - 'a', 1, evicted, &n);
        else if (isupper((unsigned char)*c)) use(&t, *c - 'A', 10, evicted, &n);
        else if (*c == '<') evicted[n++] = retire(&t);
        else if (*c == '+') plumb__slot_pin(&t, plumb__slot_find(&t, *++c - 'a'));
        else if (*c == '-') plumb__slot_unpin(&t, plumb__slot_find(&t, *++c - 'a'));
        else if (*c == '~') plumb__slot_pass(&t, plumb__slot_find(&t, *++c - 'a'));
        else if (*c == '!') plumb__slot_drop(&t, plumb__slot_find(&t, *++c - 'a'));
        else if (*c == '>') T_CHECK(plumb__slot_table_grow(&t, *++c - '0', &err) == PLUMB_OK, "%s: %s", err.field, err.found);
        check_table(&t, s->steps);
    }
    for (int64_t k = 0; k < KEYS; k++)
        if (plumb__slot_find(&t, k) >= 0) held[n_held++] = name_of(k);
    T_CHECK(!strcmp(evicted, s->evicted), "%s %s: '%s', expected '%s'",
            plumb__eviction_name(s->eviction), s->steps, evicted, s->evicted);
    T_CHECK(!strcmp(held, s->held), "%s %s: holds '%s', expected '%s'",
            plumb__eviction_name(s->eviction), s->steps, held, s->held);
    plumb__slot_table_free(&t);
}

static void run_all(const script *scripts, size_t count) {
    for (size_t i = 0; i < count; i++) run(&scripts[i]);
}
#define RUN_ALL(scripts) run_all(scripts, sizeof scripts / sizeof scripts[0])

static void lru(void) {
    static const script scripts[] = {
        {PLUMB_EVICT_LRU, 3, "abcd", "...a", "bcd"},
        {PLUMB_EVICT_LRU, 3, "abcad", "...b", "acd"},       /* a was used again */
        {PLUMB_EVICT_LRU, 3, "abcbad", "...c", "abd"},
        {PLUMB_EVICT_LRU, 3, "Abcd", "...a", "bcd"},        /* how often does not matter */
        {PLUMB_EVICT_LRU, 2, "abcabc", "..abca", "bc"},     /* a round larger than the cache */
        {PLUMB_EVICT_LRU, 1, "aab", ".a", "b"},
    };
    RUN_ALL(scripts);
}

/* The clock rises by one with each load and each use, so a new key takes two.  Ages are those at the
 * last claim; a key gives way where age / (1 + uses) is largest. */
static void age_over_use(void) {
    static const script scripts[] = {
        /* all used once: oldest first, as LRU */
        {PLUMB_EVICT_AGE_OVER_USE, 3, "abcd", "...a", "bcd"},
        /* a: (6 - 2) / 11, b: (6 - 4) / 2, c: 0: b gives way though a rested longer */
        {PLUMB_EVICT_AGE_OVER_USE, 3, "Abcd", "...b", "acd"},
        /* a: uses 2, last 3, (7 - 3) / 3 = 1.33; b: last 5, (7 - 5) / 2 = 1 */
        {PLUMB_EVICT_AGE_OVER_USE, 3, "aabcd", "...a", "bcd"},
        /* a: uses 3, last 4, (8 - 4) / 4 = 1; b: last 6, 2 / 2 = 1: a tie, the lower slot goes */
        {PLUMB_EVICT_AGE_OVER_USE, 3, "aaabcd", "...a", "bcd"},
        /* a: uses 4, last 5, (9 - 5) / 5 = 0.8; b: 1 */
        {PLUMB_EVICT_AGE_OVER_USE, 3, "aaaabcd", "...b", "acd"},
        /* counts stay when a key gives way: a comes back with 11 uses and outlasts b and c */
        {PLUMB_EVICT_AGE_OVER_USE, 2, "A!abcad", "...bc", "ad"},
    };
    RUN_ALL(scripts);
}

static void ring(void) {
    static const script scripts[] = {
        {PLUMB_EVICT_OLDEST, 3, "abcaaad", "...a", "bcd"}, /* use does not matter, loading does */
        {PLUMB_EVICT_OLDEST, 3, "abcdefg", "...abcd", "efg"},
        {PLUMB_EVICT_OLDEST, 3, "abc+ade", "...bc", "ade"}, /* the ring goes round what is in use */
    };
    RUN_ALL(scripts);
}

static void passing(void) {
    static const script scripts[] = {
        {PLUMB_EVICT_LRU, 3, "abc~cd", "...c", "abd"},       /* though it was used last */
        {PLUMB_EVICT_LRU, 3, "abc~cd~de", "...cd", "abe"},   /* a sweep goes through one slot */
        {PLUMB_EVICT_LRU, 3, "abc~ccd", "...a", "bcd"},      /* used since */
        {PLUMB_EVICT_LRU, 3, "abc~b~cd", "...b", "acd"},     /* two: the older */
        {PLUMB_EVICT_LRU, 3, "abc~c+cd", "...a", "bcd"},     /* pinned */
        {PLUMB_EVICT_LRU, 3, "abc~c!cdef", "....ab", "def"}, /* dropped: the slot is as any other */
        {PLUMB_EVICT_AGE_OVER_USE, 3, "abC~cd", "...c", "abd"},
        {PLUMB_EVICT_OLDEST, 3, "abc~cd", "...a", "bcd"},    /* a ring goes round */
    };
    RUN_ALL(scripts);
    T_CHECK(!plumb__slot_is_sweep(6, 12) && plumb__slot_is_sweep(7, 12), "%s", "more than half");
}

static void pins(void) {
    static const script scripts[] = {
        {PLUMB_EVICT_LRU, 3, "abc+ad", "...b", "acd"},
        {PLUMB_EVICT_LRU, 2, "ab+a+bc", "..?", "ab"},        /* all pinned */
        {PLUMB_EVICT_LRU, 2, "ab+a+bc-bc", "..?b", "ac"},
        {PLUMB_EVICT_LRU, 2, "ab+a+a-ac", "..b", "ac"},      /* pinned twice, unpinned once */
        {PLUMB_EVICT_LRU, 2, "ab+a+a-a-ac", "..a", "bc"},
        {PLUMB_EVICT_AGE_OVER_USE, 2, "ab+a+bc", "..?", "ab"},
        {PLUMB_EVICT_OLDEST, 2, "ab+a+bc", "..?", "ab"},
    };
    RUN_ALL(scripts);
}

static void drop_and_size(void) {
    static const script scripts[] = {
        {PLUMB_EVICT_LRU, 2, "ab!acd", "...b", "cd"},        /* c takes the empty slot */
        {PLUMB_EVICT_LRU, 3, "abc<d", "...ab", "cd"},        /* one slot less */
        {PLUMB_EVICT_LRU, 3, "a<<b", "." "__" "a", "b"},     /* empty slots retire first */
        {PLUMB_EVICT_LRU, 2, "ab+a+b<", "..?", "ab"},        /* pinned ones never */
        {PLUMB_EVICT_LRU, 2, "ab+a<", "..b", "a"},
        {PLUMB_EVICT_LRU, 2, "ab<>2c", "..a.", "bc"},        /* a retired slot comes back */
        {PLUMB_EVICT_LRU, 2, "ab>4cde", "....a", "bcde"},    /* new ones follow */
        {PLUMB_EVICT_LRU, 2, "ab<>3cd", "..a..", "bcd"},     /* one back and one new */
        {PLUMB_EVICT_LRU, 3, "abc>2d", "...a", "bcd"},       /* growing never shrinks */
    };
    RUN_ALL(scripts);
}

static void counts(void) {
    plumb_slot_table t;
    plumb_error err = {0};
    int64_t gone;
    T_CHECK(plumb__slot_table_open(4, 1, PLUMB_EVICT_LRU, &t, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
    plumb__slot_use(&t, plumb__slot_claim(&t, 2, &gone), 7);
    T_CHECK(t.uses[2] == 7, "unexpected");
    plumb__slot_use(&t, plumb__slot_claim(&t, 3, &gone), 1);
    T_CHECK(gone == 2 && t.uses[2] == 7 && t.uses[3] == 1, "a count outlives its slot");
    plumb__slot_use(&t, 0, (int64_t)UINT32_MAX - 1);
    T_CHECK(t.uses[3] == UINT32_MAX, "%u", t.uses[3]);
    plumb__slot_use(&t, 0, 1);
    T_CHECK(t.uses[3] == UINT32_MAX, "counts stop at their end: %u", t.uses[3]);
    plumb__slot_table_free(&t);
}

T_MAIN({"lru", lru}, {"age_over_use", age_over_use}, {"ring", ring}, {"passing", passing}, {"pins", pins},
       {"drop_and_size", drop_and_size}, {"counts", counts})
