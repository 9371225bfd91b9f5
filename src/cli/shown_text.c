/* Streaming model text to people; see shown_text.h. */
#include "cli/shown_text.h"

#include "cli/output.h"

#include <stdlib.h>
#include <unistd.h>

void cli_shown_text_open(cli_shown_text *shown, const plumb_text *text) {
    *shown = (cli_shown_text){.stream = stdout, .terminal = isatty(STDOUT_FILENO)};
    plumb_detokenizer_init(&shown->detokenizer, text);
}

void cli_shown_text_open_on_errors(cli_shown_text *shown, const plumb_text *text) {
    *shown = (cli_shown_text){.stream = stderr, .terminal = isatty(STDERR_FILENO)};
    plumb_detokenizer_init(&shown->detokenizer, text);
}

/* Standard output is written through output.h, which remembers its failures. */
static void write_to(FILE *stream, const char *bytes, size_t size) {
    if (stream == stdout)
        cli_write(bytes, size);
    else
        (void)fwrite(bytes, 1, size, stream);
}

/* Bytes at `text` that a terminal would act on: C0 other than tab and newline, DEL, C1 (U+0080 to
 * U+009F, two bytes); 0 if it is safe. */
static size_t control_size(const unsigned char *text, size_t size) {
    if ((text[0] < 0x20 && text[0] != '\n' && text[0] != '\t') || text[0] == 0x7F) return 1;
    if (size >= 2 && text[0] == 0xC2 && text[1] >= 0x80 && text[1] < 0xA0) return 2;
    return 0;
}

static void show(FILE *stream, bool terminal, const char *bytes, size_t size) {
    const unsigned char *text = (const unsigned char *)bytes;
    size_t begin = 0, at = 0;
    while (terminal && at < size) {
        size_t control = control_size(text + at, size - at);
        if (control > 0) {
            write_to(stream, bytes + begin, at - begin);
            write_to(stream, "?", 1);
            begin = at + control;
        }
        at += control > 0 ? control : 1;
    }
    write_to(stream, bytes + begin, size - begin);
}

void cli_show(bool terminal, const char *bytes, size_t size) {
    show(stdout, terminal, bytes, size);
}

void cli_shown_token(cli_shown_text *shown, int32_t token) {
    size_t size = 0;
    (void)plumb_text_token_bytes(shown->detokenizer.text, token, &size);
    size_t needed = size * 3 + 16; /* each broken byte may become U+FFFD */
    if (needed > shown->capacity) {
        char *grown = realloc(shown->buffer, needed);
        if (grown == NULL) return;
        shown->buffer = grown;
        shown->capacity = needed;
    }
    show(shown->stream, shown->terminal, shown->buffer,
         plumb_detokenizer_push(&shown->detokenizer, token, shown->buffer, shown->capacity));
}

void cli_shown_text_finish(cli_shown_text *shown) {
    char tail[16];
    show(shown->stream, shown->terminal, tail,
         plumb_detokenizer_finish(&shown->detokenizer, tail, sizeof tail));
}

void cli_shown_text_close(cli_shown_text *shown) {
    free(shown->buffer);
    shown->buffer = NULL;
}
