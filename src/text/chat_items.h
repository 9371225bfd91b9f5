/* A prompt before tokenisation: a list of control tokens, runs of text, and remembered turns that
 * are tokens already (spec: tokenizer-and-chat.md section 4.6).
 *
 * Control tokens exist only where the encoder puts them.  What people wrote is text and is never
 * searched for control tokens, so that nobody can type their way into another role. */
#ifndef PLUMB_TEXT_CHAT_ITEMS_H
#define PLUMB_TEXT_CHAT_ITEMS_H

#include "plumb.h"
#include "text/chat_buffer.h"

typedef struct plumb__chat_item {
    const char *control; /* static text of the control token */
    const int32_t *ids;  /* tokens as they were sampled, of the call memory; `size` of them */
    int64_t at, size;    /* neither: a run of text, in plumb__chat_items.text */
} plumb__chat_item;

/* Start from {0}; free with plumb__chat_items_free.  Failure is sticky, in text.failed. */
typedef struct plumb__chat_items {
    plumb__chat_item *list;
    int64_t count, capacity;
    plumb__buffer text;
} plumb__chat_items;

void plumb__chat_items_free(plumb__chat_items *items);
void plumb__chat_control(plumb__chat_items *items, const char *control);
void plumb__chat_ids(plumb__chat_items *items, const int32_t *ids, int64_t count);
/* Neighbouring texts become one run. */
void plumb__chat_text(plumb__chat_items *items, const char *bytes, size_t size);
void plumb__chat_literal(plumb__chat_items *items, const char *text);
/* Text of the protocol itself, in which <think>, </think> and the DSML mark are control tokens. */
void plumb__chat_template(plumb__chat_items *items, const char *text);

/* Appends the prompt as one string, as the published encoder writes it; ids have no text here and are
 * left out. */
void plumb__chat_items_print(const plumb__chat_items *items, plumb__buffer *out);
/* Appends the ids; on failure `tokens` keeps its earlier length. */
PLUMB_MUST_CHECK plumb_status plumb__chat_items_encode(const plumb__chat_items *items,
                                                       const plumb_text *text, bool match_added,
                                                       plumb_tokens *tokens, plumb_error *err);

#endif
