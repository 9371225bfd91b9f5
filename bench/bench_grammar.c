/* What a grammar costs beside the model: telling the tokens that may follow, at every place of some answers.
 *
 *   bench_grammar [tokenizer.json]
 *
 * Each answer is a text that fits its grammar, as a model would write it, and every round a new matcher walks it,
 * with nothing kept from the round before.  The time of a place is the median over the rounds, so that the worst
 * place is one of the grammar's, not of the scheduler's.  Times are compared with one pass over logits of the
 * vocabulary's size, which every token pays for anyway: finding the likeliest. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "grammar/grammar.h"
#include "made_weights.h"

enum { MOST_PLACES = 4096, ROUNDS = 9 };

static const char record_schema[] =
    "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLength\": 80},"
    " \"age\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 150}, \"score\": {\"type\": \"number\"},"
    " \"born\": {\"type\": \"string\", \"format\": \"date\"}, \"kind\": {\"enum\": [\"person\", \"pet\", \"plant\"]},"
    " \"code\": {\"type\": \"string\", \"pattern\": \"^[A-Z]{2}-[0-9]{4}$\"},"
    " \"tags\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"maxItems\": 20},"
    " \"notes\": {\"type\": [\"string\", \"null\"]}}, \"required\": [\"name\", \"age\", \"tags\"]}";
static const char record_text[] =
    "{\"name\": \"Adélaïde Müller-Ørsted \\\"the second\\\"\", \"age\": 47, \"score\": -12.75e3, \"born\": \"1978-02-28\","
    " \"kind\": \"person\", \"code\": \"QX-0419\", \"tags\": [\"harbour\", \"北京\", \"a longer tag, with commas\"],"
    " \"notes\": \"The engine opened the folder, read its index and found nothing to complain about.\\nThen it left.\"}";
static const char any_text[] =
    "{\n  \"title\": \"春天的时候，河边的柳树先发芽\",\n  \"items\": [\n    {\"id\": 1, \"ok\": true, \"of\": [1.5, -2, null]},\n"
    "    {\"id\": 2, \"ok\": false, \"text\": \"for (size_t i = 0; i < count; i++) total += values[i];\"}\n  ],\n"
    "  \"nested\": {\"a\": {\"b\": {\"c\": [[[\"deep\"]]]}}}\n}";
static const char tree_schema[] =
    "{\"$ref\": \"#/$defs/node\", \"$defs\": {\"node\": {\"anyOf\": [{\"type\": \"object\", \"properties\": {\"kind\":"
    " {\"const\": \"leaf\"}, \"value\": {\"type\": \"number\"}}, \"required\": [\"kind\", \"value\"]}, {\"type\": \"object\","
    " \"properties\": {\"kind\": {\"const\": \"sum\"}, \"of\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/node\"}}},"
    " \"required\": [\"kind\", \"of\"]}]}}}";
static const char tree_text[] =
    "{\"kind\": \"sum\", \"of\": [{\"kind\": \"leaf\", \"value\": 3}, {\"kind\": \"sum\", \"of\": [{\"kind\": \"leaf\","
    " \"value\": 0.25}, {\"kind\": \"leaf\", \"value\": -7}]}]}";
static const char functions[] =
    "[{\"name\": \"get_weather\", \"parameters\": {\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\"},"
    " \"days\": {\"type\": \"integer\"}}, \"required\": [\"city\"]}}, {\"name\": \"run\", \"parameters\": {\"type\":"
    " \"object\", \"properties\": {\"code\": {\"type\": \"string\"}, \"options\": {\"type\": \"object\"}}}}]";
static const char calls_text[] =
    "\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"get_weather\">\n<｜DSML｜ parameter name=\"city\" string=\"true\">"
    "Paris, 11e</｜DSML｜ parameter>\n<｜DSML｜ parameter name=\"days\" string=\"false\">2</｜DSML｜ parameter>\n"
    "</｜DSML｜ invoke>\n<｜DSML｜ invoke name=\"run\">\n<｜DSML｜ parameter name=\"code\" string=\"true\">for i in range(3):\n"
    "    print(\"<\", i, \"/>\")\n</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";

typedef enum grammar_kind { SCHEMA, ANY_OBJECT, CALLS } grammar_kind;

static const struct {
    const char *name;
    grammar_kind kind;
    const char *source, *text;
} answers[] = {
    {"record", SCHEMA, record_schema, record_text},
    {"json_object", ANY_OBJECT, NULL, any_text},
    {"tree", SCHEMA, tree_schema, tree_text},
    {"calls", CALLS, functions, calls_text},
};

static double microseconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int compare_times(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static plumb_status make_grammar(int i, plumb_grammar **grammar, plumb_error *err) {
    json_t *source = answers[i].source ? json_loads(answers[i].source, 0, NULL) : NULL;
    plumb_status status;
    if (answers[i].kind == ANY_OBJECT) status = plumb__grammar_json_object(grammar, err);
    else if (answers[i].kind == CALLS) status = plumb__grammar_calls(source, true, grammar, err);
    else status = plumb__grammar_json_schema(source, grammar, err);
    json_decref(source);
    return status;
}

/* The likeliest token's time: the median of ROUNDS. */
static double time_argmax(int64_t vocab, const float *logits) {
    plumb_sampling greedy = plumb_sampling_default();
    double times[ROUNDS];
    int32_t token;
    greedy.temperature = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double start = microseconds();
        if (plumb_sample(logits, vocab, &greedy, i, &token, NULL, NULL, 0, NULL) != PLUMB_OK) return -1;
        times[i] = microseconds() - start;
    }
    qsort(times, ROUNDS, sizeof *times, compare_times);
    return times[ROUNDS / 2];
}

