/* Which tokens stand for an assistant message that has come back with its calls: see
 * plumb_call_memory in plumb.h. */
#ifndef PLUMB_TEXT_CALL_MEMORY_H
#define PLUMB_TEXT_CALL_MEMORY_H

#include "plumb.h"
#include "text/chat_messages.h"

typedef struct plumb__remembered_turn {
    const int32_t *tokens; /* of the memory */
    int64_t n_tokens;      /* 0: no such turn */
    bool no_memory;
} plumb__remembered_turn;

/* The newest turn that `message` may be.  `thinking`: its rendering begins inside <think>. */
plumb__remembered_turn plumb__call_memory_find(const plumb_call_memory *memory,
                                               const plumb__chat_message *message, bool thinking);

#endif
