/* Byte-pair encoding by its definition: symbols in a doubly linked list, possible merges in a heap
 * ordered by (rank, place).  Every merge removes one symbol and adds at most two possibilities, so
 * a piece of n bytes costs O(n log n) whatever it holds. */
#include "text/bpe.h"

#include "base/alloc.h"
#include "base/error.h"

typedef struct symbol {
    int32_t id;             /* -1 once it has become part of its left neighbour */
    int64_t before, behind; /* indices; -1 at the ends */
} symbol;

/* A merge that was possible when it was entered: of symbol `at` and the one behind it. */
typedef struct candidate {
    int32_t rank, left, right, result;
    int64_t at;
} candidate;

typedef struct merging {
    const plumb__bpe *bpe;
    symbol *symbols;
    candidate *heap;
    int64_t n_heap;
    int64_t steps;
} merging;

static bool comes_first(const candidate *a, const candidate *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(merging *m, candidate c) {
    int64_t i = m->n_heap++;
    for (; i > 0 && comes_first(&c, &m->heap[(i - 1) / 2]); i = (i - 1) / 2, m->steps++)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = c;
}

static candidate heap_pop(merging *m) {
    candidate top = m->heap[0], last = m->heap[--m->n_heap];
    int64_t i = 0;
    for (int64_t child = 1; child < m->n_heap; child = 2 * i + 1, m->steps++) {
        if (child + 1 < m->n_heap && comes_first(&m->heap[child + 1], &m->heap[child])) child++;
        if (!comes_first(&m->heap[child], &last)) break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = last;
    return top;
}

/* Enters the merge of symbol `at` and the one behind it, if there is one. */
static void consider(merging *m, int64_t at) {
    if (at < 0 || m->symbols[at].behind < 0) return;
    int32_t left = m->symbols[at].id, right = m->symbols[m->symbols[at].behind].id;
    const plumb__pair_slot *pair = plumb__bpe_pair(m->bpe, left, right);
    m->steps++;
    if (pair) heap_push(m, (candidate){pair->rank, left, right, pair->result, at});
}

static void merge_all(merging *m) {
    while (m->n_heap > 0) {
        candidate c = heap_pop(m);
        symbol *left = &m->symbols[c.at];
        /* One of the two may have merged otherwise since. */
        if (left->id != c.left || left->behind < 0 || m->symbols[left->behind].id != c.right)
            continue;
        symbol *right = &m->symbols[left->behind];
        left->id = c.result;
        left->behind = right->behind;
        right->id = -1;
        if (left->behind >= 0) m->symbols[left->behind].before = c.at;
        consider(m, left->before);
        consider(m, c.at);
    }
}

plumb_status plumb__bpe_merge(const plumb__bpe *bpe, const char *piece, size_t size,
                              plumb__bpe_scratch *scratch, plumb_tokens *tokens, plumb_error *err) {
    if (size == 0) return PLUMB_OK;
    if (size > INT64_MAX / 4) return plumb__fail_memory(err, "encoding", size);
    int64_t n = (int64_t)size;
    /* n - 1 pairs at first, and two more for each of at most n - 1 merges */
    void *symbols = plumb__grow(scratch->symbols, &scratch->symbols_capacity, n, sizeof(symbol));
    if (symbols) scratch->symbols = symbols;
    void *heap = plumb__grow(scratch->heap, &scratch->heap_capacity, 3 * n, sizeof(candidate));
    if (heap) scratch->heap = heap;
    if (!symbols || !heap) return plumb__fail_memory(err, "encoding", size * sizeof(symbol));
    plumb_status status = plumb__tokens_reserve(tokens, n, err);
    if (status != PLUMB_OK) return status;

    merging m = {.bpe = bpe, .symbols = symbols, .heap = heap};
    for (int64_t i = 0; i < n; i++)
        m.symbols[i] =
            (symbol){bpe->byte_id[(unsigned char)piece[i]], i - 1, i + 1 < n ? i + 1 : -1};
    for (int64_t i = 0; i < n; i++) consider(&m, i);
    merge_all(&m);
    for (int64_t i = 0; i >= 0; i = m.symbols[i].behind)
        tokens->ids[tokens->count++] = m.symbols[i].id;
    scratch->steps += m.steps;
    return PLUMB_OK;
}
