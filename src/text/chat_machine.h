/* The state machine of answers, on symbols (chat_tags.h): see chat_parser.h for the layer above. */
#ifndef PLUMB_TEXT_CHAT_MACHINE_H
#define PLUMB_TEXT_CHAT_MACHINE_H

#include "text/chat_call.h"
#include "text/chat_events.h"
#include "text/chat_tags.h"

typedef enum plumb__chat_state {
    PLUMB__STATE_REASONING,
    PLUMB__STATE_CONTENT,
    PLUMB__STATE_CALLS,  /* in a block, between calls */
    PLUMB__STATE_INVOKE, /* in a call, between parameters */
    PLUMB__STATE_BODY,   /* in a call whose body is bare JSON */
    PLUMB__STATE_VALUE,
    PLUMB__STATE_AFTER, /* behind a block, nothing but white space yet */
    PLUMB__STATE_DONE
} plumb__chat_state;

typedef struct plumb__chat_machine {
    plumb__chat_state state;
    unsigned flags;
    bool tools_offered;
    bool block_wrapped; /* the block began with its own tag, not with a call */
    bool block_has_calls;
    bool block_in_reasoning; /* it began there */
    bool calls_over;         /* later blocks are suppressed */
    bool opener_spelled;     /* the last opening tag had its mark written out */
    int line_feeds;          /* held at the end of the visible text, at most two */
    int gap_line_feeds;      /* between two tags */
    bool gap_other;
    char hold[PLUMB__TAG_SYMBOLS_MAX];
    size_t hold_size;
    uint64_t steps; /* tags matched against the hold */
    plumb__chat_call call;
    plumb__chat_events events;
} plumb__chat_machine;

/* In place, since the parts point at each other: the machine must not move. */
void plumb__machine_init(plumb__chat_machine *m, bool in_reasoning, bool tools_offered,
                         plumb_chat_sink sink, void *user);
void plumb__machine_free(plumb__chat_machine *m);

void plumb__machine_text(plumb__chat_machine *m, const char *bytes, size_t size); /* characters */
void plumb__machine_mark(plumb__chat_machine *m);            /* the DSML token */
void plumb__machine_think(plumb__chat_machine *m, bool end); /* the token <think> or </think> */
void plumb__machine_end(plumb__chat_machine *m, bool eos);
size_t plumb__machine_held(const plumb__chat_machine *m); /* bytes, see plumb_chat_parser_held */

#endif
