/* How an answer's tokens are chosen: log-probabilities against a calculation in double precision, bias, seeds,
 * faulty logits, grammars with and without thinking. */
#include <math.h>

#include "answer_run.h"

enum { ROOM = 1 << 13 };

typedef struct chosen {
    answer_run run;
    plumb_answer *answer;
    plumb_answer_options options;
} chosen;

static void begin(chosen *c, const plumb_generation *g, const plumb_token_trie *trie, int64_t vocab_size) {
    plumb_error err = {0};
    *c = (chosen){.run = {.open = -1}};
    c->options = (plumb_answer_options){.generation = g, .text = run_text, .trie = trie, .vocab_size = vocab_size,
                                        .most_tokens = 1000, .new_id = run_new_id, .new_id_user = &c->run,
                                        .sink = run_sink, .sink_user = &c->run};
    T_CHECK(plumb__answer_create(&c->options, &c->answer, &err) == PLUMB_OK, "create: %s", err.found);
}

static void end(chosen *c) {
    plumb__answer_destroy(c->answer);
    run_free(&c->run);
}

/* The token chosen after `position` tokens; -1: an error. */
static int32_t step(chosen *c, const float *logits, int64_t position, bool *over) {
    int32_t token = -1;
    c->run.status = plumb__answer_step(c->answer, logits, position, &token, over, &c->run.err);
    return c->run.status == PLUMB_OK ? token : -1;
}

/* Some logits, -8 to 8. */
static void random_logits(uint64_t seed, float *logits) {
    uint64_t state = seed;
    for (int64_t i = 0; i < run_vocab; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        logits[i] = (float)(int32_t)(state >> 44) / (1 << 16) - 8.0f;
    }
}

/* ---- Log-probabilities --------------------------------------------------------------------------- */

static double exact_logprob(const float *logits, int32_t id) {
    double sum = 0.0;
    for (int64_t i = 0; i < run_vocab; i++) sum += exp((double)logits[i]);
    return (double)logits[id] - log(sum);
}

/* How many ids are better: larger logits, then smaller ids. */
static int64_t rank_of(const float *logits, int32_t id) {
    int64_t better = 0;
    for (int32_t i = 0; i < run_vocab; i++)
        better += logits[i] > logits[id] || (!(logits[i] < logits[id]) && i < id);
    return better;
}

static void logprobs(void) {
    static const int tops[] = {0, 1, 5, 20};
    static float logits[ROOM];
    if (!run_set_up()) return;
    plumb_generation *g = run_generation(true, true);
    plumb_logit_bias bias = {byte_ids['q'], 30.0f};
    g->logprobs = true;
    for (int round = 0; round < 16; round++) {
        chosen c;
        bool over;
        g->top_logprobs = tops[round % 4];
        g->bias = round & 4 ? &bias : NULL;
        g->n_bias = round & 4 ? 1 : 0;
        g->sampling.temperature = round & 8 ? 1.5f : 0.0f;
        begin(&c, g, NULL, run_vocab);
        random_logits((uint64_t)round, logits);
        int32_t token = step(&c, logits, 5, &over);
        /* In reasoning each token is told at once, but for what may be markup. */
        if (c.run.n_tokens == 0) token = step(&c, logits, 6, &over);
        T_CHECK(c.run.n_tokens >= 1, "told");
        if (c.run.n_tokens < 1) return;
        const run_token *told = &c.run.tokens[c.run.n_tokens - 1];
        T_CHECK(told->id == token && (!(round & 4) || round & 8 || token == bias.token), "token %d", token);
        T_CHECK(fabs((double)told->logprob - exact_logprob(logits, token)) < 5e-5, "%g, not %g", (double)told->logprob,
                exact_logprob(logits, token));
        T_CHECK(told->n_top == g->top_logprobs, "%d best", told->n_top);
        for (int i = 0; i < told->n_top; i++) {
            T_CHECK(rank_of(logits, told->top[i].token) == i, "place %d", i);
            T_CHECK(fabs((double)told->top[i].logprob - exact_logprob(logits, told->top[i].token)) < 5e-5,
                    "of place %d", i);
        }
        end(&c);
    }
    g->bias = NULL;
    plumb__generation_destroy(g);
}

