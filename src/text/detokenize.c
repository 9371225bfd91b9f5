/* Streaming detokenisation.
 *
 * Tokens cut characters anywhere, so bytes wait in `tail` until they are a character.  Over a whole
 * stream the output is the stream's bytes with every maximal subpart of broken UTF-8 replaced by
 * one U+FFFD, wherever the tokens were cut. */
#include <string.h>

#include "base/utf8.h"
#include "plumb.h"

#define REPLACEMENT_SIZE (sizeof PLUMB_UTF8_REPLACEMENT - 1)

typedef struct output {
    char *bytes;
    size_t size, written;
} output;

/* What does not fit is dropped whole; the header says how much room is enough. */
static void put(output *out, const void *bytes, size_t size) {
    if (size > out->size - out->written) return;
    memcpy(out->bytes + out->written, bytes, size);
    out->written += size;
}

/* Takes one byte.  Before and after, the tail is empty or an incomplete character. */
static void take(plumb_detokenizer *d, unsigned char byte, output *out) {
    d->tail[d->tail_size++] = byte;
    while (d->tail_size > 0) {
        size_t length;
        plumb__utf8_kind kind =
            plumb__utf8_judge((const char *)d->tail, (size_t)d->tail_size, &length);
        if (kind == PLUMB_UTF8_INCOMPLETE) return;
        if (kind == PLUMB_UTF8_CHARACTER)
            put(out, d->tail, length);
        else
            put(out, PLUMB_UTF8_REPLACEMENT, REPLACEMENT_SIZE);
        d->tail_size -= (int)length;
        memmove(d->tail, d->tail + length, (size_t)d->tail_size);
    }
}

void plumb_detokenizer_init(plumb_detokenizer *d, const plumb_text *text) {
    *d = (plumb_detokenizer){.text = text};
}

size_t plumb_detokenizer_push(plumb_detokenizer *d, int32_t id, char *out, size_t size) {
    output o = {out, size, 0};
    size_t n;
    const char *bytes = plumb_text_token_bytes(d->text, id, &n);
    for (size_t i = 0; i < n; i++) take(d, (unsigned char)bytes[i], &o);
    return o.written;
}

size_t plumb_detokenizer_finish(plumb_detokenizer *d, char *out, size_t size) {
    output o = {out, size, 0};
    if (d->tail_size > 0) put(&o, PLUMB_UTF8_REPLACEMENT, REPLACEMENT_SIZE);
    d->tail_size = 0;
    return o.written;
}
