/* Putting automata together, within limits on their size, and the last checks. */
#include "grammar/automaton.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "grammar/grammar.h"

enum {
    MOST_ITEMS = 1 << 17,     /* of any pool but bytes: a few MB at most */
    MOST_BYTES = 1 << 20,
    MOST_WORK = 20000000,
    NEVER = PLUMB__MOST_FRAMES + 1 /* the `need` of what has no end */
};

bool plumb__builder_open(plumb__builder *b) {
    *b = (plumb__builder){.grammar = calloc(1, sizeof *b->grammar)};
    if (!b->grammar) return false;
    atomic_init(&b->grammar->references, 1);
    (void)plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_FINISHED});
    (void)plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_LEFT});
    b->end = plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_END});
    return true;
}

void plumb__builder_fail(plumb__builder *b, plumb_status status, const char *key, const char *found,
                         const char *expected) {
    if (b->status != PLUMB_OK) return;
    plumb__text192 field = plumb__format("%s%s%s", b->pointer, key ? "/" : "", key ? key : "");
    b->status = plumb__fail(&b->error, status, NULL, field.s, -1, found, "%s", expected);
}

bool plumb__builder_work(plumb__builder *b, int64_t steps) {
    if (b->status != PLUMB_OK) return false;
    if (steps > MOST_WORK - b->work)
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, NULL, "a schema that takes too much work", "a simpler one");
    else b->work += steps;
    return b->status == PLUMB_OK;
}

int32_t plumb__append(plumb__builder *b, plumb__pool *pool, const void *items, int64_t count, size_t size) {
    if (b->status != PLUMB_OK) return 0;
    int64_t first = pool->count;
    if (count > (size == 1 ? MOST_BYTES : MOST_ITEMS) - first) {
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, NULL, "a schema that is too large", "fewer or smaller parts");
        return 0;
    }
    void *grown = plumb__grow(pool->items, &pool->capacity, first + count + 1, size);
    if (!grown) {
        b->status = plumb__fail_memory(&b->error, "a grammar", (size_t)(first + count) * size);
        return 0;
    }
    pool->items = grown;
    if (count > 0) memcpy((char *)grown + (size_t)first * size, items, (size_t)count * size);
    pool->count += count;
    return (int32_t)first;
}

int32_t plumb__add_node(plumb__builder *b, const plumb__node *node) {
    return plumb__append(b, &b->grammar->nodes, node, 1, sizeof *node);
}

int32_t plumb__add_bytes(plumb__builder *b, const char *bytes, size_t size, int32_t next) {
    int32_t first = plumb__append(b, &b->grammar->bytes, bytes, (int64_t)size, 1);
    return plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_BYTES, .first = first, .count = (int32_t)size,
                                             .next = next});
}

int32_t plumb__add_text(plumb__builder *b, const char *bytes, int32_t next) {
    return plumb__add_bytes(b, bytes, strlen(bytes), next);
}

int32_t plumb__add_split(plumb__builder *b, const int32_t *targets, int32_t count) {
    if (count == 1) return targets[0];
    int32_t first = plumb__append(b, &b->grammar->links, targets, count, sizeof *targets);
    return plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_SPLIT, .first = first, .count = count});
}

int32_t plumb__add_either(plumb__builder *b, int32_t one, int32_t other) {
    return plumb__add_split(b, (const int32_t[]){one, other}, 2);
}

int32_t plumb__add_never(plumb__builder *b) {
    return plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_SPLIT, .count = 0});
}

int32_t plumb__add_call(plumb__builder *b, int32_t rule, int32_t next) {
    if (next == b->end) return rule; /* there is nothing to come back for */
    return plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_CALL, .target = rule, .next = next});
}

int32_t plumb__add_space(plumb__builder *b, bool line_breaks, int32_t next) {
    return plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_SPACE, .line_breaks = line_breaks, .next = next});
}

int32_t plumb__add_control(plumb__builder *b, int32_t next) {
    b->grammar->has_control = true;
    return plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_CONTROL, .next = next});
}

int32_t plumb__add_loop(plumb__builder *b, int32_t rule, int32_t least, int32_t most, int32_t next) {
    return plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_LOOP, .first = rule, .least = least, .most = most,
                                             .next = next});
}