/* Which of an answer's tokens are of its content. */
static void of_content(void) {
    static const struct {
        const char *answer, *marks; /* a mark for each byte or control token: c, or - */
        bool thinking;
    } cases[] = {
        {"ab{E}", "cc-", false},
        {"ab{/T}c\n{E}", "---cc-", true},
        {"a\n\n<b{E}", "ccccc-", false},
        {"a{H}b{E}", "c-c-", false},
        {"a{D}b{E}", "ccc-", false},
        {"a<{D}b{E}", "cccc-", false},
        {"é<{D} call{E}", "cc--------" /* half a tag is never shown */, false},
        {"\n\n\n<{D} calls>\n<{D} invoke name=\"f\">\n\n</{D} invoke>\n</{D} calls>x{E}",
         "c--" "---------" "-" "-------------------" "--" "-----------" "-" "----------" "c-", false},
        {"a</{D} calls>b{E}", "c---" "-------" "c-", false},
    };
    if (!run_set_up()) return;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_generation *g = run_generation(cases[i].thinking, true);
        plumb_tokens tokens = run_spell(cases[i].answer, true);
        char marks[256] = "";
        answer_run run;
        g->logprobs = true;
        run_tokens(g, NULL, &tokens, 1000, &run);
        for (int64_t t = 0; t < run.n_tokens && t < 255; t++) marks[t] = run.tokens[t].of_content ? 'c' : '-';
        T_CHECK(!strcmp(marks, cases[i].marks), "%s:\n%s\nnot\n%s", cases[i].answer, marks, cases[i].marks);
        run_free(&run);
        plumb_tokens_free(&tokens);
        plumb__generation_destroy(g);
    }
}

/* ---- Seeds, faults ------------------------------------------------------------------------------- */

enum { DRAWN = 24 };

static void draw(const plumb_generation *g, uint64_t seed, int which, int32_t *ids) {
    static float logits[ROOM];
    chosen c;
    bool over = false;
    begin(&c, g, NULL, run_vocab);
    plumb__answer_destroy(c.answer);
    c.options.seed = seed;
    c.options.run = which;
    T_CHECK(plumb__answer_create(&c.options, &c.answer, NULL) == PLUMB_OK, "create");
    for (int i = 0; i < DRAWN; i++) {
        random_logits((uint64_t)i, logits);
        for (int32_t id = 0; id < run_vocab; id++)
            if (plumb_text_is_stop(run_text, id)) logits[id] = -INFINITY;
        ids[i] = step(&c, logits, i, &over);
    }
    T_CHECK(!over && c.run.status == PLUMB_OK, "%s", c.run.err.found);
    end(&c);
}

static void seeds(void) {
    int32_t first[DRAWN], again[DRAWN], second[DRAWN], other[DRAWN];
    if (!run_set_up()) return;
    plumb_generation *g = run_generation(false, true);
    g->sampling.temperature = 1.0f;
    draw(g, 41, 0, first);
    draw(g, 41, 0, again);
    draw(g, 41, 1, second);
    draw(g, 42, 0, other);
    T_CHECK(memcmp(first, again, sizeof first) == 0, "the same seed");
    T_CHECK(memcmp(first, second, sizeof first) != 0, "another run");
    T_CHECK(memcmp(second, other, sizeof first) == 0, "run i has seed + i");
    draw(g, UINT64_MAX, 1, first);
    draw(g, 0, 0, again);
    T_CHECK(memcmp(first, again, sizeof first) == 0, "seeds wrap");
    plumb__generation_destroy(g);
}

static void faulty_logits(void) {
    static const float faults[] = {NAN, INFINITY};
    static float logits[ROOM];
    if (!run_set_up()) return;
    plumb_generation *g = run_generation(false, true);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        chosen c;
        bool over = false;
        begin(&c, g, NULL, run_vocab);
        random_logits(3, logits);
        T_CHECK(step(&c, logits, 0, &over) >= 0, "%s", c.run.err.found);
        logits[17] = faults[i];
        T_CHECK(step(&c, logits, 1, &over) < 0 && c.run.status == PLUMB_ERROR_VALUE, "%g", (double)faults[i]);
        T_CHECK(c.run.err.offset == 17, "its place");
        logits[17] = 0.0f;
        T_CHECK(step(&c, logits, 1, &over) < 0 && c.run.status == PLUMB_ERROR_ARGUMENT, "it has ended");
        plumb__answer_finish(c.answer, &(plumb_usage){0});
        T_CHECK(c.run.finished == 0 && !over && !plumb__answer_message(c.answer), "without FINISHED");
        end(&c);
    }
    plumb__generation_destroy(g);
}

