/* Runs answers on logits that force given tokens, and writes what was told as one line that a test can spell:
 *      R(reasoning) C(content) 0:name{"key": 1}. 1:other{! =calls
 * "." ends a complete call, "!" a dropped one; "=..." is how it finished, nothing where it did not. */
#ifndef PLUMB_TESTS_ANSWER_RUN_H
#define PLUMB_TESTS_ANSWER_RUN_H

#include "answer_spell.h"
#include "base/utf8.h"
#include "server/answer.h"
#include "text/chat_buffer.h"

typedef struct run_token {
    int32_t id;
    bool of_content;
    float logprob;
    plumb_logprob top[20];
    int n_top;
} run_token;

typedef struct answer_run {
    plumb__buffer line, content, token_bytes; /* token_bytes: those of content */
    run_token *tokens;                        /* TOKEN events */
    int64_t n_tokens, tokens_capacity;
    char ids[16][64];
    int open, calls, dropped, finished;
    plumb_generation_event_kind last;
    bool started;
    plumb_usage usage;
    char *message;
    plumb_tokens said;
    plumb_status status;
    plumb_error err;
    int new_ids;
} answer_run;

static inline void run_new_id(void *user, const char *prefix, char *id) {
    answer_run *run = user;
    (void)snprintf(id, 64, "%s%d", prefix, run->new_ids++);
}

static inline void run_take_token(answer_run *run, const plumb_generation_event *event) {
    size_t size = 0;
    const char *bytes = plumb_text_token_bytes(run_text, event->token.token, &size);
    T_CHECK(event->has_logprob && !event->of_prompt, "a sampled token");
    T_CHECK(size == event->size && (size == 0 || memcmp(bytes, event->bytes, size) == 0), "the token's bytes");
    run_token *grown = realloc(run->tokens, (size_t)(run->n_tokens + 1) * sizeof *grown);
    if (!grown) abort();
    run->tokens = grown;
    run_token *token = &grown[run->n_tokens++];
    *token = (run_token){.id = event->token.token, .of_content = event->of_content,
                         .logprob = event->token.logprob, .n_top = event->n_top};
    memcpy(token->top, event->top, (size_t)event->n_top * sizeof *event->top);
    if (event->of_content) plumb__buffer_append(&run->token_bytes, event->bytes, event->size);
}

static inline void run_finish(answer_run *run, const plumb_generation_event *event) {
    static const char *const names[] = {[PLUMB_FINISH_STOP] = " =stop", [PLUMB_FINISH_STOP_STRING] = " =string",
                                        [PLUMB_FINISH_LENGTH] = " =length", [PLUMB_FINISH_CALLS] = " =calls"};
    plumb__buffer_text(&run->line, names[event->finish] + (run->line.size == 0));
    T_CHECK((event->stop_string != NULL) == (event->finish == PLUMB_FINISH_STOP_STRING), "stop_string");
    if (event->stop_string) {
        plumb__buffer_text(&run->line, "(");
        plumb__buffer_text(&run->line, event->stop_string);
        plumb__buffer_text(&run->line, ")");
    }
    run->usage = *event->usage;
    run->finished++;
}

static inline void run_close_text(answer_run *run) {
    if (run->started && (run->last == PLUMB_GENERATION_REASONING || run->last == PLUMB_GENERATION_CONTENT))
        plumb__buffer_text(&run->line, ")");
}

static inline void run_take_text(answer_run *run, const plumb_generation_event *event) {
    bool reasoning = event->kind == PLUMB_GENERATION_REASONING;
    T_CHECK(run->open < 0, "text inside a call");
    T_CHECK(event->size > 0 && plumb__utf8_valid_prefix(event->bytes, event->size) == event->size, "whole characters");
    if (!run->started || run->last != event->kind) {
        run_close_text(run);
        plumb__buffer_text(&run->line, &(reasoning ? " R(" : " C(")[run->line.size == 0]);
    }
    plumb__buffer_append(&run->line, event->bytes, event->size);
    if (reasoning) return;
    plumb__buffer_append(&run->content, event->bytes, event->size);
    /* What is told has its tokens before it; U+FFFD may be longer than what it stands for. */
    if (run->n_tokens > 0 && !memmem(event->bytes, event->size, PLUMB_UTF8_REPLACEMENT, 3))
        T_CHECK(run->content.size <= run->token_bytes.size, "text before its token");
}

