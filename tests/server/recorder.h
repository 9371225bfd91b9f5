/* A response in memory, and what it said as JSON: what an API's tests look at. */
#ifndef PLUMB_TESTS_SERVER_RECORDER_H
#define PLUMB_TESTS_SERVER_RECORDER_H

#include "server/response.h"
#include "server/text_buffer.h"

#include "t.h"

#include <stdlib.h>

typedef struct recorder {
    plumb_response response;
    int status;
    char content_type[64];
    bool streaming;
    plumb_text_buffer bytes;
    int begins, ends;
} recorder;

static inline void recorder_begin(plumb_response *response, int status, const char *content_type, bool streaming) {
    recorder *r = (recorder *)response;
    r->status = status;
    snprintf(r->content_type, sizeof r->content_type, "%s", content_type);
    r->streaming = streaming;
    r->begins++;
}

static inline void recorder_write(plumb_response *response, const char *bytes, size_t size) {
    recorder *r = (recorder *)response;
    T_CHECK(r->begins == 1 && r->ends == 0, "written outside of the answer");
    plumb__text_append(&r->bytes, bytes, size);
}

static inline void recorder_end(plumb_response *response) {
    recorder *r = (recorder *)response;
    T_CHECK(r->begins == 1, "ended before it began");
    r->ends++;
}

#define RECORDER {.response = {.begin = recorder_begin, .write = recorder_write, .end = recorder_end}}

static inline void recorder_free(recorder *r) { plumb__text_free(&r->bytes); }

/* The body of a whole answer. */
static inline json_t *recorder_body(const recorder *r) {
    return json_loadb(r->bytes.bytes ? r->bytes.bytes : "", (size_t)r->bytes.size, JSON_REJECT_DUPLICATES, NULL);
}

static inline bool recorder_starts(const char *line, const char *field, const char **value) {
    size_t size = strlen(field);
    if (strncmp(line, field, size) != 0) return false;
    *value = line + size;
    return true;
}

/* A stream as an array: data that is JSON as it is, other data as a string, a comment as ":text", the name of an
 * event as "name:".  NULL: it is no stream of events. */
static inline json_t *recorder_events(recorder *r) {
    json_t *events = json_array();
    plumb__text_append(&r->bytes, "", 1);
    char *line = r->bytes.bytes;
    for (char *end; r->bytes.size > 1 && (end = strchr(line, '\n')); line = end + 1) {
        const char *value;
        *end = 0;
        json_t *made = NULL;
        if (recorder_starts(line, "data: ", &value)) {
            made = json_loads(value, JSON_REJECT_DUPLICATES, NULL);
            if (!made) made = json_string(value);
            T_CHECK(end[1] == '\n', "an event without an empty line: %s", line);
        } else if (recorder_starts(line, ": ", &value)) {
            made = json_sprintf(":%s", value);
        } else if (recorder_starts(line, "event: ", &value)) {
            made = json_sprintf("%s:", value);
        } else {
            T_CHECK(line[0] == 0, "a line that is no event: %s", line);
        }
        if (made) json_array_append_new(events, made);
    }
    return events;
}

/* Both printed where they differ. */
static inline void check_json(const char *name, const json_t *found, const char *wanted) {
    json_error_t fault;
    json_t *value = json_loads(wanted, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &fault);
    T_CHECK(value != NULL, "%s: the test's own JSON: %s at %d", name, fault.text, fault.position);
    char *shown = json_dumps(found, JSON_COMPACT | JSON_ENCODE_ANY);
    T_CHECK(json_equal(found, value), "%s:\n  %s\nnot\n  %s", name, shown ? shown : "nothing", wanted);
    free(shown);
    json_decref(value);
}

#endif
