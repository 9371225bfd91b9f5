/* Tags of tool calls, recognised as their symbols arrive (spec: tokenizer-and-chat.md section 7).
 *
 * A symbol is a byte of valid UTF-8 text, or PLUMB__TAG_DSML for the control token of that name.
 * The two cannot be confused, since 0xFF occurs in no UTF-8 text: text that merely spells the mark
 * is never the mark. */
#ifndef PLUMB_TEXT_CHAT_TAGS_H
#define PLUMB_TEXT_CHAT_TAGS_H

#include <stdbool.h>
#include <stddef.h>

#define PLUMB__TAG_DSML '\xFF'
/* Longest tag, and so the most that a parser ever holds back. */
#define PLUMB__TAG_SYMBOLS_MAX 1024

typedef enum plumb__tag_kind {
    PLUMB__TAG_NONE,    /* the symbols are not the start of a tag */
    PLUMB__TAG_PARTIAL, /* they may still become one */
    PLUMB__TAG_CALLS,
    PLUMB__TAG_CALLS_END,
    PLUMB__TAG_INVOKE,
    PLUMB__TAG_INVOKE_END,
    PLUMB__TAG_PARAMETER,
    PLUMB__TAG_PARAMETER_END
} plumb__tag_kind;

typedef struct plumb__tag {
    plumb__tag_kind kind;
    bool exact;   /* spelled as the grammar has it */
    bool spelled; /* the mark was written out in text */
    bool is_string;
    const char *name; /* of invoke and parameter; points into the symbols */
    size_t name_size;
} plumb__tag;

/* Judges the symbols received so far; to be called after each one.  Accepted beside the grammar:
 * the block names of earlier models, a missing space after the mark and, with `spelled_allowed`,
 * the mark as text with ASCII or full-width bars. */
plumb__tag plumb__tag_match(const char *symbols, size_t size, bool spelled_allowed);

#endif
