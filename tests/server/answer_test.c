/* What is told of an answer, from tokens that the logits force: turns as the encoder renders them, damaged
 * markup, boundaries of thinking, ends.  Each answer is fed in the tokenizer's tokens and byte by byte, with
 * and without log-probabilities, and must be told alike. */
#include <jansson.h>

#include "answer_run.h"

#define CALLS "\n\n<{D} calls>\n"
#define END "\n</{D} calls>"
#define INVOKE(name, inside) "<{D} invoke name=\"" name "\">\n" inside "\n</{D} invoke>"
#define PARAM(key, type, value) "<{D} parameter name=\"" key "\" string=\"" type "\">" value "</{D} parameter>"
#define PARIS INVOKE("f", PARAM("city", "true", "Paris"))

enum { LIMIT = 100000 };

/* Every sampled token is told, in order; those of content spell it, unless it has characters that broke. */
static void check_tokens(const char *name, const answer_run *run, const plumb_tokens *fed) {
    T_CHECK(run->n_tokens == run->usage.completion_tokens, "%s: %" PRId64 " tokens told of %" PRId64, name,
            run->n_tokens, run->usage.completion_tokens);
    for (int64_t i = 0; i < run->n_tokens && i < fed->count; i++)
        T_CHECK(run->tokens[i].id == fed->ids[i], "%s: token %" PRId64, name, i);
}

typedef struct answer_case {
    const char *name;
    bool thinking;
    const char *answer, *wanted;
} answer_case;

static void check_answer(const answer_case *c, plumb_generation *g, bool cut) {
    for (int way = 0; way < 4; way++) {
        answer_run run;
        plumb_tokens tokens = run_spell(c->answer, way & 1);
        g->logprobs = way & 2;
        run_tokens(g, NULL, &tokens, cut ? tokens.count : LIMIT, &run);
        T_CHECK(run.status == PLUMB_OK, "%s: %s", c->name, run.err.found);
        T_CHECK(strcmp(run.line.bytes, c->wanted) == 0, "%s, way %d:\n%s\nnot\n%s", c->name, way, run.line.bytes,
                c->wanted);
        if (g->logprobs && run.finished) check_tokens(c->name, &run, &tokens);
        run_free(&run);
        plumb_tokens_free(&tokens);
    }
}

static void check_answers(const answer_case *cases, size_t count, bool tools_offered, bool cut) {
    if (!run_set_up()) return;
    for (size_t i = 0; i < count; i++) {
        plumb_generation *g = run_generation(cases[i].thinking, tools_offered);
        check_answer(&cases[i], g, cut);
        plumb__generation_destroy(g);
    }
}
#define CHECK_ANSWERS(cases, tools_offered, cut) \
    check_answers(cases, sizeof cases / sizeof cases[0], tools_offered, cut)

static void plain_answers(void) {
    static const answer_case cases[] = {
        {"plain", false, "Hello 北京 <b>!{E}", "C(Hello 北京 <b>!) =stop"},
        {"empty", false, "{E}", "=stop"},
        {"another turn begins", false, "Hi.{U}", "C(Hi.) =stop"},
        {"reasoning", true, "Easy.\n{/T}4\n\n{E}", "R(Easy.\n) C(4\n\n) =stop"},
        {"a hidden token", false, "a{H}b{E}", "C(ab) =stop"},
        {"goes on", false, "a", "C(a)"},
        {"one call", false, CALLS PARIS END "{E}", "0:f{\"city\": \"Paris\"}. =calls"},
        {"text, two calls", true, "Hm.{/T}Wait." CALLS PARIS "\n" INVOKE("g", "") END "{E}",
         "R(Hm.) C(Wait.) 0:f{\"city\": \"Paris\"}. 1:g{}. =calls"},
        {"a call, then another turn", false, CALLS PARIS END "{U}", "0:f{\"city\": \"Paris\"}. =calls"},
    };
    CHECK_ANSWERS(cases, true, false);
}