void plumb__set_target(plumb__builder *b, int32_t node, int32_t target) {
    if (b->status == PLUMB_OK) ((plumb__node *)b->grammar->nodes.items)[node].target = target;
}

int32_t plumb__add_entry(plumb__builder *b) {
    int32_t nowhere = 0;
    int32_t first = plumb__append(b, &b->grammar->links, &nowhere, 1, sizeof nowhere);
    return plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_SPLIT, .first = first, .count = 1});
}

void plumb__set_entry(plumb__builder *b, int32_t entry, int32_t target) {
    if (b->status != PLUMB_OK) return;
    ((int32_t *)b->grammar->links.items)[plumb__node_at(b->grammar, entry)->first] = target;
}

/* ---- Lists of words ---- */

typedef struct sorted_word {
    const char *bytes;
    size_t size;
    int32_t index;
} sorted_word;

static int compare_words(const void *left, const void *right) {
    const sorted_word *a = left, *b = right;
    size_t shared = a->size < b->size ? a->size : b->size;
    int order = shared ? memcmp(a->bytes, b->bytes, shared) : 0;
    if (order == 0) order = (a->size > b->size) - (a->size < b->size);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static bool same_word(const sorted_word *a, const sorted_word *b) {
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

int32_t plumb__add_list(plumb__builder *b, const char *const *words, const size_t *sizes, int32_t count) {
    if (b->status != PLUMB_OK) return 0;
    sorted_word *sorted = calloc((size_t)count + 1, sizeof *sorted);
    if (!sorted) {
        b->status = plumb__fail_memory(&b->error, "a list of words", (size_t)count * sizeof *sorted);
        return 0;
    }
    for (int32_t i = 0; i < count; i++) sorted[i] = (sorted_word){words[i], sizes[i], i};
    qsort(sorted, (size_t)count, sizeof *sorted, compare_words);
    plumb__word_list list = {.first = (int32_t)b->grammar->words.count};
    for (int32_t i = 0; i < count && b->status == PLUMB_OK; i++) {
        if (i > 0 && same_word(&sorted[i - 1], &sorted[i])) continue;
        plumb__word word = {.size = (int32_t)sorted[i].size, .index = sorted[i].index};
        word.offset = plumb__append(b, &b->grammar->bytes, sorted[i].bytes, (int64_t)sorted[i].size, 1);
        (void)plumb__append(b, &b->grammar->words, &word, 1, sizeof word);
        list.count++;
    }
    free(sorted);
    return plumb__append(b, &b->grammar->lists, &list, 1, sizeof list);
}

/* ---- The last checks ---- */

/* What a node needs by what its successors need, as far as that is known. */
static int32_t need_of(const plumb_grammar *g, const plumb__node *node) {
    const int32_t *links = plumb__links_of(g);
    int32_t least = NEVER;
#define NEED(i) (plumb__node_at(g, i)->need)
    switch ((plumb__node_kind)node->kind) {
    case PLUMB__NODE_FINISHED:
    case PLUMB__NODE_LEFT:
    case PLUMB__NODE_END: return 0;
    case PLUMB__NODE_SPLIT:
        for (int32_t i = 0; i < node->count; i++)
            if (NEED(links[node->first + i]) < least) least = NEED(links[node->first + i]);
        return least;
    case PLUMB__NODE_KEYS:
        for (int32_t i = node->least; i <= node->most; i++)
            if (NEED(links[node->count + i]) < least) least = NEED(links[node->count + i]);
        return least;
    case PLUMB__NODE_CALL:
        least = NEED(node->target) + 1;
        return least > NEED(node->next) ? least : NEED(node->next);
    case PLUMB__NODE_LOOP:
        /* Not that of the target, which comes back here. */
        least = node->least > 0 ? NEED(node->first) + 1 : 0;
        return least > NEED(node->next) ? least : NEED(node->next);
    default: return NEED(node->next);
    }
#undef NEED
}

/* Most chains of nodes were made from one of their ends, so passes in both directions settle them quickly; each
 * way back, by a call or a loop, may take one more. */
static void settle_needs(plumb_grammar *g) {
    plumb__node *nodes = g->nodes.items;
    for (int64_t i = 0; i < g->nodes.count; i++) nodes[i].need = NEVER;
    bool changed = true;
    for (int pass = 0; changed && pass < 4 * NEVER; pass++) {
        changed = false;
        for (int64_t k = 0; k < g->nodes.count; k++) {
            plumb__node *node = &nodes[pass % 2 ? g->nodes.count - 1 - k : k];
            int32_t need = need_of(g, node);
            if (need > NEVER) need = NEVER;
            changed |= need != node->need;
            node->need = need;
        }
    }
}

static bool leads_to_call(const plumb_grammar *g, const plumb__node *node) {
    const int32_t *links = plumb__links_of(g);
    bool calls = node->kind == PLUMB__NODE_CALL || plumb__node_at(g, node->next)->calls;
    if (node->kind == PLUMB__NODE_LOOP) calls |= plumb__node_at(g, node->target)->calls;
    if (node->kind == PLUMB__NODE_KEYS) calls = true; /* its choice depends on needs: as good as a call */
    for (int32_t i = 0; node->kind == PLUMB__NODE_SPLIT && i < node->count; i++)
        calls |= plumb__node_at(g, links[node->first + i])->calls;
    return calls;
}

static void settle_calls(plumb_grammar *g) {
    plumb__node *nodes = g->nodes.items;
    bool changed = true;
    int pass = 0;
    for (; changed && pass < 64; pass++) {
        changed = false;
        for (int64_t i = 0; i < g->nodes.count; i++) {
            if (nodes[i].calls || !leads_to_call(g, &nodes[i])) continue;
            nodes[i].calls = changed = true;
        }
    }
    for (int64_t i = 0; changed && i < g->nodes.count; i++) nodes[i].calls = true; /* the careful answer */
}

/* Follows what can be passed without consuming from `from`; false: too many nodes or too many lexemes, which
 * a text would have to be read by at once.  `seen` has a mark per node, and `mark` is a new one. */
static bool passable(const plumb_grammar *g, int32_t from, int32_t *seen, int32_t mark) {
    int32_t queue[PLUMB__MOST_PASSED];
    int count = 0, lexemes = 0;
    queue[count++] = from;
    seen[from] = mark;
    for (int done = 0; done < count; done++) {
        const plumb__node *node = plumb__node_at(g, queue[done]);
        const int32_t *next = &node->target;
        int32_t n_next = 0;
        if (node->kind == PLUMB__NODE_SPLIT) {
            next = plumb__links_of(g) + node->first;
            n_next = node->count;
        } else if (node->kind == PLUMB__NODE_CALL) {
            n_next = 1;
        } else if (++lexemes > PLUMB__MOST_READINGS) {
            return false;
        }
        for (int32_t i = 0; i < n_next; i++) {
            if (seen[next[i]] == mark) continue;
            if (count == PLUMB__MOST_PASSED) return false;
            seen[next[i]] = mark;
            queue[count++] = next[i];
        }
    }
    return true;
}

static void check_ambiguity(plumb__builder *b) {
    plumb_grammar *g = b->grammar;
    int32_t *seen = calloc((size_t)g->nodes.count, sizeof *seen);
    if (!seen) {
        b->status = plumb__fail_memory(&b->error, "a grammar", (size_t)g->nodes.count * sizeof *seen);
        return;
    }
    for (int32_t i = 0; i < g->nodes.count; i++) {
        const plumb__node *node = plumb__node_at(g, i);
        if ((node->kind != PLUMB__NODE_SPLIT && node->kind != PLUMB__NODE_CALL) || passable(g, i, seen, i + 1))
            continue;
        b->pointer[0] = '\0';
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, NULL, "too many alternatives at one place",
                            "at most 64, and fewer references to references");
        break;
    }
    free(seen);
}

plumb_status plumb__builder_close(plumb__builder *b, int32_t start, plumb_grammar **grammar, plumb_error *err) {
    plumb_grammar *g = b->grammar;
    g->start = start;
    if (b->status == PLUMB_OK) {
        settle_needs(g);
        settle_calls(g);
        b->pointer[0] = '\0';
        if (plumb__node_at(g, start)->need >= PLUMB__MOST_FRAMES)
            plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, NULL, "a schema whose values are too deep, or endless",
                                "one that has values of a few dozen levels");
        check_ambiguity(b);
    }
    if (b->status == PLUMB_OK) {
        *grammar = g;
        return PLUMB_OK;
    }
    if (err) *err = b->error;
    plumb__grammar_release(g);
    return b->status;
}
