/* evhttp reads more than it should: it takes bytes of the next request while one is answered, tells nobody
 * of NULs, continued lines and second lengths, and answers what it refuses in HTML.  Hence it gets whole
 * requests only, one at a time, which were checked here: the head as its sender wrote it (but for an
 * absolute URI), and the body in one piece, a chunked one as one chunk without a trailer. */
#include "server/http_reader.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_CHUNK_LINE = 256, /* with its CR LF */
    LEAST_MOVED_BYTES = 2048
};

static const plumb_http_fault no_memory = {503, "there is no memory for the request"};

static plumb_http_progress faulty(plumb_http_fault *fault, int status, const char *message) {
    *fault = (plumb_http_fault){status, message};
    return PLUMB_HTTP_FAULTY;
}

static plumb_http_progress out_of_memory(plumb_http_fault *fault) {
    *fault = no_memory;
    return PLUMB_HTTP_FAULTY;
}

bool plumb__http_reader_create(plumb_http_reader *reader) {
    *reader = (plumb_http_reader){.request = evbuffer_new(), .chunks = evbuffer_new()};
    if (reader->request && reader->chunks) return true;
    plumb__http_reader_destroy(reader);
    return false;
}

void plumb__http_reader_destroy(plumb_http_reader *reader) {
    free(reader->path);
    if (reader->request) evbuffer_free(reader->request);
    if (reader->chunks) evbuffer_free(reader->chunks);
    *reader = (plumb_http_reader){0};
}

bool plumb__http_move(struct evbuffer *from, struct evbuffer *to, size_t size) {
    char piece[LEAST_MOVED_BYTES];
    if (size >= sizeof piece) return evbuffer_remove_buffer(from, to, size) == (int)size;
    return evbuffer_remove(from, piece, size) == (int)size && !evbuffer_add(to, piece, size);
}

static void drain(struct evbuffer *buffer) { evbuffer_drain(buffer, evbuffer_get_length(buffer)); }

void plumb__http_reader_reset(plumb_http_reader *reader) {
    free(reader->path);
    drain(reader->request);
    drain(reader->chunks);
    *reader = (plumb_http_reader){.request = reader->request, .chunks = reader->chunks};
}

bool plumb__http_reader_awaited(const plumb_http_reader *reader) {
    return reader->head.expects_continue && reader->head.body && reader->state != PLUMB_HTTP_HEAD;
}

/* ---- Lines ---- */

typedef enum line_kind { LINE_WHOLE, LINE_UNFINISHED, LINE_MALFORMED } line_kind;

/* The line that begins at `line` and is known to have no end before `from`; *end is the offset after its
 * CR LF.  A bare LF malforms it. */
static line_kind find_line(struct evbuffer *raw, size_t line, size_t from, size_t *end) {
    struct evbuffer_ptr start;
    if (evbuffer_ptr_set(raw, &start, from, EVBUFFER_PTR_SET)) return LINE_UNFINISHED;
    struct evbuffer_ptr lf = evbuffer_search(raw, "\n", 1, &start);
    if (lf.pos < 0) return LINE_UNFINISHED;
    if ((size_t)lf.pos == line) return LINE_MALFORMED;
    struct evbuffer_ptr before;
    char cr = 0;
    if (evbuffer_ptr_set(raw, &before, (size_t)lf.pos - 1, EVBUFFER_PTR_SET) ||
        evbuffer_copyout_from(raw, &before, &cr, 1) != 1 || cr != '\r')
        return LINE_MALFORMED;
    *end = (size_t)lf.pos + 1;
    return LINE_WHOLE;
}

/* ---- The head ---- */

/* evhttp is shown a path in place of an absolute URI, which it would take for a proxy's business. */
static bool write_head(plumb_http_reader *reader, const char *bytes, size_t size) {
    const plumb_http_head *head = &reader->head;
    const char *target = bytes + head->target;
    bool rooted = head->target_size && (*target == '/' || *target == '*');
    struct evbuffer *to = reader->request;
    return evbuffer_add_printf(to, "%.*s %s", (int)head->method_size, bytes, rooted ? "" : "/") > 0 &&
           !evbuffer_add(to, target, head->target_size) &&
           evbuffer_add_printf(to, " HTTP/1.%d\r\n", head->minor) > 0 &&
           !evbuffer_add(to, bytes + head->fields, size - head->fields);
}

