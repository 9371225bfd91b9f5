/* Lexemes by the byte: dispatch, literals, white space, lists of words, patterns. */
#include "grammar/lexeme.h"

#include "grammar/number_lexeme.h"

enum { MOST_INDENTATION = 64 };

/* ---- Words: those that begin with what was read are a stretch of the sorted list ---- */

enum { STRETCH_BITS = 20, STRETCH_MASK = (1 << STRETCH_BITS) - 1 };

typedef struct stretch {
    int64_t first, end; /* of the grammar's words */
    int64_t size;       /* bytes read */
} stretch;

static stretch stretch_of(const plumb_grammar *g, const plumb__node *node, int64_t value) {
    const plumb__word_list *list = plumb__list_at(g, node->first);
    if (value == 0) return (stretch){list->first, list->first + list->count, 0};
    return (stretch){list->first + (value & STRETCH_MASK), list->first + (value >> STRETCH_BITS & STRETCH_MASK),
                     value >> 2 * STRETCH_BITS};
}

static int64_t value_of(const plumb_grammar *g, const plumb__node *node, const stretch *s) {
    int64_t base = plumb__list_at(g, node->first)->first;
    return (s->first - base) | (s->end - base) << STRETCH_BITS | s->size << 2 * STRETCH_BITS;
}

