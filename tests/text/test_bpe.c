/* Byte-pair encoding: search and heap against the definition written down naively, on random
 * vocabularies as well as the release's; and the growth of their work. */
#include "text_test.h"

/* ---- A tokenizer with merges of our choosing ---- */

typedef struct toy {
    char text[64][16]; /* of tokens, ids 256.. */
    int parts[64][2];  /* by rank: token numbers */
    int made[64];
    int n_tokens, n_merges;
} toy;

#define TOY_LETTERS 3

/* Tokens 0..2 are the letters.  A merge joins two tokens of a random pair; its result may be known
 * already.  Ranks are in order of making, or shuffled: then parts may rank behind their uses. */
static void make_toy(toy *t, uint64_t *state, bool shuffled) {
    *t = (toy){.n_tokens = TOY_LETTERS};
    for (int i = 0; i < TOY_LETTERS; i++) t->text[i][0] = (char)('a' + i);
    int wanted = 3 + (int)random_below(state, 25);
    for (int tries = 0; tries < 200 && t->n_merges < wanted; tries++) {
        int left = (int)random_below(state, (uint32_t)t->n_tokens);
        int right = (int)random_below(state, (uint32_t)t->n_tokens), result = 0;
        char joined[32];
        bool again = false;
        for (int m = 0; m < t->n_merges; m++)
            again |= t->parts[m][0] == left && t->parts[m][1] == right;
        (void)snprintf(joined, sizeof joined, "%s%s", t->text[left], t->text[right]);
        if (again || strlen(joined) > 9) continue;
        while (result < t->n_tokens && strcmp(t->text[result], joined) != 0) result++;
        if (result == t->n_tokens) memcpy(t->text[t->n_tokens++], joined, strlen(joined) + 1);
        int rank = t->n_merges++;
        if (shuffled) {
            int other = (int)random_below(state, (uint32_t)t->n_merges);
            memcpy(t->parts[rank], t->parts[other], sizeof t->parts[0]);
            t->made[rank] = t->made[other];
            rank = other;
        }
        t->parts[rank][0] = left;
        t->parts[rank][1] = right;
        t->made[rank] = result;
    }
}

/* The demo's tokenizer.json with the toy's vocabulary and merges. */
static plumb_text *open_toy(const toy *t) {
    json_t *file = json_load_file(DEMO_MODEL "/tokenizer.json", 0, NULL);
    json_t *vocab = json_object(), *merges = json_array(), *added = json_array();
    char key[64];
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        key[plumb__spell((plumb__slice){&c, 1}, key)] = 0;
        json_object_set_new(vocab, key, json_integer(byte));
    }
    for (int i = TOY_LETTERS; i < t->n_tokens; i++)
        json_object_set_new(vocab, t->text[i], json_integer(256 + i - TOY_LETTERS));
    for (int m = 0; m < t->n_merges; m++) {
        const char *left = t->text[t->parts[m][0]], *right = t->text[t->parts[m][1]];
        if (m % 2) {
            json_array_append_new(merges, json_pack("[ss]", left, right));
        } else {
            (void)snprintf(key, sizeof key, "%s %s", left, right);
            json_array_append_new(merges, json_string(key));
        }
    }
    json_array_append_new(
        added, json_pack("{siss}", "id", 256 + t->n_tokens - TOY_LETTERS, "content", "<end>"));
    json_object_set_new(json_object_get(file, "model"), "vocab", vocab);
    json_object_set_new(json_object_get(file, "model"), "merges", merges);
    json_object_set_new(file, "added_tokens", added);
    return open_json(file);
}

/* The definition, word for word: again and again the adjacent pair of lowest rank, leftmost first.
 */
static int naive(const toy *t, const char *letters, int n, int *symbols) {
    for (int i = 0; i < n; i++) symbols[i] = letters[i] - 'a';
    for (;;) {
        int best = t->n_merges, place = -1;
        for (int i = 0; i + 1 < n; i++)
            for (int m = 0; m < best; m++)
                if (t->parts[m][0] == symbols[i] && t->parts[m][1] == symbols[i + 1]) {
                    best = m;
                    place = i;
                }
        if (place < 0) return n;
        symbols[place] = t->made[best];
        memmove(symbols + place + 1, symbols + place + 2,
                (size_t)(n - place - 2) * sizeof *symbols);
        n--;
    }
}

