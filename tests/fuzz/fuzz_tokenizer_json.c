/* Any bytes as tokenizer.json: refused with a complete error, or a tokenizer that encodes a sample
 * and decodes it again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/token_map.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode_sample(const plumb_text *text) {
    static const char sample[] =
        "The 12,345 caf\xC3\xA9s  of \xE4\xB8\xAD\xE5\x9B\xBD\xEF\xBC\x8C\n\n<end> "
        "\xF0\x9F\x98\x80\x01!";
    plumb_tokens tokens = {0};
    plumb_error err;
    /* A pattern that backtracks for ever may be given up. */
    plumb_status status = plumb_text_encode(text, sample, sizeof sample - 1, false, &tokens, &err);
    size_t at = 0;
    for (int64_t i = 0; status == PLUMB_OK && i < tokens.count; i++) {
        size_t n;
        const char *bytes = plumb_text_token_bytes(text, tokens.ids[i], &n);
        if (!bytes || n > sizeof sample - 1 - at || memcmp(bytes, sample + at, n) != 0) abort();
        at += n;
    }
    if (status == PLUMB_OK && at != sizeof sample - 1) abort();
    plumb_tokens_free(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    plumb_text *text = NULL;
    plumb_error err = {0};
    if (plumb__text_open_bytes("fuzz", (const char *)data, size, &text, &err) != PLUMB_OK) {
        if (!err.field[0] || !err.expected[0]) abort();
        return 0;
    }
    encode_sample(text);
    int32_t *map = NULL;
    int64_t folded = 0;
    if (plumb__token_map_build(text, &map, &folded, &err) != PLUMB_OK ||
        folded > plumb_text_vocab_size(text))
        abort();
    free(map);
    plumb_text_close(text);
    return 0;
}