static plumb_http_progress begin_request(plumb_http_reader *reader, struct evbuffer *raw, size_t size,
                                         const plumb_http_limits *limits, plumb_http_fault *fault) {
    const char *bytes = (const char *)evbuffer_pullup(raw, (ev_ssize_t)size);
    if (!bytes) return out_of_memory(fault);
    plumb_http_head *head = &reader->head;
    if (!plumb__http_head_check(bytes, size, head, fault)) return PLUMB_HTTP_FAULTY;
    reader->path = malloc(head->target_size + 2);
    if (!reader->path || !write_head(reader, bytes, size)) return out_of_memory(fault);
    if (!plumb__http_path_decode(bytes + head->target, head->target_size, reader->path, fault))
        return PLUMB_HTTP_FAULTY;
    if ((uint64_t)head->length > limits->most_body_bytes) return faulty(fault, 413, "the body is too large");
    evbuffer_drain(raw, size);
    reader->skipped = 0;
    reader->left = head->length;
    reader->state = head->chunked ? PLUMB_HTTP_CHUNK_SIZE : PLUMB_HTTP_BODY;
    return PLUMB_HTTP_WHOLE;
}

/* Looks at each byte once, however slowly they come.  WHOLE: the head is. */
static plumb_http_progress read_head(plumb_http_reader *reader, struct evbuffer *raw,
                                     const plumb_http_limits *limits, plumb_http_fault *fault) {
    for (;;) {
        size_t end = 0;
        line_kind kind = find_line(raw, reader->line, reader->scanned, &end);
        if (kind == LINE_MALFORMED) return faulty(fault, 400, "a line does not end with CR LF");
        reader->scanned = kind == LINE_WHOLE ? end : evbuffer_get_length(raw);
        if (reader->scanned + reader->skipped > limits->most_header_bytes)
            return faulty(fault, 431, "the header fields are too large");
        if (kind == LINE_UNFINISHED) return PLUMB_HTTP_MORE;
        bool is_empty = end - reader->line == 2;
        if (is_empty && reader->line) return begin_request(reader, raw, end, limits, fault);
        if (is_empty) { /* before the request line: some clients end a body so */
            evbuffer_drain(raw, end);
            reader->skipped += end;
            reader->scanned = 0;
        } else {
            reader->line = end;
        }
    }
}

/* ---- The body ---- */

/* Moves what is there of `left` bytes. */
static bool move_left(plumb_http_reader *reader, struct evbuffer *raw, struct evbuffer *to) {
    size_t size = evbuffer_get_length(raw);
    if ((uint64_t)reader->left < size) size = (size_t)reader->left;
    if (size && !plumb__http_move(raw, to, size)) return false;
    reader->left -= (int64_t)size;
    return true;
}

static plumb_http_progress read_body(plumb_http_reader *reader, struct evbuffer *raw, plumb_http_fault *fault) {
    if (!move_left(reader, raw, reader->request)) return out_of_memory(fault);
    return reader->left ? PLUMB_HTTP_MORE : PLUMB_HTTP_WHOLE;
}

/* A chunk's length and, after a semicolon, extensions that mean nothing here. */
static plumb_http_progress read_chunk_size(plumb_http_reader *reader, struct evbuffer *raw,
                                           const plumb_http_limits *limits, plumb_http_fault *fault) {
    size_t end = 0;
    line_kind kind = find_line(raw, 0, 0, &end);
    if (kind == LINE_UNFINISHED && evbuffer_get_length(raw) < MOST_CHUNK_LINE) return PLUMB_HTTP_MORE;
    char line[MOST_CHUNK_LINE];
    if (kind != LINE_WHOLE || end > sizeof line || evbuffer_remove(raw, line, end) != (int)end)
        return faulty(fault, 400, "the length of a chunk is malformed");
    size_t digits = 0, size = end - 2;
    while (digits < size && line[digits] != ';') digits++;
    reader->left = plumb__http_hex(line, digits);
    if (reader->left < 0) return faulty(fault, 400, "the length of a chunk is malformed");
    for (size_t i = digits; i < size; i++) {
        if ((unsigned char)line[i] < 0x20 && line[i] != '\t')
            return faulty(fault, 400, "the extension of a chunk has a control character");
    }
    if ((uint64_t)reader->left + evbuffer_get_length(reader->chunks) > limits->most_body_bytes)
        return faulty(fault, 413, "the body is too large");
    reader->state = reader->left ? PLUMB_HTTP_CHUNK : PLUMB_HTTP_TRAILER;
    return PLUMB_HTTP_WHOLE;
}

