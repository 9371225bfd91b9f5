/* Schemas and functions with texts that fit and texts that do not, cut into tokens in random ways; and those
 * that are refused, by keyword and JSON pointer. */
#include "grammar_test.h"

static plumb_status make(const json_t *row, plumb_grammar **grammar, plumb_error *err) {
    const json_t *functions = json_object_get(row, "functions"), *schema = json_object_get(row, "schema");
    if (functions && schema)
        return plumb__grammar_json_or_calls(json_is_null(schema) ? NULL : schema, functions,
                                            json_is_true(json_object_get(row, "several")), grammar, err);
    if (functions) return plumb__grammar_calls(functions, json_is_true(json_object_get(row, "several")), grammar, err);
    return plumb__grammar_json_schema(schema, grammar, err);
}

static json_t *load(const char *name) {
    json_error_t fault;
    char path[512];
    snprintf(path, sizeof path, PROJECT_DIR "/tests/grammar/data/%s", name);
    json_t *rows = json_load_file(path, 0, &fault);
    T_CHECK(rows, "%s: %s", path, fault.text);
    return rows;
}

static void check_texts(const vocabulary *v, const json_t *row, uint64_t *random) {
    const char *name = json_string_value(json_object_get(row, "name"));
    plumb_grammar *grammar = NULL;
    plumb_error err = {0};
    const json_t *text;
    size_t i, at;
    if (make(row, &grammar, &err) != PLUMB_OK) {
        T_CHECK(false, "%s: %s: %s, expected %s", name, err.field, err.found, err.expected);
        return;
    }
    json_array_foreach(json_object_get(row, "fit"), i, text) {
        for (int run = 0; run < 3; run++) {
            bool taken = takes(v, grammar, json_string_value(text), random, &at);
            T_CHECK(taken, "%s: refuses %s at %zu", name, json_string_value(text), at);
        }
    }
    json_array_foreach(json_object_get(row, "misfit"), i, text) {
        for (int run = 0; run < 2; run++)
            T_CHECK(!takes(v, grammar, json_string_value(text), random, NULL), "%s: takes %s", name,
                    json_string_value(text));
    }
    plumb__grammar_release(grammar);
}

static void texts(void) {
    vocabulary v = open_vocabulary(DEMO_MODEL);
    json_t *rows = load("texts.json");
    const json_t *row;
    uint64_t random = 1;
    size_t i;
    json_array_foreach(rows, i, row) check_texts(&v, row, &random);
    T_CHECK(i > 50, "%zu rows", i);
    json_decref(rows);
    close_vocabulary(&v);
}

static void refused(void) {
    json_t *rows = load("refused.json");
    const json_t *row;
    size_t i;
    json_array_foreach(rows, i, row) {
        plumb_grammar *grammar = NULL;
        plumb_error err = {0};
        const char *word = json_string_value(json_object_get(row, "status"));
        const char *field = json_string_value(json_object_get(row, "field"));
        plumb_status expected = !word ? PLUMB_OK : !strcmp(word, "format") ? PLUMB_ERROR_FORMAT : PLUMB_ERROR_UNSUPPORTED;
        plumb_status status = make(row, &grammar, &err);
        char *text = json_dumps(row, JSON_ENCODE_ANY);
        T_CHECK(status == expected, "%s: %.300s at %s: %s", plumb_status_name(status), text, err.field, err.found);
        T_CHECK(!field || !strcmp(err.field, field), "at %s: %.300s", err.field, text);
        T_CHECK(status == PLUMB_OK || err.expected[0], "nothing expected: %.300s", text);
        free(text);
        plumb__grammar_release(grammar);
    }
    T_CHECK(i > 50, "%zu rows", i);
    json_decref(rows);
}

T_MAIN({"texts", texts}, {"refused", refused})
