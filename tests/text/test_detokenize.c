/* Streaming detokenisation: what comes out never cuts a character, and over a whole stream equals
 * the lossy decoding of the stream's bytes. */
#include "text_test.h"

#define ROOM 4096

typedef struct stream {
    char out[ROOM];
    size_t size;
    bool whole; /* after every push, the output is valid UTF-8 */
} stream;

static void push_byte(plumb_detokenizer *d, stream *s, unsigned char byte) {
    int32_t id = d->text->bpe.byte_id[byte];
    s->size += plumb_detokenizer_push(d, id, s->out + s->size, ROOM - s->size);
    s->whole &= plumb__utf8_valid_prefix(s->out, s->size) == s->size;
}

/* Expected outputs are those of Python's bytes.decode("utf-8", "replace"). */
static void bytes_in_out(void) {
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"plain", "plain"},
        {"\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80", "\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80"},
        {"\x80", "\xEF\xBF\xBD"},
        {"\x80\x81z", "\xEF\xBF\xBD\xEF\xBF\xBDz"},
        {"\xF0\x9F\x98", "\xEF\xBF\xBD"},
        {"\xF0\x9F\x98z", "\xEF\xBF\xBDz"},
        {"\xF0\x9F\xF0\x9F\x98\x80", "\xEF\xBF\xBD\xF0\x9F\x98\x80"},
        {"\xE4\xB8\xC3\xA9", "\xEF\xBF\xBD\xC3\xA9"},
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xE4\xB8", "\xEF\xBF\xBD"},
        {"a\xE4\xE4\xE4\xB8\xAD", "a\xEF\xBF\xBD\xEF\xBF\xBD\xE4\xB8\xAD"},
        {"", ""},
    };
    plumb_text *text = open_text(DEMO_MODEL);
    for (size_t i = 0; text && i < sizeof rows / sizeof *rows; i++) {
        plumb_detokenizer d;
        stream s = {.whole = true};
        plumb_detokenizer_init(&d, text);
        for (const char *c = rows[i].in; *c; c++) push_byte(&d, &s, (unsigned char)*c);
        s.size += plumb_detokenizer_finish(&d, s.out + s.size, ROOM - s.size);
        T_CHECK(s.whole && s.size == strlen(rows[i].out) && !memcmp(s.out, rows[i].out, s.size),
                "row %zu", i);
        T_CHECK(plumb_detokenizer_finish(&d, s.out, ROOM) == 0, "row %zu ends once", i);
    }
    plumb_text_close(text);
}

/* Token by token, text of every script comes out whole, each push valid by itself. */
static void every_script(void) {
    plumb_text *text = open_text(RELEASE_TOKENIZER);
    uint64_t state = 13;
    char bytes[600], out[ROOM];
    int cut = 0, unlike = 0, waited = 0;
    for (int round = 0; text && round < 2000; round++) {
        size_t size = random_text(&state, bytes, 200), written = 0;
        plumb_tokens tokens = {0};
        plumb_detokenizer d;
        T_CHECK(plumb_text_encode(text, bytes, size, false, &tokens, NULL) == PLUMB_OK, "encode");
        plumb_detokenizer_init(&d, text);
        for (int64_t i = 0; i < tokens.count; i++) {
            size_t token_size;
            (void)plumb_text_token_bytes(text, tokens.ids[i], &token_size);
            size_t n = plumb_detokenizer_push(&d, tokens.ids[i], out + written, 3 * token_size + 3);
            cut += plumb__utf8_valid_prefix(out + written, n) != n;
            waited += d.tail_size > 0;
            written += n;
        }
        written += plumb_detokenizer_finish(&d, out + written, 3);
        unlike += written != size || memcmp(out, bytes, size) != 0;
        plumb_tokens_free(&tokens);
    }
    T_CHECK(cut == 0 && unlike == 0 && waited > 1000, "%d cut, %d unlike, %d waits", cut, unlike,
            waited);
    plumb_text_close(text);
}

/* The room the header asks for suffices for any stream of bytes; less loses text, never overflows.
 */
static void room(void) {
    plumb_text *text = open_text(RELEASE_TOKENIZER);
    uint64_t state = 17;
    int over = 0;
    plumb_detokenizer d;
    plumb_detokenizer_init(&d, text);
    for (int i = 0; text && i < 100000; i++) {
        int32_t id = (int32_t)random_below(&state, 129280);
        char out[1024];
        size_t token_size, enough;
        (void)plumb_text_token_bytes(text, id, &token_size);
        enough = 3 * token_size + 3;
        if (enough > sizeof out) continue;
        plumb_detokenizer spacious = d;
        size_t all = plumb_detokenizer_push(&spacious, id, out, sizeof out);
        over += plumb_detokenizer_push(&d, id, out, enough) != all || all > enough;
        plumb_detokenizer tight = spacious;
        over += plumb_detokenizer_push(&tight, id, out, 2) > 2;
    }
    T_CHECK(over == 0, "%d", over);
    char out[8];
    T_CHECK(plumb_detokenizer_push(&d, -1, out, 8) == 0 &&
                plumb_detokenizer_push(&d, 129280, out, 8) == 0,
            "unknown ids have no text");
    plumb_text_close(text);
}

T_MAIN({"bytes_in_out", bytes_in_out}, {"every_script", every_script}, {"room", room})
