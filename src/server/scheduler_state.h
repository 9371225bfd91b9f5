/* What the scheduler's parts share: scheduler.c is called by the loop's thread, scheduler_worker.c and
 * scheduler_store.c run on the worker's.  The lock is held for moments only, never while anything is computed,
 * written or told. */
#ifndef PLUMB_SERVER_SCHEDULER_STATE_H
#define PLUMB_SERVER_SCHEDULER_STATE_H

#include "server/slots.h"

#include <pthread.h>

struct plumb_scheduler {
    /* ---- Set once ---- */
    plumb_scheduler_options options; /* session_dir is `folder` */
    char *folder;                    /* NULL: nothing is kept on disk */
    plumb_model_info model;
    plumb_token_trie *trie;
    pthread_t worker;

    /* ---- Under the lock ---- */
    pthread_mutex_t lock;
    pthread_cond_t changed;      /* the worker may have something to do */
    plumb_job_list queue;        /* jobs that the worker has not seen */
    int open_jobs;               /* accepted, and neither over nor cancelled */
    plumb_queued_event *first_event, *last_event;
    bool door_closed, ending;
    plumb_scheduler_stats stats;
    plumb_slot_stats *slot_stats; /* [slots], as of the worker's last pass */

    pthread_mutex_t calls_lock; /* of `calls`, also while a prompt is encoded; never together with the other */

    /* ---- The worker's ---- */
    plumb_slot *slots;
    int usable_slots;             /* fewer than asked for where memory does not suffice */
    plumb_job_list begun;         /* jobs with runs that wait for a slot */
    plumb_scheduler_stats counted; /* what `stats` will say of tokens, rows and seconds */
    int64_t admissions;
    int last_prompt;              /* the slot whose prompt had the latest quantum */
    /* What is being evaluated, for whoever asks whether to go on: */
    plumb_job *watched[PLUMB_MOST_SLOTS]; /* (n_watched) */
    int n_watched;
    bool gives_way;               /* to newcomers */
    plumb_slot *read;             /* whose prompt the call at work evaluates; NULL: none, or its answer */
    int64_t read_end;             /* of that prompt, where the call ends */
    bool gave_way;
    uint32_t *allowed;            /* bits of the vocabulary, all zero between uses */
    plumb_store *store;
    plumb_store_decision kept;    /* what the store decided last */
    plumb_call_memory *calls;     /* changed under its lock, under which the loop's thread reads it */
    int unsaved_calls;            /* turns that calls.json lacks */
};

/* ---- scheduler.c ---- */

/* Tells the job's sink, by and by.  False: no memory for it, and the job must fail. */
bool plumb__scheduler_tell(plumb_scheduler *s, plumb_job *job, const plumb_generation_event *event);
/* The last event of a job that cannot go on; needs no memory. */
void plumb__scheduler_fail(plumb_scheduler *s, plumb_job *job, const plumb_api_error *error);
void plumb__scheduler_retain(plumb_scheduler *s, plumb_job *job);
void plumb__scheduler_release(plumb_scheduler *s, plumb_job *job);

/* ---- scheduler_worker.c ---- */

void *plumb__scheduler_work(void *scheduler);
/* Makes the statistics say how things are. */
void plumb__scheduler_publish(plumb_scheduler *s);
/* The slot's job cannot go on; the slot is free at the worker's next pass. */
void plumb__scheduler_fail_slot(plumb_scheduler *s, plumb_slot *slot, const plumb_error *err);
/* The session of slot `index`, where it has none. */
PLUMB_MUST_CHECK plumb_status plumb__scheduler_open_slot(plumb_scheduler *s, int index, plumb_error *err);

void plumb__scheduler_count_prompt(plumb_scheduler *s, plumb_slot *slot, int64_t rows, double seconds);
void plumb__scheduler_tell_progress(plumb_slot *slot, int64_t done);
/* The prompt is evaluated: the first token, and on from there. */
void plumb__scheduler_begin_answer(plumb_scheduler *s, plumb_slot *slot, const float *logits);

/* ---- scheduler_echo.c ---- */

/* A quantum of a prompt that is told. */
void plumb__scheduler_echo(plumb_scheduler *s, plumb_slot *slot);

/* ---- scheduler_common.c: of slots whose prompts begin alike ---- */

/* Whether the slot waits for another to evaluate what they share. */
bool plumb__scheduler_waits(const plumb_scheduler *s, const plumb_slot *slot);
/* How much of the slot's prompt is read before a copy of it serves the next one that waits; at most all. */
int64_t plumb__scheduler_next_stop(const plumb_scheduler *s, const plumb_slot *slot);
/* A copy of whoever holds much more of the slot's prompt than its session does. */
void plumb__scheduler_take_common(plumb_scheduler *s, plumb_slot *slot);

/* ---- scheduler_admission.c ---- */

bool plumb__scheduler_has_idle_slot(const plumb_scheduler *s);
/* Whether a run waits for nothing but a slot, beside what is in the queue. */
bool plumb__scheduler_has_ready_run(const plumb_scheduler *s);

/* Makes the slot's session a copy of the other's; false: it is as it was, and the log says why. */
bool plumb__scheduler_copy(plumb_scheduler *s, plumb_slot *slot, const plumb_slot *source);
/* Puts waiting runs into idle slots, as long as there are both. */
void plumb__scheduler_admit(plumb_scheduler *s);

/* ---- scheduler_store.c: faults of it are logged, and never a job's ---- */

PLUMB_MUST_CHECK plumb_status plumb__scheduler_open_store(plumb_scheduler *s, plumb_error *err);
void plumb__scheduler_close_store(plumb_scheduler *s);
/* Looks whether the store has a longer beginning of the prompt than the slot. */
void plumb__scheduler_recall(plumb_scheduler *s, plumb_slot *slot, const plumb_tokens *prompt);
/* Offers what the slot holds to the store, if that is news. */
void plumb__scheduler_keep(plumb_scheduler *s, plumb_slot *slot);
bool plumb__scheduler_has_unsaved(const plumb_scheduler *s);
void plumb__scheduler_save_one(plumb_scheduler *s); /* of what is unsaved */
void plumb__scheduler_save_all(plumb_scheduler *s);
/* Remembers the calls of an answer that has ended. */
void plumb__scheduler_remember_calls(plumb_scheduler *s, const plumb_slot *slot);
void plumb__scheduler_log(const plumb_scheduler *s, plumb_log_level level, const char *what,
                          const plumb_error *err /* may be NULL */);

#endif
