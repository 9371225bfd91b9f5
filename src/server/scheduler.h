/* One engine, many requests.
 *
 * A worker thread owns the sessions ("slots").  It admits waiting jobs into slots, the longest common
 * prefix first; evaluates prompts in quanta between decode steps, so that nobody waits for somebody else's
 * book; and decodes all running answers as one batch, which gives each the bits it would have alone.
 * Functions are called by the thread of the event loop; events are told there too (see `wake`). */
#ifndef PLUMB_SERVER_SCHEDULER_H
#define PLUMB_SERVER_SCHEDULER_H

#include "server/answer.h"

typedef struct plumb_scheduler plumb_scheduler;
typedef struct plumb_job plumb_job;

typedef struct plumb_scheduler_options {
    plumb_model *model;
    const plumb_text *text;
    int slots;              /* sessions, 1 or more */
    int64_t context;        /* of each */
    int64_t quantum;        /* prompt tokens evaluated between decode steps; 0: 256 */
    int most_waiting;       /* jobs in the queue beyond those in slots */
    const char *session_dir; /* session store and call memory; NULL: none */
    int64_t session_dir_size, session_dir_daily; /* bytes; 0: the store's defaults */
    void (*new_id)(void *user, const char *prefix, char *id);
    void *new_id_user;
    /* Any thread: asks for plumb__scheduler_deliver to be called soon on the loop's thread. */
    void (*wake)(void *user);
    void *wake_user;
    plumb_log_fn log;
    void *log_user;
} plumb_scheduler_options;

PLUMB_MUST_CHECK plumb_status plumb__scheduler_create(const plumb_scheduler_options *options,
                                                      plumb_scheduler **scheduler, plumb_error *err);
/* Ends at once: running jobs are told nothing more; sessions are saved to the store. */
void plumb__scheduler_destroy(plumb_scheduler *scheduler);

/* Takes the generation over in any case.  NULL: refused, *error says why (busy, stopping). */
plumb_job *plumb__scheduler_submit(plumb_scheduler *scheduler, plumb_generation *generation,
                                   plumb_generation_sink sink, void *user, plumb_api_error *error);
/* The job's sink is not called again, and it stops at the next layer.  The handle is void after it, as it
 * is after the job's last event. */
void plumb__scheduler_cancel(plumb_scheduler *scheduler, plumb_job *job);
/* How many bytes of a job's answer its client has not taken: with more than 1 MiB it waits. */
void plumb__scheduler_set_unsent(plumb_scheduler *scheduler, plumb_job *job, int64_t bytes);
/* Appends the tokens of a conversation, as a job for it would have them now. */
PLUMB_MUST_CHECK plumb_status plumb__scheduler_encode(plumb_scheduler *scheduler, const plumb_generation *generation,
                                                      plumb_tokens *tokens, plumb_error *err);
/* Tells waiting events to the sinks of their jobs. */
void plumb__scheduler_deliver(plumb_scheduler *scheduler);
/* No more jobs; those that wait are told PLUMB_REFUSAL_STOPPING, those that run go on. */
void plumb__scheduler_close_door(plumb_scheduler *scheduler);

typedef enum plumb_slot_doing { PLUMB_SLOT_IDLE, PLUMB_SLOT_PROMPT, PLUMB_SLOT_DECODING } plumb_slot_doing;

typedef struct plumb_slot_stats {
    plumb_slot_doing doing;
    int64_t length;                   /* tokens its session holds */
    int64_t prompt_done, prompt_tokens, cached_tokens, generated_tokens; /* of its job */
} plumb_slot_stats;

typedef struct plumb_scheduler_stats {
    int slots, busy, waiting;
    bool stopping;
    int64_t context;
    int64_t jobs_finished, jobs_failed, jobs_cancelled, jobs_refused;
    int64_t prompt_tokens, cached_tokens, generated_tokens;
    double prefill_seconds, decode_seconds;
    int64_t decode_steps, decoded_rows;  /* their quotient is the mean batch */
    int64_t prompt_rows;                 /* evaluated, replayed ones included */
    plumb_store_stats store;             /* zero without one; as of its last use */
} plumb_scheduler_stats;
/* Does not wait for the worker. */
void plumb__scheduler_get_stats(plumb_scheduler *scheduler, plumb_scheduler_stats *stats);
/* Fills at most `most` slots; returns how many there are. */
int plumb__scheduler_get_slots(plumb_scheduler *scheduler, plumb_slot_stats *slots, int most);

#endif
