/* Bodies and server-sent events; see response.h. */
#include "server/response.h"

#include <stdlib.h>
#include <string.h>

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
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    if (text) plumb__response_text(r, status, "application/json", text, strlen(text));
    else plumb__response_text(r, 500, "application/json", no_memory, sizeof no_memory - 1);
    free(text);
    json_decref(value);
}

void plumb__response_stream(plumb_response *r) { begin(r, 200, "text/event-stream", true); }

static void line(plumb_response *r, const char *field, const char *text) {
    r->write(r, field, strlen(field));
    r->write(r, text, strlen(text));
    r->write(r, "\n", 1);
}

/* A stream that lost an event must not look whole.  Clients of every API know one of this event's marks. */
static void break_off(plumb_response *r) {
    plumb__response_stream(r);
    line(r, "event: ", "error");
    line(r, "data: ",
         "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"no memory for the answer\"}}");
    r->write(r, "\n", 1);
    plumb__response_end(r);
}

void plumb__response_event(plumb_response *r, const char *name, json_t *data) {
    char *text = data && !r->ended ? json_dumps(data, JSON_COMPACT) : NULL; /* escapes line breaks: one line */
    if (text) {
        plumb__response_stream(r);
        if (name) line(r, "event: ", name);
        line(r, "data: ", text);
        r->write(r, "\n", 1);
    } else if (!r->ended) {
        break_off(r);
    }
    free(text);
    json_decref(data);
}

void plumb__response_data(plumb_response *r, const char *text) {
    if (r->ended) return;
    plumb__response_stream(r);
    line(r, "data: ", text);
    r->write(r, "\n", 1);
}

void plumb__response_comment(plumb_response *r, const char *text) {
    if (r->ended) return;
    plumb__response_stream(r);
    line(r, ": ", text);
    r->write(r, "\n", 1);
}
