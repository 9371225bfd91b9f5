/* From the tree of a pattern to a deterministic automaton over bytes: characters become the bytes that an
 * alphabet writes them with, the automaton of Thompson's construction gets its subsets numbered.  Both are
 * limited in size, and so is the work in between; a pattern that needs more is refused. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/utf8.h"
#include "grammar/pattern.h"
#include "grammar/schema.h"

enum {
    MOST_LOOSE = 200000,     /* states of Thompson's automaton */
    MOST_STRICT = 8192,      /* of the deterministic one */
    MATCHED = -1             /* in place of a state: the end */
};

/* A state of Thompson's automaton: a byte of low..high and on to a, or (low > high) on to a and b at once. */
typedef struct loose_state {
    int32_t a, b;
    uint8_t low, high;
} loose_state;

typedef struct subset {
    int32_t first, count; /* of `members` */
} subset;

typedef struct builder {
    plumb__builder *out;
    const plumb__pattern *pattern;
    plumb__alphabet alphabet;
    plumb__pool states;  /* loose_state */
    plumb__pool members; /* int32_t: loose states that consume, or MATCHED */
    plumb__pool subsets;
    int32_t *slots;      /* hash table of subsets; -1: free */
    int32_t *seen;       /* marks of loose states */
    int32_t *stack;
    int32_t mark;
    const char *fault;
    bool out_of_memory;
} builder;

enum { N_SLOTS = 4 * MOST_STRICT };

static int32_t refuse(builder *b, const char *what) {
    if (!b->fault) b->fault = what;
    return 0;
}

static int32_t append(builder *b, plumb__pool *pool, const void *item, size_t size, int64_t most) {
    if (b->fault) return 0;
    if (pool->count >= most) return refuse(b, "a pattern that is too large");
    if (!plumb__builder_work(b->out, 1)) return refuse(b, "too much work");
    void *grown = plumb__grow(pool->items, &pool->capacity, pool->count + 1, size);
    if (!grown) {
        b->out_of_memory = true;
        return refuse(b, "no memory");
    }
    pool->items = grown;
    memcpy((char *)grown + (size_t)pool->count * size, item, size);
    return (int32_t)pool->count++;
}

static int32_t add_byte(builder *b, uint8_t low, uint8_t high, int32_t next) {
    loose_state state = {.a = next, .low = low, .high = high};
    return append(b, &b->states, &state, sizeof state, MOST_LOOSE);
}

static int32_t add_fork(builder *b, int32_t one, int32_t other) {
    loose_state state = {.a = one, .b = other, .low = 1, .high = 0};
    return append(b, &b->states, &state, sizeof state, MOST_LOOSE);
}

/* ---- Characters as bytes ---- */

enum { NONE = -2 }; /* no state: nothing can be written */

static int32_t either(builder *b, int32_t one, int32_t other) {
    return one == NONE ? other : other == NONE ? one : add_fork(b, one, other);
}

/* low..high, whose writings are equally long and differ from byte `at` on. */
static int32_t add_same_length(builder *b, uint32_t low, uint32_t high, int32_t next) {
    char first[4], last[4];
    size_t n = plumb__utf8_write(first, low);
    (void)plumb__utf8_write(last, high);
    /* Behind bytes that differ there must be all of 80..BF, or the range is cut there. */
    for (size_t tail = 1; tail < n; tail++) {
        uint32_t mask = (UINT32_C(1) << 6 * tail) - 1, cut = 0;
        if ((low & ~mask) == (high & ~mask)) continue;
        if ((low & mask) != 0) cut = (low | mask) + 1;
        else if ((high & mask) != mask) cut = high & ~mask;
        if (cut) return either(b, add_same_length(b, low, cut - 1, next), add_same_length(b, cut, high, next));
    }
    for (size_t i = n; i-- > 0;) next = add_byte(b, (uint8_t)first[i], (uint8_t)last[i], next);
    return next;
}

static int32_t add_utf8(builder *b, uint32_t low, uint32_t high, int32_t next) {
    static const uint32_t ends[] = {0x7F, 0x7FF, 0xD7FF, 0xDFFF, 0xFFFF, 0x10FFFF};
    int32_t all = NONE;
    for (int i = 0; i < 6 && low <= high; i++) {
        if (low > ends[i]) continue;
        uint32_t last = high < ends[i] ? high : ends[i];
        if (ends[i] != 0xDFFF) all = either(b, add_same_length(b, low, last, next), all);
        low = last + 1;
    }
    return all;
}

static int32_t add_escape(builder *b, char letter, int32_t next) {
    return add_byte(b, '\\', '\\', add_byte(b, (uint8_t)letter, (uint8_t)letter, next));
}

