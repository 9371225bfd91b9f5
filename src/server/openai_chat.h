/* A chat completion between its reading and its last chunk. */
#ifndef PLUMB_SERVER_OPENAI_CHAT_H
#define PLUMB_SERVER_OPENAI_CHAT_H

#include "server/openai_answer.h"
#include "server/text_buffer.h"

/* One of the choices. */
typedef struct chat_run {
    json_t *waiting;       /* log-probabilities of tokens whose text is still to come; NULL: none */
    int complete_calls;
    bool begun;            /* in a stream: its role has been told */
    /* Of a whole answer: what it will say. */
    plumb_text_buffer reasoning, content, arguments; /* the last of the open call */
    json_t *calls, *call;  /* complete ones; the open one */
    json_t *logprobs;
    const char *finish_reason;
} chat_run;

struct plumb_api_request {
    plumb_openai_answer answer;
    const plumb_text *text;
    bool one_call; /* parallel_tool_calls is false */
    bool failed;   /* a part of a whole answer was lost: no memory */
    chat_run *runs; /* answer.runs of them */
};

void plumb__openai_chat_event(plumb_api_request *request, const plumb_generation_event *event,
                              plumb_response *response);
void plumb__openai_chat_destroy(plumb_api_request *request);

#endif
