/* Parsing of regular expressions.  A pattern may match anywhere in a string, as ECMA-262 has it, so an
 * alternative that is not anchored gets any text before or behind it. */
#include "grammar/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

enum { MOST_NODES = 20000, MOST_GROUPS = 50, MOST_REPEATS = 1000, LAST_CHARACTER = 0x10FFFF };

typedef struct parser {
    plumb__pattern *pattern;
    const char *at, *end;
    int groups; /* that are open */
} parser;

static int32_t refuse(parser *p, const char *what) {
    if (!p->pattern->fault) p->pattern->fault = what;
    p->at = p->end;
    return 0;
}

static int32_t append(parser *p, plumb__pool *pool, const void *item, size_t size) {
    if (pool->count >= MOST_NODES) return refuse(p, "a pattern that is too long");
    void *grown = plumb__grow(pool->items, &pool->capacity, pool->count + 1, size);
    if (!grown) {
        p->pattern->out_of_memory = true;
        return refuse(p, "no memory");
    }
    pool->items = grown;
    memcpy((char *)grown + (size_t)pool->count * size, item, size);
    return (int32_t)pool->count++;
}

static int32_t add(parser *p, plumb__pattern_kind kind, int32_t a, int32_t b) {
    plumb__pattern_node node = {.kind = kind, .a = a, .b = b};
    return append(p, &p->pattern->nodes, &node, sizeof node);
}

/* ---- Classes: ranges at the end of the pool, from `first` on ---- */

static void add_range(parser *p, uint32_t low, uint32_t high) {
    plumb__character_range range = {low, high};
    if (low <= high) (void)append(p, &p->pattern->ranges, &range, sizeof range);
    else (void)refuse(p, "a range whose end comes before its begin");
}

static int compare_ranges(const void *left, const void *right) {
    const plumb__character_range *a = left, *b = right;
    return (a->low > b->low) - (a->low < b->low);
}

/* Sorts and joins them, and takes what they leave out if they are negated. */
static void settle_class(parser *p, int32_t first, bool negated) {
    plumb__pool *pool = &p->pattern->ranges;
    if (p->pattern->fault) return;
    plumb__character_range *r = plumb__pool_item(pool, first, sizeof *r);
    int64_t n = pool->count - first, joined = 0;
    if (n > 0) qsort(r, (size_t)n, sizeof *r, compare_ranges);
    for (int64_t i = 0; i < n; i++) {
        if (joined > 0 && r[i].low <= r[joined - 1].high + 1) {
            if (r[i].high > r[joined - 1].high) r[joined - 1].high = r[i].high;
        } else {
            r[joined++] = r[i];
        }
    }
    pool->count = first + joined;
    if (!negated) return;
    uint32_t next = 0;
    for (int64_t i = 0; i < joined; i++) {
        plumb__character_range taken = ((plumb__character_range *)pool->items)[first + i];
        if (next < taken.low) add_range(p, next, taken.low - 1);
        next = taken.high + 1;
    }
    if (next <= LAST_CHARACTER) add_range(p, next, LAST_CHARACTER);
    if (p->pattern->fault) return;
    /* What was added stays, in the place of what it was made from. */
    r = (plumb__character_range *)pool->items + first;
    n = pool->count - first - joined;
    memmove(r, r + joined, (size_t)n * sizeof *r);
    pool->count = first + n;
}

static int32_t close_class(parser *p, int32_t first, bool negated) {
    settle_class(p, first, negated);
    return add(p, PLUMB__PATTERN_CLASS, first, (int32_t)(p->pattern->ranges.count - first));
}

static const plumb__character_range digits[] = {{'0', '9'}}, words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
    spaces[] = {{9, 13},           {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
                {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}},
    line_ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

static void add_ranges(parser *p, const plumb__character_range *ranges, size_t n, bool negated) {
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        if (!negated) add_range(p, ranges[i].low, ranges[i].high);
        else if (next < ranges[i].low) add_range(p, next, ranges[i].low - 1);
        next = ranges[i].high + 1;
    }
    if (negated) add_range(p, next, LAST_CHARACTER);
}