/* T1: a turn of the encoder's own. */
static void rendered_turn(void) {
    static const char question[] = "{\"role\":\"user\",\"content\":\"?\"}";
    static const char turn[] =
        "{\"role\":\"assistant\",\"reasoning_content\":\"Look it up.\",\"content\":\"One moment.\",\"tool_calls\":[{"
        "\"type\":\"function\",\"function\":{\"name\":\"lookup\",\"arguments\":"
        "\"{\\\"query\\\": \\\"{\\\\\\\"a\\\\\\\": 1}\\\", \\\"limit\\\": 2, \\\"flags\\\": [1, true, null]}\"}}]}";
    static const char wanted[] = "R(Look it up.) C(One moment.) 0:lookup{\"query\": \"{\\\"a\\\": 1}\", \"limit\": 2, "
                                 "\"flags\": [1, true, null]}. =calls";
    char messages[1024];
    plumb_tokens prompt = {0}, whole = {0}, answer = {0};
    plumb_chat_options options = {.thinking = true};
    if (!run_set_up()) return;
    (void)snprintf(messages, sizeof messages, "[%s]", question);
    T_CHECK(plumb_chat_encode(run_text, messages, &options, &prompt, NULL) == PLUMB_OK, "question");
    (void)snprintf(messages, sizeof messages, "[%s,%s]", question, turn);
    T_CHECK(plumb_chat_encode(run_text, messages, &options, &whole, NULL) == PLUMB_OK, "turn");
    T_CHECK(memcmp(prompt.ids, whole.ids, (size_t)prompt.count * sizeof *prompt.ids) == 0,
            "one is the other's beginning");
    for (int64_t i = prompt.count; i < whole.count; i++) run_append(&answer, whole.ids[i]);
    plumb_generation *g = run_generation(true, true);
    answer_run run;
    run_tokens(g, NULL, &answer, LIMIT, &run);
    T_CHECK(strcmp(run.line.bytes, wanted) == 0, "%s", run.line.bytes);
    T_CHECK(run.said.count == answer.count - 1, "without EOS");
    run_free(&run);
    plumb__generation_destroy(g);
    plumb_tokens_free(&prompt);
    plumb_tokens_free(&whole);
    plumb_tokens_free(&answer);
}

