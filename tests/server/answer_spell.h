/* Answers spelled as text, in which {D} {T} {/T} {E} {U} {H} stand for the tokens DSML, <think>, </think>, EOS,
 * <｜User｜> and one that is hidden, become tokens of the demo model. */
#ifndef PLUMB_TESTS_ANSWER_SPELL_H
#define PLUMB_TESTS_ANSWER_SPELL_H

#include <stdlib.h>

#include "plumb.h"
#include "t.h"

static plumb_text *run_text;
static int64_t run_vocab;
static int32_t byte_ids[256];

static inline bool run_set_up(void) {
    plumb_error err = {0};
    if (run_text) return true;
    if (plumb_text_open(PROJECT_DIR "/data/demo-model/tokenizer.json", &run_text, &err) != PLUMB_OK) {
        T_CHECK(false, "%s: %s", err.file, err.found);
        return false;
    }
    run_vocab = plumb_text_vocab_size(run_text);
    for (int32_t id = 0; id < run_vocab; id++) {
        size_t size;
        const char *bytes = plumb_text_token_bytes(run_text, id, &size);
        if (bytes && size == 1) byte_ids[(unsigned char)*bytes] = id;
    }
    return true;
}

static inline void run_append(plumb_tokens *tokens, int32_t id) {
    int32_t *grown = realloc(tokens->ids, (size_t)(tokens->count + 1) * sizeof *grown);
    if (!grown) abort();
    grown[tokens->count++] = id;
    tokens->ids = grown;
    tokens->capacity = tokens->count;
}

static inline size_t run_control_at(const char *at, int32_t *id) {
    static const char *const controls[][2] = {{"{D}", "｜DSML｜"}, {"{T}", "<think>"}, {"{/T}", "</think>"},
                                              {"{E}", "<｜end▁of▁sentence｜>"}, {"{U}", "<｜User｜>"},
                                              {"{H}", "<｜title｜>"}};
    for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++) {
        size_t length = strlen(controls[i][0]);
        if (strncmp(at, controls[i][0], length) != 0) continue;
        *id = plumb_text_token_id(run_text, controls[i][1]);
        return length;
    }
    return 0;
}

/* The tokens of a spelled answer; `by_bytes`: each byte of text is one. */
static inline plumb_tokens run_spell(const char *answer, bool by_bytes) {
    plumb_tokens tokens = {0};
    while (*answer) {
        int32_t id = -1;
        size_t used = run_control_at(answer, &id);
        if (used) {
            run_append(&tokens, id);
        } else if (by_bytes) {
            run_append(&tokens, byte_ids[(unsigned char)*answer]);
            used = 1;
        } else {
            for (used = 1; answer[used] && !run_control_at(answer + used, &id);) used++;
            T_CHECK(plumb_text_encode(run_text, answer, used, false, &tokens, NULL) == PLUMB_OK, "%s", answer);
        }
        answer += used;
    }
    return tokens;
}

#endif