/* A model may have more rows than the tokenizer has ids. */
static void unknown_ids(void) {
    static float logits[ROOM];
    if (!run_set_up()) return;
    plumb_generation *g = run_generation(false, true);
    g->logprobs = true;
    chosen c;
    bool over = false;
    begin(&c, g, NULL, run_vocab + 3);
    logits[run_vocab + 2] = 9.0f;
    T_CHECK(step(&c, logits, 0, &over) == run_vocab + 2 && !over, "chosen");
    logits[byte_ids['a']] = 19.0f;
    T_CHECK(step(&c, logits, 1, &over) == byte_ids['a'], "goes on");
    T_CHECK(c.run.content.size == 1 && c.run.n_tokens == 2, "no text");
    end(&c);
    logits[byte_ids['a']] = 0.0f;
    plumb__generation_destroy(g);
}

/* ---- Grammars ------------------------------------------------------------------------------------ */

/* The logits of a model that would rather end, begin calls or talk than say `id`. */
static const float *reluctant(int32_t id) {
    static float logits[ROOM];
    memset(logits, 0, sizeof logits);
    logits[plumb_text_token_id(run_text, "<｜end▁of▁sentence｜>")] = 20.0f;
    logits[plumb_text_token_id(run_text, "<｜User｜>")] = 19.0f;
    logits[plumb_text_token_id(run_text, "<｜begin▁of▁sentence｜>")] = 18.0f;
    logits[plumb_text_token_id(run_text, "｜DSML｜")] = 17.0f;
    logits[run_vocab] = 16.0f; /* no token at all */
    if (id >= 0) logits[id] = 15.0f;
    logits[byte_ids['z']] = 14.0f;
    return logits;
}

