/* The automaton that a grammar is, and how it is put together.
 *
 * Nodes of a recursive transition network.  Those that consume are lexemes: whole strings, numbers or sets of
 * words whose inner state is two numbers (lexeme.h), so that "at most 1,000,000 characters" or "between -5
 * and 10,000" is one node.  Those that consume nothing divide, call and count.  A call goes to a rule and
 * comes back at its end, which is where the stack comes from.
 *
 * `need` of a node is how many calls within calls it takes at least to get to the end from there; a call that
 * would leave less than that below PLUMB__MOST_FRAMES is not made.  So nesting is bounded, and wherever an
 * automaton can come to, it can go on to its end. */
#ifndef PLUMB_GRAMMAR_AUTOMATON_H
#define PLUMB_GRAMMAR_AUTOMATON_H

#include "plumb.h"

#include <stdatomic.h>

enum {
    PLUMB__MOST_FRAMES = 64,   /* calls within calls */
    PLUMB__MOST_READINGS = 64, /* ways to read one text that are followed at once */
    PLUMB__MOST_PASSED = 512,  /* nodes that can be reached without consuming anything */
    PLUMB__NO_LIMIT = INT32_MAX
};

typedef enum plumb__node_kind {
    PLUMB__NODE_FINISHED, /* the whole text is there */
    PLUMB__NODE_LEFT,     /* a search left the rule in which it began (mask.c) */
    PLUMB__NODE_END,      /* of a rule: back to who called */
    PLUMB__NODE_SPLIT,    /* on to any of links[first, first + count) */
    PLUMB__NODE_CALL,     /* `target`, and then `next` */
    PLUMB__NODE_LOOP,     /* after an item: `target`, another of rule `first`, which comes back here, or `next` */
    PLUMB__NODE_CONTROL,  /* the control token of markup */
    /* Lexemes: */
    PLUMB__NODE_BYTES,     /* bytes[first, first + count) */
    PLUMB__NODE_SPACE,     /* nothing, a space or, with line_breaks, a line feed and indentation */
    PLUMB__NODE_TEXT,      /* least..most characters of `alphabet` */
    PLUMB__NODE_NUMBER,    /* ranges[first] */
    PLUMB__NODE_WORDS,     /* one of lists[first] */
    PLUMB__NODE_KEYS,      /* one of lists[first] whose index is in least..most, and on to links[count + index] */
    PLUMB__NODE_OTHER_KEY, /* a string in quotation marks that is none of lists[first] */
    PLUMB__NODE_PATTERN    /* what leads from states[first] to an accepting one */
} plumb__node_kind;

typedef enum plumb__alphabet {
    PLUMB__ALPHABET_JSON, /* between quotation marks: characters and escapes */
    PLUMB__ALPHABET_RAW,  /* of a string parameter of a call: any text without control characters */
    PLUMB__ALPHABETS,
    PLUMB__ALPHABET_KEY = PLUMB__ALPHABETS /* JSON without escapes */
} plumb__alphabet;

typedef struct plumb__node {
    uint8_t kind, alphabet;
    bool line_breaks;
    bool calls; /* a call can be reached without leaving the rule */
    int32_t next, target;
    int32_t first, count;
    int32_t least, most;
    int32_t need;
} plumb__node;

typedef struct plumb__word {
    int32_t offset, size; /* in bytes */
    int32_t index;        /* in the order given; words are sorted */
} plumb__word;

typedef struct plumb__word_list {
    int32_t first, count;
} plumb__word_list;

/* Numbers that may be written, in units of 10^-decimals: [0] without, [1] with a minus sign (magnitudes).
 * least > most: none. */
typedef struct plumb__number_range {
    int64_t least[2], most[2];
    int32_t decimals;
    bool free; /* any number of at most so many digits; decimals > 0: with fraction and exponent */
} plumb__number_range;

typedef struct plumb__pattern_edge {
    uint8_t low, high;
    int32_t target;
} plumb__pattern_edge;

typedef struct plumb__pattern_state {
    int32_t first, count; /* edges, sorted, disjoint */
    bool accepting;
} plumb__pattern_state;

/* A growing array of items of one kind. */
typedef struct plumb__pool {
    void *items;
    int64_t count, capacity;
} plumb__pool;