/* \d, \w, \s and their opposites; false: `letter` is none of them. */
static bool add_named(parser *p, char letter) {
    bool negated = letter >= 'A' && letter <= 'Z';
    switch (letter | 0x20) {
    case 'd': add_ranges(p, digits, sizeof digits / sizeof *digits, negated); return true;
    case 'w': add_ranges(p, words, sizeof words / sizeof *words, negated); return true;
    case 's': add_ranges(p, spaces, sizeof spaces / sizeof *spaces, negated); return true;
    default: return false;
    }
}

static uint32_t take_hex(parser *p, int n) {
    uint32_t value = 0;
    for (; n > 0; n--, p->at++) {
        char c = p->at < p->end ? *p->at : '\0';
        if (c >= '0' && c <= '9') value = value * 16 + (uint32_t)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') value = value * 16 + (uint32_t)((c | 0x20) - 'a' + 10);
        else return (uint32_t)refuse(p, "an escape without its hexadecimal digits");
    }
    if (value >= 0xD800 && value <= 0xDFFF) (void)refuse(p, "half a surrogate pair");
    return value;
}

/* The character of an escape; p->at is behind the backslash. */
static uint32_t take_escape(parser *p) {
    if (p->at == p->end) return (uint32_t)refuse(p, "a backslash at the end");
    char c = *p->at++;
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'f': return '\f';
    case 'v': return '\v';
    case 'x': return take_hex(p, 2);
    case 'u': return take_hex(p, 4);
    default: break;
    }
    if (strchr("^$\\.*+?()[]{}|/-", c) && c) return (uint32_t)(unsigned char)c;
    return (uint32_t)refuse(p, "an escape other than of syntax, \\d \\w \\s \\n \\t \\r \\f \\v \\x \\u");
}

static uint32_t take_character(parser *p) {
    size_t length;
    uint32_t character = plumb__utf8_read(p->at, &length);
    p->at += length;
    return character;
}

/* One member of a class; *single is false for \d and its like, whose ranges are added at once. */
static uint32_t take_member(parser *p, bool *single) {
    *single = true;
    if (*p->at != '\\') return take_character(p);
    p->at++;
    if (p->at < p->end && add_named(p, *p->at)) {
        *single = false;
        p->at++;
        return 0;
    }
    if (p->at < p->end && *p->at == 'b') {
        p->at++;
        return '\b';
    }
    return take_escape(p);
}

static int32_t parse_class(parser *p) {
    int32_t first = (int32_t)p->pattern->ranges.count;
    bool negated = p->at < p->end && *p->at == '^', single;
    p->at += negated;
    while (p->at < p->end && *p->at != ']') {
        uint32_t low = take_member(p, &single), high = low;
        if (single && p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
            p->at++;
            high = take_member(p, &single);
            if (!single) (void)refuse(p, "a range that ends in a class");
        }
        if (single && !p->pattern->fault) add_range(p, low, high);
    }
    if (p->at == p->end) return refuse(p, "a class that does not end");
    p->at++;
    return close_class(p, first, negated);
}

/* ---- Expressions ---- */

static int32_t parse_either(parser *p, bool top);

static int32_t parse_group(parser *p) {
    if (p->at < p->end && *p->at == '?') {
        if (p->end - p->at < 2 || p->at[1] != ':') return refuse(p, "a group that looks around or has a name");
        p->at += 2;
    }
    if (++p->groups > MOST_GROUPS) return refuse(p, "groups in groups beyond 50");
    int32_t inner = parse_either(p, false);
    p->groups--;
    if (p->at == p->end || *p->at != ')') return refuse(p, "a group that does not end");
    p->at++;
    return inner;
}

static int32_t parse_atom(parser *p) {
    int32_t first = (int32_t)p->pattern->ranges.count;
    char c = *p->at;
    if (strchr("^$", c)) return refuse(p, "an anchor elsewhere than at the ends");
    if (strchr("*+?{", c)) return refuse(p, "a repetition of nothing");
    if (strchr("}]", c)) return refuse(p, "a bracket that was not opened");
    if (c == '(' || c == '[' || c == '.') p->at++;
    if (c == '(') return parse_group(p);
    if (c == '[') return parse_class(p);
    if (c == '.') {
        add_ranges(p, line_ends, sizeof line_ends / sizeof *line_ends, true);
        return close_class(p, first, false);
    }
    if (c != '\\') {
        uint32_t character = take_character(p);
        add_range(p, character, character);
        return close_class(p, first, false);
    }
    p->at++;
    if (p->at < p->end && add_named(p, *p->at)) {
        p->at++;
        return close_class(p, first, false);
    }
    uint32_t character = take_escape(p);
    if (p->pattern->fault) return 0;
    add_range(p, character, character);
    return close_class(p, first, false);
}

