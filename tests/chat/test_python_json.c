/* python_json against what Python's json module prints (python_json_cases.py made the data). */
#include <jansson.h>
#include <locale.h>
#include <stdlib.h>

#include "t.h"
#include "text/python_json.h"

/* Prints `source` again; *printed is NULL if it is refused. */
static void reprint(const char *source, size_t size, bool strict, plumb__buffer *printed,
                    plumb_error *err) {
    plumb__python_json json;
    memset(err, 0, sizeof *err);
    if (plumb__python_json_read(source, size, strict, "case", &json, err) != PLUMB_OK) return;
    plumb__python_json_print(json.root, printed);
    plumb__python_json_free(&json);
}

static void check_case(const json_t *entry, int line_number) {
    const json_t *source = json_object_get(entry, "source"), *wanted = json_object_get(entry, "printed");
    plumb__buffer printed = {0};
    plumb_error err;
    reprint(json_string_value(source), json_string_length(source), false, &printed, &err);
    if (json_is_null(wanted)) {
        T_CHECK(printed.size == 0 && err.status == PLUMB_ERROR_TEXT, "line %d is not refused", line_number);
        T_CHECK(err.offset >= 0 && err.expected[0], "line %d: vague error", line_number);
    } else {
        T_CHECK(printed.size == (int64_t)json_string_length(wanted) &&
                    memcmp(printed.bytes, json_string_value(wanted), (size_t)printed.size) == 0,
                "line %d: %.*s, not %.200s", line_number, (int)(printed.size < 200 ? printed.size : 200),
                printed.bytes ? printed.bytes : "", json_string_value(wanted));
    }
    plumb__buffer_free(&printed);
}

static void prints_as_python(void) {
    FILE *file = fopen(TEST_DATA "/chat/python_json.jsonl", "r");
    char *line = NULL;
    size_t capacity = 0;
    int number = 0;
    T_CHECK(file != NULL, "");
    while (file && getline(&line, &capacity, file) > 0) {
        json_t *entry = json_loads(line, JSON_ALLOW_NUL, NULL);
        T_CHECK(entry != NULL, "line %d", number + 1);
        if (entry) check_case(entry, ++number);
        json_decref(entry);
    }
    T_CHECK(number > 200, "%d cases", number);
    free(line);
    if (file) (void)fclose(file);
}

/* The decimal point of the program's locale must not reach a prompt. */
static void ignores_the_locale(void) {
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C"};
    const char *set = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !set; i++) set = setlocale(LC_NUMERIC, names[i]);
    plumb__buffer printed = {0};
    plumb_error err;
    reprint("[1.5,2.50e-7]", 13, false, &printed, &err);
    T_CHECK(printed.size == 14 && memcmp(printed.bytes, "[1.5, 2.5e-07]", 14) == 0, "%s", set ? set : "none");
    plumb__buffer_free(&printed);
    (void)setlocale(LC_NUMERIC, "C");
}

static void refuses_with_offset(void) {
    static const struct {
        const char *source;
        size_t size;
        bool strict;
        int64_t offset;
        const char *expected;
    } cases[] = {
        {"[1, 2", 5, false, 5, "\",\" or \"]\""},
        {"{\"a\" 1}", 7, false, 5, "\":\""},
        {"{\"a\": \xC3\xA9}", 9, false, 6, "a JSON value"},
        {"[\"\xFF\"]", 5, false, 2, "UTF-8"},
        {"\"\xED\xA0\x80\"", 5, false, 1, "UTF-8"},
        {"[\"ab\\ud800\"]", 12, false, 4, "the escapes of a whole surrogate pair"},
        {"[NaN]", 5, true, 1, "a JSON value"},
        {"-Infinity", 9, true, 1, "a digit"},
        {"1 2", 3, false, 2, "the end of the text"},
        {"1\0", 2, false, 1, "the end of the text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb__buffer printed = {0};
        plumb_error err;
        reprint(cases[i].source, cases[i].size, cases[i].strict, &printed, &err);
        T_CHECK(err.status == PLUMB_ERROR_TEXT && printed.size == 0, "case %zu", i);
        T_CHECK(err.offset == cases[i].offset, "case %zu: offset %" PRId64, i, err.offset);
        T_CHECK(!strcmp(err.expected, cases[i].expected), "case %zu: %s", i, err.expected);
        T_CHECK(!strcmp(err.field, "case"), "");
        plumb__buffer_free(&printed);
    }
}

static void bounds_nesting(void) {
    for (int depth = PLUMB__PYTHON_JSON_DEPTH_MAX; depth <= PLUMB__PYTHON_JSON_DEPTH_MAX + 1; depth++) {
        plumb__buffer source = {0}, printed = {0};
        plumb_error err;
        for (int i = 0; i < depth; i++) plumb__buffer_text(&source, "[");
        for (int i = 0; i < depth; i++) plumb__buffer_text(&source, "]");
        reprint(source.bytes, (size_t)source.size, false, &printed, &err);
        bool accepted = printed.size == source.size;
        T_CHECK(accepted == (depth <= PLUMB__PYTHON_JSON_DEPTH_MAX), "depth %d", depth);
        plumb__buffer_free(&source);
        plumb__buffer_free(&printed);
    }
}

/* 200,000 equal keys: the last value, in the first place. */
static void unites_many_duplicates(void) {
    plumb__buffer source = {0}, printed = {0};
    plumb_error err;
    plumb__buffer_text(&source, "{\"z\":0");
    for (int i = 0; i < 200000; i++) {
        char member[32];
        (void)snprintf(member, sizeof member, ",\"%c\":%d", "ab"[i & 1], i);
        plumb__buffer_text(&source, member);
    }
    plumb__buffer_text(&source, "}");
    reprint(source.bytes, (size_t)source.size, false, &printed, &err);
    static const char wanted[] = "{\"z\": 0, \"a\": 199998, \"b\": 199999}";
    T_CHECK(printed.size == sizeof wanted - 1 && memcmp(printed.bytes, wanted, sizeof wanted - 1) == 0, "");
    plumb__buffer_free(&source);
    plumb__buffer_free(&printed);
}

T_MAIN({"prints_as_python", prints_as_python}, {"ignores_the_locale", ignores_the_locale},
       {"refuses_with_offset", refuses_with_offset}, {"bounds_nesting", bounds_nesting},
       {"unites_many_duplicates", unites_many_duplicates})
