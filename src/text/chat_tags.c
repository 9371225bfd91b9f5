/* See chat_tags.h.  One call looks at the fixed head of a tag and at the end of what is there, so
 * its cost does not grow with the length of a name. */
#include "text/chat_tags.h"

#include <string.h>

typedef struct cursor {
    const char *symbols;
    size_t size, at;
    bool ran_out; /* some literal fitted as far as there are symbols */
} cursor;

/* Steps over `literal` if it stands here in full. */
static bool take(cursor *c, const char *literal) {
    size_t wanted = strlen(literal), there = c->size - c->at;
    size_t compared = wanted < there ? wanted : there;
    if (memcmp(c->symbols + c->at, literal, compared) != 0) return false;
    if (compared < wanted) {
        c->ran_out = true;
        return false;
    }
    c->at += wanted;
    return true;
}

static bool ends_with(const char *bytes, size_t size, const char *tail, size_t *before) {
    size_t length = strlen(tail);
    if (size < length || memcmp(bytes + size - length, tail, length) != 0) return false;
    *before = size - length;
    return true;
}

/* After the quote that opens a name.  Names have no escapes: one ends where the tag does. */
static plumb__tag_kind match_name(const cursor *c, plumb__tag_kind kind, plumb__tag *tag) {
    const char *name = c->symbols + c->at;
    size_t size = c->size - c->at;
    tag->name = name;
    if (size > 0 && name[size - 1] == PLUMB__TAG_DSML) return PLUMB__TAG_NONE;
    if (kind == PLUMB__TAG_INVOKE) {
        if (ends_with(name, size, "\">", &tag->name_size)) return kind;
    } else {
        tag->is_string = ends_with(name, size, "\" string=\"true\">", &tag->name_size);
        if (tag->is_string || ends_with(name, size, "\" string=\"false\">", &tag->name_size))
            return kind;
    }
    return c->size < PLUMB__TAG_SYMBOLS_MAX ? PLUMB__TAG_PARTIAL : PLUMB__TAG_NONE;
}

static plumb__tag_kind match_block_name(cursor *c, bool *exact) {
    static const char *const earlier[] = {"tool_calls>", "toolcalls>", "function_calls>"};
    if (take(c, "calls>")) return PLUMB__TAG_CALLS;
    for (size_t i = 0; i < sizeof earlier / sizeof earlier[0]; i++) {
        if (!take(c, earlier[i])) continue;
        *exact = false;
        return PLUMB__TAG_CALLS;
    }
    return PLUMB__TAG_NONE;
}

static plumb__tag_kind match_rest(cursor *c, bool closing, plumb__tag *tag) {
    plumb__tag_kind block = match_block_name(c, &tag->exact);
    if (block != PLUMB__TAG_NONE) return closing ? PLUMB__TAG_CALLS_END : block;
    if (closing) {
        if (take(c, "invoke>")) return PLUMB__TAG_INVOKE_END;
        if (take(c, "parameter>")) return PLUMB__TAG_PARAMETER_END;
    } else {
        if (take(c, "invoke name=\"")) return match_name(c, PLUMB__TAG_INVOKE, tag);
        if (take(c, "parameter name=\"")) return match_name(c, PLUMB__TAG_PARAMETER, tag);
    }
    return PLUMB__TAG_NONE;
}

plumb__tag plumb__tag_match(const char *symbols, size_t size, bool spelled_allowed) {
    static const char mark[] = {PLUMB__TAG_DSML, 0};
    cursor c = {.symbols = symbols, .size = size};
    plumb__tag tag = {.kind = PLUMB__TAG_NONE};
    bool opened = take(&c, "<");
    bool closing = opened && take(&c, "/");
    bool marked = opened && take(&c, mark);
    if (opened && !marked && spelled_allowed)
        marked = tag.spelled = take(&c, "|DSML|") || take(&c, "｜DSML｜");
    if (marked) {
        bool space = take(&c, " ");
        tag.exact = space && !tag.spelled;
        tag.kind = match_rest(&c, closing, &tag);
    }
    if (tag.kind == PLUMB__TAG_NONE && c.ran_out) tag.kind = PLUMB__TAG_PARTIAL;
    return tag;
}