/* T2 */
static void damaged_markup(void) {
    static const answer_case cases[] = {
        {"a: the opener toolcalls", false, "\n\n<{D} toolcalls>\n" PARIS "\n</{D} toolcalls>{E}",
         "0:f{\"city\": \"Paris\"}. =calls"},
        {"a: the opener of V4, no spaces", false, "\n\n<{D}tool_calls>\n<{D}invoke name=\"f\">\n\n</{D}invoke>\n"
         "</{D}tool_calls>{E}", "0:f{}. =calls"},
        {"a: no opener", false, "\n\n" PARIS "{E}", "0:f{\"city\": \"Paris\"}. =calls"},
        {"b: no closer of the block", false, CALLS PARIS "{E}", "0:f{\"city\": \"Paris\"}. =calls"},
        {"b: no closer of the call", false, CALLS "<{D} invoke name=\"f\">\n" PARAM("city", "true", "Paris") "{E}",
         "0:f{\"city\": \"Paris\"}. =calls"},
        {"b: no closer of the value", false,
         CALLS "<{D} invoke name=\"f\">\n<{D} parameter name=\"k\" string=\"true\">v{E}",
         "0:f{\"k\": \"v! =stop"},
        {"b: half a closer", false, CALLS "<{D} invoke name=\"f\">\n" PARAM("k", "true", "v") "\n</{D} inv{E}",
         "0:f{\"k\": \"v\"}. =calls"},
        {"b: one call whole, one cut", false, CALLS PARIS "\n<{D} invoke name=\"g\">\n<{D} parameter name=\"k\" "
         "string=\"false\">[1,{E}", "0:f{\"city\": \"Paris\"}. 1:g{\"k\": ! =calls"},
        {"c: a closer inside a value", false,
         CALLS INVOKE("sh", PARAM("cmd", "true", "ls 2>&1 </parameter> x")) END "{E}",
         "0:sh{\"cmd\": \"ls 2>&1 </parameter> x\"}. =calls"},
        {"c: a closer spelled out", false,
         CALLS INVOKE("sh", PARAM("cmd", "true", "</｜DSML｜ parameter></｜DSML｜ invoke>")) END "{E}",
         "0:sh{\"cmd\": \"</｜DSML｜ parameter></｜DSML｜ invoke>\"}. =calls"},
        {"d: prose about calls", false, "Write <｜DSML｜ calls> and </｜DSML｜ calls>.{E}",
         "C(Write <｜DSML｜ calls> and </｜DSML｜ calls>.) =stop"},
        {"d: a whole block in prose", false, "\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n\n</｜DSML｜ invoke>\n"
         "</｜DSML｜ calls>{E}",
         "C(\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n\n</｜DSML｜ invoke>\n</｜DSML｜ calls>) =stop"},
        {"the mark alone is text", false, "a {D} b{E}", "C(a ｜DSML｜ b) =stop"},
        {"half an opener at the end", false, "a\n\n<{D} cal{E}", "C(a\n\n) =stop"},
        {"text behind the block", false, CALLS PARIS END "\nDone.{E}", "0:f{\"city\": \"Paris\"}. C(Done.) =calls"},
        {"a block repeated behind text", false, CALLS PARIS END "Again:" CALLS PARIS END "{E}",
         "0:f{\"city\": \"Paris\"}. C(Again:) =calls"},
        {"no JSON in a value", false, CALLS INVOKE("f", PARAM("n", "false", "1,")) END "{E}",
         "0:f{\"n\": \"1,\"}. =calls"},
        {"text in a call drops it", false, CALLS INVOKE("f", "oops") END "{E}", "0:f! =stop"},
        {"closers without openers", false, "a</{D} parameter></{D} calls>b{E}", "C(ab) =stop"},
    };
    CHECK_ANSWERS(cases, true, false);
}

/* T3 */
static void thinking_boundaries(void) {
    static const answer_case cases[] = {
        {"EOS in thinking", true, "Hm, 4{E}", "R(Hm, 4) =stop"},
        {"</think> twice", true, "Hm{/T}4{/T}5{E}", "R(Hm) C(45) =stop"},
        {"</think> at once", true, "{/T}4{E}", "C(4) =stop"},
        {"</think> spelled out", true, "a</think>b{/T}4{E}", "R(a</think>b) C(4) =stop"},
        {"a block inside thinking", true, "Hm." CALLS PARIS END "{E}", "R(Hm.) 0:f{\"city\": \"Paris\"}. =calls"},
        {"a block inside thinking, then its end", true, "Hm." CALLS PARIS END "{/T}Done.{E}",
         "R(Hm.) 0:f{\"city\": \"Paris\"}. C(Done.) =calls"},
        {"the block again behind </think>", true, "Hm." CALLS PARIS END "{/T}" CALLS PARIS END "{E}",
         "R(Hm.) 0:f{\"city\": \"Paris\"}. =calls"},
        {"thinks again", true, "Hm{/T}4{T}wait{/T}5{E}", "R(Hm) C(4) R(wait) C(5) =stop"},
        {"<think> without thinking", false, "{T}Hm{/T}4{E}", "R(Hm) C(4) =stop"},
        {"</think> without thinking", false, "{/T}4{E}", "C(4) =stop"},
        {"tokens of thinking in a value", false, CALLS INVOKE("f", PARAM("k", "true", "{T}x{/T}")) END "{E}",
         "0:f{\"k\": \"<think>x</think>\"}. =calls"},
    };
    static const answer_case unclosed[] = {
        {"<think> unclosed", true, "Hm, 4 it is", "R(Hm, 4 it is) =length"},
        {"line feeds held", true, "Hm\n\n", "R(Hm\n\n) =length"},
    };
    CHECK_ANSWERS(cases, true, false);
    CHECK_ANSWERS(unclosed, true, true);
}

