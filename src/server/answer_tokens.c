/* Waiting tokens; see answer_tokens.h. */
#include "server/answer_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void plumb__token_queue_free(plumb_token_queue *queue) {
    free(queue->tokens);
    queue->tokens = NULL;
    queue->first = queue->end = queue->capacity = 0;
}

/* Moves what waits to the front where at least half of the array is behind it. */
static void close_up(plumb_token_queue *queue) {
    int64_t waiting = queue->end - queue->first;
    if (queue->first == 0 || queue->first < waiting) return;
    memmove(queue->tokens, queue->tokens + queue->first, (size_t)waiting * sizeof *queue->tokens);
    queue->first = 0;
    queue->end = waiting;
}

bool plumb__token_queue_add(plumb_token_queue *queue, const plumb_choice *choice, bool hidden, size_t bytes) {
    close_up(queue);
    plumb_waiting_token *grown = plumb__grow(queue->tokens, &queue->capacity, queue->end + 1, sizeof *grown);
    if (!grown) return false;
    queue->tokens = grown;
    grown[queue->end++] = (plumb_waiting_token){.choice = *choice, .hidden = hidden, .bytes = bytes};
    queue->bytes += bytes;
    return true;
}

static void tell(const plumb_token_queue *queue, plumb_waiting_token *token, bool of_content) {
    if (token->told) return;
    token->told = true;
    size_t size = 0;
    const char *bytes = plumb_text_token_bytes(queue->text, token->choice.token, &size);
    queue->sink(queue->user, &(plumb_generation_event){.kind = PLUMB_GENERATION_TOKEN,
                                                       .run = queue->run,
                                                       .bytes = bytes ? bytes : "",
                                                       .size = bytes ? size : 0,
                                                       .token = token->choice.logprob,
                                                       .has_logprob = true,
                                                       .of_content = of_content,
                                                       .top = token->choice.top,
                                                       .n_top = token->choice.n_top});
}

/* Tells the oldest tokens until `bytes` of text have passed; half a character goes with the rest of it. */
static void pass(plumb_token_queue *queue, size_t bytes, bool visible) {
    while (queue->first < queue->end) {
        plumb_waiting_token *oldest = &queue->tokens[queue->first];
        if (!oldest->hidden && bytes == 0) return;
        size_t passed = bytes < oldest->bytes ? bytes : oldest->bytes;
        tell(queue, oldest, visible && !oldest->hidden);
        oldest->bytes -= passed;
        queue->bytes -= passed;
        bytes -= passed;
        if (oldest->bytes > 0) return;
        queue->first++;
    }
}

void plumb__token_queue_show(plumb_token_queue *queue, size_t bytes) { pass(queue, bytes, true); }

void plumb__token_queue_settle(plumb_token_queue *queue, size_t held) {
    pass(queue, queue->bytes > held ? queue->bytes - held : 0, false);
}

void plumb__token_queue_flush(plumb_token_queue *queue) {
    for (; queue->first < queue->end; queue->first++) tell(queue, &queue->tokens[queue->first], false);
    queue->bytes = 0;
}
