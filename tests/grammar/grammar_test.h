/* What tests of grammars share: a tokenizer with its tree, random numbers, texts as tokens cut anywhere. */
#ifndef PLUMB_TESTS_GRAMMAR_TEST_H
#define PLUMB_TESTS_GRAMMAR_TEST_H

#include <stdlib.h>

#include "grammar/grammar.h"
#include "t.h"

#define DEMO_MODEL PROJECT_DIR "/data/demo-model"
#define RELEASED_TOKENIZER TEST_DATA "/tokenizer/tokenizer.json"
#define D "｜DSML｜"

typedef struct vocabulary {
    plumb_text *text;
    plumb_token_trie *trie;
    int32_t n, eos, control;
} vocabulary;

static inline vocabulary open_vocabulary(const char *path) {
    vocabulary v = {0};
    plumb_error err = {0};
    bool opened = plumb_text_open(path, &v.text, &err) == PLUMB_OK &&
                  plumb__token_trie_create(v.text, &v.trie, &err) == PLUMB_OK;
    T_CHECK(opened, "%s: %s, %s", path, err.found, err.expected);
    if (!opened) exit(1);
    v.n = (int32_t)plumb_text_vocab_size(v.text);
    v.eos = plumb_text_token_id(v.text, "<｜end▁of▁sentence｜>");
    v.control = plumb_text_token_id(v.text, D);
    return v;
}

static inline void close_vocabulary(vocabulary *v) {
    plumb__token_trie_destroy(v->trie);
    plumb_text_close(v->text);
}

static inline uint32_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* Any token whose bytes `text` begins with, at random; the control token where its text stands. */
static inline int32_t draw_token(const vocabulary *v, const char *text, size_t size, uint64_t *random) {
    int32_t chosen = -1;
    uint32_t seen = 0;
    if (size >= strlen(D) && !memcmp(text, D, strlen(D))) return v->control;
    for (int32_t id = 0; id < v->n; id++) {
        size_t n = 0;
        const char *bytes = plumb_text_token_bytes(v->text, id, &n);
        if (!bytes || n == 0 || n > size || memcmp(bytes, text, n) || plumb_text_is_control(v->text, id)) continue;
        if (next_random(random) % ++seen == 0) chosen = id;
    }
    return chosen;
}

/* Whether the grammar takes the text, tokens drawn anew; *refused_at (may be NULL): the byte it stopped at. */
static inline bool takes(const vocabulary *v, plumb_grammar *grammar, const char *text, uint64_t *random,
                         size_t *refused_at) {
    plumb_matcher *m = NULL;
    size_t size = strlen(text), at = 0, n = 0;
    bool taken = plumb__matcher_create(grammar, v->trie, &m, NULL) == PLUMB_OK;
    for (; taken && at < size; at += taken ? n : 0) {
        int32_t token = draw_token(v, text + at, size - at, random);
        (void)plumb_text_token_bytes(v->text, token, &n);
        const uint32_t *allowed = plumb__matcher_allowed(m);
        bool told = allowed && (allowed[token / 32] >> token % 32 & 1);
        taken = plumb__matcher_accept(m, token);
        T_CHECK(told == taken, "token %d at %zu of %s: told %d, taken %d", token, at, text, told, taken);
    }
    if (refused_at) *refused_at = at;
    taken = taken && plumb__matcher_accept(m, v->eos);
    plumb__matcher_destroy(m);
    return taken;
}

#endif