static plumb_generation *with_grammar(bool thinking) {
    plumb_generation *g = run_generation(thinking, true);
    json_t *schema = json_pack("{s:s,s:{s:{s:s}},s:[s],s:b}", "type", "object", "properties", "a", "type", "integer",
                               "required", "a", "additionalProperties", 0);
    plumb_error err = {0};
    T_CHECK(plumb__grammar_json_schema(schema, &g->grammar, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
    json_decref(schema);
    return g;
}

static void grammars(void) {
    static const struct {
        bool thinking, raw;
        const char *said, *wanted;
    } cases[] = {
        {false, false, "{\"a\":1}", "C({\"a\":1}) =stop"},
        {true, false, "Hm. {{/T}{\"a\":12}", "R(Hm. {) C({\"a\":12}) =stop"},
        {true, false, "{/T}{\"a\":1}", "C({\"a\":1}) =stop"},
        {true, true, "{\"a\":1}", "C({\"a\":1}) =stop"},
    };
    if (!run_set_up()) return;
    plumb_token_trie *trie = NULL;
    T_CHECK(plumb__token_trie_create(run_text, &trie, NULL) == PLUMB_OK, "trie");
    for (size_t i = 0; trie && i < sizeof cases / sizeof cases[0]; i++) {
        plumb_generation *g = with_grammar(cases[i].thinking);
        plumb_tokens tokens = run_spell(cases[i].said, true);
        chosen c;
        bool over = false;
        if (cases[i].raw) {
            free(g->messages);
            g->messages = NULL;
        }
        begin(&c, g, trie, run_vocab + 1);
        for (int64_t t = 0; t < tokens.count; t++) {
            int32_t token = step(&c, reluctant(tokens.ids[t]), t, &over);
            T_CHECK(token == tokens.ids[t] && !over, "%s, token %" PRId64 ": %d, %s", cases[i].said, t, token,
                    c.run.err.found);
        }
        int32_t token = step(&c, reluctant(-1), tokens.count, &over);
        T_CHECK(over && token == plumb_text_token_id(run_text, "<｜end▁of▁sentence｜>"), "it may end: %d", token);
        plumb__answer_finish(c.answer, &(plumb_usage){0});
        plumb__buffer_append(&c.run.line, "", 1);
        T_CHECK(!strcmp(c.run.line.bytes, cases[i].wanted), "%s", c.run.line.bytes);
        end(&c);
        plumb_tokens_free(&tokens);
        plumb__generation_destroy(g);
    }
    plumb__token_trie_destroy(trie);
}

/* What a grammar forbids is not chosen, however the model would like it. */
static void forbidden(void) {
    if (!run_set_up()) return;
    plumb_token_trie *trie = NULL;
    T_CHECK(plumb__token_trie_create(run_text, &trie, NULL) == PLUMB_OK, "trie");
    plumb_generation *g = with_grammar(true);
    plumb_logit_bias bias = {byte_ids['z'], 50.0f};
    g->bias = &bias;
    g->n_bias = 1;
    chosen c;
    bool over = false;
    begin(&c, g, trie, run_vocab);
    T_CHECK(step(&c, reluctant(-1), 0, &over) == byte_ids['z'], "reasoning is free");
    bias.token = plumb_text_token_id(run_text, "</think>");
    T_CHECK(step(&c, reluctant(-1), 1, &over) == bias.token, "until it ends");
    bias.token = byte_ids['z'];
    int32_t token = step(&c, reluctant(byte_ids['{']), 2, &over);
    T_CHECK(token == byte_ids['{'] && !over, "%d", token);
    end(&c);
    plumb_answer *answer = NULL;
    c.options.trie = NULL;
    T_CHECK(plumb__answer_create(&c.options, &answer, NULL) == PLUMB_ERROR_ARGUMENT && !answer, "no trie");
    g->bias = NULL;
    plumb__generation_destroy(g);
    plumb__token_trie_destroy(trie);
}

/* A model that would rather talk makes the call it must make, behind its reasoning and not in it. */
static void forced_calls(void) {
    static const char said[] = "Hm.{/T}\n\n<{D} calls>\n<{D} invoke name=\"f\">\n"
                               "<{D} parameter name=\"n\" string=\"false\">12</{D} parameter>\n</{D} invoke>\n</{D} calls>";
    if (!run_set_up()) return;
    plumb_token_trie *trie = NULL;
    plumb_generation *g = run_generation(true, true);
    json_t *functions = json_pack("[{s:s,s:{s:s,s:{s:{s:s}},s:[s],s:b}}]", "name", "f", "parameters", "type", "object",
                                  "properties", "n", "type", "integer", "required", "n", "additionalProperties", 0);
    T_CHECK(plumb__token_trie_create(run_text, &trie, NULL) == PLUMB_OK &&
                plumb__grammar_calls(functions, false, &g->grammar, NULL) == PLUMB_OK, "grammar");
    json_decref(functions);
    plumb_tokens tokens = run_spell(said, true);
    chosen c;
    bool over = false;
    begin(&c, g, trie, run_vocab);
    for (int64_t t = 0; t < tokens.count; t++) {
        int32_t token = step(&c, reluctant(tokens.ids[t]), t, &over);
        T_CHECK(token == tokens.ids[t] && !over, "token %" PRId64 ": %d, %s", t, token, c.run.err.found);
    }
    (void)step(&c, reluctant(-1), tokens.count, &over);
    plumb__answer_finish(c.answer, &(plumb_usage){0});
    plumb__buffer_append(&c.run.line, "", 1);
    T_CHECK(over && !strcmp(c.run.line.bytes, "R(Hm.) 0:f{\"n\": 12}. =calls"), "%s", c.run.line.bytes);
    end(&c);
    plumb_tokens_free(&tokens);
    plumb__generation_destroy(g);
    plumb__token_trie_destroy(trie);
}

T_MAIN({"logprobs", logprobs}, {"of_content", of_content}, {"seeds", seeds}, {"faulty_logits", faulty_logits},
       {"unknown_ids", unknown_ids}, {"grammars", grammars}, {"forbidden", forbidden}, {"forced_calls", forced_calls})
