/* Any bytes as text, with the demo model's tokenizer: invalid UTF-8 is refused at the right place;
 * valid text comes back, in both modes; the scanner cuts as PCRE2 does; searching finds what
 * merging finds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct cuts {
    const plumb_text *text;
    const char *begin;
    uint64_t hash; /* of the ends of all pieces */
    plumb__bpe_scratch scratch;
} cuts;

static plumb_status note_cut(void *user, const char *piece, size_t size, plumb_error *err) {
    cuts *c = user;
    (void)err;
    c->hash = plumb__hash_key(c->hash ^ (uint64_t)(piece + size - c->begin + 1));
    return PLUMB_OK;
}

static plumb_status compare_ways(void *user, const char *piece, size_t size, plumb_error *err) {
    cuts *c = user;
    plumb_tokens searched = {0}, merged = {0};
    if (plumb__bpe_encode(&c->text->bpe, piece, size, &c->scratch, &searched, err) != PLUMB_OK)
        abort();
    if (plumb__bpe_merge(&c->text->bpe, piece, size, &c->scratch, &merged, err) != PLUMB_OK)
        abort();
    if (searched.count != merged.count) abort();
    if (memcmp(searched.ids, merged.ids, (size_t)merged.count * sizeof *merged.ids) != 0) abort();
    plumb_tokens_free(&searched);
    plumb_tokens_free(&merged);
    return note_cut(user, piece, size, err);
}

static void check_pieces(const plumb_text *text, const char *bytes, size_t size) {
    cuts general = {.text = text, .begin = bytes}, known = {.begin = bytes};
    plumb__split_scratch scratch = {0};
    if (plumb__split_general(&text->splitter, bytes, size, &scratch, compare_ways, &general,
                             NULL) != PLUMB_OK)
        abort();
    plumb__split_scratch_free(&scratch);
    plumb__bpe_scratch_free(&general.scratch);
    if (!plumb__known_scope(bytes, size)) return;
    if (plumb__split_known(text->splitter.classes, bytes, size, note_cut, &known, NULL) != PLUMB_OK)
        abort();
    if (known.hash != general.hash) abort();
}

static void check_round_trip(const plumb_text *text, const char *bytes, size_t size,
                             bool match_added) {
    plumb_tokens tokens = {0};
    plumb_detokenizer d;
    char *out = malloc(3 * size + 3);
    if (!out || plumb_text_encode(text, bytes, size, match_added, &tokens, NULL) != PLUMB_OK)
        abort();
    size_t written = 0;
    plumb_detokenizer_init(&d, text);
    for (int64_t i = 0; i < tokens.count; i++)
        written += plumb_detokenizer_push(&d, tokens.ids[i], out + written, 3 * size + 3 - written);
    written += plumb_detokenizer_finish(&d, out + written, 3 * size + 3 - written);
    if (written != size || (size > 0 && memcmp(out, bytes, size) != 0)) abort();
    free(out);
    plumb_tokens_free(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static plumb_text *text; /* opened once; the process ends with it */
    plumb_error err;
    if (!text && plumb_text_open(TOKENIZER, &text, &err) != PLUMB_OK) abort();
    const char *bytes = (const char *)data;
    size_t valid = plumb__utf8_valid_prefix(bytes, size);
    if (valid < size) {
        plumb_tokens tokens = {0};
        if (plumb_text_encode(text, bytes, size, false, &tokens, &err) != PLUMB_ERROR_TEXT ||
            err.offset != (int64_t)valid || tokens.count != 0)
            abort();
    }
    check_pieces(text, bytes, valid);
    check_round_trip(text, bytes, valid, false);
    check_round_trip(text, bytes, valid, true);
    return 0;
}
