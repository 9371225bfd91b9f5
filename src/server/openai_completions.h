/* A completion between its reading and its last chunk. */
#ifndef PLUMB_SERVER_OPENAI_COMPLETIONS_H
#define PLUMB_SERVER_OPENAI_COMPLETIONS_H

#include "server/openai_answer.h"
#include "server/text_buffer.h"

/* One of the choices. */
typedef struct completion_run {
    plumb_text_buffer text; /* in a stream: the prompt that is echoed, until the answer begins */
    int64_t characters;     /* of the tokens so far */
    json_t *waiting;        /* tokens whose text is still to come: [token, logprob, top, offset]; NULL: none */
    json_t *tokens;         /* the others, of a whole answer */
    const char *finish_reason;
} completion_run;

struct plumb_api_request {
    plumb_openai_answer answer;
    const plumb_text *text;
    bool logprobs, top_logprobs; /* the first without the second: of the tokens themselves */
    bool begins_with_bos; /* the prompt was a text: its first token is not the client's */
    bool failed;          /* a part was lost: no memory */
    completion_run *runs; /* answer.runs of them */
};

void plumb__openai_completions_event(plumb_api_request *request, const plumb_generation_event *event,
                                     plumb_response *response);
void plumb__openai_completions_destroy(plumb_api_request *request);

#endif
