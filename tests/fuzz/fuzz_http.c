/* The bytes of a connection, as one piece and in pieces whose size the first byte tells: the same requests
 * must come out of both, and evhttp must be able to read the target of each. */
#include "server/http_reader.h"

#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

typedef struct outcome {
    struct evbuffer *requests; /* all of them, one after the other */
    bool refused;
} outcome;

static void check_target(struct evbuffer *request) {
    size_t size = 0;
    char *line = evbuffer_readln(request, &size, EVBUFFER_EOL_CRLF_STRICT);
    char *target = line ? strchr(line, ' ') : NULL, *version = target ? strchr(target + 1, ' ') : NULL;
    if (!version || strlen(line) != size) abort();
    *version = '\0';
    struct evhttp_uri *uri = evhttp_uri_parse_with_flags(target + 1, EVHTTP_URI_NONCONFORMANT);
    if (!uri || evhttp_uri_get_host(uri) || evhttp_uri_get_scheme(uri)) abort();
    evhttp_uri_free(uri);
    free(line);
}

static outcome read_all(const uint8_t *data, size_t size, size_t piece) {
    const plumb_http_limits limits = {.most_header_bytes = 400, .most_body_bytes = 300};
    outcome found = {.requests = evbuffer_new()};
    struct evbuffer *raw = evbuffer_new();
    plumb_http_reader reader;
    if (!found.requests || !raw || !plumb__http_reader_create(&reader)) abort();
    for (size_t at = 0; at < size && !found.refused; at += piece) {
        if (evbuffer_add(raw, data + at, size - at < piece ? size - at : piece)) abort();
        plumb_http_fault fault = {0};
        plumb_http_progress progress;
        while ((progress = plumb__http_reader_step(&reader, raw, &limits, &fault)) == PLUMB_HTTP_WHOLE) {
            if (evbuffer_add(found.requests, reader.path, strlen(reader.path) + 1)) abort();
            size_t length = evbuffer_get_length(reader.request);
            if (evbuffer_add(found.requests, evbuffer_pullup(reader.request, -1), length)) abort();
            check_target(reader.request);
            plumb__http_reader_reset(&reader);
        }
        found.refused = progress == PLUMB_HTTP_FAULTY;
        if (found.refused && (fault.status < 400 || !fault.message || strpbrk(fault.message, "\"\\"))) abort();
    }
    plumb__http_reader_destroy(&reader);
    evbuffer_free(raw);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size) return 0;
    outcome whole = read_all(data + 1, size - 1, size), cut = read_all(data + 1, size - 1, data[0] % 16 + 1u);
    size_t length = evbuffer_get_length(whole.requests);
    if (length != evbuffer_get_length(cut.requests) || whole.refused != cut.refused) abort();
    if (length && memcmp(evbuffer_pullup(whole.requests, -1), evbuffer_pullup(cut.requests, -1), length)) abort();
    evbuffer_free(whole.requests);
    evbuffer_free(cut.requests);
    return 0;
}
