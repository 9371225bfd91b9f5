/* What a request costs before it is whole. */
#include "server/http_reader.h"
#include "t.h"

enum { BYTES = 20000, MOST_PIECES = 64 };

static const plumb_http_limits limits = {.most_header_bytes = 4096, .most_body_bytes = BYTES};

/* Pieces of memory that a buffer holds. */
static int pieces(struct evbuffer *buffer) { return evbuffer_peek(buffer, -1, NULL, NULL, 0); }

/* One read from a socket, in memory of its own as libevent has it. */
static plumb_http_progress receive(plumb_http_reader *reader, struct evbuffer *raw, const char *bytes) {
    plumb_http_fault fault;
    struct evbuffer *input = evbuffer_new();
    bool received = input && !evbuffer_add(input, bytes, strlen(bytes)) && plumb__http_move(input, raw, strlen(bytes));
    T_CHECK(received, "no memory");
    if (input) evbuffer_free(input);
    return plumb__http_reader_step(reader, raw, &limits, &fault);
}

/* A body of which each byte comes alone, `before` and `after` it in reads of their own. */
static void check_bytewise(const char *head, const char *before, const char *after, const char *last) {
    plumb_http_reader reader;
    struct evbuffer *raw = evbuffer_new();
    bool created = plumb__http_reader_create(&reader);
    T_CHECK(raw && created, "no memory");
    plumb_http_progress progress = receive(&reader, raw, head);
    for (int i = 0; i < BYTES && progress == PLUMB_HTTP_MORE; i++) {
        if (before) progress = receive(&reader, raw, before);
        progress = receive(&reader, raw, "x");
        if (after) progress = receive(&reader, raw, after);
    }
    int held = pieces(reader.request) + pieces(reader.chunks) + pieces(raw);
    T_CHECK(held <= MOST_PIECES, "%d bytes are held in %d pieces", BYTES, held);
    if (last) progress = receive(&reader, raw, last);
    T_CHECK(progress == PLUMB_HTTP_WHOLE, "%.20s: %d", head, (int)progress);
    plumb__http_reader_destroy(&reader);
    evbuffer_free(raw);
}

static void test_bytes_of_a_body(void) {
    check_bytewise("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 20000\r\n\r\n", NULL, NULL, NULL);
}

static void test_bytes_of_chunks(void) {
    check_bytewise("POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\n", "\r\n", "0\r\n\r\n");
}

T_MAIN({"bytes_of_a_body", test_bytes_of_a_body}, {"bytes_of_chunks", test_bytes_of_chunks})
