/* From a conversation to a prompt (spec: tokenizer-and-chat.md sections 4 and 5).  There is no
 * template language: the published encoder is a program, and so is this. */
#ifndef PLUMB_TEXT_CHAT_ENCODE_H
#define PLUMB_TEXT_CHAT_ENCODE_H

#include "text/chat_items.h"

/* The prompt as items; needs no tokenizer.  `items` must be {0}; it is freed on failure. */
PLUMB_MUST_CHECK plumb_status plumb__chat_render(const char *messages, size_t size,
                                                 const plumb_chat_options *options,
                                                 plumb__chat_items *items, plumb_error *err);

#endif