static inline void run_take_call(answer_run *run, const plumb_generation_event *event) {
    char begin[32];
    T_CHECK(event->kind == PLUMB_GENERATION_CALL_BEGIN ? run->open < 0 && event->call == run->calls
                                                       : event->call == run->open, "call %d", event->call);
    if (event->kind == PLUMB_GENERATION_CALL_BEGIN) {
        (void)snprintf(begin, sizeof begin, " %d:", event->call);
        plumb__buffer_text(&run->line, begin + (run->line.size == 0));
        run->open = run->calls++;
        if (event->call < 16) (void)snprintf(run->ids[event->call], 64, "%s", event->id);
    }
    if (event->call < 16) T_CHECK(strcmp(run->ids[event->call], event->id) == 0, "another id: %s", event->id);
    plumb__buffer_append(&run->line, event->bytes, event->size);
    if (event->kind == PLUMB_GENERATION_CALL_END) plumb__buffer_text(&run->line, ".");
    if (event->kind == PLUMB_GENERATION_CALL_DROPPED) plumb__buffer_text(&run->line, "!");
    run->dropped += event->kind == PLUMB_GENERATION_CALL_DROPPED;
    if (event->kind == PLUMB_GENERATION_CALL_END || event->kind == PLUMB_GENERATION_CALL_DROPPED) run->open = -1;
}

static inline void run_sink(void *user, const plumb_generation_event *event) {
    answer_run *run = user;
    T_CHECK(!run->finished, "an event after the last");
    if (event->kind == PLUMB_GENERATION_TOKEN) {
        run_take_token(run, event);
        return;
    }
    if (event->kind == PLUMB_GENERATION_REASONING || event->kind == PLUMB_GENERATION_CONTENT) {
        run_take_text(run, event);
    } else {
        if (event->kind != PLUMB_GENERATION_CALL_ARGUMENTS) run_close_text(run);
        if (event->kind == PLUMB_GENERATION_FINISHED) run_finish(run, event);
        else run_take_call(run, event);
    }
    run->last = event->kind;
    run->started = true;
}

/* Logits that all but force `id` at temperature 0. */
static inline const float *run_logits(int32_t id) {
    static float logits[1 << 16];
    static int32_t forced;
    logits[forced] = 0.0f;
    forced = id;
    logits[id] = 20.0f;
    return logits;
}

/* Feeds `tokens` until the answer is over; the caller frees *run with run_free. */
static inline void run_tokens(const plumb_generation *g, const plumb_token_trie *trie, const plumb_tokens *tokens,
                              int64_t most_tokens, answer_run *run) {
    plumb_answer *answer = NULL;
    *run = (answer_run){.open = -1};
    const plumb_answer_options options = {.generation = g, .text = run_text, .trie = trie, .vocab_size = run_vocab,
                                          .most_tokens = most_tokens, .new_id = run_new_id, .new_id_user = run,
                                          .sink = run_sink, .sink_user = run};
    run->status = plumb__answer_create(&options, &answer, &run->err);
    bool over = most_tokens == 0;
    for (int64_t i = 0; run->status == PLUMB_OK && !over && i < tokens->count; i++) {
        int32_t token = -1;
        run->status = plumb__answer_step(answer, run_logits(tokens->ids[i]), 100 + i, &token, &over, &run->err);
        if (run->status == PLUMB_OK) T_CHECK(token == tokens->ids[i], "%d instead of %d", token, tokens->ids[i]);
    }
    if (run->status == PLUMB_OK) {
        plumb__answer_finish(answer, &(plumb_usage){.prompt_tokens = 100, .cached_tokens = 7});
        run->message = plumb__answer_message(answer);
        for (int64_t i = 0; i < plumb__answer_tokens(answer)->count; i++)
            run_append(&run->said, plumb__answer_tokens(answer)->ids[i]);
    }
    if (!run->finished) run_close_text(run);
    plumb__buffer_append(&run->line, "", 1);
    plumb__answer_destroy(answer);
}

static inline void run_free(answer_run *run) {
    plumb__buffer_free(&run->line);
    plumb__buffer_free(&run->content);
    plumb__buffer_free(&run->token_bytes);
    free(run->tokens);
    free(run->message);
    plumb_tokens_free(&run->said);
}

/* A conversation's generation, greedy; the test owns it. */
static inline plumb_generation *run_generation(bool thinking, bool tools_offered) {
    plumb_generation *g = plumb__generation_create();
    char *messages = malloc(3);
    if (!g || !messages) abort();
    memcpy(messages, "[]", 3);
    g->messages = messages;
    g->thinking = thinking;
    g->tools_offered = tools_offered;
    g->sampling.temperature = 0.0f;
    return g;
}

static inline void run_add_stop(plumb_generation *g, const char *stop) {
    plumb_stop_string *grown = realloc(g->stop, (size_t)(g->n_stop + 1) * sizeof *grown);
    size_t size = strlen(stop);
    char *bytes = malloc(size);
    if (!grown || !bytes) abort();
    memcpy(bytes, stop, size); /* no NUL: nobody may need one */
    g->stop = grown;
    grown[g->n_stop++] = (plumb_stop_string){bytes, size};
}

#endif
