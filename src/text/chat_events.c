/* See chat_events.h. */
#include "text/chat_events.h"

#include <string.h>

void plumb__chat_emit_flush(plumb__chat_events *events) {
    if (events->size == 0) return;
    plumb_chat_event event = {events->kind, events->call, events->bytes, events->size};
    events->size = 0;
    events->sink(events->user, &event);
}

void plumb__chat_emit(plumb__chat_events *events, plumb_chat_event_kind kind, int call,
                      const char *bytes, size_t size) {
    if (size == 0) return;
    if (events->kind != kind || events->call != call || size > sizeof events->bytes - events->size)
        plumb__chat_emit_flush(events);
    if (size > sizeof events->bytes) {
        plumb__chat_emit_mark(events, kind, call, bytes, size);
        return;
    }
    events->kind = kind;
    events->call = call;
    memcpy(events->bytes + events->size, bytes, size);
    events->size += size;
}

void plumb__chat_emit_mark(plumb__chat_events *events, plumb_chat_event_kind kind, int call,
                           const char *bytes, size_t size) {
    plumb_chat_event event = {kind, call, bytes, size};
    plumb__chat_emit_flush(events);
    events->sink(events->user, &event);
}