/* The first word of the stretch whose next byte is at least `byte`; words that have ended come first. */
static int64_t lower_bound(const plumb_grammar *g, const stretch *s, int byte) {
    int64_t low = s->first, high = s->end;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        const plumb__word *word = plumb__word_at(g, middle);
        int next = word->size > s->size ? plumb__bytes_of(g)[word->offset + s->size] : -1;
        if (next < byte) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool words_step(const plumb_grammar *g, stretch *s, uint8_t byte) {
    int64_t first = lower_bound(g, s, byte), end = lower_bound(g, s, byte + 1);
    *s = (stretch){first, end, s->size + 1};
    return first < end;
}

/* The word that has been read whole, or NULL. */
static const plumb__word *whole_word(const plumb_grammar *g, const stretch *s) {
    const plumb__word *word = plumb__word_at(g, s->first);
    return s->first < s->end && s->size > 0 && word->size == s->size ? word : NULL;
}

static bool keys_step(const plumb_grammar *g, const plumb__node *node, plumb__reading *r, uint8_t byte, int32_t room) {
    stretch s = stretch_of(g, node, r->value);
    if (!words_step(g, &s, byte)) return false;
    r->value = value_of(g, node, &s);
    for (int64_t i = s.first; i < s.end; i++) {
        int32_t index = plumb__word_at(g, i)->index;
        if (index < node->least || index > node->most) continue;
        if (plumb__node_at(g, plumb__links_of(g)[node->count + index])->need <= room) return true;
    }
    return false;
}

/* ---- A key that is none of the list; phase: 0 before its quotation mark, else 1 + the state of its text ---- */

enum { OFF_LIST = 1 }; /* in place of a stretch, which is longer */

static bool other_key_step(const plumb_grammar *g, const plumb__node *node, plumb__reading *r, uint8_t byte) {
    bool on_list = r->value != OFF_LIST;
    stretch s = stretch_of(g, node, r->value);
    bool ends = r->phase == 1 + PLUMB__TEXT_BETWEEN && byte == '"';
    if (on_list && !words_step(g, &s, byte)) on_list = false;
    if (ends && on_list && whole_word(g, &s)) return false;
    r->value = on_list ? value_of(g, node, &s) : OFF_LIST;
    if (r->phase == 0) {
        r->phase = 1 + PLUMB__TEXT_BETWEEN;
        return byte == '"';
    }
    uint32_t state = ends ? PLUMB__TEXT_BETWEEN : plumb__text_step(PLUMB__ALPHABET_KEY, r->phase - 1, byte);
    r->phase = ends ? UINT32_MAX : 1 + state;
    return state != PLUMB__TEXT_REFUSED;
}

/* ---- Others ---- */

static bool text_step(const plumb__node *node, plumb__reading *r, uint8_t byte) {
    if (r->phase == PLUMB__TEXT_BETWEEN) {
        if (r->value >= node->most && node->most != PLUMB__NO_LIMIT) return false;
        /* Beyond the minimum, and without a maximum, counting would only tell equal places apart. */
        if (r->value < node->least || node->most != PLUMB__NO_LIMIT) r->value++;
    }
    r->phase = plumb__text_step(node->alphabet, r->phase, byte);
    return r->phase != PLUMB__TEXT_REFUSED;
}

/* `value`: 0, then 1 + the indentation after a line feed, or -1 after a space. */
static bool space_step(const plumb__node *node, plumb__reading *r, uint8_t byte) {
    if (r->value == 0 && byte == ' ') r->value = -1;
    else if (r->value == 0 && byte == '\n' && node->line_breaks) r->value = 1;
    else if (r->value > 0 && r->value <= MOST_INDENTATION && (byte == ' ' || byte == '\t')) r->value++;
    else return false;
    return true;
}

static const plumb__pattern_state *pattern_state(const plumb_grammar *g, const plumb__node *node,
                                                 const plumb__reading *r) {
    return (const plumb__pattern_state *)g->states.items + node->first + r->value;
}

static bool pattern_step(const plumb_grammar *g, const plumb__node *node, plumb__reading *r, uint8_t byte) {
    const plumb__pattern_state *state = pattern_state(g, node, r);
    const plumb__pattern_edge *edges = plumb__pool_item(&g->edges, state->first, sizeof *edges);
    for (int32_t i = 0; i < state->count && edges[i].low <= byte; i++) {
        if (byte > edges[i].high) continue;
        r->value = edges[i].target;
        return true;
    }
    return false;
}

bool plumb__lexeme_step(const plumb_grammar *g, plumb__reading *r, uint8_t byte, int32_t room) {
    const plumb__node *node = plumb__node_at(g, r->node);
    switch ((plumb__node_kind)node->kind) {
    case PLUMB__NODE_BYTES: return plumb__bytes_of(g)[node->first + r->value++] == byte;
    case PLUMB__NODE_SPACE: return space_step(node, r, byte);
    case PLUMB__NODE_TEXT: return text_step(node, r, byte);
    case PLUMB__NODE_NUMBER:
        return plumb__number_step((const plumb__number_range *)g->ranges.items + node->first, r, byte);
    case PLUMB__NODE_WORDS: {
        stretch s = stretch_of(g, node, r->value);
        if (!words_step(g, &s, byte)) return false;
        r->value = value_of(g, node, &s);
        return true;
    }
    case PLUMB__NODE_KEYS: return keys_step(g, node, r, byte, room);
    case PLUMB__NODE_OTHER_KEY: return other_key_step(g, node, r, byte);
    case PLUMB__NODE_PATTERN: return pattern_step(g, node, r, byte);
    default: return false;
    }
}

int32_t plumb__lexeme_end(const plumb_grammar *g, const plumb__reading *r) {
    const plumb__node *node = plumb__node_at(g, r->node);
    const plumb__word *word;
    stretch s;
    bool ends = false;
    switch ((plumb__node_kind)node->kind) {
    case PLUMB__NODE_BYTES: ends = r->value == node->count; break;
    case PLUMB__NODE_SPACE: ends = true; break;
    case PLUMB__NODE_TEXT: ends = r->phase == PLUMB__TEXT_BETWEEN && r->value >= node->least; break;
    case PLUMB__NODE_NUMBER:
        ends = plumb__number_may_end((const plumb__number_range *)g->ranges.items + node->first, r);
        break;
    case PLUMB__NODE_WORDS:
        s = stretch_of(g, node, r->value);
        ends = whole_word(g, &s);
        break;
    case PLUMB__NODE_KEYS:
        s = stretch_of(g, node, r->value);
        word = whole_word(g, &s);
        return word ? plumb__links_of(g)[node->count + word->index] : -1;
    case PLUMB__NODE_OTHER_KEY: ends = r->phase == UINT32_MAX; break;
    case PLUMB__NODE_PATTERN: ends = pattern_state(g, node, r)->accepting; break;
    default: break;
    }
    return ends ? node->next : -1;
}

bool plumb__lexeme_goes_on(const plumb_grammar *g, const plumb__reading *r) {
    const plumb__node *node = plumb__node_at(g, r->node);
    switch ((plumb__node_kind)node->kind) {
    case PLUMB__NODE_BYTES: return r->value < node->count;
    case PLUMB__NODE_SPACE: return r->value >= 0;
    case PLUMB__NODE_TEXT:
        return r->phase != PLUMB__TEXT_BETWEEN || node->most == PLUMB__NO_LIMIT || r->value < node->most;
    case PLUMB__NODE_KEYS: return plumb__lexeme_end(g, r) < 0;
    case PLUMB__NODE_OTHER_KEY: return r->phase != UINT32_MAX;
    case PLUMB__NODE_PATTERN: return pattern_state(g, node, r)->count > 0;
    default: return true;
    }
}
