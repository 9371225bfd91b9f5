/* What answers of chat completions and completions have in common. */
#ifndef PLUMB_SERVER_OPENAI_ANSWER_H
#define PLUMB_SERVER_OPENAI_ANSWER_H

#include "server/openai.h"

/* Reads a body by `read_fields`, which fills `request` and the generation.  NULL for a request: no memory. */
typedef bool (*plumb_openai_reader)(const plumb_api_context *context, const plumb_fields *fields,
                                    plumb_generation *generation, plumb_api_request *request);
plumb_status plumb__openai_read(const plumb_api_context *context, const char *body, size_t size,
                                plumb_openai_reader read_fields, plumb_api_request *request,
                                plumb_generation **generation, plumb_api_error *error);

/* Begins zeroed, with `kind`, `stream` and `include_usage` as they were read. */
typedef struct plumb_openai_answer {
    char id[64];
    const char *kind;  /* member "object" */
    const char *model; /* the context's */
    int64_t created;
    bool stream, include_usage;
    int runs, finished;
    plumb_usage usage; /* of the runs that have finished */
} plumb_openai_answer;

void plumb__openai_begin_answer(plumb_openai_answer *answer, const plumb_api_context *context, const char *prefix,
                                int runs);
/* Adds a finished run to the account; true: it was the last. */
bool plumb__openai_run_finished(plumb_openai_answer *answer, const plumb_generation_event *event);
const char *plumb__openai_finish_reason(plumb_finish finish);

/* Streams: one choice's chunk (takes it over); how far the prompt is, as a comment; the end. */
void plumb__openai_chunk(const plumb_openai_answer *answer, json_t *choice, plumb_response *response);
void plumb__openai_progress(const plumb_openai_answer *answer, const plumb_generation_event *event,
                            plumb_response *response);
void plumb__openai_end_stream(const plumb_openai_answer *answer, plumb_response *response);
/* The whole answer; takes the choices over. */
void plumb__openai_end_whole(const plumb_openai_answer *answer, json_t *choices, plumb_response *response);

#endif
