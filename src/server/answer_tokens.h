/* Sampled tokens that wait until it is known what becomes of them: PLUMB_GENERATION_TOKEN events.
 *
 * Text is held back by the parser (it may be markup) and by the stop strings.  A token is told before its
 * first byte of visible text, then as `of_content`, or once none of it can become visible. */
#ifndef PLUMB_SERVER_ANSWER_TOKENS_H
#define PLUMB_SERVER_ANSWER_TOKENS_H

#include "server/answer_choice.h"

typedef struct plumb_waiting_token {
    plumb_choice choice;
    bool hidden; /* never text */
    bool told;
    size_t bytes; /* of the text that it completed, neither shown nor given up yet */
} plumb_waiting_token;

/* Start from {0} but for the first four. */
typedef struct plumb_token_queue {
    const plumb_text *text;
    int run;
    plumb_generation_sink sink;
    void *user;
    plumb_waiting_token *tokens; /* [first, end) wait */
    int64_t first, end, capacity;
    size_t bytes; /* of all that wait */
} plumb_token_queue;

void plumb__token_queue_free(plumb_token_queue *queue);
/* `bytes`: how much text is complete with this token; 0: none, or half a character.  False: no memory. */
bool plumb__token_queue_add(plumb_token_queue *queue, const plumb_choice *choice, bool hidden, size_t bytes);
/* So many bytes more are visible text: of the oldest tokens. */
void plumb__token_queue_show(plumb_token_queue *queue, size_t bytes);
/* Of the newest tokens `held` bytes may still become visible; older ones may not any more. */
void plumb__token_queue_settle(plumb_token_queue *queue, size_t held);
/* Nothing that waits becomes visible. */
void plumb__token_queue_flush(plumb_token_queue *queue);

#endif
