/* What was told of an answer, as the assistant message that a client will send back. */
#ifndef PLUMB_SERVER_ANSWER_MESSAGE_H
#define PLUMB_SERVER_ANSWER_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing run of bytes; start from {0}. */
typedef struct plumb_told_text {
    char *bytes;
    int64_t size, capacity;
} plumb_told_text;

typedef struct plumb_told_call {
    char id[64]; /* NUL-terminated */
    plumb_told_text name, arguments;
    bool complete;
} plumb_told_call;

/* Start from {0}. */
typedef struct plumb_told_message {
    plumb_told_text reasoning, content;
    plumb_told_call *calls;
    int64_t n_calls, calls_capacity;
} plumb_told_message;

void plumb__told_message_free(plumb_told_message *message);
bool plumb__told_text_add(plumb_told_text *text, const char *bytes, size_t size); /* false: no memory */
/* The next call, valid until the next one; NULL: no memory. */
plumb_told_call *plumb__told_call_begin(plumb_told_message *message, const char *name, size_t size);
int64_t plumb__told_calls(const plumb_told_message *message, bool *all_complete);
/* {"role": "assistant", "content", "reasoning_content", "tool_calls"} with the complete calls; free() it;
 * NULL: no memory. */
char *plumb__told_message_json(const plumb_told_message *message);

#endif
