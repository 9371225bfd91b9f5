/* What a parser said, as one line that a test can spell:
 *      R(reasoning) C(content) 0:name{"key": 1}. 1:other{!
 * "." ends a complete call, "!" a dropped one.  Neighbouring pieces of one kind are joined, so the
 * line does not depend on how the deltas were cut. */
#ifndef PLUMB_TESTS_TRANSCRIPT_H
#define PLUMB_TESTS_TRANSCRIPT_H

#include <jansson.h>

#include "base/utf8.h"
#include "t.h"
#include "text/chat_buffer.h"

typedef struct transcript {
    plumb__buffer line;
    plumb__buffer arguments; /* of the open call */
    plumb_chat_event_kind last;
    int last_call;
    bool started;
    int events, calls_ended;
} transcript;

static inline void transcript_close_text(transcript *t) {
    if (t->started && t->last <= PLUMB_CHAT_CONTENT) plumb__buffer_text(&t->line, ")");
}

/* jansson is the judge of what a client can read; its integers are too short for some. */
static inline void transcript_check_arguments(transcript *t) {
    json_t *object = json_loadb(t->arguments.bytes, (size_t)t->arguments.size,
                                JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    T_CHECK(json_is_object(object), "arguments %.*s", (int)t->arguments.size, t->arguments.bytes);
    json_decref(object);
    t->calls_ended++;
}

static inline void transcript_sink(void *user, const plumb_chat_event *event) {
    transcript *t = user;
    char begin[32];
    bool text = event->kind <= PLUMB_CHAT_CONTENT;
    T_CHECK(plumb__utf8_valid_prefix(event->bytes, event->size) == event->size, "a split character");
    T_CHECK(event->size > 0 || event->kind >= PLUMB_CHAT_CALL_BEGIN, "an empty delta");
    t->events++;
    if (!t->started || t->last != event->kind || !text) {
        if (event->kind != PLUMB_CHAT_CALL_ARGUMENTS) transcript_close_text(t);
        if (t->started && (text || event->kind == PLUMB_CHAT_CALL_BEGIN)) plumb__buffer_text(&t->line, " ");
        if (text) plumb__buffer_text(&t->line, event->kind == PLUMB_CHAT_REASONING ? "R(" : "C(");
    }
    if (event->kind == PLUMB_CHAT_CALL_BEGIN) {
        (void)snprintf(begin, sizeof begin, "%d:", event->call);
        plumb__buffer_text(&t->line, begin);
        t->arguments.size = 0;
    } else if (!text) {
        T_CHECK(event->call == t->last_call, "call %d inside call %d", event->call, t->last_call);
    }
    plumb__buffer_append(&t->line, event->bytes, event->size);
    if (event->kind == PLUMB_CHAT_CALL_ARGUMENTS)
        plumb__buffer_append(&t->arguments, event->bytes, event->size);
    if (event->kind == PLUMB_CHAT_CALL_END) {
        transcript_check_arguments(t);
        plumb__buffer_text(&t->line, ".");
    }
    if (event->kind == PLUMB_CHAT_CALL_DROPPED) plumb__buffer_text(&t->line, "!");
    t->last = event->kind;
    t->last_call = event->call;
    t->started = true;
}

/* The finished line, valid until transcript_free. */
static inline const char *transcript_line(transcript *t) {
    transcript_close_text(t);
    t->started = false;
    plumb__buffer_append(&t->line, "", 1);
    return t->line.bytes;
}

static inline void transcript_free(transcript *t) {
    plumb__buffer_free(&t->line);
    plumb__buffer_free(&t->arguments);
}

#endif