/* Walks the answer; the times of `allowed`, n of them; 0: the grammar refused it. */
static int walk(plumb_grammar *grammar, const plumb_token_trie *trie, const plumb_tokens *tokens, double *times) {
    plumb_matcher *matcher = NULL;
    int n = 0;
    if (plumb__matcher_create(grammar, trie, &matcher, NULL) != PLUMB_OK) return 0;
    for (int64_t i = 0; i < tokens->count && i < MOST_PLACES; i++) {
        double start = microseconds();
        const uint32_t *allowed = plumb__matcher_allowed(matcher);
        times[n++] = microseconds() - start;
        int32_t token = tokens->ids[i];
        if (!allowed || !(allowed[token / 32] >> token % 32 & 1) || !plumb__matcher_accept(matcher, token)) n = 0;
        if (n == 0) break;
    }
    plumb__matcher_destroy(matcher);
    return n;
}

/* The median over the rounds of each of n places, in the first round's row, sorted. */
static void settle_places(double (*times)[MOST_PLACES], int n) {
    for (int place = 0; place < n; place++) {
        double of_place[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) of_place[round] = times[round][place];
        qsort(of_place, ROUNDS, sizeof *of_place, compare_times);
        times[0][place] = of_place[ROUNDS / 2];
    }
    qsort(times[0], (size_t)n, sizeof *times[0], compare_times);
}

static void report(int i, const plumb_text *text, const plumb_token_trie *trie, double argmax) {
    plumb_grammar *grammar = NULL;
    plumb_tokens tokens = {0};
    plumb_error err;
    double start = microseconds(), compiled;
    double(*times)[MOST_PLACES] = malloc(ROUNDS * sizeof *times);
    int n = 0;
    if (!times || make_grammar(i, &grammar, &err) != PLUMB_OK ||
        plumb_text_encode(text, answers[i].text, strlen(answers[i].text), true, &tokens, &err) != PLUMB_OK) {
        fprintf(stderr, "%s: refused\n", answers[i].name);
        exit(1);
    }
    compiled = microseconds() - start;
    for (int round = 0; round < ROUNDS; round++) {
        n = walk(grammar, trie, &tokens, times[round]);
        if (n == 0) {
            fprintf(stderr, "%s: the answer does not fit\n", answers[i].name);
            exit(1);
        }
    }
    settle_places(times, n);
    double median = times[0][n / 2], worst = times[0][n - 1];
    printf("%-12s %4d tokens  compiled in %6.0f us  median %6.1f us (%5.2f of argmax)  worst %7.1f us (%5.2f)\n",
           answers[i].name, n, compiled, median, median / argmax, worst, worst / argmax);
    plumb_tokens_free(&tokens);
    plumb__grammar_release(grammar);
    free(times);
}

int main(int argc, char **argv) {
    plumb_text *text = NULL;
    plumb_token_trie *trie = NULL;
    plumb_error err;
    bench_random random;
    if (plumb_text_open(argc > 1 ? argv[1] : TOKENIZER, &text, &err) != PLUMB_OK) {
        fprintf(stderr, "cannot open the tokenizer\n");
        return 1;
    }
    int64_t vocab = plumb_text_vocab_size(text);
    double start = microseconds();
    if (plumb__token_trie_create(text, &trie, &err) != PLUMB_OK) return 1;
    printf("tree of %lld tokens in %.1f ms\n", (long long)vocab, 1e-3 * (microseconds() - start));
    float *logits = malloc((size_t)vocab * sizeof *logits);
    if (!logits || !bench_random_open(&random)) return 1;
    bench_draw_floats(&random, 0, 3, logits, vocab);
    double argmax = time_argmax(vocab, logits);
    printf("argmax of %lld logits: %.1f us\n", (long long)vocab, argmax);
    for (int i = 0; i < (int)(sizeof answers / sizeof *answers); i++) report(i, text, trie, argmax);
    bench_random_close(&random);
    free(logits);
    plumb__token_trie_destroy(trie);
    plumb_text_close(text);
    return 0;
}
