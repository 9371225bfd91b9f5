/* The mask of a place is what trying every token there gives; control tokens are in it only where they may be. */
#include "base/utf8.h"
#include "grammar/lexeme.h"
#include "grammar_test.h"

#define MOST_TOKENS 400

typedef struct place {
    plumb_grammar *grammar;
    const vocabulary *v;
    int32_t path[MOST_TOKENS];
    int length;
} place;

static plumb_matcher *at_place(const place *p) {
    plumb_matcher *m = NULL;
    bool there = plumb__matcher_create(p->grammar, p->v->trie, &m, NULL) == PLUMB_OK;
    for (int i = 0; there && i < p->length; i++) there = plumb__matcher_accept(m, p->path[i]);
    T_CHECK(there, "the way to a place");
    return m;
}

/* A refused token leaves a matcher where it is, so only accepted ones take a new one. */
static void check_place(const place *p, const uint32_t *allowed, const char *name, int32_t stride) {
    plumb_matcher *m = at_place(p);
    int wrong = 0;
    for (int32_t token = p->length % stride; token < p->v->n; token += stride) {
        bool told = allowed[token / 32] >> token % 32 & 1, taken = plumb__matcher_accept(m, token);
        size_t size = 0;
        const char *bytes = plumb_text_token_bytes(p->v->text, token, &size);
        bool control = plumb_text_is_control(p->v->text, token) && token != p->v->eos && token != p->v->control;
        if (told != taken && wrong++ == 0)
            T_CHECK(false, "%s after %d tokens: token %d \"%.*s\": told %d, taken %d", name, p->length, token,
                    (int)size, bytes, told, taken);
        T_CHECK(!(told && control), "%s: control token %d", name, token);
        if (!taken) continue;
        plumb__matcher_destroy(m);
        m = at_place(p);
    }
    T_CHECK(wrong == 0, "%s after %d tokens: %d differ", name, p->length, wrong);
    plumb__matcher_destroy(m);
}

/* Walks along a text, and checks about `most` places on the way with every stride-th token. */
static void check_along(const vocabulary *v, plumb_grammar *grammar, const char *text, int most, int32_t stride,
                        uint64_t *random) {
    place p = {.grammar = grammar, .v = v};
    size_t at = 0, size = strlen(text), n = 0;
    plumb_matcher *m = at_place(&p);
    for (; at <= size && p.length < MOST_TOKENS; at += n) {
        const uint32_t *allowed = plumb__matcher_allowed(m);
        if (next_random(random) % (size + 1) < (uint32_t)most * 3 || at == size) check_place(&p, allowed, text, stride);
        if (at == size) break;
        int32_t token = draw_token(v, text + at, size - at, random);
        (void)plumb_text_token_bytes(v->text, token, &n);
        if (!plumb__matcher_accept(m, token)) {
            T_CHECK(false, "%s: refused at %zu", text, at);
            break;
        }
        p.path[p.length++] = token;
    }
    plumb__matcher_destroy(m);
}

static const struct {
    const char *schema, *text;
} cases[] = {
    {"{}", "{\"a\": [1.5, -2e7, \"é\\n\\u00e9\\ud83d\\ude00 x\", {\"b\": null}], \"c\": {}}"},
    {"{\"type\": \"object\", \"properties\": {\"alpha\": {\"type\": \"string\", \"minLength\": 3, \"maxLength\": 12}, \"beta\":"
     " {\"type\": \"integer\", \"minimum\": -20, \"maximum\": 1234}, \"gamma\": {\"enum\": [\"in\", \"inner\", 3, null]},"
     " \"delta\": {\"type\": \"number\", \"minimum\": 0.5, \"maximum\": 2}}, \"required\": [\"beta\"],"
     " \"additionalProperties\": {\"type\": \"boolean\"}}",
     "{\"alpha\": \"häl\\\"lo\", \"beta\": 123, \"gamma\": \"inner\", \"delta\": 1.25, \"alphabet\": true}"},
    {"{\"type\": \"string\", \"pattern\": \"^([a-z]+|[^a-z\\\"]{2}) \\\\d{2,3}é?$\"}", "\"word 123é\""},
    {"{\"$ref\": \"#/$defs/n\", \"$defs\": {\"n\": {\"anyOf\": [{\"type\": \"object\", \"properties\": {\"k\": {\"const\":"
     " \"a\"}, \"of\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/n\"}, \"maxItems\": 3}}, \"required\": [\"k\"]},"
     " {\"type\": \"object\", \"properties\": {\"k\": {\"const\": \"ab\"}, \"of\": {\"type\": \"string\"}}, \"required\":"
     " [\"k\"]}, {\"type\": \"string\", \"maxLength\": 2}]}}}",
     "{\"k\": \"a\", \"of\": [{\"k\": \"ab\", \"of\": \"text\"}, \"xy\", {\"k\": \"a\"}]}"},
    {"{\"type\": \"array\", \"prefixItems\": [{\"type\": \"string\", \"format\": \"date\"}, {\"const\": [1, {\"a\": \"b\"}]}],"
     " \"items\": {\"type\": [\"boolean\", \"null\"]}, \"minItems\": 3}",
     "[\"2024-02-29\", [1, {\"a\": \"b\"}], true, null]"},
    /* Lengths that single tokens reach. */
    {"{\"type\": \"string\", \"minLength\": 4, \"maxLength\": 9}", "\"abcdefgh\""},
    {"{\"type\": \"string\", \"minLength\": 6, \"maxLength\": 7}", "\"9z9z9z9\""},
};