static plumb_http_progress read_chunk(plumb_http_reader *reader, struct evbuffer *raw, plumb_http_fault *fault) {
    if (!move_left(reader, raw, reader->chunks)) return out_of_memory(fault);
    if (reader->left) return PLUMB_HTTP_MORE;
    reader->state = PLUMB_HTTP_CHUNK_END;
    return PLUMB_HTTP_WHOLE;
}

static plumb_http_progress read_chunk_end(plumb_http_reader *reader, struct evbuffer *raw,
                                          plumb_http_fault *fault) {
    if (evbuffer_get_length(raw) < 2) return PLUMB_HTTP_MORE;
    char end[2];
    evbuffer_remove(raw, end, 2);
    if (memcmp(end, "\r\n", 2)) return faulty(fault, 400, "a chunk is longer than it says");
    reader->state = PLUMB_HTTP_CHUNK_SIZE;
    return PLUMB_HTTP_WHOLE;
}

/* The body as one chunk.  A trailer's fields are dropped: they must not pass for those of the head. */
static bool write_chunks(plumb_http_reader *reader) {
    size_t size = evbuffer_get_length(reader->chunks);
    if (size && (evbuffer_add_printf(reader->request, "%zx\r\n", size) < 0 ||
                 evbuffer_add_buffer(reader->request, reader->chunks) || evbuffer_add(reader->request, "\r\n", 2)))
        return false;
    return !evbuffer_add(reader->request, "0\r\n\r\n", 5);
}

static plumb_http_progress read_trailer(plumb_http_reader *reader, struct evbuffer *raw,
                                        const plumb_http_limits *limits, plumb_http_fault *fault) {
    for (;;) {
        size_t end = 0;
        line_kind kind = find_line(raw, 0, 0, &end);
        if (kind == LINE_MALFORMED) return faulty(fault, 400, "a line does not end with CR LF");
        size_t seen = (kind == LINE_WHOLE ? end : evbuffer_get_length(raw)) + reader->skipped;
        if (seen > limits->most_header_bytes) return faulty(fault, 431, "the trailer is too large");
        if (kind == LINE_UNFINISHED) return PLUMB_HTTP_MORE;
        const char *line = (const char *)evbuffer_pullup(raw, (ev_ssize_t)end);
        if (!line) return out_of_memory(fault);
        if (end > 2 && !plumb__http_field_check(line, end - 2, fault)) return PLUMB_HTTP_FAULTY;
        evbuffer_drain(raw, end);
        reader->skipped += end;
        if (end == 2) return write_chunks(reader) ? PLUMB_HTTP_WHOLE : out_of_memory(fault);
    }
}

plumb_http_progress plumb__http_reader_step(plumb_http_reader *reader, struct evbuffer *raw,
                                            const plumb_http_limits *limits, plumb_http_fault *fault) {
    for (;;) {
        plumb_http_progress progress = PLUMB_HTTP_MORE;
        bool is_last = false;
        switch (reader->state) {
        case PLUMB_HTTP_HEAD: progress = read_head(reader, raw, limits, fault); break;
        case PLUMB_HTTP_BODY:
            progress = read_body(reader, raw, fault);
            is_last = true;
            break;
        case PLUMB_HTTP_CHUNK_SIZE: progress = read_chunk_size(reader, raw, limits, fault); break;
        case PLUMB_HTTP_CHUNK: progress = read_chunk(reader, raw, fault); break;
        case PLUMB_HTTP_CHUNK_END: progress = read_chunk_end(reader, raw, fault); break;
        case PLUMB_HTTP_TRAILER:
            progress = read_trailer(reader, raw, limits, fault);
            is_last = true;
            break;
        }
        if (progress != PLUMB_HTTP_WHOLE || is_last) return progress;
    }
}
