/* A place in a grammar: every reading of the tokens so far. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/mask.h"

enum {
    MOST_WITHIN_TOKEN = 1024, /* readings between the bytes of a token */
    MOST_FRAMES_KEPT = 1 << 16
};

struct plumb_matcher {
    plumb_grammar *grammar;
    const plumb_token_trie *trie;
    plumb__machine machine;
    plumb__masks masks;
    plumb__reading readings[PLUMB__MOST_READINGS];
    int n_readings;
    bool ended;               /* EOS was accepted */
    uint32_t *allowed;
    plumb__reading *steps[2]; /* MOST_WITHIN_TOKEN each */
};

static plumb_status begin(plumb_matcher *m, plumb_error *err) {
    m->allowed = calloc((size_t)m->trie->n_words, sizeof *m->allowed);
    for (int i = 0; i < 2; i++) m->steps[i] = calloc(MOST_WITHIN_TOKEN, sizeof *m->steps[i]);
    bool opened = plumb__machine_open(&m->machine, m->grammar);
    opened &= plumb__masks_open(&m->masks, m->trie, &m->machine);
    int32_t lowest = opened ? plumb__frame_push(&m->machine, PLUMB__NODE_FINISHED, 0, -1, 0) : -1;
    if (!m->allowed || !m->steps[0] || !m->steps[1] || lowest < 0)
        return plumb__fail_memory(err, "a place in a grammar", sizeof *m);
    plumb__readings to = {m->readings, 0, PLUMB__MOST_READINGS};
    plumb__begin_step(&m->machine);
    plumb__enter(&m->machine, (plumb__reading){.node = m->grammar->start, .frame = lowest}, &to);
    m->n_readings = to.count;
    return m->machine.out_of_memory ? plumb__fail_memory(err, "a place in a grammar", sizeof *m) : PLUMB_OK;
}

plumb_status plumb__matcher_create(plumb_grammar *grammar, const plumb_token_trie *trie, plumb_matcher **matcher,
                                   plumb_error *err) {
    if (grammar->has_control && trie->control < 0)
        return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, "vocabulary", -1, NULL, "the token ｜DSML｜, for calls");
    plumb_matcher *m = calloc(1, sizeof *m);
    if (!m) return plumb__fail_memory(err, "a place in a grammar", sizeof *m);
    m->grammar = grammar;
    m->trie = trie;
    plumb__grammar_retain(grammar);
    plumb_status status = begin(m, err);
    if (status != PLUMB_OK) plumb__matcher_destroy(m);
    else *matcher = m;
    return status;
}

void plumb__matcher_destroy(plumb_matcher *m) {
    if (!m) return;
    plumb__masks_close(&m->masks);
    plumb__machine_close(&m->machine);
    plumb__grammar_release(m->grammar);
    for (int i = 0; i < 2; i++) free(m->steps[i]);
    free(m->allowed);
    free(m);
}

static void allow(plumb_matcher *m, int32_t token) { m->allowed[token / 32] |= UINT32_C(1) << token % 32; }

const uint32_t *plumb__matcher_allowed(plumb_matcher *m) {
    memset(m->allowed, 0, (size_t)m->trie->n_words * sizeof *m->allowed);
    if (m->ended) allow(m, m->trie->eos);
    if (m->machine.n_frames > MOST_FRAMES_KEPT) {
        plumb__readings set = {m->readings, m->n_readings, PLUMB__MOST_READINGS};
        plumb__masks_forget_whole(&m->masks);
        if (!plumb__machine_compact(&m->machine, &set)) return NULL;
    }
    for (int i = 0; !m->ended && i < m->n_readings; i++) {
        const plumb__reading *r = &m->readings[i];
        plumb__node_kind kind = plumb__node_at(m->grammar, r->node)->kind;
        if (kind == PLUMB__NODE_FINISHED) {
            allow(m, m->trie->eos);
        } else if (kind == PLUMB__NODE_CONTROL) {
            allow(m, m->trie->control);
        } else {
            const uint32_t *mask = plumb__mask_of(&m->masks, r);
            if (!mask) return NULL;
            for (int64_t w = 0; w < m->trie->n_words; w++) m->allowed[w] |= mask[w];
        }
    }
    return m->allowed;
}

/* What comes of the readings by a token's bytes, in steps[*result]; the number of them. */
static int advance_bytes(plumb_matcher *m, const uint8_t *bytes, size_t size, int *result) {
    int now = 0, count = m->n_readings;
    memcpy(m->steps[0], m->readings, (size_t)count * sizeof *m->readings);
    for (size_t i = 0; i < size && count > 0; i++, now = !now) {
        plumb__readings to = {m->steps[!now], 0, MOST_WITHIN_TOKEN};
        plumb__advance(&m->machine, m->steps[now], count, bytes[i], &to);
        count = to.count;
    }
    *result = now;
    return count;
}

bool plumb__matcher_accept(plumb_matcher *m, int32_t token) {
    const plumb__readings set = {m->readings, m->n_readings, PLUMB__MOST_READINGS};
    int count = 0, result = 0;
    if (token < 0 || token >= m->trie->n_tokens) return false;
    if (m->ended || token == m->trie->eos) {
        m->ended |= token == m->trie->eos && plumb__has_node(&set, PLUMB__NODE_FINISHED);
        return m->ended && token == m->trie->eos;
    }
    if (token == m->trie->control) {
        plumb__readings to = {m->steps[0], 0, MOST_WITHIN_TOKEN};
        plumb__advance_control(&m->machine, m->readings, m->n_readings, &to);
        count = to.count;
    } else if (plumb__token_is_text(m->trie, token)) {
        size_t size;
        const char *bytes = plumb_text_token_bytes(m->trie->text, token, &size);
        count = advance_bytes(m, (const uint8_t *)bytes, size, &result);
    }
    if (count == 0 || m->machine.out_of_memory) return false;
    m->n_readings = count < PLUMB__MOST_READINGS ? count : PLUMB__MOST_READINGS;
    memcpy(m->readings, m->steps[result], (size_t)m->n_readings * sizeof *m->readings);
    return true;
}