/* Item `index` of a pool; NULL of one that has none. */
static inline void *plumb__pool_item(const plumb__pool *pool, int64_t index, size_t size) {
    return pool->items ? (char *)pool->items + (size_t)index * size : NULL;
}

struct plumb_grammar {
    atomic_int references;
    bool has_control;
    int32_t start;
    plumb__pool nodes, links, bytes, words, lists, ranges, states, edges;
};
typedef struct plumb_grammar plumb_grammar;

static inline const plumb__node *plumb__node_at(const plumb_grammar *g, int32_t node) {
    return (const plumb__node *)g->nodes.items + node;
}
static inline const int32_t *plumb__links_of(const plumb_grammar *g) { return g->links.items; }
static inline const uint8_t *plumb__bytes_of(const plumb_grammar *g) { return g->bytes.items; }
static inline const plumb__word_list *plumb__list_at(const plumb_grammar *g, int32_t list) {
    return (const plumb__word_list *)g->lists.items + list;
}
static inline const plumb__word *plumb__word_at(const plumb_grammar *g, int64_t word) {
    return (const plumb__word *)g->words.items + word;
}

/* ---- Building: the first failure stays, and what follows it does nothing ---- */

typedef struct plumb__builder {
    plumb_grammar *grammar;
    plumb_status status;
    plumb_error error; /* of the first failure; its field is what `pointer` was then */
    char pointer[192]; /* JSON pointer of what is being compiled */
    int32_t end;       /* the one node PLUMB__NODE_END */
    int32_t any_string, any_value, any_object; /* shared rules of JSON; 0: not made yet */
    void *schemas;     /* of schema.c */
    int64_t work;      /* steps so far: see plumb__builder_work */
} plumb__builder;

bool plumb__builder_open(plumb__builder *b); /* false: no memory */
/* Checks and finishes the grammar that starts with the rule `start`, or frees it and fails. */
PLUMB_MUST_CHECK plumb_status plumb__builder_close(plumb__builder *b, int32_t start, plumb_grammar **grammar,
                                                   plumb_error *err);
/* Notes a failure at the pointer's place, extended by /`key` (may be NULL). */
void plumb__builder_fail(plumb__builder *b, plumb_status status, const char *key, const char *found,
                         const char *expected);

/* Counts steps of what takes longer than its text and its nodes are large.  False: that is more than one grammar
 * may cost, which is a failure of the schema's. */
bool plumb__builder_work(plumb__builder *b, int64_t steps);

/* Nodes; each returns its number, 0 after a failure. */
int32_t plumb__add_node(plumb__builder *b, const plumb__node *node);
int32_t plumb__add_text(plumb__builder *b, const char *bytes, int32_t next); /* a literal */
int32_t plumb__add_bytes(plumb__builder *b, const char *bytes, size_t size, int32_t next);
int32_t plumb__add_split(plumb__builder *b, const int32_t *targets, int32_t count);
int32_t plumb__add_either(plumb__builder *b, int32_t one, int32_t other);
int32_t plumb__add_never(plumb__builder *b); /* what nothing fits */
int32_t plumb__add_call(plumb__builder *b, int32_t rule, int32_t next);
int32_t plumb__add_space(plumb__builder *b, bool line_breaks, int32_t next);
int32_t plumb__add_control(plumb__builder *b, int32_t next);
/* A loop over items of a rule, whose target is not known yet, and the way to tell it. */
int32_t plumb__add_loop(plumb__builder *b, int32_t rule, int32_t least, int32_t most, int32_t next);
void plumb__set_target(plumb__builder *b, int32_t node, int32_t target);
/* A split to one node that is told later: what a rule can be called by while it is made. */
int32_t plumb__add_entry(plumb__builder *b);
void plumb__set_entry(plumb__builder *b, int32_t entry, int32_t target);

/* A list of words, sorted here; `index` of each is its place. */
int32_t plumb__add_list(plumb__builder *b, const char *const *words, const size_t *sizes, int32_t count);
/* Appends to a pool; the number of the first, 0 after a failure. */
int32_t plumb__append(plumb__builder *b, plumb__pool *pool, const void *items, int64_t count, size_t size);

#endif
