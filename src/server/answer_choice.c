/* Choosing under a grammar; see answer_choice.h.
 *
 * A grammar is of what follows the reasoning.  Until </think> was sampled anything may be, but for what
 * would end the answer there (stop ids) or begin a block of calls, which ends the reasoning too. */
#include "server/answer_choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static size_t words_for(int64_t ids) { return (size_t)((ids + 31) / 32); }

static plumb_status control_id(const plumb_text *text, const char *content, int32_t *id, plumb_error *err) {
    *id = plumb_text_token_id(text, content);
    if (*id >= 0) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_TEXT, NULL, "tokenizer.json added_tokens", -1, "no entry",
                       "the control token %s", content);
}

/* Ids that the tokenizer does not know stay forbidden: no grammar has them, nor can they be shown. */
static plumb_status allow_reasoning(plumb_chooser *c, plumb_error *err) {
    int32_t mark = -1;
    plumb_status status = control_id(c->text, "</think>", &c->think_end_id, err);
    if (status == PLUMB_OK) status = control_id(c->text, "｜DSML｜", &mark, err);
    if (status != PLUMB_OK) return status;
    int64_t known = plumb_text_vocab_size(c->text);
    for (int32_t id = 0; id < known && id < c->vocab_size; id++)
        if (id != mark && !plumb_text_is_stop(c->text, id)) c->allowed[id / 32] |= UINT32_C(1) << id % 32;
    return PLUMB_OK;
}

static plumb_status prepare_grammar(plumb_chooser *c, const plumb_answer_options *options, plumb_error *err) {
    size_t words = words_for(c->vocab_size);
    c->allowed = calloc(words, sizeof *c->allowed);
    if (!c->allowed) return plumb__fail_memory(err, "allowed tokens", words * sizeof *c->allowed);
    c->sampling.allowed = c->allowed;
    plumb_status status = plumb__matcher_create(options->generation->grammar, options->trie, &c->matcher, err);
    if (status == PLUMB_OK && c->reasoning) status = allow_reasoning(c, err);
    return status;
}

plumb_status plumb__chooser_init(plumb_chooser *c, const plumb_answer_options *options, bool reasoning,
                                 plumb_error *err) {
    const plumb_generation *g = options->generation;
    if (g->grammar && !options->trie)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "plumb__answer_create", -1, "a grammar without trie",
                           "a trie of the vocabulary");
    *c = (plumb_chooser){.sampling = g->sampling, .text = options->text, .vocab_size = options->vocab_size,
                         .logprobs = g->logprobs, .reasoning = reasoning};
    c->sampling.seed = options->seed + (uint64_t)options->run;
    c->sampling.bias = g->bias;
    c->sampling.n_bias = g->n_bias;
    c->sampling.allowed = NULL;
    if (g->logprobs) c->n_top = g->top_logprobs < PLUMB_TOP_LOGPROBS_MAX ? g->top_logprobs : PLUMB_TOP_LOGPROBS_MAX;
    if (c->n_top > options->vocab_size) c->n_top = (int)options->vocab_size;
    plumb_status status = g->grammar ? prepare_grammar(c, options, err) : PLUMB_OK;
    if (status != PLUMB_OK) plumb__chooser_free(c);
    return status;
}

void plumb__chooser_free(plumb_chooser *c) {
    plumb__matcher_destroy(c->matcher);
    free(c->allowed);
    *c = (plumb_chooser){0};
}

/* The matcher's set is as long as the tokenizer's vocabulary, which may be shorter than the model's. */
static plumb_status allow_grammar(plumb_chooser *c, plumb_error *err) {
    const uint32_t *allowed = plumb__matcher_allowed(c->matcher);
    size_t words = words_for(c->vocab_size), known = words_for(plumb_text_vocab_size(c->text));
    if (!allowed) return plumb__fail_memory(err, "allowed tokens", known * sizeof *allowed);
    memset(c->allowed, 0, words * sizeof *c->allowed);
    memcpy(c->allowed, allowed, (known < words ? known : words) * sizeof *allowed);
    return PLUMB_OK;
}

/* The place in the grammar after this token; one that ends the answer needs none. */
static plumb_status move_on(plumb_chooser *c, int32_t token, plumb_error *err) {
    if (c->reasoning) {
        c->reasoning = token != c->think_end_id;
        return PLUMB_OK;
    }
    if (plumb_text_is_stop(c->text, token) || plumb__matcher_accept(c->matcher, token)) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_VALUE, NULL, "grammar", token, "a token that it does not go on with",
                       "one that it allowed");
}

plumb_status plumb__chooser_choose(plumb_chooser *c, const float *logits, int64_t position, plumb_choice *choice,
                                   plumb_error *err) {
    plumb_status status = PLUMB_OK;
    if (c->matcher && !c->reasoning) status = allow_grammar(c, err);
    if (status != PLUMB_OK) return status;
    choice->n_top = c->n_top;
    status = plumb_sample(logits, c->vocab_size, &c->sampling, position, &choice->token,
                          c->logprobs ? &choice->logprob : NULL, choice->top, c->n_top, err);
    if (status == PLUMB_OK && c->matcher) status = move_on(c, choice->token, err);
    return status;
}