/* most_tokens: as many as there are. */
static void cut_answers(void) {
    static const answer_case cases[] = {
        {"in text", false, "Hello", "C(Hello) =length"},
        {"in what may be markup", false, "a\n\n<", "C(a\n\n<) =length"},
        {"in markup", false, "a\n\n<{D} cal", "C(a\n\n) =length"},
        {"in a call", false, CALLS "<{D} invoke name=\"f\">\n" PARAM("k", "true", "v"), "0:f{\"k\": \"v\"! =length"},
        {"in a value", false, CALLS "<{D} invoke name=\"f\">\n<{D} parameter name=\"k\" string=\"true\">北",
         "0:f{\"k\": \"北! =length"},
        {"in the name of a second call", false, CALLS PARIS "\n<{D} invoke name=\"g",
         "0:f{\"city\": \"Paris\"}. =length"},
        {"behind the block", false, CALLS PARIS END, "0:f{\"city\": \"Paris\"}. =length"},
        {"at EOS", false, "a{E}", "C(a) =stop"},
    };
    static const answer_case half = {"in a character", false, "\xE5\x8C", ""};
    CHECK_ANSWERS(cases, true, true);
    if (!run_set_up()) return;
    plumb_generation *g = run_generation(false, true);
    plumb_tokens tokens = run_spell(half.answer, true);
    answer_run run;
    run_tokens(g, NULL, &tokens, 2, &run);
    T_CHECK(strcmp(run.line.bytes, "C(\xEF\xBF\xBD) =length") == 0, "%s", run.line.bytes);
    run_free(&run);
    run_tokens(g, NULL, &(plumb_tokens){0}, 0, &run);
    T_CHECK(strcmp(run.line.bytes, "=length") == 0 && run.usage.completion_tokens == 0, "none asked for");
    run_free(&run);
    plumb_tokens_free(&tokens);
    plumb__generation_destroy(g);
}

static void no_tools_offered(void) {
    static const answer_case cases[] = {
        {"suppressed", false, "Hi" CALLS PARIS END "{E}", "C(Hi) =stop"},
        {"suppressed, text behind", false, "Hi" CALLS PARIS END "Ho{E}", "C(HiHo) =stop"},
        {"suppressed in reasoning", true, "Hm" CALLS PARIS END "{/T}Ho{E}", "R(Hm) C(Ho) =stop"},
    };
    CHECK_ANSWERS(cases, false, false);
}

/* A raw prompt's answer is text; control tokens are not shown. */
static void raw_prompts(void) {
    static const answer_case cases[] = {
        {"text", false, "Hello 北京{E}", "C(Hello 北京) =stop"},
        {"markup is text", false, "a{/T}\n\n<{D} calls>{T}b{E}", "C(a\n\n< calls>b) =stop"},
        {"another turn", false, "a{U}", "C(a) =stop"},
    };
    if (!run_set_up()) return;
    plumb_generation *g = run_generation(false, true);
    free(g->messages);
    g->messages = NULL;
    g->thinking = true; /* of conversations only */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check_answer(&cases[i], g, false);
    plumb_tokens tokens = run_spell("a\xE5\x8C", true);
    answer_run run;
    g->logprobs = true;
    run_tokens(g, NULL, &tokens, 3, &run);
    T_CHECK(strcmp(run.line.bytes, "C(a\xEF\xBF\xBD) =length") == 0, "%s", run.line.bytes);
    T_CHECK(run.n_tokens == 3, "%" PRId64 " tokens", run.n_tokens);
    run_free(&run);
    plumb_tokens_free(&tokens);
    plumb__generation_destroy(g);
}