static void masks(const char *tokenizer, int most, int32_t stride) {
    vocabulary v = open_vocabulary(tokenizer);
    uint64_t random = 7;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *schema = json_loads(cases[i].schema, 0, NULL);
        plumb_grammar *grammar = NULL;
        bool made = plumb__grammar_json_schema(schema, &grammar, NULL) == PLUMB_OK;
        T_CHECK(made, "%s", cases[i].schema);
        if (made) check_along(&v, grammar, cases[i].text, most, stride, &random);
        plumb__grammar_release(grammar);
        json_decref(schema);
    }
    json_t *functions = json_pack(
        "[{s:s, s:{s:s, s:{s:{s:s}, s:{}}}}, {s:s}]", "name", "run", "parameters", "type", "object", "properties", "code",
        "type", "string", "any", "name", "stop");
    plumb_grammar *grammar = NULL;
    T_CHECK(plumb__grammar_calls(functions, true, &grammar, NULL) == PLUMB_OK, "calls");
    check_along(&v, grammar,
                "\n\n<" D " calls>\n<" D " invoke name=\"run\">\n<" D " parameter name=\"code\" string=\"true\">if a < b </\n"
                "</" D " parameter>\n<" D " parameter name=\"any\" string=\"false\">[1]</" D " parameter>\n</" D
                " invoke>\n<" D " invoke name=\"stop\">\n\n</" D " invoke>\n</" D " calls>",
                2 * most, stride, &random);
    plumb__grammar_release(grammar);
    json_decref(functions);
    close_vocabulary(&v);
}

static void demo_masks(void) { masks(DEMO_MODEL, T_SANITIZED ? 2 : 6, T_SANITIZED ? 7 : 3); }
static void released_masks(void) { masks(RELEASED_TOKENIZER, 2, T_SANITIZED ? 997 : 211); }

/* Near the bounds of a length every place is another; all tokens are tried at each. */
static void the_lengths(void) {
    vocabulary v = open_vocabulary(DEMO_MODEL);
    json_t *schema = json_pack("{s:s, s:i, s:i}", "type", "string", "minLength", 4, "maxLength", 6);
    plumb_grammar *grammar = NULL;
    uint64_t random = 5;
    T_CHECK(plumb__grammar_json_schema(schema, &grammar, NULL) == PLUMB_OK, "lengths");
    check_along(&v, grammar, "\"é1é2é3\"", 100, T_SANITIZED ? 3 : 1, &random);
    plumb__grammar_release(grammar);
    json_decref(schema);
    close_vocabulary(&v);
}

/* Places that look the same at every depth but the last: there no array can be opened. */
static void the_deepest(void) {
    vocabulary v = open_vocabulary(DEMO_MODEL);
    json_t *schema = json_object();
    plumb_grammar *grammar = NULL;
    plumb_tokens bracket = {0};
    T_CHECK(plumb__grammar_json_schema(schema, &grammar, NULL) == PLUMB_OK &&
                plumb_text_encode(v.text, "[", 1, false, &bracket, NULL) == PLUMB_OK && bracket.count == 1,
            "setting up");
    place p = {.grammar = grammar, .v = &v};
    plumb_matcher *m = at_place(&p);
    int depth = 0;
    for (bool taken = true; taken && depth < MOST_TOKENS; depth += taken) {
        const uint32_t *allowed = plumb__matcher_allowed(m);
        int32_t token = bracket.ids[0];
        bool told = allowed[token / 32] >> token % 32 & 1;
        if (depth > 61) check_place(&p, allowed, "the deepest", 1);
        taken = plumb__matcher_accept(m, token);
        T_CHECK(told == taken, "depth %d: told %d, taken %d", depth, told, taken);
        p.path[p.length++] = token;
    }
    T_CHECK(depth > 30 && depth < 100, "%d arrays in each other", depth);
    plumb_tokens_free(&bracket);
    plumb__matcher_destroy(m);
    plumb__grammar_release(grammar);
    json_decref(schema);
    close_vocabulary(&v);
}

/* Enumerates, in order, the byte sequences that are one character of raw text: those of UTF-8 and no others. */
static void characters_from(uint32_t state, char *bytes, size_t size, uint32_t *next, int *wrong) {
    for (int byte = 0; byte < 256; byte++) {
        uint32_t then = plumb__text_step(PLUMB__ALPHABET_RAW, state, (uint8_t)byte);
        if (then == PLUMB__TEXT_REFUSED) continue;
        bytes[size] = (char)byte;
        if (then != PLUMB__TEXT_BETWEEN) {
            if (size < 3) characters_from(then, bytes, size + 1, next, wrong);
            else ++*wrong;
            continue;
        }
        char expected[4];
        while (*next < 0x20 && *next != '\t' && *next != '\n' && *next != '\r') ++*next;
        if (*next == 0xD800) *next = 0xE000;
        *wrong += plumb__utf8_write(expected, *next) != size + 1 || memcmp(expected, bytes, size + 1) != 0;
        ++*next;
    }
}

