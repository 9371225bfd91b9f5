/* Errors are one line that cannot drive a terminal, whatever the file that caused them holds. */
#include "base/error.h"
#include "t.h"

static void hostile_text(void) {
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"plain", "plain"},
        {"caf\xC3\xA9 \xE5\x8C\x97\xE4\xBA\xAC \xF0\x9F\x98\x80", "caf\xC3\xA9 \xE5\x8C\x97\xE4\xBA\xAC \xF0\x9F\x98\x80"},
        {"a\nb\r\tc\x1B[31m\x7F", "a?b??c?[31m?"},
        {"\xC2\x9B" "31m \xC2\x85", "?31m ?"},                     /* C1 controls */
        {"\xE2\x80\xAE" "abc \xE2\x81\xA6", "?abc ?"},             /* turned text */
        {"x\xE2\x80\xA8y\xEF\xBB\xBFz", "x?y?z"},                  /* line separator, BOM */
        {"\xFF\x80 \xC3( \xE2\x82", "?? ?( ??"},                   /* broken UTF-8 */
        {"\xC0\xAF \xED\xA0\x80 \xF5\x80\x80\x80", "?? ??? ????"}, /* overlong, surrogate, too large */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plumb_error err;
        char line[1024];
        (void)plumb__fail(&err, PLUMB_ERROR_FORMAT, rows[i].text, rows[i].text, 7, rows[i].text, "%s",
                          rows[i].text);
        T_CHECK(!strcmp(err.file, rows[i].shown) && !strcmp(err.field, rows[i].shown) &&
                    !strcmp(err.found, rows[i].shown) && !strcmp(err.expected, rows[i].shown),
                "row %zu: %s", i, err.field);
        plumb_error_line(&err, line, sizeof line);
        T_CHECK(!strchr(line, '\n'), "row %zu: more than one line", i);
    }
}

static void long_text(void) {
    /* 200 bytes of two-byte characters into 192: cut between characters. */
    char text[201];
    for (int i = 0; i < 200; i += 2) memcpy(text + i, "\xC3\xA9", 2);
    text[200] = 0;
    plumb_error err;
    (void)plumb__fail(&err, PLUMB_ERROR_FORMAT, NULL, text, -1, NULL, NULL);
    T_CHECK(strlen(err.field) == 190 && !memcmp(err.field, text, 190), "%zu bytes", strlen(err.field));
}

T_MAIN({"hostile_text", hostile_text}, {"long_text", long_text})