static bool toy_agrees(const toy *t, const plumb_text *text, const char *letters, int n) {
    int symbols[64];
    int count = naive(t, letters, n, symbols);
    plumb_tokens searched = {0}, merged = {0};
    plumb__bpe_scratch scratch = {0};
    bool same =
        plumb__bpe_encode(&text->bpe, letters, (size_t)n, &scratch, &searched, NULL) == PLUMB_OK;
    same &= plumb__bpe_merge(&text->bpe, letters, (size_t)n, &scratch, &merged, NULL) == PLUMB_OK;
    same &= searched.count == count && same_tokens(&searched, &merged);
    for (int i = 0; same && i < count; i++)
        same = searched.ids[i] == (symbols[i] < TOY_LETTERS ? text->bpe.byte_id['a' + symbols[i]]
                                                            : 256 + symbols[i] - TOY_LETTERS);
    plumb_tokens_free(&searched);
    plumb_tokens_free(&merged);
    plumb__bpe_scratch_free(&scratch);
    return same;
}

/* Steps of encoding one long piece of random letters, by search. */
static int64_t toy_steps(const plumb_text *text, uint64_t *state, size_t size) {
    char *letters = malloc(size);
    plumb_tokens tokens = {0};
    plumb__bpe_scratch scratch = {0};
    for (size_t i = 0; letters && i < size; i++)
        letters[i] = (char)('a' + random_below(state, TOY_LETTERS));
    T_CHECK(plumb__bpe_encode(&text->bpe, letters, size, &scratch, &tokens, NULL) == PLUMB_OK,
            "encode");
    int64_t steps = scratch.steps;
    plumb_tokens_free(&tokens);
    plumb__bpe_scratch_free(&scratch);
    free(letters);
    return steps;
}

static void random_vocabularies(void) {
    uint64_t state = 3;
    int unlike = 0, ordered = 0, rounds = 150;
    int64_t most_steps = 0;
    for (int round = 0; round < rounds; round++) {
        toy t;
        make_toy(&t, &state, round % 3 == 2);
        plumb_text *text = open_toy(&t);
        if (!text) continue;
        ordered += text->bpe.ordered;
        for (int i = 0; i < 400; i++) {
            char letters[64];
            int n = 1 + (int)random_below(&state, 40);
            for (int k = 0; k < n; k++)
                letters[k] = (char)('a' + random_below(&state, i % 4 ? TOY_LETTERS : 1));
            unlike += !toy_agrees(&t, text, letters, n);
        }
        int64_t steps = text->bpe.ordered ? toy_steps(text, &state, 3000) : 0;
        if (steps > most_steps) most_steps = steps;
        plumb_text_close(text);
    }
    T_CHECK(unlike == 0, "%d texts", unlike);
    T_CHECK(most_steps < 3000 * 20, "%lld steps", (long long)most_steps);
    /* Both ways of encoding must have been at work. */
    T_CHECK(ordered > rounds / 4 && ordered < rounds - rounds / 8, "%d of %d in order", ordered,
            rounds);
}

/* ---- The release's vocabulary ---- */

static void search_equals_merging(void) {
    plumb_text *text = open_text(RELEASE_TOKENIZER);
    uint64_t state = 11;
    plumb__bpe_scratch scratch = {0};
    int unlike = 0;
    T_CHECK(text && text->bpe.ordered, "the release's merges are in order");
    for (int round = 0; text && round < 6000; round++) {
        char piece[512];
        size_t size = 0;
        if (round % 3 == 0) { /* any bytes */
            size = 1 + random_below(&state, 60);
            for (size_t i = 0; i < size; i++) piece[i] = (char)random_next(&state);
        } else if (round % 3 == 1) {
            size = random_text(&state, piece, 1 + random_below(&state, 100));
        } else { /* tokens in a row: their neighbours often merge */
            for (uint32_t left = 2 + random_below(&state, 12); left > 0 && size < 300; left--) {
                int32_t id = (int32_t)random_below(&state, 128000);
                plumb__slice token = plumb__token(&text->vocabulary, id);
                if (token.size > 100) continue;
                memcpy(piece + size, token.bytes, token.size);
                size += token.size;
            }
        }
        plumb_tokens searched = {0}, merged = {0};
        unlike +=
            plumb__bpe_encode(&text->bpe, piece, size, &scratch, &searched, NULL) != PLUMB_OK ||
            plumb__bpe_merge(&text->bpe, piece, size, &scratch, &merged, NULL) != PLUMB_OK ||
            !same_tokens(&searched, &merged);
        plumb_tokens_free(&searched);
        plumb_tokens_free(&merged);
    }
    T_CHECK(unlike == 0, "%d of 6000", unlike);
    plumb__bpe_scratch_free(&scratch);
    plumb_text_close(text);
}

