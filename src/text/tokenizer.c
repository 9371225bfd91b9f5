/* The text handle: opening, encoding, look-ups.
 *
 * Encoding goes through four stages: the text is checked, added tokens are cut out (template text
 * only), the rest is split into pieces, each piece is byte-pair encoded. */
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

/* ---- Opening ---- */

/* Grounding tags belong to the visible text (tokenizer-and-chat.md section 7.3). */
static const char *const visible_tags[] = {
    "<｜ref｜>",   "<｜/ref｜>",   "<｜box｜>",     "<｜/box｜>",
    "<｜point｜>", "<｜/point｜>", "<｜polygon｜>", "<｜/polygon｜>",
};
/* The end of a turn, and the openers of a next one. */
static const char *const stops[] = {
    "<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>", "<｜System｜>", "<｜User｜>",
    "<｜Assistant｜>",       "<｜latest_reminder｜>",
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Control ids are the added tokens, found by their text: ids differ between checkpoints. */
static void mark_special(plumb_text *text) {
    unsigned char *flags = text->vocabulary.flags;
    for (int64_t i = 0; i < text->added.count; i++)
        flags[text->added.ids[i]] |= PLUMB_TOKEN_CONTROL;
    for (size_t i = 0; i < COUNT(visible_tags); i++) {
        int32_t id = plumb_text_token_id(text, visible_tags[i]);
        if (id >= 0) flags[id] &= (unsigned char)~PLUMB_TOKEN_CONTROL;
    }
    for (size_t i = 0; i < COUNT(stops); i++) {
        int32_t id = plumb_text_token_id(text, stops[i]);
        if (id >= 0) flags[id] |= PLUMB_TOKEN_STOP;
    }
}

static plumb_status build(plumb_text *text, plumb__tokenizer_json *file, plumb_error *err) {
    plumb_status status = plumb__vocabulary_build(&text->vocabulary, file, err);
    if (status == PLUMB_OK) status = plumb__bpe_build(&text->bpe, &text->vocabulary, file, err);
    if (status == PLUMB_OK)
        status = plumb__added_tokens_build(&text->added, &text->vocabulary, file->path, err);
    if (status == PLUMB_OK) status = plumb__splitter_build(&text->splitter, file, err);
    if (status == PLUMB_OK) mark_special(text);
    return status;
}

/* Takes what has been read, well or not: `status` says. */
static plumb_status finish_open(plumb_status status, plumb__tokenizer_json *file, plumb_text **text,
                                plumb_error *err) {
    plumb_text *made = status == PLUMB_OK ? calloc(1, sizeof *made) : NULL;
    if (status == PLUMB_OK)
        status = made ? build(made, file, err) : plumb__fail_memory(err, "text", sizeof *made);
    plumb__tokenizer_json_free(file);
    if (status == PLUMB_OK)
        *text = made;
    else
        plumb_text_close(made);
    return status;
}

plumb_status plumb_text_open(const char *path, plumb_text **text, plumb_error *err) {
    if (!path || !text)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "path", -1, "NULL", "a path");
    plumb__tokenizer_json file;
    plumb_status status = plumb__tokenizer_json_read(&file, path, err);
    return finish_open(status, &file, text, err);
}

plumb_status plumb__text_open_bytes(const char *name, const char *bytes, size_t size,
                                    plumb_text **text, plumb_error *err) {
    plumb__tokenizer_json file;
    plumb_status status = plumb__tokenizer_json_parse(&file, name, bytes, size, err);
    return finish_open(status, &file, text, err);
}

void plumb_text_close(plumb_text *text) {
    if (!text) return;
    plumb__splitter_free(&text->splitter);
    plumb__added_tokens_free(&text->added);
    plumb__bpe_free(&text->bpe);
    plumb__vocabulary_free(&text->vocabulary);
    free(text);
}

/* ---- Encoding ---- */

typedef struct encoder {
    const plumb_text *text;
    plumb_tokens *tokens;
    plumb__bpe_scratch bpe;
    plumb__split_scratch split;
} encoder;

static plumb_status encode_piece(void *user, const char *piece, size_t size, plumb_error *err) {
    encoder *e = user;
    return plumb__bpe_encode(&e->text->bpe, piece, size, &e->bpe, e->tokens, err);
}

static plumb_status encode_text(encoder *e, const char *bytes, size_t size, plumb_error *err) {
    return plumb__split(&e->text->splitter, bytes, size, &e->split, encode_piece, e, err);
}

static plumb_status encode_template(encoder *e, const char *bytes, size_t size, plumb_error *err) {
    for (size_t from = 0; from < size;) {
        size_t at;
        int32_t id = plumb__added_token_next(&e->text->added, bytes, size, from, &at);
        plumb_status status = encode_text(e, bytes + from, at - from, err);
        if (status != PLUMB_OK || id < 0) return status;
        status = plumb__tokens_reserve(e->tokens, 1, err);
        if (status != PLUMB_OK) return status;
        e->tokens->ids[e->tokens->count++] = id;
        from = at + plumb__token(&e->text->vocabulary, id).size;
    }
    return PLUMB_OK;
}

plumb_status plumb_text_encode(const plumb_text *text, const char *bytes, size_t size,
                               bool match_added, plumb_tokens *tokens, plumb_error *err) {
    if (!text || !tokens || (!bytes && size > 0))
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "text", -1, "NULL",
                           "a handle, text and a list");
    size_t valid = plumb__utf8_valid_prefix(bytes, size);
    if (valid < size)
        return plumb__fail(err, PLUMB_ERROR_TEXT, NULL, "text", (int64_t)valid,
                           plumb__format("byte 0x%02x", (unsigned char)bytes[valid]).s,
                           "valid UTF-8");
    encoder e = {.text = text, .tokens = tokens};
    int64_t before = tokens->count;
    plumb_status status =
        match_added ? encode_template(&e, bytes, size, err) : encode_text(&e, bytes, size, err);
    if (status != PLUMB_OK) tokens->count = before;
    plumb__bpe_scratch_free(&e.bpe);
    plumb__split_scratch_free(&e.split);
    return status;
}

void plumb_tokens_free(plumb_tokens *tokens) {
    free(tokens->ids);
    *tokens = (plumb_tokens){0};
}

/* ---- Look-ups ---- */

static bool is_known(const plumb_text *text, int32_t id) {
    return id >= 0 && id < text->vocabulary.size;
}

int64_t plumb_text_vocab_size(const plumb_text *text) {
    return text->vocabulary.size;
}

const char *plumb_text_token_bytes(const plumb_text *text, int32_t id, size_t *size) {
    if (!is_known(text, id)) {
        *size = 0;
        return NULL;
    }
    plumb__slice token = plumb__token(&text->vocabulary, id);
    *size = token.size;
    return token.bytes;
}

int32_t plumb_text_token_id(const plumb_text *text, const char *content) {
    return plumb__added_token_id(&text->added, content, strlen(content));
}

bool plumb_text_is_control(const plumb_text *text, int32_t id) {
    return is_known(text, id) && text->vocabulary.flags[id] & PLUMB_TOKEN_CONTROL;
}

bool plumb_text_is_stop(const plumb_text *text, int32_t id) {
    return is_known(text, id) && text->vocabulary.flags[id] & PLUMB_TOKEN_STOP;
}
