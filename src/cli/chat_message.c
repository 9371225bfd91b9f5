/* Messages from lines; see chat_message.h. */
#include "cli/chat_message.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static const char quotes[] = "\"\"\"";

static plumb_status append(cli_message *m, const char *bytes, size_t size, plumb_error *err) {
    int64_t total = m->filled + (int64_t)size;
    if (total > CLI_MOST_LINE_BYTES)
        return plumb__fail(err, PLUMB_ERROR_IO, NULL, "message", -1, "a longer one",
                           "at most %d bytes", CLI_MOST_LINE_BYTES);
    void *grown = plumb__grow(m->bytes, &m->capacity, total + 1, 1);
    if (grown == NULL) return plumb__fail_memory(err, "message", (size_t)total + 1);
    m->bytes = grown;
    memcpy(m->bytes + m->filled, bytes, size);
    m->filled = total;
    m->bytes[m->filled] = '\0';
    return PLUMB_OK;
}

/* Appends a line; CLI_LINE_READ or why there is none. */
static cli_line_status read_line(cli_message *m, const char *prompt, plumb_error *err) {
    const char *line;
    size_t size;
    cli_line_status status = cli_line_input_read(m->input, prompt, &line, &size, err);
    if (status == CLI_LINE_INTERRUPTED && m->filled > 0) return CLI_LINE_CLEARED;
    if (status != CLI_LINE_READ) return status;
    return append(m, line, size, err) == PLUMB_OK ? CLI_LINE_READ : CLI_LINE_FAILED;
}

static bool begins_quoted(const cli_message *m) {
    size_t size = strlen(quotes);
    return m->filled >= (int64_t)size && memcmp(m->bytes, quotes, size) == 0 &&
           (m->filled == (int64_t)size || m->bytes[size] == '\n');
}

/* Whether the last line is `line`, and not the first one too unless `first_counts`. */
static bool ends_with_line(const cli_message *m, const char *line, bool first_counts) {
    int64_t size = (int64_t)strlen(line), at = m->filled - size;
    if (at < 0 || memcmp(m->bytes + at, line, (size_t)size) != 0) return false;
    return at == 0 ? first_counts : m->bytes[at - 1] == '\n';
}

/* Reads on until the last line is `closing`.  At the end of input *open stays true. */
static cli_line_status read_to(cli_message *m, const char *closing, bool first_counts,
                               const char *prompt, bool *open, plumb_error *err) {
    *open = true;
    for (bool begun = !first_counts; !begun || !ends_with_line(m, closing, first_counts);) {
        if (m->filled > 0 && append(m, "\n", 1, err) != PLUMB_OK) return CLI_LINE_FAILED;
        cli_line_status status = read_line(m, prompt, err);
        if (status != CLI_LINE_READ) {
            if (status == CLI_LINE_END && m->filled > 0) m->filled--; /* the line break */
            return status == CLI_LINE_END ? CLI_LINE_READ : status;
        }
        begun = true;
    }
    *open = false;
    return CLI_LINE_READ;
}

/* The text of `bytes` from `begin`, less a last line of `closing` bytes and the break before it. */
static void set_text(cli_message *m, int64_t begin, int64_t closing) {
    int64_t end = m->filled - closing;
    if (closing > 0 && end > begin) end--;
    if (begin > end) begin = end;
    m->text = m->bytes + begin;
    m->size = end - begin;
}

static cli_line_status read_quoted(cli_message *m, plumb_error *err) {
    bool open;
    cli_line_status status = read_to(m, quotes, false, ". ", &open, err);
    if (status != CLI_LINE_READ) return status;
    int64_t mark = (int64_t)strlen(quotes);
    m->quoted = true;
    set_text(m, mark + 1, open ? 0 : mark);
    return CLI_LINE_READ;
}

/* Lines that backslashes join. */
static cli_line_status read_joined(cli_message *m, plumb_error *err) {
    while (m->filled > 0 && m->bytes[m->filled - 1] == '\\') {
        m->bytes[m->filled - 1] = '\n';
        cli_line_status status = read_line(m, ". ", err);
        if (status == CLI_LINE_END) {
            m->filled--;
            break;
        }
        if (status != CLI_LINE_READ) return status;
    }
    set_text(m, 0, 0);
    return CLI_LINE_READ;
}

cli_line_status cli_message_read(cli_message *m, plumb_error *err) {
    m->filled = m->size = 0;
    m->quoted = false;
    cli_line_status status = read_line(m, "> ", err);
    if (status == CLI_LINE_READ)
        status = begins_quoted(m) ? read_quoted(m, err) : read_joined(m, err);
    if (status != CLI_LINE_READ) return status;
    m->bytes[m->filled] = '\0';
    return CLI_LINE_READ;
}

cli_line_status cli_message_read_pasted(cli_message *m, plumb_error *err) {
    static const char closing[] = "/end";
    bool open;
    m->filled = m->size = 0;
    m->quoted = true;
    cli_line_status status = read_to(m, closing, true, "", &open, err);
    if (status == CLI_LINE_READ) set_text(m, 0, open ? 0 : (int64_t)strlen(closing));
    return status;
}

void cli_message_free(cli_message *m) {
    free(m->bytes);
    m->bytes = NULL;
}
