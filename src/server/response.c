/* Bodies and server-sent events; see response.h. */
#include "server/response.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/text_buffer.h"

static void begin(plumb_response *r, int status, const char *content_type, bool streaming) {
    if (r->begun) return;
    r->begun = true;
    r->begin(r, status, content_type, streaming);
}

void plumb__response_end(plumb_response *r) {
    if (r->ended) return;
    r->ended = true;
    r->end(r);
}

void plumb__response_text(plumb_response *r, int status, const char *content_type, const char *bytes,
                          size_t size) {
    begin(r, status, content_type, false);
    r->write(r, bytes, size);
    plumb__response_end(r);
}

void plumb__response_json(plumb_response *r, int status, json_t *value) {
    static const char no_memory[] =
        "{\"error\":{\"message\":\"no memory for the answer\",\"type\":\"server_error\",\"param\":null,\"code\":null}}";
    plumb_text_buffer text = {0};
    plumb__text_append_json(&text, value);
    if (!text.failed) plumb__response_text(r, status, "application/json", text.bytes, (size_t)text.size);
    else plumb__response_text(r, 500, "application/json", no_memory, sizeof no_memory - 1);
    plumb__text_free(&text);
    json_decref(value);
}

void plumb__response_stream(plumb_response *r) { begin(r, 200, "text/event-stream", true); }

/* One event in one piece, since each piece costs the wire a frame of its own; without memory in several. */
static void send(plumb_response *r, const char *name, const char *data) {
    const char *const parts[] = {name ? "event: " : "", name ? name : "", name ? "\n" : "", "data: ", data, "\n\n"};
    enum { PARTS = sizeof parts / sizeof parts[0] };
    size_t size = 0;
    for (int i = 0; i < PARTS; i++) size += strlen(parts[i]);
    char *whole = malloc(size);
    plumb__response_stream(r);
    for (size_t i = 0, at = 0; i < PARTS; i++) {
        size_t length = strlen(parts[i]);
        if (whole) memcpy(whole + at, parts[i], length);
        else r->write(r, parts[i], length);
        at += length;
    }
    if (whole) r->write(r, whole, size);
    free(whole);
}

/* A stream that lost an event must not look whole.  Clients of every API know one of this event's marks. */
static void break_off(plumb_response *r) {
    send(r, "error",
         "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"no memory for the answer\"}}");
    plumb__response_end(r);
}

void plumb__response_event(plumb_response *r, const char *name, json_t *data) {
    plumb_text_buffer text = {0};
    plumb__text_append_json(&text, data); /* escapes line breaks: one line */
    plumb__text_append(&text, "", 1);
    if (!r->ended && !text.failed) send(r, name, text.bytes);
    else if (!r->ended) break_off(r);
    plumb__text_free(&text);
    json_decref(data);
}

void plumb__response_data(plumb_response *r, const char *text) {
    if (!r->ended) send(r, NULL, text);
}

/* Of few words. */
void plumb__response_comment(plumb_response *r, const char *text) {
    char line[128];
    if (r->ended) return;
    plumb__response_stream(r);
    int size = snprintf(line, sizeof line, ": %.100s\n\n", text);
    r->write(r, line, (size_t)size);
}
