/* Reports for programs; see json_report.h. */
#include "cli/json_report.h"

#include "base/clean_text.h"
#include "base/utf8.h"
#include "cli/output.h"

#include <stdlib.h>
#include <string.h>

json_t *cli_json_text(const char *text) {
    size_t size = 3 * strlen(text) + 1; /* U+FFFD has three bytes */
    char *clean = malloc(size);
    if (clean == NULL) return NULL;
    plumb__clean_text(text, PLUMB_UTF8_REPLACEMENT, true, clean, size);
    json_t *string = json_string(clean);
    free(clean);
    return string;
}

static int write_bytes(const char *bytes, size_t size, void *user) {
    (void)user;
    return cli_write(bytes, size) ? 0 : -1;
}

void cli_json_print(const json_t *report, int digits) {
    size_t flags = JSON_INDENT(2) | (size_t)JSON_REAL_PRECISION(digits);
    (void)json_dump_callback(report, write_bytes, NULL, flags);
    cli_print("\n");
}