static void counts(void) {
    static const struct {
        const char *answer;
        int64_t completion, reasoning;
    } cases[] = {{"abc{/T}de{E}", 7, 4}, {"{/T}{E}", 2, 1}, {"abc{E}", 4, 4}, {"{/T}a{T}b{/T}c{E}", 7, 3}};
    if (!run_set_up()) return;
    plumb_generation *g = run_generation(true, true);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_tokens tokens = run_spell(cases[i].answer, true);
        answer_run run;
        run_tokens(g, NULL, &tokens, LIMIT, &run);
        T_CHECK(run.usage.completion_tokens == cases[i].completion && run.usage.reasoning_tokens == cases[i].reasoning,
                "%s: %" PRId64 ", %" PRId64, cases[i].answer, run.usage.completion_tokens, run.usage.reasoning_tokens);
        T_CHECK(run.usage.prompt_tokens == 100 && run.usage.cached_tokens == 7, "as measured");
        run_free(&run);
        plumb_tokens_free(&tokens);
    }
    plumb__generation_destroy(g);
}

/* The message of an answer with calls, sent back, gets the sampled tokens into the prompt. */
static void message_is_remembered(void) {
    static const char answer[] = "Hm.\n{/T}One\t\"m\".\n"
                                 CALLS INVOKE("f", PARAM("g", "false", "{\"b\":  1.0,\"a\":[1]}")) "\n"
                                 INVOKE("f", PARAM("s", "true", "北\\\n")) END "{E}";
    if (!run_set_up()) return;
    plumb_generation *g = run_generation(true, true);
    g->call_prefix = "toolu_";
    plumb_tokens tokens = run_spell(answer, true), prompt = {0};
    plumb_call_memory *memory = NULL;
    answer_run run;
    char messages[2048];
    run_tokens(g, NULL, &tokens, LIMIT, &run);
    json_t *json = run.message ? json_loads(run.message, 0, NULL) : NULL;
    const char *role, *content, *reasoning, *id[2], *type, *name, *arguments[2];
    bool readable = json && json_unpack(json, "{s:s,s:s,s:s,s:[{s:s,s:s,s:{s:s,s:s}},{s:s,s:{s:s}}!]!}", "role", &role,
                                        "content", &content, "reasoning_content", &reasoning, "tool_calls", "id",
                                        &id[0], "type", &type, "function", "name", &name, "arguments", &arguments[0],
                                        "id", &id[1], "function", "arguments", &arguments[1]) == 0;
    T_CHECK(readable, "%s", run.message ? run.message : "no message");
    if (readable) {
        T_CHECK(!strcmp(role, "assistant") && !strcmp(content, "One\t\"m\".\n") && !strcmp(reasoning, "Hm.\n"), "%s",
                run.message);
        T_CHECK(!strcmp(type, "function") && !strcmp(name, "f") && !strcmp(id[0], "toolu_0") &&
                    !strcmp(id[1], "toolu_1"),
                "%s", run.message);
        T_CHECK(!strcmp(arguments[0], "{\"g\": {\"b\":  1.0,\"a\":[1]}}") &&
                    !strcmp(arguments[1], "{\"s\": \"北\\\\\\n\"}"),
                "%s", run.message);
        T_CHECK(!strcmp(run.ids[0], id[0]) && !strcmp(run.ids[1], id[1]), "the ids that were told");
        T_CHECK(plumb_call_memory_create(run_vocab, 0, &memory, NULL) == PLUMB_OK, "memory");
        T_CHECK(plumb_call_memory_add(memory, run.message, true, run.said.ids, run.said.count, NULL) == PLUMB_OK,
                "add");
        (void)snprintf(messages, sizeof messages, "[{\"role\":\"user\",\"content\":\"?\"},%s]", run.message);
        T_CHECK(plumb_chat_encode(run_text, messages, &(plumb_chat_options){.thinking = true, .calls = memory}, &prompt,
                                  NULL) == PLUMB_OK, "encode");
        T_CHECK(prompt.count > tokens.count && memcmp(prompt.ids + prompt.count - tokens.count, tokens.ids,
                                                      (size_t)tokens.count * sizeof *tokens.ids) == 0, "as sampled");
    }
    json_decref(json);
    plumb_call_memory_destroy(memory);
    plumb_tokens_free(&prompt);
    plumb_tokens_free(&tokens);
    run_free(&run);
    plumb__generation_destroy(g);
}

