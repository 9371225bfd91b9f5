/* Answers without memory: whichever allocation fails, the answer ends with an error that says so, without
 * FINISHED, and nothing is told twice or lost in silence.  The linker puts the functions here in place of the
 * allocator's in everything that is linked statically; jansson is told of them. */
#include "answer_run.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static int64_t allocations, first_failure = INT64_MAX; /* numbers from 0 on */
static bool fails_once;

static bool fails(void) {
    int64_t number = allocations++;
    return fails_once ? number == first_failure : number >= first_failure;
}

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return fails() ? NULL : __real_calloc(count, size); }
void *__wrap_realloc(void *memory, size_t size) { return fails() ? NULL : __real_realloc(memory, size); }

typedef struct outcome {
    plumb_status status;
    int finished;
    bool has_message;
    int64_t told;        /* bytes of text and arguments */
    int64_t allocations; /* without those of the message */
} outcome;

static void count_told(void *user, const plumb_generation_event *event) {
    outcome *o = user;
    if (event->kind == PLUMB_GENERATION_FINISHED) o->finished++;
    else o->told += (int64_t)event->size;
}

static void same_id(void *user, const char *prefix, char *id) {
    (void)user;
    (void)snprintf(id, 64, "%s0", prefix);
}

/* One answer of which allocation number `at` fails, and all later ones but with fails_once. */
static outcome answer_with(const plumb_generation *g, const plumb_token_trie *trie, const plumb_tokens *tokens,
                           int64_t at) {
    outcome o = {0};
    plumb_answer *answer = NULL;
    const plumb_answer_options options = {.generation = g, .text = run_text, .trie = trie, .vocab_size = run_vocab,
                                          .most_tokens = 1000, .new_id = same_id, .sink = count_told, .sink_user = &o};
    bool over = false;
    allocations = 0;
    first_failure = at;
    o.status = plumb__answer_create(&options, &answer, NULL);
    for (int64_t i = 0; o.status == PLUMB_OK && !over && i < tokens->count; i++) {
        int32_t token;
        o.status = plumb__answer_step(answer, run_logits(tokens->ids[i]), i, &token, &over, NULL);
    }
    if (answer) {
        plumb__answer_finish(answer, &(plumb_usage){0});
        o.allocations = allocations;
        char *message = plumb__answer_message(answer);
        first_failure = INT64_MAX;
        o.has_message = message != NULL;
        free(message);
    }
    first_failure = INT64_MAX;
    plumb__answer_destroy(answer);
    return o;
}

static void check_every_allocation(const char *name, const plumb_generation *g, const plumb_token_trie *trie,
                                   const char *answer) {
    plumb_tokens tokens = run_spell(answer, false);
    outcome whole = answer_with(g, trie, &tokens, INT64_MAX);
    T_CHECK(whole.status == PLUMB_OK && whole.finished == 1, "%s: with memory", name);
    for (int64_t at = 0; at < whole.allocations; at++) {
        outcome o = answer_with(g, trie, &tokens, at);
        T_CHECK(o.status == PLUMB_ERROR_MEMORY, "%s, allocation %" PRId64 ": status %d", name, at, (int)o.status);
        T_CHECK(!o.finished && !o.has_message && o.told <= whole.told, "%s, allocation %" PRId64, name, at);
    }
    int64_t at = whole.allocations;
    for (outcome o = {0}; at < whole.allocations + 1000 && o.has_message != whole.has_message; at++) {
        o = answer_with(g, trie, &tokens, at);
        T_CHECK(o.finished == 1 && o.told == whole.told, "%s: only the message was short of memory", name);
    }
    T_CHECK(whole.allocations > 3 && at < whole.allocations + 1000, "%s: %" PRId64 " allocations", name, at);
    plumb_tokens_free(&tokens);
}

static void check_both_ways(const char *name, const plumb_generation *g, const plumb_token_trie *trie,
                            const char *answer) {
    fails_once = false;
    check_every_allocation(name, g, trie, answer);
    fails_once = true;
    check_every_allocation(name, g, trie, answer);
}

static void conversation(void) {
    static const char answer[] =
        "Hm.{/T}One st<{D}.\n\n<{D} calls>\n<{D} invoke name=\"f\">\n"
        "<{D} parameter name=\"a\" string=\"true\">x</{D} parameter>\n"
        "<{D} parameter name=\"b\" string=\"false\">[1, {\"c\": \"d\"}]</{D} parameter>\n</{D} invoke>\n</{D} calls>{E}";
    if (!run_set_up()) return;
    json_set_alloc_funcs(__wrap_malloc, free);
    plumb_generation *g = run_generation(true, true);
    run_add_stop(g, "stop");
    for (int logprobs = 0; logprobs < 2; logprobs++) {
        g->logprobs = logprobs;
        g->top_logprobs = 3;
        check_both_ways("a conversation", g, NULL, answer);
    }
    plumb__generation_destroy(g);
}

static void raw_prompt(void) {
    if (!run_set_up()) return;
    plumb_generation *g = run_generation(false, false);
    free(g->messages);
    g->messages = NULL;
    check_both_ways("a raw prompt", g, NULL, "One two.{E}");
    plumb__generation_destroy(g);
}

static void grammar(void) {
    if (!run_set_up()) return;
    plumb_token_trie *trie = NULL;
    plumb_generation *g = run_generation(true, false);
    T_CHECK(plumb__token_trie_create(run_text, &trie, NULL) == PLUMB_OK &&
                plumb__grammar_json_object(&g->grammar, NULL) == PLUMB_OK, "grammar");
    check_both_ways("a grammar", g, trie, "Hm.{/T}{\"a\":[1,true]}{E}");
    plumb__generation_destroy(g);
    plumb__token_trie_destroy(trie);
}

T_MAIN({"conversation", conversation}, {"raw_prompt", raw_prompt}, {"grammar", grammar})
