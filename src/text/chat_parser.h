/* The parser of answers, below the tokenizer: pieces instead of ids (spec:
 * tokenizer-and-chat.md section 7.2).  plumb_chat_parser_push turns an id into a piece. */
#ifndef PLUMB_TEXT_CHAT_PARSER_H
#define PLUMB_TEXT_CHAT_PARSER_H

#include "plumb.h"

typedef enum plumb__piece_kind {
    PLUMB__PIECE_TEXT, /* any bytes: characters may be split, broken ones become U+FFFD */
    PLUMB__PIECE_DSML,
    PLUMB__PIECE_THINK,
    PLUMB__PIECE_THINK_END,
    PLUMB__PIECE_EOS,
    PLUMB__PIECE_STOP,  /* the model began another turn */
    PLUMB__PIECE_HIDDEN /* a control token that people do not see */
} plumb__piece_kind;

/* A parser for plumb__chat_parser_push_piece only. */
PLUMB_MUST_CHECK plumb_status plumb__chat_parser_create_bare(bool in_reasoning, bool tools_offered,
                                                             plumb_chat_sink sink, void *user,
                                                             plumb_chat_parser **parser,
                                                             plumb_error *err);
/* `bytes` is used by PLUMB__PIECE_TEXT only.  Returns false once the answer has ended. */
bool plumb__chat_parser_push_piece(plumb_chat_parser *parser, plumb__piece_kind kind,
                                   const char *bytes, size_t size);
/* How often symbols were matched against the grammar so far: the work that an answer has cost. */
uint64_t plumb__chat_parser_steps(const plumb_chat_parser *parser);

#endif
