/* Building the tree of a vocabulary. */
#include "grammar/token_trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grammar/lexeme.h"

enum { LONGEST_TOKEN = 255 };

typedef struct sorted_token {
    const uint8_t *bytes;
    size_t size;
    int32_t id;
} sorted_token;

static int compare_tokens(const void *left, const void *right) {
    const sorted_token *a = left, *b = right;
    int order = memcmp(a->bytes, b->bytes, a->size < b->size ? a->size : b->size);
    if (order == 0) order = (a->size > b->size) - (a->size < b->size);
    return order ? order : (a->id > b->id) - (a->id < b->id);
}

/* Added tokens are no text, whatever they are shown as. */
static bool is_added(const plumb_text *text, int32_t id, const uint8_t *bytes, size_t size) {
    char content[LONGEST_TOKEN + 1];
    if (plumb_text_is_control(text, id)) return true;
    memcpy(content, bytes, size);
    content[size] = '\0';
    return strlen(content) == size && plumb_text_token_id(text, content) == id;
}

static int64_t gather(const plumb_token_trie *trie, sorted_token *tokens) {
    int64_t n = 0;
    for (int32_t id = 0; id < trie->n_tokens; id++) {
        size_t size = 0;
        const uint8_t *bytes = (const uint8_t *)plumb_text_token_bytes(trie->text, id, &size);
        if (!bytes || size == 0 || size > LONGEST_TOKEN || is_added(trie->text, id, bytes, size)) continue;
        tokens[n++] = (sorted_token){bytes, size, id};
    }
    qsort(tokens, (size_t)n, sizeof *tokens, compare_tokens);
    return n;
}

static size_t shared_prefix(const sorted_token *a, const sorted_token *b) {
    size_t most = a->size < b->size ? a->size : b->size, n = 0;
    while (n < most && a->bytes[n] == b->bytes[n]) n++;
    return n;
}

static int64_t count_nodes(const sorted_token *tokens, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += (int64_t)(tokens[i].size - (i ? shared_prefix(&tokens[i - 1], &tokens[i]) : 0));
    return count;
}

static void fill_nodes(plumb_token_trie *trie, const sorted_token *tokens, int64_t n) {
    uint32_t open[LONGEST_TOKEN + 1], node = 0; /* the nodes from the root to the last token */
    size_t n_open = 0;
    for (int64_t i = 0; i < n; i++) {
        size_t shared = i ? shared_prefix(&tokens[i - 1], &tokens[i]) : 0;
        while (n_open > shared) trie->end[open[--n_open]] = node;
        while (n_open < tokens[i].size) {
            open[n_open] = node;
            trie->byte[node] = tokens[i].bytes[n_open];
            trie->first[node] = (uint32_t)i;
            trie->depth[node++] = (uint8_t)++n_open;
        }
        trie->sorted[i] = tokens[i].id;
        trie->text_tokens[tokens[i].id / 32] |= UINT32_C(1) << tokens[i].id % 32;
        if (tokens[i].size > (size_t)trie->longest) trie->longest = (int32_t)tokens[i].size;
    }
    while (n_open > 0) trie->end[open[--n_open]] = node;
    trie->first[node] = (uint32_t)n;
}

/* Characters, or -1 if the token is not plain. */
static int count_characters(plumb__alphabet alphabet, const sorted_token *token) {
    uint32_t state = PLUMB__TEXT_BETWEEN;
    int count = 0;
    for (size_t i = 0; i < token->size; i++) {
        uint8_t byte = token->bytes[i];
        if (byte == (alphabet == PLUMB__ALPHABET_RAW ? '<' : '\\')) return -1;
        count += state == PLUMB__TEXT_BETWEEN;
        state = plumb__text_step(alphabet, state, byte);
        if (state == PLUMB__TEXT_REFUSED) return -1;
    }
    return state == PLUMB__TEXT_BETWEEN ? count : -1;
}

