/* From logits to events: everything about one answer that needs no session.
 *
 * An answer samples (with its own seed, grammar and bias), parses what was sampled, holds back what may
 * become a stop string, gives calls their ids, counts, and decides when it is over.  The scheduler feeds it
 * the logits of each position and evaluates the token that it chose. */
#ifndef PLUMB_SERVER_ANSWER_H
#define PLUMB_SERVER_ANSWER_H

#include "server/generation.h"

typedef struct plumb_answer plumb_answer;

typedef void (*plumb_generation_sink)(void *user, const plumb_generation_event *event);

typedef struct plumb_answer_options {
    const plumb_generation *generation; /* outlives the answer */
    int run;
    const plumb_text *text;
    const plumb_token_trie *trie;
    int64_t vocab_size;
    int64_t most_tokens; /* resolved: the generation's, cut to the context; 0: over before the first step */
    uint64_t seed;       /* of the generation: run i draws with seed + i */
    void (*new_id)(void *user, const char *prefix, char *id); /* as plumb_api_context has it */
    void *new_id_user;
    plumb_generation_sink sink;
    void *sink_user;
} plumb_answer_options;

PLUMB_MUST_CHECK plumb_status plumb__answer_create(const plumb_answer_options *options,
                                                   plumb_answer **answer, plumb_error *err);
void plumb__answer_destroy(plumb_answer *answer); /* NULL is fine */

/* Chooses the token after `position` evaluated ones and tells its events.  *over: the run has ended, its
 * last text is told and `finish` is settled; *token need not be evaluated then.  An error (a NaN, no
 * memory, a step after the end) ends the answer without FINISHED. */
PLUMB_MUST_CHECK plumb_status plumb__answer_step(plumb_answer *answer, const float *logits, int64_t position,
                                                 int32_t *token, bool *over, plumb_error *err);
/* Tells FINISHED, once and of an answer that is over, with the counts it knows and what the caller measured
 * (prompt_tokens, cached_tokens and seconds of `usage`).  Completion tokens are all that were sampled, the
 * one that ended the turn too; reasoning tokens those before the end of the reasoning, </think> included. */
void plumb__answer_finish(plumb_answer *answer, const plumb_usage *measured);

/* What the model has said so far, without the token that ended its turn: what plumb_call_memory_add takes. */
const plumb_tokens *plumb__answer_tokens(const plumb_answer *answer);
/* A finished answer as an assistant message in JSON with its calls and their ids, as they were told, for
 * plumb_call_memory_add.  NULL: it did not finish with PLUMB_FINISH_CALLS, or a call was dropped, so that its
 * tokens are not what was told; or no memory.  free() it. */
char *plumb__answer_message(const plumb_answer *answer);

#endif
