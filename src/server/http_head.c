/* What evhttp does not look at, or reads otherwise than a proxy before it may have: a request whose ends two
 * readers see at different places carries a second one past the first reader.  So nothing here is guessed
 * or repaired; what RFC 9112 lets a server refuse is refused. */
#include "server/http_head.h"

#include "base/utf8.h"

#include <string.h>
#include <strings.h>

enum { MOST_FIELDS = 256, MOST_LENGTH_DIGITS = 18, MOST_HEX_DIGITS = 15 };

static bool refuse(plumb_http_fault *fault, int status, const char *message) {
    *fault = (plumb_http_fault){status, message};
    return false;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
/* NUL is in no set: strchr would find it at the end. */
static bool is_in(char c, const char *set) { return c && strchr(set, c); }
static bool is_token(char c) { return is_digit(c) || is_letter(c) || is_in(c, "!#$%&'*+-.^_`|~"); }
static bool is_authority(char c) { return is_digit(c) || is_letter(c) || is_in(c, "-._~%!$&'()*+,;=:[]"); }
static bool is_target(char c) { return is_digit(c) || is_letter(c) || is_in(c, "-._~%!$&'()*+,;=:@/?"); }

static bool all(const char *bytes, size_t size, bool (*is)(char)) {
    for (size_t i = 0; i < size; i++) {
        if (!is(bytes[i])) return false;
    }
    return true;
}

static bool same(const char *bytes, size_t size, const char *word) {
    return size == strlen(word) && !strncasecmp(bytes, word, size);
}

static int hex_digit(char c) {
    if (is_digit(c)) return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

int64_t plumb__http_hex(const char *digits, size_t size) {
    if (size < 1 || size > MOST_HEX_DIGITS) return -1;
    int64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        int digit = hex_digit(digits[i]);
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* ---- The target ---- */

/* A segment of dots alone would climb, for whoever takes the path for a file's. */
static bool climbs(const char *path) {
    for (const char *at = path; *at;) {
        at += strspn(at, "/\\");
        size_t size = strcspn(at, "/\\");
        if ((size == 1 || size == 2) && !strncmp(at, "..", size)) return true;
        at += size;
    }
    return false;
}

bool plumb__http_path_decode(const char *target, size_t size, char *path, plumb_http_fault *fault) {
    size_t used = 0;
    if (!size || target[0] == '?') path[used++] = '/'; /* http://host?query */
    bool in_query = false;
    for (size_t i = 0; i < size; i++) {
        char c = target[i];
        if (c == '?') in_query = true;
        if (c == '%') {
            int64_t code = size - i > 2 ? plumb__http_hex(target + i + 1, 2) : -1;
            if (code < 0) return refuse(fault, 400, "the URI has a malformed percent escape");
            if (code < 0x20 || code == 0x7F) return refuse(fault, 400, "the URI escapes a control character");
            c = (char)code;
            i += 2;
        }
        if (!in_query) path[used++] = c;
    }
    path[used] = '\0';
    if (plumb__utf8_valid_prefix(path, used) != used) return refuse(fault, 400, "the path is not UTF-8");
    if (climbs(path)) return refuse(fault, 400, "the path has a segment of dots");
    return true;
}

/* http://authority of an absolute URI: the server is its own origin, so only what follows counts. */
static bool skip_authority(const char *bytes, plumb_http_head *head, plumb_http_fault *fault) {
    const char *target = bytes + head->target;
    size_t size = head->target_size, skip;
    if (size > 7 && !strncasecmp(target, "http://", 7)) skip = 7;
    else if (size > 8 && !strncasecmp(target, "https://", 8)) skip = 8;
    else return refuse(fault, 400, "the URI is neither a path nor one of HTTP");
    size_t end = skip;
    while (end < size && is_authority(target[end])) end++;
    if (end == skip || (end < size && target[end] != '/' && target[end] != '?'))
        return refuse(fault, 400, "the URI has a malformed host");
    head->target += end;
    head->target_size -= end;
    return true;
}

static bool check_target(const char *bytes, plumb_http_head *head, plumb_http_fault *fault) {
    const char *target = bytes + head->target;
    if (head->target_size == 1 && *target == '*') {
        if (same(bytes, head->method_size, "OPTIONS")) return true;
        return refuse(fault, 400, "the URI * goes with OPTIONS alone");
    }
    if (!all(target, head->target_size, is_target))
        return refuse(fault, 400, "the URI has a character that must be escaped");
    if (*target != '/' && !skip_authority(bytes, head, fault)) return false;
    /* "//" would be read as an authority again. */
    if (head->target_size > 1 && !strncmp(bytes + head->target, "//", 2))
        return refuse(fault, 400, "the path begins with an empty segment");
    return true;
}

/* ---- The request line ---- */

static bool check_method(const char *bytes, size_t size, plumb_http_fault *fault) {
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"};
    if (!size || !all(bytes, size, is_token)) return refuse(fault, 400, "the method is malformed");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (size == strlen(known[i]) && !memcmp(bytes, known[i], size)) return true; /* case matters */
    }
    if (same(bytes, size, "TRACE") || same(bytes, size, "CONNECT"))
        return refuse(fault, 405, "the method is not allowed");
    return refuse(fault, 501, "the method is unknown");
}

static bool check_version(const char *version, size_t size, plumb_http_head *head, plumb_http_fault *fault) {
    if (size != 8 || memcmp(version, "HTTP/", 5) || !is_digit(version[5]) || version[6] != '.' ||
        !is_digit(version[7]))
        return refuse(fault, 400, "the request line is malformed");
    if (version[5] != '1') return refuse(fault, 505, "the version of HTTP is not 1.0 or 1.1");
    head->minor = version[7] == '0' ? 0 : 1; /* a later one of HTTP/1 may be read as 1.1 */
    return true;
}

/* METHOD SP target SP version: exactly two spaces, nothing else that is empty to the eye. */
static bool check_request_line(const char *line, size_t size, plumb_http_head *head, plumb_http_fault *fault) {
    const char *first = memchr(line, ' ', size);
    if (!first) return refuse(fault, 400, "the request line is malformed");
    head->method_size = (size_t)(first - line);
    head->target = head->method_size + 1;
    const char *second = memchr(first + 1, ' ', size - head->target);
    if (!second || second == first + 1) return refuse(fault, 400, "the request line is malformed");
    head->target_size = (size_t)(second - first) - 1;
    size_t version = head->target + head->target_size + 1;
    return check_version(second + 1, size - version, head, fault) &&
           check_method(line, head->method_size, fault) && check_target(line, head, fault);
}

/* ---- Header fields ---- */

static bool is_value(char c) {
    unsigned char u = (unsigned char)c;
    return u == '\t' || (u >= 0x20 && u != 0x7F);
}

bool plumb__http_field_check(const char *line, size_t size, plumb_http_fault *fault) {
    if (size && (line[0] == ' ' || line[0] == '\t'))
        return refuse(fault, 400, "a header field is continued on a second line");
    const char *colon = memchr(line, ':', size);
    if (!colon) return refuse(fault, 400, "a header field has no colon");
    size_t name = (size_t)(colon - line);
    if (!name || !all(line, name, is_token)) return refuse(fault, 400, "the name of a header field is malformed");
    if (!all(colon + 1, size - name - 1, is_value))
        return refuse(fault, 400, "a header field has a control character");
    return true;
}

/* What has been seen of the fields that say where the request ends, and for whom it is. */
typedef struct framing {
    int hosts, lengths, codings;
    bool keep_alive;
} framing;

/* The elements of a comma-separated list, one by one; false after the last. */
static bool next_element(const char **at, size_t *left, const char **element, size_t *size) {
    while (*left && (is_in(**at, ", \t"))) {
        (*at)++;
        (*left)--;
    }
    *element = *at;
    while (*left && **at != ',') {
        (*at)++;
        (*left)--;
    }
    *size = (size_t)(*at - *element);
    while (*size && is_in((*element)[*size - 1], " \t")) (*size)--;
    return *size > 0;
}

static bool read_length(const char *value, size_t size, plumb_http_head *head, plumb_http_fault *fault) {
    if (!size || !all(value, size, is_digit)) return refuse(fault, 400, "Content-Length is malformed");
    if (size > MOST_LENGTH_DIGITS) return refuse(fault, 413, "the body is too large");
    for (size_t i = 0; i < size; i++) head->length = head->length * 10 + (value[i] - '0');
    return true;
}

static bool read_connection(const char *value, size_t size, framing *seen, plumb_http_head *head) {
    const char *element;
    size_t length;
    while (next_element(&value, &size, &element, &length)) {
        head->close |= same(element, length, "close");
        seen->keep_alive |= same(element, length, "keep-alive");
    }
    return true;
}

static bool read_field(const char *line, size_t size, framing *seen, plumb_http_head *head,
                       plumb_http_fault *fault) {
    size_t name = (size_t)((const char *)memchr(line, ':', size) - line);
    const char *value = line + name + 1, *end = line + size;
    while (value < end && is_in(*value, " \t")) value++;
    while (end > value && is_in(end[-1], " \t")) end--;
    size_t length = (size_t)(end - value);
    if (same(line, name, "Host")) {
        if (seen->hosts++) return refuse(fault, 400, "Host is given twice");
        return all(value, length, is_authority) || refuse(fault, 400, "Host is malformed");
    }
    if (same(line, name, "Content-Length")) {
        if (seen->lengths++) return refuse(fault, 400, "Content-Length is given twice");
        return read_length(value, length, head, fault);
    }
    if (same(line, name, "Transfer-Encoding")) {
        if (seen->codings++) return refuse(fault, 400, "Transfer-Encoding is given twice");
        head->chunked = same(value, length, "chunked");
        return head->chunked || refuse(fault, 501, "the only Transfer-Encoding known here is chunked");
    }
    if (same(line, name, "Expect") && head->minor) {
        head->expects_continue = same(value, length, "100-continue");
        return head->expects_continue || refuse(fault, 417, "the only expectation known here is 100-continue");
    }
    if (same(line, name, "Connection")) return read_connection(value, length, seen, head);
    return true;
}

static bool check_framing(const char *method, const framing *seen, plumb_http_head *head,
                          plumb_http_fault *fault) {
    if (head->minor && !seen->hosts) return refuse(fault, 400, "Host is missing");
    if (seen->lengths && seen->codings)
        return refuse(fault, 400, "Content-Length and Transfer-Encoding exclude each other");
    if (seen->codings && !head->minor) return refuse(fault, 400, "HTTP/1.0 has no Transfer-Encoding");
    head->body = head->chunked || head->length;
    /* evhttp would take such a body for the next request. */
    if (head->body && same(method, head->method_size, "HEAD"))
        return refuse(fault, 400, "a HEAD request has no body");
    head->close |= !head->minor && !seen->keep_alive;
    return true;
}

bool plumb__http_head_check(const char *bytes, size_t size, plumb_http_head *head, plumb_http_fault *fault) {
    *head = (plumb_http_head){0};
    framing seen = {0};
    int fields = 0;
    for (size_t at = 0; at < size;) {
        const char *line = bytes + at, *end = memchr(line, '\n', size - at);
        if (!end || end == line || end[-1] != '\r') return refuse(fault, 400, "a line does not end with CR LF");
        size_t length = (size_t)(end - line) - 1;
        if (!at) {
            if (!check_request_line(line, length, head, fault)) return false;
            head->fields = length + 2;
        } else if (length) {
            if (++fields > MOST_FIELDS) return refuse(fault, 431, "there are too many header fields");
            if (!plumb__http_field_check(line, length, fault) || !read_field(line, length, &seen, head, fault))
                return false;
        }
        at += length + 2;
    }
    return check_framing(bytes, &seen, head, fault);
}