/* Characters that are not written as they are; the others of low..high. */
static int32_t add_range(builder *b, uint32_t low, uint32_t high, int32_t next) {
    static const struct {
        uint32_t character;
        char json, raw; /* the letter of an escape; the character itself; 0: it cannot be written */
    } special[] = {{'\b', 'b', 0}, {'\t', 't', '\t'}, {'\n', 'n', '\n'}, {'\f', 'f', 0}, {'\r', 'r', '\r'},
                   {'"', '"', 0}, {'\\', '\\', 0}};
    bool json = b->alphabet == PLUMB__ALPHABET_JSON;
    int32_t all = NONE;
    for (int i = 0; i < 7; i++) {
        uint32_t c = special[i].character;
        if (c < low || c > high) continue;
        if (json) all = either(b, add_escape(b, special[i].json, next), all);
        else if (special[i].raw) all = either(b, add_byte(b, (uint8_t)c, (uint8_t)c, next), all);
    }
    uint32_t from = low < 0x20 ? 0x20 : low;
    for (int i = 5; json && i < 7; i++) {
        uint32_t c = special[i].character;
        if (c < from || c > high) continue;
        if (from < c) all = either(b, add_utf8(b, from, c - 1, next), all);
        from = c + 1;
    }
    return from <= high ? either(b, add_utf8(b, from, high, next), all) : all;
}

static int32_t add_class(builder *b, const plumb__pattern_node *node, int32_t next) {
    const plumb__character_range *ranges = plumb__pool_item(&b->pattern->ranges, node->a, sizeof *ranges);
    int32_t all = NONE;
    for (int32_t i = 0; i < node->b && !b->fault; i++)
        all = either(b, add_range(b, ranges[i].low, ranges[i].high, next), all);
    return all == NONE ? refuse(b, "a class of which no character can be written") : all;
}

/* ---- Thompson's construction, from the end ---- */

static int32_t build(builder *b, int32_t at, int32_t next);

static int32_t build_repeat(builder *b, const plumb__pattern_node *node, int32_t next) {
    int32_t end = next;
    if (node->most < 0) {
        int32_t fork = add_fork(b, 0, next), body = build(b, node->a, fork);
        if (!b->fault) ((loose_state *)b->states.items)[fork].a = body;
        next = fork;
    }
    /* x{0,2} is (x(x)?)?: each may be followed by the next or by what is behind all. */
    for (int32_t i = node->least; i < node->most && !b->fault; i++) next = add_fork(b, build(b, node->a, next), end);
    for (int32_t i = 0; i < node->least && !b->fault; i++) next = build(b, node->a, next);
    return next;
}

/* Sequences and alternatives lean to the left and may be long: they are walked, and only groups recursed into. */
static int32_t build(builder *b, int32_t at, int32_t next) {
    const plumb__pattern_node *nodes = b->pattern->nodes.items;
    int32_t all = NONE, behind = next;
    for (; nodes[at].kind == PLUMB__PATTERN_EITHER && !b->fault; at = nodes[at].a)
        all = either(b, all, build(b, nodes[at].b, behind));
    for (; nodes[at].kind == PLUMB__PATTERN_THEN && !b->fault; at = nodes[at].a) next = build(b, nodes[at].b, next);
    if (b->fault) return 0;
    if (nodes[at].kind == PLUMB__PATTERN_CLASS) next = add_class(b, &nodes[at], next);
    else if (nodes[at].kind == PLUMB__PATTERN_REPEAT) next = build_repeat(b, &nodes[at], next);
    else if (nodes[at].kind != PLUMB__PATTERN_EMPTY) next = build(b, at, next);
    return either(b, all, next);
}

/* ---- Subsets ---- */

static void visit(builder *b, int32_t state, int32_t *n_stack) {
    if (state == MATCHED) state = (int32_t)b->states.count; /* its mark */
    if (b->seen[state] == b->mark) return;
    b->seen[state] = b->mark;
    b->stack[(*n_stack)++] = state;
}

/* Appends to `members` those that can be reached from what is on the stack without consuming. */
static void close_subset(builder *b, int32_t n_stack) {
    const loose_state *states = b->states.items;
    while (n_stack > 0 && !b->fault) {
        int32_t at = b->stack[--n_stack], member = at < b->states.count ? at : MATCHED;
        if (!plumb__builder_work(b->out, 1)) (void)refuse(b, "too much work");
        if (member == MATCHED || states[at].low <= states[at].high) {
            (void)append(b, &b->members, &member, sizeof member, INT32_MAX);
        } else {
            visit(b, states[at].a, &n_stack);
            visit(b, states[at].b, &n_stack);
        }
    }
}

