/* A job: one generation on its way through the scheduler, and the events that wait to be told of it. */
#ifndef PLUMB_SERVER_JOB_H
#define PLUMB_SERVER_JOB_H

#include "server/scheduler.h"

/* A copy of an event with all that it points at, waiting for the thread of the event loop. */
typedef struct plumb_queued_event {
    struct plumb_queued_event *next;
    plumb_job *job;
    int64_t bytes; /* it takes */
    bool last;     /* of its job */
    plumb_generation_event event;
    plumb_usage usage;
    plumb_api_error error;
} plumb_queued_event;

plumb_queued_event *plumb__queued_event_create(const plumb_generation_event *event); /* NULL: no memory */

struct plumb_job {
    plumb_generation *generation;
    plumb_generation_sink sink;
    void *user;
    plumb_job *previous, *next; /* in the queue, or in the worker's list */

    /* ---- Under the scheduler's lock ---- */
    /* Who may still look at it: the handle, the list that it is in, each slot that works on it and each event
     * that waits.  The last one destroys it. */
    int references;
    bool has_handle; /* the loop's thread may use it */
    bool queued;     /* the worker has not seen it */
    bool cancelled;  /* nothing more is told */
    bool over;       /* its last event waits or was told */
    int runs_finished;
    int64_t waiting_bytes; /* of events that were not told */
    int64_t unsent;        /* bytes that the client has not taken */
    plumb_queued_event *failure; /* room for telling that memory has run out */

    /* ---- The worker's ---- */
    plumb_tokens prompt;
    int64_t most_tokens;   /* the generation's, cut to the context */
    uint64_t seed;         /* of run 0 */
    bool prompt_evaluated; /* by run 0: the others copy it */
    int runs_begun;
    bool dead; /* failed, or cancelled: nobody wants more of it */
};

/* Takes the generation over if it succeeds; with one reference, the handle's. */
plumb_job *plumb__job_create(plumb_generation *generation, plumb_generation_sink sink, void *user);
void plumb__job_destroy(plumb_job *job);

/* Whether so much waits for its client that more would only fill memory. */
bool plumb__job_is_full(const plumb_job *job);

/* Appends the prompt of a conversation; turns that `calls` remembers stand in it as they were sampled. */
PLUMB_MUST_CHECK plumb_status plumb__messages_encode(const plumb_generation *generation, const plumb_text *text,
                                                     const plumb_call_memory *calls /* may be NULL */,
                                                     plumb_tokens *tokens, plumb_error *err);

/* What encoding needs to know. */
typedef struct plumb_job_encoding {
    const plumb_text *text;
    const plumb_call_memory *calls;
    int64_t vocab_size, bos_id, context;
} plumb_job_encoding;

/* Fills prompt, most_tokens and seed; false: *error says why the job cannot be done. */
bool plumb__job_encode(plumb_job *job, const plumb_job_encoding *encoding, plumb_api_error *error);

/* ---- Lists of jobs, oldest first ---- */

typedef struct plumb_job_list {
    plumb_job *first, *last;
    int count;
} plumb_job_list;

void plumb__job_list_append(plumb_job_list *list, plumb_job *job);
void plumb__job_list_remove(plumb_job_list *list, plumb_job *job);

#endif
