/* Answers from anywhere.  The first byte chooses where the answer starts; of the rest, bytes 1 to 6
 * are control tokens and everything else is text.  The answer is parsed in whole runs and byte by byte. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/chat_buffer.h"
#include "text/chat_parser.h"
#include "text/python_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct record {
    plumb__buffer said; /* kinds and bytes, neighbouring pieces joined */
    plumb__buffer arguments;
    int last, open; /* open: the call that has begun and not ended, or -1 */
} record;

/* A complete call's arguments are one JSON object. */
static void check_arguments(const record *r) {
    plumb__python_json json;
    if (plumb__python_json_read(r->arguments.bytes, (size_t)r->arguments.size, true, "arguments", &json, NULL) !=
        PLUMB_OK)
        abort();
    if (json.root->kind != PLUMB__PYTHON_DICT) abort();
    plumb__python_json_free(&json);
}

static void sink(void *user, const plumb_chat_event *event) {
    record *r = user;
    int kind = (int)event->kind;
    char mark = (char)kind;
    if (plumb__utf8_valid_prefix(event->bytes, event->size) != event->size) abort();
    if (r->last != kind) plumb__buffer_append(&r->said, &mark, 1);
    plumb__buffer_append(&r->said, event->bytes, event->size);
    r->last = kind;
    switch (event->kind) {
    case PLUMB_CHAT_REASONING:
    case PLUMB_CHAT_CONTENT:
        if (r->open >= 0) abort();
        break;
    case PLUMB_CHAT_CALL_BEGIN:
        if (r->open >= 0) abort();
        r->open = event->call;
        r->arguments.size = 0;
        break;
    case PLUMB_CHAT_CALL_ARGUMENTS:
        if (r->open != event->call) abort();
        plumb__buffer_append(&r->arguments, event->bytes, event->size);
        break;
    case PLUMB_CHAT_CALL_END:
    case PLUMB_CHAT_CALL_DROPPED:
        if (r->open != event->call) abort();
        if (event->kind == PLUMB_CHAT_CALL_END) check_arguments(r);
        r->open = -1;
        break;
    }
}

static unsigned parse(const uint8_t *data, size_t size, size_t chunk, record *r) {
    plumb_chat_parser *parser;
    if (plumb__chat_parser_create_bare(data[0] & 1, !(data[0] & 2), sink, r, &parser, NULL) != PLUMB_OK) abort();
    for (size_t at = 1, used; at < size; at += used) {
        plumb__piece_kind kind = PLUMB__PIECE_TEXT;
        used = 1;
        if (data[at] >= 1 && data[at] <= 6) kind = (plumb__piece_kind)data[at];
        else
            while (used < chunk && at + used < size && (data[at + used] < 1 || data[at + used] > 6)) used++;
        (void)plumb__chat_parser_push_piece(parser, kind, (const char *)data + at, used);
    }
    plumb_chat_parser_finish(parser);
    unsigned flags = plumb_chat_parser_flags(parser);
    plumb_chat_parser_destroy(parser);
    return flags;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    record whole = {.last = -1, .open = -1}, bytes = {.last = -1, .open = -1};
    if (size == 0) return 0;
    unsigned flags = parse(data, size, SIZE_MAX, &whole);
    if (flags != parse(data, size, 1, &bytes)) abort();
    if (whole.open >= 0 || whole.said.size != bytes.said.size) abort();
    if (whole.said.size && memcmp(whole.said.bytes, bytes.said.bytes, (size_t)whole.said.size) != 0) abort();
    plumb__buffer_free(&whole.said);
    plumb__buffer_free(&whole.arguments);
    plumb__buffer_free(&bytes.said);
    plumb__buffer_free(&bytes.arguments);
    return 0;
}
