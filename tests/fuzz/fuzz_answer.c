/* Any tokens through a whole answer.  The first byte chooses the kind of answer, the second how many tokens it
 * may have; of the rest, bytes 1 to 6 are control tokens, 14 to 27 pairs of bytes and the others themselves.
 * What is told keeps its order, with and without log-probabilities; no stop string is told; complete calls are
 * JSON; under a grammar an answer that ends is what the grammar says.
 *
 * The vocabulary has nothing but those tokens, so that many answers fit into a second. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "server/answer.h"
#include "text/python_json.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { THINKING = 1, NO_TOOLS = 2, RAW = 4, STOPS = 8, OBJECT = 16, CALLS = 32 };

static const char *const stops[] = {"aab", "ab", "\n\n", "b</", "\xC3\xA9"};
static const char *const controls[] = {"｜DSML｜", "<think>", "</think>", "<｜end▁of▁sentence｜>", "<｜User｜>",
                                       "<｜title｜>"};
static const char pairs[][2] = {{'\n', '\n'}, {'<', '/'}, {'a', 'b'}, {'b', '<'}, {'\n', '<'}, {'>', '\n'}, {'s', '>'},
                                {'"', '>'}, {'a', 'a'}, {'\xC3', '\xA9'}, {'\xA9', 'a'}, {'{', '"'}, {'"', ':'},
                                {'}', '}'}};
enum {
    N_STOPS = sizeof stops / sizeof stops[0],
    N_CONTROLS = sizeof controls / sizeof controls[0],
    N_PAIRS = sizeof pairs / sizeof pairs[0],
    FIRST_PAIR = 256,
    FIRST_CONTROL = FIRST_PAIR + N_PAIRS,
    VOCAB = FIRST_CONTROL + N_CONTROLS
};

static plumb_text *text;
static plumb_token_trie *trie;
static plumb_grammar *any_object, *calls_of_f;

static void require(bool holds) {
    if (!holds) abort();
}

/* How byte-level tokenizers spell a byte: as itself where it can be seen, else from U+0100 on. */
static size_t symbol_of(unsigned char byte, char *to) {
    uint32_t others = 0x100;
    for (int b = 0; b <= byte; b++) {
        bool seen = (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
        if (b == byte) return plumb__utf8_write(to, seen ? (uint32_t)b : others);
        others += !seen;
    }
    return 0;
}

static json_t *small_tokenizer(void) {
    json_t *vocab = json_object(), *merges = json_array(), *added = json_array();
    char symbol[16];
    for (int byte = 0; byte < 256; byte++)
        (void)json_object_setn_new(vocab, symbol, symbol_of((unsigned char)byte, symbol), json_integer(byte));
    for (int i = 0; i < N_PAIRS; i++) {
        char right[8];
        size_t left = symbol_of((unsigned char)pairs[i][0], symbol);
        size_t size = symbol_of((unsigned char)pairs[i][1], right);
        (void)json_array_append_new(merges, json_pack("[s%,s%]", symbol, left, right, size));
        memcpy(symbol + left, right, size);
        (void)json_object_setn_new(vocab, symbol, left + size, json_integer(FIRST_PAIR + i));
    }
    for (int i = 0; i < N_CONTROLS; i++)
        (void)json_array_append_new(
            added, json_pack("{s:i,s:s,s:b,s:b,s:b,s:b,s:b}", "id", FIRST_CONTROL + i, "content", controls[i], "special",
                             1, "normalized", 0, "single_word", 0, "lstrip", 0, "rstrip", 0));
    return json_pack("{s:o,s:n,s:{s:s,s:[{s:s,s:b,s:b,s:b}]},s:{s:s},s:{s:s,s:o,s:o}}", "added_tokens", added,
                     "normalizer", "pre_tokenizer", "type", "Sequence", "pretokenizers", "type", "ByteLevel",
                     "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0, "decoder", "type", "ByteLevel",
                     "model", "type", "BPE", "vocab", vocab, "merges", merges);
}

/* f(k: string, n: integers). */
static json_t *functions(void) {
    return json_pack("[{s:s,s:{s:s,s:{s:{s:s},s:{s:s,s:{s:s}}},s:[s],s:b}}]", "name", "f", "parameters", "type",
                     "object", "properties", "k", "type", "string", "n", "type", "array", "items", "type", "integer",
                     "required", "k", "additionalProperties", 0);
}

static void set_up(void) {
    if (text) return;
    json_t *tokenizer = small_tokenizer();
    char *bytes = json_dumps(tokenizer, 0);
    require(bytes && plumb__text_open_bytes("tokenizer", bytes, strlen(bytes), &text, NULL) == PLUMB_OK);
    json_decref(tokenizer);
    free(bytes);
    json_t *offered = functions();
    require(plumb__grammar_calls(offered, true, &calls_of_f, NULL) == PLUMB_OK);
    json_decref(offered);
    require(plumb__token_trie_create(text, &trie, NULL) == PLUMB_OK);
    require(plumb__grammar_json_object(&any_object, NULL) == PLUMB_OK);
}

static int32_t token_of(uint8_t byte) {
    if (byte >= 1 && byte <= N_CONTROLS) return FIRST_CONTROL + byte - 1;
    if (byte >= 14 && byte < 14 + N_PAIRS) return FIRST_PAIR + byte - 14;
    return byte;
}

typedef struct record {
    plumb__buffer said;     /* kinds and bytes, neighbouring pieces joined */
    plumb__buffer run;      /* of visible text, since other events */
    plumb__buffer content, arguments;
    int32_t *tokens; /* (n_tokens) that were chosen */
    int64_t n_tokens;
    const struct record *plain; /* of the same answer without log-probabilities */
    int64_t n_told;             /* TOKEN events */
    bool has_stops, finished;
    int last, open, complete, dropped;
    plumb_finish finish;
} record;

static bool is_json_object(const plumb__buffer *bytes) {
    plumb__python_json json;
    if (plumb__python_json_read(bytes->bytes, (size_t)bytes->size, true, "value", &json, NULL) != PLUMB_OK)
        return false;
    bool is = json.root->kind == PLUMB__PYTHON_DICT;
    plumb__python_json_free(&json);
    return is;
}

static void take_call(record *r, const plumb_generation_event *event) {
    require(strncmp(event->id, "call_", 5) == 0);
    if (event->kind == PLUMB_GENERATION_CALL_BEGIN) {
        require(r->open < 0 && event->call == r->complete + r->dropped);
        r->open = event->call;
        r->arguments.size = 0;
        return;
    }
    require(r->open == event->call);
    if (event->kind == PLUMB_GENERATION_CALL_ARGUMENTS) {
        plumb__buffer_append(&r->arguments, event->bytes, event->size);
        return;
    }
    r->open = -1;
    if (event->kind == PLUMB_GENERATION_CALL_DROPPED) r->dropped++;
    else require(++r->complete > 0 && is_json_object(&r->arguments));
}

/* Tokens are told as they were chosen, none of them late. */
static void take_token(record *r, const plumb_generation_event *event) {
    require(r->plain && r->n_told < r->plain->n_tokens);
    require(r->plain->tokens[r->n_told++] == event->token.token);
}

static void take_content(record *r, const plumb_generation_event *event) {
    require(event->size > 0 && r->open < 0);
    plumb__buffer_append(&r->run, event->bytes, event->size);
    plumb__buffer_append(&r->content, event->bytes, event->size);
    for (int i = 0; r->has_stops && i < N_STOPS; i++)
        require(!memmem(r->run.bytes, (size_t)r->run.size, stops[i], strlen(stops[i])));
}

static void sink(void *user, const plumb_generation_event *event) {
    record *r = user;
    char mark = (char)event->kind;
    require(!r->finished);
    if (event->kind == PLUMB_GENERATION_TOKEN) {
        take_token(r, event);
        return;
    }
    require(plumb__utf8_valid_prefix(event->bytes, event->size) == event->size);
    if (r->last != (int)event->kind) plumb__buffer_append(&r->said, &mark, 1);
    plumb__buffer_append(&r->said, event->bytes, event->size);
    r->last = (int)event->kind;
    switch (event->kind) {
    case PLUMB_GENERATION_CONTENT:
        take_content(r, event);
        return; /* the only kind that leaves the run open */
    case PLUMB_GENERATION_FINISHED:
        r->finished = true;
        r->finish = event->finish;
        require(event->usage->completion_tokens == r->n_tokens && r->open < 0);
        break;
    case PLUMB_GENERATION_REASONING: require(event->size > 0 && r->open < 0); break;
    default: take_call(r, event); break;
    }
    r->run.size = 0;
}

static void new_id(void *user, const char *prefix, char *id) {
    (void)user;
    memcpy(id, prefix, strlen(prefix));
    memcpy(id + strlen(prefix), "x", 2);
}

/* What is remembered is a message, and only of turns that were told whole. */
static void check_message(const plumb_answer *answer, const record *r, bool thinking) {
    char *message = plumb__answer_message(answer);
    const plumb_tokens *said = plumb__answer_tokens(answer);
    require((message != NULL) == (r->finished && r->finish == PLUMB_FINISH_CALLS && r->dropped == 0));
    if (message) {
        plumb_call_memory *memory = NULL;
        require(plumb_call_memory_create(VOCAB, 0, &memory, NULL) == PLUMB_OK);
        require(plumb_call_memory_add(memory, message, thinking, said->ids, said->count, NULL) == PLUMB_OK);
        plumb_call_memory_destroy(memory);
    }
    free(message);
}

static void check_end(const record *r, const plumb_generation *g) {
    if (!r->finished) return;
    if (r->plain) require(r->n_told == r->n_tokens);
    if (r->finish == PLUMB_FINISH_CALLS) require(r->complete > 0);
    if (!g->grammar || g->n_stop > 0 || r->finish == PLUMB_FINISH_LENGTH) return;
    if (g->grammar == any_object) require(r->finish == PLUMB_FINISH_STOP && is_json_object(&r->content));
    else if (g->tools_offered && g->messages)
        require(r->finish == PLUMB_FINISH_CALLS && r->dropped == 0 && r->content.size == 0);
}

static void answer_with(const plumb_generation *g, const uint8_t *data, size_t size, record *r) {
    static float logits[VOCAB];
    plumb_answer *answer = NULL;
    bool over = false;
    const plumb_answer_options options = {.generation = g, .text = text, .trie = trie, .vocab_size = VOCAB,
                                          .most_tokens = 1 + data[1], .new_id = new_id, .sink = sink, .sink_user = r};
    require(plumb__answer_create(&options, &answer, NULL) == PLUMB_OK);
    r->tokens = malloc(size * sizeof *r->tokens);
    require(r->tokens != NULL);
    for (size_t at = 2; at < size && !over; at++) {
        int32_t wanted = token_of(data[at]);
        logits[wanted] = 1.0f;
        require(plumb__answer_step(answer, logits, (int64_t)at, &r->tokens[r->n_tokens], &over, NULL) == PLUMB_OK);
        require(g->grammar || r->tokens[r->n_tokens] == wanted);
        r->n_tokens++;
        logits[wanted] = 0.0f;
    }
    plumb__answer_finish(answer, &(plumb_usage){0});
    require(r->finished == over);
    check_end(r, g);
    check_message(answer, r, g->thinking);
    plumb__answer_destroy(answer);
}

static plumb_generation *generation_of(uint8_t kind) {
    static char messages[] = "[]";
    plumb_generation *g = plumb__generation_create();
    require(g != NULL);
    g->sampling.temperature = 0.0f;
    g->thinking = kind & THINKING;
    g->tools_offered = !(kind & NO_TOOLS);
    if (!(kind & RAW)) g->messages = messages;
    if (kind & CALLS) g->grammar = calls_of_f;
    if (kind & OBJECT) g->grammar = any_object;
    return g;
}

static void record_free(record *r) {
    plumb__buffer_free(&r->said);
    plumb__buffer_free(&r->run);
    plumb__buffer_free(&r->content);
    plumb__buffer_free(&r->arguments);
    free(r->tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    plumb_stop_string given[N_STOPS];
    if (size < 2) return 0;
    set_up();
    plumb_generation *g = generation_of(data[0]);
    for (int i = 0; i < N_STOPS; i++) given[i] = (plumb_stop_string){(char *)(uintptr_t)stops[i], strlen(stops[i])};
    g->stop = given;
    g->n_stop = data[0] & STOPS ? N_STOPS : 0;
    record plain = {.has_stops = g->n_stop > 0, .last = -1, .open = -1};
    record with = {.has_stops = g->n_stop > 0, .last = -1, .open = -1, .plain = &plain};
    answer_with(g, data, size, &plain);
    g->logprobs = true;
    g->top_logprobs = 1;
    answer_with(g, data, size, &with);
    require(plain.said.size == with.said.size);
    require(plain.said.size == 0 || memcmp(plain.said.bytes, with.said.bytes, (size_t)plain.said.size) == 0);
    record_free(&plain);
    record_free(&with);
    g->messages = NULL; /* not its own */
    g->stop = NULL;
    g->n_stop = 0;
    g->grammar = NULL;
    plumb__generation_destroy(g);
    return 0;
}
