/* Finds files of the page, and tells how browsers have to treat them.
 *
 * The policy lets the page load its own files and speak to its own server, and nothing else: whatever a model
 * writes, no browser runs it, fetches for it or sends anything elsewhere.  Trusted types forbid the page's own
 * scripts to make HTML from text. */
#include "server/page.h"

#include <string.h>

const plumb_page_header plumb__page_headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
     "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
     "require-trusted-types-for 'script'; trusted-types 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    /* Kept, but asked for again each time: an upgraded server is never seen through old files. */
    {"Cache-Control", "no-cache"},
    {NULL, NULL},
};

const plumb_page_file *plumb__page_find(const char *path) {
    for (int i = 0; i < plumb__page_file_count; i++) {
        if (!strcmp(path, plumb__page_files[i].path)) return &plumb__page_files[i];
    }
    return NULL;
}

/* RFC 9110, 13.1.2: a star, or a list of tags, which are compared without W/. */
bool plumb__page_unchanged(const plumb_page_file *file, const char *if_none_match) {
    const char *at = if_none_match;
    size_t length = strlen(file->etag);
    while (at && *at) {
        at += strspn(at, " \t,");
        if (*at == '*') return true;
        if (!strncmp(at, "W/", 2)) at += 2;
        if (*at != '"') return false;
        if (!strncmp(at, file->etag, length)) return true;
        at = strchr(at + 1, '"');
        if (at) at++;
    }
    return false;
}
