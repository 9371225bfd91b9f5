/* A schema, or functions to call (the first byte says which), from anywhere.  What is refused says what was
 * expected; what is compiled has a token at every place, accepts each that it tells, and stays on its way. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS = 12 };

/* The allowed token that `choice` picks. */
static int32_t pick(const uint32_t *allowed, int64_t n, uint32_t choice) {
    int64_t words = (n + 31) / 32, start = choice % words;
    for (int64_t i = 0; i < words; i++) {
        int64_t word = (start + i) % words;
        for (int bit = 0; bit < 32; bit++)
            if (allowed[word] >> bit & 1) return (int32_t)(32 * word + bit);
    }
    abort();
}

static void walk(plumb_grammar *grammar, const plumb_token_trie *trie, int64_t n, const uint8_t *data, size_t size) {
    plumb_matcher *m = NULL;
    uint32_t choice = 1;
    if (plumb__matcher_create(grammar, trie, &m, NULL) != PLUMB_OK) abort();
    for (int i = 0; i < STEPS; i++) {
        const uint32_t *allowed = plumb__matcher_allowed(m);
        if (!allowed) abort();
        choice = choice * 1664525 + 1013904223 + (size ? data[(size_t)i % size] : 0);
        if (!plumb__matcher_accept(m, pick(allowed, n, choice >> 8))) abort();
    }
    plumb__matcher_destroy(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static plumb_text *text; /* opened once; the process ends with it */
    static plumb_token_trie *trie;
    plumb_error err = {0};
    if (!text && plumb_text_open(TOKENIZER, &text, &err) != PLUMB_OK) abort();
    if (!trie && plumb__token_trie_create(text, &trie, &err) != PLUMB_OK) abort();
    if (size == 0) return 0;
    json_t *source = json_loadb((const char *)data + 1, size - 1, JSON_DECODE_ANY, NULL);
    plumb_grammar *grammar = NULL;
    plumb_status status = PLUMB_OK;
    if (!source) return 0;
    if (data[0] == 'c') status = plumb__grammar_calls(source, true, &grammar, &err);
    else status = plumb__grammar_json_schema(source, &grammar, &err);
    if (status == PLUMB_OK) walk(grammar, trie, plumb_text_vocab_size(text), data, size);
    else if (!err.expected[0]) abort();
    plumb__grammar_release(grammar);
    json_decref(source);
    return 0;
}
