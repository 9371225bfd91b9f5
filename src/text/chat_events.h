/* The way out of the parser: neighbouring bytes of the same kind become one event, so that a token
 * that ends a held tail is one delta and not several. */
#ifndef PLUMB_TEXT_CHAT_EVENTS_H
#define PLUMB_TEXT_CHAT_EVENTS_H

#include "plumb.h"

typedef struct plumb__chat_events {
    plumb_chat_sink sink;
    void *user;
    plumb_chat_event_kind kind; /* of the gathered bytes */
    int call;
    size_t size;
    char bytes[1024];
} plumb__chat_events;

/* Bytes of whole characters, so that no event splits one. */
void plumb__chat_emit(plumb__chat_events *events, plumb_chat_event_kind kind, int call,
                      const char *bytes, size_t size);
/* An event of its own, even if empty. */
void plumb__chat_emit_mark(plumb__chat_events *events, plumb_chat_event_kind kind, int call,
                           const char *bytes, size_t size);
void plumb__chat_emit_flush(plumb__chat_events *events);

#endif