static void the_characters(void) {
    char bytes[4];
    uint32_t next = 0;
    int wrong = 0;
    characters_from(PLUMB__TEXT_BETWEEN, bytes, 0, &next, &wrong);
    T_CHECK(wrong == 0, "%d sequences that are no characters", wrong);
    T_CHECK(next == 0x110000, "up to U+%X", next);
}

/* After the end only EOS is told, and nothing moves on. */
static void the_end(void) {
    vocabulary v = open_vocabulary(DEMO_MODEL);
    json_t *schema = json_pack("{s:b}", "const", 1);
    plumb_grammar *grammar = NULL;
    plumb_matcher *m = NULL;
    uint64_t random = 3;
    T_CHECK(plumb__grammar_json_schema(schema, &grammar, NULL) == PLUMB_OK, "a constant");
    T_CHECK(plumb__matcher_create(grammar, v.trie, &m, NULL) == PLUMB_OK, "a place");
    T_CHECK(!plumb__matcher_accept(m, v.eos) && !plumb__matcher_accept(m, v.control), "before the end");
    T_CHECK(!plumb__matcher_accept(m, -1) && !plumb__matcher_accept(m, v.n), "no tokens");
    for (const char *text = "true"; *text;) {
        size_t n;
        int32_t token = draw_token(&v, text, strlen(text), &random);
        (void)plumb_text_token_bytes(v.text, token, &n);
        T_CHECK(plumb__matcher_accept(m, token), "%s", text);
        text += n;
    }
    for (int round = 0; round < 2; round++) {
        const uint32_t *allowed = plumb__matcher_allowed(m);
        int told = 0;
        for (int32_t token = 0; token < v.n; token++) told += (int)(allowed[token / 32] >> token % 32 & 1);
        T_CHECK(told == 1 && (allowed[v.eos / 32] >> v.eos % 32 & 1), "%d tokens at the end", told);
        T_CHECK(plumb__matcher_accept(m, v.eos), "EOS");
    }
    T_CHECK(!plumb__matcher_accept(m, v.eos == 0), "behind the end");
    plumb__matcher_destroy(m);
    plumb__grammar_release(grammar);
    json_decref(schema);
    close_vocabulary(&v);
}

/* What is opened can be closed: a place is entered only where its smallest value has room. */
static void room(void) {
    static const char *const closing[] = {"n", "u", "l", "]", ",", "["};
    vocabulary v = open_vocabulary(DEMO_MODEL);
    uint64_t random = 1;
    /* Each array ends with one that takes four more. */
    json_t *schema = json_loads(
        "{\"$ref\": \"#/$defs/n\", \"$defs\": {\"n\": {\"anyOf\": [{\"type\": \"null\"}, {\"type\": \"array\","
        " \"prefixItems\": [{\"$ref\": \"#/$defs/n\"}, {\"$ref\": \"#/$defs/a\"}], \"minItems\": 2}]},"
        " \"a\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/b\"}, \"minItems\": 1, \"maxItems\": 1},"
        " \"b\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/c\"}, \"minItems\": 1, \"maxItems\": 1},"
        " \"c\": {\"type\": \"array\", \"items\": {\"type\": \"null\"}, \"minItems\": 1, \"maxItems\": 1}}}", 0, NULL);
    place p = {.v = &v};
    T_CHECK(plumb__grammar_json_schema(schema, &p.grammar, NULL) == PLUMB_OK, "a schema");
    plumb_matcher *m = at_place(&p);
    int arrays = 0, tokens = 0;
    while (arrays < 1000 && plumb__matcher_accept(m, draw_token(&v, "[", 1, &random))) arrays++;
    T_CHECK(arrays > 8 && arrays < 1000, "%d arrays", arrays);
    for (bool goes_on = true; goes_on && tokens < 10000; tokens++) {
        goes_on = false;
        for (size_t i = 0; !goes_on && i < sizeof closing / sizeof *closing; i++)
            goes_on = plumb__matcher_accept(m, draw_token(&v, closing[i], 1, &random));
    }
    T_CHECK(plumb__matcher_accept(m, v.eos), "stuck after %d arrays and %d tokens", arrays, tokens);
    plumb__matcher_destroy(m);
    plumb__grammar_release(p.grammar);
    json_decref(schema);
    close_vocabulary(&v);
}

T_MAIN({"demo_masks", demo_masks}, {"released_masks", released_masks}, {"the_lengths", the_lengths},
       {"the_deepest", the_deepest}, {"the_characters", the_characters}, {"the_end", the_end}, {"room", room})
