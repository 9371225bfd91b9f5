/* For tests of the scheduler: generations, and what should become of them. */
#ifndef PLUMB_TESTS_SERVER_SCHEDULER_BY_HAND_H
#define PLUMB_TESTS_SERVER_SCHEDULER_BY_HAND_H

#include "scheduler_client.h"

/* ---- Generations: greedy, with log-probabilities ------------------------------------------------ */

static inline plumb_generation *new_generation(int64_t most_tokens) {
    plumb_generation *g = plumb__generation_create();
    if (!g) exit(1);
    g->sampling.temperature = 0;
    g->most_tokens = most_tokens;
    g->logprobs = true;
    return g;
}

static inline plumb_generation *chat(const char *messages, int64_t most_tokens) {
    plumb_generation *g = new_generation(most_tokens);
    g->messages = strdup(messages);
    return g;
}

static inline plumb_generation *ask(const char *question, int64_t most_tokens) {
    char messages[MOST_TEXT];
    (void)snprintf(messages, sizeof messages, "[{\"role\": \"user\", \"content\": \"%s\"}]", question);
    return chat(messages, most_tokens);
}

static inline plumb_generation *continue_text(const char *prompt, int64_t most_tokens) {
    plumb_generation *g = new_generation(most_tokens);
    g->prompt = strdup(prompt);
    g->prompt_size = strlen(prompt);
    return g;
}

/* `count` ids, others for each seed from the place `same` on. */
static inline plumb_generation *continue_ids(int64_t count, int64_t same, int32_t seed, int64_t most_tokens) {
    plumb_generation *g = new_generation(most_tokens);
    g->ids.ids = malloc((size_t)count * sizeof *g->ids.ids);
    if (!g->ids.ids) exit(1);
    g->ids.count = g->ids.capacity = count;
    for (int32_t i = 0; i < count; i++)
        g->ids.ids[i] = i == 0 ? 0 : 300 + (i * 37 + i / 5 + (i < same ? 0 : seed * 11)) % 3000;
    return g;
}

static inline plumb_generation *with_seed(plumb_generation *g, uint64_t seed) {
    g->sampling.temperature = 1;
    g->sampling.top_p = 1;
    g->sampling.seed = seed;
    g->seed_given = true;
    return g;
}

/* ---- What it should have been: one session, by hand ---------------------------------------------- */

static inline void encode(const plumb_generation *g, plumb_tokens *prompt) {
    plumb_error err;
    if (g->messages) {
        const plumb_chat_options options = {.thinking = g->thinking, .effort = g->effort,
                                            .keep_reasoning = g->keep_reasoning};
        must(plumb_chat_encode(text, g->messages, &options, prompt, &err), &err, "chat");
        return;
    }
    prompt->capacity = 1 + (int64_t)g->prompt_size + g->ids.count;
    prompt->ids = malloc((size_t)prompt->capacity * sizeof *prompt->ids);
    if (!prompt->ids) exit(1);
    prompt->ids[prompt->count++] = (int32_t)info.bos_id;
    if (g->prompt)
        must(plumb_text_encode(text, g->prompt, g->prompt_size, false, prompt, &err), &err, "text");
    else
        memcpy(prompt->ids, g->ids.ids, (size_t)(prompt->count = g->ids.count) * sizeof *prompt->ids);
}

/* Checks tokens and log-probabilities of a run, bit for bit; returns how long the prompt was. */
static inline int64_t check_by_hand(const plumb_generation *g, const client_run *r, uint64_t seed) {
    plumb_session *session = NULL;
    plumb_tokens prompt = {0};
    plumb_sampling sampling = g->sampling;
    const float *logits = NULL;
    plumb_error err;
    sampling.seed = seed;
    encode(g, &prompt);
    must(plumb_session_create(model, NULL, &session, &err), &err, "session");
    must(plumb_session_eval(session, prompt.ids, prompt.count, &logits, &err), &err, "prompt");
    for (int i = 0; i < r->n_tokens; i++) {
        plumb_logprob chosen;
        int32_t token;
        must(plumb_sample(logits, info.vocab_size, &sampling, prompt.count + i, &token, &chosen, NULL, 0, &err),
             &err, "sample");
        T_CHECK(r->token[i].id == token, "token %d: %d, not %d", i, (int)r->token[i].id, (int)token);
        T_CHECK(!memcmp(&r->token[i].logprob, &chosen.logprob, sizeof chosen.logprob), "token %d: %g, not %g", i,
                (double)r->token[i].logprob, (double)chosen.logprob);
        if (i + 1 < r->n_tokens) must(plumb_session_eval(session, &token, 1, &logits, &err), &err, "token");
    }
    int64_t count = prompt.count;
    plumb_tokens_free(&prompt);
    plumb_session_destroy(session);
    return count;
}

#endif
