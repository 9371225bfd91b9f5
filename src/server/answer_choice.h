/* Which token comes next: sampling, and the grammar that says what may be sampled. */
#ifndef PLUMB_SERVER_ANSWER_CHOICE_H
#define PLUMB_SERVER_ANSWER_CHOICE_H

#include "server/answer.h"

enum { PLUMB_TOP_LOGPROBS_MAX = 20 };

/* A token that was chosen; the log-probabilities where they are asked for. */
typedef struct plumb_choice {
    int32_t token;
    plumb_logprob logprob;
    plumb_logprob top[PLUMB_TOP_LOGPROBS_MAX]; /* (n_top), best first */
    int n_top;
} plumb_choice;

typedef struct plumb_chooser {
    plumb_sampling sampling;
    const plumb_text *text;
    int64_t vocab_size;
    bool logprobs;
    int n_top;
    plumb_matcher *matcher; /* NULL: no grammar */
    uint32_t *allowed;      /* (words_for(vocab_size)); with a grammar */
    bool reasoning;         /* the grammar begins behind it */
    int32_t think_end_id;
} plumb_chooser;

/* `reasoning`: the answer begins there.  On failure there is nothing to free. */
PLUMB_MUST_CHECK plumb_status plumb__chooser_init(plumb_chooser *chooser, const plumb_answer_options *options,
                                                  bool reasoning, plumb_error *err);
void plumb__chooser_free(plumb_chooser *chooser);
PLUMB_MUST_CHECK plumb_status plumb__chooser_choose(plumb_chooser *chooser, const float *logits,
                                                    int64_t position, plumb_choice *choice, plumb_error *err);

#endif