typedef plumb_status (*encode_fn)(const plumb__bpe *, const char *, size_t, plumb__bpe_scratch *,
                                  plumb_tokens *, plumb_error *);

static int64_t steps_of(const plumb_text *text, encode_fn encode, const char *run, size_t size) {
    plumb__bpe_scratch scratch = {0};
    plumb_tokens tokens = {0};
    T_CHECK(encode(&text->bpe, run, size, &scratch, &tokens, NULL) == PLUMB_OK, "%zu bytes", size);
    size_t back_size;
    char *back = bytes_of(text, &tokens, &back_size);
    T_CHECK(back_size == size && !memcmp(back, run, size), "%zu bytes", size);
    free(back);
    plumb_tokens_free(&tokens);
    int64_t steps = scratch.steps;
    plumb__bpe_scratch_free(&scratch);
    return steps;
}

/* A piece of 100,000 characters costs twice what one of 50,000 does; merging has a logarithm more.
 */
static void work_grows_with_length(void) {
    static const char *const units[] = {
        "a",
        "\xC3\xA9",
        "\xE4\xB8\xAD",
        "\xE4\xB8\xAD\xE6\x96\x87\xE7\x9A\x84",
        "\xE3\x81\x82",
        "\xED\x95\x9C",
        "<",
        " ",
        "\n",
        "7",
        "0",
        "\xF0\x9F\x98\x80",
        "\xCC\x81",
        "\x01",
        "\xFF",
        "\x80",
        "ab",
        "abc",
        "the ",
        "=-",
        "\xD9\x85",
    };
    const size_t n = 50000;
    plumb_text *text = open_text(RELEASE_TOKENIZER);
    char *run = malloc(2 * n * 12);
    for (size_t u = 0; text && run && u < sizeof units / sizeof *units; u++) {
        size_t unit = strlen(units[u]);
        for (size_t i = 0; i < 2 * n; i++) memcpy(run + i * unit, units[u], unit);
        int64_t half = steps_of(text, plumb__bpe_encode, run, n * unit);
        int64_t full = steps_of(text, plumb__bpe_encode, run, 2 * n * unit);
        T_CHECK(full <= 2 * half + 1000 && full < (int64_t)(2 * n * unit) * 300,
                "search of \"%s\": %lld, %lld", units[u], (long long)half, (long long)full);
        half = steps_of(text, plumb__bpe_merge, run, n * unit);
        full = steps_of(text, plumb__bpe_merge, run, 2 * n * unit);
        T_CHECK(full <= half * 5 / 2 + 1000 && full < (int64_t)(2 * n * unit) * 200,
                "merging of \"%s\": %lld, %lld", units[u], (long long)half, (long long)full);
    }
    free(run);
    plumb_text_close(text);
}

/* A megabyte of every script, as template text and as people's, comes back byte for byte. */
static void round_trip(void) {
    plumb_text *text = open_text(RELEASE_TOKENIZER);
    static const char *const markers[] = {"<｜User｜>", "｜DSML｜", "</think>",
                                          "<｜deepseek_image｜>"};
    const size_t wanted = 1 << 20;
    char *mixed = malloc(wanted + 2048);
    uint64_t state = 5;
    size_t size = 0;
    while (mixed && size < wanted) {
        size += random_text(&state, mixed + size, 900);
        const char *marker = markers[random_below(&state, 4)];
        memcpy(mixed + size, marker, strlen(marker));
        size += strlen(marker);
    }
    for (int match = 0; text && match < 2; match++) {
        plumb_tokens tokens = {0};
        size_t back_size;
        T_CHECK(plumb_text_encode(text, mixed, size, match, &tokens, NULL) == PLUMB_OK, "encode");
        char *back = bytes_of(text, &tokens, &back_size);
        T_CHECK(back_size == size && !memcmp(back, mixed, size), "match_added %d", match);
        int64_t control = 0;
        for (int64_t i = 0; i < tokens.count; i++)
            control += plumb_text_is_control(text, tokens.ids[i]);
        T_CHECK(match ? control > 1000 : control == 0, "%lld control ids", (long long)control);
        free(back);
        plumb_tokens_free(&tokens);
    }
    free(mixed);
    plumb_text_close(text);
}

T_MAIN({"random_vocabularies", random_vocabularies},
       {"search_equals_merging", search_equals_merging},
       {"work_grows_with_length", work_grows_with_length}, {"round_trip", round_trip})