/* Turns that are no longer what was told are not remembered. */
static void messages_that_are_none(void) {
    static const char *const answers[] = {
        "No calls.{E}", CALLS PARIS END, CALLS "<{D} invoke name=\"f\">\noops\n</{D} invoke>\n" PARIS END "{E}",
        CALLS PARIS END "stop here{E}",
    };
    if (!run_set_up()) return;
    plumb_generation *g = run_generation(false, true);
    run_add_stop(g, "stop");
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        plumb_tokens tokens = run_spell(answers[i], false);
        answer_run run;
        run_tokens(g, NULL, &tokens, i == 1 ? tokens.count : LIMIT, &run);
        T_CHECK(run.finished == 1 && !run.message, "%s: %s", answers[i], run.message ? run.message : run.line.bytes);
        run_free(&run);
        plumb_tokens_free(&tokens);
    }
    plumb__generation_destroy(g);
}

/* What a caller may not do. */
static void refusals(void) {
    if (!run_set_up()) return;
    plumb_generation *g = run_generation(false, true);
    answer_run run = {.open = -1};
    plumb_answer *answer = NULL;
    plumb_error err;
    plumb_answer_options options = {.generation = g, .text = run_text, .vocab_size = run_vocab, .most_tokens = -1,
                                    .new_id = run_new_id, .new_id_user = &run, .sink = run_sink, .sink_user = &run};
    T_CHECK(plumb__answer_create(&options, &answer, &err) == PLUMB_ERROR_ARGUMENT && !answer, "most_tokens");
    options.most_tokens = 1;
    options.sink = NULL;
    T_CHECK(plumb__answer_create(&options, &answer, &err) == PLUMB_ERROR_ARGUMENT && !answer, "no sink");
    options.sink = run_sink;
    T_CHECK(plumb__answer_create(&options, &answer, &err) == PLUMB_OK, "create");
    int32_t token;
    bool over = false;
    plumb__answer_finish(answer, &(plumb_usage){0});
    T_CHECK(run.finished == 0, "not over yet");
    T_CHECK(plumb__answer_step(answer, run_logits(byte_ids['a']), 0, &token, &over, &err) == PLUMB_OK && over,
            "a step");
    T_CHECK(plumb__answer_step(answer, run_logits(byte_ids['a']), 1, &token, &over, &err) == PLUMB_ERROR_ARGUMENT,
            "over");
    plumb__answer_finish(answer, &(plumb_usage){0});
    plumb__answer_finish(answer, &(plumb_usage){0});
    T_CHECK(run.finished <= 1, "told twice");
    plumb__answer_destroy(answer);
    plumb__answer_destroy(NULL);
    run_free(&run);
    plumb__generation_destroy(g);
}

T_MAIN({"plain_answers", plain_answers}, {"rendered_turn", rendered_turn}, {"damaged_markup", damaged_markup},
       {"thinking_boundaries", thinking_boundaries}, {"cut_answers", cut_answers},
       {"no_tools_offered", no_tools_offered}, {"raw_prompts", raw_prompts}, {"counts", counts},
       {"message_is_remembered", message_is_remembered}, {"messages_that_are_none", messages_that_are_none},
       {"refusals", refusals})