static bool find_plain(plumb_token_trie *trie, plumb__alphabet alphabet, const sorted_token *tokens, int64_t n) {
    plumb__plain_tokens *plain = &trie->plain[alphabet];
    plain->mask = calloc((size_t)trie->n_words, sizeof *plain->mask);
    plain->others = calloc((size_t)trie->n_nodes + 1, 1);
    plain->by_length = calloc((size_t)n + 1, sizeof *plain->by_length);
    plain->characters = calloc((size_t)trie->n_tokens + 1, 1);
    uint32_t *not_plain = calloc((size_t)n + 1, sizeof *not_plain); /* among the tokens before each */
    int64_t of_length[LONGEST_TOKEN + 2] = {0};
    bool done = plain->mask && plain->others && plain->by_length && plain->characters && not_plain;
    for (int64_t i = 0; done && i < n; i++) {
        int characters = count_characters(alphabet, &tokens[i]);
        int32_t id = tokens[i].id;
        not_plain[i + 1] = not_plain[i] + (characters < 0);
        if (characters < 0) continue;
        plain->mask[id / 32] |= UINT32_C(1) << id % 32;
        plain->characters[id] = (uint8_t)characters;
        of_length[characters]++;
        plain->n++;
    }
    /* of_length becomes where each length begins. */
    int64_t at = 0;
    for (int length = LONGEST_TOKEN; done && length >= 0; length--) {
        int64_t count = of_length[length];
        of_length[length] = at;
        at += count;
    }
    for (int64_t i = 0; done && i < n; i++) {
        if (not_plain[i + 1] > not_plain[i]) continue;
        plain->by_length[of_length[plain->characters[tokens[i].id]]++] = tokens[i].id;
    }
    for (int64_t i = 0; done && i < trie->n_nodes; i++)
        plain->others[i] = not_plain[trie->first[trie->end[i]]] > not_plain[trie->first[i]];
    free(not_plain);
    return done;
}

/* Every byte must be a token, or an answer could come to where none fits. */
static bool has_every_byte(const plumb_token_trie *trie) {
    int found = 0;
    for (int64_t i = 0; i < trie->n_nodes; i = trie->end[i])
        found += trie->first[i + 1] > trie->first[i];
    return found == 256;
}

static plumb_status build(plumb_token_trie *trie, sorted_token *tokens, plumb_error *err) {
    int64_t n = gather(trie, tokens);
    trie->n_nodes = count_nodes(tokens, n);
    size_t nodes = (size_t)trie->n_nodes + 1;
    trie->byte = calloc(nodes, sizeof *trie->byte);
    trie->depth = calloc(nodes, sizeof *trie->depth);
    trie->end = calloc(nodes, sizeof *trie->end);
    trie->first = calloc(nodes, sizeof *trie->first);
    trie->sorted = calloc((size_t)n + 1, sizeof *trie->sorted);
    trie->text_tokens = calloc((size_t)trie->n_words, sizeof *trie->text_tokens);
    if (!trie->byte || !trie->depth || !trie->end || !trie->first || !trie->sorted || !trie->text_tokens)
        return plumb__fail_memory(err, "the tree of a vocabulary", nodes * 10);
    fill_nodes(trie, tokens, n);
    for (int a = 0; a < PLUMB__ALPHABETS; a++)
        if (!find_plain(trie, (plumb__alphabet)a, tokens, n))
            return plumb__fail_memory(err, "the tree of a vocabulary", nodes * 2);
    if (trie->eos < 0 || !has_every_byte(trie))
        return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, "vocabulary", -1, NULL,
                           "a token for each byte, and one for the end of an answer");
    return PLUMB_OK;
}

plumb_status plumb__token_trie_create(const plumb_text *text, plumb_token_trie **trie, plumb_error *err) {
    plumb_token_trie *made = calloc(1, sizeof *made);
    int64_t n_tokens = plumb_text_vocab_size(text);
    sorted_token *tokens = calloc((size_t)n_tokens + 1, sizeof *tokens);
    plumb_status status = PLUMB_OK;
    if (!made || !tokens) {
        status = plumb__fail_memory(err, "the tree of a vocabulary", (size_t)n_tokens * sizeof *tokens);
    } else {
        made->text = text;
        made->n_tokens = n_tokens;
        made->n_words = (n_tokens + 31) / 32;
        made->eos = plumb_text_token_id(text, "<｜end▁of▁sentence｜>");
        made->control = plumb_text_token_id(text, "｜DSML｜");
        status = build(made, tokens, err);
    }
    free(tokens);
    if (status != PLUMB_OK) plumb__token_trie_destroy(made);
    else *trie = made;
    return status;
}

void plumb__token_trie_destroy(plumb_token_trie *trie) {
    if (!trie) return;
    free(trie->byte);
    free(trie->depth);
    free(trie->end);
    free(trie->first);
    free(trie->sorted);
    free(trie->text_tokens);
    for (int a = 0; a < PLUMB__ALPHABETS; a++) {
        free(trie->plain[a].mask);
        free(trie->plain[a].others);
        free(trie->plain[a].by_length);
        free(trie->plain[a].characters);
    }
    free(trie);
}
