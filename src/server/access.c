/* Keys, origins and names: who may ask. */
#include "server/server_parts.h"

#include <string.h>
#include <strings.h>

/* ---- Keys ---- */

/* Takes as long whatever is given: the key alone says how long.  `given` is not empty. */
static bool is_equal(const char *key, size_t key_size, const char *given, size_t given_size) {
    unsigned char difference = key_size != given_size;
    for (size_t i = 0, k = 0; i < key_size; i++, k = k + 1 < given_size ? k + 1 : 0)
        difference |= (unsigned char)(key[i] ^ given[k]);
    return difference == 0;
}

static bool is_listed(const char *keys, const char *given) {
    bool found = false; /* all lines are compared, whichever fits */
    const size_t given_size = strlen(given);
    for (const char *line = keys; *line && given_size > 0;) {
        size_t size = strcspn(line, "\r\n");
        if (size > 0) found |= is_equal(line, size, given, given_size);
        line += size;
        line += strspn(line, "\r\n");
    }
    return found;
}

/* Either header may have it: clients that were given two send both, one of them for somebody else. */
bool plumb__access_has_key(const plumb_server *server, const plumb_http_exchange *exchange) {
    const char *keys = server->options.api_keys;
    if (!keys) return true;
    const char *given = plumb__http_header(exchange, "x-api-key");
    const char *authorization = plumb__http_header(exchange, "authorization");
    bool found = given && is_listed(keys, given);
    if (authorization && strncasecmp(authorization, "bearer ", 7) == 0)
        found |= is_listed(keys, authorization + 7 + strspn(authorization + 7, " "));
    return found;
}

/* ---- Origins ---- */

static const char *authority_of(const char *origin) {
    const char *mark = strstr(origin, "://");
    return mark ? mark + 3 : origin;
}

static bool is_allowed(const plumb_server *server, const char *origin) {
    const char *allowed = server->options.cors_origin;
    return allowed && (strcmp(allowed, "*") == 0 || strcasecmp(allowed, origin) == 0);
}

/* Names by which a browser on this machine reaches it. */
static bool is_local_name(const char *host) {
    size_t size = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    static const char *const names[] = {"localhost", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (size == strlen(names[i]) && strncasecmp(host, names[i], size) == 0) return true;
    return strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") >= size;
}

static bool is_loopback(const char *address) {
    return strcmp(address, "::1") == 0 || is_local_name(address);
}

/* A browser says where the page that asks comes from.  A page elsewhere whose name was made to point at
 * this machine asks as if it were ours, but by that name. */
bool plumb__access_is_foreign(const plumb_server *server, const plumb_http_exchange *exchange) {
    const char *origin = plumb__http_header(exchange, "origin"), *host = plumb__http_header(exchange, "host");
    if (origin && is_allowed(server, origin)) return false;
    if (origin && (!host || strcasecmp(authority_of(origin), host) != 0)) return true;
    if (server->options.api_keys || !is_loopback(server->options.host) || !host) return false;
    size_t size = strcspn(host, ":");
    return !is_local_name(host) &&
           !(strlen(server->options.host) == size && strncasecmp(host, server->options.host, size) == 0);
}

void plumb__access_set_headers(const plumb_server *server, plumb_http_exchange *exchange) {
    const char *origin = plumb__http_header(exchange, "origin");
    if (!server->options.cors_origin) return;
    plumb__http_set_header(exchange, "Vary", "Origin");
    if (!origin || !is_allowed(server, origin)) return;
    plumb__http_set_header(exchange, "Access-Control-Allow-Origin", origin);
    plumb__http_set_header(exchange, "Access-Control-Expose-Headers", "request-id, x-request-id, retry-after");
    if (strcmp(plumb__http_method(exchange), "OPTIONS") != 0) return;
    plumb__http_set_header(exchange, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    const char *headers = plumb__http_header(exchange, "access-control-request-headers");
    plumb__http_set_header(exchange, "Access-Control-Allow-Headers",
                           headers ? headers : "authorization, content-type, x-api-key");
    plumb__http_set_header(exchange, "Access-Control-Max-Age", "600");
}
