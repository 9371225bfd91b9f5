/* Slots: the sessions that jobs are evaluated in, and which of them takes which job.
 *
 * What a slot's session holds stays after its job, for whoever goes on from there.  So a slot is worth
 * something while it is idle, and the choice weighs what a prompt finds against what it destroys. */
#ifndef PLUMB_SERVER_SLOTS_H
#define PLUMB_SERVER_SLOTS_H

#include "server/job.h"

enum { PLUMB_MOST_SLOTS = 64 }; /* as many as plumb_sessions_step takes */

typedef struct plumb_slot {
    plumb_scheduler *scheduler;
    plumb_session *session; /* NULL until it is first used */
    plumb_slot_doing doing;
    bool unsaved;  /* the store was not offered what the session holds */
    int64_t known; /* how far it came with a prompt that was cut short; 0: it was not */
    int64_t used;  /* the number of the admission that was the latest while it worked */

    /* ---- Of its job ---- */
    plumb_job *job; /* NULL: idle */
    int run;
    plumb_answer *answer;
    int32_t token;         /* sampled, not evaluated yet */
    int64_t evaluated;     /* tokens of its prompt */
    int64_t generated;     /* tokens of the answer, for the statistics */
    plumb_usage usage;     /* what is measured */
    bool interrupted;      /* its prompt gave way to a newcomer, and does so once only */
    bool event_lost;       /* no memory for it */
    bool full;             /* its client takes nothing, as of the worker's last look */
} plumb_slot;

/* Whether its job is at that and goes on: one whose client takes nothing waits. */
bool plumb__slot_runs(const plumb_slot *slot, plumb_slot_doing doing);

/* Its session knows so many tokens of the prompt: all but the last, whose logits are wanted, need no evaluation. */
void plumb__slot_set_cached(plumb_slot *slot, int64_t known);

/* ---- The choice, on numbers alone ---- */

typedef struct plumb_slot_view {
    bool idle;       /* may take the job */
    bool has_session;
    int64_t length;  /* tokens it holds */
    int64_t known;   /* the same, with those of a prompt that was cut short */
    int64_t shared;  /* beginning of the prompt that it knows */
    int64_t age;     /* admissions since it was used */
} plumb_slot_view;

typedef struct plumb_placement {
    int slot;   /* takes the job; -1: none is idle */
    int source; /* is copied into it first; -1: none */
} plumb_placement;

/* A slot that holds little beyond what it shares with the prompt takes it.  Otherwise the one that is worth
 * least to others does, and what the prompt shares with another is copied there.  A slot's worth to others is
 * what it would lose, divided by its age: long conversations outlive short ones, but not for ever. */
plumb_placement plumb__slots_choose(const plumb_slot_view *slots, int n);

#endif