static int32_t take_count(parser *p) {
    int32_t count = 0;
    if (p->at == p->end || *p->at < '0' || *p->at > '9') return refuse(p, "a repetition without a number");
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
        count = count * 10 + (*p->at - '0');
        if (count > MOST_REPEATS) return refuse(p, "a repetition of more than 1000");
    }
    return count;
}

/* {n}, {n,} or {n,m}, behind the brace. */
static void take_counts(parser *p, plumb__pattern_node *repeat) {
    repeat->least = repeat->most = take_count(p);
    if (p->at < p->end && *p->at == ',') {
        p->at++;
        repeat->most = p->at < p->end && *p->at == '}' ? -1 : take_count(p);
    }
    if (p->at == p->end || *p->at++ != '}') (void)refuse(p, "a repetition that does not end");
    else if (repeat->most >= 0 && repeat->most < repeat->least) (void)refuse(p, "a repetition whose end comes first");
}

static int32_t parse_repeat(parser *p) {
    int32_t atom = parse_atom(p);
    if (p->at < p->end && strchr("*+?{", *p->at)) {
        plumb__pattern_node repeat = {.kind = PLUMB__PATTERN_REPEAT, .a = atom, .most = -1};
        char c = *p->at++;
        if (c == '+') repeat.least = 1;
        else if (c == '?') repeat.most = 1;
        else if (c == '{') take_counts(p, &repeat);
        /* Which match is preferred does not matter where only the whole text counts. */
        if (p->at < p->end && *p->at == '?') p->at++;
        if (p->pattern->fault) return 0;
        atom = append(p, &p->pattern->nodes, &repeat, sizeof repeat);
    }
    return atom;
}

static int32_t add_any_text(parser *p) {
    int32_t first = (int32_t)p->pattern->ranges.count;
    add_range(p, 0, LAST_CHARACTER);
    plumb__pattern_node any = {.kind = PLUMB__PATTERN_REPEAT, .a = close_class(p, first, false), .most = -1};
    return append(p, &p->pattern->nodes, &any, sizeof any);
}

/* A sequence; at the top, with its anchors. */
static int32_t parse_then(parser *p, bool top) {
    bool begins = top && p->at < p->end && *p->at == '^', ends = false;
    p->at += begins;
    int32_t all = top && !begins ? add_any_text(p) : add(p, PLUMB__PATTERN_EMPTY, 0, 0);
    while (p->at < p->end && *p->at != '|' && *p->at != ')') {
        if (top && *p->at == '$' && (p->at + 1 == p->end || p->at[1] == '|')) {
            p->at++;
            ends = true;
            break;
        }
        int32_t next = parse_repeat(p);
        all = add(p, PLUMB__PATTERN_THEN, all, next);
    }
    if (top && !ends) {
        int32_t any = add_any_text(p);
        all = add(p, PLUMB__PATTERN_THEN, all, any);
    }
    return all;
}

static int32_t parse_either(parser *p, bool top) {
    int32_t all = parse_then(p, top);
    while (p->at < p->end && *p->at == '|') {
        p->at++;
        int32_t other = parse_then(p, top);
        all = add(p, PLUMB__PATTERN_EITHER, all, other);
    }
    return all;
}

bool plumb__pattern_parse(const char *text, size_t size, plumb__pattern *pattern) {
    parser p = {.pattern = pattern, .at = text, .end = text + size};
    *pattern = (plumb__pattern){.fault = NULL};
    pattern->root = parse_either(&p, true);
    if (p.at < p.end) (void)refuse(&p, "a bracket that was not opened");
    return !pattern->fault;
}

void plumb__pattern_free(plumb__pattern *pattern) {
    free(pattern->nodes.items);
    free(pattern->ranges.items);
}