static int compare_members(const void *left, const void *right) {
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

/* The number of the subset whose members are those from `first` on, which go again if it is known. */
static int32_t number_subset(builder *b, int64_t first) {
    if (b->fault) return 0;
    int32_t *members = plumb__pool_item(&b->members, first, sizeof *members);
    const int32_t count = (int32_t)(b->members.count - first);
    if (count > 1) qsort(members, (size_t)count, sizeof *members, compare_members);
    uint64_t hash = (uint64_t)count;
    for (int32_t i = 0; i < count; i++) {
        hash = (hash ^ (uint32_t)members[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    for (uint64_t at = hash % N_SLOTS;; at = (at + 1) % N_SLOTS) {
        if (b->slots[at] < 0) {
            subset made = {(int32_t)first, count};
            b->slots[at] = append(b, &b->subsets, &made, sizeof made, MOST_STRICT);
            return b->slots[at];
        }
        const subset *known = (const subset *)b->subsets.items + b->slots[at];
        if (known->count != count ||
            (count > 0 && memcmp((int32_t *)b->members.items + known->first, members,
                                 (size_t)count * sizeof *members) != 0))
            continue;
        b->members.count = first;
        return b->slots[at];
    }
}

/* The subset that a byte leads to, or -1. */
static int32_t target_of(builder *b, const subset *from, uint8_t byte) {
    const loose_state *states = b->states.items;
    int64_t first = b->members.count;
    int32_t n_stack = 0;
    b->mark++;
    for (int32_t i = 0; i < from->count; i++) {
        int32_t member = ((int32_t *)b->members.items)[from->first + i];
        if (member != MATCHED && states[member].low <= byte && byte <= states[member].high)
            visit(b, states[member].a, &n_stack);
    }
    if (!plumb__builder_work(b->out, from->count)) return refuse(b, "too much work");
    if (n_stack == 0) return -1;
    close_subset(b, n_stack);
    return number_subset(b, first);
}

/* Bytes at which the answer may differ from the byte before. */
static void find_cuts(const builder *b, const subset *from, bool cuts[257]) {
    const loose_state *states = b->states.items;
    memset(cuts, 0, 257 * sizeof *cuts);
    cuts[0] = true;
    for (int32_t i = 0; i < from->count; i++) {
        int32_t member = ((const int32_t *)b->members.items)[from->first + i];
        if (member != MATCHED) cuts[states[member].low] = cuts[states[member].high + 1] = true;
    }
}

static void add_strict_state(builder *b, int32_t number) {
    plumb__builder *out = b->out;
    subset from = ((const subset *)b->subsets.items)[number];
    plumb__pattern_edge edges[256];
    int32_t n = 0, target = -1;
    bool cuts[257];
    find_cuts(b, &from, cuts);
    for (int byte = 0; byte < 256 && !b->fault; byte++) {
        if (cuts[byte]) target = target_of(b, &from, (uint8_t)byte);
        if (target < 0) continue;
        if (n > 0 && edges[n - 1].high == byte - 1 && edges[n - 1].target == target) edges[n - 1].high = (uint8_t)byte;
        else edges[n++] = (plumb__pattern_edge){(uint8_t)byte, (uint8_t)byte, target};
    }
    plumb__pattern_state state = {.count = n};
    /* MATCHED sorts before all others. */
    state.accepting = from.count > 0 && ((const int32_t *)b->members.items)[from.first] == MATCHED;
    state.first = plumb__append(out, &out->grammar->edges, edges, n, sizeof *edges);
    (void)plumb__append(out, &out->grammar->states, &state, 1, sizeof state);
}

static void make_automaton(builder *b) {
    int32_t start = build(b, b->pattern->root, MATCHED), n_stack = 0;
    b->seen = b->fault ? NULL : calloc((size_t)b->states.count + 1, sizeof *b->seen);
    b->stack = b->fault ? NULL : calloc((size_t)b->states.count + 1, sizeof *b->stack);
    b->slots = malloc(N_SLOTS * sizeof *b->slots);
    if (!b->fault && (!b->seen || !b->stack || !b->slots)) {
        b->out_of_memory = true;
        (void)refuse(b, "no memory");
    }
    if (b->fault) return;
    for (int i = 0; i < N_SLOTS; i++) b->slots[i] = -1;
    b->mark = 1;
    visit(b, start, &n_stack);
    close_subset(b, n_stack);
    (void)number_subset(b, 0);
    for (int32_t i = 0; i < b->subsets.count && !b->fault && b->out->status == PLUMB_OK; i++) add_strict_state(b, i);
}

int32_t plumb__add_pattern(plumb__builder *out, const char *keyword, const char *text, plumb__alphabet alphabet,
                           int32_t next) {
    plumb__pattern pattern;
    builder b = {.out = out, .pattern = &pattern, .alphabet = alphabet};
    int32_t first = (int32_t)out->grammar->states.count;
    size_t before = plumb__enter_pointer(out, keyword);
    if (plumb__pattern_parse(text, strlen(text), &pattern)) make_automaton(&b);
    const char *fault = pattern.fault ? pattern.fault : b.fault;
    if (pattern.out_of_memory || b.out_of_memory) {
        if (out->status == PLUMB_OK) out->status = plumb__fail_memory(&out->error, "a pattern", strlen(text));
    } else if (fault) {
        plumb__builder_fail(out, PLUMB_ERROR_UNSUPPORTED, NULL, fault, "the supported subset of patterns");
    }
    plumb__leave_pointer(out, before);
    plumb__pattern_free(&pattern);
    free(b.states.items);
    free(b.members.items);
    free(b.subsets.items);
    free(b.slots);
    free(b.seen);
    free(b.stack);
    return plumb__add_node(out, &(plumb__node){.kind = PLUMB__NODE_PATTERN, .first = first, .next = next});
}
