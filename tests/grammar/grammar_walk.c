/* Random answers, for others to judge: grammar_walk ROWS.json WALKS writes a line of JSON for each, {"row": index,
 * "text": a JSON text} or {"row": index, "calls": [[name, arguments as text], ...]}.  Tokens are drawn from the
 * mask; ends are preferred from some length on, and every answer must come to its end within MOST_TOKENS. */
#include "grammar_test.h"

enum { FREE_TOKENS = 120, MOST_TOKENS = 1200 };

/* Tokens that end something, those that end most first. */
static const char *const ends[] = {"\"", "</", "}", "]", "<", ">", "/", "\n", "0", "1"};

static bool is_allowed(const uint32_t *allowed, int32_t token) { return allowed[token / 32] >> token % 32 & 1; }

static int32_t draw_end(const vocabulary *v, const uint32_t *allowed, int length) {
    if (is_allowed(allowed, v->eos)) return v->eos;
    if (is_allowed(allowed, v->control)) return v->control;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (int32_t token = 0; token < v->n; token++) {
            size_t size = 0;
            const char *bytes = plumb_text_token_bytes(v->text, token, &size), *end = ends[i];
            /* A quotation mark ends strings of JSON, the second one raw ones: each has its turn. */
            if (i < 2) end = ends[i ^ (length & 1)];
            if (bytes && size == strlen(end) && !memcmp(bytes, end, size) && is_allowed(allowed, token))
                return token;
        }
    return -1;
}

static int32_t draw(const vocabulary *v, const uint32_t *allowed, int length, uint64_t *random) {
    int32_t chosen = -1;
    uint32_t seen = 0;
    if (length >= FREE_TOKENS || next_random(random) % 5 == 0) chosen = draw_end(v, allowed, length);
    if (chosen >= 0) return chosen;
    for (int32_t token = 0; token < v->n; token++)
        if (is_allowed(allowed, token) && next_random(random) % ++seen == 0) chosen = token;
    return chosen;
}

typedef struct answer {
    char text[1 << 16];
    size_t size;
    json_t *calls;
    char arguments[1 << 16];
    size_t arguments_size;
} answer;

static void take_event(void *user, const plumb_chat_event *event) {
    answer *a = user;
    if (event->kind == PLUMB_CHAT_CALL_BEGIN) {
        json_array_append_new(a->calls, json_pack("[s%]", event->bytes, event->size));
        a->arguments_size = 0;
    } else if (event->kind == PLUMB_CHAT_CALL_ARGUMENTS) {
        memcpy(a->arguments + a->arguments_size, event->bytes, event->size);
        a->arguments_size += event->size;
    } else if (event->kind == PLUMB_CHAT_CALL_END) {
        json_t *call = json_array_get(a->calls, json_array_size(a->calls) - 1);
        json_array_append_new(call, json_stringn(a->arguments, a->arguments_size));
    } else {
        T_CHECK(false, "event %d in a block of calls", (int)event->kind);
    }
}

/* False: the answer did not end, or its calls are not what the parser takes. */
static bool walk(const vocabulary *v, plumb_grammar *grammar, bool calls, uint64_t *random, answer *a) {
    plumb_matcher *m = NULL;
    plumb_chat_parser *parser = NULL;
    bool going = plumb__matcher_create(grammar, v->trie, &m, NULL) == PLUMB_OK &&
                 plumb_chat_parser_create(v->text, false, true, take_event, a, &parser, NULL) == PLUMB_OK;
    int length = 0;
    a->size = 0;
    while (going && length < MOST_TOKENS) {
        const uint32_t *allowed = plumb__matcher_allowed(m);
        int32_t token = allowed ? draw(v, allowed, length++, random) : -1;
        size_t size = 0;
        const char *bytes = plumb_text_token_bytes(v->text, token, &size);
        if (token < 0 || !plumb__matcher_accept(m, token)) break;
        if (calls) (void)plumb_chat_parser_push(parser, token);
        if (token == v->eos) going = false;
        else memcpy(a->text + a->size, bytes, size);
        a->size += token == v->eos ? 0 : size;
    }
    if (calls) plumb_chat_parser_finish(parser);
    if (plumb_chat_parser_flags(parser) != 0 && calls) {
        fprintf(stderr, "the parser's flags are %u: %.*s\n", plumb_chat_parser_flags(parser), (int)a->size, a->text);
        going = true;
    }
    plumb_chat_parser_destroy(parser);
    plumb__matcher_destroy(m);
    return !going;
}

static bool walk_row(const vocabulary *v, const json_t *row, size_t index, int walks, answer *a) {
    const json_t *functions = json_object_get(row, "functions");
    plumb_grammar *grammar = NULL;
    plumb_error err = {0};
    uint64_t random = index + 1;
    plumb_status status =
        functions ? plumb__grammar_calls(functions, json_is_true(json_object_get(row, "several")), &grammar, &err)
                  : plumb__grammar_json_schema(json_object_get(row, "schema"), &grammar, &err);
    bool right = status == PLUMB_OK;
    for (int i = 0; right && i < walks; i++) {
        a->calls = json_array();
        right = walk(v, grammar, functions != NULL, &random, a);
        json_t *line = functions ? json_pack("{s:I, s:O}", "row", (json_int_t)index, "calls", a->calls)
                                 : json_pack("{s:I, s:s%}", "row", (json_int_t)index, "text", a->text, a->size);
        if (!line || !right) {
            fprintf(stderr, "row %zu, walk %d: no answer: %.*s\n", index, i, (int)a->size, a->text);
            right = false;
        } else {
            json_dumpf(line, stdout, JSON_COMPACT);
            putchar('\n');
        }
        json_decref(line);
        json_decref(a->calls);
    }
    plumb__grammar_release(grammar);
    return right;
}

int main(int argc, char **argv) {
    json_t *rows = argc == 3 ? json_load_file(argv[1], 0, NULL) : NULL;
    answer *a = calloc(1, sizeof *a);
    vocabulary v = open_vocabulary(DEMO_MODEL);
    const json_t *row;
    size_t i;
    bool right = rows && a;
    /* "walk": false: an end that must be found by chance, as a word after any text. */
    json_array_foreach(rows, i, row) {
        if (!json_is_false(json_object_get(row, "walk"))) right = right && walk_row(&v, row, i, atoi(argv[2]), a);
    }
    close_vocabulary(&v);
    free(a);
    json_decref(rows);
    return right && t_failures == 0 ? 0 : 1;
}
